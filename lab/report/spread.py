"""What repetitions come to on a plot: their mean, how sure it is, and the words for both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lab import statistics
from lab.report.columns import Scale


class Spread(NamedTuple):
    """The mean of n values with its interval, whose ends are the mean where there is only one value."""

    mean: float
    low: float
    high: float
    n: int

    def words(self, scale: Scale) -> str:
        """Return mean and interval as pointing at a mark says them; "" for one value."""
        if self.n == 1:
            return ""
        told = f"mean of {self.n} seeds {scale.text(self.mean)}"
        if self.low == self.high:
            return f"{told}, all equal"
        return f"{told}, 95 % interval {self.low / scale.factor:.4g} to {scale.text(self.high)}"


def of(values: Sequence[float]) -> Spread:
    """Return what repetitions come to. Interval: see `lab.statistics.estimate`."""
    found = statistics.estimate(values)
    low, high = (found.value,) * 2 if found.interval is None else (found.interval.low, found.interval.high)
    return Spread(found.value, low, high, found.n)


def bars(spreads: Sequence[Spread], factor: float, colour: str) -> dict[str, object] | None:
    """Return plotly's error bars of means in units of `factor`; None where no mean has an interval."""
    if all(spread.n == 1 for spread in spreads):
        return None
    return {
        "type": "data",
        "symmetric": False,
        "array": [(spread.high - spread.mean) / factor for spread in spreads],
        "arrayminus": [(spread.mean - spread.low) / factor for spread in spreads],
        "color": colour,
        "thickness": 1.6,
        "width": 5,
    }


def caption(counts: Iterable[int]) -> str:
    """Return what to know of bars over so many repetitions each, "" where there are no bars."""
    several = [count for count in counts if count > 1]
    if not several:
        return ""
    told = "Bars are 95 % intervals of the mean, by resampling."
    least = min(several)
    if least < statistics.FEW:
        told += f" {least} repetitions are few, and their bars too short: take {statistics.FEW} or more."
    return told
