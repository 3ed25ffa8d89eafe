"""UDP at a constant rate, one way: a flow that does not yield, or a probe of the delay.

Each packet carries its number and the instant it was sent; the receiver's
kernel stamps its arrival. All hosts of a lab have one clock, so a delay one
way is the difference.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from typing import Any

from lab import clock

_PORTS = {"udp": 5003, "probe": 5004}
_HEADERS_BYTES = 28
_STAMP = struct.Struct("=qq")
_HEAD = struct.Struct("=Iq")
_SO_TIMESTAMPNS = 35  # include/uapi/asm-generic/socket.h
_SO_RCVBUFFORCE = 33
_ROOM_BYTES = 2**25
LOST = -1


class Stream:
    """spec: `kind` ("udp" or "probe"), `src`, `dst`, `gap_ns` between packets, `ip_bytes` of each."""

    def __init__(self, net: Any, spec: dict[str, Any]) -> None:
        self.kind: str = spec["kind"]
        self._gap_ns: int = spec["gap_ns"]
        self._size = spec["ip_bytes"] - _HEADERS_BYTES
        self._sent_ns: list[int] = []
        self._arrived_ns: dict[int, int] = {}
        self._ended = threading.Event()
        source, sink = net[spec["src"]], net[spec["dst"]]
        self._to = (sink.IP(), _PORTS[self.kind])
        with sink.inside():
            self._sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with source.inside():
            self._source = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sink.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._sink.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _ROOM_BYTES)
        self._sink.bind(self._to)
        self._threads = [threading.Thread(target=self._receive, daemon=True)]
        self._threads[0].start()

    def begin(self, start_ns: int, end_ns: int) -> None:
        """Send from one instant to another."""
        self._threads.append(threading.Thread(target=self._send, args=(start_ns, end_ns), daemon=True))
        self._threads[-1].start()

    def _send(self, start_ns: int, end_ns: int) -> None:
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

    def _receive(self) -> None:
        space = socket.CMSG_SPACE(_STAMP.size)
        with contextlib.suppress(OSError):
            while True:
                data, control, _flags, _from = self._sink.recvmsg(_HEAD.size, space)
                if len(data) < _HEAD.size:
                    return
                number, _sent = _HEAD.unpack(data)
                for level, kind, value in control:
                    if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS:
                        seconds, nanoseconds = _STAMP.unpack(value)
                        self._arrived_ns[number] = seconds * 10**9 + nanoseconds

    def end(self) -> None:
        """Stop sending and receiving."""
        self._ended.set()
        for thread in self._threads[1:]:
            thread.join()
        with contextlib.suppress(OSError):
            self._sink.shutdown(socket.SHUT_RD)  # wakes the receiver
        self._threads[0].join()
        self._source.close()
        self._sink.close()

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
