"""One call from the settings of a path to what it should give, and the limit that binds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate

from lab.model import limits, loss, path, pressure, sendbuf, sentences, trajectory, windows
from lab.model.controls import control
from lab.model.inputs import Setting
from lab.model.limits import LINK, LOSS, RECEIVE_WINDOW, SEND_BUFFER
from lab.model.route import Route, Step, until
from lab.qdisc import burst_bytes
from lab.steady import at, steady_from_s

LONG_RUN_S = 600.0
LONG_RUN_ROUND_TRIPS = 3000
_SAMPLES = 200


@dataclass(frozen=True)
class Prediction:
    """What the model says. Rates bit/s, sizes bytes, times s.

    window_bytes: the most the receiver advertises to a flow; send_window_bytes:
    what a flow's send buffer keeps in flight; bounds_bps: the goodput of all
    flows that each limit alone would allow, without those that set no bound.
    predicted_goodput_bps: of the steady part; mean_goodput_bps: over the whole
    load; ramp_s: what comes before the steady part; rtt_s: under load, in the
    steady part. limit: what binds for most of the load; steady_limit: in the
    steady part; shares: of the load that each limit binds. next_limit: what
    would bind if steady_limit were lifted, and margin: how many times the
    steady goodput would then be; under 1 where a larger window meets more loss
    or overruns a short queue, infinite where the goodput is 0.
    """

    bdp_bytes: float
    window_bytes: int
    send_window_bytes: int
    bounds_bps: Mapping[str, float]
    predicted_goodput_bps: float
    mean_goodput_bps: float
    ramp_s: float
    rtt_s: float
    limit: str
    steady_limit: str
    shares: Mapping[str, float]
    next_limit: str
    margin: float
    sentence: str


@dataclass(frozen=True)
class _Course:
    """A predicted transfer, summed up."""

    steady_bps: float
    mean_bps: float
    ramp_s: float
    rtt_s: float
    shares: Mapping[str, float]
    steady_limit: str


@lru_cache(maxsize=4096)
def predict(setting: Setting) -> Prediction:
    """Return what the settings should give."""
    window = windows.receive_window_bytes(setting)
    send_window = pressure.send_window_bytes(setting, sendbuf.flight(setting, window).mean_bytes)
    course = _course(setting, window, send_window)
    bounds = _bounds(setting, window, send_window)
    if course.steady_limit not in (LINK, RECEIVE_WINDOW, SEND_BUFFER):
        bounds[course.steady_limit] = course.steady_bps
    next_limit, next_bps = _without(course.steady_limit, setting, bounds, window, send_window)
    prediction = Prediction(
        bdp_bytes=path.bdp_bytes(setting.rate_bps, setting.rtt_s),
        window_bytes=window,
        send_window_bytes=send_window,
        bounds_bps={name: bound for name, bound in bounds.items() if math.isfinite(bound)},
        predicted_goodput_bps=course.steady_bps,
        mean_goodput_bps=course.mean_bps,
        ramp_s=course.ramp_s,
        rtt_s=course.rtt_s,
        limit=limits.dominant(course.shares),
        steady_limit=course.steady_limit,
        shares=course.shares,
        next_limit=next_limit,
        margin=next_bps / course.steady_bps if course.steady_bps > 0 else math.inf,
        sentence="",
    )
    return replace(prediction, sentence=sentences.prediction(setting, prediction))


def round_trip_s(setting: Setting, window_bytes: float) -> float:
    """Return the round trip of a window that meets no queue but its own, s.

    To the propagation comes the time in which a sender collects room for a burst
    (tcp_tso_should_defer(): for at most a third of the window, and then seldom
    for all of it) and the bottleneck sends it, but for the two packets that find
    tokens waiting.
    """
    bucket = burst_bytes(setting.rate_bps, setting.mtu_bytes, setting.offloads)
    packet_s = path.packet_bytes(setting.mtu_bytes) * 8 / setting.rate_bps if setting.rtt_s == 0 else 0.0
    if window_bytes <= bucket:
        return max(setting.rtt_s, packet_s)
    gain = 1 if control(setting.cc).rate_based else 2
    pace = gain * min(window_bytes / max(setting.rtt_s, 1e-6), setting.rate_bps / 8)
    burst = sendbuf.tso_bytes(setting, pace)
    share = path.payload_share(setting.mtu_bytes)
    if burst > window_bytes / 3:
        queued = max(0.0, window_bytes / 6 - path.mss_bytes(setting.mtu_bytes)) / share
    else:
        queued = max(0.0, burst / share - 2 * path.packet_bytes(setting.mtu_bytes))
    return max(setting.rtt_s + queued * 8 / setting.rate_bps, packet_s)


def _packet_payload_bytes(setting: Setting, window_bytes: float) -> float:
    """Return the payload of what is lost at once: a segment, or with offloads a whole burst."""
    if not setting.offloads:
        return path.mss_bytes(setting.mtu_bytes)
    return sendbuf.tso_bytes(setting, 1.2 * window_bytes / max(setting.rtt_s, 1e-6))


def _route(setting: Setting, window: int, send_window: int) -> Route:
    """Return what one of the flows meets."""
    mss, packet = path.mss_bytes(setting.mtu_bytes), path.packet_bytes(setting.mtu_bytes)
    # what is lost holds the window until it has been repaired
    whole = max(min(window, send_window), 1)
    repairs = loss.repair_round_trips(setting.loss, whole / _packet_payload_bytes(setting, whole))
    window, send_window = int(window / repairs), int(send_window / repairs)
    least = max(min(window, send_window), 1)
    segments = least / mss
    if window <= send_window and not windows.ignores_adv_win_scale(setting.release):
        segments = max(1.0, window // mss) if window >= mss else segments  # what is left takes no segment
    segment_s = packet * 8 / setting.rate_bps * setting.flows
    rtt_s = setting.rtt_s if send_window < window else round_trip_s(setting, least)
    if segments * segment_s >= rtt_s:  # the link is busy, and what collects for a burst collects in its queue
        rtt_s = setting.rtt_s
    room = math.inf if setting.queue_bytes is None else setting.queue_bytes / packet / setting.flows
    duration_s = setting.duration_s
    if math.isinf(duration_s):
        duration_s = max(LONG_RUN_S, LONG_RUN_ROUND_TRIPS * setting.rtt_s)
    return Route(
        segment_s=segment_s,
        rtt_s=max(rtt_s, segment_s),
        room=room,
        window=segments,
        window_limit=RECEIVE_WINDOW if window <= send_window else SEND_BUFFER,
        loss=setting.loss,
        flows=setting.flows,
        mss_bytes=mss,
        duration_s=duration_s,
        offloads=setting.offloads,
        window_burst=sendbuf.flight(setting, window).burst_bytes / mss if send_window < window else 0.0,
    )


def _course(setting: Setting, window: int, send_window: int) -> _Course:
    route = _route(setting, window, send_window)
    courses = trajectory.steps(route, control(setting.cc), setting.cc)
    if setting.bytes_each is not None:
        segments = setting.bytes_each / route.mss_bytes / max(1 - setting.loss, 1e-9)
        courses = [until(course, segments) for course in courses]
    found = [_summed(setting, route, course) for course in courses]
    shares: dict[str, float] = {}
    steady: dict[str, float] = {}
    for one in found:
        for limit, share in one.shares.items():
            shares[limit] = shares.get(limit, 0.0) + share / len(found)
        steady[one.steady_limit] = steady.get(one.steady_limit, 0.0) + 1
    return _Course(
        steady_bps=sum(one.steady_bps for one in found) / len(found),
        mean_bps=sum(one.mean_bps for one in found) / len(found),
        ramp_s=sum(one.ramp_s for one in found) / len(found),
        rtt_s=sum(one.rtt_s for one in found) / len(found),
        shares={limit: shares[limit] for limit in limits.LIMITS if limit in shares},
        steady_limit=limits.dominant(steady),
    )


def _summed(setting: Setting, route: Route, course: Sequence[Step]) -> _Course:
    """Return one transfer as the metrics of a measured one see it."""
    ends = [0.0, *accumulate(step.span_s for step in course)]
    sent = [0.0, *accumulate(step.segments for step in course)]
    whole_s = ends[-1]
    t_s = [whole_s * number / _SAMPLES for number in range(_SAMPLES + 1)]
    if math.isinf(setting.duration_s) and setting.bytes_each is None:
        # nobody samples the long run: as finely as its ramp needs
        times, count = 4 * whole_s / route.rtt_s, 2 * _SAMPLES
        t_s = [0.0, *(whole_s * times ** (number / count - 1) for number in range(count + 1))]
    curve = [at(ends, sent, instant) for instant in t_s]
    start_s = steady_from_s(t_s, curve, 0.0, whole_s, setting.rtt_s)
    bits = setting.flows * route.mss_bytes * 8 * (1 - setting.loss)
    weights: dict[str, float] = {}
    steady_weights: dict[str, float] = {}
    rtt_weight = 0.0
    for step, end_s in zip(course, ends[1:], strict=True):
        weights[step.limit] = weights.get(step.limit, 0.0) + step.span_s / whole_s
        span_s = min(step.span_s, end_s - start_s)
        if span_s > 0:
            steady_weights[step.limit] = steady_weights.get(step.limit, 0.0) + span_s
            rtt_weight += span_s * step.rtt_s
    return _Course(
        steady_bps=(sent[-1] - at(ends, sent, start_s)) * bits / (whole_s - start_s),
        mean_bps=sent[-1] * bits / whole_s,
        ramp_s=start_s,
        rtt_s=rtt_weight / (whole_s - start_s),
        shares=weights,
        steady_limit=limits.dominant(steady_weights),
    )


def _bounds(setting: Setting, window: int, send_window: int) -> dict[str, float]:
    """Return the goodput that each limit alone would allow all flows, bit/s."""
    bounds = {LINK: setting.rate_bps * path.payload_share(setting.mtu_bytes)}
    for name, size in ((RECEIVE_WINDOW, window), (SEND_BUFFER, send_window)):
        repairs = loss.repair_round_trips(setting.loss, size / _packet_payload_bytes(setting, size))
        round_s = round_trip_s(setting, size) if name == RECEIVE_WINDOW else max(setting.rtt_s, 1e-9)
        bounds[name] = setting.flows * size * 8 / round_s / repairs
    return bounds


def _without(
    limit: str, setting: Setting, bounds: Mapping[str, float], window: int, send_window: int
) -> tuple[str, float]:
    """Return what would bind without a limit, and the goodput then."""
    ample = 2**30
    if limit in (RECEIVE_WINDOW, SEND_BUFFER):
        window, send_window = (ample, send_window) if limit == RECEIVE_WINDOW else (window, ample)
        course = _course(setting, window, send_window)
        return course.steady_limit, course.steady_bps
    others = {name: bounds[name] for name in (LINK, RECEIVE_WINDOW, SEND_BUFFER) if name != limit}
    if limit == LINK and setting.loss > 0:
        mss = path.mss_bytes(setting.mtu_bytes)
        bound = loss.rate_bound_bps(setting.cc, setting.loss, setting.rtt_s, mss, math.inf)
        others[LOSS] = setting.flows * bound
    least = min(others, key=lambda name: others[name])
    return least, others[least]
