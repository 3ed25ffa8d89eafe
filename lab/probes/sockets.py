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


_REQ_BYTECODE, _BC_S_COND, _BC_D_COND = 1, 7, 8
_CONDITION_BYTES = 16  # struct inet_diag_bc_op, struct inet_diag_hostcond, an address


def between_bytecode(own: str, other: str) -> bytes:
    """Return the program that keeps only the sockets from one address to another, any ports.

    A condition that does not hold leaps past the program's end, which refuses the
    socket (net/ipv4/inet_diag.c, inet_diag_bc_run()).
    """
    conditions = ((_BC_S_COND, own), (_BC_D_COND, other))
    program = b""
    for left, (code, address) in zip((2, 1), conditions):  # noqa: B905 (Python 3.8 has no strict)
        program += struct.pack("=BBH", code, _CONDITION_BYTES, left * _CONDITION_BYTES + 4)
        program += struct.pack("=BBxxi", socket.AF_INET, 32, -1) + socket.inet_aton(address)
    return program


class SocketProbe:
    """Dumps every TCP socket of one namespace. Make it inside that namespace.

    between: (own address, the other end's): only sockets from the one to the
    other, on a host that has sockets of its own.
    """

    def __init__(self, between: tuple[str, str] | None = None) -> None:
        self._channel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
        body = struct.pack("=BBBxI48x", socket.AF_INET, socket.IPPROTO_TCP, _ALL_EXTENSIONS, _STATES)
        if between:
            program = between_bytecode(*between)
            body += struct.pack("=HH", 4 + len(program), _REQ_BYTECODE) + program
        self._request = netlink.request(netlink.SOCK_DIAG_BY_FAMILY, body)

    def read(self) -> bytes:
        """Return the raw answer: netlink messages of struct inet_diag_msg."""
        return netlink.dump(self._channel, self._request)

    def close(self) -> None:
        """Close the channel to the kernel."""
        self._channel.close()
