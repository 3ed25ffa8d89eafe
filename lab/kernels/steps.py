"""The tools of a build, each run to its end, all into one log that can be watched while it grows."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from lab import clock, command
from lab.errors import EngineError

_POLL_S = 0.2
_END_S = 5.0
_LAST_LINES = 15
_ERROR_LINES = 10
_ERROR_MARKS = ("error:", "undefined reference")

_CONSTANT = {
    "LC_ALL": "C",
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 1970",
    "KBUILD_BUILD_USER": "wanlab",
    "KBUILD_BUILD_HOST": "wanlab",
    "KBUILD_BUILD_VERSION": "1",
}
_HANDED_ON = ("PATH", "HOME", "TMPDIR")


class Steps:
    """Runs what a build needs in an environment of its own, so that the caller's cannot change the kernel.

    log: where all output goes. kept_log: where that log will be after a failure,
    for the messages.
    """

    def __init__(self, log: Path, kept_log: Path) -> None:
        self.log, self.kept_log = log, kept_log

    def run(
        self,
        argv: Sequence[str],
        what: str,
        *,
        cwd: Path | None = None,
        limit_s: float = 900,
        watch: Callable[[bytes], None] | None = None,
    ) -> None:
        """Run a tool; `watch` is called with what it has written since the last call.

        Raises EngineError that starts with `what` where it ends badly or takes
        longer than `limit_s`. The tool and its children are gone when this
        returns, however it returns.
        """
        with self.log.open("a") as log:
            log.write(f"\n$ {shlex.join(argv)}\n")
        began, deadline_ns = self.log.stat().st_size, clock.now_ns() + int(limit_s * 1e9)
        tool = command.spawn([*_contained(), *argv], stdout=self.log, cwd=cwd)
        try:
            with self.log.open("rb") as written:
                written.seek(began)
                while True:
                    try:
                        status: int | None = tool.wait(timeout=_POLL_S)
                    except subprocess.TimeoutExpired:
                        status = None
                    if watch:
                        watch(written.read())
                    if status is not None:
                        break
                    if clock.now_ns() > deadline_ns:
                        raise self.failure(what, began, f"took longer than {limit_s:g} s")
        finally:
            _end(tool)
        if status != 0:
            raise self.failure(what, began, f"{argv[0]} ended with status {status}")

    def failure(self, what: str, began: int, how: str) -> EngineError:
        """Return the error of a step: its error lines, its last lines, and where the rest is."""
        with self.log.open("rb") as written:
            written.seek(began)
            lines = written.read().decode(errors="replace").splitlines()
        told = error_lines(lines)
        return EngineError("\n".join([f"{what}: {how}; the whole log is {self.kept_log}", *told]))


def error_lines(lines: Sequence[str]) -> list[str]:
    """Return the first lines that tell of an error and the last lines, in order, none of them twice."""
    marked = [n for n, line in enumerate(lines) if any(mark in line for mark in _ERROR_MARKS)]
    last = range(max(0, len(lines) - _LAST_LINES), len(lines))
    return [f"  {lines[n]}" for n in sorted({*marked[:_ERROR_LINES], *last}) if lines[n].strip()]


def _contained() -> list[str]:
    """Return the words that start a tool with a known environment and end it when the lab dies.

    The second matters for a build whose lab is killed: no handler runs then,
    and a compiler would go on for minutes in a folder that the next build removes.
    """
    passed = {name: os.environ[name] for name in _HANDED_ON if name in os.environ}
    words = ["env", "-i", *(f"{name}={value}" for name, value in {**passed, **_CONSTANT}.items())]
    return ["setpriv", "--pdeathsig", "TERM", *words] if shutil.which("setpriv") else words


def _end(tool: subprocess.Popen[bytes]) -> None:
    """End a tool's process group; one that has ended by itself has no children left."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if tool.poll() is not None:
            return
        os.killpg(tool.pid, number)
        try:
            tool.wait(timeout=_END_S)
        except subprocess.TimeoutExpired:
            continue
