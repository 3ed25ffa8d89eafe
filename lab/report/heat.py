"""A figure over two knobs: a column by colour, or which value of a third knob gives most."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import plotly.graph_objects as go

from lab.report import axes, choice, columns, spread, theory, winners
from lab.report.columns import Scale
from lab.report.drawn import Drawn, hover, with_legend
from lab.report.grid import FOOT_PX, Grid, cells_of, trace
from lab.report.shades import ink, inked, shades
from lab.report.stored import Entry, Stored, varying
from lab.scenario import WINNER, Figure

MOST_MAPS = 6


def draw(asked: Figure, stored: Stored, number: int) -> Drawn | None:
    """Return the figure, the `number`th of the report; None where the run has nothing to show in it."""
    x, rows, y = asked.x, asked.rows or "", asked.y
    column = "steady_goodput_bps" if y == WINNER else y
    candidates = [
        entry
        for entry in stored.done
        if x in entry.knobs and rows in entry.knobs and columns.number(entry.row, column) is not None
    ]
    by = [name for name in asked.by if name not in (x, rows)]
    picked = choice.choose(candidates, [x, rows], by)
    chosen = picked.entries
    if not (set(varying(chosen)) & {x, rows}) or (y == WINNER and not by):
        return None
    try:
        scale = columns.scale(column, [columns.number(entry.row, column) or 0.0 for entry in chosen])
    except KeyError:
        return None
    ways = tuple(choice.in_order(knob, [entry.knobs[knob] for entry in chosen], chosen) for knob in (x, rows))
    layout = Grid(x, rows, ways[0], ways[1])
    if y == WINNER:
        figure, told = winners.draw(by[0], stored, chosen, layout)
    else:
        figure, told = _maps(by, y, scale, stored, chosen, layout)
    told += _theories(figure, asked.theory, chosen, layout)
    narrow = layout.narrow(with_legend(figure, FOOT_PX))
    caption = f"{told} {picked.words}".strip()
    return Drawn(f"{number:02d}-{asked.title}", asked.title, caption, picked.words, figure, narrow)


def _maps(
    by: Sequence[str], y: str, scale: Scale, stored: Stored, chosen: Sequence[Entry], layout: Grid
) -> tuple[go.Figure, str]:
    """Return a map of a column for each combination of the knobs that tell maps apart."""
    names = [name for name in by if name in varying(list(chosen))]
    groups: dict[tuple[str, ...], list[Entry]] = {}
    for entry in chosen:
        groups.setdefault(tuple(entry.knobs.get(name, "") for name in names), []).append(entry)
    kept = dict(list(groups.items())[:MOST_MAPS])
    titles = [choice.name(names, words) if names else "" for words in kept]
    figure = layout.figure(titles)
    cells = [cells_of(members, layout) for members in kept.values()]
    means = [
        {place: spread.of([columns.number(e.row, y) or 0.0 for e in its]) for place, its in one.items()}
        for one in cells
    ]
    every = [its.mean / scale.factor for one in means for its in one.values()]
    colours = shades(scale, every)
    for number, (title, its, spreads) in enumerate(zip(titles, cells, means, strict=True)):
        values = {place: one.mean / scale.factor for place, one in spreads.items()}
        inks = {place: ink(colours.at(value)) for place, value in values.items()}
        texts = {
            place: hover(
                its[place][0], stored, title, one.words(scale) or f"{scale.words} {scale.text(one.mean)}"
            )
            for place, one in spreads.items()
        }
        suffix = "" if number == 0 else str(number + 1)
        figure.add_trace(
            trace(
                layout,
                {place: colours.z(value) for place, value in values.items()},
                {place: inked(_short(value), inks[place]) for place, value in values.items()},
                texts,
                {place: members[0].id for place, members in its.items()},
            ).update(coloraxis="coloraxis", xaxis=f"x{suffix}", yaxis=f"y{suffix}")
        )
    figure.update_layout(coloraxis=colours.axis())
    told = f"Colour is {scale.words[:1].lower()}{scale.words[1:]}"
    told += f", in {scale.unit}." if scale.unit else "."
    if colours.log:
        told += " Colours are logarithmic."
    if any(one.n > 1 for its in means for one in its.values()):
        told += " Of several seeds it is the mean."
    if len(kept) < len(groups):
        told += f" The first {len(kept)} of {len(groups)} maps."
    return figure, told


def _short(value: float) -> str:
    """Return a number as it fits into a cell."""
    return f"{value:.0f}" if abs(value) >= 99.95 else f"{value:.3g}"


def _theories(figure: go.Figure, name: str, chosen: Sequence[Entry], layout: Grid) -> str:
    """Draw the rule of the router's buffer over a map of flows and queues; return its words."""
    if name != "router_buffer" or {layout.x, layout.rows} != {"flows", "queue"} or layout.maps > 1:
        return ""
    axis = axes.build("queue", chosen)
    along = {text: number for number, text in enumerate(layout.xs if layout.x == "queue" else layout.ys)}
    known = sorted(
        (float(axis.positions[entry.id]), along[entry.knobs["queue"]]) for entry in chosen if axis.numeric
    )
    if not known:
        return ""
    line = {}
    for entry in chosen:
        size, unit = theory.router_buffer_bytes(entry), axis.unit_bytes(entry)
        if size is not None and unit is not None:
            line[entry.knobs["flows"]] = _between(size / unit, known)
    flows = layout.ys if layout.x == "queue" else layout.xs
    pairs = [(number, line[text]) for number, text in enumerate(flows) if line.get(text) is not None]
    ways = [number for number, _ in pairs], [place for _, place in pairs]
    xs, ys = reversed(ways) if layout.x == "queue" else ways
    look = {"color": "black", "width": 2, "dash": "dot"}
    name = "RTT × rate / √n"
    figure.add_trace(
        go.Scatter(x=xs, y=ys, mode="lines", line=look, name=name, hoverinfo="skip", showlegend=True)
    )
    return f" The dotted line is theory: {theory.ROUTER_BUFFER}."


def _between(value: float, known: Sequence[tuple[float, int]]) -> float | None:
    """Return where a value stands among categories, by its logarithm; None outside of them."""
    for (low, start), (high, end) in pairwise(known):
        if low <= value <= high and low < high:
            return start + (end - start) * math.log(value / low) / math.log(high / low)
    return None
