"""What a figure shows: which points, in which curves, against which axis, and the model beside them.

Points are joined only where they differ in nothing but the figure's own knobs
and the seed. No plotting here; `lab.report.figures` draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from lab.knobs import PATH_KNOBS
from lab.model.path import payload_share
from lab.report import axes, knee, predicted
from lab.report.axes import Axis
from lab.report.predicted import GRID_STEPS, Line
from lab.report.stored import Entry, Stored, varying
from lab.schema import POINT_COLUMNS

GOODPUTS = ("goodput_bps", "steady_goodput_bps")

_UNITS = {"bit/s": (1e6, "Mbit/s"), "bytes": (float(axes.MIB), "MiB")}
_Y_TITLES = {"goodput_bps": "Goodput, whole load", "steady_goodput_bps": "Goodput, steady part"}
_COLUMNS = {column.name: column for column in POINT_COLUMNS}


@dataclass(frozen=True)
class Curve:
    """Points that are joined. prediction, outdated: see `lab.report.predicted`; knee: one of the points."""

    name: str
    entries: tuple[Entry, ...]
    prediction: Line
    outdated: bool
    knee: Entry | None


@dataclass(frozen=True)
class Plot:
    """One figure against a knob. All numbers in the units of its axes.

    fixed: knobs that vary in the run and not in this figure; left_out: points
    with other values of them. link, bdp: reference lines, None where there is no one value.
    """

    title: str
    axis: Axis
    y: str
    y_title: str
    y_factor: float
    curves: tuple[Curve, ...]
    fixed: Mapping[str, str]
    left_out: int
    link: tuple[tuple[float | str, float], ...]
    bdp: float | None


def y_scale(column: str) -> tuple[float, str]:
    """Return (factor, title with unit) of a column as an axis. KeyError for one that is no number."""
    known = _COLUMNS[column]
    if known.kind not in ("int", "float"):
        raise KeyError(column)
    factor, unit = _UNITS.get(known.unit, (1.0, known.unit))
    title = _Y_TITLES.get(column, known.meaning[:1].upper() + known.meaning[1:])
    return factor, f"{title} ({unit})" if unit else title


def plots(stored: Stored) -> list[Plot]:
    """Return the scenario's figures that this run has something to show in."""
    found = [_plot(figure, stored) for figure in stored.manifest.get("figures", ())]
    return [plot for plot in found if plot is not None]


def _plot(figure: Mapping[str, Any], stored: Stored) -> Plot | None:
    x, y = str(figure["x"]), str(figure["y"])
    by = [str(name) for name in figure["by"] if name != x]
    try:
        factor, title = y_scale(y)
    except KeyError:
        return None
    candidates = [entry for entry in stored.done if x in entry.knobs and entry.number(y) is not None]
    others = [name for name in varying(candidates) if name not in (x, *by)]
    chosen = _most_common(candidates, others, x)
    if len({entry.knobs[x] for entry in chosen}) < 2:
        return None
    axis = axes.build(x, chosen)
    forms = {entry.id: axes.form(x, entry) for entry in chosen}
    split = {"fixed", "autotuned"} <= set(forms.values())

    groups: dict[tuple[str, ...], list[Entry]] = {}
    names = [name for name in by if name in varying(chosen)]
    for entry in chosen:
        words = [entry.knobs[name] for name in names]
        if split:  # the default is autotuned too
            words.append(forms[entry.id].replace("default", "autotuned"))
        groups.setdefault(tuple(words), []).append(entry)
    keys = [*names, x] if split else names
    engine = str(stored.manifest.get("engine"))
    curves = []
    for group, members in groups.items():
        members.sort(key=lambda entry: _rank(axis, entry))
        line, outdated = predicted.curve(y, members, axis, engine, factor)
        bent = _knee(members, axis, y) if y in GOODPUTS and x in axes.MEMORY else None
        curves.append(Curve(_name(keys, group), tuple(members), line, outdated, bent))
    bdps = {entry.number("bdp_bytes") for entry in chosen}
    bdp = bdps.pop() if x in axes.MEMORY and len(bdps) == 1 and axis.numeric else None
    return Plot(
        title=str(figure["title"]),
        axis=axis,
        y=y,
        y_title=title,
        y_factor=factor,
        curves=tuple(curves),
        fixed={name: chosen[0].knobs.get(name, "") for name in others},
        left_out=len(candidates) - len(chosen),
        link=_link(chosen, axis, factor) if y in GOODPUTS else (),
        bdp=bdp / axes.MIB if bdp else None,
    )


def _name(keys: Sequence[str], words: Sequence[str]) -> str:
    """Return the name of a curve: "cubic, kernel 6.1, adv_win_scale 2". A knob at `default` goes unsaid."""
    parts = [word if key == "cc" else f"{key} {word}" for key, word in zip(keys, words, strict=True)]
    said = [part for part, word in zip(parts, words, strict=True) if word != "default"]
    return ", ".join(said or parts) or "measured"


def at_positions(entries: Sequence[Entry], axis: Axis) -> dict[float | str, list[Entry]]:
    """Return the points at each position, in the order of the points."""
    found: dict[float | str, list[Entry]] = {}
    for entry in entries:
        found.setdefault(axis.positions[entry.id], []).append(entry)
    return found


def _knee(entries: Sequence[Entry], axis: Axis, y: str) -> Entry | None:
    if not axis.numeric:
        return None
    at = {float(position): members for position, members in at_positions(entries, axis).items()}
    values = {place: median(entry.number(y) or 0.0 for entry in members) for place, members in at.items()}
    found = knee.find(values)
    return None if found is None else at[found][0]


def _most_common(entries: Sequence[Entry], others: Sequence[str], x: str) -> list[Entry]:
    """Return the points that share values of `others`: those with most values of x, then most points."""
    groups: dict[tuple[str, ...], list[Entry]] = {}
    for entry in entries:
        groups.setdefault(tuple(entry.knobs.get(name, "") for name in others), []).append(entry)
    if not groups:
        return []
    return max(groups.values(), key=lambda members: (len({e.knobs[x] for e in members}), len(members)))


def _rank(axis: Axis, entry: Entry) -> float:
    position = axis.positions[entry.id]
    if isinstance(position, str):
        return [tick for tick, _ in axis.ticks].index(position)
    return position


def link_goodput_bps(entry: Entry) -> float | None:
    """Return the payload that the bottleneck's rate leaves, bit/s."""
    rate, mtu = entry.number("rate_bps"), entry.number("mtu")
    return None if rate is None or mtu is None else rate * payload_share(int(mtu))


def _link(entries: Sequence[Entry], axis: Axis, factor: float) -> tuple[tuple[float | str, float], ...]:
    """Return the line of what the link can carry: level, or rising where the rate is the axis."""
    at = {axis.positions[entry.id]: link_goodput_bps(entry) for entry in entries}
    known = {position: value / factor for position, value in at.items() if value is not None}
    if axis.knob == "rate" and axis.numeric:
        shares = {value * factor / (float(position) * axis.factor) for position, value in known.items()}
        if max(shares) - min(shares) > 1e-9:
            return ()
        grid = np.geomspace(*axis.range, GRID_STEPS).tolist()
        return tuple((position, position * axis.factor * max(shares) / factor) for position in grid)
    if len({round(value, 9) for value in known.values()}) != 1:
        return ()
    if any(link_goodput_bps(entry) is None for entry in entries):
        return ()
    level = next(iter(known.values()))
    ends = axis.range if axis.numeric else (axis.ticks[0][0], axis.ticks[-1][0])
    return tuple((end, level) for end in ends)


def knob_value(name: str, text: str) -> float | None:
    """Return a knob's value as a number to sort by, None where it has none."""
    if name in axes.MEMORY:
        return axes.measure(name, Entry("", 0, {name: text}, None))
    try:
        value = PATH_KNOBS[name].value(text)
    except (KeyError, ValueError):
        return None
    return float(value) if isinstance(value, int | float) else None
