"""The two sides of a comparison as the rules see them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Row = Mapping[str, Any]

SAMPLES = ("flow", "end", "t_s", "tcpi_rtt", "tcpi_snd_wnd", "skmem_sndbuf", "tcpi_reord_seen")
"""Columns of table samples that `observe` needs."""


@dataclass(frozen=True)
class Side:
    """One of the two. name: of its run, for sentences. row: of table points, see `typical`.

    observed: what its samples come to, see `observe`.
    """

    name: str
    row: Row
    observed: Mapping[str, float] = field(default_factory=dict)

    def number(self, column: str) -> float | None:
        """Return a number of the row, None where there is none."""
        value = self.row.get(column)
        known = isinstance(value, int | float) and math.isfinite(value)
        return float(value) if known and value is not None else None

    def text(self, column: str) -> str:
        """Return a value of the row as text, "unknown" where there is none."""
        value = self.row.get(column)
        return "unknown" if value is None else str(value)

    def shares(self, *limits: str) -> float:
        """Return the share of the transfer that these limits bound together, by the records."""
        held = self.row.get("limit_shares") or {}
        return math.fsum(float(held.get(limit) or 0.0) for limit in limits)


class Effect(NamedTuple):
    """What a quantity does to a column from one side to the other. sure: amount is more than a sign."""

    amount: float
    sentence: str
    sure: bool = True


def grown(x: float, y: float) -> float:
    """Return the natural logarithm of y / x, both above 0; its sign turns when they change places."""
    return math.log(y) - math.log(x)


def typical(rows: Sequence[Row]) -> dict[str, Any]:
    """Return one row for the repetitions of a setting: medians of numbers, means of shares, the first text.

    rows: of table points, at least one.
    """
    found: dict[str, Any] = {}
    for name, first in rows[0].items():
        values = [row[name] for row in rows if row.get(name) is not None]
        if not values:
            found[name] = None
        elif isinstance(values[0], Mapping):
            names = dict.fromkeys(one for value in values for one in value)
            found[name] = {
                one: math.fsum(float(value.get(one) or 0.0) for value in values) / len(values)
                for one in names
            }
        elif isinstance(values[0], int | float) and not isinstance(values[0], bool):
            found[name] = statistics.median(values)
        else:
            found[name] = first if first is not None else values[0]
    return found


def observe(samples: Iterable[Row]) -> dict[str, float]:
    """Return what the samples of one point come to; what none says is left out.

    window_bytes: most that a receiver advertised; sndbuf_bytes: largest send buffer;
    peak_rtt_s: largest smoothed RTT; reordered: segments that overtook others, all flows.
    """
    found: dict[str, float] = {}
    overtook: dict[int, float] = {}
    for row in samples:
        if row["end"] != "sender":
            continue
        for name, column, unit in (
            ("window_bytes", "tcpi_snd_wnd", 1.0),
            ("sndbuf_bytes", "skmem_sndbuf", 1.0),
            ("peak_rtt_s", "tcpi_rtt", 1e-6),
        ):
            if row.get(column):
                found[name] = max(found.get(name, 0.0), row[column] * unit)
        if row.get("tcpi_reord_seen") is not None:
            overtook[row["flow"]] = max(overtook.get(row["flow"], 0.0), float(row["tcpi_reord_seen"]))
    if overtook:
        found["reordered"] = math.fsum(overtook.values())
    return found
