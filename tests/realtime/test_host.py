"""The realtime engine on this machine's own kernel: what it grants, what it refuses, what it leaves."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pyarrow.parquet as pq
import pytest

from lab.doctor import FEATURES, kernel_feature

ROOT = Path(__file__).resolve().parents[2]
SCENARIO = str(ROOT / "scenarios" / "path.py")
PLAIN = {"rate": "20mbit", "rtt": "0s", "queue": "100kB", "duration": "2s"}
RMEM_MAX = Path("/proc/sys/net/core/rmem_max")

pytestmark = [pytest.mark.realtime, pytest.mark.usefixtures("as_root")]


def wanlab(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lab", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def words_of(out: Path, *words: str, **knobs: str) -> list[str]:
    """Return the words of a run of the plain point with other knobs."""
    told = [f"--set={name}={text}" for name, text in {**PLAIN, **knobs}.items()]
    return ["run", SCENARIO, "--engine", "realtime", *told, "--out", str(out), *words]


def run(out: Path, *words: str, **knobs: str) -> subprocess.CompletedProcess[str]:
    return wanlab(*words_of(out, *words, **knobs))


def rows(out: Path, table: str = "point") -> list[dict[str, Any]]:
    files = sorted(out.glob(f"points/*/{table}.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist(maps_as_pydicts="strict")]


def traces(folder: Path) -> dict[str, Any]:
    """Return what a run could leave behind: processes of the agent, links, values of the host, notes."""
    agents = [
        entry.name
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and f"{folder}/".encode() in _cmdline(entry)
    ]
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    names = ("core/rmem_max", "core/wmem_max", "ipv4/tcp_mem", "ipv4/tcp_rmem", "ipv4/tcp_wmem")
    values = {name: Path("/proc/sys/net", name).read_text() for name in names}
    notes = sorted(str(file) for file in Path("/run/wanlab").rglob("journal.jsonl"))
    return {"agents": agents, "links": links.count("veth"), "values": values, "notes": notes}


def _is_agent(process: str) -> bool:
    return _cmdline(Path("/proc", process)).startswith(b"/usr/bin/python3")


def _cmdline(entry: Path) -> bytes:
    try:
        return (entry / "cmdline").read_bytes()
    except OSError:
        return b""


@pytest.fixture(autouse=True)
def untouched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hold that a test leaves the machine as it found it."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # so that what a run starts can be told by its words
    before = traces(tmp_path)
    yield
    deadline = time.monotonic() + 10
    while traces(tmp_path) != before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert traces(tmp_path) == before


def test_rate_alone_runs_and_is_recorded_with_its_machine(tmp_path: Path) -> None:
    done = run(tmp_path / "run", "--capture", "snd-eth0", cc="cubic,bbr")
    assert done.returncode == 0, done.stdout + done.stderr
    for row in rows(tmp_path / "run"):
        assert row["goodput_bps"] == pytest.approx(19.1e6, rel=0.03)
        assert row["kernel"] == "host"
        assert row["kernel_release"] == os.uname().release
        assert 0 <= row["cpu_busy"] <= 1
        assert row["timer_late_s"] >= 0
    readings = rows(tmp_path / "run", "machine")
    assert {row["cpu"] for row in readings} >= {None, *os.sched_getaffinity(0)}
    captured = sorted((tmp_path / "run").glob("points/*/captures/snd-eth0.pcap.gz"))
    assert len(captured) == 2
    for file in captured:
        outcome = json.loads((file.parents[1] / "outcome.json").read_text())
        raw = gzip.decompress(file.read_bytes())
        read = subprocess.run(["tcpdump", "-nr", "-"], input=raw, capture_output=True, check=True)
        assert read.stdout.count(b"\n") == outcome["captures"][0]["packets"] > 3000
    again = run(tmp_path / "run", cc="cubic,bbr")
    assert "2 of 2 points done (0 ran now)" in again.stdout
    shown = wanlab("show", str(tmp_path / "run"))
    assert shown.returncode == 0
    assert wanlab("report", str(tmp_path / "run")).returncode == 0


def test_delay_runs_where_the_kernel_has_netem_and_is_refused_in_words_where_not(tmp_path: Path) -> None:
    granted = kernel_feature(next(one for one in FEATURES if one.name == "netem"), os.uname().release).ok
    alone, some = run(tmp_path / "a", rtt="10ms"), run(tmp_path / "b", rtt="0s,10ms")
    if granted:
        assert (alone.returncode, some.returncode) == (0, 0), alone.stdout + some.stdout
        return
    assert alone.returncode == 3
    assert "the delay line of rtt=10ms needs netem, and Linux" in alone.stderr
    assert "--engine virtual" in alone.stderr
    assert not (tmp_path / "a").exists()
    assert some.returncode == 1
    assert "1 of 2 points cannot run" in some.stderr
    assert sorted(row["status"] for row in rows(tmp_path / "b")) == ["done", "failed"]


def test_congestion_control_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    done = run(tmp_path / "run", cc="nosuchcc")
    assert done.returncode == 3
    assert "has no congestion control 'nosuchcc'" in done.stderr
    assert "reno" in done.stderr


def test_nginx_serves_where_other_users_may_not_look(tmp_path: Path) -> None:
    """Its worker is another user, and a run's folder is its owner's alone."""
    done = run(tmp_path / "run", "--allow-host-sysctls", workload="http", cc="cubic")
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = rows(tmp_path / "run")
    assert row["goodput_bps"] == pytest.approx(19.1e6, rel=0.03)


class TestValuesOfTheHost:
    KNOBS: ClassVar = {"rmem_max": "1MiB", "rcvbuf": "400kB"}

    def test_are_refused_unasked(self, tmp_path: Path) -> None:
        done = run(tmp_path / "run", **self.KNOBS)
        assert done.returncode == 3
        assert f"net.core.rmem_max (now {RMEM_MAX.read_text().strip()}, wanted 1048576)" in done.stderr
        assert "--allow-host-sysctls" in done.stderr

    def test_are_put_back(self, tmp_path: Path) -> None:
        done = run(tmp_path / "run", "--allow-host-sysctls", **self.KNOBS)
        assert done.returncode == 0, done.stdout + done.stderr

    def test_are_said_before(self, tmp_path: Path) -> None:
        done = run(tmp_path / "run", "--allow-host-sysctls", "--dry-run", **self.KNOBS)
        assert done.returncode == 0
        assert "net.core.rmem_max = 1048576" in done.stdout
        assert not (tmp_path / "run").exists()

    def test_are_put_back_after_a_kill(self, tmp_path: Path) -> None:
        words = words_of(tmp_path / "run", "--allow-host-sysctls", duration="30s", **self.KNOBS)
        with subprocess.Popen(
            [sys.executable, "-m", "lab", *words],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            deadline = time.monotonic() + 30
            while RMEM_MAX.read_text().strip() != "1048576":
                assert time.monotonic() < deadline, "the value was never set"
                time.sleep(0.05)
            assert list(Path("/run/wanlab").rglob("journal.jsonl")), "changed before it was noted down"
            time.sleep(1)
            process.send_signal(signal.SIGKILL)

    def test_are_put_back_after_ctrl_c(self, tmp_path: Path) -> None:
        words = words_of(tmp_path / "run", "--allow-host-sysctls", duration="30s", **self.KNOBS)
        with subprocess.Popen(
            [sys.executable, "-m", "lab", *words],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            deadline = time.monotonic() + 30
            while RMEM_MAX.read_text().strip() != "1048576":
                assert time.monotonic() < deadline, "the value was never set"
                time.sleep(0.05)
            time.sleep(1)
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=30)[1]
        assert process.returncode == 130
        assert "Traceback" not in said


def test_agent_killed_alone_is_a_failed_point_and_leaves_nothing(tmp_path: Path) -> None:
    words = words_of(tmp_path / "run", duration="30s")
    with subprocess.Popen(
        [sys.executable, "-m", "lab", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        deadline = time.monotonic() + 30
        while not (agents := [int(name) for name in traces(tmp_path)["agents"] if _is_agent(name)]):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(2)
        os.kill(max(agents), signal.SIGKILL)
        said = process.communicate(timeout=30)[0]
    assert process.returncode == 1
    assert "failed: point" in said


def test_machine_that_is_too_slow_is_said_to_be_the_limit(tmp_path: Path) -> None:
    """No machine forwards 400 Gbit/s of single packets."""
    done = run(tmp_path / "run", rate="400gbit", queue="100MB")
    assert done.returncode == 1
    assert "this measures the machine, not the network" in done.stdout
    (row,) = rows(tmp_path / "run")
    assert row["status"] == "failed"
    assert row["goodput_bps"] is None
    assert rows(tmp_path / "run", "machine"), "what says so is kept"
