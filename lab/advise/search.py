"""The search for the least buffer that reaches a goal: sizes to try in, answers back. Runs nothing.

A guess is tried from both sides at once; where it was right that ends the
search. Where it was wrong the bracket is widened by growing steps and then cut
geometrically, so many sizes a round as can run side by side: k sizes leave one
part in k + 1.
"""

from __future__ import annotations

import math

PRECISION = 1.03
"""A found size is at most so many times the largest size below it that fell short."""

_FIRST_STEP = 1.15
_LARGEST_STEP = 64.0


def grid(size_bytes: float) -> int:
    """Return the nearest size on a grid of about 0.3 %, so that equal searches ask for equal sizes."""
    step: int = 2 ** max(0, math.floor(math.log2(max(size_bytes, 1))) - 8)
    return max(1, round(size_bytes / step) * step)


class Search:
    """Finds the least size in [least, most] that reaches the goal; `most` is known to reach it.

    Goodput need not grow with the buffer (an overfull queue costs some). Of
    several crossings in what was tried the topmost one of the bracket is kept,
    so every size that was tried between the result and the bracket's end reached.
    """

    def __init__(self, guess: float, least: int, most: int, precision: float = PRECISION) -> None:
        if not 0 < least <= most:
            raise ValueError(f"no range: {least} to {most}")
        self._guess = min(max(guess, least), most)
        self._least, self._precision = least, precision
        self._low: int | None = None
        self._high = most
        self._most = most
        self._step = _FIRST_STEP
        self._begun = False
        self.told: dict[int, bool] = {most: True}

    @property
    def done(self) -> bool:
        """Whether nothing is left to try."""
        if self._low is None:
            return self._high <= self._least
        return self._high <= self._low * self._precision or not self._inside(16)

    @property
    def result(self) -> int:
        """The least size known to reach the goal, bytes."""
        return self._high

    @property
    def short(self) -> int | None:
        """The largest size below it that fell short, None where even the least size reached."""
        return self._low

    def propose(self, count: int) -> list[int]:
        """Return up to `count` sizes to try next, rising; none when the search is done."""
        if self.done:
            return []
        if not self._begun:
            sizes = self._around(count)
        elif self._low is None:
            sizes = self._below(count)
        elif self._high == self._most and self._low * self._step < self._high:
            sizes = self._above(count)
        else:
            sizes = self._inside(count)
        return sizes or self._inside(16)[:1]  # on the grid of small sizes a few may coincide

    def tell(self, answers: dict[int, bool]) -> None:
        """Take what came of the proposed sizes: {size: reached}."""
        if not answers:
            return
        if self._begun:
            self._step = min(self._step**2, _LARGEST_STEP)
        self._begun = True
        self.told.update(answers)
        for size in sorted(answers, reverse=True):
            if size >= self._high:
                continue
            if not answers[size]:
                self._low = max(size, self._low or 0)
                break
            self._high = size

    def _clean(self, sizes: list[float]) -> list[int]:
        """Return sizes on the grid, strictly inside what is still open, each once."""
        floor = self._least - 1 if self._low is None else self._low
        on_grid = {max(self._least, grid(size)) for size in sizes}
        return sorted(size for size in on_grid if floor < size < self._high and size not in self.told)

    def _around(self, count: int) -> list[int]:
        # an even number straddles the guess; the ends lie a step of the precision apart from each other
        places = [place - (count - 1) / 2 for place in range(count)]
        apart = self._precision * 0.993  # rounding to the grid may come on top
        sizes = [self._guess * apart ** (place if count > 1 else 0.5) for place in places]
        return self._clean(sizes) or self._below(count)

    def _below(self, count: int) -> list[int]:
        sizes = [self._high / self._step**power for power in range(1, count + 1)]
        return self._clean(sizes) or self._clean([float(self._least)])

    def _above(self, count: int) -> list[int]:
        assert self._low is not None
        sizes = [self._low * self._step**power for power in range(1, count + 1)]
        return self._clean(sizes) or self._inside(count)

    def _inside(self, count: int) -> list[int]:
        low = self._least if self._low is None else self._low
        ratio = self._high / low
        return self._clean([low * ratio ** (place / (count + 1)) for place in range(1, count + 1)])
