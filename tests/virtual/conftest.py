"""Points of a few lines, run on the real engine. A missing kernel fails these tests: it never skips them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab import point as point_module
from lab import scenario, spec, sweep
from lab.engines import virtual
from lab.kernels import KernelRecord, find_kernel

ROOT = Path(__file__).resolve().parents[2]
PATH_SCENARIO = ROOT / "scenarios" / "path.py"

Tables = dict[str, list[dict[str, Any]]]


def make_point(seed: int = 1, **knobs: str) -> sweep.Point:
    """Return one point of the `path` scenario."""
    loaded = scenario.load(PATH_SCENARIO).scenario
    (point,) = sweep.points(
        loaded, {name: [value] for name, value in knobs.items()}, engine="virtual", seeds=[seed]
    )
    return point


@pytest.fixture(scope="session")
def engine() -> virtual.VirtualEngine:
    return virtual.make()


@pytest.fixture(scope="session")
def kernel() -> KernelRecord:
    return find_kernel("6.12")


@pytest.fixture
def run_point(engine: virtual.VirtualEngine, tmp_path: Path) -> Callable[..., Tables]:
    """Return a function that runs a point from its knobs and gives back its tables."""
    counter = iter(range(1000))

    def run(seed: int = 1, cpu: int = 0, **knobs: str) -> Tables:
        point = make_point(seed, **knobs)
        folder = tmp_path / f"point{next(counter)}"
        folder.mkdir()
        tables, _ = point_module.run(
            point,
            engine,
            find_kernel(point.knobs["kernel"]),
            cpu=cpu,
            folder=folder,
            terms=point_module.Terms(wall_s=300),
        )
        return tables

    return run


def agent_spec(**knobs: str) -> dict[str, Any]:
    """Return the agent's specification of a short point, for tests that break it."""
    return spec.agent_spec(make_point(**{"duration": "1s", "rate": "10mbit", "rtt": "20ms", **knobs}))
