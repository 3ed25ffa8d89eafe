"""What a scenario is: data, validated as a whole before anything starts.

A scenario script assigns one `Scenario` to the name `scenario`. Nothing here
runs it; `lab.sweep` makes its points.
"""

from __future__ import annotations

import hashlib
import re
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab import schema
from lab.errors import SpecError, UnitError, UserError
from lab.knobs import PATH_KNOBS, TOPOLOGIES
from lab.values import Knob

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

    where: the point it belongs to. of: the column that it compares with.
    """

    where: Mapping[str, str]
    goodput_bps: float
    source: str
    of: str = "goodput_bps"


@dataclass(frozen=True)
class Original:
    """The run that a scenario emulates, as `wanlab twin` writes it down.

    run: the folder it was in. engine: where it ran. began: when, as its manifest
    has it. points: identities of points there, each with the knobs that tell its
    twin here from the others; of repetitions one is enough.
    """

    run: str
    engine: str
    began: str
    points: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Preset:
    """A named setting of a scenario: other defaults, other points, published figures."""

    meaning: str
    defaults: Mapping[str, str | int] = field(default_factory=dict)
    sweep: Sequence[Block] = ()
    expectations: Sequence[Expectation] = ()
    published: Sequence[Published] = ()
    note: str = ""


FIGURE_KINDS = ("curve", "heat", "box", "cdf", "ellipse", "time")
FIGURE_TABLES = {"box": ("points", "flows"), "cdf": ("points", "flows", "delays")}
"""Tables that a kind of figure can be drawn of; the other kinds are drawn of the points."""
FIGURE_SERIES = ("goodput_bps", "cwnd_bytes", "inflight_bytes", "rtt_s")
"""What a figure over time can show."""
THEORIES = ("mathis", "cubic", "router_buffer", "ware", "rtt_ratio")
"""Formulas that can be drawn into a figure, see `lab.report.theory`."""
WINNER = "winner"


@dataclass(frozen=True)
class Figure:
    """A figure of the report: the column `y`, told apart by the knobs `by`.

    kind: "curve" sets y against the knob x; "heat" shows it by colour over the
    knobs x and rows, or which value of the one knob `by` gives most where y is
    "winner"; "box" shows how y spreads over repetitions or flows, for each value
    of x if there is one; "cdf" how it is distributed; "ellipse" sets it against
    another column x, a delay; "time" shows every flow of up to six points, one
    for each value of x, or of all that vary. table: what a row is in "box" and
    "cdf"; by and x may then name columns of it. y may name one share of a column
    of shares, as in `cc_shares:bbr`. theory: one of `THEORIES`, drawn beside.
    """

    title: str
    x: str = ""
    by: Sequence[str] = ("cc", "kernel")
    y: str = "steady_goodput_bps"
    kind: str = "curve"
    rows: str | None = None
    table: str = "points"
    theory: str = ""

    def told(self) -> dict[str, Any]:
        """Return the figure as a manifest holds it; fields that came later go unsaid at their default."""
        later = {name: getattr(self, name) for name in ("kind", "rows", "table", "theory")}
        said = {name: value for name, value in later.items() if value != getattr(Figure, name)}
        return {"title": self.title, "x": self.x, "by": list(self.by), "y": self.y, **said}


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
    published: Sequence[Published] = ()
    twin_of: Original | None = None

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
            published=preset.published or self.published,
            twin_of=self.twin_of,
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
        code = compile(source, str(path), "exec")
    except (SyntaxError, ValueError) as fault:  # ValueError: a null byte, before Python 3.11.4
        line = getattr(fault, "lineno", None)
        where = f", line {line}" if line else ""
        raise UserError(f"{path}{where}: not Python: {getattr(fault, 'msg', fault)}") from fault
    try:
        exec(code, namespace)  # noqa: S102 (a scenario is a script)
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


_FORMS = (  # field, its type, the type of what it holds, how it is written
    ("question", str, str, '"What fills this path?"'),
    ("why", str, str, '"..."'),
    ("note", str, str, '"..."'),
    ("defaults", Mapping, str, '{"rate": "1gbit"}'),
    ("sweep", (list, tuple), Mapping, '({"rmem": ["25MiB", "50MiB"]},)'),
    ("expectations", (list, tuple), Expectation, "(Expectation(...),)"),
    ("published", (list, tuple), Published, "(Published(...),)"),
    ("figures", (list, tuple), Figure, "(Figure(...),)"),
    ("presets", Mapping, str, '{"name": Preset(...)}'),
)
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_NUMBERS = [column.name for column in schema.POINT_COLUMNS if column.kind in ("int", "float")]


def check(scenario: Scenario) -> list[str]:
    """Return every fault of a scenario, each with the value, the rule and the mend."""
    if scenario.topology not in TOPOLOGIES:
        return [f"topology: {scenario.topology!r} is not known; it can be {', '.join(TOPOLOGIES)}"]
    faults = _check_forms("", scenario)
    for name, preset in scenario.presets.items() if isinstance(scenario.presets, Mapping) else ():
        faults += _check_forms(f"preset {name}: ", preset)
    if faults:
        return faults  # what has another form cannot be looked into
    faults += _check_part("", scenario, scenario)
    for name, preset in scenario.presets.items():
        faults += _check_part(f"preset {name}: ", preset, scenario)
    for name in (scenario.name, *scenario.presets):
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            faults.append(f"name: {name!r} cannot name a folder; write it in letters, digits, - and _")
    faults += _check_original(scenario)
    if not scenario.sweep:
        faults.append("sweep: no block; give at least one, such as {} for a single point")
    for figure in scenario.figures:
        faults += _check_figure(f"figure {figure.title!r}", figure, scenario)
    return faults


def _check_original(scenario: Scenario) -> list[str]:
    """Return the faults of what a twin says of the run that it emulates."""
    original: Any = scenario.twin_of
    if original is None:
        return []
    points = original.points if isinstance(original, Original) else None
    if not isinstance(points, Mapping) or not all(isinstance(one, Mapping) for one in points.values()):
        return [
            'twin_of: has not its form; write points={"2024f41e98": {"rmem": "25MiB"}} in an Original(...)'
        ]
    faults = []
    for point, where in points.items():
        one_each = {name: (given,) for name, given in where.items()}
        faults += _check_values(f"twin_of: point {point}", one_each, scenario)
    return faults


def _check_figure(where: str, figure: Figure, scenario: Scenario) -> list[str]:
    """Return the faults of a figure."""
    if figure.kind not in FIGURE_KINDS:
        return [f"{where}: kind: {figure.kind!r} is not known; it can be {', '.join(FIGURE_KINDS)}"]
    tables = FIGURE_TABLES.get(figure.kind, ("points",))
    if figure.table not in tables:
        return [f"{where}: table: a figure of kind {figure.kind} is drawn of {' or '.join(tables)}"]
    faults = []
    if not figure.x and figure.kind in ("curve", "heat", "ellipse"):
        wanted = "column, such as queue_delay_s" if figure.kind == "ellipse" else "knob, such as rtt"
        faults.append(f"{where}: x: a figure of kind {figure.kind} needs a {wanted}")
    if figure.x and figure.kind == "cdf":
        faults.append(f"{where}: x: a figure of kind cdf has none; y is what is distributed")
    if (figure.rows is not None) != (figure.kind == "heat"):
        faults.append(
            f"{where}: rows: a figure of kind heat needs the knob of its rows, and no other has one"
        )
    if figure.theory and figure.theory not in THEORIES:
        faults.append(f"{where}: theory: {figure.theory!r} is not known; it can be {', '.join(THEORIES)}")
    elif figure.theory and figure.kind not in ("curve", "heat"):
        faults.append(f"{where}: theory: only a figure of kind curve or heat can have one")
    if figure.y == WINNER and figure.kind == "heat" and len(figure.by) != 1:
        faults.append(f'{where}: by: "winner" compares the values of one knob; write it as by=["cc"]')
    knobs = [name for name in (figure.x, figure.rows, *figure.by) if name]
    if figure.kind == "ellipse":
        knobs = list(figure.by)
        faults += _check_column(f"{where}: x", figure.x) if figure.x else []
    if figure.table != "points":
        columns = {column.name for column in schema.TABLES.get(figure.table, ())} - {"point"}
        knobs = [name for name in knobs if name not in columns]
    faults += _check_values(where, dict.fromkeys(knobs, ()), scenario)
    return faults + _check_y(f"{where}: y", figure)


def _check_y(where: str, figure: Figure) -> list[str]:
    """Return the fault of what a figure shows."""
    if figure.kind == "time":
        if figure.y in ("steady_goodput_bps", *FIGURE_SERIES):  # the first is what a figure has by default
            return []
        return [f"{where}: {figure.y!r} is no series of a flow; it can be {', '.join(FIGURE_SERIES)}"]
    if figure.y == WINNER and figure.kind == "heat":
        return []
    return _check_column(where, figure.y, figure.table)


def _check_forms(prefix: str, part: Any) -> list[str]:
    """Return what has not the form in which the rest of the check goes through it."""
    if not isinstance(part, Scenario | Preset):
        return [f"{prefix}{type(part).__name__} is not its form; write it as Preset(...)"]
    faults: list[str] = []
    fields: dict[str, Any] = vars(part)
    for name, kind, item, example in _FORMS:
        if name not in fields:
            continue
        given = fields[name]
        if not isinstance(given, kind):
            wrong = type(given).__name__
            faults.append(f"{prefix}{name}: {wrong} is not its form; write it as {name}={example}")
            continue
        faults += [
            f"{prefix}{name}: {one!r} cannot be in it; write it as {name}={example}"
            for one in given
            if not isinstance(one, item)
        ]
    if faults:
        return faults
    faults += [
        f'{prefix}expectation {one.text!r}: write it as where={{"rmem": "25MiB"}}'
        for one in fields["expectations"]
        if isinstance(one.where, str)
    ]
    faults += [
        f'figure {one.title!r}: by is a list of knobs; write it as by=["{one.by}"]'
        for one in fields.get("figures", ())
        if isinstance(one.by, str)
    ]
    return faults


def _check_part(prefix: str, part: Scenario | Preset, scenario: Scenario) -> list[str]:
    """Return the faults of what a scenario and a preset both have."""
    faults = _check_values(f"{prefix}defaults", part.defaults, scenario, least=1)
    for number, block in enumerate(part.sweep, 1):
        faults += _check_values(f"{prefix}sweep block {number}", block, scenario, least=1)
    for expectation in part.expectations:
        where = f"{prefix}expectation {expectation.text!r}"
        faults += _check_values(where, expectation.where, scenario)
        faults += _check_column(f"{where}: value", expectation.value)
        bounds = (expectation.within, expectation.at_least, expectation.at_most)
        if all(bound is None for bound in bounds):
            faults.append(f"{where}: no bound; give within, at_least or at_most")
        if (expectation.within is None) != (expectation.of is None):
            faults.append(f"{where}: within and of go together")
        if isinstance(expectation.of, str):
            faults += _check_column(f"{where}: of", expectation.of)
    for published in part.published:
        one_each = {name: (given,) for name, given in published.where.items()}
        faults += _check_values(f"{prefix}published", one_each, scenario)
        faults += _check_column(f"{prefix}published: of", published.of)
    return faults


def _check_values(
    where: str, settings: Mapping[str, Any], scenario: Scenario, *, least: int = 0
) -> list[str]:
    """Return the faults of knobs and their values; `least`: how many values each must have."""
    faults = []
    for name, given in settings.items():
        knob = scenario.knobs.get(name)
        if knob is None:
            faults.append(f"{where}: {unknown_knob(name, scenario)}")
            continue
        texts = given if isinstance(given, list | tuple) else [given]
        if len(texts) < least:
            faults.append(f"{where}: {name} has no values; give at least one")
        for text in texts:
            try:
                knob.canonical(str(text))
            except UnitError as fault:
                faults.append(f"{where}: {fault}")
    return faults


def _check_column(where: str, name: str, table: str = "points") -> list[str]:
    """Return the fault of a name that is no column of numbers in a table, nor one share of a column."""
    column, _, share = name.partition(":")
    if share and any(known.name == column and known.kind == "shares" for known in schema.TABLES["points"]):
        return []
    numbers = _NUMBERS
    if table != "points":
        numbers = [one.name for one in schema.TABLES.get(table, ()) if one.kind in ("int", "float")]
    if name in numbers:
        return []
    whose = "`wanlab show`" if table == "points" else f"table {table}"
    return [f"{where}: {name!r} is not a number of {whose}; {_nearest(name, numbers)}"]


def unknown_knob(name: str, scenario: Scenario) -> str:
    """Return the sentence for a knob that is not there, with the nearest that is."""
    return f"{name!r} is not a knob of {scenario.name}; {_nearest(name, list(scenario.knobs))}"


def _nearest(name: str, known: Sequence[str]) -> str:
    """Return the hint at the nearest name, or at all of them."""
    import difflib  # noqa: PLC0415 (only when something is wrong)

    near = difflib.get_close_matches(str(name), known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"it has: {', '.join(known)}"
