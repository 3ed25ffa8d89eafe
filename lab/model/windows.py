"""Windows from socket buffers: what tcp_rmem and tcp_wmem let into flight, by kernel.

Valid for flows that live long enough for autotuning to reach its bound, on the
lab's veth links; a real driver's receive buffers have another truesize, and
since Linux 6.6 the receive window follows it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

SCALING_RATIO_SINCE = (6, 6)
"""Release whose receive window follows the measured scaling ratio (commit dfa2f0483360)."""

SKB_OVERHEAD_BYTES = 832
"""Truesize of a segment beyond its payload on a veth: struct sk_buff (256), its
head with headers (256) and struct skb_shared_info (320); SKB_TRUESIZE() in
include/linux/skbuff.h, x86-64."""

LARGEST_SKB_BYTES = 65536
MOST_WINDOW_SCALE = 14
_SIXTEEN_BITS = 65535


class Release(NamedTuple):
    """A kernel version as far as the rules ask."""

    major: int
    minor: int

    @classmethod
    def parse(cls, release: str) -> Release:
        """Return the version of `6.12`, `6.12.117` or `6.12@1000`. Raises ValueError."""
        parts = release.split("@", maxsplit=1)[0].split("-", maxsplit=1)[0].split(".")
        return cls(int(parts[0]), int(parts[1]))


def ignores_adv_win_scale(release: Release) -> bool:
    """Return whether tcp_adv_win_scale has no effect."""
    return release >= SCALING_RATIO_SINCE


def scaling_ratio(mss_bytes: int, offloads: bool) -> float:
    """Return the share of the receive buffer that is window, Linux 6.6 and later.

    tcp_measure_rcv_mss() in net/ipv4/tcp_input.c: len x 256 / truesize, whole
    256ths. Taken of the first full segments; with segmentation offload these
    come in pairs (tcp_min_tso_segs).
    """
    payload = mss_bytes * (2 if offloads else 1)
    return (payload * 256 // (payload + SKB_OVERHEAD_BYTES)) / 256


def window_from_space(
    rcvbuf_bytes: int, release: Release, adv_win_scale: int, mss_bytes: int, offloads: bool
) -> int:
    """Return the receive window that a receive buffer gives, bytes.

    Before 6.6: tcp_win_from_space() in include/net/tcp.h, by tcp_adv_win_scale.
    Since: rcvbuf x scaling ratio.
    """
    if ignores_adv_win_scale(release):
        return int(rcvbuf_bytes * scaling_ratio(mss_bytes, offloads))
    if adv_win_scale <= 0:
        return rcvbuf_bytes >> -adv_win_scale
    return rcvbuf_bytes - (rcvbuf_bytes >> adv_win_scale)


def window_scale(largest_rcvbuf_bytes: int) -> int:
    """Return the window scale chosen at SYN. tcp_select_initial_window(), net/ipv4/tcp_output.c."""
    if largest_rcvbuf_bytes <= _SIXTEEN_BITS:
        return 0
    return min(MOST_WINDOW_SCALE, max(0, int(math.log2(largest_rcvbuf_bytes)) - 15))


def receive_window_bytes(
    rcvbuf_bytes: int, release: Release, adv_win_scale: int, mss_bytes: int, offloads: bool
) -> int:
    """Return the most that a receiver advertises: window from space, within what scaling can carry."""
    window = window_from_space(rcvbuf_bytes, release, adv_win_scale, mss_bytes, offloads)
    scale = window_scale(rcvbuf_bytes)
    return min(window, _SIXTEEN_BITS << scale) >> scale << scale


def send_window_bytes(sndbuf_bytes: int, mss_bytes: int) -> int:
    """Return the payload that a full send buffer keeps in flight, bytes.

    A writer that filled the buffer is woken when a third of it is free
    (sk_stream_min_wspace(), include/net/sock.h). What it then writes leaves as
    one burst and comes back as one clump of acknowledgements, so between clumps
    two thirds of the buffer are in flight, and the one segment that may
    overshoot it; less the overhead of each segment.
    """
    skb = min(LARGEST_SKB_BYTES // mss_bytes * mss_bytes, sndbuf_bytes)
    share = skb / (skb + SKB_OVERHEAD_BYTES)
    return int((sndbuf_bytes * 2 / 3 + skb) * share)
