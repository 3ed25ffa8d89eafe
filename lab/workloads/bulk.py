"""Bulk transfer: the lab's own load, for a time or for a number of bytes.

One thread sends and one receives for each flow, in blocking calls of several
MiB. The receiver discards in the kernel (MSG_TRUNC) as data comes: an
application that is never the limit. System calls are what costs in a virtual
kernel, and this makes as few as can be.
"""

from __future__ import annotations

import socket
import threading
from typing import Any

from lab import clock

_CHUNK_BYTES = 256 * 1024
_CHUNKS = 16
RECEIVE_BYTES = 4 * 1024 * 1024
_PORT = 5001


class Bulk:
    """spec: `sender`, `receiver` (node names), `flows`, `bytes` (a flow; None: until the end)."""

    def __init__(self, net: Any, spec: dict[str, Any]) -> None:
        self._net = net
        self._spec = spec
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._threads: list[threading.Thread] = []
        self._go = threading.Event()
        self._lock = threading.Lock()
        self._flows: list[dict[str, Any]] = []
        self._ended = False

    def prepare(self) -> None:
        """Connect all flows, from consecutive ports so that a flow has a number."""
        sender, receiver = self._net[self._spec["sender"]], self._net[self._spec["receiver"]]
        address = (receiver.IP(), _PORT)
        with receiver.inside():
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if self._spec.get("rcvbuf_bytes"):
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._spec["rcvbuf_bytes"])
            listener.bind(address)
            listener.listen(self._spec["flows"])
        outgoing = []
        with sender.inside():
            for number in range(self._spec["flows"]):
                end = socket.socket()
                if self._spec.get("sndbuf_bytes"):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._spec["sndbuf_bytes"])
                end.setblocking(False)
                end.bind((sender.IP(), first_port(self._spec["flows"]) + number))
                end.connect_ex(address)
                outgoing.append(end)
        incoming = {}
        for _ in outgoing:
            end, (_, port) = listener.accept()
            incoming[port] = end
        listener.close()
        for number, end in enumerate(outgoing):
            end.setblocking(True)
            port = first_port(self._spec["flows"]) + number
            self._pairs.append((end, incoming[port]))
            self._flows.append({"flow": number, "port": port, "finished_ns": None})
        for number, (out, into) in enumerate(self._pairs):
            self._spawn(self._send, out)
            self._spawn(self._receive, number, into)

    def _spawn(self, function: Any, *args: Any) -> None:
        thread = threading.Thread(target=function, args=args, daemon=True)
        thread.start()
        self._threads.append(thread)

    def begin(self) -> None:
        """Let every sender go."""
        self._go.set()

    def _send(self, end: socket.socket) -> None:
        chunk = memoryview(bytes(_CHUNK_BYTES))
        left = self._spec.get("bytes")
        self._go.wait()
        try:
            while left is None:
                end.sendmsg([chunk] * _CHUNKS)
            while left:
                whole, rest = divmod(min(left, _CHUNKS * _CHUNK_BYTES), _CHUNK_BYTES)
                left -= end.sendmsg([chunk] * whole + ([chunk[:rest]] if rest else []))
            end.shutdown(socket.SHUT_WR)
        except OSError:
            return  # the end of the load closed the socket under us

    def _receive(self, number: int, end: socket.socket) -> None:
        buffer = bytearray(RECEIVE_BYTES)
        try:
            while end.recv_into(buffer, RECEIVE_BYTES, socket.MSG_WAITALL | socket.MSG_TRUNC):
                pass
        except OSError:
            return
        with self._lock:
            if not self._ended:  # cut off at the end of the load is not finished
                self._flows[number]["finished_ns"] = clock.now_ns()

    def finished(self) -> bool:
        """True when every flow of a given size has arrived."""
        with self._lock:
            return all(flow["finished_ns"] is not None for flow in self._flows)

    def end(self) -> None:
        """Close every connection; blocked calls return."""
        with self._lock:
            self._ended = True
        for out, into in self._pairs:
            for end in (out, into):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # already gone
        for thread in self._threads:
            thread.join()
        for out, into in self._pairs:
            out.close()
            into.close()

    def outcome(self) -> dict[str, Any]:
        """Flows with their ports and the instant their last byte was read, ns."""
        return {"flows": self._flows}


def first_port(flows: int) -> int:
    """Return the sender port of flow 0; the others follow it."""
    return 40000 if flows <= 20000 else 10000
