"""Judges the path that the agent measured against the path that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lab.errors import MeasurementError
from lab.qdisc import ETHERNET_HEADER_BYTES, burst_bytes
from lab.sweep import Point

RTT_TOLERANCE_S = 20e-6
"""On top of what small packets take to serialise at the rate: more is another path."""

RATE_TOLERANCE = 0.01
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
    wanted = 2 * burst_packets(point) + 50
    queue = point.queue
    room = int(queue["limit"]) // (1 if queue["kind"] == "pfifo" else packet)
    if point.knobs["recipe"] == "leaf":
        room = int(point.knobs["leaf_limit"])
    return max(1, min(wanted, room, max(_LEAST_TRAIN, int(point.rate_bps * _TRAIN_S / 8 / packet))))


def judge(point: Point, rtts_s: Sequence[float], train: Sequence[Sequence[int]]) -> MeasuredPath:
    """Return the path as measured. Raises MeasurementError where it is not the one asked for.

    rtts_s: idle RTTs, s. train: (number, arrival in ns) of full packets sent in one go.
    """
    disturbed = any(point.knobs[name] not in ("0%", "0s") for name in ("jitter", "reorder", "duplicate"))
    if not rtts_s:
        if point.knobs["loss"] == "0%":
            raise MeasurementError("the path answered no ping: it does not carry packets as built")
        return MeasuredPath(point.rtt_s, None)
    rtt_s = min(rtts_s)
    small = 2 * 60 * 8 / point.rate_bps
    if not disturbed and not -1e-6 <= rtt_s - point.rtt_s <= RTT_TOLERANCE_S + small:
        raise MeasurementError(
            f"the idle RTT is {rtt_s * 1e3:.6f} ms where {point.rtt_s * 1e3:.6f} ms was asked for"
        )
    rate_bps = None
    after_burst = [(number, ns) for number, ns in train if number >= burst_packets(point)]
    if not disturbed and len(after_burst) >= _LEAST_TRAIN:
        (first, first_ns), (last, last_ns) = after_burst[0], after_burst[-1]
        if last_ns > first_ns:
            wire_bits = (last - first) * (point.mtu_bytes + ETHERNET_HEADER_BYTES) * 8
            rate_bps = wire_bits / (last_ns - first_ns) * 1e9
            tolerance = RATE_TOLERANCE + 2 * burst_packets(point) / (last - first) * (burst_packets(point) > 3)
            if abs(rate_bps / point.rate_bps - 1) > tolerance:
                raise MeasurementError(
                    f"the path carries {rate_bps:.6g} bit/s where {point.rate_bps:.6g} bit/s was asked for"
                )
    return MeasuredPath(rtt_s, rate_bps)
