"""What a path is, estimated from what was seen of it: rate, base RTT, jitter.

Pure functions of numbers and rows of table `samples`. Rates bit/s as a shaper
counts them, times s, sizes bytes. Not here: loss and queue, see
`lab.twin.losses`; which records they are given and what is said of them, see
`lab.twin.path`.
"""

from __future__ import annotations

import bisect
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

Row = Mapping[str, Any]

LEAST_PINGS = 8
"""Idle pings of which half say something of their spread."""
RESOLVED_S = 20e-6
"""Spread of the idle RTTs under which it is the clocks' and the hosts': a path without
jitter shows as much (`pathcheck.RTT_TOLERANCE_S`). RFC 2681, section 2.7: a time is
uncertain by the clocks' resolution and by what lies between wire and host."""
OVER_TRAIN, UNDER_TRAIN = 1.02, 0.9
"""Throughput over a train's rate by more than its accuracy (`pathcheck.RATE_TOLERANCE`) contradicts it; one
under it does where the queue was full."""
LEAST_WINDOW_S, WINDOW_RTTS = 1.0, 8
"""Over which throughput is taken: long enough that a burst of acknowledgements does not count as a rate."""
_LOOSE = 0.1
"""Standard error, of a train's rate by least squares, from which on it says nothing."""
_MASSEY = 1.36
"""Over sqrt(n): what a Kolmogorov-Smirnov distance stays under in 95 % of all cases."""


class Spread(NamedTuple):
    """The middle of n values and the least and largest of them."""

    value: float
    low: float
    high: float
    n: int


def spread(values: Sequence[float]) -> Spread | None:
    """Return median, least and largest of values; None without any."""
    if not values:
        return None
    return Spread(statistics.median(values), min(values), max(values), len(values))


# rate


class Slope(NamedTuple):
    """A train's rate by least squares, bit/s, and its standard error, of it."""

    rate_bps: float
    error: float


def slope_rate(train: Sequence[Sequence[int]], packet_bytes: int) -> Slope | None:
    """Return the rate of a train by the slope of arrival over number; None where it says nothing.

    train: (number, arrival in ns) of full packets sent in one go. Its second half
    counts: before, a shaper's bucket is emptied. rate = 8 x packet / slope; the
    error is that of a slope by ordinary least squares, so arrivals may be late by
    chance (jitter). What trains measure: Dovrolis, Ramanathan, Moore, INFOCOM 2001.
    None for fewer than eight arrivals or an error of over a tenth.
    """
    later = sorted((int(number), int(ns)) for number, ns in train if number >= len(train) // 2)
    if len(later) < 8:
        return None
    n = len(later)
    x_mean = math.fsum(number for number, _ in later) / n
    first_ns = later[0][1]
    y_mean = math.fsum(ns - first_ns for _, ns in later) / n
    square = math.fsum((number - x_mean) ** 2 for number, _ in later)
    slope_ns = math.fsum((number - x_mean) * (ns - first_ns - y_mean) for number, ns in later) / square
    if slope_ns <= 0:
        return None
    rest = math.fsum((ns - first_ns - y_mean - slope_ns * (number - x_mean)) ** 2 for number, ns in later)
    error = math.sqrt(rest / (n - 2) / square) / slope_ns
    return Slope(packet_bytes * 8e9 / slope_ns, error) if error <= _LOOSE else None


def delivered(flows: Sequence[Sequence[Row]]) -> tuple[list[float], list[float]]:
    """Return instants, and the bytes of payload delivered by them, of all these flows together.

    flows: the senders' samples of each flow, in time. A sender learns of delivery
    by acknowledgements: tcpi_delivered counts segments, those out of order too, so
    that it has no steps where a hole is filled; times tcpi_snd_mss.
    """
    each = [
        [
            (float(row["t_s"]), float(row["tcpi_delivered"]) * float(row["tcpi_snd_mss"]))
            for row in rows
            if row.get("tcpi_delivered") is not None and row.get("tcpi_snd_mss")
        ]
        for rows in flows
    ]
    instants = sorted({t_s for pairs in each for t_s, _ in pairs})
    total = [0.0] * len(instants)
    for pairs in each:
        for number, value in enumerate(_interpolated(pairs, instants)):
            total[number] += value
    return instants, total


def _interpolated(pairs: Sequence[tuple[float, float]], at_s: Sequence[float]) -> list[float]:
    """Return a line through points at instants; level before the first and after the last."""
    if not pairs:
        return [0.0] * len(at_s)
    times = [t_s for t_s, _ in pairs]
    found = []
    for t_s in at_s:
        place = bisect.bisect_right(times, t_s)
        if place == 0:
            found.append(0.0 if t_s < times[0] else pairs[0][1])
        elif place == len(times):
            found.append(pairs[-1][1])
        else:
            (t0, v0), (t1, v1) = pairs[place - 1], pairs[place]
            found.append(v0 + (v1 - v0) * (t_s - t0) / (t1 - t0))
    return found


def largest_throughput_bps(
    t_s: Sequence[float], payload_bytes: Sequence[float], share: float, base_rtt_s: float
) -> float | None:
    """Return the largest throughput over a window, bit/s as a shaper counts it; None for a shorter record.

    t_s, payload_bytes: see `delivered`. share: payload of a byte on the wire. The
    window is a second, or eight base RTTs where that is longer, or half of the
    record where it is shorter: 8 x (bytes at its end - at its start) / its length / share.
    """
    if len(t_s) < 3 or t_s[-1] <= t_s[0]:
        return None
    window_s = min(max(LEAST_WINDOW_S, WINDOW_RTTS * base_rtt_s), (t_s[-1] - t_s[0]) / 2)
    pairs = list(zip(t_s, payload_bytes, strict=True))
    starts = [one for one in t_s if one + window_s <= t_s[-1] + 1e-9]
    before = _interpolated(pairs, starts)
    after = _interpolated(pairs, [one + window_s for one in starts])
    most = max(b - a for a, b in zip(before, after, strict=True))
    return most * 8 / window_s / share


class Rate(NamedTuple):
    """A rate, bit/s, and what it rests on: "train", "slope" or "throughput"; sure: or it is at least that."""

    rate_bps: float
    basis: str
    sure: bool


def rate(
    trains_bps: Sequence[float], slopes_bps: Sequence[float], throughput_bps: float | None, *, full: bool
) -> Rate | None:
    """Return the bottleneck's rate; None where nothing was seen of it.

    The median of the trains' rates, unless the largest throughput contradicts it:
    flows that carried more, or less than nine tenths although the queue was full,
    since a token bucket lets a train pass faster than it lets a flow. full: whether
    drops at a full queue were seen. Then, and without a train, it is the throughput: at
    least, unless the queue was full; and where no flow filled it the median of the
    slopes, which are less accurate. RFC 6349, section 3.2: the rate comes before the test.
    """
    given, basis = (trains_bps, "train") if trains_bps else (slopes_bps, "slope")
    if throughput_bps is None:
        return Rate(statistics.median(given), basis, True) if given else None
    if not given or (full and basis == "slope"):
        return Rate(throughput_bps, "throughput", full)
    train_bps = statistics.median(given)
    if throughput_bps > OVER_TRAIN * train_bps or (full and throughput_bps < UNDER_TRAIN * train_bps):
        return Rate(throughput_bps, "throughput", full)
    return Rate(train_bps, basis, True)


# RTT and jitter


class Jitter(NamedTuple):
    """Jitter as netem has it: its parameter, s, and its distribution; rtt_s: the mean RTT that goes with it.

    iqr_s: the middle half of the RTTs, from which it is taken.
    """

    jitter_s: float
    distribution: str
    rtt_s: float
    iqr_s: float


class _Shape(NamedTuple):
    """A distribution of netem with parameter 1 around mean 0: its middle half, its median, its CDF."""

    iqr: float
    median: float
    cdf: Callable[[float], float]


_NORMAL = statistics.NormalDist()


def _uniform_cdf(x: float) -> float:
    return min(1.0, max(0.0, (x + 1) / 2))


def _pareto_cdf(x: float) -> float:
    y = 0.75 * x + 1.5
    return 1 - y**-3 if y > 1 else 0.0


SHAPES: Mapping[str, _Shape] = {
    "uniform": _Shape(1.0, 0.0, _uniform_cdf),
    "normal": _Shape(2 * _NORMAL.inv_cdf(0.75), 0.0, _NORMAL.cdf),
    "pareto": _Shape(4 / 3 * (4 ** (1 / 3) - (4 / 3) ** (1 / 3)), 4 / 3 * (2 ** (1 / 3) - 1.5), _pareto_cdf),
}
"""netem's distributions: tabledist() of net/sched/sch_netem.c, uniform between mean - 1
and mean + 1 without a table; netem/normal.c and netem/pareto.c of iproute2, the latter
(u^(-1/3) - 1.5) x 4/3 of a uniform u. A mix of these two, paretonormal, is not told from them."""


def base_rtt_s(rtts_s: Sequence[float]) -> float | None:
    """Return the least of the idle RTTs, s: all that adds to a path's own delay is waiting. None without any.

    RFC 6349, section 3.2: the baseline RTT is that of the idle path. The least, since
    hosts and queues add to it by chance and never take away.
    """
    return max(0.0, min(rtts_s)) if rtts_s else None


def jitter(rtts_s: Sequence[float], resolved_s: float = RESOLVED_S) -> Jitter | None:
    """Return the jitter of the idle RTTs, None where they spread no wider than what is resolved.

    The spread is the middle half (the interquartile range), which a ping that a host
    delayed does not move. The parameter is that range over the one of the distribution
    with parameter 1. The distribution is the first of `SHAPES`, the plainest, that a
    Kolmogorov-Smirnov test at 5 % does not reject (distance up to 1.36 / sqrt(n); Massey,
    JASA 46(253), 1951), or the nearest where it rejects all. All of the jitter is taken to
    be on one way, as netem's is here. None for fewer than 8 pings.
    """
    if len(rtts_s) < LEAST_PINGS:
        return None
    low, middle, high = statistics.quantiles(rtts_s, n=4, method="inclusive")
    if high - low <= resolved_s:
        return None
    fits = {name: _fit(name, middle, high - low) for name in SHAPES}
    distances = {name: _distance(rtts_s, SHAPES[name], fit) for name, fit in fits.items()}
    borne = [name for name, distance in distances.items() if distance <= _MASSEY / math.sqrt(len(rtts_s))]
    return fits[borne[0] if borne else min(distances, key=distances.__getitem__)]


def _fit(name: str, median_s: float, iqr_s: float) -> Jitter:
    shape = SHAPES[name]
    size_s = iqr_s / shape.iqr
    return Jitter(size_s, name, median_s - shape.median * size_s, iqr_s)


def _distance(values: Sequence[float], shape: _Shape, fit: Jitter) -> float:
    """Return the largest distance between the distribution of the values and one of netem's."""
    n = len(values)
    cdfs = [shape.cdf((value - fit.rtt_s) / fit.jitter_s) for value in sorted(values)]
    return max(max((k + 1) / n - cdf, cdf - k / n) for k, cdf in enumerate(cdfs))
