"""Requests and responses: a client asks, a server answers, and the client notes how long it took.

The client is at the receiving host, so that responses cross the path as bulk
data do. One connection a flow, open from the start; one request at a time.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Collection
from typing import Any

from lab import clock
from lab.workloads import Here, LoadFailed, port_of_first
from lab.workloads.bulk import CUT_OFF, RECEIVE_BYTES, SINK, accepted, bind

_PORT = 5002


class Request:
    """spec: `flows`, `request_bytes`, `response_bytes`, `think_ns`. here: see `lab.workloads`."""

    def __init__(self, net: Any, spec: dict[str, Any], here: Collection[str] | None = None) -> None:
        self._net = net
        self._spec = spec
        self._here = Here(here)
        self._first = port_of_first(spec)
        self._by_port = {self._first + flow["flow"]: flow for flow in spec["flows"]}
        self._listeners: dict[str, socket.socket] = {}
        self._threads: list[threading.Thread] = []
        self._ends: list[socket.socket] = []
        self._clients: list[tuple[int, int, socket.socket]] = []
        self._lock = threading.Lock()
        self._begin_ns = 0
        self.taken: dict[int, list[tuple[int, int]]] = {
            flow["flow"]: [] for flow in spec["flows"] if self._here.has(flow["dst"])
        }

    def prepare(self) -> None:
        """Connect every flow, one after another."""
        for flow in self._spec["flows"]:
            self._listen(flow)
            self._connect(flow)
            self._accept(flow)
        self._close_listeners()

    def listen(self) -> None:
        """Listen wherever requests are answered."""
        for flow in self._spec["flows"]:
            if self._here.has(flow["src"]):
                self._listen(flow)

    def connect(self) -> None:
        """Connect every flow that asks from here."""
        for flow in self._spec["flows"]:
            if self._here.has(flow["dst"]):
                self._connect(flow)

    def accept(self) -> None:
        """Take every connection that is answered here. Raises LoadFailed where one does not come."""
        for flow in self._spec["flows"]:
            if self._here.has(flow["src"]):
                self._accept(flow)
        self._close_listeners()

    def _listen(self, flow: dict[str, Any]) -> None:
        server = self._net[flow["src"]]
        if flow["src"] not in self._listeners:
            with server.inside():
                listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.settimeout(self._here.timeout_s)
            bind(listener, server.IP(), _PORT)
            listener.listen(4096)
            self._listeners[flow["src"]] = listener

    def _close_listeners(self) -> None:
        for listener in self._listeners.values():
            listener.close()

    def _connect(self, flow: dict[str, Any]) -> None:
        server, client = self._net[flow["src"]], self._net[flow["dst"]]
        with client.inside():
            asking = socket.socket()
        asking.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        bind(asking, client.IP(), self._first + flow["flow"])
        asking.settimeout(self._here.timeout_s)
        try:
            asking.connect((server.IP(), _PORT))
        except OSError as refused:
            raise LoadFailed(
                f"flow {flow['flow']} could not connect: {refused}; port {_PORT} of {flow['src']} has to be"
                f" open to {flow['dst']}"
            ) from refused
        asking.settimeout(None)
        self._ends.append(asking)
        self._clients.append((flow["flow"], flow["start_ns"], asking))

    def _accept(self, of: dict[str, Any]) -> None:
        """Take the next of our connections; whoever else connects is sent away."""
        flow = None
        while flow is None:
            answering, (address, port) = accepted(self._listeners[of["src"]])
            flow = self._by_port.get(port)
            if flow is None or address != self._net[flow["dst"]].IP():
                answering.close()
                flow = None
        answering.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if flow.get("own_cc"):
            answering.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, flow["cc"].encode())
        self._ends.append(answering)
        self._spawn(self._answer, answering)

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

    def stop(self) -> None:
        """Nothing: a request that the end cuts off is not counted."""

    def end(self) -> None:
        """Close every connection; blocked calls return."""
        for end in self._ends:
            if self._here.apart:
                with contextlib.suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, CUT_OFF)
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for end in self._ends:
            end.close()

    def outcome(self) -> dict[str, Any]:
        """Flows with their ports."""
        flows = [
            {"flow": flow["flow"], "port": self._first + flow["flow"], "finished_ns": None}
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
