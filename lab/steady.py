"""Where the ramp of a transfer ends and its steady part begins: one rule for records and predictions.

Let R be the mean rate over the second half of the load. The ramp ends with the
first window, one RTT or five samples long, whichever is longer, whose mean rate
reaches 95 % of R; it never takes more than half.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

RAMP_SHARE = 0.95
RAMP_SAMPLES = 5


def at(t_s: Sequence[float], values: Sequence[float], instant: float) -> float:
    """Return what a rising curve of samples has reached at an instant, linear between samples."""
    after = bisect_right(t_s, instant)
    if after == 0:
        return float(values[0])
    if after == len(t_s):
        return float(values[-1])
    share = (instant - t_s[after - 1]) / (t_s[after] - t_s[after - 1])
    return float(values[after - 1] + share * (values[after] - values[after - 1]))


def steady_from_s(
    t_s: Sequence[float], delivered: Sequence[float], begin_s: float, end_s: float, rtt_s: float
) -> float:
    """Return where the ramp ends. t_s, delivered: n samples, rising; what had come by each instant."""

    def rate(from_s: float, to_s: float) -> float:
        return (at(t_s, delivered, to_s) - at(t_s, delivered, from_s)) / (to_s - from_s)

    half_s = (begin_s + end_s) / 2
    reference = rate(half_s, end_s)
    inside = [instant for instant in t_s if begin_s < instant < half_s]
    if not inside or reference <= 0:
        return half_s
    window_s = max(rtt_s, RAMP_SAMPLES * median(later - earlier for earlier, later in pairwise(t_s)))
    for instant in inside:
        if instant - window_s >= begin_s and rate(instant - window_s, instant) >= RAMP_SHARE * reference:
            return float(instant)
    return half_s
