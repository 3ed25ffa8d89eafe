"""What a scenario is: data, validated as a whole before anything starts.

A scenario script assigns one `Scenario` to the name `scenario`. Nothing here
runs it; `lab.sweep` makes its points.
"""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.errors import SpecError, UnitError, UserError
from lab.knobs import PATH_KNOBS, Knob

Values = Sequence[str | int]
Block = Mapping[str, Values]
"""Knobs with the values to sweep; a block is the product of its knobs."""


@dataclass(frozen=True)
class Expectation:
    """One check with a number: `value` of every matching point against a bound.

    where: knob values (canonical or any other spelling) that a point must have;
    a tuple of spellings allows any of them. value: a column of `wanlab show`.
    within: relative distance allowed from `of`, a column or a number.
    """

    text: str
    value: str
    where: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    within: float | None = None
    of: str | float | None = None
    at_least: float | None = None
    at_most: float | None = None


@dataclass(frozen=True)
class Published:
    """A figure from somebody else's experiment, to stand beside ours.

    where: the point it belongs to. steady: it is the rate of a flow past its ramp.
    """

    where: Mapping[str, str]
    goodput_bps: float
    steady: bool
    source: str


@dataclass(frozen=True)
class Preset:
    """A named setting of a scenario: other defaults, other points, published figures."""

    meaning: str
    defaults: Mapping[str, str | int] = field(default_factory=dict)
    sweep: Sequence[Block] = ()
    expectations: Sequence[Expectation] = ()
    published: Sequence[Published] = ()
    note: str = ""


@dataclass(frozen=True)
class Figure:
    """A figure of the report: `y` columns against the knob `x`, one curve for each `by`."""

    title: str
    x: str
    by: Sequence[str] = ("cc", "kernel")
    y: str = "steady_goodput_bps"


@dataclass(frozen=True)
class Scenario:
    """A study: its question, its path, what is swept, what is expected and drawn."""

    name: str
    question: str
    why: str
    defaults: Mapping[str, str | int] = field(default_factory=dict)
    sweep: Sequence[Block] = ({},)
    expectations: Sequence[Expectation] = ()
    figures: Sequence[Figure] = ()
    presets: Mapping[str, Preset] = field(default_factory=dict)
    topology: str = "path"

    @property
    def knobs(self) -> Mapping[str, Knob]:
        """The knobs that its topology has."""
        return PATH_KNOBS

    def with_preset(self, name: str | None) -> Scenario:
        """Return the scenario as the preset changes it; SpecError for an unknown one."""
        if name is None:
            return self
        if name not in self.presets:
            known = ", ".join(sorted(self.presets)) or "none"
            raise SpecError([f"preset: {name!r} is not a preset of {self.name}; it has: {known}"])
        preset = self.presets[name]
        return Scenario(
            name=self.name,
            question=self.question,
            why=f"{self.why}\n\n{preset.note}" if preset.note else self.why,
            defaults={**self.defaults, **preset.defaults},
            sweep=preset.sweep or self.sweep,
            expectations=preset.expectations or self.expectations,
            figures=self.figures,
            presets=self.presets,
            topology=self.topology,
        )


@dataclass(frozen=True)
class LoadedScenario:
    """A scenario with the text that defined it."""

    scenario: Scenario
    path: Path
    source: str

    @property
    def source_hash(self) -> str:
        """SHA-256 of the script."""
        return hashlib.sha256(self.source.encode()).hexdigest()


def load(path: Path) -> LoadedScenario:
    """Return the scenario of a script. UserError for a script that does not give one, faults all listed."""
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as unreadable:
        reason = getattr(unreadable, "strerror", None) or "it is not UTF-8 text"
        raise UserError(f"{path}: cannot read the scenario: {reason}") from unreadable
    namespace: dict[str, Any] = {"__name__": f"scenario_{path.stem}", "__file__": str(path)}
    try:
        exec(compile(source, str(path), "exec"), namespace)  # noqa: S102 (a scenario is a script)
    except SyntaxError as fault:
        raise UserError(f"{path}, line {fault.lineno}: not Python: {fault.msg}") from fault
    except UserError:
        raise
    except (Exception, SystemExit) as fault:
        lines = [f.lineno for f in traceback.extract_tb(fault.__traceback__) if f.filename == str(path)]
        where = f", line {lines[-1]}" if lines else ""
        raise UserError(f"{path}{where}: {type(fault).__name__}: {fault}") from fault
    scenario = namespace.get("scenario")
    if not isinstance(scenario, Scenario):
        raise UserError(f"{path}: defines no `scenario`; assign one: scenario = Scenario(name=..., ...)")
    faults = check(scenario)
    if faults:
        raise SpecError([f"{path}: {fault}" for fault in faults])
    return LoadedScenario(scenario, path, source)


def check(scenario: Scenario) -> list[str]:
    """Return every fault of a scenario, each with the value, the rule and the mend."""
    faults: list[str] = []
    if scenario.topology != "path":
        faults.append(f"topology: {scenario.topology!r} is not known; it can be path")
        return faults

    def values(where: str, settings: Mapping[str, Any]) -> None:
        for name, given in settings.items():
            knob = scenario.knobs.get(name)
            if knob is None:
                faults.append(f"{where}: {unknown_knob(name, scenario)}")
                continue
            for text in given if isinstance(given, list | tuple) else [given]:
                try:
                    knob.canonical(str(text))
                except UnitError as fault:
                    faults.append(f"{where}: {fault}")

    parts: list[tuple[str, Any]] = [("", scenario)]
    parts += [(f"preset {name}: ", preset) for name, preset in scenario.presets.items()]
    for prefix, part in parts:
        values(f"{prefix}defaults", part.defaults)
        for number, block in enumerate(part.sweep, 1):
            values(f"{prefix}sweep block {number}", block)
            faults.extend(
                f"{prefix}sweep block {number}: {name} has no values; give at least one"
                for name, given in block.items()
                if isinstance(given, list | tuple) and not given
            )
        for expectation in part.expectations:
            values(f"{prefix}expectation {expectation.text!r}", expectation.where)
            bounds = (expectation.within, expectation.at_least, expectation.at_most)
            if all(bound is None for bound in bounds):
                faults.append(
                    f"{prefix}expectation {expectation.text!r}: no bound; give within, at_least or at_most"
                )
            if (expectation.within is None) != (expectation.of is None):
                faults.append(f"{prefix}expectation {expectation.text!r}: within and of go together")
        for published in getattr(part, "published", ()):
            values(f"{prefix}published", published.where)
    for figure in scenario.figures:
        values(f"figure {figure.title!r}", {name: [] for name in (figure.x, *figure.by)})
    return faults


def unknown_knob(name: str, scenario: Scenario) -> str:
    """Return the sentence for a knob that is not there, with the nearest that is."""
    import difflib  # noqa: PLC0415 (only when something is wrong)

    near = difflib.get_close_matches(name, list(scenario.knobs), n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"it has: {', '.join(scenario.knobs)}"
    return f"{name!r} is not a knob of {scenario.name}; {hint}"
