"""Numbers of a few repetitions: how sure their mean is, and whether two settings can be told apart.

Intervals come from resampling (Efron and Tibshirani, An Introduction to the
Bootstrap, 1993), with a fixed seed: equal values, equal interval. Not here:
which rows are repetitions of which setting, see `lab.repeats`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Statistic = Literal["mean", "median"]

LEVEL = 0.95
"""Of every interval: two-sided, 5 % outside."""

POWER = 0.80
"""How often a difference as large as the one seen should be found, for `needed_n`."""

FEW = 5
"""Fewer repetitions than these need a caution, see `caution`."""

MOST_NEEDED = 10_000
"""As many repetitions as `wanlab run` takes; sentences do not count beyond."""

RESAMPLES = 9999
_SEED = 20_260_101
_Z_LEVEL, _Z_POWER = 1.959963984540054, 0.8416212335729143  # normal quantiles of 0.975 and 0.80

ALL_EQUAL = "all equal"


@dataclass(frozen=True)
class Interval:
    """A confidence interval at `LEVEL`; method: "BCa", "percentile" or "all equal", also with Student's t."""

    low: float
    high: float
    method: str

    @property
    def half_width(self) -> float:
        """Half of its width, the number behind a ±; the interval itself need not be symmetric."""
        return (self.high - self.low) / 2

    def contains(self, value: float) -> bool:
        """Return whether a value lies in it, its ends included."""
        return self.low <= value <= self.high

    def scaled(self, factor: float) -> Interval:
        """Return the interval of a quantity that is `factor` times this one."""
        low, high = sorted((self.low * factor, self.high * factor))
        return Interval(low, high, self.method)


@dataclass(frozen=True)
class Estimate:
    """The mean (or median) of n values.

    spread: their standard deviation with n - 1, None for one value.
    interval: None for one value; of no width where all values are equal.
    """

    value: float
    n: int
    spread: float | None
    interval: Interval | None

    @property
    def constant(self) -> bool:
        """Whether there are several values, and every seed gave the same."""
        return self.interval is not None and self.interval.method == ALL_EQUAL


@dataclass(frozen=True)
class Verdict:
    """Whether two settings, a and b, differ by more than chance.

    difference: mean of b less mean of a; interval: of that difference, None
    where a setting has one repetition. paired: by seed. apart: None where
    nothing can be said. needed_n: about how many repetitions of each would tell
    a difference as large as this one, None where there is none or no spread.
    """

    a: Estimate
    b: Estimate
    difference: float
    interval: Interval | None
    paired: bool
    apart: bool | None
    needed_n: int | None


def estimate(values: Sequence[float], statistic: Statistic = "mean") -> Estimate:
    """Return the estimate of one or more finite values, in any order. Raises ValueError for none.

    The interval is BCa (Efron, JASA 82 (1987) 171-185), or by percentiles where
    BCa has no answer and for a median: BCa leans on the jackknife, which fails
    for medians (Efron and Tibshirani 1993, chapter 11). For a few values it is
    too narrow, see `caution`.
    """
    x = np.sort(np.asarray(values, dtype=np.float64))  # sorted, so that order decides nothing
    if not len(x):
        raise ValueError("an estimate needs at least one value")
    value = float(np.median(x)) if statistic == "median" else _mean(x)
    if len(x) == 1:
        return Estimate(value, 1, None, None)
    if x[0] == x[-1]:
        return Estimate(value, len(x), 0.0, Interval(value, value, ALL_EQUAL))
    function = np.median if statistic == "median" else np.mean
    interval = _bootstrap((x,), function, bca=statistic == "mean")
    return Estimate(value, len(x), float(np.std(x, ddof=1)), interval)


def tell_apart(a: Mapping[int, float], b: Mapping[int, float]) -> Verdict:
    """Return whether the means of two settings differ; each is {seed: value}, at least one.

    Where both have the same seeds the interval is of the differences seed by
    seed, which is right whether or not equal seeds drew alike; otherwise of two
    samples that have nothing to do with each other. A bootstrap interval is too
    narrow for a few values (Hesterberg, The American Statistician 69 (2015)
    371-386: less accurate than Student's t for small samples), so the decision
    takes the wider of it and Student's, at each end: with three seeds the former
    alone would see a difference in every fourth pair of equal settings.
    """
    mean_a, mean_b = estimate(list(a.values())), estimate(list(b.values()))
    difference = mean_b.value - mean_a.value
    paired = a.keys() == b.keys()
    if mean_a.spread is None or mean_b.spread is None:
        return Verdict(mean_a, mean_b, difference, None, paired, None, None)
    if mean_a.constant and mean_b.constant:
        exact = Interval(difference, difference, ALL_EQUAL)
        return Verdict(mean_a, mean_b, difference, exact, paired, difference != 0, None)
    by_seed = np.array([b[seed] - a[seed] for seed in sorted(a)]) if paired else np.empty(0)
    if paired and by_seed.min() < by_seed.max():
        interval = _of_differences(by_seed)
        variance = float(np.var(by_seed, ddof=1))
    else:  # also where a few counts happen to differ by the same number: that is no certainty
        interval = _of_two(np.array(sorted(a.values())), np.array(sorted(b.values())))
        variance = mean_a.spread**2 + mean_b.spread**2
    apart = not interval.contains(0.0)
    needed = needed_n(variance, difference)
    if needed is not None and not apart:
        needed = max(needed, mean_a.n + 1, mean_b.n + 1)  # the approximation is a little short for a few
    return Verdict(mean_a, mean_b, difference, interval, paired, apart, needed)


def needed_n(variance: float, difference: float) -> int | None:
    """Return about how many repetitions of each setting would tell this difference; None for none at all.

    (z(0.975) + z(0.80))² variance / difference², rounded up: the normal
    approximation for a two-sided test at 5 % with a power of 80 % (NIST/SEMATECH
    e-Handbook of Statistical Methods, section 7.2.2.2). variance: of the
    differences where they are paired, otherwise the sum of both settings'.
    The difference seen is itself uncertain, and this number twice as much.
    """
    if variance <= 0 or difference == 0:
        return None
    wanted = ((_Z_LEVEL + _Z_POWER) / difference) ** 2 * variance
    return math.ceil(wanted) if math.isfinite(wanted) else None


def caution(n: int) -> str:
    """Return a sentence on the interval of so few repetitions, "" where there are enough of them.

    Resampling never leaves the range of the values. All n of them lie on one
    side of the middle of their distribution with probability 2^(1-n); then the
    interval misses it.
    """
    if not 1 < n < FEW:
        return ""
    missed = 100 * 2.0 ** (1 - n)
    return (
        f"{n} repetitions are few: the ± of a mean comes from resampling, which stays within their range and"
        f" so misses the truth in at least {missed:.3g} % of all cases, not in 5 %. Differences are judged by"
        f" Student's t as well. Take {FEW} or more."
    )


def sentence(verdict: Verdict, a: str, b: str, say: Callable[[Estimate], str]) -> str:
    """Return a verdict in words. a, b: what the settings are called; say: an estimate with its unit."""
    named_a, named_b = f"{a} ({say(verdict.a)})", f"{b} ({say(verdict.b)})"
    if verdict.apart is None:
        return f"One repetition does not say whether {named_a} differs from {named_b}; --repeat gives more."
    if verdict.a.constant and verdict.b.constant and not verdict.difference:
        return f"{a} and {b} give the same with every seed: {say(verdict.a)}."
    counts = str(verdict.a.n) if verdict.a.n == verdict.b.n else f"{verdict.a.n} and {verdict.b.n}"
    if verdict.apart:
        return f"{counts} repetitions tell {named_a} from {named_b}."
    start = f"{counts} repetitions cannot tell {named_a} from {named_b}"
    return f"{start}; {wanted(verdict.needed_n)}."


def wanted(needed: int | None) -> str:
    """Return how many repetitions would tell a difference as large as the one seen, in words."""
    if needed is None:
        return "their means are equal"
    if needed > MOST_NEEDED:
        return f"more than {MOST_NEEDED} each would be needed"
    return f"about {_rounded(needed)} each would"


def _rounded(count: int) -> int:
    """Return a count to two digits, upwards: more of them it does not have."""
    step: int = 10 ** max(0, len(str(count)) - 2)
    return -(-count // step) * step


def _mean(x: Floats) -> float:
    """Return the mean, within the range of the values: a sum of equal ones may round out of it."""
    return min(max(math.fsum(x) / len(x), float(x[0])), float(x[-1]))


def _bootstrap(samples: tuple[Floats, ...], statistic: Callable[..., Any], *, bca: bool) -> Interval:
    """Return the interval of a statistic: BCa if it can, else by percentiles."""
    from scipy import stats  # noqa: PLC0415 (takes most of a second, and most runs have one seed)

    for method in ("BCa", "percentile") if bca else ("percentile",):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of degenerate samples; then the ends are not finite
            found = stats.bootstrap(
                samples,
                statistic,
                vectorized=True,
                confidence_level=LEVEL,
                n_resamples=RESAMPLES,
                method=method,
                rng=np.random.default_rng(_SEED),
            ).confidence_interval
        if math.isfinite(found.low) and math.isfinite(found.high):
            break
    return Interval(float(found.low), float(found.high), method)


def _of_differences(by_seed: Floats) -> Interval:
    """Return the interval of the mean of differences that are not all equal."""
    drawn = _mirrored((np.sort(by_seed),), (np.sort(-by_seed),), np.mean)
    error = float(np.std(by_seed, ddof=1)) / math.sqrt(len(by_seed))
    return _with_student(drawn, float(np.mean(by_seed)), error, len(by_seed) - 1)


def _of_two(a: Floats, b: Floats) -> Interval:
    """Return the interval of the mean of b less that of a, two unpaired samples, sorted.

    Student's t as Welch (Biometrika 34, 1947) has it: the spreads may differ.
    """
    drawn = _mirrored((a, b), (b, a), _difference_of_means)
    squares = [float(np.var(x, ddof=1)) / len(x) for x in (a, b)]
    if not sum(squares):
        return drawn  # values that differ by less than a square can hold
    freedom = sum(squares) ** 2 / sum(s**2 / (len(x) - 1) for s, x in zip(squares, (a, b), strict=True))
    return _with_student(drawn, float(np.mean(b) - np.mean(a)), math.sqrt(sum(squares)), freedom)


def _mirrored(
    samples: tuple[Floats, ...], exchanged: tuple[Floats, ...], statistic: Callable[..., Any]
) -> Interval:
    """Return the interval of a statistic that changes its sign with `exchanged`, and so does the interval."""
    one, other = ([x.tolist() for x in given] for given in (samples, exchanged))
    if one > other:
        return _bootstrap(exchanged, statistic, bca=True).scaled(-1.0)
    drawn = _bootstrap(samples, statistic, bca=True)
    if one < other:
        return drawn
    reach = max(-drawn.low, drawn.high)
    return Interval(-reach, reach, drawn.method)


def _difference_of_means(x: Floats, y: Floats, axis: int = -1) -> Floats:
    found: Floats = np.mean(y, axis=axis) - np.mean(x, axis=axis)
    return found


def _with_student(drawn: Interval, middle: float, error: float, freedom: float) -> Interval:
    """Return an interval, wider at each end where Student's t is."""
    from scipy import special  # noqa: PLC0415 (with scipy.stats, see above)

    reach = error * float(special.stdtrit(freedom, (1 + LEVEL) / 2))
    low, high = min(drawn.low, middle - reach), max(drawn.high, middle + reach)
    widened = (low, high) != (drawn.low, drawn.high)
    return Interval(low, high, f"{drawn.method} and Student's t" if widened else drawn.method)
