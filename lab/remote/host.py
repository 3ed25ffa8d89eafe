"""One host over SSH, and several at once: asking for operations, renewing leases, closing.

The far side is `lab.agent.serve`; see there how the two speak. What a host
refuses or fails at is an EngineError that names it.
"""

from __future__ import annotations

import contextlib
import functools
import json
import queue
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self, TypeVar

from lab import clock
from lab.agent.serve import GREETING
from lab.errors import EngineError, LabError, PreconditionError
from lab.remote import bundle, ssh
from lab.remote.inventory import Entry, Inventory
from lab.scratch import Scratch

T = TypeVar("T")

OPEN_LIMIT_S = 45.0
"""From starting ssh to the agent's first word: jump hosts, slow links, slow sudo."""

CLOSE_LIMIT_S = 30.0
_MOST_NOISE_BYTES = 2**16
"""That a login shell may say before the agent does."""
_MOST_ANSWER_BYTES = 2**28
_MOST_WORDS_BYTES = 2**14
"""Of standard error that are kept."""
_SILENT_LEASES = 2
"""Of no answer at all, after which a host counts as lost."""
_CLOCK_ROUNDS = 12
_END_LIMIT_S = 3.0
"""That ssh may take to end after both sides have parted."""

_REFUSALS = {"Held", "Leftover"}  # of lab.agent.journal: the host is not free to be used


@dataclass
class _Call:
    """A request that waits for its answer."""

    done: threading.Event = field(default_factory=threading.Event)
    answer: dict[str, Any] = field(default_factory=dict)
    data: bytes = b""


class Host:
    """A connection to one host. Its methods may be called from several threads.

    clock_offset_ns: what its monotonic clock reads more than ours does, give or
    take `clock_error_ns`; both are measured at opening and by `measure_clock`.
    """

    def __init__(self, entry: Entry, inventory: Inventory, folder: Path) -> None:
        self.entry = entry
        self.name = entry.name
        self.clock_offset_ns = 0
        self.clock_error_ns = 0
        self.greeting: dict[str, Any] = {}
        self._lease_s = inventory.lease_s
        self._calls: dict[int, _Call] = {}
        self._turn = threading.Lock()
        self._number = 0
        self._lost = ""
        self._heard_ns = clock.now_ns()
        self._greeted = threading.Event()
        self._closing = threading.Event()
        self._words = b""
        self._process = ssh.start(ssh.argv(entry, inventory.ssh_config, folder))
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=work, name=f"{work.__name__} {self.name}", daemon=True)
            for work in (self._listen, self._write, self._read, self._renew)
        ]

    @classmethod
    def open(cls, entry: Entry, inventory: Inventory, folder: Path) -> Self:
        """Connect, push the agent, check its version and its clock.

        folder: private and of a short name, for the connection's socket. Raises
        PreconditionError where the host cannot be reached or lacks something.
        """
        host = cls(entry, inventory, folder)
        try:
            host._begin()
        except BaseException:
            host._end()
            raise
        return host

    def _begin(self) -> None:
        pushed = bundle.make()
        self._outbox.put(len(pushed.data).to_bytes(4, "big") + pushed.data)
        for thread in self._threads[:3]:
            thread.start()
        if not self._greeted.wait(OPEN_LIMIT_S) or self._lost:
            raise PreconditionError(self._say(self._lost or ssh.explain(None, self._tail())))
        self.greeting = self.call("hello", OPEN_LIMIT_S, lease_s=self._lease_s)
        if self.greeting["version"] != pushed.version:
            raise EngineError(self._say("what arrived there is not what was pushed; run it again"))
        self._threads[3].start()
        self.measure_clock()

    def _say(self, what: str) -> str:
        return f"host {self.name} ({self.entry.address}): {what}"

    # asking

    def call(self, op: str, timeout_s: float, /, **args: Any) -> Any:
        """Ask for an operation; return its result.

        Raises EngineError where it fails, takes longer or the host is lost, and
        PreconditionError where the host is not free.
        """
        return self.call_with_bytes(op, timeout_s, **args)[0]

    def call_with_bytes(self, op: str, timeout_s: float, /, **args: Any) -> tuple[Any, bytes]:
        """Ask for an operation whose answer has bytes behind it; return both. Raises as `call`."""
        call, number = _Call(), self._next()
        self._calls[number] = call
        try:
            if not self._lost:
                self._post({"id": number, "op": op, "args": args})
            self._await(call, op, timeout_s)
        finally:
            self._calls.pop(number, None)
        if call.answer["ok"]:
            return call.answer["result"], call.data
        refused = call.answer["kind"] in _REFUSALS
        raise (PreconditionError if refused else EngineError)(
            self._say("\n".join(ssh.printable(line) for line in call.answer["error"].splitlines()))
        )

    def fetch(self, name: str, to: Path, timeout_s: float) -> int:
        """Copy a file of the host's private folder; return its size, bytes. timeout_s: for each part."""
        with to.open("wb") as file:
            while True:
                known, data = self.call_with_bytes("fetch", timeout_s, name=name, offset=file.tell())
                file.write(data)
                if not data or file.tell() >= known["size"]:
                    return file.tell()

    def measure_clock(self) -> None:
        """Measure the offset of its clock: of several round trips the shortest says most.

        The other clock was read between the two readings of ours, so the error
        is at most half of that RTT.
        """
        best_ns = None
        for _ in range(_CLOCK_ROUNDS):
            before_ns = clock.now_ns()
            theirs_ns = self.call("clock", OPEN_LIMIT_S)
            rtt_ns = clock.now_ns() - before_ns
            if best_ns is None or rtt_ns < best_ns:
                best_ns = rtt_ns
                self.clock_offset_ns = theirs_ns - (before_ns + rtt_ns // 2)
                self.clock_error_ns = rtt_ns // 2

    def close(self) -> list[str]:
        """Have everything put back, and part; return a sentence for what could not be put back.

        Never raises for what the host does: where it is lost, its watchdog puts
        everything back, and the sentence says so.
        """
        if self._closing.is_set():
            return []
        left: list[str] = []
        patience_s = 0.0
        try:
            left = [self._say(ssh.printable(one)) for one in self.call("bye", CLOSE_LIMIT_S)]
            if left:
                self.call("told", CLOSE_LIMIT_S)
            patience_s = _END_LIMIT_S
        except LabError as error:
            left += [
                f"{error}; its watchdog puts everything back within {self._lease_s:g} s,"
                " and `wanlab clean --inventory` says whether it has"
            ]
        finally:
            self._end(patience_s)
        return left

    # the connection

    def _next(self) -> int:
        with self._turn:
            self._number += 1
            return self._number

    def _post(self, request: Mapping[str, Any]) -> None:
        text = json.dumps(request).encode()
        self._outbox.put(len(text).to_bytes(4, "big") + text)

    def _await(self, call: _Call, op: str, timeout_s: float) -> None:
        deadline_ns = clock.now_ns() + int(timeout_s * 1e9)
        silence_ns = int(_SILENT_LEASES * self._lease_s * 1e9)
        while not call.done.wait(min(0.2, timeout_s)):
            now_ns = clock.now_ns()
            if self._lost:
                raise EngineError(self._say(self._lost))
            if now_ns > deadline_ns:
                raise EngineError(self._say(f"no answer to {op!r} within {timeout_s:g} s"))
            if self._greeted.is_set() and now_ns - self._heard_ns > silence_ns:
                raise EngineError(
                    self._say(f"no sign of life for {silence_ns / 1e9:g} s, while {op!r} was under way")
                )

    def _write(self) -> None:
        sink = self._process.stdin
        assert sink is not None
        with contextlib.suppress(OSError):
            while (data := self._outbox.get()) is not None:
                sink.write(data)
                sink.flush()
        with contextlib.suppress(OSError):
            sink.close()

    def _read(self) -> None:
        source = self._process.stdout
        assert source is not None
        lost = ""
        try:
            if self._skip_noise(source):
                self._greeted.set()
                while self._read_one(source):
                    self._heard_ns = clock.now_ns()
        except (OSError, ValueError) as torn:
            lost = f"what it says does not read: {torn}"
        finally:
            if not lost:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(5)
                self._threads[0].join(1)  # its last words
                lost = ssh.explain(self._process.returncode, self._tail())
            self._lost = lost
            self._greeted.set()

    def _skip_noise(self, source: IO[bytes]) -> bool:
        """Read up to the agent's greeting; return whether there was one."""
        seen = b""
        while not seen.endswith(GREETING):
            one = source.read(1)
            if len(seen) > _MOST_NOISE_BYTES:
                raise ValueError("a login shell there does not stop talking")
            if not one:
                return False
            seen += one
        self._heard_ns = clock.now_ns()
        return True

    def _read_one(self, source: IO[bytes]) -> bool:
        """Take one answer; return whether there was one."""
        head = source.read(4)
        if len(head) < 4:
            return False
        size = int.from_bytes(head, "big")
        if size > _MOST_ANSWER_BYTES:
            raise ValueError(f"an answer of {size} bytes")
        text = source.read(size)
        if len(text) < size:
            return False
        answer = _checked(json.loads(text))
        data = source.read(answer.get("blob", 0))
        if len(data) < answer.get("blob", 0):
            return False
        call = self._calls.get(answer["id"])
        if call is not None:  # else nobody waits for it any more
            call.answer, call.data = answer, data
            call.done.set()
        return True

    def _renew(self) -> None:
        """Renew the lease, three times as often as need be; what is answered shows that the host lives."""
        while not self._closing.wait(self._lease_s / 3):
            if self._lost:
                return
            self._post({"id": self._next(), "op": "lease", "args": {}})

    def _listen(self) -> None:
        """Keep the last words of ssh and of the far side, however many they are."""
        source = self._process.stderr
        assert source is not None
        while part := source.read1(4096):  # type: ignore[attr-defined]  # a pipe's reader is buffered
            self._words = (self._words + part)[-_MOST_WORDS_BYTES:]

    def _tail(self) -> str:
        """Return the last words of ssh and of the far side."""
        return self._words.decode(errors="replace")

    def _end(self, patience_s: float = 0.0) -> None:
        """Close the connection; end ssh where it does not go in time."""
        self._closing.set()
        self._outbox.put(None)
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(2)
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()


def _checked(answer: Any) -> dict[str, Any]:
    """Return an answer that is of the form that `lab.agent.serve` gives. Raises ValueError."""
    known = isinstance(answer, dict) and isinstance(answer.get("id"), int)
    if known and answer.get("ok") is True:
        blob = answer.get("blob", 0)
        known = "result" in answer and isinstance(blob, int) and 0 <= blob <= _MOST_ANSWER_BYTES
    elif known:
        known = all(isinstance(answer.get(key), str) for key in ("error", "kind"))
    if not known:
        raise ValueError(f"{str(answer)[:80]!r} is no answer")
    found: dict[str, Any] = answer
    return found


def parallel(tasks: Mapping[str, Callable[[], T]]) -> dict[str, T]:
    """Run every task in a thread of its own; return their results by name, once all have ended.

    Where some fail, LabErrors are joined into one of the first one's kind, so
    that all hosts' faults are seen at once; any other error is raised as it is.
    """
    results: dict[str, T] = {}
    errors: dict[str, BaseException] = {}

    def run(name: str, task: Callable[[], T]) -> None:
        try:
            results[name] = task()
        except BaseException as error:
            errors[name] = error

    threads = [threading.Thread(target=run, args=one, daemon=True) for one in tasks.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    failed = [errors[name] for name in tasks if name in errors]
    for error in failed:
        if len(failed) == 1 or not isinstance(error, LabError):
            raise error
    if failed:
        kind = PreconditionError if isinstance(failed[0], PreconditionError) else EngineError
        raise kind("\n".join(str(error) for error in failed))
    return {name: results[name] for name in tasks}


class Hosts(Mapping[str, Host]):
    """All hosts that a run uses, by name, connected at once; a context manager that parts from all of them.

    left: after the end, what could not be put back, a sentence each.
    Raises PreconditionError with every host that cannot be used.
    """

    def __init__(self, inventory: Inventory, entries: Sequence[Entry] | None = None) -> None:
        self.inventory = inventory
        self.left: list[str] = []
        self._entries = inventory.used if entries is None else tuple(entries)
        self._hosts: dict[str, Host] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(Scratch())
            stack.callback(self._close)
            parallel({one.name: functools.partial(self._open, one, folder) for one in self._entries})
            self._stack = stack.pop_all()
        return self

    def _open(self, entry: Entry, folder: Path) -> None:
        self._hosts[entry.name] = Host.open(entry, self.inventory, folder)

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _close(self) -> None:
        parted = parallel({name: host.close for name, host in self._hosts.items()})
        self.left = [sentence for sentences in parted.values() for sentence in sentences]

    def __getitem__(self, name: str) -> Host:
        return self._hosts[name]

    def __iter__(self) -> Iterator[str]:
        return iter([entry.name for entry in self._entries])

    def __len__(self) -> int:
        return len(self._entries)

    def each(self, task: Callable[[Host], T]) -> dict[str, T]:
        """Run a task with every host, all at once; return the results by host. Raises as `parallel`."""
        return parallel({name: functools.partial(task, host) for name, host in self.items()})
