"""A flow that paces by what was delivered: BBR version 1, its probes, its drains, and what breaks it.

Source: Cardwell and others, CACM 60(2), 2017; net/ipv4/tcp_bbr.c of Linux 6.12.
What a short queue and heavy loss leave of its rate is measured, not derived.
"""

from __future__ import annotations

from lab.model.limits import LINK, LOSS, PACING, QUEUE, SLOW_START
from lab.model.path import ACCESS_FACTOR
from lab.model.route import INITIAL_WINDOW, Route, Step
from lab.model.sendbuf import LARGEST_SKB_BYTES

BBR_FILTER_ROUNDS = 10
BBR_PROBE_GAIN = 1.25
BBR_MOST_LOSS, BBR_COLLAPSED_SHARE = 0.15, 0.1
_BBR_SHORT_PATH_SHARE, _BBR_SHORT_QUEUE_SHARE = 0.55, 0.87
PROBE_RTT_S = 0.2
PROBE_RTT_EVERY_S = 10.0
_PROBE_TURNS = 50


def course(route: Route) -> list[Step]:
    """Return the course of a flow that paces by what was delivered, as BBR does."""
    found, left_s, window = [], route.duration_s, float(INITIAL_WINDOW)
    most = min(route.window, route.pipe)
    while left_s > 0 and window < most:
        span_s = min(route.rtt_s, left_s)
        limit = LOSS if route.loss >= 1 else SLOW_START
        found.append(Step(span_s, window / route.rtt_s * span_s, route.rtt_s, limit))
        left_s -= span_s
        window *= 2
    if left_s <= 0:
        return found
    held = delivered_share(route.loss)
    limit = LINK if route.window >= route.pipe else route.window_limit
    if route.loss > BBR_MOST_LOSS:
        limit = LOSS
    kept = _kept_by_short_queue(route)
    if kept < 1:
        limit = QUEUE
        held *= kept
    idle_s = 0.0
    if route.duration_s >= PROBE_RTT_EVERY_S:
        idle_s = left_s * min(0.5, (max(PROBE_RTT_S, route.rtt_s) + route.rtt_s) / PROBE_RTT_EVERY_S)
    span_s = left_s - idle_s
    # several flows measure each other's queue for the path's own, up to cwnd's two BDPs
    rtt_s = route.rtt_s
    if route.flows > 1 and limit == LINK:
        rtt_s += min(route.room, route.pipe) * route.segment_s
    turns = max(1, min(_PROBE_TURNS, int(left_s / PROBE_RTT_EVERY_S)))
    for _ in range(turns):
        found.append(Step(span_s / turns, most / route.rtt_s * span_s / turns * held, rtt_s, limit))
        if idle_s > 0:
            found.append(Step(idle_s / turns, 0.0, route.rtt_s, PACING))
    return found


def _kept_by_short_queue(route: Route) -> float:
    """Return the share of the rate that BBR keeps where the queue cannot take what it sends ahead.

    A probe needs a quarter of the pipe; cwnd, twice the pipe and three bursts
    (bbr_quantization_budget(), net/ipv4/tcp_bbr.c), is met on short paths. Every
    drop costs a round of packet conservation. What then is left was measured,
    on queues of 0.1 to 0.3 BDP and of 20 to 30 packets (docs/theory.md).
    """
    most_segs_s = min(1 / route.segment_s, route.window / route.rtt_s)
    goal = min(most_segs_s / 1024, LARGEST_SKB_BYTES / route.mss_bytes, route.window)
    ahead = min(2 * route.pipe + 3 * goal, route.window) - route.pipe
    if (goal - 1) * (1 - 1 / ACCESS_FACTOR) > route.room:
        return _BBR_SHORT_PATH_SHARE
    if ahead > route.room and 3 * goal > max(route.room, route.pipe):
        return _BBR_SHORT_PATH_SHARE
    if route.room < (BBR_PROBE_GAIN - 1) * route.pipe and ahead > route.room:
        return _BBR_SHORT_QUEUE_SHARE
    return 1.0


def delivered_share(loss: float) -> float:
    """Return the share of its rate that BBR delivers under random loss.

    While its probes, at 1.25 times the rate, still deliver more than the rate,
    its bandwidth filter holds, and only what is lost is missing. Measured (see
    docs/theory.md) that ends between 14 and 16 % of loss; beyond, the estimate
    falls until next to nothing is left.
    """
    return 1 - loss if loss <= BBR_MOST_LOSS else BBR_COLLAPSED_SHARE * (1 - loss)
