"""Queue statistics of a node: length, backlog, drops and bytes of each of its qdiscs.

Not here: the meaning of the bytes, see `lab.qdisc.parse_dump`.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Collection

from lab import netlink

_TCMSG = struct.Struct("=BxxxiIII")
_INGRESS = 0xFFFFFFF1
"""TC_H_INGRESS, the parent of what is hooked in where packets come in: nothing ever waits there."""


class QueueProbe:
    """Dumps every qdisc of one namespace. Make it inside that namespace.

    interfaces: numbers; only what leaves these, on a host that has others too.
    """

    def __init__(self, interfaces: Collection[int] | None = None) -> None:
        self._interfaces = interfaces
        self._channel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        body = _TCMSG.pack(0, 0, 0, 0, 0)
        self._request = netlink.request(netlink.RTM_GETQDISC, body)

    def read(self) -> bytes:
        """Return the raw answer: netlink messages of struct tcmsg."""
        answer = netlink.dump(self._channel, self._request)
        return answer if self._interfaces is None else _only(answer, self._interfaces)

    def close(self) -> None:
        """Close the channel to the kernel."""
        self._channel.close()


def _only(answer: bytes, interfaces: Collection[int]) -> bytes:
    """Return the messages of a dump that are of queues of these interfaces, made anew."""
    kept = b""
    for kind, body in netlink.messages(answer):
        if len(body) >= _TCMSG.size:
            _family, index, _handle, parent, _info = _TCMSG.unpack_from(body)
            if index in interfaces and parent != _INGRESS:
                message = netlink.request(kind, body)
                kept += message + b"\0" * (-len(message) % 4)
    return kept
