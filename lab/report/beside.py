"""Two runs laid over each other, pair by pair, as one HTML page that needs nothing else.

Three panels over time for each pair of points: goodput, smoothed RTT, windows.
Looks and behaves as the report, whose style sheet and script it has inside. Not
here: which points go together and why they differ, which `lab.cli.compare` hands
over as text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from lab import __version__
from lab.errors import StoreError
from lab.report import embed, panels, series, stack, style, whole
from lab.report.axes import MIB
from lab.report.panels import Line, Panel
from lab.report.series import Floats, FlowSeries, PointSeries
from lab.report.stored import Entry, Stored
from lab.units import human_size

MOST_PAIRS = 60
"""Pairs that are drawn; more are thinned evenly."""
_COLOURS = (style.BLUE, style.VERMILLION)
_FLAT = 3.0
"""A receive window that is so many times the largest cwnd would flatten it: it leaves its panel."""
_MOST_NAME = 28
_CSS = """
.beside td.said { white-space: normal; max-width: 60rem; padding-top: 0; color: var(--soft); }
.beside tr.explained td { border-bottom: 0; padding-bottom: .1rem; }
"""


@dataclass(frozen=True)
class Member:
    """One point of a pair. name: of its run, as the page calls it."""

    name: str
    stored: Stored
    entry: Entry


@dataclass(frozen=True)
class Pair:
    """Two points that go together. label: what tells them from the others; words: what is said of them."""

    label: str
    members: tuple[Member, Member]
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cells:
    """A table as text. heads: of each column; right: those with numbers; below: what is said under each
    row, "" for nothing; caption: above it."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: frozenset[str] = frozenset()
    below: Sequence[str] = ()
    caption: str = ""


@dataclass(frozen=True)
class Text:
    """What the page says beside its figures. status: first of all; notes: before one trusts it."""

    title: str
    status: Sequence[str]
    notes: Sequence[str]
    differs: Cells
    table: Cells
    command: str


@dataclass(frozen=True)
class Drawn:
    """The figure of one pair, with the changes of its layout for a small screen."""

    title: str
    caption: str
    words: tuple[str, ...]
    figure: go.Figure
    narrow: Mapping[str, Any]


def write(text: str, final: Path) -> None:
    """Write a page, all of it or none. Raises StoreError."""
    whole.write(final, text, "name another file for --html")


def render(text: Text, pairs: Sequence[Pair]) -> str:
    """Return the page."""
    chosen = _evenly(pairs)
    drawn = [one for one in (draw(pair) for pair in chosen) if one is not None]
    plotly, script = get_plotlyjs(), _own("page.js")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("lab.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    return environment.get_template("beside.html").render(
        text=text,
        version=__version__,
        figures=drawn,
        left_out=len(pairs) - len(drawn),
        css=_own("page.css") + _CSS,
        figures_json=embed.data(
            [{**json.loads(one.figure.to_json()), "narrow": dict(one.narrow)} for one in drawn]
        ),
        plotly=plotly,
        script=script,
        script_hashes=" ".join(embed.source_hash(part) for part in (plotly, script)),
    )


def _own(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _evenly(pairs: Sequence[Pair]) -> Sequence[Pair]:
    if len(pairs) <= MOST_PAIRS:
        return pairs
    return [pairs[place * len(pairs) // MOST_PAIRS] for place in range(MOST_PAIRS)]


# one pair


@dataclass(frozen=True)
class _Run:
    """One of the two over time. flows: all of it, or those of one congestion control each."""

    name: str
    colour: str
    entry: Entry
    series: PointSeries

    @property
    def flows(self) -> tuple[FlowSeries, ...]:
        return self.series.flows

    def called(self, flow: FlowSeries, what: str = "") -> str:
        """Return what a line is called: the run, what it shows, and which flows where there are several."""
        which = f"({flow.name})" if len(self.flows) > 1 else ""
        return " ".join(word for word in (self.name, what, which) if word)

    def dash(self, flow: FlowSeries) -> str:
        place = self.flows.index(flow)
        return "solid" if place == 0 else style.dash(place)


def draw(pair: Pair) -> Drawn | None:
    """Return the figure of a pair; None where no samples of either can be read."""
    runs = [
        run for member, colour in zip(pair.members, _COLOURS, strict=True) if (run := _read(member, colour))
    ]
    if not runs:
        return None
    over_s = max(panels.window_s(run.entry, [f for f in run.flows if len(f.read_t_s) > 1]) for run in runs)
    windows, cut = _windows(runs)
    built = [panel for panel in (_goodput(runs, over_s), _rtt(runs), windows) if panel.lines]
    figure, narrow = stack.draw(built)
    for place, panel in enumerate(built):
        axis = figure.layout["yaxis" if place == 0 else f"yaxis{place + 1}"]
        axis.title.text = f"{panel.title.split(',')[0]} ({panel.unit})"
    return Drawn(pair.label, _caption(runs, pair, cut), pair.words, figure, narrow)


def _read(member: Member, colour: str) -> _Run | None:
    stored, entry = member.stored, member.entry
    try:
        samples, flows = stored.rows("samples", entry), stored.rows("flows", entry)
    except StoreError:
        return None
    read = series.read(samples, (), flows, most_flows=1)
    there = tuple(flow for flow in read.flows if len(flow.t_s))
    name = member.name if len(member.name) <= _MOST_NAME else f"…{member.name[-_MOST_NAME + 1 :]}"
    return _Run(name, colour, entry, replace(read, flows=there)) if there else None


def _goodput(runs: Sequence[_Run], over_s: float) -> Panel:
    lines = [
        Line(
            run.called(flow),
            flow.read_t_s,
            flow.mean_goodput_bps(over_s) / 1e6,
            run.colour,
            run.dash(flow),
        )
        for run in runs
        for flow in run.flows
        if len(flow.read_t_s) > 1
    ]
    lines += _levels(runs, "predicted_goodput_bps", 1e6, "predicted", "dash")
    return Panel(f"Goodput, mean over {panels.time(over_s)}", "Mbit/s", tuple(lines))


def _rtt(runs: Sequence[_Run]) -> Panel:
    lines = [
        Line(
            run.called(flow),
            flow.t_s,
            np.where(flow.columns["srtt_s"] > 0, flow.columns["srtt_s"] * 1e3, np.nan),
            run.colour,
            run.dash(flow),
        )
        for run in runs
        for flow in run.flows
    ]
    lines = [line for line in lines if not np.isnan(line.values).all()]
    if not lines:
        return Panel("Smoothed RTT", "ms", ())
    base = _levels(runs, "rtt_s", 1e-3, "base", "dot")
    highest = max(float(np.nanmax(line.values)) for line in (*lines, *base))
    lowest = min(float(np.nanmin(line.values)) for line in (*lines, *base))
    return Panel("Smoothed RTT", "ms", (*lines, *base), range=(0.9 * lowest, 1.05 * highest))


def _windows(runs: Sequence[_Run]) -> tuple[Panel, float | None]:
    """Return the panel of windows, and the largest receive window, bytes, where its line is cut."""
    cwnds = [flow.columns["cwnd_bytes"] for run in runs for flow in run.flows]
    advertised = [flow.columns["rwnd_bytes"] for run in runs for flow in run.flows]
    most, offered = _most(cwnds), _most(advertised)
    unit, factor = ("MiB", float(MIB)) if most >= MIB else ("KiB", 1024.0)
    lines = [
        Line(
            run.called(flow, "cwnd"),
            flow.t_s,
            flow.columns["cwnd_bytes"] / factor,
            run.colour,
            run.dash(flow),
        )
        for run in runs
        for flow in run.flows
    ]
    lines += [
        Line(
            run.called(flow, "receive window"),
            flow.t_s,
            flow.columns["rwnd_bytes"] / factor,
            style.faded(run.colour, 0.75),
            "dot",
            1.6,
        )
        for run in runs
        for flow in run.flows
        if not np.isnan(flow.columns["rwnd_bytes"]).all()
    ]
    cut = bool(most) and offered > _FLAT * most
    room = (0.0, 1.3 * most / factor) if cut else None
    return Panel("Windows", unit, tuple(lines), range=room), offered if cut else None


def _most(arrays: Sequence[Floats]) -> float:
    known = [float(np.nanmax(one)) for one in arrays if len(one) and not np.isnan(one).all()]
    return max(known, default=0.0)


def _levels(runs: Sequence[_Run], column: str, unit: float, word: str, dash: str) -> list[Line]:
    """Return a level line for each run that has a number in a column; one for both where they agree."""
    known = [(run, value) for run in runs if (value := run.entry.number(column))]
    alike = len(known) == 2 and math.isclose(known[0][1], known[1][1], rel_tol=0.005)
    found = []
    for run, value in known[:1] if alike else known:
        last_s = max(float(flow.t_s[-1]) for one in (runs if alike else [run]) for flow in one.flows)
        name = f"{word} {value / unit:.4g}" if alike else f"{run.name} {word} {value / unit:.4g}"
        colour = style.GREY if alike else run.colour
        ends = np.array([0.0, last_s])
        found.append(Line(name, ends, np.full(2, value / unit), colour, dash, 1.4, hover=False))
    return found


def _caption(runs: Sequence[_Run], pair: Pair, cut: float | None) -> str:
    told = []
    if any(run.series.merged for run in runs):
        told.append("The flows of one congestion control are drawn as one: their sum, of RTTs the median.")
    seeds = {member.entry.seed for member in pair.members}
    if any(member.stored.several_seeds for member in pair.members):
        told.append(f"Drawn is seed {' and '.join(map(str, sorted(seeds)))}.")
    if cut is not None:
        told.append(f"Receive windows go on above, up to {human_size(cut)}.")
    lacking = [one.name for one in pair.members if not any(run.entry is one.entry for run in runs)]
    if lacking:
        told.append(f"No samples of {' and '.join(lacking)} can be read.")
    return " ".join(told)
