"""What points cost as they grow: flows, hosts, arrivals and rate; and every scenario at its default grid.

    .venv/bin/python benchmarks/scale.py                 writes docs/scale.md: points, then scenarios
    .venv/bin/python benchmarks/scale.py --keep DIR      and leaves the scenarios' runs in DIR

Wall seconds of one machine; on a shared one they are noisy, so ratios within
one table are what counts. Nothing here is asserted.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import bench

from lab import point as point_module
from lab.engines import virtual
from lab.kernels import find_kernel
from lab.store import RunFolder

PAGE = bench.ROOT / "docs" / "scale.md"
STUDIES = sorted(
    path.stem
    for path in (bench.ROOT / "scenarios").glob("*.py")
    if path.stem not in ("path", "socket_buffers")
)
FLOWS = ("1", "10", "100", "400", "1000")
PAIRS = ("1", "10", "50", "100")
RATES = ("10mbit", "100mbit", "1gbit")
LOADS = ("10%", "30%", "90%")


def timed(knobs: Mapping[str, str]) -> tuple[dict[str, Any], float]:
    """Run a point once; return its row, with packets that the bottleneck sent, and the whole wall time, s."""
    point = bench.make(knobs)
    with tempfile.TemporaryDirectory(prefix="wanlab-bench-") as folder:
        began = time.monotonic()
        tables, _ = point_module.run(
            point,
            virtual.make(),
            find_kernel(point.knobs["kernel"]),
            cpu=min(os.sched_getaffinity(0)),
            folder=Path(folder),
            terms=point_module.Terms(),
        )
        whole_s = time.monotonic() - began
    sent = [row["packets"] for row in tables["queues"] if row["bottleneck"]]
    return {**tables["points"][0], "packets": sent[-1], "flows_seen": len(tables["flows"])}, whole_s


def table(title: str, head: str, cases: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield a table of cases: engine and whole seconds, and what a packet costs."""
    yield from (
        f"## {title}",
        "",
        f"| {head} | engine s | whole s | packets | us a packet |",
        "|" + " --- |" * 5,
    )
    for name, knobs in cases.items():
        row, whole_s = timed(knobs)
        cost_us = whole_s / row["packets"] * 1e6
        line = f"| {name} | {row['wall_s']:.1f} | {whole_s:.1f} | {row['packets']} | {cost_us:.1f} |"
        print(line, flush=True)
        yield line
    yield ""


def points() -> Iterator[str]:
    """Yield the tables of single points."""
    base = {"rtt": "40ms", "duration": "5s"}
    yield from table(
        "Flows on one path of 200 Mbit/s x 40 ms, 5 s",
        "flows",
        {name: {**base, "rate": "200mbit", "flows": name} for name in FLOWS},
    )
    yield from table(
        "Pairs of hosts in a dumbbell of 200 Mbit/s x 40 ms, 5 s, a flow each",
        "hosts",
        {
            str(2 * int(name)): {
                **base,
                "topology": "dumbbell",
                "rate": "200mbit",
                "flows": name,
                "pairs": name,
            }
            for name in PAIRS
        },
    )
    yield from table("Rate, one flow, 40 ms, 5 s", "rate", {name: {**base, "rate": name} for name in RATES})
    yield from table(
        "Flows that come and go, 10 KB each on 100 Mbit/s x 40 ms, 5 s",
        "load",
        {
            name: {**base, "rate": "100mbit", "flows": "0", "arrivals": f"poisson:{name}", "sizes": "10KB"}
            for name in LOADS
        },
    )


def scenarios(keep: Path) -> Iterator[str]:
    """Yield the table of all scenarios at their default grids; their runs go into a folder."""
    yield from (
        "## Scenarios at their default grids",
        "",
        "| scenario | points | wall s |",
        "| --- | --- | --- |",
    )
    for name in STUDIES:
        began = time.monotonic()
        command = [
            sys.executable,
            "-m",
            "lab",
            "run",
            f"scenarios/{name}.py",
            "--out",
            str(keep / name),
            "--fresh",
        ]
        done = subprocess.run(command, cwd=bench.ROOT, capture_output=True, text=True, check=False)
        wall_s = time.monotonic() - began
        met = "" if done.returncode == 0 else f" (exit status {done.returncode})"
        line = f"| {name} | {len(RunFolder(keep / name).statuses())} | {wall_s:.0f}{met} |"
        print(line, flush=True)
        yield line
    yield ""


def main() -> None:
    """Measure and write the page."""
    options = argparse.ArgumentParser(description="Write docs/scale.md.")
    options.add_argument("--keep", type=Path, help="leave the scenarios' runs here")
    chosen = options.parse_args()
    head = (
        f"{datetime.now(UTC):%Y-%m-%d}, {len(os.sched_getaffinity(0))} CPUs, {platform.machine()},"
        f" kernel {find_kernel('6.12').release}. Single points on one CPU, scenarios on all."
    )
    with tempfile.TemporaryDirectory(prefix="wanlab-bench-") as folder:
        lines = [head, "", *points(), *scenarios((chosen.keep or Path(folder)).absolute())]
    bench.fill(PAGE, "scale", "\n".join(lines))


if __name__ == "__main__":
    main()
