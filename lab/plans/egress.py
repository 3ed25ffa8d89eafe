"""What leaves an interface, put together: shapers, queues and delay lines of every shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.plans.plan import Egress
from lab.qdisc import UNLIMITED_PACKETS, burst_bytes

Queue = Mapping[str, Any]


@dataclass(frozen=True)
class Wire:
    """What all links of a network share."""

    mtu_bytes: int = 1500
    offloads: bool = False

    def shaper(self, rate_bps: float | None, queue: Queue | None = None) -> Egress:
        """Return a rate with a queue before it; None leaves the link unshaped."""
        if not rate_bps:
            return {"queue": queue} if queue else {}
        egress: dict[str, Any] = {
            "rate_bps": int(rate_bps),
            "mtu_bytes": self.mtu_bytes,
            "burst_bytes": burst_bytes(rate_bps, self.mtu_bytes, self.offloads),
        }
        if queue:
            egress["queue"] = queue
        if self.offloads:
            egress["offloads"] = True
        return egress

    def access(self, rate_bps: float | None) -> Egress:
        """Return a host's own interface: a rate, and a queue that holds whatever the host hands over."""
        return self.shaper(rate_bps, {"kind": "pfifo", "limit": UNLIMITED_PACKETS}) if rate_bps else {}


def each(value: float | str | Sequence[float] | None, count: int) -> list[float | None]:
    """Return one value for each of `count` pairs: a list is gone through again and again.

    Mininet's command line has no lists: there they are written with + between them.
    """
    if isinstance(value, str):
        value = [float(part) for part in value.split("+")]
    if value is None or isinstance(value, int | float):
        value = [value]  # type: ignore[list-item]
    return [value[number % len(value)] for number in range(count)]


def queue_of(queue: Queue | str | None) -> Queue | None:
    """Return a queue; Mininet's command line writes it KIND:LIMIT."""
    if not isinstance(queue, str):
        return queue
    kind, _, limit = queue.partition(":")
    return {"kind": kind, "limit": int(float(limit))}


def halves(rtt_s: float) -> tuple[float, float]:
    """Return the delays out and back of an RTT, in whole microseconds as tc sets them, s."""
    rtt_us = round(rtt_s * 1e6)
    return (rtt_us - rtt_us // 2) / 1e6, rtt_us // 2 / 1e6
