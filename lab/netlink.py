"""Netlink messages: packing requests, walking headers and attributes.

Not here: opening sockets (the agent does, inside a namespace) and the meaning
of what the messages carry (see `tcpinfo`, `qdisc`). Standard library only, since
the agent imports this inside the emulated kernel.

Layouts: include/uapi/linux/netlink.h, rtnetlink.h, pkt_sched.h (Linux 6.12).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Protocol

NLMSG_ERROR = 2
NLMSG_DONE = 3
NLM_F_REQUEST = 0x001
NLM_F_DUMP = 0x300

RTM_GETLINK = 18
RTM_GETQDISC = 38
RTM_GETTCLASS = 42
SOCK_DIAG_BY_FAMILY = 20

_HEADER = struct.Struct("=IHHII")
_ATTR = struct.Struct("=HH")


def request(kind: int, body: bytes, flags: int = NLM_F_REQUEST | NLM_F_DUMP) -> bytes:
    """Return one netlink message: header and body."""
    return _HEADER.pack(_HEADER.size + len(body), kind, flags, 1, 0) + body


def messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (type, body) of every message in a datagram or in several joined ones.

    Raises ValueError where a length runs past the end: a torn record must not
    look like a short one.
    """
    offset = 0
    while offset < len(data):
        if offset + _HEADER.size > len(data):
            raise ValueError(f"netlink header torn at byte {offset}")
        length, kind, _flags, _seq, _pid = _HEADER.unpack_from(data, offset)
        if length < _HEADER.size or offset + length > len(data):
            raise ValueError(f"netlink message of {length} bytes torn at byte {offset}")
        yield kind, data[offset + _HEADER.size : offset + length]
        offset += (length + 3) & ~3


def attributes(body: bytes, offset: int = 0) -> dict[int, bytes]:
    """Return {attribute type: payload}; of a repeated attribute the last stays."""
    found = {}
    while offset + _ATTR.size <= len(body):
        length, kind = _ATTR.unpack_from(body, offset)
        if length < _ATTR.size or offset + length > len(body):
            raise ValueError(f"netlink attribute {kind} of {length} bytes torn at byte {offset}")
        found[kind & 0x3FFF] = body[offset + _ATTR.size : offset + length]
        offset += (length + 3) & ~3
    return found


_MOST_BYTES = 1 << 15
"""Of one answer: netlink_dump() makes none longer (net/netlink/af_netlink.c). A larger buffer would be
mapped and given back at every call, which costs more than the call."""


class Channel(Protocol):
    """What a dump needs of a netlink socket."""

    def send(self, data: bytes, /) -> int:
        """As of a socket."""
        ...

    def recv(self, size: int, /) -> bytes:
        """As of a socket."""
        ...


def dump(channel: Channel, message: bytes) -> bytes:
    """Send one dump request; return every message of the answer, NLMSG_DONE last.

    Raises OSError with the kernel's number where it refuses the request.
    """
    channel.send(message)
    parts = []
    while True:
        part = channel.recv(_MOST_BYTES)
        parts.append(part)
        for kind, body in messages(part):
            if kind == NLMSG_ERROR:
                (number,) = struct.unpack_from("=i", body)
                raise OSError(-number, "the kernel refused a netlink dump")
            if kind == NLMSG_DONE:
                return b"".join(parts)
