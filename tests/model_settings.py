"""Settings for tests of the model: one that nothing binds, and any that a point can have."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from lab import memory
from lab.model.inputs import Release, Setting

MIB = 2**20
L61, L612 = Release(6, 1), Release(6, 12)

RELEASES = st.sampled_from([Release(5, 10), L61, Release(6, 5), Release(6, 6), L612, Release(7, 0)])
CONTROLS = st.sampled_from(["cubic", "reno", "bbr", "vegas", "dctcp", "scalable", "hybla", "made_up"])
BUFFERS = st.integers(4608, memory.LARGEST_BYTES)


def triple(maximum: int) -> memory.Triple:
    """Return a buffer that autotuning may open so far."""
    return memory.Triple(min(4096, maximum), min(131072, maximum), maximum)


def ample(**changes: Any) -> Setting:
    """Return 1 Gbit/s x 200 ms on Linux 6.12 whose buffers and queue never bind, but for changes."""
    usual = {"rate_bps": 1e9, "rtt_s": 0.2, "release": L612, "rmem": triple(256 * MIB)}
    return Setting(**{**usual, "wmem": triple(256 * MIB), **changes})


def _powers(low: float, high: float) -> st.SearchStrategy[float]:
    """Draw each order of magnitude alike."""
    exponents = st.floats(math.log(low), math.log(high))
    return exponents.map(lambda x: min(max(math.exp(x), low), high))


@st.composite
def settings(draw: st.DrawFn, *, lossless: bool = False, plain: bool = False) -> Setting:
    """Draw any setting that a point can have.

    plain: with buffers set by their sysctls alone, whose window is at least a
    few segments, and a queue that never drops: where laws of more and less hold.
    """
    rate_bps, rtt_s = draw(_powers(1e3, 400e9)), draw(_powers(1e-6, 20.0))
    mtu = draw(st.sampled_from([1500, 1500, 9000])) if plain else draw(st.integers(576, 65535))
    sizes = st.integers(64 * 1024, memory.LARGEST_BYTES) if plain else BUFFERS
    setting = Setting(
        rate_bps=rate_bps,
        rtt_s=rtt_s,
        release=draw(RELEASES),
        rmem=triple(draw(sizes)),
        wmem=triple(draw(sizes)),
        adv_win_scale=draw(st.integers(-2 if plain else -8, 8)),
        mtu_bytes=mtu,
        offloads=draw(st.booleans()),
        cc=draw(CONTROLS),
        loss=0.0 if lossless or plain else draw(st.sampled_from([0.0, 1e-6, 1e-3, 0.1, 0.5, 1.0])),
        flows=draw(st.sampled_from([1, 2, 10, 1000])),
    )
    if plain:
        return setting
    size, maybe = st.integers(1, memory.LARGEST_BYTES), st.none()
    bdp_bytes = rate_bps * rtt_s / 8
    packet_bytes = float(mtu + 14)
    queues = st.sampled_from([packet_bytes, *(max(packet_bytes, n * bdp_bytes) for n in (0.1, 1, 10))])
    return Setting(
        **{
            **vars(setting),
            "app_win": draw(st.integers(0, 31)),
            "moderate_rcvbuf": draw(st.booleans()),
            "rcvbuf_bytes": draw(maybe | size),
            "sndbuf_bytes": draw(maybe | size),
            "rmem_max_bytes": draw(BUFFERS),
            "wmem_max_bytes": draw(BUFFERS),
            "notsent_lowat_bytes": draw(maybe | size),
            "tcp_mem_bytes": draw(maybe | st.integers(2**16, 2**42)),
            "queue_bytes": draw(maybe | queues),
            "duration_s": draw(st.sampled_from([math.inf, 0.01, 1.0, 12.0, 3600.0])),
        }
    )
