"""UDP at a constant rate, one way: a flow that does not yield, or a probe of the delay.

Each packet carries its number and the instant it was sent; the receiver's
kernel stamps its arrival. The hosts of an emulated network have one clock, so a
delay one way is the difference. Machines of their own have a clock each, which
nothing here can set: there the least delay that was seen counts as half of the
base RTT, and the others by how much longer they took (see `joined`).
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lab import clock
from lab.workloads import Here

_PORTS = {"udp": 5003, "probe": 5004}
_HEADERS_BYTES = 28
_STAMP = struct.Struct("=qq")
_HEAD = struct.Struct("=Iq")
_SO_TIMESTAMPNS = 35  # include/uapi/asm-generic/socket.h
_SO_RCVBUFFORCE = 33
_ROOM_BYTES = 2**25
LOST = -1


class Stream:
    """spec: `kind` ("udp" or "probe"), `src`, `dst`, `gap_ns` between packets, `ip_bytes` of each.

    here: names of the nodes that are on this machine, None for all.
    """

    def __init__(self, net: Any, spec: dict[str, Any], here: Collection[str] | None = None) -> None:
        self.kind: str = spec["kind"]
        self._gap_ns: int = spec["gap_ns"]
        self._size = spec["ip_bytes"] - _HEADERS_BYTES
        self._sent_ns: list[int] = []
        self._arrived_ns: dict[int, int] = {}
        self._zero_ns = 0
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._source: socket.socket | None = None
        self._sink: socket.socket | None = None
        source, sink = net[spec["src"]], net[spec["dst"]]
        self._from, self._to = source.IP(), (sink.IP(), _PORTS[self.kind])
        if Here(here).has(spec["dst"]):
            with sink.inside():
                self._sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        if Here(here).has(spec["src"]):
            with source.inside():
                self._source = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            if Here(here).apart:  # a machine has other addresses too
                self._source.bind((self._from, 0))
        if self._sink is not None:
            self._sink.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            self._sink.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _ROOM_BYTES)
            self._sink.bind(self._to)
            self._receiver = threading.Thread(target=self._receive, args=(self._sink,), daemon=True)
            self._receiver.start()

    def begin(self, start_ns: int, end_ns: int) -> None:
        """Send from one instant to another, where the sender is."""
        if self._source is not None:
            self._threads.append(threading.Thread(target=self._send, args=(start_ns, end_ns), daemon=True))
            self._threads[-1].start()

    def _send(self, start_ns: int, end_ns: int) -> None:
        assert self._source is not None
        at_ns, padding = start_ns, bytes(self._size - _HEAD.size)
        offset_ns = time.time_ns() - clock.now_ns()  # arrivals are stamped with the time of day
        self._zero_ns = start_ns + offset_ns
        while at_ns < end_ns and not self._ended.is_set():
            sent_ns = clock.now_ns() + offset_ns
            with contextlib.suppress(OSError):  # no room in the host's own queue: lost like any other
                self._source.sendto(_HEAD.pack(len(self._sent_ns), sent_ns) + padding, self._to)
            self._sent_ns.append(sent_ns)
            at_ns += self._gap_ns
            clock.sleep_until_ns(at_ns)

    def _receive(self, sink: socket.socket) -> None:
        space = socket.CMSG_SPACE(_STAMP.size)
        with contextlib.suppress(OSError):
            while True:
                data, control, _flags, sender = sink.recvmsg(_HEAD.size, space)
                if self._ended.is_set() and len(data) < _HEAD.size:
                    return
                if len(data) < _HEAD.size or sender[0] != self._from:
                    continue  # on a real network anybody may send something
                number, _sent = _HEAD.unpack(data)
                for level, kind, value in control:
                    if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS:
                        seconds, nanoseconds = _STAMP.unpack(value)
                        self._arrived_ns[number] = seconds * 10**9 + nanoseconds

    def stop(self) -> None:
        """Stop sending; what is on its way still arrives."""
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def end(self) -> None:
        """Stop sending and receiving."""
        self.stop()
        if self._sink is not None:
            with contextlib.suppress(OSError):
                self._sink.shutdown(socket.SHUT_RD)  # wakes the receiver
            self._receiver.join()
        for end in (self._source, self._sink):
            if end is not None:
                end.close()

    def sent(self) -> list[int]:
        """Return the instant at which each packet was sent, ns from the start of the load."""
        return [sent - self._zero_ns for sent in self._sent_ns]

    def arrived(self) -> dict[int, int]:
        """Return {number of a packet: its arrival}, ns by the receiver's time of day."""
        return dict(self._arrived_ns)

    def delays(self) -> tuple[str, int, list[tuple[int, int]]]:
        """Return (kind, -1, [(sent, took)]), ns; sent counts from the load's start, took is LOST for lost."""
        return (
            self.kind,
            -1,
            [
                (
                    sent - self._zero_ns,
                    self._arrived_ns[number] - sent if number in self._arrived_ns else LOST,
                )
                for number, sent in enumerate(self._sent_ns)
            ],
        )


def joined(sent: Sequence[int], arrived: Mapping[int, int], least_ns: int) -> list[tuple[int, int]]:
    """Return [(sent, took)] of a stream between two clocks, ns; took is LOST for lost.

    sent: instants by the one clock; arrived: {number: instant} by the other, of
    which nothing is known but that it runs as fast. least_ns: what the least
    delay counts as, half of the base RTT. A drift of the clocks against each
    other stays in the delays: 1 ms in 10 s at 100 parts in a million.
    """
    took = {number: at_ns - sent[number] for number, at_ns in arrived.items() if number < len(sent)}
    least = min(took.values(), default=0)
    return [
        (at_ns, took[number] - least + least_ns if number in took else LOST)
        for number, at_ns in enumerate(sent)
    ]
