"""Socket statistics of a node: all that `ss -tinm` can show, straight from inet_diag.

Not here: the meaning of the bytes, see `lab.tcpinfo`. Reading the kernel's own
structures costs two system calls a sample; starting `ss` costs a process.

Source: sock_diag(7), include/uapi/linux/inet_diag.h (struct inet_diag_req_v2).
"""

from __future__ import annotations

import socket
import struct

from lab import netlink

_NETLINK_SOCK_DIAG = 4
_ALL_EXTENSIONS = 0xFF  # memory, tcp_info, congestion control and its internals, skmem
_TCP_TIME_WAIT, _TCP_CLOSE, _TCP_LISTEN = 6, 7, 10
_STATES = 0xFFF & ~(1 << _TCP_TIME_WAIT | 1 << _TCP_CLOSE | 1 << _TCP_LISTEN)


class SocketProbe:
    """Dumps every TCP socket of one namespace. Make it inside that namespace."""

    def __init__(self) -> None:
        self._channel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
        body = struct.pack("=BBBxI48x", socket.AF_INET, socket.IPPROTO_TCP, _ALL_EXTENSIONS, _STATES)
        self._request = netlink.request(netlink.SOCK_DIAG_BY_FAMILY, body)

    def read(self) -> bytes:
        """Return the raw answer: netlink messages of struct inet_diag_msg."""
        return netlink.dump(self._channel, self._request)
