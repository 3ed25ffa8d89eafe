"""How far measurement is from prediction: a panel under a figure, on the same horizontal axis."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import plotly.graph_objects as go

from lab.report import style
from lab.report.curves import Curve, Plot, at_positions
from lab.report.drawn import hover
from lab.report.predicted import COLUMNS
from lab.report.stored import Entry, Stored

PANEL_PX, GAP_PX = 120, 24
BANDS = (2.0, 8.0)
"""Percent: what lies inside is as good as the model gets, and good enough to decide by."""
LEAST_RANGE, MOST_RANGE = 10.0, 60.0
"""Percent: the axis reaches as far at least and at most; what lies beyond stands at its edge."""

_AXIS = "y2"


def residual(entry: Entry, y: str) -> float | None:
    """Return measured over predicted less 1, in percent; None where either is not known."""
    measured, predicted = entry.number(y), entry.number(COLUMNS.get(y, ""))
    if measured is None or not predicted:
        return None
    return (measured / predicted - 1) * 100


def add(figure: go.Figure, plot: Plot, stored: Stored) -> bool:
    """Add the panel where any point has a prediction; return whether one has."""
    found = [(place, at) for place, curve in enumerate(plot.curves) if (at := _at(plot, curve))]
    if not found:
        return False
    furthest = max(abs(value) for _, at in found for value, _ in at.values())
    reach = min(MOST_RANGE, max(LEAST_RANGE, 1.15 * furthest))
    for place, at in found:
        figure.add_trace(_trace(plot, at, place, reach, stored))
    _make_room(figure, reach)
    return True


def _at(plot: Plot, curve: Curve) -> dict[float | str, tuple[float, Entry]]:
    """Return {position: (residual, a point)}: the mean where there are several seeds."""
    found = {}
    for position, members in at_positions(curve.entries, plot.axis).items():
        known = [value for value in (residual(entry, plot.y) for entry in members) if value is not None]
        if known:
            found[position] = (fmean(known), members[0])
    return found


def _trace(
    plot: Plot, at: dict[float | str, tuple[float, Entry]], place: int, reach: float, stored: Stored
) -> go.Scatter:
    colour, curve = plot.colour(place), plot.curves[place]
    return go.Scatter(
        x=list(at),
        y=[max(-reach, min(reach, value)) for value, _ in at.values()],
        yaxis=_AXIS,
        mode="markers",
        legendgroup=style.group(place),
        showlegend=False,
        marker={
            "symbol": style.symbol(place),
            "size": max(6.0, 9.5 - 0.6 * place),
            "color": colour,
            "line": {"color": "white", "width": 0.8},
        },
        text=[f"<b>{value:+.1f} %</b><br>{hover(entry, stored, curve.name)}" for value, entry in at.values()],
        customdata=[entry.id for _, entry in at.values()],
        hovertemplate="%{text}<extra></extra>",
        cliponaxis=False,
    )


def _make_room(figure: go.Figure, reach: float) -> None:
    """Put the panel under the plot: the figure grows by as much."""
    layout = figure.layout
    above = layout.height - layout.margin.t - layout.margin.b
    inner = above + GAP_PX + PANEL_PX
    figure.update_layout(
        height=layout.height + GAP_PX + PANEL_PX,
        xaxis_anchor=_AXIS,
        yaxis_domain=[1 - above / inner, 1],
        yaxis2=style.axis(
            title={"text": "Off by (%)"},
            domain=[0, PANEL_PX / inner],
            range=[-reach, reach],
            tickvals=[-8, -2, 2, 8] if reach < 1.6 * BANDS[1] else None,
            nticks=5,
            zeroline=True,
            zerolinecolor=style.AXIS,
            zerolinewidth=1.5,
        ),
    )
    for band, colour in zip(
        reversed(BANDS), ("rgba(127,127,127,0.10)", "rgba(127,127,127,0.18)"), strict=True
    ):
        figure.add_shape(**_rectangle(band, colour))


def _rectangle(band: float, colour: str) -> dict[str, Any]:
    return {
        "type": "rect",
        "xref": "paper",
        "yref": _AXIS,
        "x0": 0,
        "x1": 1,
        "y0": -band,
        "y1": band,
        "line": {"width": 0},
        "fillcolor": colour,
        "layer": "below",
    }
