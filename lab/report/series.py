"""One point over time: what its samples and queue rows say, as arrays.

Goodput counts what the receiving application read (see `lab.metrics`). Bytes
in flight are (tcpi_unacked - tcpi_sacked - tcpi_lost + tcpi_retrans) segments,
as tcp_packets_in_flight() in include/net/tcp.h, times the sender's MSS.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.traffic import LASTING, REVERSE

MOST_SAMPLES = 400
"""Samples drawn of a flow; of more, every nth."""

MOST_FLOWS = 8
"""Flows drawn one by one; more are drawn as one, or as one of each congestion control."""

MOST_PROBES = 800
"""Packets of the probe that are drawn; of more the slowest of each group."""

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
    "ssthresh_bytes": lambda s: s["tcpi_snd_ssthresh"] * s["tcpi_snd_mss"],
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
    what the application had read. Times from the start of the load. kind: as in
    table flows; flows: how many it is; ended_s: when its last byte was read, None
    for one that did not end by itself.
    """

    name: str
    t_s: Floats
    columns: Mapping[str, Floats]
    read_t_s: Floats
    read_bytes: Floats
    cc: str = ""
    kind: str = LASTING
    flows: int = 1
    ended_s: float | None = None

    @property
    def began_s(self) -> float:
        """When the first byte was read, to a sample; infinity for a flow that never got one."""
        reading = np.flatnonzero(self.read_bytes > 0)
        return float(self.read_t_s[max(0, reading[0] - 1)]) if len(reading) else math.inf

    @property
    def last_s(self) -> float:
        """When it was there last: at its end, or at its last sample."""
        last = float(self.read_t_s[-1]) if len(self.read_t_s) else 0.0
        return last if self.ended_s is None else min(last, self.ended_s)

    def goodput_bps(self) -> Floats:
        """Return the goodput of each interval, at its end; the first is NaN."""
        rates = np.full(len(self.read_t_s), np.nan)
        spans = np.diff(self.read_t_s)
        np.divide(np.diff(self.read_bytes) * 8, spans, out=rates[1:], where=spans > 0)
        return rates

    def mean_goodput_bps(self, window_s: float) -> Floats:
        """Return the goodput over the last `window_s` of each instant, less at the start."""
        if not len(self.read_t_s):
            return np.zeros(0)
        since = np.maximum(self.read_t_s - window_s, self.read_t_s[0])
        before = np.interp(since, self.read_t_s, self.read_bytes)
        spans = self.read_t_s - since
        rates = np.full(len(spans), np.nan)
        np.divide((self.read_bytes - before) * 8, spans, out=rates, where=spans > 0)
        return rates


@dataclass(frozen=True)
class QueueSeries:
    """One bottleneck's queue. Arrays of shape (n,); drops: since the sample before; rate_bps: of its link."""

    name: str
    t_s: Floats
    backlog_bytes: Floats
    drops: Floats
    rate_bps: Floats


@dataclass(frozen=True)
class Probe:
    """The latency probe. Arrays of shape (n,): when sent, its one-way delay, how many were lost."""

    t_s: Floats
    delay_s: Floats
    lost: Floats


@dataclass(frozen=True)
class PointSeries:
    """One point. stride: of how many samples one is drawn; merged: flows drawn together, 0 for none.

    queues: of each bottleneck, the first first; begin_s: when the first data was
    sent; mixed: whether the flows have several congestion controls.
    """

    flows: tuple[FlowSeries, ...]
    queues: tuple[QueueSeries, ...]
    begin_s: float
    stride: int
    merged: int
    probe: Probe | None = None
    mixed: bool = False


def read(
    samples: Sequence[Row],
    queues: Sequence[Row],
    flows: Sequence[Row] = (),
    delays: Sequence[Row] = (),
    most_flows: int = MOST_FLOWS,
) -> PointSeries:
    """Return the series of one point from its rows.

    Of more than `most_flows` flows those of one congestion control and kind are drawn as one.
    """
    every = each_flow(samples, flows)
    longest = max((max(len(flow.t_s), len(flow.read_t_s)) for flow in every), default=0)
    stride = max(1, -(-longest // MOST_SAMPLES))
    mixed = len({flow.cc for flow in every}) > 1
    merged = len(every) if len(every) > most_flows else 0
    drawn = together(every, most_flows) if merged else every
    return PointSeries(
        flows=tuple(_thin(flow, stride) for flow in drawn),
        queues=_queues([row for row in queues if row["bottleneck"]], stride),
        begin_s=_first_data_s([row for row in samples if row["end"] == "sender"]),
        stride=stride,
        merged=merged,
        probe=_probe(delays),
        mixed=mixed,
    )


def each_flow(samples: Sequence[Row], flows: Sequence[Row] = ()) -> list[FlowSeries]:
    """Return every flow by itself. flows: rows of table flows: what a flow is for, when it ended."""
    numbers = sorted({row["flow"] for row in samples})
    by_end: dict[tuple[int, str], list[Row]] = {}
    for row in samples:
        by_end.setdefault((row["flow"], row["end"]), []).append(row)
    told = {row["flow"]: row for row in flows}
    controls = {
        number: str(next((row["cc"] for row in by_end.get((number, "sender"), []) if row.get("cc")), ""))
        for number in numbers
    }
    begin_s = _first_data_s([row for row in samples if row["end"] == "sender"])
    mixed = len(set(controls.values())) > 1
    found = []
    for number in numbers:
        row = told.get(number, {})
        kind = str(row.get("kind") or LASTING)
        words = ["flow", str(number), controls[number] if mixed else "", kind if kind != LASTING else ""]
        ended = row.get("finished_s")
        its = _flow(
            " ".join(word for word in words if word),
            by_end.get((number, "sender"), []),
            by_end.get((number, "receiver"), []),
        )
        ended_s = None if ended is None else begin_s + float(ended)
        found.append(replace(its, cc=controls[number], kind=kind, ended_s=ended_s))
    return found


def together(flows: Sequence[FlowSeries], most: int) -> list[FlowSeries]:
    """Return flows with those of one congestion control and kind as one, see `_merge`.

    Those that come and go first; those that last stay apart where they are few.
    """
    lasting = [flow for flow in flows if flow.kind in (LASTING, REVERSE)]
    apart = lasting if len(lasting) <= most else []
    groups: dict[tuple[str, str], list[FlowSeries]] = {}
    for flow in flows:
        if not any(flow is one for one in apart):
            groups.setdefault((flow.cc, flow.kind), []).append(flow)
    if len(groups) == 1 and not apart:
        return [_merge(flows, f"all {len(flows)} flows")]
    found = list(apart)
    for (cc, kind), members in groups.items():
        what = f"{cc} {kind}".strip() if kind != LASTING else cc
        found.append(_merge(members, f"{len(members)} {what} {'flow' if len(members) == 1 else 'flows'}"))
    return found


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


def _merge(flows: Sequence[FlowSeries], name: str) -> FlowSeries:
    """Return many flows as one: bytes add up, of RTTs it is the median, and thresholds have no sum."""
    t_s = np.unique(np.concatenate([flow.t_s for flow in flows]))
    read_t_s = np.unique(np.concatenate([flow.read_t_s for flow in flows]))
    read = sum(
        (np.interp(read_t_s, flow.read_t_s, flow.read_bytes) for flow in flows if len(flow.read_t_s)),
        np.zeros_like(read_t_s),
    )
    columns = {}
    for which in SENDER_COLUMNS:
        stacked = np.full((len(flows), len(t_s)), np.nan)
        for number, flow in enumerate(flows):
            stacked[number, np.searchsorted(t_s, flow.t_s)] = flow.columns[which]
        if which == "ssthresh_bytes":
            stacked[:] = np.nan
        if which == "retransmits":  # a flow that ended keeps its count
            stacked = np.fmax.accumulate(stacked, axis=1)
        columns[which] = _across(stacked, np.nanmedian if which == "srtt_s" else np.nansum)
    first = flows[0]
    return FlowSeries(name, t_s, columns, read_t_s, read, first.cc, first.kind, len(flows))


def _across(stacked: Floats, reduce: Callable[..., Any]) -> Floats:
    """Reduce over flows; NaN where no flow has a value, which numpy would warn of."""
    result = np.full(stacked.shape[1], np.nan)
    some = ~np.isnan(stacked).all(axis=0)
    result[some] = reduce(stacked[:, some], axis=0)
    return result


def _thin(flow: FlowSeries, stride: int) -> FlowSeries:
    if stride == 1:
        return flow
    return replace(
        flow,
        t_s=flow.t_s[::stride],
        columns={name: values[::stride] for name, values in flow.columns.items()},
        read_t_s=flow.read_t_s[::stride],
        read_bytes=flow.read_bytes[::stride],
    )


def _queues(rows: Sequence[Row], stride: int) -> tuple[QueueSeries, ...]:
    """Return the queue of each interface that is a bottleneck."""
    by_interface: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_interface.setdefault((row["node"], row["interface"]), []).append(row)
    return tuple(_queue(interface, its, stride) for (_, interface), its in sorted(by_interface.items()))


def _probe(rows: Sequence[Row]) -> Probe | None:
    """Return the probe of a point, None where it has none; of many packets the slowest of each group."""
    its = sorted((row for row in rows if row.get("kind") == "probe"), key=lambda row: row["t_s"])
    if not its:
        return None
    t_s, delay_s = column(its, "t_s"), column(its, "delay_s")
    starts = np.arange(0, len(t_s), max(1, -(-len(t_s) // MOST_PROBES)))
    lost = np.add.reduceat(np.isnan(delay_s).astype(np.float64), starts)
    return Probe(t_s[starts], np.fmax.reduceat(delay_s, starts), lost)


def _queue(name: str, rows: Sequence[Row], stride: int) -> QueueSeries:
    t_s, backlog = column(rows, "t_s"), np.nan_to_num(column(rows, "backlog_bytes"))
    rate = column(rows, "rate_bps")
    dropped = np.diff(np.nan_to_num(column(rows, "drops")), prepend=0.0)
    if len(t_s):
        starts = np.arange(0, len(t_s), stride)
        t_s, backlog, rate = t_s[starts], np.maximum.reduceat(backlog, starts), rate[starts]
        dropped = np.add.reduceat(dropped, starts)
    return QueueSeries(name, t_s, backlog, dropped, rate)
