"""Requests and responses: a client asks, a server answers, and the client notes how long it took.

The client is at the receiving host, so that responses cross the path as bulk
data do. One connection a flow, open from the start; one request at a time.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any

from lab import clock
from lab.workloads import first_port
from lab.workloads.bulk import RECEIVE_BYTES, SINK

_PORT = 5002


class Request:
    """spec: `flows`, `request_bytes`, `response_bytes`, `think_ns`."""

    def __init__(self, net: Any, spec: dict[str, Any]) -> None:
        self._net = net
        self._spec = spec
        self._threads: list[threading.Thread] = []
        self._ends: list[socket.socket] = []
        self._clients: list[tuple[int, int, socket.socket]] = []
        self._lock = threading.Lock()
        self._begin_ns = 0
        self.taken: dict[int, list[tuple[int, int]]] = {flow["flow"]: [] for flow in spec["flows"]}

    def prepare(self) -> None:
        """Connect every flow."""
        listeners: dict[str, socket.socket] = {}
        for flow in self._spec["flows"]:
            server, client = self._net[flow["src"]], self._net[flow["dst"]]
            if flow["src"] not in listeners:
                with server.inside():
                    listeners[flow["src"]] = socket.create_server((server.IP(), _PORT), backlog=4096)
            with client.inside():
                asking = socket.socket()
            asking.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            asking.bind((client.IP(), first_port(len(self._spec["flows"])) + flow["flow"]))
            asking.connect((server.IP(), _PORT))
            answering, _ = listeners[flow["src"]].accept()
            answering.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if flow.get("own_cc"):
                answering.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, flow["cc"].encode())
            self._ends += [asking, answering]
            self._clients.append((flow["flow"], flow["start_ns"], asking))
            self._spawn(self._answer, answering)
        for listener in listeners.values():
            listener.close()

    def _spawn(self, function: Any, *args: Any) -> None:
        thread = threading.Thread(target=function, args=args, daemon=True)
        thread.start()
        self._threads.append(thread)

    def begin(self, start_ns: int) -> None:
        """Start to ask."""
        self._begin_ns = start_ns
        for flow, at_ns, asking in self._clients:
            self._spawn(self._ask, flow, start_ns + at_ns, asking)

    def _ask(self, flow: int, from_ns: int, end: socket.socket) -> None:
        request = bytes(self._spec["request_bytes"])
        clock.sleep_until_ns(from_ns)
        with contextlib.suppress(OSError):  # the end of the load closes the socket under us
            while True:
                asked_ns = clock.now_ns()
                end.sendall(request)
                if not _read(end, self._spec["response_bytes"]):
                    return
                now_ns = clock.now_ns()
                with self._lock:
                    self.taken[flow].append((asked_ns - self._begin_ns, now_ns - asked_ns))
                if self._spec["think_ns"]:
                    clock.sleep_until_ns(now_ns + self._spec["think_ns"])

    def _answer(self, end: socket.socket) -> None:
        response = memoryview(bytes(self._spec["response_bytes"]))
        with contextlib.suppress(OSError):
            while _read(end, self._spec["request_bytes"]):
                end.sendall(response)

    def finished(self) -> bool:
        """Never: requests go on until the end."""
        return False

    def end(self) -> None:
        """Close every connection; blocked calls return."""
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for end in self._ends:
            end.close()

    def outcome(self) -> dict[str, Any]:
        """Flows with their ports."""
        first = first_port(len(self._spec["flows"]))
        flows = [
            {"flow": flow["flow"], "port": first + flow["flow"], "finished_ns": None}
            for flow in self._spec["flows"]
        ]
        return {"client": "receiver", "flows": flows}

    def delays(self) -> list[tuple[str, int, list[tuple[int, int]]]]:
        """Return ("request", flow, [(asked, took)]) of each flow, ns from the start of the load."""
        return [("request", flow, taken) for flow, taken in self.taken.items()]


def _read(end: socket.socket, size: int) -> bool:
    """Read that much and throw it away; False where the other end closed."""
    while size:
        got = end.recv_into(SINK, min(size, RECEIVE_BYTES), socket.MSG_WAITALL | socket.MSG_TRUNC)
        if not got:
            return False
        size -= got
    return True
