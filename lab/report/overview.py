"""All points of a run in one figure: measured against predicted, coloured by what limited them."""

from __future__ import annotations

import math

import plotly.graph_objects as go

from lab.model.limits import words
from lab.report import limits, style
from lab.report.drawn import Drawn, hover, with_legend
from lab.report.residuals import BANDS
from lab.report.stored import Entry, Stored

LEAST_POINTS = 9
"""Fewer are told apart as well in the other figures."""

HEIGHT_PX = 520
_BELOW_PX = 56
_STEPS = ((8, (1, 1.5, 2, 3, 4, 6, 8)), (1e3, (1, 2, 5)), (math.inf, (1,)))
"""Ticks of a decade, where the axis spans less than this."""


def draw(stored: Stored, number: int) -> Drawn | None:
    """Return the figure, the `number`th of the report; None where too few points have both numbers."""
    entries = [entry for entry in stored.done if all(value > 0 for value in _pair(entry))]
    if len(entries) < LEAST_POINTS:
        return None
    values = [value for entry in entries for value in _pair(entry)]
    room = max(1.15, (max(values) / min(values)) ** 0.05)
    low, high = min(values) / room, max(values) * room
    steps = next(steps for span, steps in _STEPS if high / low < span)
    shown = [
        step * 10.0**power for power in range(-6, 7) for step in steps if low <= step * 10.0**power <= high
    ]
    axis = {
        "type": "log",
        "range": [math.log10(low), math.log10(high)],
        "tickvals": shown,
        "ticktext": [f"{tick:g}" for tick in shown],
    }
    figure = go.Figure(
        layout=style.layout(
            height=HEIGHT_PX,
            xaxis=style.axis(title={"text": "Predicted, steady part (Mbit/s)", "standoff": 6}, **axis),
            yaxis=style.axis(title={"text": "Measured, steady part (Mbit/s)"}, **axis),
            hovermode="closest",
        )
    )
    for off in (-BANDS[1], 0.0, BANDS[1]):
        figure.add_trace(_diagonal(low, high, off))
    by_limit: dict[str, list[Entry]] = {}
    for entry in entries:
        by_limit.setdefault(entry.text("limit_measured"), []).append(entry)
    for limit in limits.ordered(by_limit):
        figure.add_trace(_marks(limit, by_limit[limit], stored))
    narrow = with_legend(figure, _BELOW_PX)
    close = sum(
        abs(measured / predicted - 1) * 100 <= BANDS[1] for predicted, measured in map(_pair, entries)
    )
    caption = (
        "A mark a point, coloured by what limited it for the most part. On the diagonal the prediction was"
        f" right; {close} of {len(entries)} points lie within {BANDS[1]:.0f} % of it, the dotted lines."
    )
    return Drawn(
        f"{number:02d}-measured-predicted", "Measured against predicted", caption, "", figure, narrow
    )


def _pair(entry: Entry) -> tuple[float, float]:
    """Return (predicted, measured), Mbit/s; 0 for what is not known."""
    predicted, measured = entry.number("predicted_goodput_bps"), entry.number("steady_goodput_bps")
    return (predicted or 0.0) / 1e6, (measured or 0.0) / 1e6


def _diagonal(low: float, high: float, off_percent: float) -> go.Scatter:
    factor = 1 + off_percent / 100
    return go.Scatter(
        x=[low, high],
        y=[low * factor, high * factor],
        mode="lines",
        line={
            "color": style.GREY,
            "width": 1 if off_percent else 1.4,
            "dash": "dot" if off_percent else "solid",
        },
        showlegend=False,
        hoverinfo="skip",
    )


def _marks(limit: str, entries: list[Entry], stored: Stored) -> go.Scatter:
    look = limits.look(limit)
    pairs = [_pair(entry) for entry in entries]
    return go.Scatter(
        x=[predicted for predicted, _ in pairs],
        y=[measured for _, measured in pairs],
        mode="markers",
        name=style.plain(words(limit) if limit else "not known"),
        marker={
            "symbol": look.symbol,
            "size": 9,
            "color": look.colour,
            "line": {"color": style.GREY, "width": 0.8},
        },
        text=[hover(entry, stored) for entry in entries],
        customdata=[entry.id for entry in entries],
        hovertemplate="%{text}<extra></extra>",
    )
