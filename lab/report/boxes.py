"""A figure of boxes: how a column spreads over repetitions or over flows, with every value beside its box."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from lab.knobs import PATH_KNOBS
from lab.report import axes, choice, columns, style
from lab.report.drawn import Drawn, hover, with_legend
from lab.report.stored import Entry, Stored, varying
from lab.scenario import Figure
from lab.schema import TABLES
from lab.traffic import LASTING

MOST_MARKS = 150
"""Values of one box that are drawn one by one; of more only those outside the whiskers."""
MOST_BOXES = 60
_HEIGHT_PX, _BELOW_PX = 430, 58

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Value:
    """One value, with the point it comes from and the row of its table."""

    value: float
    entry: Entry
    row: Row


def values(asked: Figure, stored: Stored, entries: Sequence[Entry]) -> list[Value]:
    """Return what a figure shows of a table: a value a row; a row without one is left out."""
    if asked.table == "points":
        every = [(entry, entry.row or {}) for entry in entries]
    else:
        every = [(entry, row) for entry in entries for row in stored.rows(asked.table, entry)]
    found = [(columns.number(row, asked.y), entry, row) for entry, row in every]
    return [Value(value, entry, row) for value, entry, row in found if value is not None]


def told_apart(
    asked: Figure, names: Sequence[str], its: Sequence[Value]
) -> dict[tuple[str, ...], list[Value]]:
    """Return values by what tells them apart, in the order in which they come."""
    found: dict[tuple[str, ...], list[Value]] = {}
    for one in its:
        words = tuple(choice.tag(name, one.entry, one.row, asked.table) for name in names)
        found.setdefault(words, []).append(one)
    return found


def of_rows(asked: Figure, names: Sequence[str]) -> list[str]:
    """Return those of these names that are columns of the figure's table, not knobs of its points."""
    if asked.table == "points":
        return []
    held = {column.name for column in TABLES.get(asked.table, ())}
    return [name for name in names if name in held]


_KNOBS = {"rtt_base_s": "rtt", "size_bytes": "bytes", "start_s": "start", "stop_s": "stop"}
"""What sets a column of flows, where it is called otherwise."""


def own_knobs(asked: Figure, names: Sequence[str]) -> list[str]:
    """Return the knobs that a figure tells apart by, be it by a column that they set."""
    held = of_rows(asked, names)
    found = [_KNOBS.get(name, name) if name in held else name for name in names]
    return [name for name in dict.fromkeys(found) if name in PATH_KNOBS]


def draw(asked: Figure, stored: Stored, number: int) -> Drawn | None:
    """Return the figure, the `number`th of the report; None where the run has nothing to show in it."""
    knobs = own_knobs(asked, [name for name in (asked.x, *asked.by) if name])
    candidates = list(stored.done)
    if asked.table == "points":
        candidates = [entry for entry in candidates if columns.number(entry.row, asked.y) is not None]
    picked = choice.choose(candidates, own_knobs(asked, [asked.x] if asked.x else []), knobs)
    its = values(asked, stored, picked.entries)
    try:
        scale = columns.scale(asked.y, [one.value for one in its], asked.table)
    except KeyError:
        return None
    if not its:
        return None
    by = [name for name in asked.by if name != asked.x]
    by = [name for name in by if name in of_rows(asked, by) or name in varying(picked.entries)]
    groups = told_apart(asked, by, its)
    places = _places(asked, its)
    if len(groups) * len(places) > MOST_BOXES or max(map(len, groups.values())) < 2:
        return None
    figure = go.Figure(layout=_layout(asked, scale, its, places))
    looks = style.colours([choice.name(by, words) for words in groups])
    for words, members in groups.items():
        called = choice.name(by, words)
        at = [called] * len(members) if not asked.x else _tags(asked, members)
        figure.add_trace(_box(called, at, members, scale, looks[called], stored, asked))
    single = len(groups) == 1 or not asked.x
    if single:
        figure.update_traces(showlegend=False)
    narrow = with_legend(figure, _BELOW_PX)
    what = {"points": "a point, which is one repetition"}.get(asked.table, "a flow")
    told = (
        f"A mark is {what}. Boxes are quartiles, the line inside is the median, whiskers reach 1.5 boxes far."
    )
    if max(map(len, groups.values())) > MOST_MARKS:
        told += f" Of more than {MOST_MARKS} only those beyond the whiskers are drawn one by one."
    if figure.layout.yaxis.type != "log" and figure.layout.yaxis.range[0] > 0:
        told += " The vertical axis does not begin at 0."
    missing = _missing(asked, stored, picked.entries, len(its))
    caption = " ".join(part for part in (told, missing, picked.words) if part)
    return Drawn(f"{number:02d}-{asked.title}", asked.title, caption, picked.words, figure, narrow)


def _tags(asked: Figure, its: Sequence[Value]) -> list[str]:
    return [choice.tag(asked.x, one.entry, one.row, asked.table) for one in its]


def _places(asked: Figure, its: Sequence[Value]) -> list[str]:
    """Return the values along the axis, by size where they have one."""
    if not asked.x:
        return []
    if asked.x not in of_rows(asked, [asked.x]):
        return choice.in_order(asked.x, _tags(asked, its), [one.entry for one in its])
    raw: dict[str, Any] = {tag: one.row.get(asked.x) for tag, one in zip(_tags(asked, its), its, strict=True)}
    numeric = all(isinstance(value, int | float) for value in raw.values())
    return sorted(raw, key=lambda tag: raw[tag] if numeric else tag)


def _missing(asked: Figure, stored: Stored, entries: Sequence[Entry], there: int) -> str:
    if asked.table == "points":
        return ""
    every = sum(len(stored.rows(asked.table, entry)) for entry in entries)
    if every == there:
        return ""
    return f"{every - there} of {every} flows have no such number, as they did not finish; they are left out."


def _layout(
    asked: Figure, scale: columns.Scale, its: Sequence[Value], places: Sequence[str]
) -> dict[str, Any]:
    numbers = [one.value / scale.factor for one in its]
    yaxis = style.axis(**style.upright(scale.title), nticks=8)
    if columns.wide(numbers):
        low, high = min(numbers) / 1.2, max(numbers) * 1.2
        yaxis |= {"type": "log", "range": [math.log10(low), math.log10(high)], **columns.log_ticks(low, high)}
    else:
        low, high = min(numbers), max(numbers)
        # what spreads little would be flat on an axis that begins at zero
        low = min(0.0, low) if high - low > 0.4 * high else low
        room = 0.08 * (high - low) or 0.01 * abs(high) or 1.0
        yaxis["range"] = [low if low <= 0 else low - room, high + room]
    xaxis = style.axis(title={"text": "", "standoff": 6}, type="category")
    if asked.x:
        ofrow = asked.x in of_rows(asked, [asked.x])
        xaxis["title"]["text"] = style.plain(columns.words(asked.x) if ofrow else axes.title(asked.x))
        xaxis |= {"categoryorder": "array", "categoryarray": list(places), "tickvals": list(places)}
        xaxis["ticktext"] = [style.plain(place) for place in places]
        xaxis["range"] = [-0.5, len(places) - 0.5]
    return style.layout(
        height=_HEIGHT_PX,
        xaxis=xaxis,
        yaxis=yaxis,
        boxmode="group" if asked.x else "overlay",
        boxgap=0.3,
        boxgroupgap=0.4,
        hovermode="closest",
    )


def _box(
    name: str,
    at: Sequence[str],
    its: Sequence[Value],
    scale: columns.Scale,
    colour: str,
    stored: Stored,
    asked: Figure,
) -> go.Box:
    every = len(its) <= MOST_MARKS * max(1, len(set(at)))
    return go.Box(
        x=list(at),
        y=[one.value / scale.factor for one in its],
        name=style.plain(name),
        boxpoints="all" if every else "outliers",
        jitter=0.5,
        pointpos=-1.5 if every else 0,
        width=None if asked.x else 0.35,
        marker={"color": colour, "size": 5, "opacity": 0.75},
        line={"color": colour, "width": 1.6},
        fillcolor=style.faded(colour, 0.25),
        hoveron="points+boxes",
        text=[_said(one, name, scale, stored, asked) for one in its] if every else None,
        customdata=[one.entry.id for one in its],
        hovertemplate="%{text}<extra></extra>" if every else None,
    )


def _said(one: Value, name: str, scale: columns.Scale, stored: Stored, asked: Figure) -> str:
    said = f"{scale.words} {scale.text(one.value)}"
    if asked.table == "points":
        return hover(one.entry, stored, name, said)
    return f"<b>{style.plain(said)}</b><br>{told_row(one)}<br>{style.plain(stored.label(one.entry))}"


def told_row(one: Value) -> str:
    """Return what a row of a table is, for pointing at it."""
    kind, flow = one.row.get("kind"), one.row.get("flow")
    words = [f"{kind}" if kind and kind != LASTING else "", f"flow {flow}" if flow is not None else ""]
    words += [str(one.row.get("cc") or ""), f"of point {one.entry.id}"]
    return style.plain(" ".join(word for word in words if word))
