"""The knee, drawn: goodput against a buffer's largest size, measured and predicted, with what was chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from lab.advise import inverse
from lab.advise.ask import MIB, WHICH, Ask, least_bytes, percent
from lab.advise.choose import Choice
from lab.advise.find import Finding, Knee, buffers, goodput_bps
from lab.model.predict import predict
from lab.report import style
from lab.report.drawn import Drawn, with_legend
from lab.setting import setting
from lab.units import human_rate, human_size

HEIGHT_PX = 430
BELOW_PX = 62
CURVE_POINTS = 80
_LAST = 2000
_UNITS = ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"))
_ENDS = {"rmem": "receiver", "wmem": "sender"}


def draw(ask: Ask, findings: Sequence[Finding], choice: Choice) -> list[Drawn]:
    """Return a figure for each buffer."""
    return [_knee(ask, findings, choice, which) for which in WHICH]


def _knee(ask: Ask, findings: Sequence[Finding], choice: Choice, which: str) -> Drawn:
    factor, unit = next(one for one in (*_UNITS, (1.0, "bit/s")) if ask.capacity_bps >= one[0])
    knees = [finding.knees[which] for finding in findings]
    low, high = _range(ask, knees, choice.sizes[which])
    figure = go.Figure(layout=_layout(ask, which, (low, high), factor, unit))
    _levels(figure, ask, findings, (low, high), factor)
    for place, (finding, knee) in enumerate(zip(findings, knees, strict=True)):
        figure.add_trace(_predicted(ask, finding, knee, place, (low, high), factor))
    for place, (finding, knee) in enumerate(zip(findings, knees, strict=True)):
        figure.add_traces(_measured(ask, finding, knee, place, factor))
    _uprights(figure, ask, choice, which, (low, high))
    narrow = with_legend(figure, BELOW_PX)
    title = f"Goodput against the largest tcp_{which} of the {_ENDS[which]}"
    other = WHICH[which == "rmem"]
    caption = (
        f"Marks are measured in the steady part, the other buffer (tcp_{other}) ample; ringed is the least"
        " that reaches. Broken lines are what the model predicts. The horizontal axis is logarithmic."
    )
    return Drawn(f"advice-{which}", title, caption, ask.words, figure, narrow)


def _range(ask: Ask, knees: Sequence[Knee], chosen: int) -> tuple[float, float]:
    sizes = [size for knee in knees for size in knee.rows] + [chosen]
    low, high = float(min(sizes)), float(max(sizes))
    if low / 4 < ask.bdp_bytes < high * 4:
        low, high = min(low, ask.bdp_bytes), max(high, ask.bdp_bytes)
    return low / 1.15 / MIB, high * 1.15 / MIB


def _layout(ask: Ask, which: str, ends: tuple[float, float], factor: float, unit: str) -> dict[str, Any]:
    ticks = _ticks(*ends)
    return style.layout(
        height=HEIGHT_PX,
        xaxis=style.axis(
            title={"text": f"largest tcp_{which}, MiB", "standoff": 6},
            type="log",
            range=[math.log10(end) for end in ends],
            tickmode="array",
            tickvals=ticks,
            ticktext=[f"{tick:.4g}" for tick in ticks],
        ),
        yaxis=style.axis(
            title={"text": f"goodput in the steady part, {unit}"},
            range=[0, ask.capacity_bps / factor * 1.12],
            nticks=8,
        ),
        hovermode="closest",
    )


def _ticks(low: float, high: float) -> list[float]:
    """Return powers of two between the ends, few enough to be read."""
    first, last = math.ceil(math.log2(low)), math.floor(math.log2(high))
    step = max(1, math.ceil((last - first) / 9))
    return [2.0**power for power in range(first, last + 1, step)]


def _levels(
    figure: go.Figure, ask: Ask, findings: Sequence[Finding], ends: tuple[float, float], factor: float
) -> None:
    """Draw the link and what the search asked for, over the whole width."""
    link = ask.capacity_bps
    levels = {
        f"payload that the link can carry, {human_rate(link)}": (link, {"color": style.GREY, "width": 1.2})
    }
    target = f"target, {percent(ask.target)} of it: {human_rate(ask.target_bps)}"
    levels[target] = (ask.target_bps, {"color": style.ORANGE, "width": 2})
    for finding in findings:
        if not finding.attainable:
            name = f"what was searched for {finding.case.name} instead: {human_rate(finding.goal_bps)}"
            levels[name] = (finding.goal_bps, {"color": style.ORANGE, "width": 2, "dash": "dot"})
    for name, (level, line) in levels.items():
        y = level / factor
        trace = go.Scatter(x=list(ends), y=[y, y], mode="lines", name=name, line=line, hoverinfo="skip")
        figure.add_trace(trace.update(legendrank=_LAST))
    broken = go.Scatter(
        x=[None], y=[None], mode="lines", name="predicted", line={"color": style.GREY, "dash": "dash"}
    )
    figure.add_trace(broken.update(legendrank=_LAST))


def _predicted(
    ask: Ask, finding: Finding, knee: Knee, place: int, ends: tuple[float, float], factor: float
) -> go.Scatter:
    held = {WHICH[knee.which == "rmem"]: knee.held_bytes}
    model = setting(buffers(ask, finding.case, finding.how, held), finding.case.release)
    low, high = max(ends[0] * MIB, least_bytes(knee.which)), min(ends[1] * MIB, 2**31 - 1)
    sizes = [low * (high / low) ** (step / CURVE_POINTS) for step in range(CURVE_POINTS + 1)]
    return go.Scatter(
        x=[size / MIB for size in sizes],
        y=[
            predict(inverse.with_buffer(model, knee.which, round(size))).predicted_goodput_bps / factor
            for size in sizes
        ],
        mode="lines",
        showlegend=False,
        legendgroup=f"case{place}",
        line={"color": style.colour(place), "width": 1.8, "dash": style.dash(place)},
        hoverinfo="skip",
    )


def _measured(ask: Ask, finding: Finding, knee: Knee, place: int, factor: float) -> list[go.Scatter]:
    colour = style.colour(place)
    rows = sorted(knee.rows.items())
    texts = [
        f"<b>{style.plain(finding.case.name)}</b><br>tcp_{knee.which}"
        f" {human_size(size)}<br>{human_rate(goodput_bps(row))},"
        f" {percent(goodput_bps(row) / ask.capacity_bps)} of what the link can"
        f" carry<br>{'reaches' if goodput_bps(row) >= finding.goal_bps else 'falls short'}; point"
        f" {row['point']}"
        for size, row in rows
    ]
    marks = go.Scatter(
        x=[size / MIB for size, _ in rows],
        y=[goodput_bps(row) / factor for _, row in rows],
        mode="lines+markers",
        name=style.plain(finding.case.name),
        legendgroup=f"case{place}",
        line={"color": style.faded(colour), "width": 1.5},
        marker={
            "symbol": style.symbol(place),
            "size": max(7.0, 10.0 - place),
            "color": colour,
            "line": {"color": "white", "width": 1},
        },
        text=texts,
        hovertemplate="%{text}<extra></extra>",
        cliponaxis=False,
    )
    ring = go.Scatter(
        x=[knee.found_bytes / MIB],
        y=[goodput_bps(knee.rows[knee.found_bytes]) / factor],
        mode="markers",
        name=style.plain(f"least for {finding.case.name}: {human_size(knee.found_bytes)}"),
        legendgroup=f"case{place}",
        marker={
            "symbol": f"{style.symbol(place)}-open",
            "size": 19,
            "color": colour,
            "line": {"color": colour, "width": 2.5},
        },
        hoverinfo="skip",
        cliponaxis=False,
    )
    return [marks, ring]


def _uprights(figure: go.Figure, ask: Ask, choice: Choice, which: str, ends: tuple[float, float]) -> None:
    chosen, bdp = choice.sizes[which] / MIB, ask.bdp_bytes / MIB
    said = "kernel's own, kept" if which in choice.kept else "set"
    lines = [(chosen, f"{said}: {human_size(chosen * MIB)}", style.GREEN, "solid")]
    if ends[0] < bdp < ends[1]:
        lines.append((bdp, f"BDP {human_size(ask.bdp_bytes)}", style.GREY, "dot"))
    lines.sort()
    for place, (x, text, colour, dash) in enumerate(lines):
        line = {"color": colour, "width": 1.6, "dash": dash}
        figure.add_shape(type="line", x0=x, x1=x, y0=0, y1=1, yref="paper", line=line)
        # near one another each label goes to its own side
        anchor = "center" if len(lines) == 1 else ("right" if place == 0 else "left")
        if place == len(lines) - 1 and math.log(ends[1] / x) < 0.25 * math.log(ends[1] / ends[0]):
            anchor = "right" if len(lines) == 1 or math.log(x / lines[0][0]) > 1.5 else anchor
        figure.add_annotation(
            text=text,
            x=math.log10(x),
            y=1,
            yref="paper",
            yanchor="bottom",
            xanchor=anchor,
            showarrow=False,
            font={"size": 12, "color": colour},
        )
