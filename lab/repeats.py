"""Repetitions: points that differ in nothing but their seed, and settings that they cannot tell apart.

Rows are those of table `points`, of one run. Not here: the statistics, see
`lab.statistics`, and points of different runs, see `lab.compare`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab import schema
from lab.errors import UserError
from lab.knobs import PATH_KNOBS
from lab.statistics import Estimate, Interval, Verdict, caution, estimate, sentence, tell_apart

Row = Mapping[str, Any]

COLUMNS = ("goodput_bps", "steady_goodput_bps", "loaded_rtt_s", "retransmits")
"""What is summarised where nobody chose."""

MOST_SENTENCES = 10
MOST_PAIRS = 500
"""Pairs that `indistinct` looks at, a few milliseconds each: next values of a knob before distant ones."""

NUMBERS = {column.name: column for column in schema.POINT_COLUMNS if column.kind in ("int", "float")}
"""Every column of numbers in table `points`, by its name."""

_SUFFIXES = ("_bps", "_s", "_bytes", "_percent")


@dataclass(frozen=True)
class Group:
    """One setting: all its repetitions that are done.

    knobs: every knob with its text. label: what tells it from the other groups
    of the same rows, "" for the only one. values: {column: {seed: number}} of
    the columns that were asked for; estimates: of those, None where no
    repetition has a number. failed: how many repetitions failed.
    """

    knobs: Mapping[str, str]
    label: str
    n: int
    failed: int
    values: Mapping[str, Mapping[int, float]]
    estimates: Mapping[str, Estimate | None]


@dataclass(frozen=True)
class Pair:
    """Two groups that differ in one knob, and whether their repetitions tell them apart."""

    knob: str
    a: Group
    b: Group
    verdict: Verdict


def column(name: str) -> str:
    """Return the column of numbers with this name, its unit left out or not. Raises UserError."""
    for candidate in (name, *(f"{name}{suffix}" for suffix in _SUFFIXES)):
        if candidate in NUMBERS:
            return candidate
    import difflib  # noqa: PLC0415 (only when something is wrong)

    near = difflib.get_close_matches(name, NUMBERS, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "docs/reference/tables.md lists them"
    raise UserError(f"{name!r} is not a column of numbers of table points; {hint}")


def knobs(row: Row) -> dict[str, str]:
    """Return every knob of a row as text; one that its run did not know has its default."""
    told = {name: row.get(name) for name in PATH_KNOBS}
    return {name: PATH_KNOBS[name].default if text is None else str(text) for name, text in told.items()}


def summarise(rows: Iterable[Row], columns: Sequence[str] = COLUMNS) -> list[Group]:
    """Return the groups of these rows, in the order of their first row, with estimates of these columns."""
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(knobs(row).values()), []).append(row)
    varied = [number for number, texts in enumerate(zip(*found, strict=True)) if len(set(texts)) > 1]
    names = list(PATH_KNOBS)
    groups = []
    for texts, own in found.items():
        done = [row for row in own if row["status"] == "done"]
        values = {name: numbers(done, name) for name in columns}
        groups.append(
            Group(
                knobs=dict(zip(names, texts, strict=True)),
                label=", ".join(f"{names[number]}={texts[number]}" for number in varied),
                n=len(done),
                failed=sum(row["status"] == "failed" for row in own),
                values=values,
                estimates={
                    name: estimate(list(its.values())) if its else None for name, its in values.items()
                },
            )
        )
    return groups


def numbers(rows: Iterable[Row], name: str) -> dict[int, float]:
    """Return {seed: number} of a column, without rows that have none or one that is not finite."""
    found = {row["seed"]: row.get(name) for row in rows}
    return {
        seed: float(value)
        for seed, value in found.items()
        if isinstance(value, int | float) and math.isfinite(value)
    }


def neighbours(groups: Sequence[Group]) -> list[tuple[str, Group, Group]]:
    """Return (knob, group, group) of all that differ in exactly one knob, next values of it first."""
    found: list[tuple[int, str, Group, Group]] = []
    for name in PATH_KNOBS:
        order = {text: rank for rank, text in enumerate(dict.fromkeys(group.knobs[name] for group in groups))}
        alike: dict[tuple[str, ...], list[Group]] = {}
        for group in groups if len(order) > 1 else ():
            rest = tuple(text for other, text in group.knobs.items() if other != name)
            alike.setdefault(rest, []).append(group)
        for members in alike.values():
            for a, b in itertools.combinations(members, 2):
                found.append((abs(order[b.knobs[name]] - order[a.knobs[name]]), name, a, b))
    return [pair[1:] for pair in sorted(found, key=lambda one: one[0])]


def pairs(groups: Sequence[Group], name: str) -> tuple[list[Pair], int]:
    """Return the neighbours with several repetitions and their verdicts on a column.

    The second is how many were not looked at, since they are over `MOST_PAIRS`.
    name: one of the columns that the groups were summarised with.
    """
    several = [
        (knob, a, b)
        for knob, a, b in neighbours(groups)
        if len(a.values[name]) > 1 and len(b.values[name]) > 1
    ]
    looked_at = [
        Pair(k, a, b, tell_apart(a.values[name], b.values[name])) for k, a, b in several[:MOST_PAIRS]
    ]
    return looked_at, len(several) - len(looked_at)


def indistinct(groups: Sequence[Group], name: str) -> list[str]:
    """Return a sentence for each pair of neighbours that this column cannot tell apart, at most ten.

    Those first whose means differ most, in relation: they invite the wrong
    conclusion. Then how many more there are, what does the same with every
    seed, and a caution where repetitions are few. Nothing where no group has
    several repetitions.
    """
    looked_at, left = pairs(groups, name)
    varied = [knob for knob in PATH_KNOBS if len({group.knobs[knob] for group in groups}) > 1]
    close = [pair for pair in looked_at if pair.verdict.apart is False]
    same = [pair for pair in close if _constant(pair)]
    within = sorted((pair for pair in close if not _constant(pair)), key=_apparent, reverse=True)
    told = [_sentence(pair, varied, name) for pair in within[:MOST_SENTENCES]]
    if len(within) > MOST_SENTENCES:
        told.append(f"Not told apart either: {_more(len(within) - MOST_SENTENCES)}.")
    told += [_sentence(pair, varied, name) for pair in same[:1]]
    if len(same) > 1:
        told.append(f"The same with every seed: {_more(len(same) - 1)}.")
    if left:
        told.append(f"Not looked at: {_more(left)}, one knob apart.")
    return [*told, *filter(None, [caution(min((pair.verdict.a.n for pair in within), default=0))])]


def _more(count: int) -> str:
    return f"{count} more pair{'' if count == 1 else 's'}"


def _constant(pair: Pair) -> bool:
    return pair.verdict.a.constant and pair.verdict.b.constant


def _apparent(pair: Pair) -> float:
    """Return how different the means look, of the larger."""
    larger = max(abs(pair.verdict.a.value), abs(pair.verdict.b.value))
    return abs(pair.verdict.difference) / larger if larger else 0.0


def _sentence(pair: Pair, varied: Sequence[str], name: str) -> str:
    """Return the verdict on a pair, after what both have in common and other groups have not."""
    told = sentence(
        pair.verdict,
        f"{pair.knob}={pair.a.knobs[pair.knob]}",
        f"{pair.knob}={pair.b.knobs[pair.knob]}",
        lambda found: say(name, found),
    )
    shared = [f"{knob}={pair.a.knobs[knob]}" for knob in varied if knob != pair.knob]
    return f"{', '.join(shared)}: {told}" if shared else told


_SCALES: Mapping[str, tuple[tuple[float, str], ...]] = {
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1, "bit/s")),
    "bytes": ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B")),
    "s": ((1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
}


def say(name: str, found: Estimate) -> str:
    """Return an estimate of a column with its unit: "91.2 ± 3.1 Mbit/s"; ± is half the interval's width."""
    return quantity(name, found.value, found.interval)


def quantity(name: str, value: float, interval: Interval | None = None) -> str:
    """Return a number of a column with its unit, and half the width of its interval if it has any."""
    unit = NUMBERS[name].unit
    scales = _SCALES.get(unit, ())
    scale, word = next(((scale, word) for scale, word in scales if abs(value) >= scale), (1, unit))
    half = interval.half_width / scale if interval is not None else 0.0
    if not half:
        return f"{value / scale:.4g} {word}".rstrip()
    digits = max(0, 1 - math.floor(math.log10(half)))  # two of the half width
    if digits > 6:
        return f"{value / scale:.4g} ± {half:.2g} {word}".rstrip()
    return f"{value / scale:.{digits}f} ± {half:.{digits}f} {word}".rstrip()
