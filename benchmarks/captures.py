"""What a capture costs: in virtual time nothing but wall time, in real time CPU.

    .venv/bin/python benchmarks/captures.py          writes docs/captures.md

Each point runs with captures and without, in turn, on an otherwise idle
machine; the real-time part needs root. Nothing here is asserted.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import PATH, ROOT

from lab import point as point_module
from lab import scenario, sweep
from lab.captures import DEFAULT_SNAP_BYTES
from lab.engines import realtime, virtual
from lab.engines.base import Engine
from lab.errors import MachineLimited

OUT = ROOT / "docs" / "captures.md"
INTERFACES = ("snd-eth0", "rcv-eth0")
VIRTUAL = [
    {"rate": rate, "rtt": rtt, "cc": cc, "duration": "5s"}
    for rate in ("10mbit", "100mbit", "1gbit")
    for rtt in ("20ms", "100ms")
    for cc in ("cubic", "bbr", "reno")
]
REAL = [
    {"rate": rate, "rtt": "0s", "queue": "1MB", "duration": "5s"}
    for rate in ("100mbit", "300mbit", "600mbit")
]


@dataclass(frozen=True)
class Ran:
    """A point that ran once: its row, how many packets tcpdump was too slow for, what it wrote."""

    row: dict[str, Any]
    dropped: int
    written_bytes: int


def run(engine: Engine, knobs: dict[str, str], captured: tuple[str, ...]) -> Ran | None:
    """Run a point once; None where the machine was the limit."""
    loaded = scenario.load(PATH).scenario
    kernel = engine.default_kernel or "6.12"
    settings = {name: [value] for name, value in {**knobs, "kernel": kernel}.items()}
    (point,) = sweep.points(loaded, settings, engine=engine.name, seeds=[1])
    with tempfile.TemporaryDirectory(prefix="wanlab-bench-") as name:
        folder = Path(name)
        try:
            tables, outcome = point_module.run(
                point,
                engine,
                engine.kernel(kernel),
                cpu=min(os.sched_getaffinity(0)),
                folder=folder,
                terms=point_module.Terms(captured=captured),
            )
        except MachineLimited:
            return None
        written = sum(file.stat().st_size for file in (folder / "out").glob("*.pcap"))
    return Ran(tables["points"][0], sum(one["dropped"] for one in outcome.get("captures", ())), written)


def in_virtual_time() -> list[str]:
    """Return the lines on virtual time."""
    engine, ratios, apart, written = virtual.make(), [], [], 0
    for knobs in VIRTUAL:
        plain, kept = run(engine, knobs, ()), run(engine, knobs, INTERFACES)
        assert plain is not None
        assert kept is not None
        if plain.row["digest"] != kept.row["digest"]:
            apart.append(abs(kept.row["goodput_bps"] / plain.row["goodput_bps"] - 1))
        ratios.append(kept.row["wall_s"] / plain.row["wall_s"])
        written += kept.written_bytes
        print(knobs, f"{len(apart)} apart so far", f"{ratios[-1]:.2f}", flush=True)
    return [
        f"In virtual time: {len(VIRTUAL)} points (10 Mbit/s to 1 Gbit/s, RTTs 20 and 100 ms, CUBIC, BBR and"
        " Reno, 5 s), with captures of both ends and without. The records of"
        f" {len(VIRTUAL) - len(apart)} are the same to the bit. The others differ as seeds do, since tcpdump"
        f" takes numbers from the same source of chance: goodput by {max(apart, default=0):.2%} at most. With"
        " the same captures all repeat to the bit. Wall time in the engine:"
        f" {statistics.median(ratios):.2f} times in the median, {min(ratios):.2f} to {max(ratios):.2f};"
        f" {written / 1e6:.0f} MB written.",
        "",
    ]


def in_real_time() -> list[str]:
    """Return the lines on the real clock."""
    engine = realtime.make()
    lines = [
        "On the real clock, on this machine's own kernel, medians of three runs each, taken in turn:",
        "",
        "| rate | goodput without | goodput with | change | busiest CPU without | with | packets missed |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for knobs in REAL:
        both: dict[bool, list[Ran]] = {False: [], True: []}
        for _ in range(3):
            for kept, found in both.items():
                if ran := run(engine, knobs, INTERFACES if kept else ()):
                    found.append(ran)
        if not all(both.values()):
            lines.append(f"| {knobs['rate']} | the machine was the limit | | | | | |")
            continue
        (before, after), (idle, busy) = (
            [statistics.median(ran.row[column] for ran in both[kept]) for kept in (False, True)]
            for column in ("goodput_bps", "cpu_busy")
        )
        lines.append(
            f"| {knobs['rate']} | {before / 1e6:.2f} Mbit/s | {after / 1e6:.2f} Mbit/s"
            f" | {after / before - 1:+.2%} | {idle:.0%} | {busy:.0%}"
            f" | {sum(ran.dropped for ran in both[True])} |"
        )
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Measure and write the page."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    lines = [
        "# What a capture costs",
        "",
        "Written by `benchmarks/captures.py`; what it last gave.",
        f"{datetime.now(UTC):%Y-%m-%d}, {len(os.sched_getaffinity(0))} CPUs, {platform.machine()}, Linux"
        f" {platform.release()}; two tcpdump processes, {DEFAULT_SNAP_BYTES} bytes of each packet.",
        "",
        *in_virtual_time(),
        *in_real_time(),
        "",
    ]
    OUT.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
