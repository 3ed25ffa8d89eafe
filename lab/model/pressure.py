"""Memory of all sockets together: what tcp_mem leaves to each of many flows.

Source: ip-sysctl.rst (tcp_mem); __sk_mem_raise_allocated(), net/core/sock.c, and
sk_stream_moderate_sndbuf(), include/net/sock.h, Linux 6.12. Valid from about 2 MiB on:
each CPU keeps up to 1 MiB of it in reserve (SK_MEMORY_PCPU_RESERVE).
"""

from __future__ import annotations

from lab.model.inputs import Setting
from lab.model.path import mss_bytes
from lab.model.sendbuf import LARGEST_SKB_BYTES, overhead_bytes
from lab.model.windows import SKB_OVERHEAD_BYTES as RECEIVED_OVERHEAD_BYTES


def thresholds_bytes(most_bytes: int) -> tuple[int, int, int]:
    """Return the three values of tcp_mem, in bytes, that go with the third as tcp_init_mem() has them."""
    return most_bytes // 2, most_bytes * 2 // 3, most_bytes


def send_window_bytes(setting: Setting, send_window: int) -> int:
    """Return what is left of what a send buffer keeps in flight where memory is short.

    Over the second value of tcp_mem send buffers are cut back
    (sk_stream_moderate_sndbuf()) until all together are under the first again
    (sk_leave_memory_pressure()), which is where they come to rest.
    """
    if setting.tcp_mem_bytes is None:
        return send_window
    return min(send_window, thresholds_bytes(setting.tcp_mem_bytes)[0] // setting.flows)


def memory_bytes(setting: Setting, window_bytes: float, flows: int) -> float:
    """Return the memory that both ends need for flows that each keep a window in flight.

    The sender holds what is not acknowledged; the receiver, when a segment is
    lost, all that comes behind it, each segment with its overhead.
    """
    mss = mss_bytes(setting.mtu_bytes)
    skb = LARGEST_SKB_BYTES // mss * mss
    sender = window_bytes * (skb + overhead_bytes(setting)) / skb
    receiver = window_bytes * (mss + RECEIVED_OVERHEAD_BYTES) / mss
    return flows * (sender + receiver)
