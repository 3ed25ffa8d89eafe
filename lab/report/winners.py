"""A map of winners: which value of a knob gives most in each cell, by how much, and whether that is sure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import plotly.graph_objects as go

from lab import statistics
from lab.report import style, theory
from lab.report.drawn import hover
from lab.report.grid import Grid, Place, cells_of, trace
from lab.report.shades import Shades, ink, inked, mixed_with_white
from lab.report.stored import Entry, Stored
from lab.units import human_rate

EVEN = 1.01
"""A winner by less than this factor is none, where there are no repetitions to say."""
_UNSURE, _PALE = "not told apart", "#e6e6e6"
_FULL = 2.0
"""By this factor ahead a winner has its full colour."""


class Win(NamedTuple):
    """One cell. lead: times the next; written, told: in it and where it is pointed at; point: to get to."""

    lead: float
    written: str
    told: str
    point: str


@dataclass(frozen=True)
class Rival:
    """What one value of a knob gives in a cell: goodput by seed, bit/s, and one of its points."""

    by_seed: Mapping[int, float]
    entry: Entry

    @property
    def mean(self) -> float:
        """Of all seeds."""
        return fmean(self.by_seed.values())


def draw(by: str, stored: Stored, chosen: Sequence[Entry], grid: Grid) -> tuple[go.Figure, str]:
    """Return the map, with which value of the knob `by` gives most in each cell, and its words."""
    cells = {place: found for place, its in cells_of(chosen, grid).items() if (found := rivals(by, its))}
    wins: dict[str, dict[Place, Win]] = {}
    for place, found in cells.items():
        who, win = _win(found, stored)
        wins.setdefault(who, {})[place] = win
    figure = grid.figure([""])
    looks = {**style.colours(sorted(set(wins) - {_UNSURE})), _UNSURE: _PALE}
    for who in sorted(wins, key=lambda one: (one == _UNSURE, one)):
        at, colour = wins[who], looks[who]
        pale = _PALE if who == _UNSURE else mixed_with_white(colour, 0.72)
        shades = Shades([[0.0, pale], [1.0, colour]], 1.0, _FULL, "")
        map_ = trace(
            grid,
            {place: min(win.lead, _FULL) for place, win in at.items()},
            {place: inked(win.written, ink(shades.at(win.lead))) for place, win in at.items()},
            {place: win.told for place, win in at.items()},
            {place: win.point for place, win in at.items()},
        )
        figure.add_trace(map_.update(zmin=1, zmax=_FULL, colorscale=shades.scale, showscale=False))
        mark = {"symbol": "square", "size": 12, "color": colour}
        figure.add_trace(go.Scatter(x=[None], y=[None], mode="markers", name=style.plain(who), marker=mark))
    told = (
        f"In each cell the {by} with the largest goodput in the steady part, and how many times that of the"
        f" next it is; the colour is full from {_FULL:g} times on."
    )
    if any(len(rival.by_seed) > 1 for found in cells.values() for rival in found.values()):
        told += " Of several seeds it is the mean; grey is where they cannot tell the first two apart."
    elif _UNSURE in wins:
        told += f" Grey is where the first two are within {100 * (EVEN - 1):.0f} %."
    return figure, told


def _win(found: Mapping[str, Rival], stored: Stored) -> tuple[str, Win]:
    """Return who wins a cell, `_UNSURE` where nobody can be told, and how."""
    first, *others = sorted(found, key=lambda name: -found[name].mean)
    best, second = found[first], found[others[0]] if others else None
    lead = best.mean / second.mean if second and second.mean > 0 else math.inf
    sure = second is None or apart(best, second)
    heading = f"{first} alone" if second is None else f"{first}, {lead:.3g} times the next"
    said = ", ".join(f"{name} {human_rate(found[name].mean)}" for name in (first, *others))
    written = style.plain(first if sure else f"{first}?")
    if not sure and lead < EVEN:
        written = "even"
    elif math.isfinite(lead):
        written += f"<br>×{lead:.3g}"
    told = hover(best.entry, stored, heading, said)
    return (first if sure else _UNSURE), Win(lead, written, told, best.entry.id)


def rivals(by: str, entries: Sequence[Entry]) -> dict[str, Rival]:
    """Return what each value of a knob gives in one cell.

    Where the knob is the congestion control and a point mixes several, they
    compete within it: by the mean goodput of a flow.
    """
    found: dict[str, dict[int, float]] = {}
    examples: dict[str, Entry] = {}
    for entry in entries:
        total = entry.number("steady_goodput_bps")
        if total is None:
            continue
        mixed = theory.controls(entry) if by == "cc" else {}
        its = {entry.knobs.get(by, ""): total}
        if len(mixed) > 1:
            shares = entry.shares("cc_shares")
            its = {name: shares[name] * total / mixed[name] for name in mixed if name in shares}
        for name, value in its.items():
            found.setdefault(name, {})[entry.seed] = value
            examples.setdefault(name, entry)
    return {name: Rival(by_seed, examples[name]) for name, by_seed in found.items()}


def apart(first: Rival, second: Rival) -> bool:
    """Return whether the first has more than the second: by repetitions, with one of each by `EVEN`."""
    told = statistics.tell_apart(second.by_seed, first.by_seed).apart
    return first.mean >= EVEN * second.mean if told is None else told
