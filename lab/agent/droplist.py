"""Dropping an exact list of packets, by number, from what leaves one interface.

Counted, from 1, are the IPv4 TCP packets that carry payload, in the order in
which they leave: those of all flows together, and what is sent again is counted
again, and dropped again where its new number is on the list. SYN, FIN and
acknowledgements without payload, UDP and ICMP are neither counted nor dropped.

Put it on a node that forwards. With segmentation offloads on, a packet that
stands for many counts as one and goes as a whole; and on a sending host's own
interface that is so with offloads off as well, since TCP hands over such packets
always and they are cut up only after this place (validate_xmit_skb()).

A BPF program does it, as classifier of the interface's `clsact`. That runs
before the interface's own queue (`__dev_queue_xmit()`, net/core/dev.c): on the
interface of a delay line it drops before the delay, in front of a shaper before
the shaper, so a packet takes none of the rate that it would have taken behind
it. The packet vanishes as on a wire: nobody is told, not even a TCP on the same
host, and no drop counter of an interface or a queue moves; `dropped` says what
was dropped. Ethernet only; IPv4 without VLAN tags.

Needs Linux 5.12 with CONFIG_BPF_SYSCALL, CONFIG_NET_CLS_ACT, CONFIG_NET_CLS_BPF
and CONFIG_NET_SCH_INGRESS, and root. Sources: net/sched/cls_bpf.c,
include/uapi/linux/pkt_cls.h and pkt_sched.h (Linux 6.12).
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Sequence

from lab import netlink
from lab.agent import bpf

MOST_NUMBERS = 100_000

_ETHERNET = 14
_IP_FRAGMENT_OFFSET = 0x1FFF
_TCP = 6
_STOLEN, _NEXT_FILTER = 4, -1
"""TC_ACT_STOLEN: gone, and its sender hears of success; SHOT would tell it. TC_ACT_UNSPEC."""

_NAME = "wanlab_drop"
_WHAT_FAILS = "packets cannot be dropped by number"

_RTM_NEWQDISC, _RTM_NEWTFILTER, _RTM_GETTFILTER = 36, 44, 46
_ACK, _CREATE, _EXCLUSIVE = 0x4, 0x400, 0x200
_CLSACT, _CLSACT_HANDLE, _CLSACT_EGRESS = 0xFFFFFFF1, 0xFFFF0000, 0xFFFFFFF3
_TCA_KIND, _TCA_OPTIONS = 1, 2
_TCA_BPF_FD, _TCA_BPF_NAME, _TCA_BPF_FLAGS = 6, 7, 8
_DIRECT_ACTION = struct.pack("=I", 1)
_PRIORITY = 100
_INFO = _PRIORITY << 16 | socket.htons(0x0800)
"""Priority among the filters, and ETH_P_IP: other packets do not come to the program."""


class NotAttachedError(RuntimeError):
    """A drop list could not be set up, or does not read back."""


def program(counter: int, numbers: int) -> list[bpf.Instruction | str]:
    """Return the classifier. counter, numbers: descriptors of its two maps.

    counter: array of one, the packets counted. numbers: hash table, the packets
    to drop; the value of each becomes 1 when it is.
    """
    return [
        bpf.copy(bpf.R6, bpf.R1),  # the packet, where loads look for it
        # TCP, and the fragment that has its header
        bpf.load_packet(bpf.BYTE, _ETHERNET + 9),
        bpf.jump_unless_equal(bpf.R0, _TCP, "pass"),
        bpf.load_packet(bpf.HALF, _ETHERNET + 6),
        bpf.jump_if_bits(bpf.R0, _IP_FRAGMENT_OFFSET, "pass"),
        # R7 = bytes of the IP header: its low four bits count words of 4 bytes
        bpf.load_packet(bpf.BYTE, _ETHERNET),
        bpf.keep_bits(bpf.R0, 0x0F),
        bpf.shift_left(bpf.R0, 2),
        bpf.copy(bpf.R7, bpf.R0),
        # R8 = bytes of the TCP header: the high four bits count words
        bpf.load_packet_from(bpf.BYTE, bpf.R7, _ETHERNET + 12),
        bpf.keep_bits(bpf.R0, 0xF0),
        bpf.shift_right(bpf.R0, 2),
        bpf.copy(bpf.R8, bpf.R0),
        # payload = total length - both headers; the frame may be padded and says nothing
        bpf.load_packet(bpf.HALF, _ETHERNET + 2),
        bpf.subtract(bpf.R0, bpf.R7),
        bpf.subtract(bpf.R0, bpf.R8),
        bpf.jump_unless_above(bpf.R0, 0, "pass"),
        # R1 = this packet's number
        *bpf.load_map_value(bpf.R2, counter),
        bpf.set_constant(bpf.R1, 1),
        bpf.fetch_add(bpf.R2, 0, bpf.R1),
        bpf.add_constant(bpf.R1, 1),
        # is it on the list?
        bpf.store(bpf.R10, -8, bpf.R1),
        *bpf.load_map(bpf.R1, numbers),
        bpf.copy(bpf.R2, bpf.R10),
        bpf.add_constant(bpf.R2, -8),
        bpf.call(bpf.MAP_LOOKUP_ELEM),
        bpf.jump_if_equal(bpf.R0, 0, "pass"),
        # it is: note that, and drop
        bpf.store_constant(bpf.R0, 0, 1),
        bpf.set_constant(bpf.R0, _STOLEN),
        bpf.leave(),
        "pass",
        bpf.set_constant(bpf.R0, _NEXT_FILTER),
        bpf.leave(),
    ]


class DropList:
    """A list at work on an interface; it works as long as the interface is there. See `attach`."""

    def __init__(self, numbers: Sequence[int]) -> None:
        """See `attach`; nothing drops yet."""
        self._asked = sorted(set(numbers))
        if len(self._asked) > MOST_NUMBERS:
            raise ValueError(
                f"at most {MOST_NUMBERS} packets can be dropped by number, not {len(self._asked)}"
            )
        if self._asked and not 1 <= self._asked[0] <= self._asked[-1] < 2**63:
            raise ValueError(f"packets are counted from 1 to 2^63 - 1: {self._asked[0]} to {self._asked[-1]}")
        self._counter = bpf.Map.array(1)
        self._numbers = bpf.Map.hash_table(max(1, len(self._asked)))
        self.reset()

    def load(self) -> int:
        """Load the program; return its descriptor."""
        told = bpf.assemble(program(self._counter.fd, self._numbers.fd))
        return bpf.load(bpf.SCHED_CLS, _NAME, told)

    def reset(self) -> None:
        """Count from 1 again: the next packet with payload is the first, and nothing was dropped."""
        self._numbers.write(dict.fromkeys(self._asked, 0))
        self._counter.write({0: 0})

    def counted(self) -> int:
        """Return how many packets with payload came by, dropped ones too."""
        return self._counter.read()[0]

    def dropped(self) -> list[int]:
        """Return the numbers of the packets that were dropped, ascending."""
        return [number for number, gone in self._numbers.read().items() if gone]

    def close(self) -> None:
        """Stop watching; the interface goes on dropping."""
        self._counter.close()
        self._numbers.close()


def attach(interface_name: str, numbers: Sequence[int]) -> DropList:
    """Drop the packets of these numbers from now on; counting starts at once, and anew at `DropList.reset`.

    interface_name: an Ethernet interface of the namespace that the thread is in.
    numbers: from 1, in any order, up to `MOST_NUMBERS`; none only counts.
    Raises NotAttachedError, which names what the kernel lacks; ValueError for numbers.
    """
    try:
        index = socket.if_nametoindex(interface_name)
    except OSError as missing:
        raise NotAttachedError(f"{interface_name}: there is no such interface here") from missing
    try:
        drops = DropList(numbers)
        handle = drops.load()
    except OSError as refused:
        raise NotAttachedError(f"{interface_name}: {_WHAT_FAILS}: {refused.strerror}") from refused
    try:
        _attach(interface_name, index, handle)
    finally:
        os.close(handle)  # the filter holds it
    return drops


def _attach(interface_name: str, index: int, handle: int) -> None:
    """Make the interface's clsact, if it has none, and put the program there; then look for it."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as channel:
        clsact = _tcmsg(index, _CLSACT_HANDLE, _CLSACT) + _attribute(_TCA_KIND, b"clsact\0")
        try:
            _tell(channel, _RTM_NEWQDISC, clsact)
        except OSError as refused:
            if refused.errno != errno.EEXIST:
                raise _not_attached(interface_name, "clsact", "CONFIG_NET_SCH_INGRESS", refused) from refused
        options = (
            _attribute(_TCA_BPF_FD, struct.pack("=I", handle))
            + _attribute(_TCA_BPF_NAME, f"{_NAME}\0".encode())
            + _attribute(_TCA_BPF_FLAGS, _DIRECT_ACTION)
        )
        kind = _attribute(_TCA_KIND, b"bpf\0")
        wanted = _tcmsg(index, 0, _CLSACT_EGRESS, _INFO) + kind + _attribute(_TCA_OPTIONS, options)
        try:
            _tell(channel, _RTM_NEWTFILTER, wanted)
        except OSError as refused:
            raise _not_attached(interface_name, "cls_bpf", "CONFIG_NET_CLS_BPF", refused) from refused
        there = netlink.dump(channel, netlink.request(_RTM_GETTFILTER, _tcmsg(index, 0, _CLSACT_EGRESS)))
    if not any(_is_ours(body) for _kind, body in netlink.messages(there)):
        raise NotAttachedError(f"{interface_name}: the filter that drops by number does not read back")


def _not_attached(interface_name: str, what: str, option: str, refused: OSError) -> NotAttachedError:
    reason = os.strerror(refused.errno or 0)
    if refused.errno in (errno.ENOENT, errno.EOPNOTSUPP):
        reason = f"this kernel has no {what}; it needs {option} and CONFIG_NET_CLS_ACT"
    elif refused.errno == errno.EEXIST:
        reason = "one list is at work there already"
    return NotAttachedError(f"{interface_name}: {_WHAT_FAILS}: {reason}")


def _is_ours(body: bytes) -> bool:
    if len(body) < 20:
        return False
    attributes = netlink.attributes(body, 20)
    options = netlink.attributes(attributes.get(_TCA_OPTIONS, b""))
    return (
        attributes.get(_TCA_KIND) == b"bpf\0"
        and options.get(_TCA_BPF_NAME) == f"{_NAME}\0".encode()
        and options.get(_TCA_BPF_FLAGS) == _DIRECT_ACTION
    )


def _tcmsg(index: int, handle: int, parent: int, info: int = 0) -> bytes:
    return struct.pack("=BxxxiIII", 0, index, handle, parent, info)


def _attribute(kind: int, payload: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(payload), kind) + payload + bytes(-len(payload) % 4)


def _tell(channel: socket.socket, kind: int, body: bytes) -> None:
    """Have something made. Raises OSError with the kernel's number where it refuses."""
    flags = netlink.NLM_F_REQUEST | _ACK | _CREATE | _EXCLUSIVE
    channel.send(netlink.request(kind, body, flags))
    for answer, told in netlink.messages(channel.recv(1 << 16)):
        if answer == netlink.NLMSG_ERROR:
            (number,) = struct.unpack_from("=i", told)
            if number:
                raise OSError(-number, "the kernel refused a netlink request")
