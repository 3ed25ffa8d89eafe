"""The agent on another host: answers the controller over its standard input and output until they end.

A request is a length (4 bytes, network order) and JSON {"id", "op", "args"}. An
answer is a length and JSON {"id", "ok", "result"} or {"id", "ok", "error",
"kind"}, and then as many bytes as its "blob" says, if it has one. Each
operation runs in a thread of its own, so answers come in any order.
Nothing else goes to standard output: what some tool prints goes to standard error.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO

from lab import clock
from lab.agent import hostops, load
from lab.agent.hostops import Blob, Host

GREETING = b"\0wanlab agent\0"
"""What the answers begin with; a login shell may have said something before it."""

MOST_REQUEST_BYTES = 64 * 2**20

_HELLO_LIMIT_S = 60.0
_PATIENCE = 1.5
"""Leases without a word after which this ends. Where something is held, the watchdog comes before."""


def operations() -> dict[str, Any]:
    """Return all operations by name. Raises ValueError where two have the same."""
    twice = hostops.OPS.keys() & load.OPS.keys()
    if twice:
        raise ValueError(f"operations of two modules have the same name: {', '.join(sorted(twice))}")
    return {**hostops.OPS, **load.OPS}


class Server:
    """One connection: reads requests, starts operations, writes answers."""

    def __init__(self, host: Host, source: int, sink: BinaryIO) -> None:
        self._host = host
        self._source = source
        self._sink = sink
        self._turn = threading.Lock()
        self._operations = operations()

    def run(self) -> None:
        """Serve until the controller has gone; then put everything back."""
        self._sink.write(GREETING)
        self._sink.flush()
        try:
            while True:
                request = self._read()
                if request is None:
                    return
                self._host.renew()
                if request["op"] == "clock":  # at once: its answer's age is the error of the offset
                    self._answer({"id": request["id"], "ok": True, "result": clock.now_ns()})
                elif request["op"] == "lease":
                    self._answer({"id": request["id"], "ok": True, "result": None})
                else:
                    threading.Thread(target=self._perform, args=(request,), daemon=True).start()
        except (OSError, ValueError) as broken:
            _say(f"the connection broke: {broken}")
        finally:
            for sentence in self._host.close():
                _say(sentence)
            end_group()  # only now: what is being undone must not be cut short

    def _read(self) -> dict[str, Any] | None:
        """Return the next request, None at the end. Raises ValueError where it is torn, TimeoutError."""
        head = self._read_exactly(4)
        if not head:
            return None
        size = int.from_bytes(head, "big")
        body = self._read_exactly(size) if size <= MOST_REQUEST_BYTES else b""
        if len(head) < 4 or len(body) < size:
            raise ValueError(f"a request of {size} bytes is torn")
        request = json.loads(body)
        if not isinstance(request, dict) or request.keys() != {"id", "op", "args"}:
            raise ValueError(f"{body[:80]!r} is not a request")
        return request

    def _read_exactly(self, size: int) -> bytes:
        """Return so many bytes, fewer at the end. Raises TimeoutError where the controller says nothing."""
        lease_s = self._host.lease_s
        limit_s = _HELLO_LIMIT_S if lease_s is None else _PATIENCE * lease_s
        data = b""
        while len(data) < size:
            known, _, _ = select.select([self._source], [], [], limit_s)
            if not known:
                raise TimeoutError(f"no word from the controller for {limit_s:g} s")
            part = os.read(self._source, size - len(data))
            if not part:
                break
            data += part
        return data

    def _perform(self, request: dict[str, Any]) -> None:
        answer: dict[str, Any] = {"id": request["id"], "ok": True}
        data = b""
        try:
            operation = self._operations.get(request["op"])
            if operation is None:
                raise LookupError(f"there is no operation {request['op']!r}")
            result = operation(self._host, request["args"])
            if isinstance(result, Blob):
                result, data = result
                answer["blob"] = len(data)
            answer["result"] = result
        except BaseException as error:
            known = (
                str(error)
                if type(error).__module__.startswith("lab.")
                else f"{type(error).__name__}: {error}"
            )
            answer = {"id": request["id"], "ok": False, "error": known, "kind": type(error).__name__}
            data = b""
        with contextlib.suppress(OSError):  # the controller has gone: the reader ends all
            self._answer(answer, data)

    def _answer(self, answer: dict[str, Any], data: bytes = b"") -> None:
        text = json.dumps(answer).encode()
        with self._turn:
            self._sink.write(len(text).to_bytes(4, "big") + text + data)
            self._sink.flush()


def _say(sentence: str) -> None:
    with contextlib.suppress(OSError):  # nobody listens any more
        print(f"wanlab: {sentence}", file=sys.stderr, flush=True)


def end_group() -> None:
    """End all other processes of this process's group: what operations have started and not ended."""
    own = os.getpid()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != own:
            with contextlib.suppress(OSError):  # it ended meanwhile
                if os.getpgid(int(entry.name)) == own:
                    os.kill(int(entry.name), signal.SIGKILL)


def _private_streams() -> tuple[int, BinaryIO]:
    """Return a descriptor for requests and a file for answers; no tool that is started can reach them.

    The controller sends nothing before the greeting, so no buffer holds any of it.
    """
    requests, answers = os.dup(0), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    os.dup2(2, 1)
    return requests, answers


def main(version: str) -> None:
    """Serve the controller at standard input and output; version: SHA-256 of this code as it arrived."""
    signal.alarm(0)  # set while the code was on its way
    os.environ.clear()
    os.environ.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL="C.UTF-8")
    with contextlib.suppress(OSError):
        os.setsid()  # refused where this process leads a group already, which is as good
    requests, answers = _private_streams()
    Server(Host(version, group=os.getpgrp()), requests, answers).run()
    os._exit(0)  # threads of operations that hang hold up nothing
