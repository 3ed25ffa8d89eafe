"""Speed of the virtual engine: virtual seconds per wall second, the fixed cost of a point, two side by side.

    .venv/bin/python benchmarks/speed.py            writes docs/speed.md

Ratios are taken in one go on one machine; on a shared machine they are noisy,
so the quickest of a few repetitions counts. Nothing here is asserted.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import platform
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lab import point as point_module
from lab import scenario, spec, sweep, uml
from lab.engines import virtual
from lab.errors import GuestError
from lab.kernels import find_kernel

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "docs" / "speed.md"
AMPLE = {"rmem": "max=2GB", "wmem": "max=2GB"}
PATHS = (
    ({"rate": "100mbit", "rtt": "40ms", "duration": "30s"}, ("off", "on"), 3),
    ({"rate": "1gbit", "rtt": "200ms", "duration": "20s"}, ("off", "on"), 3),
    ({"rate": "10gbit", "rtt": "100ms", "duration": "10s"}, ("off", "on"), 2),
    ({"rate": "100gbit", "rtt": "100ms", "duration": "3s"}, ("off", "on"), 1),
)


@dataclass(frozen=True)
class Timed:
    """Wall seconds of a whole point and of its engine alone, and what it measured."""

    whole_s: float
    engine_s: float
    steady_bps: float


def make(**knobs: str) -> sweep.Point:
    """Return one point of the `path` scenario."""
    loaded = scenario.load(ROOT / "scenarios" / "path.py").scenario
    (point,) = sweep.points(
        loaded, {name: [value] for name, value in knobs.items()}, engine="virtual", seeds=[1]
    )
    return point


def run(engine: virtual.VirtualEngine, point: sweep.Point, cpu: int) -> Timed:
    """Run a point once."""
    with tempfile.TemporaryDirectory(prefix="wanlab-bench-") as folder:
        began = time.monotonic()
        tables, _ = point_module.run(
            point,
            engine,
            find_kernel(point.knobs["kernel"]),
            cpu=cpu,
            folder=Path(folder),
            terms=point_module.Terms(),
        )
        whole_s = time.monotonic() - began
    row = tables["points"][0]
    return Timed(whole_s, row["wall_s"], row["steady_goodput_bps"])


def stages() -> list[str]:
    """Return the lines that say where the fixed cost of a point goes."""
    uml.AGENT, agent = ROOT / "benchmarks" / "staged_agent.py", uml.AGENT
    found: list[list[tuple[str, float]]] = []
    try:
        for _ in range(5):
            with tempfile.TemporaryDirectory(prefix="wanlab-bench-") as folder:
                began = time.time()
                with contextlib.suppress(GuestError):  # it leaves stages, not an outcome
                    virtual.VirtualEngine().run(
                        spec.agent_spec(make(rate="1mbit", rtt="20ms", duration="10ms")),
                        kernel=find_kernel("6.12").path,
                        seed=1,
                        memory_bytes=2**28,
                        cpu=min(os.sched_getaffinity(0)),
                        folder=Path(folder),
                        wall_limit_s=60,
                    )
                instants = json.loads((Path(folder) / "out" / "stages.json").read_text())
            found.append([("start", began), *((stage, instant) for stage, instant in instants)])
    finally:
        uml.AGENT = agent
    best = min(found, key=lambda instants: instants[-1][1] - instants[0][1])
    return ["| stage | wall ms |", "| --- | --- |"] + [
        f"| {stage} | {(instant - before) * 1000:.0f} |"
        for (_, before), (stage, instant) in itertools.pairwise(best)
    ]


def main() -> None:
    """Measure and write the table."""
    engine = virtual.make()
    cpus = sorted(os.sched_getaffinity(0))
    lines = [
        "# Speed of the virtual engine",
        "",
        "Written by `benchmarks/speed.py`; what it last gave.",
        f"{datetime.now(UTC):%Y-%m-%d}, {len(cpus)} CPUs, {platform.machine()},"
        f" kernel {find_kernel('6.12').release}, one CUBIC bulk flow.",
        "",
        "| path | load | offloads | wall s | virtual s per wall s | steady goodput | guest memory |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for knobs, offloads, repetitions in PATHS:
        for setting in offloads:
            point = make(**knobs, offloads=setting, **AMPLE)
            timed = [run(engine, point, cpus[0]) for _ in range(repetitions)]
            best = min(timed, key=lambda t: t.engine_s)
            lines.append(
                f"| {knobs['rate']} x {knobs['rtt']} | {knobs['duration']} | {setting} | {best.engine_s:.2f}"
                f" | {point.duration_s / best.engine_s:.1f} | {best.steady_bps / 1e9:.4g} Gbit/s"
                f" | {spec.guest_memory_bytes(point) / 2**20:.0f} MiB |"
            )
            print(lines[-1], flush=True)

    short = make(rate="1mbit", rtt="20ms", duration="10ms")
    shorts = [run(engine, short, cpus[0]) for _ in range(7)]
    fixed = min(shorts, key=lambda t: t.whole_s)
    medium = make(rate="1gbit", rtt="20ms", duration="5s", **AMPLE)
    began = time.monotonic()
    for _ in range(2):
        run(engine, medium, cpus[0])
    after_another_s = time.monotonic() - began
    began = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda cpu: run(engine, medium, cpu), (cpus * 2)[:2]))
    side_by_side_s = time.monotonic() - began
    lines += [
        "",
        f"Fixed cost of a point (10 ms of load): {fixed.engine_s:.2f} s in the engine"
        f" (boot, Mininet, path check, teardown), {fixed.whole_s - fixed.engine_s:.2f} s around it"
        " (decoding, metrics, digest).",
        "",
        *stages(),
        "",
        f"Two points of 1 Gbit/s x 20 ms, 5 s: {after_another_s:.2f} s one after the other,"
        f" {side_by_side_s:.2f} s side by side on two CPUs:"
        f" {after_another_s / side_by_side_s:.2f} times the pace.",
        "",
    ]
    OUT.write_text("\n".join(lines))
    print("\n".join(lines[-5:]))


if __name__ == "__main__":
    main()
