"""The panels of one point over time: goodput, windows, send buffer, RTT and queue on one time axis."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from lab.report import style
from lab.report.axes import MIB
from lab.report.curves import link_goodput_bps
from lab.report.series import Floats, FlowSeries, PointSeries
from lab.report.stored import Entry
from lab.units import format_time, human_size

PANEL_PX = 150
GAP_PX = 40
LINE_PX = 20
"""Above each panel: a gap, and its title and legend; on a small screen the title has a line of its own."""

_BELOW_PX = 52


@dataclass(frozen=True)
class Line:
    """One line (or marks) of a panel. hover: whether pointing at it says its value."""

    name: str
    t_s: Floats
    values: Floats
    colour: str
    dash: str = "solid"
    width: float = 1.8
    marks: str = ""
    hover: bool = True
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Panel:
    """One panel. spans: (from, to) in s, shaded; range: of its values, None for all from 0."""

    title: str
    unit: str
    lines: tuple[Line, ...]
    spans: tuple[tuple[float, float], ...] = ()
    range: tuple[float, float] | None = None

    def head_px(self, *, narrow: bool) -> int:
        """Return the room above it."""
        names = [line.name for line in self.lines]
        if narrow:
            return GAP_PX + LINE_PX * (1 + style.legend_lines(names, style.NARROW_PX))
        return GAP_PX + LINE_PX * style.legend_lines(names, style.WIDE_PX - 7 * len(self.title))


def build(entry: Entry, series: PointSeries) -> list[Panel]:
    """Return the panels of a point, top to bottom."""
    if len(series.flows) == 1:
        flow = series.flows[0]
        middle = [_windows(entry, flow), _send_buffer(flow), _rtt(entry, series)]
    else:
        middle = [
            _each(series, "cwnd_bytes", "Congestion window", entry, bdp=True),
            _each(series, "rwnd_bytes", "Receive window that the sender was told", entry, bdp=True),
            _each(series, "inflight_bytes", "Bytes in flight", entry, bdp=True),
            _each(series, "queued_bytes", "Send buffer in use", entry, bdp=False),
            _rtt(entry, series),
        ]
    return [panel for panel in (_goodput(entry, series), *middle, _queue(entry, series)) if panel.lines]


def caption(entry: Entry, series: PointSeries) -> str:
    """Return the words under the panels."""
    words = []
    if series.flows:
        words.append("Shaded: the steady part.")
    if series.merged:
        words.append(f"The {series.merged} flows are drawn as one: their sum, and the median of their RTTs.")
    elif len(series.flows) > 1:
        words.append(f"One line for each of the {len(series.flows)} flows.")
    if entry.knobs.get("recipe") == "leaf":
        words.append("The queue is the delay line's too: it holds what is on its way, besides what waits.")
    if series.stride > 1:
        words.append(f"One sample of {series.stride} is drawn; the queue's is the longest of each {series.stride}.")
    return " ".join(words)


def _level(series: PointSeries, value: float | None, name: str, dash: str, colour: str = style.GREY) -> list[Line]:
    """Return a level line over the whole time, none where there is no value."""
    times = [flow.t_s for flow in series.flows if len(flow.t_s)]
    if value is None or not times:
        return []
    ends = np.array([0.0, max(float(t_s[-1]) for t_s in times)])
    return [Line(name, ends, np.array([value, value]), colour, dash, 1.4, hover=False)]


def _goodput(entry: Entry, series: PointSeries) -> Panel:
    lines = []
    flows = [flow for flow in series.flows if len(flow.read_t_s) > 1]
    interval_s = float(np.median(np.diff(flows[0].read_t_s))) if flows else 0.0
    rtt_s = entry.number("configured_rtt_s") or 0.0
    # whole RTTs: what a window lets out arrives in clumps, one an RTT
    window_s = rtt_s * max(1, math.ceil(5 * interval_s / rtt_s - 1e-6)) if rtt_s else 5 * interval_s
    for number, flow in enumerate(flows):
        mean = flow.mean_goodput_bps(window_s) / 1e6
        if len(series.flows) == 1:
            lines.append(
                Line("each interval", flow.read_t_s, flow.goodput_bps() / 1e6, style.SKY, width=1.0, hover=False)
            )
            lines.append(Line(f"mean over {format_time(float(f'{window_s:.3g}'))}", flow.read_t_s, mean, style.BLUE))
        else:
            lines.append(Line(flow.name, flow.read_t_s, mean, style.colour(number), style_dash(number), 1.4))
    if len(flows) > 1:
        t_s = flows[0].read_t_s
        total = sum(
            (np.interp(t_s, flow.read_t_s, np.nan_to_num(flow.mean_goodput_bps(window_s))) for flow in flows),
            np.zeros_like(t_s),
        )
        lines.append(Line("all flows", t_s, total / 1e6, style.GREY, width=2.2))
    predicted, link = entry.number("predicted_goodput_bps"), link_goodput_bps(entry)
    for value, name, dash in ((predicted, "predicted", "dash"), (link, "link", "dot")):
        if value is not None:
            colour = style.VERMILLION if name == "predicted" else style.GREY
            lines += _level(series, value / 1e6, f"{name} {value / 1e6:.4g}", dash, colour)
    start, length = entry.number("steady_from_s"), entry.number("load_s")
    spans = () if start is None or length is None else ((series.begin_s + start, series.begin_s + length),)
    return Panel("Goodput", "Mbit/s", tuple(lines), spans)


def style_dash(number: int) -> str:
    """Return the dash of the nth flow: whole lines first, then broken ones when colours repeat."""
    return "solid" if number < len(style.COLOURS) else style.dash(number)


def _windows(entry: Entry, flow: FlowSeries) -> Panel:
    unit, factor = _size_unit([flow.columns[name] for name in ("cwnd_bytes", "rwnd_bytes", "inflight_bytes")])
    cwnd = flow.columns["cwnd_bytes"] / factor
    lines = [
        Line("cwnd", flow.t_s, cwnd, style.BLUE),
        Line("receive window", flow.t_s, flow.columns["rwnd_bytes"] / factor, style.VERMILLION, "dash"),
        Line("in flight", flow.t_s, flow.columns["inflight_bytes"] / factor, style.GREEN),
    ]
    again = np.diff(flow.columns["retransmits"], prepend=0.0)
    where = np.nan_to_num(again) > 0
    if where.any():
        texts = tuple(f"{number:.0f} segments sent again" for number in again[where])
        lines.append(Line("retransmits", flow.t_s[where], cwnd[where], style.PURPLE, marks="x", texts=texts))
    return Panel("Windows", unit, (*lines, *_bdp(entry, flow.t_s, factor, unit)))


def _bdp(entry: Entry, t_s: Floats, factor: float, unit: str) -> list[Line]:
    bdp = entry.number("bdp_bytes")
    if bdp is None or not len(t_s):
        return []
    ends = np.array([0.0, t_s[-1]])
    name = f"BDP {bdp / factor:.4g} {unit}"
    return [Line(name, ends, np.full(2, bdp / factor), style.GREY, "dot", 1.4, hover=False)]


def _send_buffer(flow: FlowSeries) -> Panel:
    unit, factor = _size_unit([flow.columns["queued_bytes"], flow.columns["sndbuf_bytes"]])
    lines = (
        Line("in use", flow.t_s, flow.columns["queued_bytes"] / factor, style.BLUE),
        Line("its size", flow.t_s, flow.columns["sndbuf_bytes"] / factor, style.ORANGE, "dash"),
    )
    return Panel("Send buffer, overhead included", unit, lines)


def _each(series: PointSeries, column: str, title: str, entry: Entry, *, bdp: bool) -> Panel:
    unit, factor = _size_unit([flow.columns[column] for flow in series.flows])
    lines = [
        Line(flow.name, flow.t_s, flow.columns[column] / factor, style.colour(number), style_dash(number), 1.4)
        for number, flow in enumerate(series.flows)
    ]
    if bdp and series.flows:
        lines += _bdp(entry, series.flows[0].t_s, factor, unit)
    return Panel(title, unit, tuple(lines))


def _rtt(entry: Entry, series: PointSeries) -> Panel:
    single = len(series.flows) == 1
    lines = [
        Line(
            "smoothed RTT" if single else flow.name,
            flow.t_s,
            np.where(flow.columns["srtt_s"] > 0, flow.columns["srtt_s"] * 1e3, np.nan),
            style.colour(number),
            style_dash(number),
            1.8 if single else 1.4,
        )
        for number, flow in enumerate(series.flows)
    ]
    base = entry.number("rtt_s") or entry.number("configured_rtt_s")
    if base is not None and series.flows:
        lines += _level(series, base * 1e3, f"base {base * 1e3:.4g} ms", "dot")
        highest = max((float(np.nanmax(line.values)) for line in lines if not np.isnan(line.values).all()), default=base)
        room = (0.9 * base * 1e3, max(1.1 * base * 1e3, 1.04 * highest))
        return Panel("RTT", "ms", tuple(lines), range=room)
    return Panel("RTT", "ms", tuple(lines))


def _queue(entry: Entry, series: PointSeries) -> Panel:
    queue = series.queue
    if not len(queue.t_s):
        return Panel("Queue", "", ())
    unit, factor = _size_unit([queue.backlog_bytes])
    lines = [Line("backlog", queue.t_s, queue.backlog_bytes / factor, style.BLUE)]
    limit = entry.number("queue_limit")
    in_bytes = (entry.row or {}).get("queue_limit_unit") == "bytes"
    near = limit is not None and limit < 10 * queue.backlog_bytes.max()  # else the line would flatten the rest
    if limit and in_bytes and near:
        lines += _level(series, limit / factor, f"limit {limit / factor:.4g} {unit}", "dash", style.ORANGE)
    where = queue.drops > 0
    if where.any():
        texts = tuple(f"{number:.0f} packets dropped" for number in queue.drops[where])
        heights = queue.backlog_bytes[where] / factor
        lines.append(Line("drops", queue.t_s[where], heights, style.VERMILLION, marks="x", texts=texts))
    limited = f", limit {limit:.0f} packets" if limit and not in_bytes else ""
    if in_bytes and limit and not near:
        limited = f", limit {human_size(limit)}"
    return Panel(f"Bottleneck queue{limited}", unit, tuple(lines))


def _size_unit(arrays: list[Floats]) -> tuple[str, float]:
    largest = max((float(np.nanmax(a)) for a in arrays if len(a) and not np.isnan(a).all()), default=0.0)
    return ("MiB", float(MIB)) if largest >= MIB else ("KiB", 1024.0)


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
            rangemode="tozero",
            showspikes=True,
            spikemode="across",
            spikethickness=1,
            spikedash="solid",
            spikecolor=style.AXIS,
        ),
    )
    narrow: dict[str, Any] = {"dragmode": False, "margin.l": 46, "margin.r": 6, "font.size": 12}
    narrow |= _heights([panel.head_px(narrow=True) for panel in panels], dotted=True)
    narrow |= {f"{_name('legend', place)}.title.side": "top" for place in range(len(panels))}
    traces = []
    for place, panel in enumerate(panels):
        yaxis, legend = _name("y", place), _name("legend", place)
        layout[_name("yaxis", place)] = style.axis(
            title={"text": panel.unit}, rangemode="tozero", nticks=5, range=panel.range
        )
        layout[legend] = {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "yanchor": "bottom",
            "bgcolor": "rgba(0,0,0,0)",
            "title": {"text": f"<b>{style.plain(panel.title)}</b>  ", "side": "left"},
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
    for key, value in _heights([panel.head_px(narrow=False) for panel in panels], dotted=False).items():
        layout[key] = {**layout[key], **value} if isinstance(value, dict) else value
    return go.Figure(traces, layout), narrow


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
    hover = f"{style.plain(line.name)} %{{y:.4g}} {panel.unit}<extra></extra>"
    if line.texts:
        hover = "%{text}<extra></extra>"
    return go.Scatter(
        x=line.t_s.astype(np.float32),
        y=line.values.astype(np.float32),
        yaxis=yaxis,
        legend=legend,
        name=style.plain(line.name),
        mode="markers" if line.marks else "lines",
        line={"color": line.colour, "dash": line.dash, "width": line.width},
        marker={"symbol": line.marks, "size": 7, "color": line.colour} if line.marks else None,
        text=line.texts or None,
        hovertemplate=hover if line.hover else None,
        hoverinfo=None if line.hover else "skip",
    )
