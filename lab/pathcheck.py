"""Judges the path that the agent measured against the path that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lab.errors import MeasurementError
from lab.qdisc import ETHERNET_HEADER_BYTES, burst_bytes
from lab.sweep import Point

CLOCK_STEP_S = 1e-6
RTT_TOLERANCE_S = 20e-6
"""An idle path adds next to nothing to its delays: more is another path."""

RATE_TOLERANCE = 0.02
_TRAIN_S = 2.0
_LEAST_TRAIN = 4


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
    queue = point.queue
    room = int(queue["limit"]) // (1 if queue["kind"] == "pfifo" else packet)
    if point.knobs["recipe"] == "leaf":
        room = int(point.knobs["leaf_limit"])
    return max(1, min(wanted, room, max(_LEAST_TRAIN, int(point.rate_bps * _TRAIN_S / 8 / packet))))


def judge(
    point: Point, rtts_s: Sequence[float], train: Sequence[Sequence[int]], train_sent_ns: int
) -> MeasuredPath:
    """Return the path as measured. Raises MeasurementError where it is not the one asked for.

    rtts_s: idle RTTs, s. train: (number, arrival in ns) of full packets sent in
    one go, within train_sent_ns.
    """
    disturbed = any(point.knobs[name] not in ("0%", "0s") for name in ("jitter", "reorder", "duplicate"))
    if not rtts_s:
        if point.knobs["loss"] == "0%":
            raise MeasurementError("the path answered no ping: it does not carry packets as built")
        return MeasuredPath(point.rtt_s, None)
    rtt_s = min(rtts_s)
    if not disturbed and not -CLOCK_STEP_S <= rtt_s - point.rtt_s <= RTT_TOLERANCE_S:
        raise MeasurementError(
            f"the idle RTT is {rtt_s * 1e3:.6f} ms where {point.rtt_s * 1e3:.6f} ms was asked for"
        )
    if disturbed:
        return MeasuredPath(rtt_s, None)
    if point.knobs["loss"] == "0%" and len(train) < train_packets(point):
        raise MeasurementError(
            f"the path lost {train_packets(point) - len(train)} of {train_packets(point)} packets"
            " sent in one go, and no loss was asked for"
        )
    rate_bps = train_rate_bps(point, train, train_sent_ns)
    if rate_bps is not None and abs(rate_bps / point.rate_bps - 1) > RATE_TOLERANCE:
        raise MeasurementError(
            f"the path carries {rate_bps:.6g} bit/s where {point.rate_bps:.6g} bit/s was asked for"
        )
    return MeasuredPath(rtt_s, rate_bps)


def train_rate_bps(point: Point, train: Sequence[Sequence[int]], train_sent_ns: int) -> float | None:
    """Return the rate of the train's second half, bit/s; None where it says nothing of the link.

    Packets of one instant came as one (an offload, a burst), and a token bucket
    makes the next wait for what they cost: their first number dates them.
    """
    packet_bits = (point.mtu_bytes + ETHERNET_HEADER_BYTES) * 8
    planned = train_packets(point)
    if planned * packet_bits / max(train_sent_ns, 1) * 1e9 < 2 * point.rate_bps:
        return None  # the sender was hardly faster than the link
    first_at: dict[int, int] = {}
    for number, ns in train:
        first_at.setdefault(ns, number)
    instants = sorted(ns for ns, number in first_at.items() if number >= planned // 2)
    if planned // 2 < 2 * burst_packets(point) or len(instants) < _LEAST_TRAIN:
        return None
    first_ns, last_ns = instants[0], instants[-1]
    return (first_at[last_ns] - first_at[first_ns]) * packet_bits / (last_ns - first_ns) * 1e9
