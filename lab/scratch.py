"""A scratch folder that is gone when its run is, however the run ends.

A watcher process holds the other end of a pipe. When the run ends, or is killed
outright, the pipe closes; the watcher then ends what the run had started from
this folder and removes the folder. Run as a script it is that watcher.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

_PLAIN = re.compile(r"[A-Za-z0-9/_.+-]+")


class Scratch:
    """Context manager; its value is the folder."""

    def __enter__(self) -> Path:
        self._folder = Path(tempfile.mkdtemp(prefix="wanlab-", dir=_parent()))
        self._watcher = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, str(self._folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return self._folder

    def __exit__(self, *_: object) -> None:
        assert self._watcher.stdin is not None
        self._watcher.stdin.close()
        self._watcher.wait()


def _parent() -> str:
    """Return a folder for temporary files whose name needs no quoting anywhere."""
    for folder in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
        if _PLAIN.fullmatch(folder) and os.access(folder, os.W_OK):
            return folder
    return tempfile.gettempdir()


def _processes_of(folder: Path) -> list[int]:
    """Return the processes that were started with a path of this folder in their arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if f"{folder}/".encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue  # it ended meanwhile, or belongs to somebody else
    return found


def watch(folder: Path) -> None:
    """Wait for the end of standard input, then end and remove what is left of the folder."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    for process in _processes_of(folder):
        try:
            os.killpg(process, signal.SIGKILL)
        except OSError:
            continue  # already gone, or not the leader of a group
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    watch(Path(sys.argv[1]))
