"""Bulk transfer: the lab's own load. Flows for a time or of a size, from the start or later, with pauses.

One thread sends and one receives for each flow, in blocking calls of several
MiB. The receiver discards in the kernel (MSG_TRUNC) as data comes: an
application that is never the limit. System calls are what costs in a virtual
kernel, and this makes as few as can be.

A flow that is there from the start is connected before. One that comes later
connects when it comes, over whatever the path then carries. One that is told
to stop is cut off: what it has written and not sent is thrown away.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import struct
import threading
from collections.abc import Collection, Iterator
from typing import Any

from lab import clock
from lab.workloads import Here, LoadFailed, port_of_first

_CHUNK_BYTES = 256 * 1024
_CHUNKS = 16
RECEIVE_BYTES = 4 * 1024 * 1024
CHUNK = memoryview(bytes(_CHUNK_BYTES))
SINK = bytearray(RECEIVE_BYTES)
"""One for all threads: the kernel writes nothing to it, and a thousand of them would fill the memory."""
_PORT = 5001
_SPELL_CHUNK_BYTES = 64 * 1024
_TCP_NOTSENT_LOWAT = 25  # include/uapi/linux/tcp.h
_TCP_INFO_BYTES = 512
_STACK_BYTES = 256 * 1024
CUT_OFF = struct.pack("ii", 1, 0)
"""struct linger: closing throws away what is not sent, and tells the other end."""


class Bulk:
    """spec: `flows` (see `lab.spec`), `rcvbuf_bytes`, `sndbuf_bytes`. here: see `lab.workloads`."""

    def __init__(self, net: Any, spec: dict[str, Any], here: Collection[str] | None = None) -> None:
        self._net = net
        self._spec = spec
        self._here = Here(here)
        self._flows: list[_Flow] = [_Flow(told, port_of_first(spec)) for told in spec["flows"]]
        self._early = [flow for flow in self._flows if not flow.start_ns]
        self._by_port = {flow.port: flow for flow in self._flows}
        self._listeners: dict[str, socket.socket] = {}
        self._threads: list[threading.Thread] = []
        self._go = threading.Event()
        self._lock = threading.Lock()
        self._begin_ns = 0
        self._ended = False

    def prepare(self) -> None:
        """Listen everywhere, and connect the flows that are there from the start."""
        self.listen()
        self.connect()
        self.accept()

    def listen(self) -> None:
        """Listen wherever flows end."""
        threading.stack_size(_STACK_BYTES)
        for flow in self._flows:
            if self._here.has(flow.dst) and flow.dst not in self._listeners:
                self._listeners[flow.dst] = self._listen(flow.dst)

    def connect(self) -> None:
        """Begin to connect the flows that are there from the start."""
        for flow in self._early:
            if self._here.has(flow.src):
                flow.out = self._open(flow)
                flow.out.setblocking(False)
                flow.refused = flow.out.connect_ex((self._net[flow.dst].IP(), _PORT))

    def accept(self) -> None:
        """Wait until all of these are connected; then everything but the start is done.

        Raises LoadFailed where the other end is on another machine and cannot be reached.
        """
        for flow in self._early:
            if self._here.has(flow.dst):
                self._accept(self._listeners[flow.dst])
        for flow in self._early:
            if self._here.has(flow.src):
                assert flow.out is not None
                if self._here.apart:
                    _wait_connected(flow, flow.out, self._here)
                flow.out.setblocking(True)
                self._spawn(self._send, flow)
        if len(self._early) < len(self._flows):
            for listener in self._listeners.values():
                listener.settimeout(None)
                self._spawn(self._accept_on, listener)

    def _listen(self, name: str) -> socket.socket:
        node = self._net[name]
        with node.inside():
            listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if self._spec.get("rcvbuf_bytes"):
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._spec["rcvbuf_bytes"])
        for flow in self._flows:
            if flow.dst == name and flow.listen_cc:  # ECN is agreed on by the first packets
                listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, flow.cc.encode())
                break
        listener.settimeout(self._here.timeout_s)
        bind(listener, node.IP(), _PORT)
        listener.listen(4096)
        return listener

    def _open(self, flow: _Flow) -> socket.socket:
        """Return the sender's socket of a flow, from the port that numbers it."""
        node = self._net[flow.src]
        with node.inside():
            out = socket.socket()
        if self._spec.get("sndbuf_bytes"):
            out.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._spec["sndbuf_bytes"])
        if flow.own_cc:
            out.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, flow.cc.encode())
        if flow.spells_ns is not None:
            out.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, 2 * _SPELL_CHUNK_BYTES)
        bind(out, node.IP(), flow.port)
        return out

    def _accept(self, listener: socket.socket) -> None:
        """Take the next of our connections; whoever else connects is sent away."""
        flow = None
        while flow is None:
            end, (address, port) = accepted(listener)
            flow = self._by_port.get(port)
            if flow is None or address != self._net[flow.src].IP():
                end.close()
                flow = None
        flow.into = end
        self._spawn(self._receive, flow, end)

    def _accept_on(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # the end of the load shuts the listener
            while True:
                self._accept(listener)

    def _spawn(self, function: Any, *args: Any) -> None:
        thread = threading.Thread(target=function, args=args, daemon=True)
        thread.start()
        with self._lock:
            self._threads.append(thread)

    def begin(self, start_ns: int) -> None:
        """Let every sender go; those that come later start at their instants."""
        self._begin_ns = start_ns
        for flow in self._flows:
            flow.started_ns = start_ns + flow.start_ns
        self._go.set()
        own = [flow for flow in self._flows if self._here.has(flow.src)]
        if any(flow.start_ns or flow.stop_ns is not None for flow in own):
            self._spawn(self._keep_times, own)

    def _keep_times(self, flows: list[_Flow]) -> None:
        """Start and stop flows at their instants, in order."""
        events = [(flow.start_ns, 0, flow) for flow in flows if flow.start_ns]
        events += [(flow.stop_ns, 1, flow) for flow in flows if flow.stop_ns is not None]
        for at_ns, stops, flow in sorted(events, key=lambda event: event[:2]):
            clock.sleep_until_ns(self._begin_ns + at_ns)
            if self._ended:
                return
            if stops:
                flow.cut_off()
            else:
                self._spawn(self._come, flow)

    def _come(self, flow: _Flow) -> None:
        try:
            flow.out = self._open(flow)
            flow.out.connect((self._net[flow.dst].IP(), _PORT))
        except OSError as refused:
            with self._lock:
                if not self._ended and not flow.stopped:
                    flow.failure = str(refused)
            return
        if flow.stopped:
            flow.cut_off()
        else:
            self._send(flow)

    def _send(self, flow: _Flow) -> None:
        self._go.wait()
        out = flow.out
        assert out is not None
        try:
            if flow.spells_ns is not None:
                self._send_spells(flow, out)
            else:
                _fill(out, flow.bytes)
            out.shutdown(socket.SHUT_WR)
            out.recv(1)  # the other end closes when it has read all
            with self._lock:
                if not self._ended:
                    flow.tcp_info = out.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
            out.close()
        except OSError:
            return  # the end of the load, or of the flow, closed the socket under us

    def _send_spells(self, flow: _Flow, out: socket.socket) -> None:
        """Write in the times of sending alone, and never far ahead of what goes out."""
        chunk = CHUNK[:_SPELL_CHUNK_BYTES]
        left = flow.bytes
        for from_ns, until_ns in flow.spells_ns or ():
            clock.sleep_until_ns(flow.started_ns + from_ns)
            while (now_ns := clock.now_ns()) < flow.started_ns + until_ns and left != 0:
                # a send that finds no room ends with the time of sending
                out.settimeout((flow.started_ns + until_ns - now_ns) / 1e9)
                with contextlib.suppress(socket.timeout):
                    sent = out.send(chunk if left is None else chunk[: min(left, len(chunk))])
                    left = None if left is None else left - sent
        out.settimeout(None)

    def _receive(self, flow: _Flow, end: socket.socket) -> None:
        try:
            while end.recv_into(SINK, RECEIVE_BYTES, socket.MSG_WAITALL | socket.MSG_TRUNC):
                pass
        except OSError:
            return
        with self._lock:
            if not self._ended and flow.bytes is not None:  # cut off at the end of the load is not finished
                flow.finished_ns = clock.now_ns()
        end.close()

    def finished(self) -> bool:
        """True when every flow of a given size has arrived, and there are no others; of none, never."""
        with self._lock:
            own = [flow for flow in self._flows if self._here.has(flow.dst)]
            return bool(own) and all(flow.finished_ns is not None for flow in own)

    def stop(self) -> None:
        """Take what happens from now on for no result; the connections stay."""
        with self._lock:
            self._ended = True

    def end(self) -> None:
        """Close every connection; blocked calls return."""
        self.stop()
        for end in self._ends():
            if self._here.apart:  # a host would go on sending what is in its buffers
                with contextlib.suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, CUT_OFF)
            with contextlib.suppress(OSError):  # already gone
                end.shutdown(socket.SHUT_RDWR)
        self._go.set()  # a load that never began: its senders find their sockets shut
        while True:
            with self._lock:
                waiting = [thread for thread in self._threads if thread.is_alive()]
            if not waiting:
                break
            for thread in waiting:
                thread.join(0.2)
            for end in self._ends():  # one that was just being made
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        for end in self._ends():
            end.close()

    def _ends(self) -> Iterator[socket.socket]:
        yield from self._listeners.values()
        for flow in self._flows:
            for end in (flow.out, flow.into):
                if end is not None:
                    yield end

    def outcome(self) -> dict[str, Any]:
        """Flows with their ports, and the instant their last byte was read, ns."""
        failed = [flow for flow in self._flows if flow.failure]
        if failed:
            raise RuntimeError(f"flow {failed[0].number} could not connect: {failed[0].failure}")
        return {"client": "sender", "flows": [flow.told() for flow in self._flows]}


class _Flow:
    """One flow while it runs."""

    def __init__(self, told: dict[str, Any], first: int) -> None:
        self.number, self.src, self.dst, self.cc = told["flow"], told["src"], told["dst"], told["cc"]
        self.port = first + told["flow"]
        self.start_ns, self.stop_ns = told["start_ns"], told.get("stop_ns")
        self.bytes, self.spells_ns = told["bytes"], told.get("spells_ns")
        self.own_cc, self.listen_cc = told.get("own_cc", False), told.get("listen_cc", False)
        self.out: socket.socket | None = None
        self.into: socket.socket | None = None
        self.started_ns = 0
        self.finished_ns: int | None = None
        self.tcp_info: bytes | None = None
        self.refused = 0
        self.failure = ""
        self.stopped = False

    def cut_off(self) -> None:
        """End the flow now, whatever is on its way, and if it is still connecting."""
        self.stopped = True
        if self.out is not None:
            with contextlib.suppress(OSError):
                self.out.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, CUT_OFF)
                self.out.shutdown(socket.SHUT_RDWR)  # wakes the thread that writes
            self.out.close()

    def told(self) -> dict[str, Any]:
        """Return what the records need of it."""
        return {
            "flow": self.number,
            "port": self.port,
            "finished_ns": self.finished_ns,
            "tcp_info": None if self.tcp_info is None else self.tcp_info.hex(),
        }


def _fill(out: socket.socket, size_bytes: int | None) -> None:
    """Write as much as is wanted, without end for None, as fast as the socket takes it."""
    left = size_bytes
    while left is None:
        out.sendmsg([CHUNK] * _CHUNKS)
    while left:
        whole, rest = divmod(min(left, _CHUNKS * _CHUNK_BYTES), _CHUNK_BYTES)
        left -= out.sendmsg([CHUNK] * whole + ([CHUNK[:rest]] if rest else []))


def bind(sock: socket.socket, address: str, port: int) -> None:
    """Bind a socket, or close it and raise OSError naming the port: on a real host others may have it."""
    try:
        sock.bind((address, port))
    except OSError as refused:
        sock.close()
        raise OSError(refused.errno, f"{address} port {port} cannot be had: {refused.strerror}") from refused


def accepted(listener: socket.socket) -> tuple[socket.socket, tuple[str, int]]:
    """Return the next connection and who made it. Raises LoadFailed when the listener's time is over."""
    try:
        end, (address, port) = listener.accept()
    except socket.timeout as late:  # noqa: UP041 (Python 3.8 knows no other name)
        own, number = listener.getsockname()
        raise LoadFailed(
            f"no connection came to {own} port {number} within {listener.gettimeout():g} s;"
            " a firewall between the hosts has to let it through, and nothing may translate addresses"
        ) from late
    return end, (address, port)


def _wait_connected(flow: _Flow, out: socket.socket, here: Here) -> None:
    """Wait until a connection that was begun is made. Raises LoadFailed where it is refused or late."""
    assert here.timeout_s is not None
    number = 0 if flow.refused == errno.EINPROGRESS else flow.refused
    poll = select.poll()
    poll.register(out, select.POLLOUT)
    ready = bool(poll.poll(here.timeout_s * 1000))
    number = number or (out.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) if ready else 0)
    if number or not ready:
        why = os.strerror(number) if number else f"no answer within {here.timeout_s:g} s"
        raise LoadFailed(
            f"flow {flow.number} could not connect: {why}; port {_PORT} of {flow.dst} has to be open to"
            f" {flow.src}"
        )
