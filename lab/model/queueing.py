"""The bottleneck's queue: how long it must be for full use of the link, and how long a sender keeps it.

Sizes in bytes as the shaper counts them; for drop-tail queues.
"""

from __future__ import annotations

import math

from lab.model.controls import control, shared_beta
from lab.model.path import bdp_bytes

BBR_CWND_GAIN = 2.0
"""bbr_cwnd_gain, net/ipv4/tcp_bbr.c, BBR version 1."""


def least_queue_bytes(cc: str, rate_bps: float, rtt_s: float, flows: int = 1) -> float:
    """Return the shortest queue with which a congestion control keeps the link busy.

    After a drop at BDP + B the window falls to beta (BDP + B), which still fills
    the pipe from B = (1 / beta - 1) BDP: a whole BDP for Reno, 0.43 BDP for CUBIC.
    Many flows that are not in step need that by the square root of their number
    (Appenzeller, Keslassy, McKeown, SIGCOMM 2004). A control that takes its rate
    from what is delivered needs what its probe sends ahead: a quarter of a BDP of
    BBR.
    """
    bdp, known = bdp_bytes(rate_bps, rtt_s), control(cc)
    if known.rate_based:
        return bdp / 4
    return (1 / known.beta - 1) * bdp / math.sqrt(flows)


def standing_queue_bytes(cc: str, rate_bps: float, rtt_s: float, queue_bytes: float, flows: int = 1) -> float:
    """Return the mean queue that long flows keep when nothing but the link limits them.

    A loss-based control fills it and falls to beta: the middle between what is
    left after a drop and the full queue. One BBR flow keeps next to none; several
    measure each other's, up to their cwnd of two BDPs (Hock, Bless, Zitterbart,
    ICNP 2017).
    """
    bdp, known = bdp_bytes(rate_bps, rtt_s), control(cc)
    if known.rate_based:
        return min(queue_bytes, (BBR_CWND_GAIN - 1) * bdp) if flows > 1 else 0.0
    least = max(0.0, shared_beta(known.beta, flows) * (bdp + queue_bytes) - bdp)
    return (least + queue_bytes) / 2
