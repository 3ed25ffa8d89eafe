"""The path as it really is, measured before the load: RTT, rate, drops.

Method. RTT: one echo request at a time; the receiver's kernel answers, and what
the same costs to oneself is taken off. Rate: a train of full packets, sent in one go; the
receiver's kernel stamps each arrival, and the second half of the train over the
time that it took is the rate; packets are numbered, so lost ones count.
Not here: judging it (see `lab.pathcheck`).
"""

from __future__ import annotations

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
_PINGS = 3
_IP_UDP_HEADER_BYTES = 28


def _stamped(sock: socket.socket) -> tuple[bytes, int] | None:
    """Return (first bytes, kernel's arrival time in ns) of a datagram, None after the time-out."""
    try:
        data, control, _flags, _from = sock.recvmsg(64, socket.CMSG_SPACE(_STAMP.size))
    except TimeoutError:
        return None
    for level, kind, value in control:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS:
            seconds, nanoseconds = _STAMP.unpack(value)
            return data, seconds * 10**9 + nanoseconds
    return None


def measure(net: Any, spec: dict[str, Any]) -> dict[str, Any]:
    """Return `rtts_s` (answered pings), `train` ([number, ns] of each arrival), `train_sent_ns`.

    spec: `sender`, `receiver`, `timeout_s`, `mtu_bytes`, `train_packets` (0: no train, None).
    train_sent_ns: how long it took to hand the train over; a sender slower than
    the link measures itself.
    """
    sender, receiver = net[spec["sender"]], net[spec["receiver"]]
    rtts = _pings(sender, receiver.IP(), spec["timeout_s"])  # first: a train leaves the shapers in debt
    own = min(_pings(sender, sender.IP(), spec["timeout_s"]))  # what asking costs, without a path
    train, sent_ns = _train(sender, receiver, spec) if spec["train_packets"] else (None, 0)
    return {"rtts_s": [rtt - own for rtt in rtts], "train": train, "train_sent_ns": sent_ns}


def _pings(sender: Any, address: str, timeout_s: float) -> list[float]:
    """Return the RTTs of echo requests, s; the kernel there answers, no process. RFC 792."""
    rtts = []
    with sender.inside():
        pinger = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    with pinger:
        pinger.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        pinger.settimeout(timeout_s)
        for number in range(_PINGS):
            body = struct.pack(">HH", _PING_ID, number)
            message = (
                struct.pack(">BBH", _ECHO_REQUEST, 0, ~sum((_ECHO_REQUEST << 8, _PING_ID, number)) & 0xFFFF)
                + body
            )
            sent_ns = time.time_ns()
            pinger.sendto(message, (address, 0))
            arrival = _stamped(pinger)
            while arrival is not None and arrival[0][_IP_HEADER_BYTES] != _ECHO_REPLY:
                arrival = _stamped(pinger)  # to oneself the request is heard too
            if arrival is not None:
                rtts.append((arrival[1] - sent_ns) / 1e9)
    return rtts


def _train(sender: Any, receiver: Any, spec: dict[str, Any]) -> tuple[list[tuple[int, int]], int]:
    """Send numbered full packets in one go; return their arrivals and how long sending took."""
    size = spec["mtu_bytes"] - _IP_UDP_HEADER_BYTES
    count = spec["train_packets"]
    burst = min(_MOST_SEGMENTS, _MOST_DATAGRAM_BYTES // size)
    numbered = [struct.pack("=I", number).ljust(size, b"\0") for number in range(count)]
    sends = [b"".join(numbered[first : first + burst]) for first in range(0, count, burst)]
    with receiver.inside():
        sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with sender.inside():
        source = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    arrivals: list[tuple[int, int]] = []
    with sink, source:
        sink.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        sink.settimeout(spec["timeout_s"])
        sink.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 4 * count * spec["mtu_bytes"] + 2**20)
        source.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, 4 * count * spec["mtu_bytes"] + 2**20)
        source.setsockopt(
            socket.IPPROTO_UDP, _UDP_SEGMENT, size
        )  # one call, many packets: faster than the link
        sink.bind((receiver.IP(), _TRAIN_PORT))
        began_ns = time.time_ns()
        for data in sends:
            source.sendto(data, (receiver.IP(), _TRAIN_PORT))
        sent_ns = time.time_ns() - began_ns
        for _ in range(count):
            arrival = _stamped(sink)
            if arrival is None:
                break
            arrivals.append((int.from_bytes(arrival[0][:4], sys.byteorder), arrival[1]))
    return arrivals, sent_ns
