"""What this namespace's interfaces are: addresses, qdiscs, device, and which of them reach an address.

Everything is asked of the kernel itself, by netlink and SIOCETHTOOL, so that no
tool has to be there. Nothing is changed.

Sources: include/uapi/linux/if_link.h, if_addr.h, rtnetlink.h, ethtool.h (Linux 6.12).
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import ipaddress
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lab import netlink, qdisc
from lab.agent.ethtool import SEGMENTATION, Features

_RTM_GETADDR, _RTM_GETROUTE = 22, 26
_IFLA_IFNAME, _IFLA_MTU, _IFLA_LINK, _IFLA_MASTER, _IFLA_LINK_NETNSID = 3, 4, 5, 10, 37
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_RTA_DST, _RTA_OIF = 1, 4
_IFF_UP, _IFF_RUNNING = 0x1, 0x40
_ROOT, _INGRESS = 0xFFFFFFFF, 0xFFFFFFF1  # TC_H_ROOT, TC_H_INGRESS
_SIOCETHTOOL, _GSET, _GDRVINFO = 0x8946, 0x1, 0x3
_UNKNOWN_SPEEDS = ((0, 0), (0, 0xFFFF), (0xFFFF, 0xFFFF))
"""Upper and lower half of SPEED_UNKNOWN in Mbit/s, also as drivers of 16 bits have it."""


@dataclass(frozen=True)
class Link:
    """One interface. below: indices of what it sends through: a VLAN's device, none of a pair of veth."""

    index: int
    name: str
    flags: int
    mtu_bytes: int
    below: int | None
    master: int | None


def _dump(kind: int, body: bytes) -> bytes:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as channel:
        return netlink.dump(channel, netlink.request(kind, body))


def all_links() -> list[Link]:
    """Return every interface of the namespace."""
    found = []
    for _kind, body in netlink.messages(_dump(netlink.RTM_GETLINK, bytes(16))):
        if len(body) < 16:
            continue
        index, flags = struct.unpack_from("=iI", body, 4)
        attrs = netlink.attributes(body, 16)
        here = _IFLA_LINK in attrs and _IFLA_LINK_NETNSID not in attrs
        found.append(
            Link(
                index,
                attrs[_IFLA_IFNAME].rstrip(b"\0").decode(),
                flags,
                _number(attrs[_IFLA_MTU]),
                _number(attrs[_IFLA_LINK]) if here else None,
                _number(attrs[_IFLA_MASTER]) if _IFLA_MASTER in attrs else None,
            )
        )
    return found


def _number(data: bytes) -> int:
    return int(struct.unpack("=I", data)[0])


def addresses() -> dict[int, list[str]]:
    """Return {index of an interface: its addresses with their prefix lengths}."""
    found: dict[int, list[str]] = {}
    for _kind, body in netlink.messages(_dump(_RTM_GETADDR, bytes(8))):
        if len(body) < 8:
            continue
        family, length, _flags, _scope, index = struct.unpack_from("=BBBBI", body)
        attrs = netlink.attributes(body, 8)
        packed = attrs.get(_IFA_LOCAL, attrs.get(_IFA_ADDRESS))
        if family in (socket.AF_INET, socket.AF_INET6) and packed is not None:
            found.setdefault(index, []).append(f"{ipaddress.ip_address(packed)}/{length}")
    return found


def route(address: str) -> int | None:
    """Return the index of the interface that packets to an address leave by; None where there is no route."""
    target = ipaddress.ip_address(address.partition("%")[0])
    family = socket.AF_INET if target.version == 4 else socket.AF_INET6
    body = struct.pack("=BBBBBBBBI", family, len(target.packed) * 8, 0, 0, 0, 0, 0, 0, 0)
    body += struct.pack("=HH", 4 + len(target.packed), _RTA_DST) + target.packed
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as channel:
        channel.send(netlink.request(_RTM_GETROUTE, body, netlink.NLM_F_REQUEST))
        for kind, answer in netlink.messages(channel.recv(1 << 15)):
            if kind == netlink.NLMSG_ERROR:
                return None
            attrs = netlink.attributes(answer, 12)
            if _RTA_OIF in attrs:
                return _number(attrs[_RTA_OIF])
    return None


def carriers(links: Iterable[Link], used: Iterable[int]) -> set[int]:
    """Return all interfaces that packets of the `used` ones pass.

    These, the devices below them, and the ports of bridges and bonds.
    """
    links, found = list(links), set(used)
    while True:
        below = {one.below for one in links if one.index in found and one.below is not None}
        ports = {one.index for one in links if one.master in found}
        if below | ports <= found:
            return found
        found |= below | ports


def ssh_interfaces(links: Iterable[Link], local: str, remote: str) -> set[int]:
    """Return the interfaces that a connection uses: by its own address, and by the route back."""
    used = set()
    wanted = ipaddress.ip_address(local.partition("%")[0])
    for index, known in addresses().items():
        if wanted in {ipaddress.ip_interface(one).ip for one in known}:
            used.add(index)
    back = route(remote)
    if back is not None:
        used.add(back)
    return carriers(links, used)


def describe(link: Link, known: list[str], qdiscs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the facts of one interface. known: its addresses; qdiscs: all of the namespace.

    `root` is None where it has no root qdisc of its own; one with a handle was
    configured by somebody, since the kernel's defaults have none.
    """
    own = [one for one in qdiscs if one["ifindex"] == link.index]
    root = [one for one in own if one["parent"] == _ROOT]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        offloads: list[str] | None = None
        with contextlib.suppress(OSError):
            offloads = sorted(Features(channel, link.name).active() & set(SEGMENTATION))
        return {
            "up": bool(link.flags & _IFF_UP),
            "running": bool(link.flags & _IFF_RUNNING),
            "mtu_bytes": link.mtu_bytes,
            "speed_bps": _speed(channel, link.name),
            "driver": _driver(channel, link.name),
            "offloads": offloads,
            "addresses": known,
            "root": {"kind": root[0]["kind"], "configured": root[0]["handle"] != 0} if root else None,
            "ingress": any(one["parent"] == _INGRESS for one in own),
        }


def all_qdiscs() -> list[dict[str, Any]]:
    """Return every qdisc of the namespace, as `lab.qdisc.parse_dump` has it."""
    return qdisc.parse_dump(_dump(netlink.RTM_GETQDISC, bytes(20)))


def _ask(channel: socket.socket, name: str, data: bytes) -> bytes | None:
    buffer = ctypes.create_string_buffer(data, len(data))
    try:
        fcntl.ioctl(
            channel,
            _SIOCETHTOOL,
            struct.pack("16sQ16x", name.encode().ljust(16, b"\0"), ctypes.addressof(buffer)),
        )
    except OSError:
        return None
    return buffer.raw


def _speed(channel: socket.socket, name: str) -> float | None:
    """Return what the NIC says of its rate, bit/s: struct ethtool_cmd, ethtool_cmd_speed()."""
    told = _ask(channel, name, struct.pack("=I", _GSET) + bytes(40))
    if told is None:
        return None
    (low,), (high,) = struct.unpack_from("=H", told, 12), struct.unpack_from("=H", told, 28)
    return None if (high, low) in _UNKNOWN_SPEEDS else (high << 16 | low) * 1e6


def _driver(channel: socket.socket, name: str) -> str | None:
    """Return the driver: struct ethtool_drvinfo."""
    told = _ask(channel, name, struct.pack("=I", _GDRVINFO) + bytes(192))
    return None if told is None else told[4:36].split(b"\0")[0].decode(errors="replace") or None
