"""Panels drawn: one above the other on one time axis, each with a legend of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from lab.report import style
from lab.report.limits import Look
from lab.report.panels import Line, Panel

PANEL_PX = 150
GAP_PX = 40
LINE_PX = 20
"""Above each panel: a gap, and its title and legend; on a small screen the title has a line of its own."""

_BELOW_PX = 52


def draw(panels: list[Panel]) -> tuple[go.Figure, dict[str, Any]]:
    """Return the panels as one figure, and the changes of its layout for a small screen."""
    layout = style.layout(
        margin={"l": 56, "r": 14, "t": 6, "b": _BELOW_PX},
        hovermode="x",
        shapes=[],
        annotations=[],
        xaxis=style.axis(
            title={"text": "Time from the start of the load (s)"},
            anchor=_name("y", len(panels) - 1),
            showspikes=True,
            spikemode="across",
            spikethickness=1,
            spikedash="solid",
            spikecolor=style.AXIS,
        ),
    )
    narrow: dict[str, Any] = {"dragmode": False, "margin.l": 46, "margin.r": 6, "font.size": 12}
    heads = [_head_px(panel, narrow=True) for panel in panels]
    heads[0] -= GAP_PX - 8  # no buttons above it there
    narrow |= _heights(heads, dotted=True)
    narrow |= {f"{_name('legend', place)}.title.side": "top" for place in range(len(panels))}
    ends = [float(line.t_s[-1]) for panel in panels for line in panel.lines if len(line.t_s)]
    layout["xaxis"]["range"] = [0.0, max(ends, default=1.0)]
    traces = []
    for place, panel in enumerate(panels):
        yaxis, legend = _name("y", place), _name("legend", place)
        layout[_name("yaxis", place)] = style.axis(
            title={"text": panel.unit}, rangemode="tozero", nticks=5, range=panel.range
        )
        layout[legend] = {
            "orientation": "h",
            "traceorder": "normal",  # plotly turns the names of what is stacked round
            "x": 0,
            "xanchor": "left",
            "yanchor": "bottom",
            "bgcolor": "rgba(0,0,0,0)",
            "title": {"text": f"<b>{style.plain(panel.title)}</b>  ", "side": _side(panel)},
        }
        layout["shapes"] += [
            {
                "type": "rect",
                "xref": "x",
                "yref": f"{yaxis} domain",
                "x0": start,
                "x1": end,
                "y0": 0,
                "y1": 1,
                "line": {"width": 0},
                "fillcolor": "rgba(0,114,178,0.08)",
                "layer": "below",
            }
            for start, end in panel.spans
        ]
        traces += [_trace(line, panel, yaxis, legend) for line in panel.lines]
    for key, value in _heights([_head_px(panel, narrow=False) for panel in panels], dotted=False).items():
        layout[key] = {**layout[key], **value} if isinstance(value, dict) else value
    return go.Figure(traces, layout), narrow


def _side(panel: Panel) -> str:
    """Return where a panel's title stands: plotly breaks no line for it, and would cut the last names off."""
    names = [line.name for line in panel.lines if line.name and line.listed]
    return "left" if style.legend_fits(names, panel.title, style.WIDE_PX) else "top"


def _head_px(panel: Panel, *, narrow: bool) -> int:
    names = [line.name for line in panel.lines if line.name and line.listed]
    if narrow:
        return GAP_PX + LINE_PX * (1 + style.legend_lines(names, style.NARROW_PX))
    if style.legend_fits(names, panel.title, style.WIDE_PX):
        return GAP_PX + LINE_PX
    return GAP_PX + LINE_PX * (1 + style.legend_lines(names, style.WIDE_PX))


def _heights(heads_px: list[int], *, dotted: bool) -> dict[str, Any]:
    """Return height, domains and legend places of panels with so much room above each."""
    inner = sum(heads_px) + PANEL_PX * len(heads_px)
    found: dict[str, Any] = {"height": inner + _BELOW_PX + 6}
    for place in range(len(heads_px)):
        top = 1 - (place * PANEL_PX + sum(heads_px[: place + 1])) / inner
        domain = [max(0.0, round(top - PANEL_PX / inner, 5)), round(top, 5)]
        legend_y = round(top + 4 / inner, 5)
        if dotted:
            found[f"{_name('yaxis', place)}.domain"] = domain
            found[f"{_name('legend', place)}.y"] = legend_y
        else:
            found[_name("yaxis", place)] = {"domain": domain}
            found[_name("legend", place)] = {"y": legend_y}
    return found


def _name(stem: str, place: int) -> str:
    """Return plotly's name of the nth axis or legend: y, y2, y3."""
    return stem if place == 0 else f"{stem}{place + 1}"


def _trace(line: Line, panel: Panel, yaxis: str, legend: str) -> go.Scatter:
    if line.fill is not None:
        return _step(line, line.fill, yaxis, legend)
    hover = f"{style.plain(line.label or line.name)} %{{y:.4g}} {panel.unit}<extra></extra>"
    if line.texts:
        hover = "%{text}<extra></extra>"
    return go.Scatter(
        x=line.t_s.astype(np.float32),
        y=line.values.astype(np.float32),
        yaxis=yaxis,
        legend=legend,
        name=style.plain(line.name),
        showlegend=bool(line.name) and line.listed,
        mode="markers" if line.marks else "lines",
        line={"color": line.colour, "dash": line.dash, "width": line.width},
        marker={"symbol": line.marks, "size": 7, "color": line.colour} if line.marks else None,
        text=[style.plain(text) for text in line.texts] or None,
        hovertemplate=hover if line.hover else None,
        hoverinfo=None if line.hover else "skip",
        cliponaxis=not line.marks,
        meta=line.point or None,
    )


def _step(line: Line, look: Look, yaxis: str, legend: str) -> go.Scatter:
    pattern = {"shape": look.pattern, "bgcolor": look.colour, "fgcolor": look.text, "size": 6}
    return go.Scatter(
        x=line.t_s.astype(np.float32),
        y=line.values.astype(np.float32),
        yaxis=yaxis,
        legend=legend,
        name=style.plain(line.name),
        mode="lines",
        line={"width": 0, "shape": "hv", "color": look.colour},
        stackgroup=yaxis,
        fillcolor=look.colour,
        fillpattern=pattern if look.pattern else None,
        hoverinfo="skip",
    )
