"""What limited the flows over time: the share of each limit, interval by interval, from table `limits`.

Not here: how it is drawn (see `lab.report.panels` and `lab.report.stack`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lab import schema
from lab.report import limits
from lab.report.series import MOST_SAMPLES, Floats, Row, column

_SECONDS = tuple(name for name in (one.name for one in schema.LIMIT_COLUMNS) if name.endswith("_s"))
_LIMITS = tuple(name.removesuffix("_s") for name in _SECONDS if name not in ("t_s", "span_s"))


@dataclass(frozen=True)
class Band:
    """Shares of the limits that bound at all. Arrays of shape (n,); edges has one more, rising, s.

    shares: of each interval, of all flows together; they add up to 1, or to 0
    where no flow was there. flows: how many there were.
    """

    edges_s: Floats
    shares: Mapping[str, Floats]
    flows: int


def read(rows: Sequence[Row]) -> Band:
    """Return the band of one point from its rows of table `limits`.

    Flows count by the seconds that they were there. Of more than
    `MOST_SAMPLES` intervals neighbours are added up: no second is left out.
    """
    flows: dict[int, list[Row]] = {}
    for row in rows:
        flows.setdefault(row["flow"], []).append(row)
    ends = {number: column(its, "t_s") for number, its in flows.items()}
    starts = {number: ends[number] - column(its, "span_s") for number, its in flows.items()}
    if not flows:
        return Band(np.zeros(1), {}, 0)
    edges_s = _thinned(np.unique(np.concatenate([*starts.values(), *ends.values()]).round(9)))
    seconds = {limit: np.zeros(len(edges_s) - 1) for limit in _LIMITS}
    for number, its in flows.items():
        for limit in _LIMITS:
            spent = np.nan_to_num(column(its, f"{limit}_s"))
            if spent.any():
                seconds[limit] += _spread(starts[number], ends[number], spent, edges_s)
    total = sum(seconds.values(), np.zeros(len(edges_s) - 1))
    # a sliver of an interval, left by rounding, is none
    there = total > 1e-9
    shares = {
        limit: np.divide(spent, total, out=np.zeros_like(total), where=there)
        for limit, spent in seconds.items()
        if spent.any()
    }
    return Band(edges_s, shares, len(flows))


def _thinned(edges_s: Floats) -> Floats:
    """Return every nth edge, and the last."""
    stride = max(1, -(-(len(edges_s) - 1) // MOST_SAMPLES))
    kept = edges_s[::stride]
    return kept if kept[-1] == edges_s[-1] else np.append(kept, edges_s[-1])


def _spread(starts_s: Floats, ends_s: Floats, spent: Floats, edges_s: Floats) -> Floats:
    """Return what of the seconds of one flow's intervals falls between two edges, evenly within each."""
    order = np.argsort(ends_s, kind="stable")
    times = np.column_stack([starts_s[order], ends_s[order]]).ravel()
    summed = np.cumsum(spent[order])
    reached = np.column_stack([np.concatenate([[0.0], summed[:-1]]), summed]).ravel()
    return np.diff(np.interp(edges_s, times, reached))


def words(band: Band, at: int) -> str:
    """Return what limited in one interval, largest first: "receive window 93 %, slow start 7 %"."""
    shares = {limit: float(values[at]) for limit, values in band.shares.items()}
    shown = sorted(limits.present(shares), key=lambda limit: -shares[limit])
    return ", ".join(limits.named(limit, shares) for limit in shown)
