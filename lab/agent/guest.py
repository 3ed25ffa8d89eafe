"""The first process of a virtual kernel: mounts, limits, and the power switch.

Nothing here runs on a user's host but `mount`, in a namespace of its own. The
host's file system is the root, read only; what must be written goes to memory in
/run, and the results go to one folder of the host that is mounted on /run/out.
"""

from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path

from lab import clock

OUT = Path("/run/out")
_LIBC = ctypes.CDLL(None, use_errno=True)
_STANDARD_ERROR = 2
_RB_POWER_OFF = 0x4321FEDC


def mount(source: str, target: str, kind: str, data: str = "") -> None:
    """Mount a file system of a kind over `target`. Raises OSError that says what was tried."""
    if _LIBC.mount(source.encode(), target.encode(), kind.encode(), 0, data.encode() or None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"mounting {kind} on {target}: {os.strerror(number)}")


def prepare(out: str) -> None:
    """Mount what user space needs, and `out`, a folder of the host, on /run/out; words go there too."""
    while os.open("/dev/null", os.O_RDWR) < _STANDARD_ERROR:
        pass  # there is no console: the standard descriptors are closed, and must not be somebody's file
    mount("proc", "/proc", "proc")
    mount("sysfs", "/sys", "sysfs")
    mount("tmpfs", "/run", "tmpfs")
    Path("/dev/pts").mkdir(exist_ok=True)
    mount("devpts", "/dev/pts", "devpts")
    OUT.mkdir()
    mount("none", str(OUT), "hostfs", out)
    words = os.open(OUT / "agent.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(words, 1)
    os.dup2(words, 2)
    os.environ["TMPDIR"] = "/run"
    Path("/proc/sys/vm/panic_on_oom").write_text("1")  # a clear end, not a missing thread


def power_off() -> None:
    """Write everything out and end the kernel."""
    os.sync()
    _LIBC.reboot(_RB_POWER_OFF)


def power_off_at(deadline_ns: int, last_words: str) -> None:
    """End the kernel at a virtual instant, whatever else hangs; say why on the console."""

    def watch() -> None:
        clock.sleep_until_ns(deadline_ns)
        (OUT / "overdue").write_text(last_words)
        power_off()

    threading.Thread(target=watch, daemon=True).start()
