"""Probes on a host that has sockets and queues of its own: only what is the load's is kept."""

from __future__ import annotations

import contextlib
import socket
import struct

import pytest

from lab import netlink, qdisc
from lab.probes import queues, sockets
from lab.probes.queues import QueueProbe

INGRESS = 0xFFFFFFF1


def queue(index: int, parent: int = 0xFFFFFFFF, options: bytes = b"") -> bytes:
    """Return the kernel's word of one qdisc."""
    body = struct.pack("=BxxxiIII", 0, index, 0x100000, parent, 0) + struct.pack("=HH6s2x", 10, 1, b"bfifo\0")
    return netlink.request(netlink.RTM_GETQDISC, body + options)


def test_queues_of_other_interfaces_are_left_out() -> None:
    done = netlink.request(netlink.NLMSG_DONE, b"\0\0\0\0")
    kept = queues._only(queue(2) + queue(3) + queue(7) + done, {3, 7})
    assert [entry["ifindex"] for entry in qdisc.parse_dump(kept)] == [3, 7]


def test_what_is_hooked_in_at_the_entry_is_no_queue() -> None:
    """It counts what comes in, beside what leaves by the queue of that interface."""
    kept = queues._only(queue(3) + queue(3, INGRESS), {3})
    assert len(qdisc.parse_dump(kept)) == 1


def test_messages_of_any_length_stay_readable() -> None:
    odd = struct.pack("=HH1s", 5, 40, b"x")
    kept = queues._only(queue(3) + queue(3, options=odd) + b"\0" * 3 + queue(3), {3})
    assert len(qdisc.parse_dump(kept)) == 3


def test_without_a_choice_every_interface_is_told() -> None:
    with contextlib.closing(QueueProbe()) as every, contextlib.closing(QueueProbe([])) as none:
        assert len(every.read()) > 0
        assert none.read() == b""


@pytest.mark.parametrize("other", ["127.77.1.9", "10.1.2.3"])
def test_sockets_between_two_addresses_are_told_apart(other: str) -> None:
    program = sockets.between_bytecode("127.77.1.1", other)
    assert len(program) == 32
    codes = [program[at : at + 4] for at in (0, 16)]
    assert codes == [struct.pack("=BBH", 7, 16, 36), struct.pack("=BBH", 8, 16, 20)]
    assert program[28:32] == socket.inet_aton(other)
