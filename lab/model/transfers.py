"""How long a transfer of a given size takes: alone on an empty path, and at best.

Times s, from the first byte sent on an open connection to the last byte read by
the receiver: half a round trip of propagation is in them, a handshake is not.
"""

from __future__ import annotations

import math

from lab.model.inputs import Setting
from lab.model.path import mss_bytes, packet_bytes
from lab.model.predict import predict
from lab.model.route import INITIAL_WINDOW


def wire_bytes(size_bytes: float, mtu_bytes: int = 1500) -> float:
    """Return a transfer's bytes as the shaper counts them: its payload and the headers of every packet."""
    packets = math.ceil(size_bytes / mss_bytes(mtu_bytes))
    return size_bytes + packets * (packet_bytes(mtu_bytes) - mss_bytes(mtu_bytes))


def ideal_s(
    size_bytes: float, rate_bps: float, rtt_s: float, mtu_bytes: int = 1500, round_trips: float = 0.5
) -> float:
    """Return the least time in which any sender could deliver so much: line rate, and the way there.

    The flow alone in an idle network is what pFabric (Alizadeh and others, SIGCOMM
    2013) and Homa (Montazeri and others, SIGCOMM 2018) divide by. round_trips: of
    propagation that the time to compare with holds: 0.5 where it ends at the
    receiver, 1 where with the acknowledgement, one more with a handshake.
    """
    return wire_bytes(size_bytes, mtu_bytes) * 8 / rate_bps + round_trips * rtt_s


def alone_s(
    size_bytes: float,
    rate_bps: float,
    rtt_s: float,
    mtu_bytes: int = 1500,
    initial_window: float = INITIAL_WINDOW,
) -> float:
    """Return the time of a transfer that slow start alone holds back.

    Windows of 10 segments (RFC 6928), 20, 40 and so on, one a round trip, until the
    next acknowledgement comes before a window is out; then the line's rate. That is
    the case without loss of Cardwell, Savage, Anderson, INFOCOM 2000, with the stalls as
    Kurose and Ross count them: RTT and a packet's time, less the window's. It knows no
    queue that drops, no HyStart and no limit of buffers; for those see `predicted_s`.
    """
    left = wire_bytes(size_bytes, mtu_bytes)
    packet_s = packet_bytes(mtu_bytes) * 8 / rate_bps
    window, before_s = initial_window * packet_bytes(mtu_bytes), 0.0
    while left > window and window * 8 / rate_bps < rtt_s + packet_s:
        left -= window
        before_s += rtt_s + packet_s
        window *= 2
    return before_s + left * 8 / rate_bps + rtt_s / 2


def predicted_s(setting: Setting) -> float:
    """Return the time of every flow's `bytes_each` as `predict` follows it, with all its limits.

    It spreads what a round trip delivers evenly over it and leaves out the way to the
    receiver, so where slow start alone binds it lies within half a round trip of
    `alone_s`. Infinite where nothing arrives. Raises ValueError for a setting whose
    flows do not end by themselves.
    """
    if setting.bytes_each is None:
        raise ValueError("a transfer's time needs its size: bytes_each is None")
    rate_bps = predict(setting).mean_goodput_bps / setting.flows
    return setting.bytes_each * 8 / rate_bps if rate_bps > 0 else math.inf
