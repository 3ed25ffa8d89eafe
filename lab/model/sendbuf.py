"""The send buffer: what it keeps in flight, by how it was set and who writes into it.

Functions are those of Linux 6.12; 6.1 has the same rules.
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache
from typing import NamedTuple

from lab.model.controls import control
from lab.model.inputs import Release, Setting
from lab.model.path import BUSY_SHARE, access_bps, mss_bytes, packet_bytes
from lab.qdisc import burst_bytes

LEAST_SNDBUF_BYTES = 4608
"""SOCK_MIN_SNDBUF, include/net/sock.h, 64 bit."""

_OVERHEAD_BYTES = ((Release(6, 3), 832), (Release(0, 0), 768))
"""Memory of a segment in the send buffer beyond its payload, by the first release that has
it (measured: skmem_wmem_queued against tcpi_unacked on 6.1 and 6.12)."""

LARGEST_SKB_BYTES = 65535 - 320
"""Most that TCP puts into one segment: gso_max_size less MAX_TCP_HEADER, tcp_xmit_size_goal()."""

_SIMULATED_BYTES = 2**21
_SIMULATED_ROUND_TRIPS = 24
_SIMULATED_CHUNKS = 12_000
_CHUNKS_HELD = 3
_SETTLED = 8


class Flight(NamedTuple):
    """What a send buffer keeps in flight: payload on average over a round trip, and the largest burst."""

    mean_bytes: int
    burst_bytes: int


def overhead_bytes(setting: Setting) -> int:
    """Return the memory that a segment takes beyond its payload."""
    return next(size for since, size in _OVERHEAD_BYTES if setting.release >= since)


def sndbuf_bytes(setting: Setting) -> int:
    """Return the size that the send buffer reaches.

    SO_SNDBUF is cut to net.core.wmem_max, doubled and locked (sk_setsockopt(),
    net/core/sock.c). Else it starts at tcp_wmem[1] and follows the congestion
    window, twice as many segments as cwnd and at that each with room for its
    headers, up to tcp_wmem[2] (tcp_sndbuf_expand(), net/ipv4/tcp_input.c): ahead
    of what any congestion control needs, so only the bound counts.
    """
    if setting.sndbuf_bytes is not None:
        return max(2 * min(setting.sndbuf_bytes, setting.wmem_max_bytes), LEAST_SNDBUF_BYTES)
    return setting.wmem.maximum


def tso_bytes(setting: Setting, pace_bytes: float) -> float:
    """Return the payload that TCP sends as one burst at a pacing rate (bytes/s).

    tcp_tso_autosize(), net/ipv4/tcp_output.c: what a millisecond of that rate
    carries, more where the RTT is a few ms, at least two segments. The burst is
    one packet with segmentation offloads, and many in a row without.
    """
    rtt_us = int(setting.rtt_s * 1e6)
    shift = rtt_us >> 9
    size = pace_bytes / 1024 + (LARGEST_SKB_BYTES >> shift if shift < 31 else 0)
    return min(max(size, 2.0 * mss_bytes(setting.mtu_bytes)), LARGEST_SKB_BYTES)


def skb_bytes(setting: Setting, window_bytes: int) -> int:
    """Return the payload of a segment that a writer fills, at most half of the peer's window.

    tcp_xmit_size_goal(), tcp_bound_to_half_wnd().
    """
    mss = mss_bytes(setting.mtu_bytes)
    largest = LARGEST_SKB_BYTES if window_bytes <= 536 else min(LARGEST_SKB_BYTES, window_bytes // 2)
    return max(1, largest // mss) * mss


@lru_cache(maxsize=1024)
def flight(setting: Setting, window_bytes: int) -> Flight:
    """Return the payload that a full send buffer keeps in flight, for a writer that blocks.

    A writer that filled the buffer is woken when a third of it is free
    (sk_stream_min_wspace(), include/net/sock.h), writes segments until the
    buffer is full again, the last of them overshooting, and sleeps. What it
    writes leaves as one burst and comes back as one clump of acknowledgements.
    So a large buffer has two thirds of itself and one refill in flight, and a
    small one what as many whole refills as fit between clumps make: that is
    stepped through. window_bytes: the receive window, which bounds a segment.
    """
    buffer, skb = sndbuf_bytes(setting), skb_bytes(setting, window_bytes)
    if setting.notsent_lowat_bytes is not None:
        skb = min(skb, max(mss_bytes(setting.mtu_bytes), setting.notsent_lowat_bytes))
    paced = control(setting.cc).rate_based
    if paced:
        pace = min((buffer * 2 / 3 + skb) / max(setting.rtt_s, 1e-5), setting.rate_bps / 8)
        chunk, pushed = min(tso_bytes(setting, pace), skb), 0.0
    else:
        chunk, pushed = _pushed(setting, buffer, skb)
    share = chunk / (chunk + overhead_bytes(setting))
    refill = skb + pushed
    large = (buffer * 2 / 3 + skb) * share
    if paced:  # a refill leaves as fast as room comes back: what it was woken at stays
        mean = (buffer * 2 / 3 + refill / 2) * share
    elif buffer > _SIMULATED_BYTES:
        mean = large
    else:
        mean = _stepped(setting, buffer, (refill, skb), chunk)
    return Flight(int(mean), int(max(buffer / 3 * share, refill)))


def _pushed(setting: Setting, buffer: int, skb: float) -> tuple[float, float]:
    """Return the payload that leaves at once as one chunk, and how much of it is pushed past a full buffer.

    While the device takes chunks off the segment that a writer fills, it fills on
    without asking for room again (tcp_push_one()): what the interface's token
    bucket lets through, at least one chunk, and then until two wait below
    (tcp_small_queue_check()) and one is on the wire. A chunk is what a millisecond
    of the pacing rate carries; slow start ends where cwnd is twice what was ever in
    flight, and paces at twice that. Chunks as long as the segment leave nothing to fill on.
    """
    bucket = burst_bytes(access_bps(setting.rate_bps), setting.mtu_bytes, setting.offloads)
    byte_s = packet_bytes(setting.mtu_bytes) / mss_bytes(setting.mtu_bytes) * 8 / setting.rate_bps
    rtt_s = max(setting.rtt_s, 1e-5)
    chunk, pushed = skb, 0.0
    most = buffer * 2 / 3 + skb
    for _ in range(_SETTLED):
        chunk = min(tso_bytes(setting, 4 * most / (rtt_s + most * byte_s)), skb)
        pushed = max(float(bucket), chunk) + _CHUNKS_HELD * chunk
        most = buffer * 2 / 3 + skb + pushed
    if tso_bytes(setting, 4 * most / rtt_s) >= skb:
        return skb, 0.0
    return chunk, pushed


def _stepped(setting: Setting, buffer: int, refills: tuple[float, float], chunk: float) -> float:
    """Return the mean payload in flight of a buffer that fills and drains in clumps.

    refills: what a woken writer adds first, and each time that there still is room then.
    """
    byte_s = (packet_bytes(setting.mtu_bytes) / mss_bytes(setting.mtu_bytes)) * 8 / setting.rate_bps
    byte_s *= setting.flows
    overhead = 1 + overhead_bytes(setting) / chunk
    acknowledged_at_once = max(2.0 * mss_bytes(setting.mtu_bytes), refills[0] / 16)
    piece = min(chunk, acknowledged_at_once)
    flying: deque[tuple[float, float]] = deque()
    now_s, link_free_s, queued, total = 0.0, 0.0, 0.0, 0.0
    acked: list[tuple[float, float]] = []
    horizon_s = _SIMULATED_ROUND_TRIPS * setting.rtt_s + 16 * max(buffer, refills[0]) * byte_s
    for _ in range(_SIMULATED_CHUNKS):
        if queued <= buffer * 2 / 3:
            first = True
            while queued < buffer:
                left = refills[0] if first else refills[1]
                first = False
                while left > 0:
                    size = min(piece, left)
                    left -= size
                    link_free_s = max(now_s, link_free_s) + size * byte_s
                    flying.append((link_free_s + setting.rtt_s, size))
                    queued += size * overhead
        now_s, size = flying.popleft()
        queued -= size * overhead
        total += size
        acked.append((now_s, total))
        if now_s > horizon_s:
            break
    half = len(acked) // 2
    (from_s, before), (to_s, after) = acked[half], acked[-1]
    # whole clumps: from the gap before one to the gap before another
    starts = [n for n in range(half, len(acked)) if acked[n][0] - acked[n - 1][0] > setting.rtt_s / 8]
    if len(starts) > 2:
        (from_s, before), (to_s, after) = acked[starts[0] - 1], acked[starts[-1] - 1]
    byte_span_s = (to_s - from_s) / (after - before)
    if byte_span_s < byte_s / BUSY_SHARE:  # the link is the limit, and what is in flight waits there
        return max(buffer * 2 / 3, setting.rtt_s / byte_s)
    return setting.rtt_s / byte_span_s
