"""The points that can be looked at one by one: their series, path and commands, within a size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from lab.errors import StoreError
from lab.report import band, drawing, observed, panels, series, stack, why
from lab.report.stored import Entry, Stored
from lab.report.why import Why

MOST_POINTS = 200
MOST_BYTES = 20 * 10**6
"""Room for the series of all points in a page; plotly.js takes 5 MB more."""

_BYTES_A_VALUE = 6
"""Of a series in the page: 4 bytes in base64."""
_WHY_BYTES = 4000
"""Of the tables that say why."""


@dataclass(frozen=True)
class PointPart:
    """What the page holds of one point."""

    id: str
    label: str
    figure: go.Figure
    narrow: dict[str, Any]
    caption: str
    drawing: str
    facts: list[tuple[str, str]]
    commands: str
    why: Why


def parts(stored: Stored) -> tuple[list[PointPart], int]:
    """Return the points to look at, and how many are left out.

    Too many are thinned evenly over the scenario's order. A point whose samples cannot be read is left out.
    """
    found: list[PointPart] = []
    room = MOST_BYTES
    for entry in _evenly(stored.done, MOST_POINTS):
        try:
            part = _part(stored, entry)
        except StoreError:
            continue
        room -= _size(part)
        if room < 0 and found:
            break
        found.append(part)
    return found, len(stored.done) - len(found)


def _evenly(entries: Sequence[Entry], most: int) -> list[Entry]:
    if len(entries) <= most:
        return list(entries)
    return [entries[number * len(entries) // most] for number in range(most)]


def _part(stored: Stored, entry: Entry) -> PointPart:
    samples, queues, flows, delays, limits = (
        stored.rows(table, entry) for table in ("samples", "queues", "flows", "delays", "limits")
    )
    rows, limited = series.read(samples, queues, flows, delays), band.read(limits)
    figure, narrow = stack.draw(panels.build(entry, rows, limited))
    label = stored.label(entry)
    return PointPart(
        id=entry.id,
        label=f"{label} ({entry.id})" if label else entry.id,
        figure=figure,
        narrow=narrow,
        caption=panels.caption(entry, rows, limited),
        drawing=drawing.draw(entry, str(stored.manifest.get("engine", ""))),
        facts=drawing.facts(entry),
        commands=drawing.commands(stored.folder.outcome(entry.id)),
        why=why.build(entry, observed.observe(entry, samples, queues, rows.begin_s)),
    )


def _size(part: PointPart) -> int:
    traces = part.figure.data
    values = sum(len(trace.x) + len(trace.y) for trace in traces)
    texts = sum(len(text) + 3 for trace in traces for text in trace.text or ())
    told = len(part.commands) + len(part.drawing)
    return values * _BYTES_A_VALUE + texts + told + 500 * len(traces) + _WHY_BYTES
