"""Which settings of two runs go together: equal knobs, knobs that may differ, and twins with their originals.

Not here: what the numbers of settings that go together come to, see `lab.compare`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lab.errors import UserError
from lab.knobs import PATH_KNOBS
from lab.report.stored import DONE, FAILED, Entry, Stored
from lab.twin.records import FIXED, REMOTE

ACROSS = ("kernel",)
"""Knobs that may differ between runs where nobody chose."""


@dataclass(frozen=True)
class Side:
    """One run. name: as it is called in the output. entries: its points that are to be compared."""

    name: str
    stored: Stored
    entries: tuple[Entry, ...]

    @property
    def engine(self) -> str:
        """Where it ran."""
        return str(self.stored.manifest.get("engine", ""))


@dataclass(frozen=True)
class Setting:
    """The repetitions of one setting in one run."""

    knobs: Mapping[str, str]
    entries: tuple[Entry, ...]

    @cached_property
    def rows(self) -> dict[int, Mapping[str, Any]]:
        """{seed: row} of those that are done."""
        return {entry.seed: entry.row for entry in self.entries if entry.status == DONE and entry.row}

    @property
    def lacking(self) -> list[str]:
        """A phrase for each repetition that is not done."""
        return [
            f"seed {entry.seed} failed ({(entry.text('reason').splitlines() or ['no reason'])[0]})"
            if entry.status == FAILED
            else f"seed {entry.seed} has not run"
            for entry in self.entries
            if entry.status != DONE
        ]


def settings(side: Side) -> list[Setting]:
    """Return the settings of a run, in the order of their first points."""
    defaults = {name: knob.default for name, knob in PATH_KNOBS.items()}
    found: dict[tuple[str, ...], list[Entry]] = {}
    for entry in side.entries:
        known = {**defaults, **entry.knobs}
        found.setdefault(tuple(known[name] for name in PATH_KNOBS), []).append(entry)
    return [
        Setting(dict(zip(PATH_KNOBS, texts, strict=True)), tuple(entries)) for texts, entries in found.items()
    ]


def across(texts: Sequence[str] | None) -> tuple[str, ...]:
    """Return the knobs of `--across`, `ACROSS` where there is none. Raises UserError."""
    if texts is None:
        return ACROSS
    names = [part.strip() for text in texts for part in text.split(",")]
    for name in names:
        if name not in PATH_KNOBS:
            import difflib  # noqa: PLC0415 (only when something is wrong)

            near = difflib.get_close_matches(name, PATH_KNOBS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "docs/reference/knobs.md lists them"
            raise UserError(f"--across {name!r}: not a knob; {hint}")
    return tuple(dict.fromkeys(names))


def may_differ(base: Side, side: Side) -> tuple[str, ...]:
    """Return the knobs that may differ between two runs where nobody chose.

    A twin fixes the path, so all that describes it may. A path of real links is what it
    is: what describes it may, where each run has one value of it, so that nothing can
    be mixed up.
    """
    if twin(base, side) is not None:
        return (*ACROSS, *(name for name in FIXED if name not in ACROSS))
    if REMOTE not in (base.engine, side.engine):
        return ACROSS
    both = [settings(one) for one in (base, side)]
    alone = [
        name
        for name in FIXED
        if name not in ACROSS and all(len({one.knobs[name] for one in those}) < 2 for those in both)
    ]
    return (*ACROSS, *alone)


class Twin:
    """A run of a twin beside its original. of: which of the two it is, 0 the baseline; points: of the
    original, with the knobs that tell their twins from the others."""

    def __init__(self, of: int, points: Mapping[str, Mapping[str, str]]) -> None:
        self.of = of
        self._points = points

    def goes_with(self, base: Setting, setting: Setting) -> bool:
        """Return whether one setting is the other's twin."""
        original, copy = (setting, base) if self.of == 0 else (base, setting)
        wheres = [self._points[entry.id] for entry in original.entries if entry.id in self._points]
        return any(where.items() <= copy.knobs.items() for where in wheres)


def twin(base: Side, side: Side) -> Twin | None:
    """Return what makes one of two runs the other's twin; None where neither is."""
    for of, (copy, original) in enumerate(((base, side), (side, base))):
        told = copy.stored.manifest.get("twin_of") or {}
        points = told.get("points") or {}
        there = {str(point["point"]) for point in original.stored.manifest.get("points", ())}
        if set(points) & there and told.get("began") == original.stored.manifest.get("began"):
            return Twin(of, points)
    return None


def matcher(
    base: Side, ours: Sequence[Setting], side: Side, names: Sequence[str]
) -> Callable[[Setting], list[Setting]]:
    """Return what gives the settings of the baseline that go with one of another run.

    ours: the baseline's. names: knobs that may differ; those that differ in the fewest
    of them go together, and of a twin those that it was made of.
    """
    alike: dict[tuple[str, ...], list[Setting]] = {}
    for setting in ours:
        alike.setdefault(_fixed(setting, names), []).append(setting)
    pair = twin(base, side)

    def match(setting: Setting) -> list[Setting]:
        candidates = alike.get(_fixed(setting, names), [])
        if pair is not None:
            own = [one for one in candidates if pair.goes_with(one, setting)]
            if own:
                return own
        return _closest(setting, candidates)

    return match


def changed(a: Setting, b: Setting) -> tuple[str, ...]:
    """Return the knobs in which two settings differ."""
    return tuple(name for name in PATH_KNOBS if a.knobs[name] != b.knobs[name])


def _fixed(setting: Setting, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(text for name, text in setting.knobs.items() if name not in names)


def _closest(setting: Setting, candidates: Iterable[Setting]) -> list[Setting]:
    """Return those that differ in the fewest knobs."""
    apart: dict[int, list[Setting]] = {}
    for one in candidates:
        apart.setdefault(len(changed(one, setting)), []).append(one)
    return apart[min(apart)] if apart else []
