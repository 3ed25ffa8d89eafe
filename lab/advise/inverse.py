"""The model read backwards: the least buffer whose predicted goodput reaches a goal. Runs nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from lab import memory
from lab.advise.ask import least_bytes
from lab.model.inputs import Setting
from lab.model.predict import predict
from lab.model.windows import receive_window_bytes

MOST_WINDOW_BYTES = 65535 << 14
"""The largest window that TCP can advertise: RFC 7323, section 2.3."""

_STEPS = 48
"""Halvings of the bracket: enough for one byte in 2 GiB."""


def with_buffer(setting: Setting, which: str, size_bytes: int) -> Setting:
    """Return a setting with another largest buffer, autotuning up to it."""
    triple = memory.parse(f"max={size_bytes}B", which)
    return replace(setting, rmem=triple) if which == "rmem" else replace(setting, wmem=triple)


def least_size(reaches: Callable[[int], bool], least: int, most: int) -> int:
    """Return the least size in [least, most] for which a rising predicate holds; `most` where none does."""
    low, high = least, most
    if reaches(low):
        return low
    for _ in range(_STEPS):
        if high - low <= 1:
            break
        middle = round(math.sqrt(low * high)) if high > 2 * low else (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high


def least_buffer(setting: Setting, which: str, goal_bps: float, most: int) -> int:
    """Return the least `tcp_rmem[2]` or `tcp_wmem[2]` that the model says reaches a goodput, bytes.

    The setting's other buffer stays. A goal above what the model gives `most` is
    taken down to that, so that there is an answer.
    """

    def goodput_bps(size: int) -> float:
        return predict(with_buffer(setting, which, size)).predicted_goodput_bps

    goal = min(goal_bps, goodput_bps(most) * 0.999)
    return least_size(lambda size: goodput_bps(size) >= goal, least_bytes(which), most)


def single_segments_factor(setting: Setting, size_bytes: int) -> float:
    """Return how much larger a receive buffer has to be where segments arrive singly, at least 1.

    Since Linux 6.6 the window is the share of the buffer that arriving segments
    turn into payload, and merged ones have more of it; before, no difference.
    """
    merged, single = (
        receive_window_bytes(with_buffer(replace(setting, offloads=offloads), "rmem", size_bytes))
        for offloads in (True, False)
    )
    return max(1.0, merged / single)
