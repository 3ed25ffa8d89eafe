"""A figure as a manifest has it, whatever wrote the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.scenario import Figure


def asked(told: Mapping[str, Any]) -> Figure:
    """Return the figure; what an older version did not write is at its default."""
    rows = told.get("rows")
    texts = {name: str(told[name]) for name in ("x", "y", "kind", "table", "theory") if name in told}
    by = tuple(str(name) for name in told.get("by", ()))
    return Figure(title=str(told.get("title", "")), by=by, rows=None if rows is None else str(rows), **texts)
