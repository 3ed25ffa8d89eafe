"""What a buffer costs: memory of one connection and of many, and delay at the bottleneck. Pure arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from lab.advise import inverse
from lab.advise.ask import Ask, Case
from lab.model.path import payload_share
from lab.model.predict import predict
from lab.setting import queue_bytes, setting

MANY = 1000
PAGE_BYTES = 4096
TCP_MEM_SHARE = 0.0937
"""Part of a host's memory that tcp_mem[2] is by itself: tcp_init_mem(), net/ipv4/tcp.c."""


@dataclass(frozen=True)
class Delay:
    """Delays above the base RTT, s.

    full_queue_s: the bottleneck's queue filled to its limit; standing_s: what a
    window larger than the path keeps in that queue all the time.
    """

    full_queue_s: float
    standing_s: float


def tcp_mem_pages(size_bytes: int, connections: int = MANY) -> tuple[int, int, int]:
    """Return tcp_mem, in pages, that lets so many connections have their whole buffer.

    In the kernel's own proportions: the first is three quarters of the second,
    the third twice the first (tcp_init_mem()).
    """
    most = math.ceil(size_bytes * connections / PAGE_BYTES)
    low = math.ceil(most / 2)
    return low, math.ceil(low * 4 / 3), 2 * low


def host_memory_bytes(size_bytes: int, connections: int = MANY) -> float:
    """Return the memory of a host whose own tcp_mem would allow that."""
    return size_bytes * connections / TCP_MEM_SHARE


def delay(ask: Ask, case: Case, rmem_bytes: int, wmem_bytes: int) -> Delay:
    """Return what buffers of these sizes can put into the bottleneck's queue."""
    point = ask.point(case)
    model = setting(point, case.release)
    for which, size in (("rmem", rmem_bytes), ("wmem", wmem_bytes)):
        model = inverse.with_buffer(model, which, size)
    queue = queue_bytes(point)
    made = predict(replace(model, duration_s=60.0))
    in_flight = ask.flows * min(made.window_bytes, made.send_window_bytes) / payload_share(ask.mtu_bytes)
    standing = min(queue, max(0.0, in_flight - ask.bdp_bytes))
    return Delay(queue * 8 / ask.rate_bps, standing * 8 / ask.rate_bps)


def flows_needed(goal_bps: float, rtt_s: float) -> int:
    """Return how many flows it takes where each has at most TCP's largest window."""
    return math.ceil(goal_bps * rtt_s / 8 / inverse.MOST_WINDOW_BYTES)
