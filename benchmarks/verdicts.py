"""Verdicts put to the test by perturbation: raise the knob that a verdict names, and each that it does not.

    .venv/bin/python benchmarks/verdicts.py [--points N] [--out DIR]     writes docs/verdicts.md

A verdict is confirmed when goodput rises with the knob that it names, or another
limit takes over, and when no other knob makes it rise. In virtual time nothing
else changes between two runs, so a difference is the knob's; only where random
loss cuts the window does another order of packets mean other losses, and there
the bounds are wider. Every run is kept in DIR and not run again.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, variance
from typing import Any

import bench
import grid

from lab import sweep
from lab.knobs import LARGEST_QUEUE_BYTES, PATH_KNOBS, RATE_RANGE_BPS
from lab.model.limits import (
    HYSTART,
    LIMITS,
    LINK,
    LOSS,
    QUEUE,
    RECEIVE_WINDOW,
    SEND_BUFFER,
    SLOW_START,
    words,
)
from lab.units import format_probability, format_rate, format_size, format_time

Row = Mapping[str, Any]

OUT = bench.ROOT / "docs" / "verdicts.md"
SEED = 20261122
RISES = 1.02
"""How many times the goodput counts as risen."""
RISES_IN_LOSS = 1.25
"""The same where random losses fall, which fall otherwise in every run."""
SEEDS = tuple(range(1, 9))
"""Of points that loss limits: their means are compared, and a rise is one that chance does not explain."""
T_VALUE = 2.14
"""Student's t for two means of eight, 95 %."""
CLEAR_SHARE = 0.8
"""Of the transfer: from here a verdict is clear, and under it other limits had their part."""
FACTOR = 4
NAMED = {
    RECEIVE_WINDOW: "rmem",
    SEND_BUFFER: "wmem",
    LINK: "rate",
    LOSS: "loss",
    QUEUE: "queue",
    SLOW_START: "duration",
    HYSTART: "duration",
}
TRIED = ("rmem", "wmem", "queue", "loss", "rate")
BELONGS = {QUEUE: {"rate"}, LOSS: set(), SLOW_START: {"rate"}, HYSTART: {"rate"}}
"""Knobs of the same limit: a short queue holds a share of the link, so a faster link gives more too."""


@dataclass(frozen=True)
class Trial:
    """One base point and one knob raised, each with the seeds over which to take means."""

    base: tuple[sweep.Point, ...]
    knob: str
    raised: tuple[sweep.Point, ...]


def raised(point: sweep.Point, knob: str) -> str | None:
    """Return a knob's value with more room, None where there is no more."""
    text = point.knobs[knob]
    if knob in ("rmem", "wmem"):
        triple = point.triple(knob)
        largest = min(triple.maximum * FACTOR, sweep.MOST_FILLED_BYTES)
        if largest <= triple.maximum:
            return None
        fixed = triple.minimum == triple.maximum
        return f"{largest}B" if fixed else f"max={largest}B"
    if knob == "queue":
        size = int(int(point.queue["limit"]) * FACTOR)
        return format_size(size) if size <= LARGEST_QUEUE_BYTES else None
    if knob == "loss":
        loss = float(PATH_KNOBS["loss"].value(text))
        return format_probability(loss / 10) if loss else None
    if knob == "duration":
        return format_time(point.duration_s * FACTOR)
    rate = point.rate_bps * 2
    return format_rate(rate) if rate <= RATE_RANGE_BPS[1] else None


def trials(points: list[sweep.Point], rows: list[Row]) -> list[Trial]:
    """Return what to run for the verdicts that there are."""
    found = []
    for point, row in zip(points, rows, strict=True):
        if row["status"] != "done":
            continue
        named = NAMED.get(row["limit_measured"])
        seeds = SEEDS if row["limit_measured"] == LOSS else SEEDS[:1]
        for knob in dict.fromkeys((named, *TRIED)):
            if knob is None or (value := raised(point, knob)) is None:
                continue
            changed = {**point.knobs, knob: value}
            found.append(
                Trial(
                    tuple(bench.make(point.knobs, seed) for seed in seeds),
                    knob,
                    tuple(bench.make(changed, seed) for seed in seeds),
                )
            )
    return found


def judge(base: list[Row], raised_rows: list[Row], knob: str) -> str | None:
    """Return why a trial speaks against a verdict, None where it does not."""
    failed = [row for row in (*base, *raised_rows) if row["status"] != "done"]
    if failed:
        return f"{knob} raised: {failed[0]['reason'].splitlines()[0]}"
    limit = base[0]["limit_measured"]
    named = NAMED.get(limit)
    column = "goodput_bps" if named == "duration" else "steady_goodput_bps"
    before, after = ([float(row[column]) for row in rows] for rows in (base, raised_rows))
    ratio = fmean(after) / fmean(before)
    bound = RISES_IN_LOSS if base[0]["loss"] != "0%" else RISES
    if knob == named:
        moved = raised_rows[0]["limit_measured"] != limit
        return (
            None if ratio >= RISES or moved else f"{knob} raised: {100 * (ratio - 1):+.1f} %, still {limit}"
        )
    if knob in BELONGS.get(limit, ()):
        return None
    if knob == "rate" and limit in (RECEIVE_WINDOW, SEND_BUFFER):
        # a window goes round sooner where its bursts take less time on the link: as much as the model says
        ratio /= max(1.0, raised_rows[0]["predicted_goodput_bps"] / base[0]["predicted_goodput_bps"])
    if len(before) > 1:
        spread = math.sqrt(variance(before) / len(before) + variance(after) / len(after))
        if fmean(after) - fmean(before) <= T_VALUE * spread:
            return None
    return f"{knob} raised: {100 * (ratio - 1):+.1f} %" if ratio > bound else None


def table(points: list[sweep.Point], rows: list[Row], tried: list[Trial], results: Mapping[str, Row]) -> str:
    """Return the page."""
    against: dict[str, list[str]] = {}
    counted: Counter[str] = Counter()
    for trial in tried:
        counted[trial.base[0].id] += len(trial.raised)
        base = [results[point.id] for point in trial.base]
        if why := judge(base, [results[point.id] for point in trial.raised], trial.knob):
            against.setdefault(trial.base[0].id, []).append(why)
    judged = [row for row in rows if row["status"] == "done" and counted[row["point"]]]
    clear = [row for row in judged if row["limit_shares"][row["limit_measured"]] >= CLEAR_SHARE]
    lines = [
        "| verdict | points | runs | confirmed | share |",
        "| --- | --- | --- | --- | --- |",
    ]
    groups = [(words(limit), [row for row in judged if row["limit_measured"] == limit]) for limit in LIMITS]
    groups += [("all", judged), (f"all with {100 * CLEAR_SHARE:.0f} % of the transfer or more", clear)]
    for name, mine in groups:
        if mine:
            right = sum(row["point"] not in against for row in mine)
            runs = sum(counted[row["point"]] for row in mine)
            lines.append(f"| {name} | {len(mine)} | {runs} | {right} | {100 * right / len(mine):.0f} % |")
    lines += ["", "| point | path | verdict | against it |", "| --- | --- | --- | --- |"]
    knobs = {point.id: point.knobs for point in points}
    for row in judged:
        if row["point"] in against:
            told = knobs[row["point"]]
            shown = (
                "rate",
                "rtt",
                "rmem",
                "wmem",
                "queue",
                "loss",
                "cc",
                "kernel",
                "adv_win_scale",
                "offloads",
            )
            path = " ".join(f"{name}={told[name]}" for name in shown)
            share = 100 * row["limit_shares"][row["limit_measured"]]
            why = "; ".join(against[row["point"]])
            lines.append(
                f"| {row['point']} | {path} | {words(row['limit_measured'])} {share:.0f} % | {why} |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run what is missing and write the page's tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, default=160)
    parser.add_argument("--out", type=Path, default=bench.ROOT / "results" / "verdicts")
    arguments = parser.parse_args()
    points = [bench.make(knobs) for knobs in grid.points(arguments.points, SEED)]
    rows = bench.run(points, arguments.out / "base")
    tried = trials(points, rows)
    unique = {point.id: point for trial in tried for point in (*trial.base, *trial.raised)}
    known = {row["point"]: row for row in rows}
    missing = [point for name, point in unique.items() if name not in known]
    results = {**known, **{row["point"]: row for row in bench.run(missing, arguments.out / "raised")}}
    bench.fill(OUT, "verdicts", table(points, rows, tried, results))


if __name__ == "__main__":
    main()
