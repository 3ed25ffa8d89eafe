"""An emulator's links as the remote engine builds them: delay, loss and rate, in a kernel that has netem.

The very steps, agents and controller of a remote point, in virtual time; held
against what was asked for, and against the same point in a network of the lab.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab import point as point_module
from lab import scenario, sweep, uml
from lab.engines import remote
from lab.engines.base import EngineResult
from lab.kernels import KernelRecord
from lab.remote import inventory

pytestmark = pytest.mark.virtual

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("three_hosts.py")
HOSTS = """
[hosts.sender]
address = "sender"
role = "sender"
interface = "eth1"
test_address = "198.51.100.1"

[hosts.receiver]
address = "receiver"
role = "receiver"
interface = "eth1"
test_address = "203.0.113.1"

[hosts.emulator]
address = "emulator"
role = "emulator"
interfaces = ["eth1", "eth2"]

[links]
mode = "shaped"
"""
MEMORY_BYTES = 2**30
OFFLOADS = {"offloads": "on"}
"""As these hosts have them: the engine finds that out, and leaves it so."""

Tables = dict[str, list[dict[str, Any]]]


def over_an_emulator(kernel: KernelRecord, folder: Path, **knobs: str) -> tuple[Tables, dict[str, Any], Any]:
    """Run a point over three hosts in one kernel; return tables, outcome, the hosts before and after."""
    loaded = scenario.load(ROOT / "scenarios" / "path.py").scenario
    chosen = {"kernel": ["host"], **{name: [text] for name, text in {**OFFLOADS, **knobs}.items()}}
    (point,) = sweep.points(loaded, chosen, engine="remote", seeds=[1])
    spec = {**remote.RemoteEngine(inventory.parse(HOSTS)).agent_spec(point), "captures": []}
    uml.fill(folder, {"spec": spec, "inventory": HOSTS}, SCRIPT)
    process = uml.boot(uml.Machine(kernel.path, MEMORY_BYTES, 0), folder)
    try:
        assert uml.wait(process, 300), uml.tail(folder)
    finally:
        uml.end(process)
    uml.raise_failure(folder)
    out = folder / "out"
    assert (out / "outcome.json").exists(), uml.tail(folder)
    outcome = json.loads((out / "outcome.json").read_text())
    result = EngineResult((out / "records.bin").read_bytes(), outcome, 1.0, 1.0)
    return point_module.tables(point, kernel, result), outcome, json.loads((out / "hosts.json").read_text())


@pytest.mark.parametrize(
    "knobs",
    [
        {"rate": "20mbit", "rtt": "40ms", "duration": "5s"},
        {"rate": "50mbit", "rtt": "40ms", "rmem": "64KiB", "duration": "4s"},
        {"rate": "10mbit", "rtt": "30ms", "bytes": "2MB", "duration": "20s", "probe": "20ms"},
    ],
    ids=["link", "receive window", "of a size, with a probe"],
)
def test_a_point_is_as_in_a_network_of_the_lab(kernel, run_point, tmp_path, knobs):
    tables, outcome, (before, after) = over_an_emulator(kernel, tmp_path, **knobs)
    (there,) = tables["points"]
    (here,) = run_point(**OFFLOADS, **knobs)["points"]
    assert there["rtt_s"] == pytest.approx(here["configured_rtt_s"], abs=1e-5)
    assert there["measured_rate_bps"] == pytest.approx(here["rate_bps"], rel=1e-3)
    assert there["goodput_bps"] == pytest.approx(here["goodput_bps"], rel=0.03)
    assert there["steady_goodput_bps"] == pytest.approx(here["steady_goodput_bps"], rel=0.03)
    assert there["goodput_bps"] == pytest.approx(there["predicted_goodput_bps"], rel=0.1)
    assert there["limit_measured"] == here["limit_measured"]
    assert outcome["left"] == []
    assert before == after


def test_what_netem_loses_is_lost_before_the_bottleneck(kernel, tmp_path):
    tables, outcome, (before, after) = over_an_emulator(
        kernel, tmp_path, rate="20mbit", rtt="20ms", loss="1%", duration="5s"
    )
    (row,) = tables["points"]
    assert row["retransmits"] > 10
    assert row["queue_drops"] == 0
    lines = [entry for entry in tables["queues"] if entry["interface"] == "r2-eth1"]
    assert lines[-1]["kind"] == "netem"
    assert lines[-1]["drops"] > 10
    assert before == after
    assert outcome["bare"]["base_rtt_s"] < 0.001


def test_a_probe_s_delay_is_half_of_the_rtt_and_what_waits(kernel, tmp_path):
    tables, outcome, _hosts = over_an_emulator(
        kernel, tmp_path, rate="10mbit", rtt="60ms", flows="1", bytes="100KB", probe="10ms", duration="2s"
    )
    taken = [row["delay_s"] for row in tables["delays"] if row["delay_s"] is not None]
    assert min(taken) == pytest.approx(outcome["measured"]["base_rtt_s"] / 2, abs=1e-6)
    assert min(taken) == pytest.approx(0.03, abs=1e-3)
