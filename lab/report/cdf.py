"""A figure of distributions: which share of the rows of a table has at most so much of a column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from lab.report import boxes, choice, columns, style
from lab.report.boxes import Value
from lab.report.drawn import Drawn, with_legend
from lab.report.stored import Entry, Stored, varying
from lab.scenario import Figure

MOST_STEPS = 300
"""Of one line; of more values these are taken evenly, and the tail besides."""
_TAIL = 60
_HEIGHT_PX, _BELOW_PX = 430, 58
_MOST_LINES = 24
_WHAT = {"points": "points", "flows": "flows", "delays": "packets"}


def draw(asked: Figure, stored: Stored, number: int) -> Drawn | None:
    """Return the figure, the `number`th of the report; None where the run has nothing to show in it."""
    by = list(asked.by)
    if asked.table == "delays" and "kind" not in by:
        by.append("kind")  # a probe's delay is not a request's
    inner = boxes.of_rows(asked, by)
    picked = choice.choose(list(stored.done), [], boxes.own_knobs(asked, by))
    its = boxes.values(asked, stored, picked.entries)
    try:
        scale = columns.scale(asked.y, [one.value for one in its], asked.table)
    except KeyError:
        return None
    if len(its) < 2:
        return None
    names = [name for name in by if name in varying(picked.entries) and name not in inner]
    names += [name for name in inner if len(boxes.told_apart(asked, [name], its)) > 1]
    groups = boxes.told_apart(asked, names, its)
    totals = _totals(asked, stored, picked.entries, names)
    shown = dict(list(groups.items())[:_MOST_LINES])
    figure = go.Figure(layout=_layout(scale, [one.value / scale.factor for one in its]))
    for place, (words, members) in enumerate(shown.items()):
        figure.add_trace(_line(choice.name(names, words), members, totals.get(words, 0), place, scale))
    narrow = with_legend(figure, _BELOW_PX)
    told = [f"The share of all {_WHAT[asked.table]} that have at most so much."]
    if any(totals.get(words, 0) > len(members) for words, members in groups.items()):
        told.append(
            "A line that ends under 100 % has packets that never arrived."
            if asked.table == "delays"
            else "A line that ends under 100 % has flows that did not finish."
        )
    if figure.layout.xaxis.type == "log":
        told.insert(0, "The horizontal axis is logarithmic.")
    if len(shown) < len(groups):
        told.append(f"The first {len(shown)} of {len(groups)} lines.")
    caption = " ".join([*told, picked.words]).strip()
    return Drawn(f"{number:02d}-{asked.title}", asked.title, caption, picked.words, figure, narrow)


def _totals(
    asked: Figure, stored: Stored, entries: Sequence[Entry], names: Sequence[str]
) -> dict[tuple[str, ...], int]:
    """Return how many rows there are of each line, those without a value too."""
    if asked.table == "points":
        return {}
    every = [Value(0.0, entry, row) for entry in entries for row in stored.rows(asked.table, entry)]
    if asked.table == "flows" and asked.y in ("fct_s", "slowdown"):
        # a flow without a size was never to finish
        every = [one for one in every if one.row.get("size_bytes") is not None]
    return {words: len(members) for words, members in boxes.told_apart(asked, names, every).items()}


def _layout(scale: columns.Scale, numbers: Sequence[float]) -> dict[str, Any]:
    xaxis = style.axis(title={"text": style.plain(scale.title), "standoff": 6}, nticks=8)
    if columns.wide(numbers):
        low, high = min(numbers) / 1.15, max(numbers) * 1.15
        xaxis |= {"type": "log", "range": [math.log10(low), math.log10(high)], **columns.log_ticks(low, high)}
    else:
        room = 0.02 * (max(numbers) - min(numbers)) or 1.0
        xaxis["range"] = [min(numbers) - room, max(numbers) + room]
    return style.layout(
        height=_HEIGHT_PX,
        xaxis=xaxis,
        yaxis=style.axis(title={"text": "Share with at most so much (%)"}, range=[0, 102], nticks=6),
        hovermode="closest",
    )


def steps(count: int) -> list[int]:
    """Return which of so many sorted values are drawn: the least, the largest, and more of the tail."""
    if count <= MOST_STEPS:
        return list(range(count))
    even = np.linspace(0, count - 1, MOST_STEPS - _TAIL)
    tail = count - 1 - np.geomspace(1, count / 10, _TAIL)
    return sorted({*even.round().astype(int).tolist(), *tail.round().astype(int).tolist()})


def _line(name: str, its: Sequence[Value], total: int, place: int, scale: columns.Scale) -> go.Scatter:
    ordered = sorted(its, key=lambda one: one.value)
    every = max(total, len(ordered))
    kept = steps(len(ordered))
    first = ordered[0]
    shares = [100 * (number + 1) / every for number in kept]
    texts = [
        f"<b>{style.plain(name)}</b><br>{share:.4g} % have at most"
        f" {style.plain(scale.text(ordered[at].value))}<br>{boxes.told_row(ordered[at])}"
        for at, share in zip(kept, shares, strict=True)
    ]
    return go.Scatter(
        x=[first.value / scale.factor, *(ordered[at].value / scale.factor for at in kept)],
        y=[0.0, *shares],
        mode="lines",
        line={
            "color": style.colour(place),
            "shape": "hv",
            "width": 2,
            "dash": "solid" if place < len(style.COLOURS) else style.dash(place),
        },
        name=style.plain(name),
        text=[texts[0], *texts],
        customdata=[first.entry.id, *(ordered[at].entry.id for at in kept)],
        hovertemplate="%{text}<extra></extra>",
    )
