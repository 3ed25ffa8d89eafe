"""The virtual engine: a kernel of the lab's own as an ordinary process, in virtual time.

Boots a User-Mode Linux around the agent, nothing more. One process tree a
point, pinned to one CPU; a fresh boot for each; every source of chance closed
or seeded. Sources: Documentation/virt/uml, arch/um/kernel/time.c (Linux 6.12).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab import command
from lab.engines.base import EngineResult
from lab.errors import EngineError, GuestError, PointTimeout, PreconditionError

AGENT = Path(__file__).resolve().parent.parent / "agent" / "main.py"
PYTHON = "/usr/bin/python3"
START_NS = 1_700_000_000 * 10**9
"""What the virtual clock shows at boot; any constant does."""

_TRACE = re.compile(r"\[<[0-9a-f]+>\]|^(<\d>)? ?[0-9a-f]{8}( [0-9a-f]{8})+$|Call Trace:|Stack:|^<7>")
"""Addresses and debugging words, which tell a reader nothing."""

HERE = "/proc/self/cwd"
"""The point's folder, by a name that is the same for every point."""

CONSOLE_LINES = 15


class VirtualEngine:
    """Runs points in virtual time. See `lab.engines.base.Engine`."""

    name = "virtual"
    teardown = False
    timeless = True

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def run(
        self,
        spec: Mapping[str, Any],
        *,
        kernel: Path,
        seed: int,
        memory_bytes: int,
        cpu: int,
        folder: Path,
        wall_limit_s: float,
    ) -> EngineResult:
        """See `lab.engines.base.Engine.run`."""
        (folder / "spec.json").write_text(json.dumps(spec))
        (folder / "out").mkdir()
        (folder / "agent").symlink_to(AGENT)
        began = time.monotonic()
        with self._lock:
            if self._stopped:
                raise EngineError("stopped")
            process = command.spawn(
                _argv(kernel, seed, memory_bytes, cpu),
                stdout=folder / "console.txt",
                cwd=folder,
                env={"TMPDIR": _memory_folder(memory_bytes), "HOME": str(folder)},
            )
            self._running.add(process)
        try:
            ended = _wait(process, wall_limit_s)
        finally:
            _end(process)
            with self._lock:
                self._running.discard(process)
        if self._stopped:
            raise EngineError("stopped")
        if not ended:
            raise PointTimeout(f"no end after {wall_limit_s:g} s of wall time; {_tail(folder)}")
        return _collect(folder, time.monotonic() - began)

    def stop(self) -> None:
        """See `lab.engines.base.Engine.stop`."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                _end(process, wait=False)


def make() -> VirtualEngine:
    """Return the engine, after checking what it needs of this machine. Raises PreconditionError."""
    if os.uname().machine != "x86_64":
        raise PreconditionError(
            f"the virtual engine runs on x86-64 only, and this is {os.uname().machine};"
            " run on an x86-64 machine"
        )
    for tool, package in (
        ("taskset", "util-linux"),
        ("setpriv", "util-linux"),
        (PYTHON, "python3"),
        ("mnexec", "mininet"),
    ):
        if shutil.which(tool) is None:
            raise PreconditionError(f"{tool} is not installed; `apt-get install {package}` brings it")
    _compile_agent()
    return VirtualEngine()


def _compile_agent() -> None:
    """Leave compiled modules beside the agent's, where we may: inside, the disk is read only."""
    package = AGENT.parent.parent
    with contextlib.suppress(Exception):
        command.run(
            [PYTHON, "-m", "compileall", "-q", str(package), str(package.parent / "topologies")], timeout_s=60
        )


def _argv(kernel: Path, seed: int, memory_bytes: int, cpu: int) -> list[str]:
    """Return the words that boot the kernel.

    Linux feeds its command line to its random number generator: no word after
    the kernel's own path may differ between two places where a point runs. So
    all names go by the working directory, which the kernel process has as its
    own and which the guest's first process can look through before it mounts /proc.
    """
    return [
        *("taskset", "--cpu-list", str(cpu)),  # unpinned, each system call crosses CPUs: 6 times as slow
        *("setpriv", "--pdeathsig", "KILL"),  # the controller may be killed: nothing may outlive it
        str(kernel),
        "time-travel=inf-cpu",
        f"time-travel-start={START_NS}",
        f"wanlab_seed={seed}",
        f"mem={memory_bytes // 2**20}M",
        f"uml_dir={HERE}/",
        "umid=kernel",
        *("root=none", "rootfstype=hostfs", "rootflags=/", "ro"),
        *("norandmaps", "quiet", "panic=-1"),
        # No console: one on a descriptor interrupts when the host likes, and beside
        # one of any kind a kernel that panics keeps its last words to itself.
        *("console=stderr0", "con=null", "ssl=null"),
        f"init={PYTHON}",
        "--",
        *("-I", "-S", "-X", "utf8", *(f"{HERE}/{name}" for name in ("agent", "spec.json", "out"))),
    ]


def _memory_folder(needed_bytes: int) -> str:
    """Return a folder for the kernel's memory file: executable, with room, in memory if it can be."""
    candidates = [Path("/dev/shm"), Path(os.environ.get("TMPDIR", "/tmp")), Path("/var/tmp")]
    for folder in candidates:
        with contextlib.suppress(OSError):
            stat = os.statvfs(folder)
            room = stat.f_bavail * stat.f_frsize
            if os.access(folder, os.W_OK) and room >= needed_bytes and not stat.f_flag & os.ST_NOEXEC:
                return str(folder)
    raise PreconditionError(
        f"this point needs {needed_bytes / 2**30:.2f} GiB for the kernel's memory and none of"
        f" {', '.join(map(str, candidates))} has that much room; free some, or set TMPDIR"
    )


def _wait(process: subprocess.Popen[bytes], limit_s: float) -> bool:
    """Wait for the end without reaping, so that the process group's number stays ours; False when late."""
    handle = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        return bool(poll.poll(limit_s * 1000))
    finally:
        os.close(handle)


def _end(process: subprocess.Popen[bytes], *, wait: bool = True) -> None:
    """End the process group that we started: the kernel and the processes it traces."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    if wait:
        process.wait()


def _tail(folder: Path) -> str:
    """Return the last lines that the kernel and the agent wrote, for a reader."""
    files = (folder / "console.txt", folder / "out" / "agent.txt")
    text = b"\n".join(file.read_bytes()[-20000:] for file in files if file.exists()).decode(errors="replace")
    lines = [re.sub(r"[^\x20-\x7e]", "", line).rstrip() for line in text.splitlines()]
    lines = [line for line in lines if line and not _TRACE.search(line)]
    if not lines:
        return "the console stayed empty"
    return "the console's last lines:\n" + "\n".join(lines[-CONSOLE_LINES:])


def _collect(folder: Path, wall_s: float) -> EngineResult:
    """Return what the agent left, or raise what became of it."""
    out = folder / "out"
    failure, overdue, outcome = out / "failure.json", out / "overdue", out / "outcome.json"
    if failure.exists():
        report = json.loads(failure.read_text())
        raise GuestError(f"the agent failed: {report['error']}", report["traceback"])
    if overdue.exists():
        raise PointTimeout(f"{overdue.read_text()}; {_tail(folder)}")
    if not outcome.exists():
        raise GuestError(f"the kernel ended before the agent did; {_tail(folder)}", _tail(folder))
    report = json.loads(outcome.read_text())
    return EngineResult((out / "records.bin").read_bytes(), report, wall_s, report["end_ns"] / 1e9)
