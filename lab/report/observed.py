"""What the samples of one point come to, to hold against the prediction: windows, bytes in flight, queue.

From every sample, not from those that are drawn. Not here: what the points
table already says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lab.report.series import SENDER_COLUMNS, Columns, Floats, Row
from lab.report.stored import Entry


@dataclass(frozen=True)
class Observed:
    """Sizes in bytes, None where no sample says.

    window: most that a receiver advertised to a flow; inflight: mean of the
    steady part, all flows; flow_inflight: most of one flow; sndbuf, queued: of
    a flow's send buffer, its largest size and what was most in use of it,
    overhead included; backlog: of the bottleneck, mean of the steady part; of
    several the longest.
    """

    window_bytes: float | None = None
    inflight_bytes: float | None = None
    flow_inflight_bytes: float | None = None
    sndbuf_bytes: float | None = None
    queued_bytes: float | None = None
    backlog_bytes: float | None = None


def observe(entry: Entry, samples: Sequence[Row], queues: Sequence[Row], begin_s: float) -> Observed:
    """Return what the samples of a point come to. begin_s: when the first data was sent."""
    steady_s, load_s = entry.number("steady_from_s"), entry.number("load_s")
    part = (begin_s + (steady_s or 0.0), begin_s + load_s if load_s is not None else np.inf)
    by_flow: dict[int, list[Row]] = {}
    for row in samples:
        if row["end"] == "sender":
            by_flow.setdefault(row["flow"], []).append(row)
    flows = [Columns(rows) for rows in by_flow.values()]
    inflight = [_mean(flow["t_s"], SENDER_COLUMNS["inflight_bytes"](flow), part) for flow in flows]
    interfaces: dict[tuple[str, str], list[Row]] = {}
    for row in queues:
        if row["bottleneck"]:
            interfaces.setdefault((row["node"], row["interface"]), []).append(row)
    waiting = [Columns(rows) for rows in interfaces.values()]
    backlogs = [_mean(its["t_s"], its["backlog_bytes"], part) for its in waiting]
    known = [mean for mean in inflight if mean is not None]
    return Observed(
        window_bytes=_most(flows, "rwnd_bytes"),
        inflight_bytes=sum(known) if known else None,
        flow_inflight_bytes=_most(flows, "inflight_bytes"),
        sndbuf_bytes=_most(flows, "sndbuf_bytes"),
        queued_bytes=_most(flows, "queued_bytes"),
        backlog_bytes=max((mean for mean in backlogs if mean is not None), default=None),
    )


def _most(flows: Sequence[Columns], name: str) -> float | None:
    values = [SENDER_COLUMNS[name](flow) for flow in flows]
    known = [float(np.nanmax(each)) for each in values if len(each) and not np.isnan(each).all()]
    return max(known, default=None)


def _mean(t_s: Floats, values: Floats, part: tuple[float, float]) -> float | None:
    """Return the mean of the samples between two instants."""
    inside = values[(t_s >= part[0]) & (t_s <= part[1]) & ~np.isnan(values)]
    return float(inside.mean()) if len(inside) else None
