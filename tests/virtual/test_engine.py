"""The engine when things go wrong: each failure has its own words, and nothing stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from lab.engines import virtual
from lab.errors import EngineError, GuestError, PointTimeout
from lab.kernels import KernelRecord
from tests.virtual.conftest import PATH_SCENARIO, ROOT, agent_spec

pytestmark = pytest.mark.virtual

MEMORY = 256 * 2**20


def processes_with(text: str) -> list[str]:
    """Return the command lines of live processes that hold `text`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if text in words:
                found.append(words)
    return found


def start(engine: Any, kernel: KernelRecord, folder: Path, spec: dict[str, Any], **more: Any) -> Any:
    options = {"seed": 1, "memory_bytes": MEMORY, "cpu": 0, "wall_limit_s": 60.0, **more}
    return engine.run(spec, kernel=kernel.path, folder=folder, **options)


def test_a_point_leaves_frames_and_an_outcome(engine, kernel, tmp_path):
    result = start(engine, kernel, tmp_path, agent_spec())
    assert result.frames
    assert result.outcome["commands"]["r1"]["tc"]
    assert processes_with(str(tmp_path)) == []


def test_an_agent_that_fails_says_why(engine, kernel, tmp_path):
    spec = agent_spec()
    spec["topology"]["file"] = "/nowhere/topology.py"
    with pytest.raises(GuestError, match=r"FileNotFoundError.*nowhere"):
        start(engine, kernel, tmp_path, spec)
    assert processes_with(str(tmp_path)) == []


def test_a_kernel_that_panics_shows_its_console(engine, kernel, tmp_path):
    topology = tmp_path / "topology.py"
    topology.write_text("import os; os._exit(3)")
    spec = agent_spec()
    spec["topology"]["file"] = str(topology)
    with pytest.raises(GuestError, match=r"(?s)console's last lines.*Attempted to kill init"):
        start(engine, kernel, tmp_path, spec)
    assert processes_with(str(tmp_path)) == []


def test_a_point_that_hangs_inside_ends_in_virtual_time(engine, kernel, tmp_path):
    spec = agent_spec()
    spec["virtual_limit_ns"] = 10**9
    with pytest.raises(PointTimeout, match="virtual seconds"):
        start(engine, kernel, tmp_path, spec)


def test_a_point_that_takes_too_long_outside_is_ended(engine, kernel, tmp_path):
    with pytest.raises(PointTimeout, match="wall time"):
        start(engine, kernel, tmp_path, agent_spec(duration="600s"), wall_limit_s=0.7)
    assert processes_with(str(tmp_path)) == []


def test_stop_ends_what_runs(kernel, tmp_path):
    engine = virtual.make()
    timer = threading.Timer(1.0, engine.stop)
    timer.start()
    with pytest.raises(EngineError, match="stopped"):
        start(engine, kernel, tmp_path, agent_spec(duration="3000s"))
    timer.join()
    assert processes_with(str(tmp_path)) == []


def test_the_host_is_read_only_inside(engine, kernel, tmp_path):
    target = tmp_path / "topology.py"
    target.write_text("raise SystemExit(open('/written-by-a-guest', 'w'))\n")
    spec = agent_spec()
    spec["topology"]["file"] = str(target)
    with pytest.raises(GuestError, match="Read-only file system"):
        start(engine, kernel, tmp_path, spec)
    assert not Path("/written-by-a-guest").exists()


def test_paths_with_spaces_work(engine, kernel, tmp_path):
    folder = tmp_path / "point"
    folder.mkdir()
    topologies = tmp_path / "my own topologies"
    topologies.mkdir()
    copy = topologies / "path.py"
    copy.write_text((ROOT / "topologies" / "path.py").read_text())
    spec = agent_spec()
    spec["topology"]["file"] = str(copy)
    assert start(engine, kernel, folder, spec).frames


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_leaves_nothing_and_goes_on(tmp_path, number):
    out = tmp_path / "run"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    words = [
        *(sys.executable, "-m", "lab", "run", str(PATH_SCENARIO), "--out", str(out), "--jobs", "2"),
        *("--set", "rate=10mbit", "--set", "rtt=20ms,40ms", "--set", "duration=1s,3000s"),
    ]
    environment = {**os.environ, "TMPDIR": str(scratch)}
    run = subprocess.Popen(words, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while len(list(out.glob("points/*/point.parquet"))) < 1:
        assert time.monotonic() < deadline, "no point came through"
        time.sleep(0.1)
    time.sleep(0.5)
    run.send_signal(number)
    _, stderr = run.communicate(timeout=30)
    assert "Traceback" not in stderr
    assert run.returncode == (130 if number == signal.SIGINT else -number)
    deadline = time.monotonic() + 10
    while list(scratch.iterdir()) or processes_with(str(scratch)):
        assert time.monotonic() < deadline, (list(scratch.iterdir()), processes_with(str(scratch)))
        time.sleep(0.1)

    before = {path: path.stat().st_mtime_ns for path in out.glob("points/*/point.parquet")}
    assert before
    again = subprocess.run(
        [*words, "--wall-limit", "3s"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert again.returncode == 1, again.stderr  # the endless points fail now, by their time limit
    assert "done already and kept" in again.stderr
    for path, instant in before.items():
        assert path.stat().st_mtime_ns == instant
