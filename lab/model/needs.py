"""The other way round: which buffers a path needs. Each is the least that the rules of the model allow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lab import memory
from lab.model import path, sendbuf, windows
from lab.model.inputs import Setting
from lab.model.predict import round_trip_s

_LEAST_BYTES = 4096


def payload_bdp_bytes(setting: Setting) -> float:
    """Return the payload that each flow must have in flight for them to fill the path."""
    share = path.payload_share(setting.mtu_bytes)
    return path.bdp_bytes(setting.rate_bps, setting.rtt_s) * share / setting.flows


def window_bytes(setting: Setting) -> float:
    """Return the receive window that each flow must have for them to fill the path: its payload and a burst.

    A sender that only the window holds sends in bursts, and each waits for its own end: `round_trip_s`.
    """
    payload = payload_bdp_bytes(setting)
    if setting.rtt_s <= 0:
        return payload
    return payload * round_trip_s(setting, payload) / setting.rtt_s


def rmem_bytes(setting: Setting, window_bytes: float) -> int | None:
    """Return the least tcp_rmem[2] whose window is so large, None where no window can be."""

    def window(size: int) -> int:
        rmem = memory.Triple(min(setting.rmem.minimum, size), min(setting.rmem.default, size), size)
        opened = replace(setting, rmem=rmem, rcvbuf_bytes=None, moderate_rcvbuf=True)
        return windows.receive_window_bytes(opened)

    return _least(window, window_bytes)


def wmem_bytes(setting: Setting, in_flight_bytes: float) -> int | None:
    """Return the least tcp_wmem[2] that keeps so much in flight, None where none does."""

    def flight(size: int) -> int:
        wmem = memory.Triple(min(setting.wmem.minimum, size), min(setting.wmem.default, size), size)
        return sendbuf.flight(replace(setting, wmem=wmem, sndbuf_bytes=None), 2**30).mean_bytes

    return _least(flight, in_flight_bytes)


def _least(given_by: Callable[[int], int], wanted_bytes: float) -> int | None:
    low, high = _LEAST_BYTES, memory.LARGEST_BYTES
    if given_by(high) < wanted_bytes:
        return None
    while high - low > max(1, low // 2048):
        middle = (low + high) // 2
        if given_by(middle) >= wanted_bytes:
            high = middle
        else:
            low = middle
    return high
