"""The main figures, drawn: measured marks, the model's broken lines, what the link and the path can hold."""

from __future__ import annotations

import math
from statistics import median
from typing import Any

import plotly.graph_objects as go

from lab.report import bars, curves, overview, residuals, style
from lab.report.axes import MIB
from lab.report.curves import Curve, Plot
from lab.report.drawn import Drawn, hover, with_legend
from lab.report.stored import Entry, Stored
from lab.units import human_size

_LAST = 2000
"""Place in the legend: after the curves, which have plotly's 1000."""

_MOST_NAMED_KNEES = 3

HEIGHT_PX = 450
BELOW_PX = 74
"""Under the plot: two lines of ticks and the axis's title."""


def draw(stored: Stored) -> list[Drawn]:
    """Return the main figures: the scenario's own; a bar a point where none of them has anything to show.

    The last is measured against predicted, where there are points enough.
    """
    drawn = [_curves(plot, stored, number) for number, plot in enumerate(curves.plots(stored), 1)]
    if not drawn and stored.done:
        drawn = [bars.draw(stored)]
    compared = overview.draw(stored, len(drawn) + 1)
    return [*drawn, compared] if compared else drawn


def _curves(plot: Plot, stored: Stored, number: int) -> Drawn:
    figure = go.Figure(layout=_layout(plot))
    _references(figure, plot)
    for place, curve in enumerate(plot.curves):
        figure.add_traces(_predicted(plot, curve, place))
    for place, curve in enumerate(plot.curves):
        figure.add_traces(_measured(plot, curve, place, stored))
    figure.add_traces(_knees(plot))
    below = BELOW_PX if any("<br>" in text for _, text in plot.axis.ticks) else BELOW_PX - 18
    figure.update_layout(margin_b=below)
    compared = residuals.add(figure, plot, stored)
    narrow = with_legend(figure, below)
    restricted = _restricted(plot)
    caption = f"{_caption(plot, stored, compared=compared)} {restricted}".strip()
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
    return style.layout(
        height=HEIGHT_PX,
        xaxis=xaxis,
        yaxis=style.axis(title={"text": plot.y_title}, range=[0, _top(plot)], nticks=8),
        hovermode="closest",
    )


def _top(plot: Plot) -> float:
    values = [entry.number(plot.y) or 0.0 for curve in plot.curves for entry in curve.entries]
    heights = [value / plot.y_factor for value in values] + [y for _, y in plot.link]
    heights += [y for curve in plot.curves for _, y in curve.prediction if y is not None]
    return max(heights) * 1.1 or 1.0


def _predicted(plot: Plot, curve: Curve, place: int) -> list[go.Scatter]:
    if not curve.prediction:
        return []
    colour = style.colour(place)
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
    colour, group = style.colour(place), style.group(place)
    at = curves.at_positions(curve.entries, plot.axis)
    joined = plot.axis.ordered and len(at) > 1
    # marks shrink from curve to curve, so that equal results stay visible as rings
    size = max(9.0, 14.5 - 1.2 * place)
    xs: list[float | str | None] = list(at)
    ys: list[float | None] = [median(_y(plot, entry) for entry in members) for members in at.values()]
    texts = [hover(members[0], stored, curve.name) for members in at.values()]
    points = [members[0].id for members in at.values()]
    if plot.axis.zero_at is not None and xs[0] == plot.axis.zero_at and len(xs) > 1:
        xs.insert(1, None)  # no line from nothing to the first value
        ys.insert(1, None)
        texts.insert(1, "")
        points.insert(1, "")
    traces = [
        go.Scatter(
            x=xs,
            y=ys,
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
    repeated = [entry for members in at.values() if len(members) > 1 for entry in members]
    if repeated:
        traces.append(
            go.Scatter(
                x=[plot.axis.positions[entry.id] for entry in repeated],
                y=[_y(plot, entry) for entry in repeated],
                mode="markers",
                legendgroup=group,
                showlegend=False,
                marker={"symbol": f"{style.symbol(place)}-open", "size": 6, "color": colour},
                text=[hover(entry, stored, curve.name) for entry in repeated],
                customdata=[entry.id for entry in repeated],
                hovertemplate="%{text}<extra></extra>",
            )
        )
    return traces


def _knees(plot: Plot) -> list[go.Scatter]:
    bent = [(place, curve.knee) for place, curve in enumerate(plot.curves) if curve.knee is not None]
    named: dict[float | str, int] = {}  # knees at one position share one name
    for place, knee in bent:
        named.setdefault(plot.axis.positions[knee.id], place)
    return [
        go.Scatter(
            x=[plot.axis.positions[knee.id]],
            y=[_y(plot, knee)],
            mode="markers+text" if place in named.values() and len(named) <= _MOST_NAMED_KNEES else "markers",
            legendgroup=style.group(place),
            showlegend=False,
            marker={
                "symbol": "circle-open",
                "size": 22,
                "color": style.colour(place),
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


def _y(plot: Plot, entry: Entry) -> float:
    return (entry.number(plot.y) or 0.0) / plot.y_factor


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


def _caption(plot: Plot, stored: Stored, *, compared: bool) -> str:
    words = ["The horizontal axis is logarithmic."] if plot.axis.numeric else []
    words.append(
        "Marks are measured, the median of all seeds; small open ones are single seeds."
        if stored.several_seeds
        else "Marks are measured."
    )
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
    if plot.link:
        words.append("The grey line is the payload that the link can carry.")
    if plot.bdp is not None and not plot.axis.range[0] < plot.bdp < plot.axis.range[1]:
        words.append(f"The BDP of {human_size(plot.bdp * MIB)} lies outside.")
    return " ".join(words)


def _restricted(plot: Plot) -> str:
    if not plot.fixed:
        return ""
    fixed = ", ".join(f"{name}={value}" for name, value in plot.fixed.items())
    return f"Here {fixed}; {_count(plot.left_out)} with other values left out."


def _count(number: int) -> str:
    return "1 point" if number == 1 else f"{number} points"
