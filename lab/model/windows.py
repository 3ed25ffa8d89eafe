"""The receive window: what a receive buffer lets a receiver advertise, by kernel.

Valid for flows that live long enough for autotuning to reach its bound, and for
receivers that read at once, on the lab's veth links: a real driver's receive
buffers have another truesize, and since Linux 6.6 the window follows it.
Functions of Linux 6.1 and 6.12 are named where the rule is theirs.
"""

from __future__ import annotations

from lab.model.inputs import Release, Setting
from lab.model.path import mss_bytes

SCALING_RATIO_SINCE = Release(6, 6)
"""Release whose receive window follows the measured scaling ratio (commit dfa2f0483360)."""

SKB_OVERHEAD_BYTES = 832
"""Truesize of a segment beyond its payload on a veth: struct sk_buff (256), its
head with headers (256) and struct skb_shared_info (320); SKB_TRUESIZE() in
include/linux/skbuff.h, x86-64."""

DEFAULT_RATIO = 128
"""256ths of a receive buffer that are window before a segment was measured:
TCP_DEFAULT_SCALING_RATIO, include/net/tcp.h, Linux 6.6 and later."""

LEAST_RCVBUF_BYTES = 2304
"""SOCK_MIN_RCVBUF, include/net/sock.h, 64 bit."""

MOST_WINDOW_SCALE = 14
_SIXTEEN_BITS = 65535
_INITIAL_WINDOW = 10
_FIRST_GUESS_BYTES = 536


def ignores_adv_win_scale(release: Release) -> bool:
    """Return whether tcp_adv_win_scale has no effect."""
    return release >= SCALING_RATIO_SINCE


def scaling_ratio(mss: int, offloads: bool, rtt_s: float) -> int:
    """Return the 256ths of the receive buffer that are window, Linux 6.6 and later.

    tcp_measure_rcv_mss() in net/ipv4/tcp_input.c: len x 256 / truesize, in whole
    numbers, taken of the first full segment. With segmentation offload that is
    the sender's first burst: two segments (tcp_min_tso_segs), and three where the
    path is short enough for the initial window to be paced so fast, which is as
    many as the third of it that is not deferred (tcp_tso_should_defer()). A
    segment no longer than the first guess of its length, 536 bytes
    (tcp_initialize_rcv_mss()), is not measured at all.
    """
    if mss <= _FIRST_GUESS_BYTES and not offloads:
        return DEFAULT_RATIO
    segments = 1
    if offloads:
        paced = 2 * _INITIAL_WINDOW / max(rtt_s, 1e-6) / 1024
        segments = 3 if paced >= 3 else 2
    payload = mss * segments
    return max(1, payload * 256 // (payload + SKB_OVERHEAD_BYTES))


def window_from_space(space_bytes: int, setting: Setting) -> int:
    """Return the window that so much receive buffer gives, bytes: tcp_win_from_space()."""
    if ignores_adv_win_scale(setting.release):
        return (
            space_bytes * scaling_ratio(mss_bytes(setting.mtu_bytes), setting.offloads, setting.rtt_s) // 256
        )
    scale = setting.adv_win_scale
    if scale <= 0:
        return space_bytes >> -scale
    return space_bytes - (space_bytes >> scale)


def rcvbuf_bytes(setting: Setting) -> int:
    """Return the size that the receive buffer reaches.

    SO_RCVBUF is cut to net.core.rmem_max, doubled and locked (__sock_set_rcvbuf(),
    net/core/sock.c); else autotuning opens it to tcp_rmem[2] (tcp_rcv_space_adjust()),
    and without autotuning it stays at tcp_rmem[1].
    """
    if setting.rcvbuf_bytes is not None:
        return max(2 * min(setting.rcvbuf_bytes, setting.rmem_max_bytes), LEAST_RCVBUF_BYTES)
    return setting.rmem.maximum if setting.moderate_rcvbuf else setting.rmem.default


def window_scale(setting: Setting) -> int:
    """Return the window scale that the receiver chooses at SYN, at most 14.

    tcp_select_initial_window(), net/ipv4/tcp_output.c: of the largest of
    tcp_rmem[2] and net.core.rmem_max; where SO_RCVBUF is set, of the window that
    its buffer gives by the ratio that holds before any segment has come
    (tcp_openreq_init_rwin(), net/ipv4/tcp_minisocks.c).
    """
    space = max(setting.rmem.maximum, setting.rmem_max_bytes)
    if setting.rcvbuf_bytes is not None:
        buffer = rcvbuf_bytes(setting)
        clamp = (
            buffer * DEFAULT_RATIO // 256
            if ignores_adv_win_scale(setting.release)
            else window_from_space(buffer, setting)
        )
        space = min(space, clamp)
    return min(MOST_WINDOW_SCALE, max(0, space.bit_length() - 1 - 15))


def receive_window_bytes(setting: Setting) -> int:
    """Return the most that the receiver advertises to a flow.

    Before 6.6 a buffer that is never opened keeps back one part in 2^tcp_app_win,
    and at least one segment (tcp_init_buffer_space()); one that autotuning opens
    does not. Since 6.6 measuring the first segment lifts that clamp, and the
    window opens to what the buffer has free beside the segment that just came
    (tcp_grow_window()). It is rounded up to a multiple of 2^scale
    (__tcp_select_window()).
    """
    space, scale = rcvbuf_bytes(setting), window_scale(setting)
    window = window_from_space(space, setting)
    opened = setting.rcvbuf_bytes is None and setting.moderate_rcvbuf and setting.rmem.default < space
    mss = mss_bytes(setting.mtu_bytes)
    if ignores_adv_win_scale(setting.release):
        window -= window_from_space(mss + SKB_OVERHEAD_BYTES, setting) if window > 2 * mss else 0
    elif not opened:
        window = _clamped(window, setting.app_win, mss)
    return min(-(-window >> scale) << scale, _SIXTEEN_BITS << scale)


def _clamped(window: int, app_win: int, mss: int) -> int:
    """Return what tcp_init_buffer_space() leaves of the window of a whole buffer."""
    if app_win == 0:
        return window
    clamp = max(window - (window >> app_win), 4 * mss) if window > 4 * mss else window
    if clamp > 2 * mss and clamp + mss > window:
        clamp = max(2 * mss, window - mss)
    return min(clamp, window)
