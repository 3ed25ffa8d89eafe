"""A figure over time: every flow of some points, a panel a point, and below how fairly they share.

Not here: the index itself (see `lab.measures`) and how panels are drawn (see
`lab.report.stack`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from lab import measures
from lab.errors import StoreError
from lab.report import choice, panels, series, stack, style
from lab.report.drawn import Drawn
from lab.report.panels import Line, Panel
from lab.report.series import Floats, FlowSeries, PointSeries
from lab.report.stored import Entry, Stored, varying
from lab.scenario import Figure
from lab.traffic import LASTING, REVERSE

MOST_PANELS = 6
MOST_FLOWS = 24
"""Flows of a point that are drawn one by one."""
_DASHES = {LASTING: "solid", REVERSE: "dot"}
_MOST_WINDOWS = 150
"""Over which Jain's index is taken."""


class Shown(NamedTuple):
    """One of a flow's series: title, unit, and what of the series' unit one of the panel's is."""

    title: str
    unit: str
    factor: float
    column: str = ""


SERIES = {
    "goodput_bps": Shown("Goodput", "Mbit/s", 1e6),
    "cwnd_bytes": Shown("Congestion window", "KiB", 1024.0, "cwnd_bytes"),
    "inflight_bytes": Shown("Bytes in flight", "KiB", 1024.0, "inflight_bytes"),
    "rtt_s": Shown("Smoothed RTT", "ms", 1e-3, "srtt_s"),
}


class _Point(NamedTuple):
    name: str
    entry: Entry
    flows: list[FlowSeries]
    drawn: PointSeries
    window_s: float


def draw(asked: Figure, stored: Stored, number: int) -> Drawn | None:
    """Return the figure, the `number`th of the report; None where the run has nothing to show in it."""
    shown = SERIES.get(asked.y, SERIES["goodput_bps"])
    picked, left_out = _pick(asked, stored)
    points = [
        point for entry in picked.entries if (point := _read(stored, entry, picked.entries)) is not None
    ]
    if not points:
        return None
    looks = style.colours(list(dict.fromkeys(flow.cc for point in points for flow in point.flows)))
    built = [_panel(point, shown, looks) for point in points]
    shared = [(point, *fairness(point.flows, point.window_s)) for point in points]
    shared = [one for one in shared if len(one[1])]
    if shared:
        built.append(_jain(shared, looks))
    figure, narrow = stack.draw(built)
    told = [f"{shown.title} of every flow, coloured by congestion control; a panel a point."]
    if shown.column == "":
        told[0] = f"Goodput of every flow over the last {_time([point.window_s for point in points])},"
        told[0] += " coloured by congestion control; a panel a point."
    told.append("A triangle is where a flow begins, a square where it ends.")
    if any(point.drawn.merged for point in points):
        told.append(
            f"Of more than {MOST_FLOWS} flows those of one congestion control are drawn as their sum."
        )
    if shared:
        told.append("Jain's index is of the lasting flows that are there: 1 where all have the same.")
    if left_out:
        told.append(f"{choice.count(left_out)} of as many settings are not shown.")
    caption = " ".join([*told, picked.words]).strip()
    return Drawn(f"{number:02d}-{asked.title}", asked.title, caption, picked.words, figure, narrow)


def _pick(asked: Figure, stored: Stored) -> tuple[choice.Choice, int]:
    """Return the points to show, one a setting and in order, and how many settings are left out."""
    names = [name for name in (asked.x, *asked.by) if name]
    if not asked.x:
        names = list(varying(list(stored.done)))
    picked = choice.choose(list(stored.done), [asked.x] if asked.x else [], names)
    groups: dict[tuple[str, ...], Entry] = {}
    for entry in picked.entries:
        groups.setdefault(tuple(entry.knobs.get(name, "") for name in names), entry)
    firsts = list(groups.values())
    if asked.x:
        order = choice.in_order(asked.x, [entry.knobs.get(asked.x, "") for entry in firsts], firsts)
        firsts.sort(key=lambda entry: order.index(entry.knobs.get(asked.x, "")))
    kept = firsts
    if len(firsts) > MOST_PANELS:
        kept = [firsts[place * (len(firsts) - 1) // (MOST_PANELS - 1)] for place in range(MOST_PANELS)]
    return replace(picked, entries=kept), len(firsts) - len(kept)


def _read(stored: Stored, entry: Entry, among: Sequence[Entry]) -> _Point | None:
    try:
        samples, rows = stored.rows("samples", entry), stored.rows("flows", entry)
    except StoreError:
        return None
    flows = [flow for flow in series.each_flow(samples, rows) if len(flow.read_t_s) > 1]
    if not flows:
        return None
    names = varying(list(among))
    said = choice.name(names, [entry.knobs.get(one, "") for one in names]) if names else ""
    name = said or stored.label(entry) or entry.id
    drawn = series.read(samples, (), rows, most_flows=MOST_FLOWS)
    return _Point(name, entry, flows, drawn, panels.window_s(entry, flows))


def _time(windows_s: Sequence[float]) -> str:
    low, high = min(windows_s), max(windows_s)
    said = panels.time(low)
    return said if math.isclose(low, high, rel_tol=0.01) else f"{said} to {panels.time(high)}"


def _panel(point: _Point, shown: Shown, looks: dict[str, str]) -> Panel:
    lines = []
    named: set[str] = set()
    alone = len(point.drawn.flows) == 1
    for flow in point.drawn.flows:
        colour = looks[flow.cc]
        t_s, values = (flow.t_s, flow.columns[shown.column]) if shown.column else (flow.read_t_s, None)
        if values is None:
            values = flow.mean_goodput_bps(point.window_s)
        if not len(t_s):
            continue
        # one entry a congestion control; pointing at a line says which flow it is
        called = " ".join(word for word in (flow.cc, flow.kind if flow.kind != LASTING else "") if word)
        called = flow.name if flow.flows > 1 else called or flow.name
        lines.append(
            Line(
                called,
                t_s,
                values / shown.factor,
                colour,
                _DASHES.get(flow.kind, "dash"),
                width=2.0 if alone or flow.flows > 1 else 1.3,
                hover=True,
                label=_label(flow),
                listed=called not in named,
                point=point.entry.id,
            )
        )
        named.add(called)
    return Panel(f"{shown.title}: {point.name}", shown.unit, (*lines, *_ends(point, looks)))


def _label(flow: FlowSeries) -> str:
    return flow.name if flow.cc in flow.name else f"{flow.name} {flow.cc}".strip()


def _ends(point: _Point, looks: dict[str, str]) -> list[Line]:
    """Return marks on the time axis where flows begin and end, of those that do not span the whole load."""
    if len(point.flows) > MOST_FLOWS:
        return []
    start = min(flow.began_s for flow in point.flows)
    end = max(flow.last_s for flow in point.flows)
    slack = 0.02 * (end - start)
    found = []
    for flow in point.flows:
        for at, when, symbol, word in (
            (flow.began_s, flow.began_s > start + slack, "triangle-right", "begins"),
            (flow.last_s, flow.last_s < end - slack, "square", "ends"),
        ):
            if when and math.isfinite(at):
                texts = (f"{_label(flow)} {word}",)
                found.append(
                    Line(
                        texts[0],
                        np.array([at]),
                        np.zeros(1),
                        looks[flow.cc],
                        marks=symbol,
                        texts=texts,
                        listed=False,
                        point=point.entry.id,
                    )
                )
    return found


def fairness(flows: Sequence[FlowSeries], window_s: float) -> measures.Series:
    """Return Jain's index of the lasting flows over time, as `lab.measures` has it; empty for under two."""
    lasting = [flow for flow in flows if flow.kind == LASTING and math.isfinite(flow.began_s)]
    if len(lasting) < 2:
        return measures.Series(np.zeros(0), np.zeros(0))
    begin, end = min(flow.began_s for flow in lasting), max(flow.last_s for flow in lasting)
    window_s = max(window_s, (end - begin) / _MOST_WINDOWS)
    t_s = np.linspace(begin, end, 4 * _MOST_WINDOWS + 1)
    delivered = np.array([np.interp(t_s, flow.read_t_s, flow.read_bytes) for flow in lasting])
    slack = (end - begin) / (4 * _MOST_WINDOWS)
    alive = np.array([(t_s >= flow.began_s - slack) & (t_s <= flow.last_s + slack) for flow in lasting])
    return measures.jain_over_time(t_s, delivered, window_s, alive)


def _jain(shared: Sequence[tuple[_Point, Floats, Floats]], looks: Mapping[str, str]) -> Panel:
    """Return the panel of Jain's index. A point of one congestion control has its colour, if it alone has."""
    controls = [{flow.cc for flow in point.flows} for point, _, _ in shared]
    own = [
        next(iter(names)) if len(names) == 1 and controls.count(names) == 1 else None for names in controls
    ]
    colours = [
        looks[cc] if cc is not None and all(own) else style.colour(place) for place, cc in enumerate(own)
    ]
    lines = [
        Line(
            point.name if len(shared) > 1 else "of the lasting flows",
            t_s,
            index,
            style.GREY if len(shared) == 1 else colours[place],
            "solid" if place < len(style.COLOURS) else style.dash(place),
            1.6,
            label=f"Jain's index {point.name}",
            point=point.entry.id,
        )
        for place, (point, t_s, index) in enumerate(shared)
    ]
    return Panel("Jain's index", "", tuple(lines), range=(0.0, 1.03))
