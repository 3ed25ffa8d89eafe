"""Random loss: what it leaves of a congestion window in the long run, and how long repair holds a window.

Closed forms for independent losses in steady state; windows in segments, times
in s, loss p as a fraction. What chance does to one transfer is in `trajectory`.
Where a congestion control has no closed form here the answer is infinity: no
bound known.
"""

from __future__ import annotations

import math

from lab.model.cwnd import CUBIC_C
from lab.model.paced import delivered_share

_CUBIC_BETA = 0.7
LEAST_RTO_S = 0.2
"""TCP_RTO_MIN, include/net/tcp.h."""


def reno_window_segs(loss: float) -> float:
    """Return the mean cwnd of Reno, sqrt(3 / 2p), one loss each 1/p. Mathis et al., CCR 27(3), 1997."""
    return math.sqrt(1.5 / loss)


def padhye_rate_segs_s(loss: float, rtt_s: float, most_window: float = math.inf, acked: float = 1.0) -> float:
    """Return the rate of Reno with timeouts, segments/s.

    Padhye, Firoiu, Towsley, Kurose, IEEE/ACM ToN 8(2), 2000, equation 30 for
    small and large p alike. acked: segments that one acknowledgement covers;
    Linux counts bytes, so 1. The first timeout is RTT + 200 ms, as Linux keeps it.
    """
    if loss <= 0:
        return most_window / rtt_s
    timeout_s = rtt_s + LEAST_RTO_S
    recovery = rtt_s * math.sqrt(2 * acked * loss / 3)
    timeouts = timeout_s * min(1.0, 3 * math.sqrt(3 * acked * loss / 8)) * loss * (1 + 32 * loss**2)
    return min(most_window / rtt_s, 1 / (recovery + timeouts))


def cubic_own_window_segs(loss: float, rtt_s: float) -> float:
    """Return the mean cwnd of CUBIC in its own region.

    RFC 9438, section 5.1: (C (3 + beta) / (4 (1 - beta)))^(1/4) RTT^(3/4) / p^(3/4).
    """
    own: float = (CUBIC_C * (3 + _CUBIC_BETA) / (4 * (1 - _CUBIC_BETA))) ** 0.25
    return own * math.pow(rtt_s / loss, 0.75)


def cubic_window_segs(loss: float, rtt_s: float) -> float:
    """Return the mean cwnd of CUBIC: the larger of its two regions. RFC 9438, section 5.1."""
    return max(cubic_own_window_segs(loss, rtt_s), reno_window_segs(loss))


def rate_bound_bps(cc: str, loss: float, rtt_s: float, mss_bytes: int, link_goodput_bps: float) -> float:
    """Return the goodput that loss alone would leave one flow in the long run, bit/s."""
    if loss <= 0 or rtt_s <= 0:
        return math.inf
    if cc == "bbr":
        return link_goodput_bps * delivered_share(loss)
    if cc == "cubic":
        segs = cubic_window_segs(loss, rtt_s)
    elif cc == "reno":
        segs = reno_window_segs(loss)
    else:
        return math.inf
    return segs * mss_bytes * 8 / rtt_s


def repair_round_trips(loss: float, packets: float) -> float:
    """Return the round trips for which a window of so many packets is held, on average.

    Receive window and send buffer are given back in order, so they wait for the
    packet of the window that was lost most often: 1 + sum over k of the chance
    that some packet is lost k times, 1 - (1 - p^k)^n.
    """
    if loss <= 0 or loss >= 1:  # where nothing arrives, nothing is given back: no window is what binds
        return 1.0
    held, chance = 1.0, loss
    while packets * chance > 1e-6 and held < 1e6:
        held += -math.expm1(packets * math.log1p(-chance))
        chance *= loss
    return held
