"""What did limit each flow, from its records: interval by interval, and summed up.

The kernel accounts for part of it: of the time in which a sender had data under
way (tcpi_busy_time) it says how long the receive window (tcpi_rwnd_limited) and
the send buffer (tcpi_sndbuf_limited) kept it from sending; the rest it was the
congestion window's turn (tcp_chrono_start(), net/ipv4/tcp_output.c). The rest is
told apart here:

- link: the bottleneck was busy for at least a round trip around the interval.
  That overrules all else: while it is busy, no window gives more.
- slow start: cwnd under ssthresh; of BBR, the gain of its start.
- receive window and send buffer also where the kernel did not count them: while
  cwnd has room and they have none.
- loss or queue: the window was cut last by a loss, and the bottleneck's queue
  dropped then, or it did not.
- HyStart: never cut, and not in slow start any more.
- pacing: what a sender that paces by a model of the path leaves unused.
- application: the sender had nothing under way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab.model import limits
from lab.model.limits import (
    APPLICATION,
    HYSTART,
    LIMITS,
    LINK,
    LOSS,
    PACING,
    QUEUE,
    RECEIVE_WINDOW,
    SEND_BUFFER,
    SLOW_START,
)
from lab.model.paced import BBR_FILTER_ROUNDS
from lab.model.path import BUSY_SHARE

LEAST_PACKETS = 100
"""That a busy bottleneck sends in the stretch over which it is judged."""
LOSSY_SHARE = 0.1
"""Of what BBR sends: from here loss is what holds it, see `lab.model.paced.delivered_share`."""
_STARTUP_GAIN = 700
"""256ths; bbr_high_gain is 739, and no other gain comes near."""
_WINDOW_SHARE, _PACED_SHARE = 0.5, 0.1
"""Of the busy time in a stretch: from here a window that the kernel names has the rest of it too."""
_FULL = 0.9
"""Of a window: from here it counts as full in a sample."""
_WOKEN = 2 / 3
"""Of a send buffer: what still waits in it when its writer is woken (see `lab.model.sendbuf`)."""
_NOTICED = 4
"""Stretches in which a drop is noticed and repaired."""
_SHORTEST_TICK_S, _LONGEST_TICK_S = 1e-5, 1e-2
"""Of a kernel's clock: HZ is 100 to 1000; records keep microseconds."""
_RECOVERY = 3
"""TCP_CA_Recovery, include/uapi/linux/tcp.h."""

Floats = NDArray[np.float64]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Verdict:
    """What limited a point. shares: of the transfer, by limit, those that are not 0, adding up to 1.

    intervals: rows of the table `limits`, without their point.
    """

    limit: str
    shares: Mapping[str, float]
    steady_limit: str
    intervals: list[dict[str, Any]]


class Way(NamedTuple):
    """A flow's way: its base RTT, s, and the interfaces under study that its data cross."""

    rtt_s: float
    bottlenecks: tuple[str, ...]


@dataclass(frozen=True)
class Load:
    """What the records are judged against. Times from the start of the recording, s.

    rate_bps, rtt_s: of every flow, but for the RTTs of `ways`, by flow. Without
    ways all queue rows are one bottleneck's. offered_bytes: what the bottleneck
    could have sent by each instant; None for rate_bps throughout.
    """

    rate_bps: float
    rtt_s: float
    packet_bytes: int
    begin_s: float
    steady_s: float
    end_s: float
    ways: Mapping[int, Way] = field(default_factory=dict)
    offered_bytes: Callable[[Floats], Floats] | None = None


def judge(samples: Sequence[Row], queues: Sequence[Row], load: Load) -> Verdict:
    """Return the verdict on a point. queues: rows of the bottleneck alone."""
    senders: dict[int, list[Row]] = {}
    for row in samples:
        if row["end"] == "sender" and "tcpi_busy_time" in row:
            senders.setdefault(row["flow"], []).append(row)
    crossed: dict[tuple[tuple[str, ...], float], _Bottlenecks] = {}
    intervals: list[dict[str, Any]] = []
    whole, steady = dict.fromkeys(LIMITS, 0.0), dict.fromkeys(LIMITS, 0.0)
    for flow, rows in sorted(senders.items()):
        way = load.ways.get(flow, Way(load.rtt_s, ()))
        stretch_s = max(way.rtt_s, LEAST_PACKETS * load.packet_bytes * 8 / load.rate_bps)
        key = (way.bottlenecks, stretch_s)
        if key not in crossed:
            crossed[key] = _Bottlenecks(queues, way.bottlenecks, load, stretch_s)
        busy = crossed[key]
        for one in _flow(rows, busy, stretch_s, load.begin_s, load.end_s):
            intervals.append({"flow": flow, **one})
            for limit in LIMITS:
                whole[limit] += one[f"{limit}_s"]
                if one["t_s"] > load.steady_s:
                    steady[limit] += one[f"{limit}_s"]
    total = sum(whole.values())
    shares = {limit: spent / total for limit, spent in whole.items() if spent > 0} if total else {}
    return Verdict(limits.dominant(whole), shares, limits.dominant(steady), intervals)


class _Bottlenecks:
    """The bottlenecks on a flow's way: busy where one is, dropping where one does."""

    def __init__(self, queues: Sequence[Row], names: Sequence[str], load: Load, stretch_s: float) -> None:
        each = [[row for row in queues if row["interface"] == name] for name in names] or [list(queues)]
        self._each = [_Bottleneck(rows, load, stretch_s) for rows in each]

    def busy(self, from_s: float, to_s: float) -> bool:
        """Return whether one was busy in the middle of an interval."""
        return any(one.busy(from_s, to_s) for one in self._each)

    def dropped(self, from_s: float, to_s: float) -> bool:
        """Return whether a queue dropped between two instants."""
        return any(one.dropped(from_s, to_s) for one in self._each)


class _Bottleneck:
    """When one bottleneck was busy, and when its queue dropped."""

    def __init__(self, queues: Sequence[Row], load: Load, stretch_s: float) -> None:
        self.t_s = _column(queues, "t_s")
        sent, self.drops = _column(queues, "bytes"), _column(queues, "drops")
        self._busy = np.zeros(max(len(self.t_s) - 1, 0), dtype=bool)
        if len(self.t_s) < 2:
            return
        could = load.offered_bytes(self.t_s) if load.offered_bytes else self.t_s * load.rate_bps / 8
        ends = np.searchsorted(self.t_s, self.t_s + stretch_s - 1e-9)
        for start, end in enumerate(np.minimum(ends, len(self.t_s) - 1)):
            offered = could[end] - could[start]
            if offered > 0 and sent[end] - sent[start] >= BUSY_SHARE * offered:
                self._busy[start:end] = True

    def busy(self, from_s: float, to_s: float) -> bool:
        """Return whether the bottleneck was busy in the middle of an interval."""
        at = int(np.searchsorted(self.t_s, (from_s + to_s) / 2)) - 1
        return 0 <= at < len(self._busy) and bool(self._busy[at])

    def dropped(self, from_s: float, to_s: float) -> bool:
        """Return whether its queue dropped between two instants."""
        low, high = np.interp((from_s, to_s), self.t_s, self.drops) if len(self.t_s) else (0.0, 0.0)
        return bool(high > low)


def _column(rows: Sequence[Row], name: str) -> Floats:
    return np.array([row.get(name) or 0 for row in rows], dtype=np.float64)


def _flow(
    rows: Sequence[Row], busy: _Bottlenecks, stretch_s: float, begin_s: float, end_s: float
) -> list[dict[str, Any]]:
    """Return the intervals of one flow with the seconds of each limit."""
    sender = _Sender(rows, stretch_s)
    idle_s = _idle_s(sender, begin_s, end_s)
    found: list[dict[str, Any]] = []
    cause = _Cause(busy, stretch_s)
    for at in range(1, len(rows)):
        before, row = rows[at - 1], rows[at]
        from_s, to_s = max(before["t_s"], begin_s), min(row["t_s"], end_s)
        span_s = to_s - from_s
        if span_s <= 0:
            continue
        cut_by = cause.after(before, row)
        one = dict.fromkeys((f"{limit}_s" for limit in LIMITS), 0.0)
        if busy.busy(from_s, to_s):
            one[f"{LINK}_s"] = span_s
        else:
            # the counters go in ticks of the kernel's clock, and may reach over the interval that is cut out
            idle = min(span_s, float(idle_s[at] - idle_s[at - 1]))
            window, buffer = sender.counted(at - 1, at)[1:]
            window = min(span_s - idle, window)
            buffer = min(span_s - idle - window, buffer)
            one[f"{RECEIVE_WINDOW}_s"], one[f"{SEND_BUFFER}_s"] = window, buffer
            one[f"{APPLICATION}_s"] = idle
            limit = sender.window(at) or _congestion(row, cut_by, cause.dropping(row))
            one[f"{limit}_s"] += span_s - idle - window - buffer
        found.append({"t_s": to_s, "span_s": span_s, **one})
    return found


class _Sender:
    """One sender's samples: what its kernel counted, and which window had no room left."""

    def __init__(self, rows: Sequence[Row], stretch_s: float) -> None:
        self.t_s = _column(rows, "t_s")
        self._counted = [
            _column(rows, f"tcpi_{name}") / 1e6 for name in ("busy_time", "rwnd_limited", "sndbuf_limited")
        ]
        self.busy_s = self._counted[0]
        self.paced = any(row.get("bbr_pacing_gain") is not None for row in rows)
        span_s = stretch_s * (BBR_FILTER_ROUNDS if self.paced else 1)
        starts = np.searchsorted(self.t_s, self.t_s - span_s - 1e-9)
        self._starts = np.minimum(starts, np.maximum(np.arange(len(rows)) - 1, 0))
        mss = _column(rows, "tcpi_snd_mss")
        self._flying = (
            _column(rows, "tcpi_unacked")
            - _column(rows, "tcpi_sacked")
            - _column(rows, "tcpi_lost")
            + _column(rows, "tcpi_retrans")
        )
        self._cwnd = _column(rows, "tcpi_snd_cwnd")
        self._offered = _column(rows, "tcpi_snd_wnd") / np.maximum(mss, 1)
        self._queued, self._sndbuf = _column(rows, "skmem_wmem_queued"), _column(rows, "skmem_sndbuf")
        self._unsent = _column(rows, "tcpi_notsent_bytes")

    def counted(self, start: int, end: int) -> list[float]:
        """Return the seconds between two samples: under way, limited by receive window, by send buffer."""
        return [max(0.0, float(values[end] - values[start])) for values in self._counted]

    def window(self, at: int) -> str | None:
        """Return the window that bound in the stretch before a sample, None where cwnd may have.

        A window that binds once a round trip lets a burst out each time, and
        while that goes the kernel counts no limit: what binds is still that
        window. A sender that paces takes its rate from what was delivered in
        its filter, so a window that bound in there sets the pace. And where cwnd
        had room all the time without the kernel naming a window, what is full
        tells.
        """
        start = int(self._starts[at])
        under_way, window, buffer = self.counted(start, at)
        most, limit = max((window, RECEIVE_WINDOW), (buffer, SEND_BUFFER))
        if under_way > 0 and most >= (_PACED_SHARE if self.paced else _WINDOW_SHARE) * under_way:
            return limit
        stretch = slice(start, at + 1)
        filled = float(self._queued[stretch].max()) >= _WOKEN * float(self._sndbuf[at])
        if self.paced:  # its cwnd has room anyway: what tells is that it ran out of data that the buffer held
            return SEND_BUFFER if filled and float(self._unsent[stretch].min()) == 0 else None
        flying = float(self._flying[stretch].max())
        if flying >= _FULL * float(self._cwnd[stretch].min()):
            return None
        if flying + 1 >= _FULL * float(self._offered[stretch].max()):
            return RECEIVE_WINDOW
        return SEND_BUFFER if filled else None


def _idle_s(sender: _Sender, begin_s: float, end_s: float) -> Floats:
    """Return for how long of the load a sender had nothing under way, up to each sample; never falling.

    The kernel counts in ticks of its clock (tcp_chrono_set(), net/ipv4/tcp_output.c):
    what is missing within one tick is not idleness.
    """
    if not len(sender.t_s):
        return sender.t_s
    first = int(np.searchsorted(sender.t_s, begin_s, side="right")) - 1
    busy_s = sender.busy_s - (sender.busy_s[first] if first >= 0 else 0.0)
    tick_s = float(np.gcd.reduce(np.rint(sender.busy_s * 1e6).astype(np.int64))) / 1e6
    tick_s = min(max(tick_s, _SHORTEST_TICK_S), _LONGEST_TICK_S)
    missing = np.minimum(sender.t_s, end_s) - begin_s - busy_s - tick_s
    rising: Floats = np.maximum.accumulate(np.maximum(missing, 0.0))
    return rising


class _Cause:
    """What cut a congestion window last."""

    def __init__(self, busy: _Bottlenecks, stretch_s: float) -> None:
        self._busy, self._stretch_s = busy, stretch_s
        self._cause, self._again = HYSTART, 0

    def after(self, before: Row, row: Row) -> str:
        """Return the cause as of a sample, given the sample before it."""
        again = row["tcpi_total_retrans"]
        if again > self._again or (row.get("tcpi_lost") or 0) > 0:
            self._again = again
            if self._busy.dropped(before["t_s"] - _NOTICED * self._stretch_s, row["t_s"]):
                self._cause = QUEUE
            elif self._cause == HYSTART or before.get("tcpi_ca_state", 0) < _RECOVERY:
                self._cause = LOSS
        return self._cause

    def dropping(self, row: Row) -> bool:
        """Return whether the queue dropped within what a paced sender remembers."""
        return self._busy.dropped(row["t_s"] - BBR_FILTER_ROUNDS * self._stretch_s, row["t_s"])


def _congestion(row: Row, cause: str, dropping: bool) -> str:
    """Return which limit a congestion window is, at a sample."""
    gain = row.get("bbr_pacing_gain")
    if gain is not None:
        if gain > _STARTUP_GAIN:
            return SLOW_START
        if dropping:
            return QUEUE
        sent = row.get("tcpi_bytes_sent") or 0
        lossy = sent and (row.get("tcpi_bytes_retrans") or 0) >= LOSSY_SHARE * sent
        return cause if lossy and cause != HYSTART else PACING
    ssthresh = row.get("tcpi_snd_ssthresh")
    if ssthresh is None or row["tcpi_snd_cwnd"] < ssthresh:
        return SLOW_START
    return cause
