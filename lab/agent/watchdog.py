"""The process that puts everything back when the one that changed it dies or hangs.

It is a session of its own, holds the lock, and has its code in memory: nothing
that happens to the files, the terminal or the connection of the other reaches
it. Between the two there is one pipe: a byte renews the lease, another says
that all is put back, and its end says that the other is gone.
Not here: how to put back (see `notes`).
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab import clock
from lab.agent import lock
from lab.agent.notes import TOOLS_PATH, Journal, NotAppliedError, Place

READY_LIMIT_S = 20.0
"""That a new watchdog may take until it watches."""

_RENEW, _DISMISS, _READY = b"r", b"d", b"!"
_GROUP_LIMIT_S = 5.0
"""That processes that were sent SIGKILL may take to go."""

_MODULES = ("lab", "lab.agent", "lab.clock", "lab.agent.notes", "lab.agent.lock", "lab.agent.watchdog")
_BOOT = """
import json, os, sys, types
def read(size):
    data = b""
    while len(data) < size:
        part = os.read(0, size - len(data))
        if not part:
            sys.exit(0)
        data += part
    return data
orders = json.loads(read(int.from_bytes(read(4), "big")))
for name, source in orders.pop("modules"):
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = []
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, module)
    exec(compile(source, name, "exec"), module.__dict__)
sys.modules["lab.agent.watchdog"].watch(orders)
"""


@dataclass(frozen=True)
class Orders:
    """What a watchdog is told: the lock's descriptor, the notes' folder, when and whom to end.

    See `journal.Hold` for `lease_s` and `group`.
    """

    lock: int
    folder: str
    place: Place
    lease_s: float | None
    group: int | None


class Watchdog:
    """A watchdog at work, as the process that it watches sees it.

    pipe: our end of what it listens to; a command of a change holds it as well, so that it waits for that.
    Raises NotAppliedError where it does not come up.
    """

    def __init__(self, orders: Orders) -> None:
        known = {"modules": [(name, _source(name)) for name in _MODULES], **asdict(orders)}
        text = json.dumps(known).encode()
        self._turn = threading.Lock()
        listening, self.pipe = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _BOOT],
                stdin=listening,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={"PATH": TOOLS_PATH, "LC_ALL": "C"},
                cwd="/",
                start_new_session=True,
                pass_fds=(orders.lock,),
            )
        except OSError as refused:
            os.close(self.pipe)
            raise NotAppliedError(f"the watchdog does not start: {refused.strerror}") from refused
        finally:
            os.close(listening)
        output = self._process.stdout
        assert output is not None
        with output:
            self._send(len(text).to_bytes(4, "big") + text)
            told, _, _ = select.select([output], [], [], READY_LIMIT_S)
            if not told or output.read(1) != _READY:
                self._process.kill()
                self._process.wait()
                os.close(self.pipe)
                raise NotAppliedError("the watchdog does not come up; nothing was changed")

    def _send(self, data: bytes) -> None:
        with self._turn, contextlib.suppress(BrokenPipeError):  # killed: the notes and `clean` are left
            while data and self.pipe >= 0:
                data = data[os.write(self.pipe, data) :]

    @property
    def alive(self) -> bool:
        """Whether it is at work."""
        return self._process.poll() is None

    def renew(self) -> None:
        """Renew the lease."""
        self._send(_RENEW)

    def dismiss(self) -> None:
        """Tell it that all is put back, and wait until it has gone."""
        self._send(_DISMISS)
        with self._turn:
            os.close(self.pipe)
            self.pipe = -1
        try:
            self._process.wait(_GROUP_LIMIT_S)
        except subprocess.TimeoutExpired:  # somebody has stopped it
            self._process.kill()
            self._process.wait()


def _source(name: str) -> str:
    """Return the text of one of our modules, from a file or a bundle."""
    module = sys.modules[name]
    loader: Any = getattr(module, "__loader__", None)
    try:
        text = loader.get_source(name) if hasattr(loader, "get_source") else None
        return text or Path(str(module.__file__)).read_text(encoding="utf-8")
    except (ImportError, OSError) as gone:
        raise NotAppliedError(
            f"the text of {name} cannot be read, and the watchdog needs it: {gone}"
        ) from gone


def watch(orders: dict[str, Any]) -> None:
    """Be the watchdog; return when there is nothing to watch any more.

    orders: the fields of `Orders`. The pipe is standard input.
    """
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    place = Place(**orders["place"])
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text("wanlab-watchdog")
        Path("/proc/self/oom_score_adj").write_text("-900")  # a full memory must not take it first
    os.write(1, _READY)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    if _dismissed(orders["lease_s"]):
        return
    _end_group(orders["group"])
    _wait_for_end()
    notes = Journal(Path(orders["folder"]), place)
    notes.restore(keep=True)
    lock.release(Path(orders["folder"]), orders["lock"])


def _dismissed(lease_s: float | None) -> bool:
    """Listen; return True when told that all is put back, False at the other's end or that of the lease."""
    deadline_ns = clock.now_ns() + int((lease_s or 0) * 1e9)
    while True:
        wait_s = None if lease_s is None else max(0.0, (deadline_ns - clock.now_ns()) / 1e9)
        known, _, _ = select.select([0], [], [], wait_s)
        if not known:
            return False
        said = os.read(0, 4096)
        if not said or _DISMISS in said:
            return bool(said)
        if lease_s is not None:
            deadline_ns = clock.now_ns() + int(lease_s * 1e9)


def _end_group(group: int | None) -> None:
    if group is not None:
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGKILL)


def _wait_for_end() -> None:
    """Wait until the pipe has no writer: the other is gone, and every command that it had started."""
    deadline_ns = clock.now_ns() + int(_GROUP_LIMIT_S * 1e9)
    while clock.now_ns() < deadline_ns:
        known, _, _ = select.select([0], [], [], max(0.0, (deadline_ns - clock.now_ns()) / 1e9))
        if known and not os.read(0, 4096):
            return
