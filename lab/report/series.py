"""One point over time: what its samples and queue rows say, as arrays.

Goodput counts what the receiving application read (see `lab.metrics`). Bytes
in flight are (tcpi_unacked - tcpi_sacked - tcpi_lost + tcpi_retrans) segments,
as tcp_packets_in_flight() in include/net/tcp.h, times the sender's MSS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_SAMPLES = 400
"""Samples drawn of a flow; of more, every nth."""

MOST_FLOWS = 8
"""Flows drawn one by one; more are drawn as one."""

Floats = NDArray[np.float64]
Row = Mapping[str, Any]


class Columns:
    """Columns of rows by name, shape (n,), each made once when asked for; null is NaN."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self._made: dict[str, Floats] = {}

    def __getitem__(self, name: str) -> Floats:
        if name not in self._made:
            self._made[name] = column(self._rows, name)
        return self._made[name]


SENDER_COLUMNS: Mapping[str, Callable[[Columns], Floats]] = {
    "cwnd_bytes": lambda s: s["tcpi_snd_cwnd"] * s["tcpi_snd_mss"],
    "rwnd_bytes": lambda s: s["tcpi_snd_wnd"],
    "inflight_bytes": lambda s: (
        (s["tcpi_unacked"] - s["tcpi_sacked"] - s["tcpi_lost"] + s["tcpi_retrans"]) * s["tcpi_snd_mss"]
    ),
    "queued_bytes": lambda s: s["skmem_wmem_queued"],
    "sndbuf_bytes": lambda s: s["skmem_sndbuf"],
    "srtt_s": lambda s: s["tcpi_rtt"] * 1e-6,
    "retransmits": lambda s: s["tcpi_total_retrans"],
}


@dataclass(frozen=True)
class FlowSeries:
    """One flow, or several as one. Arrays of shape (n,); NaN where a sample lacks the field.

    t_s, columns: the sender's samples (`SENDER_COLUMNS`); read_t_s, read_bytes:
    what the application had read. Times from the start of the load.
    """

    name: str
    t_s: Floats
    columns: Mapping[str, Floats]
    read_t_s: Floats
    read_bytes: Floats

    def goodput_bps(self) -> Floats:
        """Return the goodput of each interval, at its end; the first is NaN."""
        rates = np.full(len(self.read_t_s), np.nan)
        spans = np.diff(self.read_t_s)
        np.divide(np.diff(self.read_bytes) * 8, spans, out=rates[1:], where=spans > 0)
        return rates

    def mean_goodput_bps(self, window_s: float) -> Floats:
        """Return the goodput over the last `window_s` of each instant, less at the start."""
        since = np.maximum(self.read_t_s - window_s, self.read_t_s[0])
        before = np.interp(since, self.read_t_s, self.read_bytes)
        spans = self.read_t_s - since
        rates = np.full(len(spans), np.nan)
        np.divide((self.read_bytes - before) * 8, spans, out=rates, where=spans > 0)
        return rates


@dataclass(frozen=True)
class QueueSeries:
    """The bottleneck's queue. Arrays of shape (n,); drops: since the sample before."""

    t_s: Floats
    backlog_bytes: Floats
    drops: Floats


@dataclass(frozen=True)
class PointSeries:
    """One point. stride: of how many samples one is drawn; merged: flows drawn as one, 0 for none.

    begin_s: when the first data was sent.
    """

    flows: tuple[FlowSeries, ...]
    queue: QueueSeries
    begin_s: float
    stride: int
    merged: int


def read(samples: Sequence[Row], queues: Sequence[Row]) -> PointSeries:
    """Return the series of one point from its rows."""
    numbers = sorted({row["flow"] for row in samples})
    by_end: dict[tuple[int, str], list[Row]] = {}
    for row in samples:
        by_end.setdefault((row["flow"], row["end"]), []).append(row)
    longest = max((len(rows) for rows in by_end.values()), default=0)
    stride = max(1, -(-longest // MOST_SAMPLES))
    flows = [
        _flow(f"flow {number}", by_end.get((number, "sender"), []), by_end.get((number, "receiver"), []))
        for number in numbers
    ]
    merged = len(flows) if len(flows) > MOST_FLOWS else 0
    if merged:
        flows = [_merge(flows)]
    return PointSeries(
        flows=tuple(_thin(flow, stride) for flow in flows),
        queue=_queue([row for row in queues if row["bottleneck"]], stride),
        begin_s=_first_data_s([row for row in samples if row["end"] == "sender"]),
        stride=stride,
        merged=merged,
    )


def column(rows: Sequence[Row], name: str) -> Floats:
    """Return a column of rows, shape (n,); null is NaN."""
    return np.array([row.get(name) for row in rows], dtype=np.float64)


def _flow(name: str, sent: Sequence[Row], received: Sequence[Row]) -> FlowSeries:
    columns = Columns(sent)
    read = column(received, "tcpi_bytes_received") - np.nan_to_num(column(received, "idiag_rqueue"))
    known = ~np.isnan(read)
    read, read_t_s = read[known], column(received, "t_s")[known]
    return FlowSeries(
        name=name,
        t_s=columns["t_s"],
        columns={which: make(columns) for which, make in SENDER_COLUMNS.items()},
        read_t_s=read_t_s,
        read_bytes=np.maximum.accumulate(read - read[0]) if len(read) else read,
    )


def _first_data_s(sent: Sequence[Row]) -> float:
    """Return when the first data left, dated as in `lab.metrics`."""
    starts = [row["t_s"] - row["tcpi_busy_time"] / 1e6 for row in sent if row.get("tcpi_busy_time")]
    return max(0.0, min(starts, default=0.0))


def _merge(flows: Sequence[FlowSeries]) -> FlowSeries:
    """Return many flows as one: bytes add up, of RTTs it is the median."""
    t_s = np.unique(np.concatenate([flow.t_s for flow in flows]))
    read_t_s = np.unique(np.concatenate([flow.read_t_s for flow in flows]))
    read = sum(
        (np.interp(read_t_s, flow.read_t_s, flow.read_bytes) for flow in flows if len(flow.read_t_s)),
        np.zeros_like(read_t_s),
    )
    columns = {}
    for name in SENDER_COLUMNS:
        stacked = np.full((len(flows), len(t_s)), np.nan)
        for number, flow in enumerate(flows):
            stacked[number, np.searchsorted(t_s, flow.t_s)] = flow.columns[name]
        if name == "retransmits":  # a flow that ended keeps its count
            stacked = np.fmax.accumulate(stacked, axis=1)
        columns[name] = _across(stacked, np.nanmedian if name == "srtt_s" else np.nansum)
    return FlowSeries(f"all {len(flows)} flows", t_s, columns, read_t_s, read)


def _across(stacked: Floats, reduce: Callable[..., Any]) -> Floats:
    """Reduce over flows; NaN where no flow has a value, which numpy would warn of."""
    result = np.full(stacked.shape[1], np.nan)
    some = ~np.isnan(stacked).all(axis=0)
    result[some] = reduce(stacked[:, some], axis=0)
    return result


def _thin(flow: FlowSeries, stride: int) -> FlowSeries:
    if stride == 1:
        return flow
    columns = {name: values[::stride] for name, values in flow.columns.items()}
    read_t_s, read_bytes = flow.read_t_s[::stride], flow.read_bytes[::stride]
    return FlowSeries(flow.name, flow.t_s[::stride], columns, read_t_s, read_bytes)


def _queue(rows: Sequence[Row], stride: int) -> QueueSeries:
    t_s, backlog = column(rows, "t_s"), np.nan_to_num(column(rows, "backlog_bytes"))
    dropped = np.diff(np.nan_to_num(column(rows, "drops")), prepend=0.0)
    if len(t_s):
        starts = np.arange(0, len(t_s), stride)
        t_s, backlog = t_s[starts], np.maximum.reduceat(backlog, starts)
        dropped = np.add.reduceat(dropped, starts)
    return QueueSeries(t_s, backlog, dropped)
