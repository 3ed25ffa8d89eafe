"""Changes links while packets flow: each `tc` command at its instant.

One `tc` a node stays open and reads its commands from a pipe: starting one a
change would cost more than the change. Where the link is to stand still, a frame
that nobody answers goes first (see `lab.varying.commands`).
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
from typing import Any

from lab import clock

_EXPERIMENTAL = 0x88B5
"""EtherType for local experiments, IEEE 802: the other end drops it unseen."""
_HEADER = b"\xff" * 6 + b"\x02" + bytes(5) + _EXPERIMENTAL.to_bytes(2, "big")
_SETTLE_NS = 1000


class Changer:
    """changes: `at_ns` from the start, `node`, `interface`, `tc`, `hold`; in order of time."""

    def __init__(self, net: Any, changes: list[dict[str, Any]]) -> None:
        self._changes = changes
        self._tools: dict[str, subprocess.Popen[bytes]] = {}
        self._frames: dict[str, socket.socket] = {}
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        for change in changes:
            node, interface = change["node"], change["interface"]
            if node not in self._tools:
                with net[node].inside():
                    self._tools[node] = subprocess.Popen(
                        ["tc", "-batch", "-"],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT,
                    )
            if change["hold"] and interface not in self._frames:
                with net[node].inside():
                    self._frames[interface] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
                self._frames[interface].bind((interface, _EXPERIMENTAL))

    def begin(self, start_ns: int) -> None:
        """Start the clock of the changes."""
        if self._changes:
            self._thread = threading.Thread(target=self._run, args=(start_ns,), daemon=True)
            self._thread.start()

    def _run(self, start_ns: int) -> None:
        for change in self._changes:
            clock.sleep_until_ns(start_ns + change["at_ns"])
            if self._ended.is_set():
                return
            pipe = self._tools[change["node"]].stdin
            assert pipe is not None
            try:
                pipe.write(change["tc"].encode() + b"\n")
                pipe.flush()
            except BrokenPipeError:
                return  # tc refused a command and ended; `end` says what it said
            if change["hold"]:
                clock.sleep_until_ns(clock.now_ns() + _SETTLE_NS)
                with contextlib.suppress(OSError):  # a full queue holds by itself
                    self._frames[change["interface"]].send(_HEADER.ljust(change["hold"], b"\0"))

    def end(self) -> None:
        """Stop. Raises RuntimeError where `tc` refused a change."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        said = {node: tool.communicate()[0] for node, tool in self._tools.items()}
        for channel in self._frames.values():
            channel.close()
        for node, tool in self._tools.items():
            if tool.returncode or said[node].strip():
                words = said[node].decode(errors="replace").strip()
                raise RuntimeError(f"a change at {node} failed (tc ended with {tool.returncode}): {words}")
