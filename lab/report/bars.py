"""The figure of a run whose scenario has none to show: goodput of each point as a bar."""

from __future__ import annotations

import plotly.graph_objects as go

from lab.report import style
from lab.report.drawn import Drawn, hover, with_legend
from lab.report.stored import Stored

MOST_BARS = 60
_BELOW_PX = 56
_LONGEST_LINE = 28


def draw(stored: Stored) -> Drawn:
    """Return the figure; of very many points the first."""
    entries = [entry for entry in stored.done if entry.number("goodput_bps") is not None]
    shown = entries[:MOST_BARS]
    places = list(range(len(shown)))

    def values(column: str) -> list[float | None]:
        numbers = [entry.number(column) for entry in shown]
        return [None if number is None else number / 1e6 for number in numbers]

    def marks(column: str, name: str, **marker: object) -> go.Scatter:
        return go.Scatter(
            x=values(column), y=places, mode="markers", name=name, marker=marker, hoverinfo="skip"
        )

    bars = go.Bar(
        x=values("goodput_bps"),
        y=places,
        orientation="h",
        name="goodput, whole load",
        marker={"color": style.BLUE},
        customdata=[entry.id for entry in shown],
        text=[hover(entry, stored) for entry in shown],
        textposition="none",
        hovertemplate="%{text}<extra></extra>",
    )
    steady = marks(
        "steady_goodput_bps",
        "steady part",
        symbol="diamond",
        size=10,
        color=style.ORANGE,
        line={"color": "white", "width": 1},
    )
    predicted = marks(
        "predicted_goodput_bps",
        "predicted",
        symbol="line-ns",
        size=20,
        line={"width": 3, "color": style.VERMILLION},
    )
    names = [_wrapped(stored.label(entry) or entry.id) for entry in shown]
    layout = style.layout(
        height=100 + sum(16 + 14 * len(lines) for lines in names),
        xaxis=style.axis(title={"text": "Goodput (Mbit/s)", "standoff": 6}, rangemode="tozero"),
        yaxis=style.axis(
            tickvals=places,
            ticktext=["<br>".join(style.plain(line) for line in lines) for lines in names],
            range=[len(shown) - 0.4, -0.6],
            automargin=True,
            ticks="",
        ),
        bargap=0.4,
    )
    caption = "Bars are goodput over the whole load, diamonds the steady part."
    traces = [bars, steady]
    if any(entry.number("predicted_goodput_bps") is not None for entry in shown):
        traces.append(predicted)
        caption = f"{caption.removesuffix('.')}, upright marks the prediction."
    figure = go.Figure(traces, layout)
    if len(shown) < len(entries):
        caption += f" The first {len(shown)} of {len(entries)} points."
    narrow = with_legend(figure, _BELOW_PX)
    narrow["height"] = figure.layout.height + 60
    narrow["yaxis.tickfont.size"] = 10
    return Drawn("01-goodput", "Goodput of each point", caption, "", figure, narrow)


def _wrapped(name: str) -> list[str]:
    """Return a name in lines, broken between knobs."""
    lines: list[str] = []
    for part in name.split(", "):
        if lines and len(lines[-1]) + len(part) + 2 <= _LONGEST_LINE:
            lines[-1] += f", {part}"
        else:
            lines.append(part)
    return lines
