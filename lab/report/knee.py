"""The knee of a curve: from which buffer on more of it hardly helps."""

from __future__ import annotations

from collections.abc import Mapping

REACHED = 0.95
"""Of the best of its curve: from here a value is good enough."""


def find(values: Mapping[float, float]) -> float | None:
    """Return the smallest position that reaches `REACHED` of the best value; None for a curve without a knee.

    values: {position: value}. A curve has a knee only where some smaller
    position falls short and some larger one was tried: else nobody knows where
    it rises, or whether it goes on rising.
    """
    best = max(values.values(), default=0.0)
    order = sorted(values)
    for place, position in enumerate(order):
        if values[position] >= REACHED * best > 0:
            return position if 0 < place < len(order) - 1 else None
    return None
