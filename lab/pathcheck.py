"""Judges the path that the agent measured against the path that was asked for."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab import layout, queues
from lab.combination import Point
from lab.errors import MeasurementError
from lab.plans.plan import Pair
from lab.qdisc import ETHERNET_HEADER_BYTES, burst_bytes

CLOCK_STEP_S = 1e-6
RTT_TOLERANCE_S = 20e-6
"""An idle path adds next to nothing to its delays: more is another path."""

RATE_TOLERANCE = 0.02

REAL_RTT_TOLERANCE_S, REAL_RTT_TOLERANCE = 1e-3, 0.02
REAL_RATE_TOLERANCE = 0.1
"""On the real clock a packet waits for a CPU, and a train for a timer: what an idle machine adds."""
REAL_TRAIN_S, _LEAST_REAL_TRAIN_S = 0.02, 0.01
"""How long a train lasts there where the queue has room for it, and at least: a process may hold a CPU
for some milliseconds, and what waits meanwhile arrives at once."""
_SHAPED_TOLERANCE = 0.25
"""Of an emulator's rate, told by trains that its queue may make short."""
_DOUBT = (
    ", though it is set up as asked: this machine is too slow for it, or busy otherwise; run it alone,"
    " at a lower rate, or with --engine virtual"
)
_TRAIN_S = 2.0
_LEAST_TRAIN = 4
_LEAST_FASTER = 2
"""Times the bottleneck's rate: a sender that is slower measures itself."""
_CAKE_OVERHEAD = 4
"""cake counts the memory of a packet, which is some times its length."""


@dataclass(frozen=True)
class MeasuredPath:
    """rtt_s: least of the idle pings; rate_bps: of a train of full packets, None where not measurable."""

    rtt_s: float
    rate_bps: float | None


def burst_packets(point: Point) -> int:
    """Return how many full packets the bottleneck's shaper lets through at once."""
    packet = point.mtu_bytes + ETHERNET_HEADER_BYTES
    return burst_bytes(point.rate_bps, point.mtu_bytes, point.offloads) // packet + 1


def train_packets(point: Point) -> int:
    """Return the length of the train: past the shaper's burst, within the queue, within two seconds."""
    packet = point.mtu_bytes + ETHERNET_HEADER_BYTES
    wanted = 6 * burst_packets(point) + 64
    if point.on_real_clock:
        wanted = max(wanted, int(point.rate_bps * REAL_TRAIN_S / 8 / packet))
    room = _room_packets(point)
    if point.knobs["recipe"] == "leaf":
        room = int(point.knobs["leaf_limit"])
    return max(1, min(wanted, room, max(_LEAST_TRAIN, int(point.rate_bps * _TRAIN_S / 8 / packet))))


def _room_packets(point: Point) -> int:
    """Return how many packets at once the queue takes without dropping one."""
    queue = point.queue
    kind, limit = str(queue["kind"]), int(queue["limit"])
    packet = point.mtu_bytes + ETHERNET_HEADER_BYTES
    if kind == "red":
        limit = int(limit * queues.RED_LEAST_SHARE)
    if kind == "sfq":
        return min(limit, queues.SFQ_MOST_PACKETS)
    if kind == "cake":
        limit //= _CAKE_OVERHEAD
    return limit // (1 if queues.LIMIT_UNIT[kind] == "packets" else packet)


def judge_all(point: Point, checks: Sequence[Mapping[str, Any]]) -> MeasuredPath:
    """Return the network as measured: mean RTT of its pairs, the rate of its bottleneck.

    checks: what the agent measured of each pair, in their order.
    """
    pairs = layout.plan(point).pairs
    measured = [judge(point, pair.rtt_s, **check) for pair, check in zip(pairs, checks, strict=True)]
    rates = [one.rate_bps for one in measured if one.rate_bps is not None]
    return MeasuredPath(sum(one.rtt_s for one in measured) / len(measured), min(rates, default=None))


def judge(
    point: Point,
    wanted_rtt_s: float,
    *,
    rtts_s: Sequence[float],
    train: Sequence[Sequence[int]] | None,
    train_sent_ns: int,
    more_trains: Sequence[tuple[Sequence[Sequence[int]], int]] = (),
) -> MeasuredPath:
    """Return the path of a pair as measured. Raises MeasurementError where it is not the one asked for.

    rtts_s: idle RTTs, s. train: (number, arrival in ns) of full packets sent in
    one go, within train_sent_ns; None where no train was sent. more_trains: the
    same of others; the median of their rates counts.
    """
    disturbed = any(point.knobs[name] not in ("0%", "0s") for name in ("jitter", "reorder", "duplicate"))
    real = point.on_real_clock
    doubt = _DOUBT if real else ""
    rtt_tolerance_s = REAL_RTT_TOLERANCE_S + REAL_RTT_TOLERANCE * wanted_rtt_s if real else RTT_TOLERANCE_S
    rate_tolerance = REAL_RATE_TOLERANCE if real else RATE_TOLERANCE
    if not rtts_s:
        if point.knobs["loss"] == "0%":
            raise MeasurementError("the path answered no ping: it does not carry packets as built")
        return MeasuredPath(wanted_rtt_s, None)
    rtt_s = min(rtts_s)
    least_s = -rtt_tolerance_s if real else -CLOCK_STEP_S
    if not disturbed and not least_s <= rtt_s - wanted_rtt_s <= rtt_tolerance_s:
        raise MeasurementError(
            f"the idle RTT is {rtt_s * 1e3:.6f} ms where {wanted_rtt_s * 1e3:.6f} ms was asked for{doubt}"
        )
    if disturbed or train is None:
        return MeasuredPath(rtt_s, None)
    rates = [_train_rate_bps(point, *one) for one in ((train, train_sent_ns), *more_trains)]
    known = [rate for rate in rates if rate is not None]
    rate_bps, wanted_bps = statistics.median(known) if known else None, point.rate_bps
    if rate_bps is not None and abs(rate_bps / wanted_bps - 1) > rate_tolerance:
        raise MeasurementError(
            f"the path carries {rate_bps:.6g} bit/s where {wanted_bps:.6g} bit/s was asked for{doubt}"
        )
    return MeasuredPath(rtt_s, rate_bps)


def judge_shaped(
    point: Point, rate_bps: float | None, train: Sequence[Sequence[int]] | None, train_sent_ns: int
) -> float | None:
    """Return the rate that trains told of links on an emulator; train: one of them.

    Raises MeasurementError where it is not the one asked for.
    """
    disturbed = any(
        point.knobs[name] not in ("0%", "0s") for name in ("jitter", "reorder", "duplicate", "loss")
    )
    if rate_bps is None or not train or disturbed or point.queue["kind"] in (*queues.AQM, "policer"):
        return rate_bps
    packet_bits = (point.mtu_bytes + ETHERNET_HEADER_BYTES) * 8
    handed_over_bps = len(train) * packet_bits / max(train_sent_ns, 1) * 1e9
    if handed_over_bps < _LEAST_FASTER * point.rate_bps:
        return rate_bps  # the sender was hardly faster, and may have measured itself
    if abs(rate_bps / point.rate_bps - 1) > _SHAPED_TOLERANCE:
        raise MeasurementError(
            f"the path carries {rate_bps:.6g} bit/s where {point.rate_bps:.6g} bit/s was asked for; the"
            " emulator's interfaces in the inventory are the one toward the sender, then the one toward the"
            " receiver"
        )
    return rate_bps


def _train_rate_bps(point: Point, train: Sequence[Sequence[int]], train_sent_ns: int) -> float | None:
    """Return the rate of one train. Raises MeasurementError where the path lost packets of it unasked."""
    if point.queue["kind"] in queues.AQM:  # it may drop early, and what it drops takes no time of the link
        train = [(number, ns) for number, (_sent, ns) in enumerate(train)]
    elif point.knobs["loss"] == "0%" and len(train) < train_packets(point):
        raise MeasurementError(
            f"the path lost {train_packets(point) - len(train)} of {train_packets(point)} packets"
            " sent in one go, and no loss was asked for"
        )
    return train_rate_bps(point, train, train_sent_ns)


def can_fill(point: Point, pair: Pair) -> bool:
    """Return whether a pair's sender hands packets over much faster than the bottleneck takes them."""
    own_bps = layout.plan(point).end(f"{pair.sender}-eth0").egress.get("rate_bps")
    return own_bps is None or own_bps >= _LEAST_FASTER * point.rate_bps


def train_rate_bps(point: Point, train: Sequence[Sequence[int]], train_sent_ns: int) -> float | None:
    """Return the rate of the train's second half, bit/s; None where it says nothing of the link.

    Packets of one instant came as one (an offload, a burst), and a token bucket
    makes the next wait for what they cost: their first number dates them.
    """
    packet_bits = (point.mtu_bytes + ETHERNET_HEADER_BYTES) * 8
    planned = train_packets(point)
    if planned * packet_bits / max(train_sent_ns, 1) * 1e9 < _LEAST_FASTER * point.rate_bps:
        return None  # the sender was hardly faster than the link
    if point.on_real_clock and planned * packet_bits / point.rate_bps < _LEAST_REAL_TRAIN_S:
        return None
    if point.queue["kind"] == "policer":
        return None  # what its bucket lets through comes at the rate before it
    first_at: dict[int, int] = {}
    for number, ns in train:
        first_at.setdefault(ns, number)
    instants = sorted(ns for ns, number in first_at.items() if number >= planned // 2)
    if planned // 2 < 2 * burst_packets(point) or len(instants) < _LEAST_TRAIN:
        return None
    first_ns, last_ns = instants[0], instants[-1]
    return (first_at[last_ns] - first_at[first_ns]) * packet_bits / (last_ns - first_ns) * 1e9
