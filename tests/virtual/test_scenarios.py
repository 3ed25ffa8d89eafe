"""Every scenario, one point of it, twice: it runs, and it repeats to the bit on another CPU."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lab import point as point_module
from lab import run as run_module
from lab import scenario, sweep
from lab.kernels import find_kernel
from tests.virtual.conftest import ROOT

pytestmark = pytest.mark.virtual

SHORT = {
    "bbr_cubic_share": {"duration": "5s", "queue": "2bdp"},
    "cc_loss": {"duration": "5s", "loss": "1%"},
    "cc_rtt": {"duration": "5s", "rate": "10mbit"},
    "rtt_unfairness": {"duration": "5s", "rtt": "20ms+80ms"},
    "router_buffer": {"duration": "4s", "flows": "100", "rate": "50mbit", "queue": "0.2bdp"},
    "satellite": {"duration": "10s", "loss": "0.1%"},
    "handover": {"duration": "22s"},
    "hundred_gig": {"duration": "1s"},
    "flow_completion": {"duration": "5s"},
    "fairness": {"rate": "10mbit"},
}
"""What is cut short: the first point of a scenario, with these knobs."""

NAMES = sorted(path.stem for path in (ROOT / "scenarios").glob("*.py"))


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # traces are named from there


@pytest.mark.parametrize("name", NAMES)
def test_repeats_to_the_bit(name, engine, tmp_path):
    study = scenario.load(ROOT / "scenarios" / f"{name}.py").scenario
    settings = {knob: [text] for knob, text in SHORT.get(name, {}).items()}
    point = sweep.points(study, settings, engine="virtual", seeds=[7])[0]
    cpus = (run_module.cpus() * 2)[:2]

    def once(number: int) -> dict[str, object]:
        folder = tmp_path / str(number)
        folder.mkdir()
        tables, _ = point_module.run(
            point,
            engine,
            find_kernel(point.knobs["kernel"]),
            cpu=cpus[number],
            folder=Path(folder),
            terms=point_module.Terms(wall_s=300),
        )
        return tables["points"][0]

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(once, (0, 1))
    assert first["status"] == "done"
    assert first["goodput_bps"] > 0
    assert first["digest"] == second["digest"]


@pytest.mark.parametrize("name", NAMES)
def test_has_a_question_a_reason_and_figures(name):
    study = scenario.load(ROOT / "scenarios" / f"{name}.py").scenario
    assert study.question.endswith("?")
    assert study.figures
    assert name == "path" or study.expectations
