"""Random loss: the rate that a congestion control holds against it.

Steady state, independent losses, no timeouts (BBR: below about 15 %, where its
bandwidth filter still holds the rate); segments and seconds. Where a
congestion control has no closed form here the answer is infinity: no bound known.
"""

from __future__ import annotations

import math

_CUBIC_C = 0.4
_CUBIC_BETA = 0.7


def reno_window_segs(loss: float) -> float:
    """Return the mean cwnd of Reno, sqrt(3 / 2p). Mathis et al., CCR 27(3), 1997."""
    return math.sqrt(1.5 / loss)


def cubic_window_segs(loss: float, rtt_s: float) -> float:
    """Return the mean cwnd of CUBIC: the larger of its own and its Reno-friendly region.

    RFC 9438, section 5.1: (C (3 + beta) / (4 (1 - beta)))^(1/4) RTT^(3/4) / p^(3/4).
    """
    own: float = (_CUBIC_C * (3 + _CUBIC_BETA) / (4 * (1 - _CUBIC_BETA))) ** 0.25
    return max(own * math.pow(rtt_s / loss, 0.75), reno_window_segs(loss))


def rate_bound_bps(cc: str, loss: float, rtt_s: float, mss_bytes: int, link_goodput_bps: float) -> float:
    """Return the goodput that loss alone would leave one flow, bit/s; infinity for no bound known."""
    if loss <= 0 or rtt_s <= 0:
        return math.inf
    if cc == "bbr":
        return link_goodput_bps * (1 - loss)
    if cc == "cubic":
        segs = cubic_window_segs(loss, rtt_s)
    elif cc == "reno":
        segs = reno_window_segs(loss)
    else:
        return math.inf
    return segs * mss_bytes * 8 / rtt_s
