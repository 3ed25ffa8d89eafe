"""The path as it really is, measured before the load: RTT, rate, drops.

Method. RTT: one small datagram at a time is echoed by the receiver; the least
of the answers counts. Rate: a train of full packets, sent in one go; the
receiver's kernel stamps each arrival, and what came after the shaper's burst
over the time that it took is the rate; packets are numbered, so lost ones count.
Not here: judging it (see `lab.pathcheck`).
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from typing import Any

_ECHO_PORT, _TRAIN_PORT = 7, 9
_SO_TIMESTAMPNS = 35  # numbers of include/uapi/asm-generic/socket.h that Python does not name
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_STAMP = struct.Struct("=qq")
_PINGS = 3
_IP_UDP_HEADER_BYTES = 28


def _stamped(sock: socket.socket, size: int) -> tuple[int, int] | None:
    """Return (first four bytes, kernel's arrival time in ns) of a datagram, None after the time-out."""
    try:
        data, control, _flags, _from = sock.recvmsg(size, socket.CMSG_SPACE(_STAMP.size))
    except TimeoutError:
        return None
    for level, kind, value in control:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS:
            seconds, nanoseconds = _STAMP.unpack(value)
            return struct.unpack_from("=I", data.ljust(4, b"\0"))[0], seconds * 10**9 + nanoseconds
    return None


def measure(net: Any, spec: dict[str, Any]) -> dict[str, Any]:
    """Return `rtts_s` (answered pings) and `train` ([number, ns] of each arrival).

    spec: `sender`, `receiver`, `timeout_s`, `mtu_bytes`, `train_packets`.
    """
    sender, receiver = net[spec["sender"]], net[spec["receiver"]]
    payload = spec["mtu_bytes"] - _IP_UDP_HEADER_BYTES

    def bound(node: Any, port: int) -> socket.socket:
        with node.inside():
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        sock.settimeout(spec["timeout_s"])
        sock.bind((node.IP(), port))
        return sock

    with bound(receiver, _ECHO_PORT) as echo, bound(sender, 0) as pinger:

        def answer() -> None:
            while True:
                data, where = echo.recvfrom(64)
                if not data:
                    return
                echo.sendto(data, where)

        echo.settimeout(None)
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        rtts = []
        for _ in range(_PINGS):
            sent_ns = time.time_ns()
            pinger.sendto(b"wanlab", (receiver.IP(), _ECHO_PORT))
            arrival = _stamped(pinger, 64)
            if arrival is not None:
                rtts.append((arrival[1] - sent_ns) / 1e9)
        with receiver.inside(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as local:
            local.sendto(b"", (receiver.IP(), _ECHO_PORT))
        thread.join()

    train: list[tuple[int, int]] = []
    with bound(receiver, _TRAIN_PORT) as sink, bound(sender, 0) as source:
        sink.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 4 * spec["train_packets"] * spec["mtu_bytes"])
        source.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, 4 * spec["train_packets"] * spec["mtu_bytes"])
        for number in range(spec["train_packets"]):
            source.sendto(struct.pack("=I", number).ljust(payload, b"\0"), (receiver.IP(), _TRAIN_PORT))
        for _ in range(spec["train_packets"]):
            arrival = _stamped(sink, 4)
            if arrival is None:
                break
            train.append(arrival)
    return {"rtts_s": rtts, "train": train}
