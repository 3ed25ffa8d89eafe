"""A figure of curves, drawn: measured marks, the model's broken lines, what link and path can hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from lab.report import choice, columns, curves, residuals, spread, style
from lab.report.axes import MIB
from lab.report.curves import Curve, Plot
from lab.report.drawn import Drawn, hover, with_legend
from lab.report.spread import Spread
from lab.report.stored import Entry, Stored
from lab.report.theory import Theory
from lab.scenario import Figure
from lab.units import human_size

_LAST = 2000
"""Place in the legend: after the curves, which have plotly's 1000."""

_MOST_NAMED_KNEES = 3

MOST_SEEDS = 12
"""Of one mark that are drawn one by one beside their mean."""

HEIGHT_PX = 450
BELOW_PX = 74
"""Under the plot: two lines of ticks and the axis's title."""


def draw(asked: Figure, stored: Stored, number: int) -> Drawn | None:
    """Return the figure, the `number`th of the report; None where the run has nothing to show in it."""
    plot = curves.plot(asked, stored)
    if plot is None:
        return None
    figure = go.Figure(layout=_layout(plot))
    _references(figure, plot)
    for place, curve in enumerate(plot.curves):
        figure.add_traces(_predicted(plot, curve, place))
    for place, curve in enumerate(plot.curves):
        figure.add_traces(_measured(plot, curve, place, stored))
    figure.add_traces(_knees(plot))
    theories = _theories(figure, plot)
    below = BELOW_PX if any("<br>" in text for _, text in plot.axis.ticks) else BELOW_PX - 18
    figure.update_layout(margin_b=below)
    compared = residuals.add(figure, plot, stored)
    narrow = with_legend(figure, below)
    restricted = choice.Choice([], plot.fixed, plot.left_out).words
    caption = f"{_caption(plot, theories, compared=compared)} {restricted}".strip()
    return Drawn(f"{number:02d}-{plot.title}", plot.title, caption, restricted, figure, narrow)


def _layout(plot: Plot) -> dict[str, Any]:
    axis = plot.axis
    xaxis = style.axis(title={"text": style.plain(axis.title), "standoff": 6}, tickmode="array")
    xaxis["tickvals"] = [position for position, _ in axis.ticks]
    xaxis["ticktext"] = [text if axis.numeric else style.plain(text) for _, text in axis.ticks]
    if axis.numeric:
        xaxis |= {"type": "log", "range": [math.log10(end) for end in axis.range]}
    else:
        xaxis |= {"type": "category", "categoryorder": "array", "categoryarray": xaxis["tickvals"]}
        xaxis["range"] = [-0.5, len(axis.ticks) - 0.5]
    yaxis = style.axis(**style.upright(plot.scale.title))
    low, high = _ends(plot)
    if plot.log:
        yaxis |= {"type": "log", "range": [math.log10(low), math.log10(high)], **columns.log_ticks(low, high)}
    else:
        yaxis |= {"range": [low, high], "nticks": 8}
    return style.layout(height=HEIGHT_PX, xaxis=xaxis, yaxis=yaxis, hovermode="closest")


def _ends(plot: Plot) -> tuple[float, float]:
    """Return where the vertical axis begins and ends."""
    heights = [plot.value(entry) for curve in plot.curves for entry in curve.entries]
    heights += [its.high / plot.scale.factor for curve in plot.curves for its in curve.at.values()]
    heights += [y for _, y in plot.link]
    heights += [y for curve in plot.curves for _, y in curve.prediction if y is not None]
    if plot.log:
        return min(heights) / 1.25, max(heights) * 1.25
    low = min(0.0, 1.1 * min(heights))
    if plot.scale.ends:
        return low, max(plot.scale.ends[1], *heights) * 1.04
    return low, max(heights) * 1.1 or 1.0


def _predicted(plot: Plot, curve: Curve, place: int) -> list[go.Scatter]:
    if not curve.prediction:
        return []
    colour = plot.colour(place)
    line = plot.axis.ordered and len(curve.prediction) > 1
    return [
        go.Scatter(
            x=[x for x, _ in curve.prediction],
            y=[y for _, y in curve.prediction],
            mode="lines" if line else "markers",
            legendgroup=style.group(place),
            showlegend=False,
            line={"color": colour, "width": 1.8, "dash": style.dash(place)},
            marker={"symbol": "line-ew", "size": 22, "line": {"color": colour, "width": 2}},
            hoverinfo="skip",
        )
    ]


def _measured(plot: Plot, curve: Curve, place: int, stored: Stored) -> list[go.Scatter]:
    colour, group = plot.colour(place), style.group(place)
    at = curves.at_positions(curve.entries, plot.axis)
    joined = plot.axis.ordered and len(at) > 1
    # marks shrink from curve to curve, so that equal results stay visible as rings
    several = any(curve.at[position].n > 1 for position in at)
    size = max(9.0, 14.5 - 1.2 * place) if not several else max(7.0, 10.5 - 0.6 * place)
    xs: list[float | str | None] = list(at)
    spreads = [curve.at[position] for position in at]
    texts = [
        hover(members[0], stored, curve.name, shown(plot, members[0], its))
        for members, its in zip(at.values(), spreads, strict=True)
    ]
    points = [members[0].id for members in at.values()]
    if plot.axis.zero_at is not None and xs[0] == plot.axis.zero_at and len(xs) > 1:
        xs.insert(1, None)  # no line from nothing to the first value
        spreads.insert(1, Spread(math.nan, math.nan, math.nan, 1))
        texts.insert(1, "")
        points.insert(1, "")
    means = [None if math.isnan(its.mean) else its.mean / plot.scale.factor for its in spreads]
    traces = [
        go.Scatter(
            x=xs,
            y=means,
            error_y=spread.bars(spreads, plot.scale.factor, colour),
            mode="lines+markers" if joined else "markers",
            name=style.plain(curve.name),
            legendgroup=group,
            line={"color": style.faded(colour), "width": 1.5},
            marker={
                "symbol": style.symbol(place),
                "size": size,
                "color": colour,
                "line": {"color": "white", "width": 1},
            },
            text=texts,
            customdata=points,
            hovertemplate="%{text}<extra></extra>",
            cliponaxis=False,
        )
    ]
    repeated = [entry for members in at.values() if 1 < len(members) <= MOST_SEEDS for entry in members]
    if repeated:
        traces.append(
            go.Scatter(
                x=[plot.axis.positions[entry.id] for entry in repeated],
                y=[plot.value(entry) for entry in repeated],
                mode="markers",
                legendgroup=group,
                showlegend=False,
                marker={"symbol": f"{style.symbol(place)}-open", "size": 5, "color": colour, "opacity": 0.6},
                text=[hover(entry, stored, curve.name, shown(plot, entry)) for entry in repeated],
                customdata=[entry.id for entry in repeated],
                hovertemplate="%{text}<extra></extra>",
            )
        )
    return traces


def shown(plot: Plot, entry: Entry, its: Spread | None = None) -> str:
    """Return what a mark shows of a point or of its repetitions, in words; "" for what every mark says."""
    if its is not None and its.n > 1:
        return its.words(plot.scale)
    if plot.y in curves.GOODPUTS:
        return ""
    return f"{plot.scale.words} {plot.scale.text(plot.value(entry) * plot.scale.factor)}"


def _knees(plot: Plot) -> list[go.Scatter]:
    bent = [(place, curve.knee) for place, curve in enumerate(plot.curves) if curve.knee is not None]
    named: dict[float | str, int] = {}  # knees at one position share one name
    for place, knee in bent:
        named.setdefault(plot.axis.positions[knee.id], place)
    return [
        go.Scatter(
            x=[plot.axis.positions[knee.id]],
            y=[plot.curves[place].at[plot.axis.positions[knee.id]].mean / plot.scale.factor],
            mode="markers+text" if place in named.values() and len(named) <= _MOST_NAMED_KNEES else "markers",
            legendgroup=style.group(place),
            showlegend=False,
            marker={
                "symbol": "circle-open",
                "size": 22,
                "color": plot.colour(place),
                "line": {"width": 2},
            },
            text=[style.plain(f"knee {knee.knobs[plot.axis.knob]}")],
            textposition=_beside(plot, knee),
            textfont={"size": 12},
            hoverinfo="skip",
            cliponaxis=False,
        )
        for place, knee in bent
    ]


def _beside(plot: Plot, entry: Entry) -> str:
    """Return where the name of a mark has room."""
    low, high = plot.axis.range
    right = float(plot.axis.positions[entry.id]) > math.sqrt(low * high)
    return "bottom left" if right else "bottom right"


def _references(figure: go.Figure, plot: Plot) -> None:
    thin = {"color": style.GREY, "width": 1.2}
    if plot.link:
        xs, ys = zip(*plot.link, strict=True)
        name = f"link {ys[0]:.4g} Mbit/s" if len(set(ys)) == 1 else "link"
        link = go.Scatter(x=xs, y=ys, mode="lines", name=name, line=thin, hoverinfo="skip")
        figure.add_trace(link.update(legendrank=_LAST))
    if any(curve.prediction for curve in plot.curves):
        line = {"color": style.GREY, "dash": "dash"}
        legend_only = go.Scatter(x=[None], y=[None], mode="lines", name="predicted", line=line)
        figure.add_trace(legend_only.update(legendrank=_LAST))
    if plot.bdp is not None and plot.axis.range[0] < plot.bdp < plot.axis.range[1]:
        figure.add_shape(type="line", x0=plot.bdp, x1=plot.bdp, y0=0, y1=1, yref="paper", line=thin)
        figure.add_annotation(
            text=f"BDP {human_size(plot.bdp * MIB)}",
            x=math.log10(plot.bdp),
            y=1,
            yref="paper",
            yanchor="bottom",
            showarrow=False,
            font={"size": 12, "color": style.GREY},
        )


def _theories(figure: go.Figure, plot: Plot) -> list[Theory]:
    """Draw what of the theories lies in the plot, and return those that do."""
    low, high = _ends(plot)
    drawn = []
    for place, theory in enumerate(plot.theories):
        look = {"color": style.THEORY, "width": 1.6, "dash": style.THEORY_DASHES[place % 4]}
        line: dict[str, Any] = {"mode": "lines", "line": look, "hoverinfo": "skip", "legendrank": _LAST + 1}
        xs, ys = zip(*theory.line, strict=True)
        if theory.upright:
            xs, ys = (xs[0], xs[0]), (low, high)
        # what lies beyond must not widen the plot
        kept = [y if low <= y <= high else None for y in ys]
        if any(y is not None for y in kept):
            figure.add_trace(go.Scatter(x=xs, y=kept, name=style.plain(theory.name), **line))
            drawn.append(theory)
    return drawn


def _caption(plot: Plot, theories: Sequence[Theory], *, compared: bool) -> str:
    words = ["The horizontal axis is logarithmic."] if plot.axis.numeric else []
    if plot.log:
        words[:] = ["The vertical axis is logarithmic." if not words else "Both axes are logarithmic."]
    counts = [its.n for curve in plot.curves for its in curve.at.values()]
    if max(counts) > 1:
        words.append("Marks are measured, the mean of all seeds; small open ones are single seeds.")
        if max(counts) > MOST_SEEDS:
            words[-1] = "Marks are measured, the mean of all seeds."
        words.append(spread.caption(counts))
    else:
        words.append("Marks are measured.")
    if any(curve.prediction for curve in plot.curves):
        part = "the whole load" if plot.y == "goodput_bps" else "the steady part"
        words.append(f"Broken lines of the same colour are what the model predicts for {part}.")
    if any(curve.outdated for curve in plot.curves):
        words.append("Straight ones join what the run says was predicted; the model has changed since.")
    if compared:
        bands = " and ".join(f"{band:.0f}" for band in residuals.BANDS)
        words.append(f"Below: how far measured is from predicted; the bands are {bands} %.")
    knees = [(curve.name, curve.knee) for curve in plot.curves if curve.knee is not None]
    if knees:
        words.append("Rings mark the least value that reaches 95 % of the best of its curve: ")
        words[-1] += ", ".join(f"{knee.knobs[plot.axis.knob]} ({name})" for name, knee in knees) + "."
    if theories:
        sources = dict.fromkeys(theory.source for theory in theories)
        words.append(f"Grey broken lines are theory: {'; '.join(sources)}.")
    if plot.link:
        words.append("The grey line is the payload that the link can carry.")
    if plot.bdp is not None and not plot.axis.range[0] < plot.bdp < plot.axis.range[1]:
        words.append(f"The BDP of {human_size(plot.bdp * MIB)} lies outside.")
    return " ".join(words)
