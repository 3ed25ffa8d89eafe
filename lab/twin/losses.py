"""Random loss, told from that of a full queue; and the queue's size.

Pure functions of the senders' samples. A drop at a full queue comes at an RTT
that the queue has raised, one by chance at any. Times s, sizes bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Row = Mapping[str, Any]

BURST_PACKETS = 16
"""Packets that a host may hand over at once: what waits behind its own burst is no queue."""
NEAR_SHARE = 0.25
"""Of the rise of the RTT: up to here the queue counts as empty, and from the rest on as full."""
FULL_QUANTILE = 0.9
"""Of what was lost while there was a queue: at the RTT of nine tenths of it, at most, it was full."""
THIN_SEGS = 4
"""Of a smaller window often one segment alone is under way, and its acknowledgement waits for the
receiver's timer, up to 40 ms (TCP_DELACK_MIN, include/net/tcp.h): an RTT that no queue made."""
NOTICED_RTTS = 4
"""Round trips in which a drop is noticed and repaired."""
ACKNOWLEDGED_PACKETS = 2
"""Full packets that a receiver acknowledges at once: the RTT of the first has the second's time in it."""
_Z = 1.959963984540054
"""Quantile 0.975 of the normal distribution."""
_LOSS_STATE = 3
"""TCP_CA_Recovery, and TCP_CA_Loss above it: include/uapi/linux/tcp.h."""


class _Interval(NamedTuple):
    """Between two samples of a sender: segments sent, and sent again; RTTs over the base, s.

    high_s: the most within the round trips in which a drop is noticed; own_s: at its
    end; going: whether a recovery began before it and goes on; starting: whether there
    was no slow start threshold yet; thin: whether the window was so small that its
    acknowledgements waited for a timer.
    """

    sent: int
    again: int
    high_s: float
    own_s: float
    going: bool
    starting: bool
    thin: bool


def _intervals(rows: Sequence[Row], base_s: float) -> list[_Interval]:
    """Return the intervals of one sender."""
    known = [row for row in rows if row.get("tcpi_rtt") and row.get("tcpi_data_segs_out") is not None]
    rtts_s = [int(row["tcpi_rtt"]) / 1e6 for row in known]
    again = _lost(known, rtts_s)
    found = []
    for at in range(1, len(known)):
        first = _since(known, at - 1, NOTICED_RTTS * max(base_s, rtts_s[at]))
        found.append(
            _Interval(
                sent=_rise(known, at, "tcpi_data_segs_out"),
                again=again[at],
                high_s=max(rtts_s[first : at + 1]) - base_s,
                own_s=rtts_s[at] - base_s,
                going=int(known[at - 1].get("tcpi_ca_state") or 0) >= _LOSS_STATE,
                starting=known[at - 1].get("tcpi_snd_ssthresh") is None,
                thin=any(
                    (row.get("tcpi_snd_cwnd") or THIN_SEGS) < THIN_SEGS for row in known[first : at + 1]
                ),
            )
        )
    return found


def _lost(rows: Sequence[Row], rtts_s: Sequence[float]) -> list[int]:
    """Return the segments sent again up to each sample, since the one before, that were lost indeed.

    A receiver reports a segment that it had already (tcpi_dsack_dups; RFC 3708): it was
    not lost, but overtaken. The report comes a round trip later, and belongs to the first
    that it can.
    """
    again = [0] * len(rows)
    for at in range(1, len(rows)):
        again[at] = _rise(rows, at, "tcpi_total_retrans")
        spurious = _rise(rows, at, "tcpi_dsack_dups")
        for back in range(_since(rows, at, NOTICED_RTTS * rtts_s[at]), at + 1 if spurious else 0):
            taken = min(spurious, again[back])
            again[back], spurious = again[back] - taken, spurious - taken
    return again


def _since(rows: Sequence[Row], at: int, before_s: float) -> int:
    """Return the number of the first sample not earlier than so long before another."""
    first = at
    while first > 0 and float(rows[first - 1]["t_s"]) >= float(rows[at]["t_s"]) - before_s:
        first -= 1
    return first


def _rise(rows: Sequence[Row], at: int, name: str) -> int:
    return max(0, int(rows[at].get(name) or 0) - int(rows[at - 1].get(name) or 0))


class Losses(NamedTuple):
    """What was sent again, and when.

    lost, sent: segments sent again, and all, while the queue was empty. peak_s: rise of
    the smoothed RTT over the base that 1 % of the samples exceed. full_s: that up to which
    nine tenths were lost of what was lost while there was a queue; full_lost, full_sent:
    lost and sent at three quarters of it and more.
    """

    lost: int
    sent: int
    peak_s: float
    full_s: float
    full_lost: int
    full_sent: int

    @property
    def share(self) -> float:
        """Random loss: lost / sent; 0 where nothing was."""
        return self.lost / self.sent if self.sent else 0.0

    @property
    def bounds(self) -> tuple[float, float]:
        """Its 95 % interval, of counts that come by chance (Poisson).

        Byar's approximation (Breslow and Day, Statistical Methods in Cancer Research II,
        1987, section 2.3); without any loss up to 3 / sent (Hanley and Lippman-Hand, JAMA
        249(13), 1983).
        """
        if not self.sent:
            return 0.0, 1.0
        if not self.lost:
            return 0.0, min(1.0, 3 / self.sent)
        low = self.lost * (1 - 1 / (9 * self.lost) - _Z / (3 * math.sqrt(self.lost))) ** 3
        more = self.lost + 1
        high = more * (1 - 1 / (9 * more) + _Z / (3 * math.sqrt(more))) ** 3
        return low / self.sent, min(1.0, high / self.sent)

    @property
    def full(self) -> bool:
        """Whether the queue was full: more was lost there than random loss explains.

        More than the expected count and twice its standard deviation, and anything at all
        where there is no random loss.
        """
        expected = self.share * self.full_sent
        return self.full_lost > expected + 2 * math.sqrt(expected)


def losses(
    flows: Sequence[tuple[Sequence[Row], float]], rate_bps: float | None, packet_bytes: int, noise_s: float
) -> Losses:
    """Return what was sent again near the base RTT, and what where there was a queue.

    flows: each sender's samples in time, and its base RTT, s. Losses of a full queue come
    at the RTT that it makes: the highest at which segments were lost, but for a tenth of
    them, since a host that was held up makes an RTT that no queue made. The queue counts as
    empty where the smoothed RTT (tcpi_rtt) has not been further over the base, for the four
    round trips in which a drop is noticed, than a quarter of that rise, than a burst of 16
    packets takes at rate_bps, or than noise_s, the spread of the idle RTTs. What is sent
    again in a recovery belongs to the drop that began it. The losses that end slow start
    are its own, even if the queue came and went between two samples; what was sent before
    is not counted either, lest loss be counted only where it did not end slow start. Nor is
    what was sent out of a window of under four segments, whose RTTs say something else. A
    drop at a queue that short cannot be told from random loss.
    """
    each = [[one for one in _events(_intervals(rows, base_s)) if not one.thin] for rows, base_s in flows]
    burst_s = BURST_PACKETS * packet_bytes * 8 / rate_bps if rate_bps else 0.0
    floor_s = max(burst_s, noise_s)
    events = [event for intervals in each for event in intervals]
    raised = [(one.high_s, one.again) for one in events if one.high_s > floor_s]
    full_s = _weighted_quantile(raised, FULL_QUANTILE)
    peak_s = _quantile([one.own_s for intervals in each for one in intervals], 0.99)
    near_s = max(NEAR_SHARE * (full_s or peak_s), floor_s)
    empty = [one for one in events if one.high_s <= near_s and not one.starting]
    top_s = (1 - NEAR_SHARE) * full_s
    full = [one for one in events if one.high_s > near_s and one.high_s >= top_s]
    return Losses(
        lost=sum(one.again for one in empty),
        sent=sum(one.sent for one in empty),
        peak_s=max(0.0, peak_s),
        full_s=full_s,
        full_lost=sum(one.again for one in full),
        full_sent=sum(one.sent for one in full),
    )


def _events(intervals: Sequence[_Interval]) -> list[_Interval]:
    """Return the intervals with the rise of the RTT at the drop that each belongs to.

    starting: whether it comes before the end of the losses that ended slow start.
    """
    lossy = next((number for number, one in enumerate(intervals) if one.again), None)
    last = -1
    if lossy is not None and intervals[lossy].starting:
        last = lossy
        while last + 1 < len(intervals) and intervals[last + 1].going:
            last += 1
    found = []
    high_s = 0.0
    for number, one in enumerate(intervals):
        high_s = max(high_s, one.high_s) if one.going else one.high_s
        found.append(one._replace(high_s=high_s, starting=number <= last))
    return found


def _weighted_quantile(pairs: Sequence[tuple[float, int]], share: float) -> float:
    """Return the least value that so much of the weight does not exceed; 0 without any weight."""
    wanted = share * sum(weight for _, weight in pairs)
    reached = 0
    for value, weight in sorted(pairs):
        reached += weight
        if weight and reached >= wanted - 1e-9:
            return value
    return 0.0


def _quantile(values: Sequence[float], share: float) -> float:
    """Return the least value that so many values do not exceed; 0 of none."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)] if values else 0.0


class Queue(NamedTuple):
    """A queue, bytes; waited_bytes: what was seen to wait; sure: drops showed that it holds no more."""

    queue_bytes: float
    waited_bytes: float
    sure: bool


def queue(seen: Losses, rate_bps: float, base_s: float, packet_bytes: int) -> Queue:
    """Return the bottleneck's queue, as it counts bytes.

    What waited is rate x (RTT - base RTT) / 8, as the last byte of a queue waits for all
    before it, less two packets: the segment itself and the next one, for which its
    acknowledgement waits (RFC 1122, section 4.2.3.2). The RTT is that at which segments
    were lost, and then the queue holds no more. Without such losses it is the largest, the
    queue holds at least that, and since nothing was lost any that does gives the same:
    taken are twice that or one BDP, whichever is more. At least two packets.
    """
    rise_s = seen.full_s if seen.full else seen.peak_s
    waited = max(0.0, rate_bps * rise_s / 8 - ACKNOWLEDGED_PACKETS * packet_bytes)
    least = 2.0 * packet_bytes
    if seen.full:
        return Queue(max(waited, least), waited, True)
    return Queue(max(2 * waited, rate_bps * base_s / 8, least), waited, False)


def reordered(flows: Sequence[Sequence[Row]]) -> bool:
    """Return whether senders saw segments overtake others (tcpi_reord_seen; RFC 8985 has it from SACK)."""
    return any((rows[-1].get("tcpi_reord_seen") or 0) > 0 for rows in flows if rows)
