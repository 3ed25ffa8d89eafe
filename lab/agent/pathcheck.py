"""The path as it really is, measured before the load: RTT, rate, drops.

Method. RTT: one echo request at a time; the receiver's kernel answers, and what
the same costs to oneself is taken off. Rate: a train of full packets, sent in one go; the
receiver's kernel stamps each arrival, and the second half of the train over the
time that it took is the rate; packets are numbered, so lost ones count.
Not here: judging it (see `lab.pathcheck`).
"""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
import time
from typing import Any

_TRAIN_PORT = 9
_ECHO_REQUEST, _ECHO_REPLY, _PING_ID = 8, 0, 7
_IP_HEADER_BYTES = 20
_UDP_SEGMENT, _MOST_SEGMENTS, _MOST_DATAGRAM_BYTES = 103, 64, 65000  # include/uapi/linux/udp.h
_SO_TIMESTAMPNS = 35  # numbers of include/uapi/asm-generic/socket.h that Python does not name
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_STAMP = struct.Struct("=qq")
_IP_UDP_HEADER_BYTES = 28


def stamped(sock: socket.socket) -> tuple[bytes, int] | None:
    """Return (first bytes, kernel's arrival time in ns) of a datagram, None after the time-out."""
    try:
        data, control, _flags, _from = sock.recvmsg(64, socket.CMSG_SPACE(_STAMP.size))
    except socket.timeout:  # noqa: UP041 (Python 3.8 knows no other name)
        return None
    for level, kind, value in control:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS:
            seconds, nanoseconds = _STAMP.unpack(value)
            return data, seconds * 10**9 + nanoseconds
    return None


def measure(net: Any, spec: dict[str, Any]) -> dict[str, Any]:
    """Return `rtts_s` (answered pings), `train` ([number, ns] of each arrival), `train_sent_ns`.

    spec: `sender`, `receiver`, `timeout_s`, `mtu_bytes`, `pings`, `train_packets` (0: no train, None),
    `trains`. train_sent_ns: how long it took to hand the train over; a sender
    slower than the link measures itself. more_trains: [train, train_sent_ns] of
    the second train and on, where there are any.
    """
    sender, receiver = net[spec["sender"]], net[spec["receiver"]]
    rtts = _pings(sender, receiver.IP(), spec)  # first: a train leaves the shapers in debt
    own = min(_pings(sender, sender.IP(), spec))  # what asking costs, without a path
    trains = [_train(sender, receiver, spec) for _ in range(spec["trains"])] if spec["train_packets"] else []
    train, sent_ns = trains[0] if trains else (None, 0)
    told = {"rtts_s": [rtt - own for rtt in rtts], "train": train, "train_sent_ns": sent_ns}
    return {**told, "more_trains": trains[1:]} if trains[1:] else told


def _pings(sender: Any, address: str, spec: dict[str, Any]) -> list[float]:
    """Return the RTTs of echo requests, s; the kernel there answers, no process. RFC 792."""
    rtts = []
    with sender.inside():
        pinger = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    with pinger:
        pinger.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        pinger.settimeout(spec["timeout_s"])
        for number in range(spec["pings"]):
            body = struct.pack(">HH", _PING_ID, number)
            message = (
                struct.pack(">BBH", _ECHO_REQUEST, 0, ~sum((_ECHO_REQUEST << 8, _PING_ID, number)) & 0xFFFF)
                + body
            )
            sent_ns = time.time_ns()
            pinger.sendto(message, (address, 0))
            arrival = stamped(pinger)
            while arrival is not None and arrival[0][_IP_HEADER_BYTES] != _ECHO_REPLY:
                arrival = stamped(pinger)  # to oneself the request is heard too
            if arrival is not None:
                rtts.append((arrival[1] - sent_ns) / 1e9)
    return rtts


def _train(sender: Any, receiver: Any, spec: dict[str, Any]) -> tuple[list[tuple[int, int]], int]:
    """Send numbered full packets in one go; return their arrivals and how long sending took."""
    train = Train(spec["train_packets"], spec["mtu_bytes"], _TRAIN_PORT)
    with receiver.inside():
        sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with sender.inside():
        source = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with sink, source:
        train.listen(sink, receiver.IP(), spec["timeout_s"])
        sent_ns = train.send(source, receiver.IP())
        return train.arrivals(sink), sent_ns


class Train:
    """Numbered packets of `mtu_bytes` that are sent in one go, as fast as the sender can.

    burst: how many of them one call may send. That is faster than most links; but
    where such a burst is never taken apart on its way, as between virtual machines,
    its packets arrive at one instant and tell nothing.
    """

    def __init__(self, packets: int, mtu_bytes: int, port: int, burst: int = _MOST_SEGMENTS) -> None:
        self._burst = burst
        self._packets, self._size, self._port = packets, mtu_bytes - _IP_UDP_HEADER_BYTES, port
        self._room_bytes = 4 * packets * mtu_bytes + 2**20

    def listen(self, sink: socket.socket, address: str, timeout_s: float) -> None:
        """Make a UDP socket ready for a train; `timeout_s`: how long to wait for its next packet."""
        sink.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        sink.settimeout(timeout_s)
        sink.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, self._room_bytes)
        sink.bind((address, self._port))

    def send(self, source: socket.socket, address: str) -> int:
        """Send the train through a UDP socket; return how long that took, ns.

        Where the kernel (before Linux 4.18) or its interface cannot send several at a
        call, it is one.
        """
        source.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, self._room_bytes)
        if self._burst > 1:
            with contextlib.suppress(OSError):
                source.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, self._size)
                return self._hand_over(source, address, min(self._burst, _MOST_DATAGRAM_BYTES // self._size))
            with contextlib.suppress(OSError):
                source.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, 0)
        return self._hand_over(source, address, 1)

    def _hand_over(self, source: socket.socket, address: str, burst: int) -> int:
        numbered = [struct.pack("=I", number).ljust(self._size, b"\0") for number in range(self._packets)]
        sends = [b"".join(numbered[first : first + burst]) for first in range(0, self._packets, burst)]
        began_ns = time.time_ns()
        for data in sends:
            source.sendto(data, (address, self._port))
        return time.time_ns() - began_ns

    def arrivals(self, sink: socket.socket) -> list[tuple[int, int]]:
        """Return (number, ns by the receiver's time of day) of each packet that came, in order of arrival."""
        found: list[tuple[int, int]] = []
        for _ in range(self._packets):
            arrival = stamped(sink)
            if arrival is None:
                break
            found.append((int.from_bytes(arrival[0][:4], sys.byteorder), arrival[1]))
        return found
