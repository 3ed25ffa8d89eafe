"""Booting a user-mode kernel: the words, the folder, the end; no kernel runs here."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from lab import command, uml
from lab.errors import EngineError, GuestError, PointTimeout, PreconditionError

MACHINE = uml.Machine(Path("/kernels/linux"), memory_bytes=300 * 2**20 + 5, cpu=1, seed=7)
VIRTUAL = (
    "taskset --cpu-list 1 setpriv --pdeathsig KILL /kernels/linux time-travel=inf-cpu"
    " time-travel-start=1700000000000000000 wanlab_seed=7 mem=300M uml_dir=/proc/self/cwd/ umid=kernel"
    " root=none rootfstype=hostfs rootflags=/ ro norandmaps quiet panic=-1 console=stderr0 con=null ssl=null"
    " init=/usr/bin/python3 -- -I -S -X utf8 /proc/self/cwd/agent /proc/self/cwd/spec.json /proc/self/cwd/out"
)


def test_words_of_virtual_time_stay_as_results_were_made_with_them():
    assert uml.words(MACHINE) == VIRTUAL.split()


def test_words_of_the_real_clock_are_those_without_time_travel():
    real = uml.Machine(MACHINE.kernel, MACHINE.memory_bytes, MACHINE.cpu, MACHINE.seed, virtual=False)
    assert uml.words(real) == [word for word in VIRTUAL.split() if not word.startswith("time-travel")]


def test_a_console_of_its_own_comes_in_the_place_of_none():
    words = uml.words(uml.Machine(Path("/linux"), 2**28, 0, console=("con0=fd:3", "con=null")))
    at = words.index("console=stderr0")
    assert words[at + 1 : at + 4] == ["con0=fd:3", "con=null", "init=/usr/bin/python3"]


def test_no_word_but_the_kernel_s_path_tells_where_a_point_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert [word for word in uml.words(MACHINE) if str(tmp_path) in word] == []


def script(folder: Path, *lines: str) -> Callable[[], subprocess.Popen[bytes]]:
    """Return a start of something that runs where a kernel would."""
    argv = ["sh", "-c", "\n".join(lines)]
    return lambda: command.spawn(argv, stdout=folder / "console.txt", cwd=folder)


def run(folder: Path, *lines: str, guests: uml.Guests | None = None, limit_s: float = 20) -> uml.Left:
    folder.mkdir(exist_ok=True)
    return (guests or uml.Guests()).supervise(
        script(folder, *lines), {"a": 1}, folder=folder, wall_limit_s=limit_s
    )


def test_what_the_agent_left_comes_back(tmp_path):
    left = run(tmp_path / "p", "printf frames > out/records.bin", "cp spec.json out/outcome.json")
    assert left.frames == b"frames"
    assert left.outcome == {"a": 1}
    assert 0 < left.wall_s < 20
    assert (tmp_path / "p" / "agent").resolve() == uml.AGENT


def test_a_failure_that_was_written_down_is_raised(tmp_path):
    failure = json.dumps({"error": "OSError: no such device", "traceback": "line 1"})
    with pytest.raises(GuestError, match="the agent failed: OSError: no such device") as caught:
        run(tmp_path / "p", f"echo '{failure}' > out/failure.json", "echo '{}' > out/outcome.json")
    assert caught.value.console == "line 1"


def test_an_agent_past_its_own_limit_is_a_timeout(tmp_path):
    with pytest.raises(PointTimeout, match="no end after 3 virtual seconds; the console's last lines:\nlate"):
        run(tmp_path / "p", "printf 'no end after 3 virtual seconds' > out/overdue", "echo late")


def test_an_end_without_a_word_shows_the_console(tmp_path):
    noise = "echo '[<00000000601a>] ? f'; echo ' 60a1b2c3 00000000'; echo '<7>debug'; echo 'Call Trace:'"
    with pytest.raises(GuestError) as caught:
        run(tmp_path / "p", noise, "echo 'Kernel panic: no init'", "echo 'from the agent' > out/agent.txt")
    assert str(caught.value) == (
        "the kernel ended before the agent did; the console's last lines:\n"
        "Kernel panic: no init\nfrom the agent"
    )


def test_an_empty_console_says_so(tmp_path):
    with pytest.raises(GuestError, match="the console stayed empty"):
        run(tmp_path / "p", "true")


def test_only_the_last_lines_are_shown_and_only_what_prints(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "console.txt").write_bytes(b"".join(b"line %d\x1b\x00\n" % n for n in range(100)))
    lines = uml.tail(tmp_path).splitlines()
    assert lines == ["the console's last lines:", *(f"line {n}" for n in range(85, 100))]


def test_what_takes_too_long_is_ended_with_its_children(tmp_path):
    with pytest.raises(PointTimeout, match=r"no end after 0\.2 s of wall time; .*\nwaiting"):
        run(tmp_path / "p", "echo waiting; sleep 1000 & echo $! > child; wait", limit_s=0.2)
    child = Path("/proc", (tmp_path / "p" / "child").read_text().strip(), "stat")
    assert not child.exists() or child.read_text().split()[2] == "Z"


def test_stop_ends_what_runs_and_what_would(tmp_path):
    guests = uml.Guests()
    timer = threading.Timer(0.3, guests.stop)
    timer.start()
    with pytest.raises(EngineError, match="stopped"):
        run(tmp_path / "p", "sleep 1000", guests=guests)
    with pytest.raises(EngineError, match="stopped"):
        run(tmp_path / "q", "echo started > out/started", guests=guests)
    assert not (tmp_path / "q" / "out" / "started").exists()


def test_memory_that_fits_nowhere_is_a_lack_of_this_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with pytest.raises(PreconditionError, match=r"needs 1048576\.00 GiB.*/dev/shm.*set TMPDIR"):
        uml.boot(uml.Machine(Path("/linux"), 2**50, 0), tmp_path)


def test_another_architecture_is_a_lack_of_this_machine(monkeypatch):
    monkeypatch.setattr(uml.os, "uname", lambda: type("Name", (), {"machine": "aarch64"}))
    with pytest.raises(PreconditionError, match="aarch64"):
        uml.require()


def test_a_missing_tool_is_named_with_its_package(monkeypatch):
    monkeypatch.setattr(uml.shutil, "which", lambda tool: None if tool == "mnexec" else tool)
    with pytest.raises(PreconditionError, match=r"mnexec.*apt-get install mininet"):
        uml.require()
