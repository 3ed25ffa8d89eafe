"""What flows that share one bottleneck should get.

Long flows in the long run, as published models have it; each function says where
its model ends, and is None where there is none. Not here: how long a drop-tail
queue must be (`queueing`), and a policer's goodput, for which there is no closed
form to cite: Flach and others, SIGCOMM 2016, measure it and derive none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from lab.model.loss import cubic_own_window_segs, reno_window_segs
from lab.model.paced import PROBE_RTT_EVERY_S, PROBE_RTT_S
from lab.model.path import bdp_bytes, packet_bytes, queue_delay_s

BBR_LEAST_CWND = 4
"""Packets that a BBR flow keeps in flight while it looks for the base RTT: bbr_cwnd_min_target."""


class Band(NamedTuple):
    """From the least to the most that a theory allows."""

    low: float
    high: float


def bbr_share(
    n_bbr: int, n_loss_based: int, *, rate_bps: float, rtt_s: float, queue_bytes: float, mtu_bytes: int = 1500
) -> float | None:
    """Return the share of the link that all BBR flows together take from loss-based ones; version 1.

    Ware, Mukerjee, Seshan, Sherry, IMC 2019, equations 9 to 11: BBR pushes the
    others out until it holds its cap, twice the bandwidth times the RTT that it
    knows, and that RTT holds the others' queue. So with a drop-tail queue of q
    packets, X BDPs long, and N BBR flows the others keep p = 1/2 - 1/2X - 4N/q of
    the link, however many they are, or nothing where that is negative; and every
    ten seconds BBR sends nothing while the queue drains, for 200 ms and one RTT.
    From half and more it falls, on very long queues, for those pauses alone.

    They tried it from 1 to 64 BDPs, with equal RTTs, flows that begin together and
    competitions much longer than 10 s: median error 5 % against CUBIC, 8 % against
    Reno. None on a queue under a BDP, where the cap does not bind: there BBR's
    probes drop packets that only the others take for a reason to slow down, and it
    takes nearly all (Hock, Bless, Zitterbart, ICNP 2017). Versions 2 and 3 answer to
    loss; this says nothing of them.
    """
    if n_bbr == 0 or n_loss_based == 0:
        return float(n_bbr > 0)
    bdp = bdp_bytes(rate_bps, rtt_s)
    if bdp <= 0 or queue_bytes < bdp:
        return None
    others = 1 / 2 - bdp / (2 * queue_bytes) - BBR_LEAST_CWND * n_bbr * packet_bytes(mtu_bytes) / queue_bytes
    pause_s = queue_delay_s(queue_bytes, rate_bps) + PROBE_RTT_S + rtt_s
    return (1 - max(0.0, others)) * max(0.0, 1 - pause_s / PROBE_RTT_EVERY_S)


def cubic_own_from_segs(rtt_s: float) -> float:
    """Return the mean window from which CUBIC grows by its own curve; below it is as friendly as Reno.

    Where the two mean windows of RFC 9438, section 5.1, meet: 1.65 / RTT^(3/2), so 52
    segments at 100 ms and 585 at 20 ms.
    """
    # a (RTT / p)^(3/4) and b / p^(1/2) are both b^3 / (a^2 RTT^(3/2)) at the loss p where they meet
    own, reno = cubic_own_window_segs(1.0, 1.0), reno_window_segs(1.0)
    return math.pow(reno, 3) / (math.pow(own, 2) * math.pow(rtt_s, 1.5))


def rtt_ratio(
    cc: str,
    rtts_s: Sequence[float],
    *,
    queue_delay_s: float = 0.0,
    window_segs: float | None = None,
    queue_s: float | None = None,
) -> Band | None:
    """Return how many times the goodput of the longest RTT's flow the shortest's should have.

    Flows of one control on one drop-tail bottleneck. rtts_s: base RTTs;
    queue_delay_s: the mean queueing delay that comes to all of them, which makes
    them more alike; window_segs: mean window of the flow with the shortest RTT, for
    CUBIC's region (None: its own); queue_s: the queue's length in time, for BBR.

    Reno: rates fall with RTT^-1 where each packet has the same chance of loss
    (Mathis and others, CCR 27(3), 1997), and with up to RTT^-2 where all flows lose
    at once, as few flows on a short queue do (Lakshman and Madhow, ToN 5(3), 1997;
    RFC 9438, section 3.3).
    CUBIC in its own region: windows grow with time and not with round trips, so
    RTT^-1 where all lose at once (RFC 9438, section 3.3); where the chance is the
    same its window is as RTT^(3/4), so rates fall with RTT^(-1/4) (section 5.1).
    Below `cubic_own_from_segs` it is Reno.
    BBR: under 1 on a queue of the longest RTT or more. Its window is two BDPs of the
    base RTT, so the flow with the longest has the most in the queue, and one whose
    base RTT is under the queueing delay loses ever more of its rate to it (Hock,
    Bless, Zitterbart, ICNP 2017). On shorter queues either may win: None.
    Others: None.
    """
    short, long = min(rtts_s), max(rtts_s)
    if cc == "bbr":
        return Band(0.0, 1.0) if queue_s is not None and queue_s >= long else None
    if short + queue_delay_s <= 0:
        return None
    exponents = {"reno": (1.0, 2.0), "cubic": (0.25, 1.0)}.get(cc)
    if cc == "cubic" and window_segs is not None and window_segs < cubic_own_from_segs(short + queue_delay_s):
        exponents = (1.0, 2.0)
    if exponents is None:
        return None
    ratio = (long + queue_delay_s) / (short + queue_delay_s)
    return Band(ratio ** exponents[0], ratio ** exponents[1])
