"""Runs beside a baseline: equal settings matched, their difference in percent, what is outside a tolerance.

Reads run folders, starts nothing. Not here: how it is printed, see
`lab.cli.compare`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from lab import matching, repeats, units
from lab.combination import VIRTUAL
from lab.errors import UnitError, UserError
from lab.knobs import PATH_KNOBS
from lab.matching import ACROSS, Setting, Side
from lab.statistics import Estimate, Interval, Verdict, estimate, tell_apart, wanted

_SLACK = 1e-9
"""In percent: a difference at a tolerance is within it, however it was rounded."""


@dataclass(frozen=True)
class Tolerance:
    """How much a column may change, in percent of the baseline; None: as much as it likes that way."""

    fall: float | None
    rise: float | None
    text: str

    def passed(self, measure: Measure) -> bool:
        """Return whether the difference itself is larger; a change from 0 is larger than any percentage."""
        if measure.verdict is None or not measure.verdict.difference:
            return False
        if measure.percent is None:
            return (self.rise if measure.verdict.difference > 0 else self.fall) is not None
        over = self.rise is not None and measure.percent > self.rise + _SLACK
        return over or (self.fall is not None and measure.percent < -self.fall - _SLACK)


@dataclass(frozen=True)
class Measure:
    """One column of one setting in the baseline and in another run; None where a run has no number."""

    column: str
    baseline: Estimate | None
    other: Estimate | None
    verdict: Verdict | None

    @property
    def percent(self) -> float | None:
        """The difference of the means, of the baseline; None where there is none, or the baseline is 0."""
        if self.verdict is None:
            return None
        base = abs(self.verdict.a.value)
        if base:
            return 100 * self.verdict.difference / base
        return None if self.verdict.difference else 0.0

    @property
    def interval(self) -> Interval | None:
        """Its interval in percent, over the seeds; None for one repetition."""
        if self.verdict is None or self.verdict.interval is None or not self.verdict.a.value:
            return None
        return self.verdict.interval.scaled(100 / abs(self.verdict.a.value))

    @property
    def one_sided(self) -> bool:
        """Whether only one of the runs has a number."""
        return (self.baseline is None) != (self.other is None)


@dataclass(frozen=True)
class Comparison:
    """A setting of the baseline and the one of another run that goes with it.

    run: number of the other run, from 1. changed: knobs in which they differ.
    identical: the records of all seeds are, byte for byte. exact: both in
    virtual time and with the same seeds, so that no difference is by chance of
    the machine. lacking: phrases on repetitions that failed or have not run.
    """

    run: int
    baseline: Setting
    other: Setting
    changed: tuple[str, ...]
    identical: bool
    exact: bool
    measures: tuple[Measure, ...]
    lacking: tuple[str, ...]


@dataclass(frozen=True)
class Alone:
    """A setting that one run has and another has not. run, without: their numbers, 0 the baseline."""

    run: int
    without: int
    setting: Setting


@dataclass(frozen=True)
class Compared:
    """Everything that a comparison found.

    tolerances: by column; none: nothing is judged. across: knobs that were allowed to differ.
    """

    sides: tuple[Side, ...]
    columns: tuple[str, ...]
    tolerances: Mapping[str, Tolerance]
    comparisons: tuple[Comparison, ...]
    alone: tuple[Alone, ...]
    across: tuple[str, ...] = ACROSS

    @cached_property
    def varied(self) -> tuple[str, ...]:
        """Knobs in which the settings of one run differ: what tells the lines of a comparison apart."""
        of_run: dict[int, list[Setting]] = {}
        for one in self.comparisons:
            of_run.setdefault(0, []).append(one.baseline)
            of_run.setdefault(one.run, []).append(one.other)
        for single in self.alone:
            of_run.setdefault(single.run, []).append(single.setting)
        return tuple(
            name
            for name in PATH_KNOBS
            if any(len({setting.knobs[name] for setting in settings}) > 1 for settings in of_run.values())
        )

    def label(self, setting: Setting) -> str:
        """Return what tells a setting from the others of its run."""
        return ", ".join(f"{name}={setting.knobs[name]}" for name in self.varied) or "the only setting"

    def outside(self, measure: Measure) -> bool:
        """Return whether a column is outside its tolerance: by itself, and by more than chance.

        Where there is an interval over the seeds it must not contain 0.
        """
        within_chance = measure.verdict is not None and measure.verdict.apart is False
        return self.larger(measure) and not within_chance

    def larger(self, measure: Measure) -> bool:
        """Return whether the difference alone, without a thought of chance, is outside the tolerance."""
        tolerance = self.tolerances.get(measure.column)
        return tolerance is not None and tolerance.passed(measure)

    @cached_property
    def passed(self) -> tuple[str, ...]:
        """A sentence for each way in which a stated tolerance is passed; empty where none was stated."""
        if not self.tolerances:
            return ()
        told = []
        for one in self.comparisons:
            where = f"{self.sides[one.run].name}: {self.label(one.other)}"
            told += [f"{self.label(one.other)}: {phrase}." for phrase in one.lacking]
            told += [self._sentence(where, measure) for measure in one.measures if self.outside(measure)]
            if one.baseline.rows and one.other.rows:
                told += [
                    f"{where}: only one of the runs has a {measure.column}."
                    for measure in one.measures
                    if measure.one_sided and measure.column in self.tolerances
                ]
        for single in self.alone:
            has, lacks = self.sides[single.run].name, self.sides[single.without].name
            told.append(f"{lacks}: {self.label(single.setting)} is not there, and {has} has it.")
        return tuple(told)

    def _sentence(self, where: str, measure: Measure) -> str:
        assert measure.baseline is not None
        assert measure.other is not None
        before, now = (repeats.say(measure.column, one) for one in (measure.baseline, measure.other))
        change = "from 0" if measure.percent is None else f"{measure.percent:+.3g} %"
        return (
            f"{where}: {measure.column} is {now} where the baseline has {before} ({change}),"
            f" outside {self.tolerances[measure.column].text}."
        )


def tolerances(texts: Sequence[str], columns: Sequence[str]) -> dict[str, Tolerance]:
    """Return the tolerance of each column: `2%` for all of `columns`, `goodput_bps=-2%` for one of any.

    2% allows 2 % either way, -2% objects to a fall of more, +2% to a rise. Raises UserError.
    """
    general: dict[str, Tolerance] = {}
    special: dict[str, Tolerance] = {}
    for text in (part.strip() for given in texts for part in given.split(",")):
        name, equals, amount = text.rpartition("=")
        allowed = _tolerance(amount.strip(), text)
        if equals:
            special[repeats.column(name.strip())] = allowed
        else:
            general = dict.fromkeys(columns, allowed)
    return {**general, **special}


def _tolerance(amount: str, text: str) -> Tolerance:
    try:
        value, unit = units.split(amount, "tolerance", "2%")
    except UnitError as fault:
        raise UserError(
            f"--tolerance {text!r}: write it such as 2%, goodput_bps=2% or goodput_bps=-2%"
        ) from fault
    if unit != "%":
        raise UserError(f"--tolerance {text!r}: a tolerance is in percent; write it such as goodput_bps=2%")
    size = abs(float(value))
    return Tolerance(
        fall=None if amount.startswith("+") else size,
        rise=None if amount.startswith("-") else size,
        text=f"{'' if amount[0] in '+-' else '±'}{amount[:-1].strip()} %",
    )


def compare(
    sides: Sequence[Side],
    columns: Sequence[str],
    *,
    across: Sequence[str] | None = ACROSS,
    tolerances: Mapping[str, Tolerance] | None = None,
) -> Compared:
    """Return every other side beside the first, the baseline.

    A setting goes with the baseline's of the same knobs; where there is none,
    with those that differ in knobs of `across` only, and in the fewest of them.
    across: None for what may differ between these runs, see `lab.matching`.
    Raises UserError where a run has no setting that goes with any.
    """
    base = matching.settings(sides[0])
    rank = {id(setting): number for number, setting in enumerate(base)}
    comparisons: list[Comparison] = []
    alone: list[Alone] = []
    differing: dict[str, None] = {}
    for run, side in enumerate(sides[1:], 1):
        names = matching.may_differ(sides[0], side) if across is None else across
        differing |= dict.fromkeys(names)
        match = matching.matcher(sides[0], base, side, names)
        matched: list[Comparison] = []
        theirs = matching.settings(side)
        for setting in theirs:
            found = match(setting)
            matched += [_compare(run, one, setting, columns, sides) for one in found]
            if not found:
                alone.append(Alone(run, 0, setting))
        if not matched:
            raise UserError(_nothing(sides[0], base, side, theirs))
        met = {id(one.baseline) for one in matched}
        alone += [Alone(0, run, setting) for setting in base if id(setting) not in met]
        comparisons += sorted(matched, key=lambda one: rank[id(one.baseline)])
    return Compared(
        tuple(sides), tuple(columns), tolerances or {}, tuple(comparisons), tuple(alone), tuple(differing)
    )


def _compare(run: int, a: Setting, b: Setting, columns: Sequence[str], sides: Sequence[Side]) -> Comparison:
    same_seeds = a.rows.keys() == b.rows.keys()
    digests = [[setting.rows[seed].get("digest") for seed in sorted(setting.rows)] for setting in (a, b)]
    lacking = [f"in {sides[0].name} {phrase}" for phrase in a.lacking]
    lacking += [f"in {sides[run].name} {phrase}" for phrase in b.lacking]
    return Comparison(
        run=run,
        baseline=a,
        other=b,
        changed=matching.changed(a, b),
        identical=bool(a.rows) and same_seeds and digests[0] == digests[1] and None not in digests[0],
        exact=same_seeds and all(side.engine == VIRTUAL for side in (sides[0], sides[run])),
        measures=tuple(_measure(name, a, b) for name in columns),
        lacking=tuple(lacking),
    )


def _measure(name: str, a: Setting, b: Setting) -> Measure:
    of_a, of_b = (repeats.numbers(setting.rows.values(), name) for setting in (a, b))
    if of_a and of_b:
        verdict = tell_apart(of_a, of_b)
        return Measure(name, verdict.a, verdict.b, verdict)
    alone_a, alone_b = (estimate(list(values.values())) if values else None for values in (of_a, of_b))
    return Measure(name, alone_a, alone_b, None)


def _nothing(base: Side, ours: Sequence[Setting], side: Side, theirs: Sequence[Setting]) -> str:
    """Return the sentence for runs without a setting in common."""
    if not ours or not theirs:
        empty = side if not theirs else base
        return f"{empty.name}: has no point to compare; look at `wanlab show {empty.stored.folder.path}`"
    of_base, of_side = (
        {name: {s.knobs[name] for s in all_} for name in PATH_KNOBS} for all_ in (ours, theirs)
    )
    disjoint = [name for name in PATH_KNOBS if not of_base[name] & of_side[name]]
    told = ", ".join(f"{name} ({_few(of_base[name])}; {_few(of_side[name])})" for name in disjoint)
    hint = (
        f"they differ in {told}; --across {','.join(disjoint)} compares them nonetheless"
        if disjoint
        else "no combination of knobs is in both; --across KNOB names one that may differ"
    )
    return f"{base.name} and {side.name} have no point in common: {hint}"


def _few(texts: set[str]) -> str:
    told = sorted(texts)
    return ", ".join(told[:4]) + (", ..." if len(told) > 4 else "")


def chance(measure: Measure) -> str:
    """Return why a difference outside its tolerance is not counted: chance, and how many would tell."""
    verdict = measure.verdict
    return f"within chance; {wanted(verdict.needed_n)}" if verdict else ""
