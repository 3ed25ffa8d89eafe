"""What all main figures share: their words, what pointing at a mark says, room for the legend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from lab.model.limits import words
from lab.report import limits, style
from lab.report.stored import Entry, Stored
from lab.units import human_rate

LEGEND_LINE_PX = 21
_NARROW_SHORTER_PX = 40


@dataclass(frozen=True)
class Drawn:
    """A figure with its words.

    restricted: which points it leaves out, "" for none; it belongs to the caption.
    narrow: changes of its layout for a small screen, in plotly's dotted names.
    """

    slug: str
    title: str
    caption: str
    restricted: str
    figure: go.Figure
    narrow: dict[str, Any]


def hover(entry: Entry, stored: Stored, heading: str = "", said: str = "") -> str:
    """Return what pointing at a point's mark says, as plotly writes lines. said: what the mark shows."""
    goodput, steady = (human_rate(entry.number(name)) for name in ("goodput_bps", "steady_goodput_bps"))
    predicted = entry.number("predicted_goodput_bps")
    limit = words(entry.text("limit_predicted")) or "no limit known"
    measured = limits.named(entry.text("limit_measured"), entry.shares("limit_shares"))
    lines = [
        f"<b>{style.plain(heading)}</b>" if heading else "",
        style.plain(said),
        style.plain(stored.label(entry)),
        f"goodput {goodput}, steady {steady}",
        f"predicted {human_rate(predicted)} ({style.plain(limit)})" if predicted is not None else "",
        f"measured {style.plain(measured)}" if measured else "",
        f"point {style.plain(entry.id)}",
    ]
    return "<br>".join(line for line in lines if line)


def with_legend(figure: go.Figure, below_px: int) -> dict[str, Any]:
    """Make room for the legend under the figure; return the changes for a small screen."""
    names = [trace.name for trace in figure.data if trace.showlegend is not False and trace.name]
    wide = style.legend_lines(names, style.WIDE_PX) * LEGEND_LINE_PX
    narrow = style.legend_lines(names, style.NARROW_PX) * LEGEND_LINE_PX
    height = figure.layout.height
    figure.update_layout(
        height=height + wide,
        margin_b=below_px + wide,
        legend={
            "orientation": "h",
            "tracegroupgap": 0,
            "yref": "container",
            "y": 0,
            "yanchor": "bottom",
            "x": 0,
            "xanchor": "left",
        },
    )
    return {
        "dragmode": False,
        "margin.l": 52,
        "margin.r": 8,
        "font.size": 12,
        "height": height + narrow - _NARROW_SHORTER_PX,
        "margin.b": below_px + narrow,
    }
