"""Queue statistics of a node: length, backlog, drops and bytes of each of its qdiscs.

Not here: the meaning of the bytes, see `lab.qdisc.parse_dump`.
"""

from __future__ import annotations

import socket
import struct

from lab import netlink


class QueueProbe:
    """Dumps every qdisc of one namespace. Make it inside that namespace."""

    def __init__(self) -> None:
        self._channel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        body = struct.pack("=BxxxiIII", 0, 0, 0, 0, 0)
        self._request = netlink.request(netlink.RTM_GETQDISC, body)

    def read(self) -> bytes:
        """Return the raw answer: netlink messages of struct tcmsg."""
        return netlink.dump(self._channel, self._request)

    def close(self) -> None:
        """Close the channel to the kernel."""
        self._channel.close()
