"""The model against the kernel: points of a Latin hypercube, predicted and measured.

    .venv/bin/python benchmarks/model.py [--points N] [--seed N] [--out DIR]     writes docs/model.md

Every run is kept in DIR and not run again; predictions are those of the model as
it is now. Residuals are drawn into docs/pictures/.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bench
import grid
import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from lab.model.inputs import Release
from lab.model.limits import LINK, RECEIVE_WINDOW, SEND_BUFFER, words
from lab.model.predict import Prediction, predict
from lab.report import style
from lab.setting import setting
from lab.sweep import Point

Row = Mapping[str, Any]

OUT = bench.ROOT / "docs" / "model.md"
PICTURES = bench.ROOT / "docs" / "pictures"
SEED = 20261121
WINDOWS_AND_LINK = (LINK, RECEIVE_WINDOW, SEND_BUFFER)
WORST = 10
BOUND = 0.3
"""Residuals beyond are drawn at the edge."""


@dataclass(frozen=True)
class Case:
    """A point, predicted and measured."""

    point: Point
    row: Row
    made: Prediction

    @property
    def steady(self) -> float:
        """Relative distance of the steady goodput from what was predicted."""
        return float(self.row["steady_goodput_bps"] / self.made.predicted_goodput_bps - 1)

    @property
    def mean(self) -> float:
        """The same of the goodput over the whole load."""
        return float(self.row["goodput_bps"] / self.made.mean_goodput_bps - 1)

    @property
    def lossy(self) -> bool:
        """Whether packets are lost by chance."""
        return bool(self.row["loss"] != "0%")


def regimes() -> Iterable[tuple[str, Callable[[Case], bool]]]:
    """Return the groups of the table: by what the model says binds, and whether chance has a say."""
    yield (
        "windows and link, no random loss",
        lambda c: c.made.steady_limit in WINDOWS_AND_LINK and not c.lossy,
    )
    yield "windows and link, random loss", lambda c: c.made.steady_limit in WINDOWS_AND_LINK and c.lossy
    for limit in WINDOWS_AND_LINK:
        yield f"of both: {words(limit)}", lambda c, limit=limit: c.made.steady_limit == limit
    yield "queue, HyStart, slow start", lambda c: c.made.steady_limit in ("queue", "hystart", "slow_start")
    yield "loss", lambda c: c.made.steady_limit == "loss"
    yield "all", lambda _: True


def _percent(values: Sequence[float], share: float) -> str:
    return f"{100 * float(np.percentile(np.abs(values), share)):.1f} %"


def table(cases: Sequence[Case]) -> str:
    """Return the errors by regime, and the worst points where windows and link bind."""
    lines = [
        "| predicted to bind | points | steady goodput: median | 95th percentile | mean goodput: median"
        " | 95th percentile | same limit measured |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, belongs in regimes():
        mine = [case for case in cases if belongs(case)]
        if not mine:
            continue
        steady, mean = [case.steady for case in mine], [case.mean for case in mine]
        same = sum(case.row["limit_measured"] == case.made.limit for case in mine)
        lines.append(
            f"| {name} | {len(mine)} | {_percent(steady, 50)} | {_percent(steady, 95)}"
            f" | {_percent(mean, 50)} | {_percent(mean, 95)} | {same} |"
        )
    ranked = sorted(
        (case for case in cases if case.made.steady_limit in WINDOWS_AND_LINK), key=lambda c: -abs(c.steady)
    )
    lines += [
        "",
        f"The {WORST} worst where windows or link are predicted to bind:",
        "",
        "| point | measured, Mbit/s | predicted | error | binds | knobs |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    shown = ("rate", "rtt", "rmem", "wmem", "queue", "loss", "cc", "kernel", "adv_win_scale", "offloads")
    for case in ranked[:WORST]:
        told = " ".join(f"{name}={case.point.knobs[name]}" for name in shown)
        lines.append(
            f"| {case.point.id} | {case.row['steady_goodput_bps'] / 1e6:.4g}"
            f" | {case.made.predicted_goodput_bps / 1e6:.4g} | {100 * case.steady:+.0f} %"
            f" | {words(case.made.steady_limit)} | {told} |"
        )
    return "\n".join(lines) + "\n"


def figure(cases: Sequence[Case]) -> go.Figure:
    """Return the residuals over rate, RTT, and how much of the BDP the smaller window covers."""
    axes: list[tuple[str, Callable[[Case], float]]] = [
        ("Rate (Mbit/s)", lambda c: c.row["rate_bps"] / 1e6),
        ("RTT (ms)", lambda c: c.row["configured_rtt_s"] * 1e3),
        (
            "Smaller of receive window and send buffer (BDP)",
            lambda c: min(c.made.window_bytes, c.made.send_window_bytes) / c.made.bdp_bytes,
        ),
    ]
    made = make_subplots(rows=3, cols=1, vertical_spacing=0.09)
    for number, limit in enumerate((*WINDOWS_AND_LINK, "queue", "loss")):
        mine = [case for case in cases if case.made.steady_limit == limit]
        for line, (_, of) in enumerate(axes, 1):
            made.add_scatter(
                x=[of(case) for case in mine],
                y=[100 * max(-BOUND, min(BOUND, case.steady)) for case in mine],
                mode="markers",
                name=words(limit),
                legendgroup=limit,
                showlegend=line == 1,
                marker={"color": style.colour(number), "symbol": style.symbol(number), "size": 6},
                row=line,
                col=1,
            )
    for line, (title, _) in enumerate(axes, 1):
        made.update_xaxes(style.axis(type="log", title={"text": title}), row=line, col=1)
        made.update_yaxes(
            style.axis(title={"text": "Measured / predicted - 1 (%)"}, range=[-105 * BOUND, 105 * BOUND]),
            row=line,
            col=1,
        )
        for level, dash in ((0, "solid"), (8, "dot"), (-8, "dot")):
            made.add_hline(y=level, line={"color": style.GREY, "width": 1, "dash": dash}, row=line, col=1)
    made.update_layout(height=1000, margin={"l": 70, "r": 20, "t": 20, "b": 60}, template="plotly_white")
    return made


def main() -> None:
    """Run what is missing, write the tables and draw the residuals."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, default=320)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, default=bench.ROOT / "results" / "model")
    parser.add_argument("--page", default=OUT.name, help="page in docs/ that gets the tables")
    arguments = parser.parse_args()
    points = [bench.make(knobs) for knobs in grid.points(arguments.points, arguments.seed)]
    rows = bench.run(points, arguments.out)
    cases = [
        Case(point, row, predict(setting(point, Release.parse(row["kernel_release"]))))
        for point, row in zip(points, rows, strict=True)
        if row["status"] == "done"
    ]
    failed = len(rows) - len(cases)
    told = f"{len(cases)} points, seed {arguments.seed}" + (f"; {failed} failed" if failed else "")
    bench.fill(OUT.parent / arguments.page, "model", f"{told}.\n\n{table(cases)}")
    if arguments.page != OUT.name:
        return
    title = "Residuals of the steady goodput"
    words_under = f"{told}; dotted: 8 %; beyond {100 * BOUND:.0f} % drawn at the edge"
    bench.draw(figure(cases), title, words_under, PICTURES / "model-residuals.png")


if __name__ == "__main__":
    main()
