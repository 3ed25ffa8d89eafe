"""Any command as root, in a kernel of the lab's own on the real clock, for tests that need root or netem.

The host's disk is read only inside; /run, /dev/shm and, unless the checkout is
below it, /tmp are memory; one folder of the host is writable, as /run/out. Run as a script it is the first
process of that kernel.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":  # started without `site`, for speed
    sys.path.insert(0, str(ROOT))

from lab import uml  # noqa: E402
from lab.agent import guest  # noqa: E402

INSIDE_OUT = guest.OUT
"""Where `out` is, inside."""

MEMORY_BYTES = 768 * 2**20


@dataclass(frozen=True)
class Done:
    """A command that ended: its status, and both its outputs as one text."""

    status: int
    text: str


def inside(
    kernel: Path,
    argv: Sequence[str],
    out: Path,
    *,
    memory_bytes: int = MEMORY_BYTES,
    timeout_s: float = 60,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    cpu: int | None = None,
) -> Done:
    """Run a command to its end as root inside; `out` is an existing folder, writable as /run/out there.

    env is added to a plain environment (HOME=/run). What the host has in /tmp or
    /run is not to be seen: hand files over in `out`.
    Raises AssertionError, with the kernel's last lines, where the kernel ended
    first or the time is over.
    """
    uml.require()
    machine = uml.Machine(
        kernel, memory_bytes, max(os.sched_getaffinity(0)) if cpu is None else cpu, virtual=False
    )
    with tempfile.TemporaryDirectory(prefix="wanlab-inside-") as name:
        folder = Path(name)
        uml.fill(
            folder, {"argv": list(argv), "cwd": str(cwd), "env": dict(env or {})}, Path(__file__).resolve()
        )
        (folder / "out").rmdir()
        (folder / "out").symlink_to(out.resolve(), target_is_directory=True)
        for left in ("inside.json", "inside.txt", "agent.txt"):
            (out / left).unlink(missing_ok=True)
        process = uml.boot(machine, folder)
        try:
            ended = uml.wait(process, timeout_s)
        finally:
            uml.end(process)
        text = (out / "inside.txt").read_text(errors="replace") if (out / "inside.txt").exists() else ""
        assert ended, f"no end after {timeout_s:g} s; it wrote:\n{text}\n{uml.tail(folder)}"
        report = out / "inside.json"
        assert report.exists(), f"the kernel ended first; it wrote:\n{text}\n{uml.tail(folder)}"
        return Done(json.loads(report.read_text())["status"], text)


def main() -> None:
    """Mount, run the command, write its status down, end the kernel."""
    told = json.loads(Path(sys.argv[1]).read_text())
    try:
        guest.prepare(str(Path(sys.argv[2]).resolve()))
        Path("/dev/shm").mkdir(exist_ok=True)
        hidden = ("/dev/shm",) if ROOT.is_relative_to("/tmp") else ("/dev/shm", "/tmp")
        for folder in hidden:  # not the checkout itself, where that is below /tmp
            guest.mount("tmpfs", folder, "tmpfs")
        os.environ.update(
            PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            LC_ALL="C.UTF-8",
            HOME="/run",
            TMPDIR="/dev/shm",
            **told["env"],
        )
        subprocess.run(["ip", "link", "set", "dev", "lo", "up"], check=True)
        with (INSIDE_OUT / "inside.txt").open("wb") as text:
            done = subprocess.run(
                told["argv"],
                cwd=told["cwd"],
                stdin=subprocess.DEVNULL,
                stdout=text,
                stderr=subprocess.STDOUT,
                check=False,
            )
        (INSIDE_OUT / "inside.json").write_text(json.dumps({"status": done.returncode}))
    finally:
        guest.power_off()


if __name__ == "__main__":
    main()
