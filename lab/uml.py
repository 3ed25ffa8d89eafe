"""User-Mode Linux: a kernel of the lab's own as an ordinary process, without root.

Boots one around a Python script, its first process, and ends it again: one
process tree a kernel, pinned to one CPU. In virtual time every source of chance
is closed or seeded; on the real clock the same kernel takes the time that the
machine takes. Sources: Documentation/virt/uml, arch/um/kernel/time.c (Linux 6.12).

Not here: what the script does (see `lab.agent`), what comes of it (`lab.engines`).
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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import clock, command
from lab.errors import EngineError, GuestError, PointTimeout, PreconditionError

AGENT = Path(__file__).resolve().parent / "agent" / "main.py"
PYTHON = "/usr/bin/python3"
START_NS = 1_700_000_000 * 10**9
"""What the virtual clock shows at boot; any constant does."""

SILENT = ("con=null", "ssl=null")
"""No console: one on a descriptor interrupts when the host likes, and beside
one of any kind a kernel that panics keeps its last words to itself."""

_TRACE = re.compile(r"\[<[0-9a-f]+>\]|^(<\d>)? ?[0-9a-f]{8}( [0-9a-f]{8})+$|Call Trace:|Stack:|^<7>")
"""Addresses and debugging words, which tell a reader nothing."""

HERE = "/proc/self/cwd"
"""The point's folder, by a name that is the same for every point."""

CONSOLE_LINES = 15


@dataclass(frozen=True)
class Machine:
    """A kernel to boot and what it gets.

    kernel: the program. cpu: the one host CPU that it runs on. virtual: in
    virtual time, else on the real clock. console: the words that say what its
    terminals are.
    """

    kernel: Path
    memory_bytes: int
    cpu: int
    seed: int = 1
    virtual: bool = True
    console: Sequence[str] = SILENT


@dataclass(frozen=True)
class Left:
    """What the agent left of a point: raw frames, its report; wall_s: what it took, boot included."""

    frames: bytes
    outcome: Mapping[str, Any]
    wall_s: float


class Guests:
    """The kernels that run now: any thread may boot one, and any may end them all."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def run(self, machine: Machine, spec: Mapping[str, Any], *, folder: Path, wall_limit_s: float) -> Left:
        """Run the agent on one point's specification in a kernel; return what it left.

        Raises what `supervise` does, and PreconditionError where this machine has
        no room for the memory.
        """
        return self.supervise(lambda: boot(machine, folder), spec, folder=folder, wall_limit_s=wall_limit_s)

    def supervise(
        self,
        start: Callable[[], subprocess.Popen[bytes]],
        spec: Mapping[str, Any],
        *,
        folder: Path,
        wall_limit_s: float,
    ) -> Left:
        """Run the agent as `start` starts it, in a process group of its own; return what it left.

        folder: empty, ours alone, removed by the caller. Raises GuestError where
        the agent or the kernel failed, PointTimeout past `wall_limit_s` or past the
        agent's own limit, EngineError after `stop`.
        """
        fill(folder, spec)
        began_ns = clock.now_ns()
        with self._lock:
            if self._stopped:
                raise EngineError("stopped")
            process = start()
            self._running.add(process)
        try:
            ended = wait(process, wall_limit_s)
        finally:
            end(process)
            with self._lock:
                self._running.discard(process)
        if self._stopped:
            raise EngineError("stopped")
        if not ended:
            raise PointTimeout(f"no end after {wall_limit_s:g} s of wall time; {tail(folder)}")
        return _collect(folder, (clock.now_ns() - began_ns) / 1e9)

    def stop(self) -> None:
        """End everything that runs, now; calls of `run` then raise EngineError."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                _kill(process)


def require() -> None:
    """Check what booting a kernel needs of this machine. Raises PreconditionError."""
    if os.uname().machine != "x86_64":
        raise PreconditionError(
            f"the lab's kernels run on x86-64 only, and this is {os.uname().machine};"
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


def _compile_agent() -> None:
    """Leave compiled modules beside the agent's, where we may: inside, the disk is read only."""
    package = AGENT.parent.parent
    with contextlib.suppress(Exception):
        command.run(
            [PYTHON, "-m", "compileall", "-q", str(package), str(package.parent / "topologies")], timeout_s=60
        )


def fill(folder: Path, spec: Mapping[str, Any], script: Path | None = None) -> None:
    """Put into an empty folder what the first process finds there: `spec.json`, `out`, `agent`."""
    (folder / "spec.json").write_text(json.dumps(spec))
    (folder / "out").mkdir()
    (folder / "agent").symlink_to(script or AGENT)


def boot(machine: Machine, folder: Path, pass_fds: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """Boot a kernel whose first process is `agent` in a folder that was filled; the caller ends it.

    What it says goes to `console.txt` there. pass_fds: descriptors that the
    machine's consoles name. Raises PreconditionError where no folder of this
    machine has room for its memory.
    """
    return command.spawn(
        words(machine),
        stdout=folder / "console.txt",
        pass_fds=pass_fds,
        cwd=folder,
        env={"TMPDIR": _memory_folder(machine.memory_bytes), "HOME": str(folder)},
    )


def words(machine: Machine) -> list[str]:
    """Return the words that boot the kernel, in the order that they must keep.

    Linux feeds its command line to its random number generator: no word after
    the kernel's own path may differ between two places where a point runs. So
    all names go by the working directory, which the kernel process has as its
    own and which the guest's first process can look through before it mounts /proc.
    """
    return [
        *(
            "taskset",
            "--cpu-list",
            str(machine.cpu),
        ),  # unpinned, each system call crosses CPUs: 6 times as slow
        *("setpriv", "--pdeathsig", "KILL"),  # the controller may be killed: nothing may outlive it
        str(machine.kernel),
        *(("time-travel=inf-cpu", f"time-travel-start={START_NS}") if machine.virtual else ()),
        f"wanlab_seed={machine.seed}",
        f"mem={machine.memory_bytes // 2**20}M",
        f"uml_dir={HERE}/",
        "umid=kernel",
        *("root=none", "rootfstype=hostfs", "rootflags=/", "ro"),
        *("norandmaps", "quiet", "panic=-1"),
        *("console=stderr0", *machine.console),
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


def wait(process: subprocess.Popen[bytes], limit_s: float) -> bool:
    """Wait for the end without reaping, so that the process group's number stays ours; False when late."""
    handle = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        return bool(poll.poll(limit_s * 1000))
    finally:
        os.close(handle)


def end(process: subprocess.Popen[bytes]) -> None:
    """End the process group that we started, the kernel and the processes it traces, and reap it."""
    _kill(process)
    process.wait()


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def tail(folder: Path) -> str:
    """Return the last lines that the kernel and the agent wrote, for a reader."""
    files = (folder / "console.txt", folder / "out" / "agent.txt")
    text = b"\n".join(file.read_bytes()[-20000:] for file in files if file.exists()).decode(errors="replace")
    lines = [re.sub(r"[^\x20-\x7e]", "", line).rstrip() for line in text.splitlines()]
    lines = [line for line in lines if line and not _TRACE.search(line)]
    if not lines:
        return "the console stayed empty"
    return "the console's last lines:\n" + "\n".join(lines[-CONSOLE_LINES:])


def raise_failure(folder: Path) -> None:
    """Raise what the agent wrote down of its failure: GuestError or PointTimeout; nothing, nothing."""
    failure, overdue = folder / "out" / "failure.json", folder / "out" / "overdue"
    if failure.exists():
        report = json.loads(failure.read_text())
        raise GuestError(f"the agent failed: {report['error']}", report["traceback"])
    if overdue.exists():
        raise PointTimeout(f"{overdue.read_text()}; {tail(folder)}")


def _collect(folder: Path, wall_s: float) -> Left:
    """Return what the agent left, or raise what became of it."""
    raise_failure(folder)
    outcome = folder / "out" / "outcome.json"
    if not outcome.exists():
        raise GuestError(f"the kernel ended before the agent did; {tail(folder)}", tail(folder))
    return Left((folder / "out" / "records.bin").read_bytes(), json.loads(outcome.read_text()), wall_s)
