"""Writes the scenario of a twin as a person would: what is emulated, what was measured, what is assumed.

What comes from a run is text or a canonical knob in the script, never code. Not
here: what the paths are, see `lab.twin.path`.
"""

from __future__ import annotations

import dataclasses
import json
import re
import statistics
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.knobs import PATH_KNOBS
from lab.scenario import Expectation, Figure, Original, Published, Scenario, check
from lab.twin.path import Path
from lab.twin.records import FIXED, LINKS, Record
from lab.units import human_rate

TOLERANCE = 0.1
"""Of the original's goodput: how near a twin has to come, unless repetitions there lay further apart."""

_ALWAYS = ("rate", "rtt", "queue", "loss", "kernel", "cc", "flows", "duration")
"""Knobs that a script says even at their defaults: they are what a reader looks for."""
_WIDTH = 110
_MOST_SEEDS = 10_000


@dataclass(frozen=True)
class Study:
    """The run that is emulated. run: its folder as it was named; name, question: its scenario's;
    figures: as its manifest has them; file: what the script will be called."""

    run: str
    name: str
    question: str
    engine: str
    began: str
    figures: Sequence[Mapping[str, Any]]
    file: str


@dataclass(frozen=True)
class _Setting:
    """The repetitions of one setting. knobs: all of them, as the twin sets them."""

    path: Path
    records: tuple[Record, ...]
    knobs: Mapping[str, str]

    @property
    def goodputs_bps(self) -> list[float]:
        found = (record.row.get("goodput_bps") for record in self.records)
        return [float(one) for one in found if one]

    @property
    def within(self) -> float:
        """How near the twin has to come: `TOLERANCE`, or as far as the repetitions lie apart."""
        goodputs = self.goodputs_bps
        apart = (max(goodputs) - min(goodputs)) / statistics.fmean(goodputs)
        return max(TOLERANCE, float(f"{apart:.2g}"))


def scenario_name(name: str) -> str:
    """Return what the twin of a scenario is called."""
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", name).lstrip(".-")
    return f"{plain[:58] or 'path'}_twin"


def write(study: Study, paths: Sequence[Path]) -> str:
    """Return the script. paths: at least one with a record."""
    settings = _settings(paths)
    varied = [name for name in PATH_KNOBS if len({setting.knobs[name] for setting in settings}) > 1]
    name = scenario_name(study.name)
    parts = [
        ("name", _string(name, 4)),
        ("question", _string(_question(study), 4, len("question="))),
        ("why", f'"""\n{_why(study, paths, settings, varied)}\n"""'),
        ("twin_of", _form(_original(study, settings, varied), 4, len("twin_of="))),
        ("defaults", _form(_defaults(settings, varied), 4, len("defaults="))),
        ("sweep", _sweep(settings, varied)),
        ("expectations", _expectations(settings, varied)),
        ("published", _published(settings, varied)),
        ("figures", _form(_figures(study, varied), 4, len("figures="))),
    ]
    lines = [
        f'"""{_plain(f"The path of run {study.run}, in virtual time.")}',
        "",
        *textwrap.wrap(
            "Written by `wanlab twin` from what that run recorded; change it as any scenario. To run it and"
            " to hold it against its original:",
            88,
        ),
        "",
        _plain(f"    wanlab run {study.file}{repeat(paths)}"),
        _plain(f"    wanlab compare {study.run} results/{name} --html {name}.html"),
        '"""',
        "",
        "from lab.scenario import Expectation, Figure, Original, Published, Scenario",
        "",
        f"TOLERANCE = {TOLERANCE}",
        f"SOURCE = {_string(_source(study, settings), 0, len('SOURCE = '))}",
        "",
        "scenario = Scenario(",
        *(f"    {field}={text}," for field, text in parts if text != "()"),
        ")",
    ]
    return "\n".join(lines) + "\n"


def _settings(paths: Sequence[Path]) -> list[_Setting]:
    """Return the settings of all paths, in the order of their points."""
    found = []
    for path in paths:
        groups: dict[tuple[str, ...], list[Record]] = {}
        for record in path.records:
            knobs = record.point.knobs
            groups.setdefault(tuple(knobs[name] for name in PATH_KNOBS), []).append(record)
        for texts, records in groups.items():
            knobs = {**dict(zip(PATH_KNOBS, texts, strict=True)), **path.knobs}
            knobs["trace"] = knobs["trace"].rpartition("@")[0] or knobs["trace"]  # whatever the file holds
            found.append(_Setting(path, tuple(records), knobs))
    return found


def _label(setting: _Setting, varied: Sequence[str]) -> str:
    return ", ".join(f"{name}={setting.knobs[name]}" for name in varied)


def _where(setting: _Setting, varied: Sequence[str]) -> dict[str, str]:
    return {name: setting.knobs[name] for name in varied}


def _question(study: Study) -> str:
    asked = study.question.strip() or "What does this path give?"
    return f"{asked} The same path in virtual time."


def _source(study: Study, settings: Sequence[_Setting]) -> str:
    releases = sorted({str(r.row.get("kernel_release")) for one in settings for r in one.records})
    counts = {len(one.records) for one in settings}
    repeated = f", means of {max(counts)} repetitions" if max(counts) > 1 else ""
    return (
        f"run {study.run}, engine {study.engine}, Linux {' and '.join(releases)},"
        f" began {study.began}{repeated}"
    )


def repeat(paths: Sequence[Path]) -> str:
    """Return the flags with which `wanlab run` takes the seeds of the original, "" for seed 1 alone."""
    seeds = sorted({int(record.row["seed"]) for path in paths for record in path.records})
    count = seeds[-1] - seeds[0] + 1
    told = f" --seed {seeds[0]}" if seeds[0] != 1 else ""
    return told + (f" --repeat {count}" if 1 < count <= _MOST_SEEDS else "")


def _why(study: Study, paths: Sequence[Path], settings: Sequence[_Setting], varied: Sequence[str]) -> str:
    """Return the paragraphs: where it comes from, what was measured, what is assumed."""
    points = sum(len(path.records) for path in paths)
    blocks = [
        f"This is the path that run {study.run} measured: scenario {study.name}, engine {study.engine},"
        f" began {study.began}, {points} {'point' if points == 1 else 'points'} done."
    ]
    for path in paths:
        own = [one for one in settings if one.path is path]
        apart = [name for name in varied if name in (*FIXED, *LINKS) and len(paths) > 1]
        head = f"Where {_label(own[0], apart)}: " if apart else "Measured. "
        blocks.append(head + " ".join(path.measured))
    assumed = list(dict.fromkeys(text for path in paths for text in path.assumed))
    assumed.append("One bottleneck, as fast back as out, between hosts ten times as fast.")
    blocks.append("Assumed. " + " ".join(assumed))
    return "\n\n".join("\n".join(textwrap.wrap(_plain(block), 100)) for block in blocks)


def _original(study: Study, settings: Sequence[_Setting], varied: Sequence[str]) -> Original:
    points = {str(one.records[0].row["point"]): _where(one, varied) for one in settings}
    return Original(run=study.run, engine=study.engine, began=study.began, points=points)


def _defaults(settings: Sequence[_Setting], varied: Sequence[str]) -> dict[str, str]:
    first = settings[0].knobs
    return {
        name: first[name]
        for name, knob in PATH_KNOBS.items()
        if name not in varied and (name in _ALWAYS or first[name] != knob.canonical(knob.default))
    }


def _sweep(settings: Sequence[_Setting], varied: Sequence[str]) -> str:
    """Return one block a setting, each after a comment that says whose it is."""
    if not varied:
        return "({},)"
    lines = ["("]
    for one in settings:
        goodput = human_rate(statistics.fmean(one.goodputs_bps)) if one.goodputs_bps else "no goodput"
        more = f", {len(one.records)} seeds" if len(one.records) > 1 else ""
        block = {name: [text] for name, text in _where(one, varied).items()}
        lines += [f"        # {one.records[0].row['point']}{more}: {goodput}", f"        {_form(block, 8)},"]
    return "\n".join([*lines, "    )"])


def _expectations(settings: Sequence[_Setting], varied: Sequence[str]) -> str:
    expected = [
        Expectation(
            f"{_label(one, varied) or 'the twin'} gives what the path gave",
            value="goodput_bps",
            where=_where(one, varied),
            within=_Name("TOLERANCE") if one.within == TOLERANCE else one.within,  # type: ignore[arg-type]
            of=_Rate(statistics.fmean(one.goodputs_bps)),
        )
        for one in settings
        if one.goodputs_bps
    ]
    return _form(tuple(expected), 4, len("expectations="))


def _published(settings: Sequence[_Setting], varied: Sequence[str]) -> str:
    figures = [
        Published(
            _where(one, varied),
            _Rate(statistics.fmean(one.goodputs_bps)),
            _Name("SOURCE"),
        )
        for one in settings
        if one.goodputs_bps
    ]
    return _form(tuple(figures), 4, len("published="))


def _figures(study: Study, varied: Sequence[str]) -> tuple[Figure, ...]:
    """Return the original's figures that have something to show here, and all points over time."""
    names = {field.name for field in dataclasses.fields(Figure)}
    found = []
    for told in study.figures:
        given: dict[str, Any] = {k: tuple(v) if k == "by" else v for k, v in told.items() if k in names}
        figure = Figure(**given)
        knobs = [name for name in (figure.x, figure.rows) if name]
        plain = Scenario(name="figure", question="", why="", figures=(figure,))
        if figure.kind != "time" and set(knobs) <= set(varied) and knobs and not check(plain):
            found.append(figure)
    over_time = {"goodput_bps": "Goodput over time", "rtt_s": "RTT over time"}
    found += [Figure(title, kind="time", y=y) for y, title in over_time.items()]
    return tuple(found)


# Python as a formatter leaves it


class _Name(str):
    """A constant of the script, by its name."""


class _Rate(float):
    """A rate, written with its power of ten."""


def _plain(text: str) -> str:
    """Return text that stays text in a docstring of three quotes."""
    printable = "".join(sign if sign.isprintable() else " " for sign in text)
    return printable.encode("utf-8", "replace").decode().replace("\\", "\\\\").replace('"', "'")


def _string(text: str, indent: int, before: int = 0) -> str:
    """Return a string literal; in pieces where its line is too short. before: columns that are taken."""
    text = text.encode("utf-8", "replace").decode()
    whole = json.dumps(text, ensure_ascii=False)
    if indent + before + len(whole) + 1 <= _WIDTH:
        return whole
    room = _WIDTH - indent - 4 - 2
    pieces = textwrap.wrap(text, room, drop_whitespace=False, break_on_hyphens=False, break_long_words=False)
    if len(pieces) < 2:
        return whole
    inner = "\n".join(f"{' ' * (indent + 4)}{json.dumps(piece, ensure_ascii=False)}" for piece in pieces)
    return f"(\n{inner}\n{' ' * indent})"


def _rate(rate_bps: float) -> str:
    for power in (9, 6, 3):
        if rate_bps >= 10**power:
            return f"{float(f'{rate_bps / 10**power:.4g}'):g}e{power}"
    return f"{rate_bps:.4g}"


def _form(value: Any, indent: int, before: int = 0) -> str:
    """Return a value as Python, on one line where it fits, else an item a line. before: see `_string`."""
    if isinstance(value, str) and not isinstance(value, _Name):
        return _string(value, indent, before)
    taken = _apart(value)
    if taken is None:
        return _rate(value) if isinstance(value, _Rate) else str(value)
    (opening, closing), items = taken
    comma = "," if isinstance(value, tuple) and len(items) == 1 else ""
    line = opening + ", ".join(head + _form(one, 0) for head, one in items) + comma + closing
    fits = "\n" not in line and indent + before + len(line) + 1 <= _WIDTH
    if not items or (fits and not _long(value)):
        return line
    inner = "".join(
        f"{' ' * (indent + 4)}{head}{_form(one, indent + 4, len(head))},\n" for head, one in items
    )
    return f"{opening}\n{inner}{' ' * indent}{closing}"


def _apart(value: Any) -> tuple[tuple[str, str], list[tuple[str, Any]]] | None:
    """Return the brackets of a value and what is between them, each with what stands before it; or None."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return (f"{type(value).__name__}(", ")"), _fields(value)
    if isinstance(value, Mapping):
        return ("{", "}"), [(f"{_string(key, 0)}: ", one) for key, one in value.items()]
    if isinstance(value, list):
        return ("[", "]"), [("", one) for one in value]
    if isinstance(value, tuple):
        return ("(", ")"), [("", one) for one in value]
    return None


def _long(value: Any) -> bool:
    """Return whether a value has its items one a line even where a line would hold them."""
    if isinstance(value, Expectation | Original):
        return True
    several = isinstance(value, tuple) and len(value) > 1
    return several and any(dataclasses.is_dataclass(one) for one in value)


def _fields(value: Any) -> list[tuple[str, Any]]:
    """Return the arguments of a dataclass that are not at their defaults; the first ones without a name."""
    leading = {Expectation: 1, Figure: 1, Published: 3}.get(type(value), 0)
    found = []
    for number, field in enumerate(dataclasses.fields(value)):
        held = getattr(value, field.name)
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if default is not dataclasses.MISSING and held == default:
            continue
        held = list(held) if field.name == "by" else held
        found.append(("" if number < leading else f"{field.name}=", held))
    return found
