"""A figure of throughput against delay: a mark a point, an ellipse where repetitions allow one.

As Winstein and Balakrishnan (SIGCOMM 2013) draw it: the ellipse is where the
covariance of the repetitions puts one standard deviation, and delay falls to the
right, so that up and right is better.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from lab.report import choice, columns, style
from lab.report.columns import Scale
from lab.report.drawn import Drawn, hover, with_legend
from lab.report.series import Floats
from lab.report.stored import Entry, Stored, varying
from lab.scenario import Figure

LEAST_SEEDS = 3
"""Fewer repetitions have no covariance worth drawing."""
_HEIGHT_PX, _BELOW_PX = 500, 58
_CORNERS = 72


def draw(asked: Figure, stored: Stored, number: int) -> Drawn | None:
    """Return the figure, the `number`th of the report; None where the run has nothing to show in it."""

    def both(entry: Entry) -> tuple[float, float] | None:
        x, y = columns.number(entry.row, asked.x), columns.number(entry.row, asked.y)
        return None if x is None or y is None else (x, y)

    picked = choice.choose([entry for entry in stored.done if both(entry)], [], list(asked.by))
    at = {entry.id: pair for entry in picked.entries if (pair := both(entry)) is not None}
    if len(at) < 2:
        return None
    try:
        across = columns.scale(asked.x, [x for x, _ in at.values()])
        up = columns.scale(asked.y, [y for _, y in at.values()])
    except KeyError:
        return None
    places = {name: (x / across.factor, y / up.factor) for name, (x, y) in at.items()}
    log = columns.wide([x for x, _ in places.values()])
    names = [name for name in asked.by if name in varying(picked.entries)]
    groups: dict[tuple[str, ...], list[Entry]] = {}
    for entry in picked.entries:
        groups.setdefault(tuple(entry.knobs.get(name, "") for name in names), []).append(entry)
    looks = _looks(names, groups)
    figure = go.Figure()
    drawn: list[Floats] = []
    for words, members in groups.items():
        name = choice.name(names, words)
        colour, symbol = looks[words]
        outlines = [_ellipse([places[one.id] for one in its], log=log) for its in repeated(members)]
        ellipses = [outline for outline in outlines if outline is not None]
        drawn += ellipses
        figure.add_traces([_outline(ellipse, name, colour) for ellipse in ellipses])
        marks = _marks(members, places, _teller(name, stored, across, up))
        marks.update(name=style.plain(name), legendgroup=style.plain(name))
        figure.add_trace(marks.update(marker={"color": colour, "symbol": symbol}))
    figure.update_layout(_layout(across, up, list(places.values()), drawn, log=log))
    narrow = with_legend(figure, _BELOW_PX)
    told = ["A mark a point."]
    if drawn:
        told.append(
            f"Ellipses are one standard deviation around the mean of {LEAST_SEEDS} or more seeds, by their"
            " covariance; the larger mark is that mean."
        )
    if across.less:
        told.append("The horizontal axis is turned round: better is up and to the right.")
    if log:
        told.append("It is logarithmic.")
    caption = " ".join([*told, picked.words]).strip()
    return Drawn(f"{number:02d}-{asked.title}", asked.title, caption, picked.words, figure, narrow)


def repeated(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Return the groups of points that differ in nothing but their seed."""
    groups: dict[tuple[tuple[str, str], ...], list[Entry]] = {}
    for entry in entries:
        groups.setdefault(tuple(sorted(entry.knobs.items())), []).append(entry)
    return list(groups.values())


def _looks(
    names: Sequence[str], groups: Mapping[tuple[str, ...], Any]
) -> dict[tuple[str, ...], tuple[str, str]]:
    """Return (colour, mark) of each group: the colour by the first knob, the mark by the others."""
    firsts = list(dict.fromkeys(words[0] for words in groups)) if names else []
    colours = style.colours(firsts)
    rests = list(dict.fromkeys(words[1:] for words in groups))
    found = {}
    for words in groups:
        place = rests.index(words[1:]) if len(names) > 1 else firsts.index(words[0]) if names else 0
        found[words] = (colours[words[0]] if names else style.BLUE, style.symbol(place))
    return found


def _ellipse(at: Sequence[tuple[float, float]], *, log: bool) -> Floats | None:
    """Return the middle and the outline of one standard deviation, shape (n, 2); None for too few points."""
    if len(at) < LEAST_SEEDS:
        return None
    points = np.array(at, dtype=np.float64)
    if log:
        points[:, 0] = np.log10(points[:, 0])
    middle = points.mean(axis=0)
    variances, ways = np.linalg.eigh(np.cov(points.T))
    turns = np.linspace(0, 2 * math.pi, _CORNERS)
    circle = np.stack([np.cos(turns), np.sin(turns)])
    outline = middle[:, None] + ways @ (np.sqrt(np.maximum(variances, 0))[:, None] * circle)
    found = np.vstack([middle, outline.T])
    if log:
        found[:, 0] = 10 ** found[:, 0]
    return found


def _outline(ellipse: Floats, name: str, colour: str) -> go.Scatter:
    return go.Scatter(
        x=ellipse[1:, 0],
        y=ellipse[1:, 1],
        mode="lines",
        line={"color": colour, "width": 1.5},
        fill="toself",
        fillcolor=style.faded(colour, 0.16),
        legendgroup=style.plain(name),
        showlegend=False,
        hoverinfo="skip",
    )


def _teller(name: str, stored: Stored, across: Scale, up: Scale) -> Callable[[Entry, float, float, int], str]:
    def tell(entry: Entry, x: float, y: float, count: int) -> str:
        said = f"{across.words} {x:.4g} {across.unit}, {up.words[:1].lower()}{up.words[1:]} {y:.4g} {up.unit}"
        return hover(entry, stored, name if count == 1 else f"{name}, mean of {count} seeds", said)

    return tell


def _marks(
    entries: Sequence[Entry],
    places: Mapping[str, tuple[float, float]],
    tell: Callable[[Entry, float, float, int], str],
) -> go.Scatter:
    """Return the marks of single points, and of the means of repetitions where these have an ellipse.

    tell: what pointing at a mark says: of a point, its place, and how many it is the mean of.
    """
    xs, ys, sizes, texts, points = [], [], [], [], []

    def mark(entry: Entry, x: float, y: float, count: int, size: float) -> None:
        xs.append(x)
        ys.append(y)
        sizes.append(size)
        texts.append(tell(entry, x, y, count))
        points.append(entry.id)

    for its in repeated(entries):
        several = len(its) >= LEAST_SEEDS
        for entry in its:
            mark(entry, *places[entry.id], 1, 6 if several else 11)
        if several:
            middle = np.mean([places[entry.id] for entry in its], axis=0)
            mark(its[0], float(middle[0]), float(middle[1]), len(its), 13)
    return go.Scatter(
        x=xs,
        y=ys,
        mode="markers",
        marker={"size": sizes, "opacity": 0.9, "line": {"color": "white", "width": 0.8}},
        text=texts,
        customdata=points,
        hovertemplate="%{text}<extra></extra>",
        cliponaxis=False,
    )


def _layout(
    across: Scale, up: Scale, places: Sequence[tuple[float, float]], ellipses: Sequence[Floats], *, log: bool
) -> dict[str, Any]:
    every = np.vstack([np.array(places), *ellipses])
    xs = np.log10(every[:, 0]) if log else every[:, 0]
    room = max(0.06 * float(np.ptp(xs)), 0.01 * float(np.abs(xs).max())) or 1.0
    low, high = float(xs.min()) - room, float(xs.max()) + room
    if not log and low < 0.25 * high:
        low = min(0.0, low) if low < 0 and xs.min() < 0 else 0.0
    xaxis = style.axis(title={"text": style.plain(across.title), "standoff": 6}, nticks=8)
    xaxis["range"] = [high, low] if across.less else [low, high]
    if log:
        xaxis |= {"type": "log", **columns.log_ticks(10**low, 10**high)}
    ys = every[:, 1]
    # numbers that differ by next to nothing would fill the plot with their last digits
    room = max(0.08 * float(np.ptp(ys)), 0.01 * float(np.abs(ys).max())) or 1.0
    floor = 0.0 if ys.min() < 0.6 * ys.max() else float(ys.min()) - room
    ceiling = float(ys.max()) + room
    better = {
        "text": "better ↗",
        "x": 0,
        "y": 1,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 13, "color": style.GREY},
    }
    return style.layout(
        height=_HEIGHT_PX,
        xaxis=xaxis,
        yaxis=style.axis(**style.upright(up.title), range=[floor, ceiling], nticks=8),
        hovermode="closest",
        annotations=[better] if across.less and not up.less else [],
    )
