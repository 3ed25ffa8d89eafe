"""What is drawn of one point over time: panels for goodput, windows, send buffer, RTT, queues and limits.

No plotting here; `lab.report.stack` draws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lab.model.limits import words
from lab.report import band, limits, style
from lab.report.axes import MIB
from lab.report.band import Band
from lab.report.curves import link_goodput_bps
from lab.report.limits import Look
from lab.report.series import MOST_SAMPLES, Floats, FlowSeries, PointSeries, Probe
from lab.report.stored import Entry
from lab.traffic import REVERSE
from lab.units import human_size

MOST_QUEUES = 4
"""Bottlenecks in a row that are drawn."""


@dataclass(frozen=True)
class Line:
    """One line (or marks) of a panel. hover: whether pointing at it says its value.

    texts: what pointing says instead of the value, one for each. fill: it is a
    step from each instant to the next, filled so, and lies on those before it.
    listed: whether it is in the legend; a line without a name never is. label:
    what pointing calls it, if not by its name. point: what a click on it leads to.
    """

    name: str
    t_s: Floats
    values: Floats
    colour: str
    dash: str = "solid"
    width: float = 1.8
    marks: str = ""
    hover: bool = True
    texts: tuple[str, ...] = ()
    fill: Look | None = None
    listed: bool = True
    label: str = ""
    point: str = ""


@dataclass(frozen=True)
class Panel:
    """One panel. spans: (from, to) in s, shaded; range: of its values, None for all from 0."""

    title: str
    unit: str
    lines: tuple[Line, ...]
    spans: tuple[tuple[float, float], ...] = ()
    range: tuple[float, float] | None = None


def build(entry: Entry, series: PointSeries, limited: Band) -> list[Panel]:
    """Return the panels of a point, top to bottom; the first is there even without samples."""
    if len(series.flows) == 1:
        flow = series.flows[0]
        middle = [_windows(entry, flow), _send_buffer(flow), _rtt(entry, series)]
    else:
        middle = [
            _congestion_windows(entry, series),
            _each(series, "rwnd_bytes", "Receive window", entry, bdp=True),
            _each(series, "inflight_bytes", "Bytes in flight", entry, bdp=True),
            _each(series, "queued_bytes", "Send buffer in use", entry, bdp=False),
            _rtt(entry, series),
        ]
    others = [panel for panel in (*middle, _queues(entry, series), _limits(limited)) if panel.lines]
    return [_goodput(entry, series), *others]


def caption(entry: Entry, series: PointSeries, limited: Band) -> str:
    """Return the words under the panels."""
    told = []
    if series.flows:
        told.append("Shaded: the steady part.")
    if series.merged and len(series.flows) > 1:
        told.append(
            f"Not all {series.merged} flows are drawn by themselves: a line with a number of flows in its"
            " name is their sum, of RTTs the median."
        )
    elif series.merged:
        told.append(f"The {series.merged} flows are drawn as one: their sum, and the median of their RTTs.")
    elif len(series.flows) > 1:
        told.append(f"One line for each of the {len(series.flows)} flows.")
    if any(line.name == _SSTHRESH for panel in build(entry, series, limited) for line in panel.lines):
        told.append("Broken lines are slow start thresholds; before its first loss a flow has none.")
    if series.probe is not None:
        told.append("The probe's delay is one way, the RTTs are both.")
    if entry.knobs.get("recipe") == "leaf":
        told.append("The queue is the delay line's too: it holds what is on its way, besides what waits.")
    if limited.shares:
        told.append("The band of limits says which part of each interval each of them bound.")
        if limited.flows > 1:
            told.append(f"It is the mean of {limited.flows} flows.")
    if series.stride > 1:
        told.append(f"One sample of {series.stride} is drawn, of the queue the longest of {series.stride}.")
    return " ".join(told)


def _level(
    series: PointSeries, value: float | None, name: str, dash: str, colour: str = style.GREY
) -> list[Line]:
    """Return a level line over the whole time, none where there is no value."""
    times = [flow.t_s for flow in series.flows if len(flow.t_s)]
    if value is None or not times:
        return []
    ends = np.array([0.0, max(float(t_s[-1]) for t_s in times)])
    return [Line(name, ends, np.array([value, value]), colour, dash, 1.4, hover=False)]


def _goodput(entry: Entry, series: PointSeries) -> Panel:
    lines = []
    flows = [flow for flow in series.flows if len(flow.read_t_s) > 1]
    over_s = window_s(entry, flows)
    for number, flow in enumerate(flows):
        mean = flow.mean_goodput_bps(over_s) / 1e6
        if len(series.flows) == 1:
            each = flow.goodput_bps() / 1e6
            lines.append(Line("each interval", flow.read_t_s, each, style.SKY, width=1.0, hover=False))
            lines.append(Line(f"mean over {time(over_s)}", flow.read_t_s, mean, style.BLUE))
        else:
            lines.append(_of_flow(number, flow.name, flow.read_t_s, mean))
    ahead = [flow for flow in flows if flow.kind != REVERSE]
    if len(ahead) > 1:
        t_s = _thinned(np.unique(np.concatenate([flow.read_t_s for flow in ahead])))
        read = sum((np.interp(t_s, flow.read_t_s, flow.read_bytes) for flow in ahead), np.zeros_like(t_s))
        total = FlowSeries("", np.zeros(0), {}, t_s, read).mean_goodput_bps(over_s)
        name = "all flows" if len(ahead) == len(flows) else "all but reverse flows"
        lines.append(Line(name, t_s, total / 1e6, style.GREY, width=2.2))
    predicted, link = entry.number("predicted_goodput_bps"), link_goodput_bps(entry)
    if predicted is not None:
        lines += _level(series, predicted / 1e6, f"predicted {predicted / 1e6:.4g}", "dash", style.VERMILLION)
    rate = entry.number("rate_bps")
    if link is not None and rate:
        lines += _changing_link(series, link / rate) or _level(
            series, link / 1e6, f"link {link / 1e6:.4g}", "dot"
        )
    start, length = entry.number("steady_from_s"), entry.number("load_s")
    spans = () if start is None or length is None else ((series.begin_s + start, series.begin_s + length),)
    title = f"Goodput, mean over {time(over_s)}" if len(flows) > 1 else "Goodput"
    return Panel(title, "Mbit/s", tuple(lines), spans)


def _changing_link(series: PointSeries, payload: float) -> list[Line]:
    """Return what the link can carry where its rate changes, else nothing. payload: share of the rate."""
    for queue in series.queues[:1]:
        known = queue.rate_bps[~np.isnan(queue.rate_bps)]
        if len(known) and known.min() < known.max():
            return [
                Line("link", queue.t_s, queue.rate_bps * payload / 1e6, style.GREY, "dot", 1.4, hover=False)
            ]
    return []


def _thinned(t_s: Floats) -> Floats:
    """Return every nth instant: flows that are sampled apart have many together."""
    return t_s[:: max(1, -(-len(t_s) // MOST_SAMPLES))]


def window_s(entry: Entry, flows: Sequence[FlowSeries]) -> float:
    """Return over how long goodput is averaged: some samples, and whole RTTs, s; 0 without flows.

    What a window lets out arrives in clumps, one an RTT.
    """
    interval_s = float(np.median(np.diff(flows[0].read_t_s))) if flows else 0.0
    rtt_s = entry.number("configured_rtt_s") or 0.0
    return rtt_s * max(1, math.ceil(5 * interval_s / rtt_s - 1e-6)) if rtt_s else 5 * interval_s


def time(time_s: float) -> str:
    """Return a span of time for reading."""
    return f"{time_s:.3g} s" if time_s >= 1 else f"{time_s * 1e3:.3g} ms"


def _of_flow(number: int, name: str, t_s: Floats, values: Floats) -> Line:
    """Return the line of the nth of several flows: whole, and broken when colours repeat."""
    dash = "solid" if number < len(style.COLOURS) else style.dash(number)
    return Line(name, t_s, values, style.colour(number), dash, 1.4)


def _windows(entry: Entry, flow: FlowSeries) -> Panel:
    unit, factor = _size_unit([flow.columns[name] for name in ("cwnd_bytes", "rwnd_bytes", "inflight_bytes")])
    cwnd = flow.columns["cwnd_bytes"] / factor
    lines = [
        Line("cwnd", flow.t_s, cwnd, style.BLUE),
        *_ssthresh(flow, factor, style.BLUE, listed=True),
        Line("receive window", flow.t_s, flow.columns["rwnd_bytes"] / factor, style.VERMILLION),
        Line("in flight", flow.t_s, flow.columns["inflight_bytes"] / factor, style.GREEN),
    ]
    again = np.diff(flow.columns["retransmits"], prepend=0.0)
    where = np.nan_to_num(again) > 0
    if where.any():
        texts = tuple(f"{number:.0f} segments sent again" for number in again[where])
        lines.append(Line("retransmits", flow.t_s[where], cwnd[where], style.PURPLE, marks="x", texts=texts))
    return Panel("Windows", unit, (*lines, *_bdp(entry, flow.t_s, factor)))


_SSTHRESH = "ssthresh"


def _ssthresh(flow: FlowSeries, factor: float, colour: str, *, listed: bool) -> list[Line]:
    """Return a flow's slow start threshold, none where it never had one."""
    values = flow.columns["ssthresh_bytes"] / factor
    if np.isnan(values).all():
        return []
    return [Line(_SSTHRESH, flow.t_s, values, colour, "dash", 1.3, hover=listed, listed=listed)]


def _congestion_windows(entry: Entry, series: PointSeries) -> Panel:
    """Return cwnd of each flow with its threshold, in the same colour."""
    panel = _each(series, "cwnd_bytes", "Congestion window", entry, bdp=True)
    _, factor = _size_unit([flow.columns["cwnd_bytes"] for flow in series.flows])
    thresholds = [
        line
        for flow, whole in zip(series.flows, panel.lines, strict=False)
        for line in _ssthresh(flow, factor, whole.colour, listed=False)
    ]
    title = f"{panel.title}, broken: ssthresh" if thresholds else panel.title
    return replace(panel, title=title, lines=(*panel.lines, *thresholds))


def _bdp(entry: Entry, t_s: Floats, factor: float) -> list[Line]:
    bdp = entry.number("bdp_bytes")
    if bdp is None or not len(t_s):
        return []
    ends = np.array([0.0, t_s[-1]])
    return [
        Line(f"BDP {human_size(bdp)}", ends, np.full(2, bdp / factor), style.GREY, "dot", 1.4, hover=False)
    ]


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
        _of_flow(number, flow.name, flow.t_s, flow.columns[column] / factor)
        for number, flow in enumerate(series.flows)
    ]
    if bdp and series.flows:
        lines += _bdp(entry, series.flows[0].t_s, factor)
    return Panel(title, unit, tuple(lines))


def _rtt(entry: Entry, series: PointSeries) -> Panel:
    lines = []
    for number, flow in enumerate(series.flows):
        rtt_ms = np.where(flow.columns["srtt_s"] > 0, flow.columns["srtt_s"] * 1e3, np.nan)
        if len(series.flows) == 1:
            lines.append(Line("smoothed RTT", flow.t_s, rtt_ms, style.BLUE))
        else:
            lines.append(_of_flow(number, flow.name, flow.t_s, rtt_ms))
    base = entry.number("rtt_s") or entry.number("configured_rtt_s")
    if base is None or not series.flows or "+" in entry.knobs.get("rtt", ""):  # of several none is the base
        level = []
    else:
        level = _level(series, base * 1e3, f"base {base * 1e3:.4g} ms", "dot")
    if series.probe is not None:
        colour = style.VERMILLION if len(lines) == 1 else style.GREY
        return Panel("RTT and delay of the probe", "ms", (*lines, *level, *_probe(series.probe, colour)))
    if base is not None and level:
        known = [line.values[~np.isnan(line.values)] for line in (*lines, *level)]
        highest = max(float(values.max()) for values in known if len(values))
        lowest = min(float(values.min()) for values in known if len(values))
        room = (min(0.9 * base * 1e3, 0.95 * lowest), max(1.1 * base * 1e3, 1.04 * highest))
        return Panel("RTT", "ms", (*lines, *level), range=room)
    return Panel("RTT", "ms", tuple(lines))


def _probe(probe: Probe, colour: str) -> list[Line]:
    """Return the probe's delay, and a mark on the axis where a packet of it was lost."""
    lines = [Line("probe, one way", probe.t_s, probe.delay_s * 1e3, colour, width=1.1)]
    where = probe.lost > 0
    if where.any():
        texts = tuple(f"{number:.0f} probe packets lost" for number in probe.lost[where])
        none = np.zeros(int(where.sum()))
        lines.append(Line("probe lost", probe.t_s[where], none, colour, marks="x", texts=texts))
    return lines


def _queues(entry: Entry, series: PointSeries) -> Panel:
    """Return the queue of the bottleneck, or of the first few in a row."""
    queues = [queue for queue in series.queues if len(queue.t_s)][:MOST_QUEUES]
    if not queues:
        return Panel("Queue", "", ())
    alone = len(series.queues) == 1
    unit, factor = _size_unit([queue.backlog_bytes for queue in queues])
    lines = [
        Line(
            "backlog" if alone else queue.name, queue.t_s, queue.backlog_bytes / factor, style.colour(number)
        )
        for number, queue in enumerate(queues)
    ]
    limit = entry.number("queue_limit")
    in_bytes = (entry.row or {}).get("queue_limit_unit") == "bytes"
    # a limit far above would flatten the rest
    near = limit is not None and limit < 10 * max(float(queue.backlog_bytes.max()) for queue in queues)
    if limit and in_bytes and near:
        lines += _level(series, limit / factor, f"limit {human_size(limit)}", "dash", style.ORANGE)
    for number, queue in enumerate(queues):
        where = queue.drops > 0
        if where.any():
            at = "" if alone else f" at {queue.name}"
            texts = tuple(f"{count:.0f} packets dropped{at}" for count in queue.drops[where])
            colour = style.VERMILLION if alone else style.colour(number)
            heights = queue.backlog_bytes[where] / factor
            lines.append(
                Line(f"drops{at}", queue.t_s[where], heights, colour, marks="x", texts=texts, listed=alone)
            )
    limited = f", limit {limit:.0f} packets" if limit and not in_bytes else ""
    if in_bytes and limit and not near:
        limited = f", limit {human_size(limit)}"
    if alone:
        return Panel(f"Bottleneck queue{limited}", unit, tuple(lines))
    left = len(series.queues) - len(queues)
    more = f", {left} more left out" if left else ""
    return Panel(f"Bottleneck queues{limited}{more}, crosses are drops", unit, tuple(lines))


def _limits(limited: Band) -> Panel:
    edges_s, lines = limited.edges_s, []
    for limit in limits.ordered(limited.shares):
        look, share = limits.look(limit), limited.shares[limit]
        steps = np.append(share, share[-1]) * 100  # the last one has a width too
        lines.append(Line(words(limit), edges_s, steps, look.colour, hover=False, fill=look))
    if lines:
        told = tuple(band.words(limited, at) for at in range(len(edges_s) - 1))
        middle_s = (edges_s[:-1] + edges_s[1:]) / 2
        # one text for an interval, instead of one for each limit
        lines.append(Line("", middle_s, np.full(len(told), 50.0), style.GREY, width=0, texts=told))
    title = "What limited the flow" if limited.flows == 1 else "What limited the flows, their mean"
    return Panel(title, "%", tuple(lines), range=(0.0, 100.0))


def _size_unit(arrays: list[Floats]) -> tuple[str, float]:
    largest = max((float(np.nanmax(a)) for a in arrays if len(a) and not np.isnan(a).all()), default=0.0)
    return ("MiB", float(MIB)) if largest >= MIB else ("KiB", 1024.0)
