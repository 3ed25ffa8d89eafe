"""What a figure of curves shows: which points, in which curves, along which axis, and the model beside them.

Points are joined only where they differ in nothing but the figure's own knobs
and the seed. No plotting here; `lab.report.lines` draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lab.model.path import payload_share
from lab.report import axes, choice, columns, knee, predicted, spread, style, theory
from lab.report.asked import asked
from lab.report.axes import Axis
from lab.report.columns import Scale
from lab.report.predicted import GRID_STEPS, Line
from lab.report.spread import Spread
from lab.report.stored import Entry, Stored, varying
from lab.report.theory import Theory
from lab.scenario import Figure

GOODPUTS = ("goodput_bps", "steady_goodput_bps")

_LOG_SPAN = 10.0
"""A ratio that spans more than this has a logarithmic axis, and a goodput with a theory of loss."""


@dataclass(frozen=True)
class Curve:
    """Points that are joined.

    at: {position: what its seeds come to}, in the column's unit. prediction,
    outdated: see `lab.report.predicted`; knee: one of the points.
    """

    name: str
    entries: tuple[Entry, ...]
    at: Mapping[float | str, Spread]
    prediction: Line
    outdated: bool
    knee: Entry | None


@dataclass(frozen=True)
class Plot:
    """One figure against a knob. All numbers in the units of its axes.

    fixed: knobs that vary in the run and not in this figure; left_out: points
    with other values of them. link, bdp: reference lines, None where there is no
    one value. log: whether the vertical axis is logarithmic. of_cc: whether each
    curve is a congestion control, which has its own colour.
    """

    title: str
    axis: Axis
    y: str
    scale: Scale
    curves: tuple[Curve, ...]
    fixed: Mapping[str, str]
    left_out: int
    link: tuple[tuple[float | str, float], ...]
    bdp: float | None
    theories: tuple[Theory, ...] = ()
    log: bool = False
    of_cc: bool = False

    def colour(self, place: int) -> str:
        """Return the colour of the nth curve."""
        if self.of_cc:
            return style.colours([curve.name for curve in self.curves])[self.curves[place].name]
        return style.colour(place)

    def value(self, entry: Entry) -> float:
        """Return what a point shows, in the axis's unit."""
        return (columns.number(entry.row, self.y) or 0.0) / self.scale.factor


def plots(stored: Stored) -> list[Plot]:
    """Return the scenario's figures of curves that this run has something to show in."""
    figures = [asked(told) for told in stored.manifest.get("figures", ())]
    found = [plot(figure, stored) for figure in figures if figure.kind == "curve"]
    return [one for one in found if one is not None]


def plot(figure: Figure, stored: Stored) -> Plot | None:
    """Return what a figure of curves shows; None where this run has nothing to show in it."""
    x, y = figure.x, figure.y
    by = [name for name in figure.by if name != x]
    candidates = [e for e in stored.done if x in e.knobs and columns.number(e.row, y) is not None]
    picked = choice.choose(candidates, [x], by)
    chosen = picked.entries
    if len({entry.knobs[x] for entry in chosen}) < 2:
        return None
    values = [columns.number(entry.row, y) or 0.0 for entry in chosen]
    try:
        scale = columns.scale(y, values)
    except KeyError:
        return None
    axis = axes.build(x, chosen)
    forms = {entry.id: axes.form(x, entry) for entry in chosen}
    split = {"fixed", "autotuned"} <= set(forms.values())

    groups: dict[tuple[str, ...], list[Entry]] = {}
    names = [name for name in by if name in varying(chosen)]
    for entry in chosen:
        words = [entry.knobs.get(name, "") for name in names]
        if split:  # the default is autotuned too
            words.append(forms[entry.id].replace("default", "autotuned"))
        groups.setdefault(tuple(words), []).append(entry)
    keys = [*names, x] if split else names
    engine = str(stored.manifest.get("engine"))
    curves = []
    for group, members in groups.items():
        members.sort(key=lambda entry: _rank(axis, entry))
        at = {
            position: spread.of([columns.number(entry.row, y) or 0.0 for entry in its])
            for position, its in at_positions(members, axis).items()
        }
        line, outdated = predicted.curve(y, members, axis, engine, scale.factor)
        bent = _knee(members, at, axis) if y in GOODPUTS and x in axes.MEMORY else None
        curves.append(Curve(choice.name(keys, group), tuple(members), at, line, outdated, bent))
    bdps = {entry.number("bdp_bytes") for entry in chosen}
    bdp = bdps.pop() if x in axes.MEMORY and len(bdps) == 1 and axis.numeric else None
    theories = theory.of(figure.theory, axis, y, chosen, scale.factor)
    sloped = figure.theory in theory.OF_LOSS and bool(theories)
    log = columns.wide(values, _LOG_SPAN) if sloped or scale.ratio else scale.less and columns.wide(values)
    return Plot(
        title=figure.title,
        axis=axis,
        y=y,
        scale=scale,
        curves=tuple(curves),
        fixed=picked.fixed,
        left_out=picked.left_out,
        link=_link(chosen, axis, scale.factor) if y in GOODPUTS else (),
        bdp=bdp / axes.MIB if bdp else None,
        theories=theories,
        log=log,
        of_cc=keys == ["cc"] and len(groups) <= len(style.COLOURS),
    )


def at_positions(entries: Sequence[Entry], axis: Axis) -> dict[float | str, list[Entry]]:
    """Return the points at each position, in the order of the points."""
    found: dict[float | str, list[Entry]] = {}
    for entry in entries:
        found.setdefault(axis.positions[entry.id], []).append(entry)
    return found


def _knee(entries: Sequence[Entry], at: Mapping[float | str, Spread], axis: Axis) -> Entry | None:
    if not axis.numeric:
        return None
    found = knee.find({float(position): its.mean for position, its in at.items()})
    return None if found is None else at_positions(entries, axis)[found][0]


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
    return axes.measure(name, Entry("", 0, {name: text}, None))
