"""What a run says in sentences of flows that compete and of settings that were repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lab import measures, repeats

Row = Mapping[str, Any]

COLUMN = "steady_goodput_bps"
"""What settings are told apart by."""


def harm_sentences(rows: Sequence[Row]) -> list[str]:
    """Return what each mix of congestion controls costs those in it, where there is what to compare with."""
    told = []
    for one in measures.harms(rows):
        if one.goodput is not None:
            change = f"{abs(one.goodput) * 100:.0f} % {'less' if one.goodput >= 0 else 'more'}"
            told.append(
                f"Harm in point {one.point}: beside {one.others} a flow of {one.victim} has {change} goodput"
                f" than among its own kind ({one.goodput:+.2f})."
            )
    return told


def repeat_sentences(rows: Sequence[Row]) -> list[str]:
    """Return which settings the repetitions of a run cannot tell apart; none where nothing was repeated."""
    if len({row["seed"] for row in rows}) < 2:
        return []
    return repeats.indistinct(repeats.summarise(rows), COLUMN)
