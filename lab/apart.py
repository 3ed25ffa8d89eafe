"""Why settings that go together came out apart, and how far two engines are from each other overall.

Takes what `lab.compare` found and reads the samples of what differs. Not here:
the rules, see `lab.causes`.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab import causes, repeats
from lab.compare import Compared, Comparison, Measure
from lab.errors import StoreError
from lab.matching import Setting, Side, twin

THRESHOLD_PERCENT = 5.0
"""From which on the difference of one repetition is looked into: there is no interval to be outside of."""
LEAST_PERCENT = 1.0
"""From which on a difference beyond chance is: what is certain may still be too small to matter."""
ENGINE_COLUMNS = {"goodput_bps": "goodput", "loaded_rtt_s": "the RTT under load"}
"""By which engines are held against each other."""


@dataclass(frozen=True)
class Explained:
    """One difference and what is likely behind it. said: in a sentence or two, of no cause as well."""

    comparison: Comparison
    measure: Measure
    causes: tuple[causes.Cause, ...]
    said: str


def differs(measure: Measure) -> bool:
    """Return whether a difference is looked into.

    By several repetitions, one whose interval does not contain 0 and that is at least
    `LEAST_PERCENT`; by one, a difference of more than `THRESHOLD_PERCENT`, or from 0.
    """
    if measure.verdict is None or not measure.verdict.difference:
        return False
    if measure.verdict.apart is None:
        return measure.percent is None or abs(measure.percent) > THRESHOLD_PERCENT
    return measure.verdict.apart and (measure.percent is None or abs(measure.percent) >= LEAST_PERCENT)


def explain(found: Compared) -> list[Explained]:
    """Return every difference that is looked into, in the order of the comparison."""
    told = []
    for one in found.comparisons:
        measures = [measure for measure in one.measures if differs(measure)]
        if one.identical or not measures:
            continue
        a, b = (
            _side(found.sides[number], setting)
            for number, setting in ((0, one.baseline), (one.run, one.other))
        )
        for measure in measures:
            likely = causes.likely(measure.column, a, b)
            told.append(Explained(one, measure, tuple(likely), causes.said(likely, a, b)))
    return told


def _side(side: Side, setting: Setting) -> causes.Side:
    """Return one side of a comparison as the rules see it: its row, and what its first seed's samples say."""
    rows = [setting.rows[seed] for seed in sorted(setting.rows)]
    entry = next(one for one in setting.entries if one.seed == min(setting.rows))
    try:
        samples = side.stored.folder.rows("samples", [entry.id], causes.SAMPLES)
    except StoreError:  # the row alone says less, and what it says is right
        samples = []
    return causes.Side(side.name, causes.typical(rows), causes.observe(samples))


def engines(found: Compared) -> list[str]:
    """Return a sentence for each run of another engine than the baseline's, and for each twin of its.

    It says how far apart goodput and RTT under load are over all settings that go together.
    """
    base = found.sides[0]
    told = []
    for number, side in enumerate(found.sides[1:], 1):
        if base.engine == side.engine and twin(base, side) is None:
            continue
        pairs = [one for one in found.comparisons if one.run == number]
        parts = [_apart(found, pairs, column, word) for column, word in ENGINE_COLUMNS.items()]
        known = [part for part in parts if part]
        if not known:
            continue
        count = f"{len(pairs)} settings" if len(pairs) != 1 else "one setting"
        named = f"{base.name} ({base.engine}) and {side.name} ({side.engine})"
        told.append(f"{named} over {count}: {'; '.join(known)}.")
    return told


def _apart(found: Compared, pairs: Sequence[Comparison], column: str, word: str) -> str:
    """Return how far a column is apart in the median and at most; "" where no setting has it in both."""
    away = {
        number: abs(percent)
        for number, one in enumerate(pairs)
        if (percent := _percent(one.baseline.rows, one.other.rows, column)) is not None
    }
    if not away:
        return ""
    middle, most = statistics.median(away.values()), max(away, key=away.__getitem__)
    if not away[most]:
        return f"{word} is the same"
    if len(away) == 1:
        return f"{word} is {_digits(middle)} % apart"
    return (
        f"{word} is {_digits(middle)} % apart in the median and {_digits(away[most])} % at most"
        f" ({found.label(pairs[most].other)})"
    )


def _digits(percent: float) -> str:
    return f"{percent:.0f}" if percent >= 10 else f"{percent:.2g}"


def _percent(
    a: Mapping[int, Mapping[str, object]], b: Mapping[int, Mapping[str, object]], column: str
) -> float | None:
    """Return the difference of the means, percent of the first; None where there is none to speak of."""
    ours, theirs = (repeats.numbers(rows.values(), column) for rows in (a, b))
    if not ours or not theirs:
        return None
    before, now = (statistics.fmean(values.values()) for values in (ours, theirs))
    return 100 * (now - before) / abs(before) if before else None
