"""What a link's egress is, the `tc` words that build it, and how it reads back.

Pure descriptions: nothing here starts a process or opens a socket. `tc` reads
`bps` as bytes per second, so rates are always written with `bit`; sizes always
with `b`, times in whole `us` (iproute2 6.1 cuts off the rest, and then counts
in ticks of 64 ns).

Sources: tc(8), tc-htb(8), tc-netem(8), tc-bfifo(8); net/sched/sch_htb.c and
sch_netem.c, include/uapi/linux/pkt_sched.h (Linux 6.12).
"""

from __future__ import annotations

import struct
from typing import Any

from lab import netlink

ETHERNET_HEADER_BYTES = 14
"""What htb, bfifo and netem count on a veth above the IP packet: no FCS, no preamble."""

UNLIMITED_PACKETS = 2**31 - 1
"""Limit of a delay line: it holds what the path holds and can never drop."""

GSO_MAX_BYTES = 65536

BURST_S = 20e-6
"""Time of line rate that the shaper may send at once. Small against any queue
and RTT of interest; at 100 Gbit/s it still lets one timer event release many
packets, which is what a shaper costs."""

_TICK_S = 64e-9
"""Scheduler time of `tc` and the kernel: PSCHED_SHIFT 6 (include/net/pkt_sched.h)."""

_BURST_TOLERANCE_TICKS = 1e-6 / _TICK_S + 2
"""`tc` cuts a burst to whole microseconds of line rate, and these to whole ticks (tc_calc_xmittime)."""

HTB_HANDLE = 0x00010000
HTB_CLASS = 0x00010001
QUEUE_HANDLE = 0x00100000
NETEM_HANDLE = 0x00200000


def burst_bytes(rate_bps: float, mtu_bytes: int, offloads: bool) -> int:
    """Return the htb burst: `BURST_S` of the rate, never under two of the largest packets.

    A fixed burst starves TCP on long paths at high rates, and one under a
    packet makes htb lend and borrow. bytes.
    """
    largest = (GSO_MAX_BYTES if offloads else mtu_bytes) + ETHERNET_HEADER_BYTES
    return max(2 * largest, int(rate_bps * BURST_S / 8))


def egress_commands(dev: str, egress: dict[str, Any]) -> list[str]:
    """Return the `tc` commands (without `tc`) that shape what leaves `dev`.

    egress: `rate_bps`, `burst_bytes`, `mtu_bytes`, `queue` ({"kind", "limit"}),
    `delay_s`, `jitter_s`, `loss`, `duplicate`, `reorder`, `limit_packets`; each
    optional. With a rate and a delay together the delay line is the leaf of the
    shaper and shares its limit: the form that many recipes use, and the reason
    why many recipes drop. The lab's own topologies never ask for it unless told.
    """
    commands = []
    parent = "root"
    if egress.get("rate_bps"):
        rate = f"{int(egress['rate_bps'])}bit"
        burst = f"{int(egress['burst_bytes'])}b"
        quantum = max(1000, int(egress["mtu_bytes"]) + ETHERNET_HEADER_BYTES)
        commands.append(f"qdisc add dev {dev} root handle 1: htb default 1")
        commands.append(
            f"class add dev {dev} parent 1: classid 1:1 htb rate {rate} ceil {rate}"
            f" burst {burst} cburst {burst} quantum {quantum}"
        )
        parent = "parent 1:1"
    netem = netem_words(egress)
    if netem:
        commands.append(f"qdisc add dev {dev} {parent} handle 20: netem {netem}")
    elif egress.get("queue"):
        queue = egress["queue"]
        unit = "b" if queue["kind"] == "bfifo" else ""
        commands.append(
            f"qdisc add dev {dev} {parent} handle 10: {queue['kind']} limit {int(queue['limit'])}{unit}"
        )
    return commands


def netem_words(egress: dict[str, Any]) -> str:
    """Return netem's arguments, or "" where the egress needs no netem."""
    words = []
    if egress.get("delay_s") or egress.get("jitter_s"):
        words.append(f"delay {egress.get('delay_s', 0) * 1e6:.0f}us")
        if egress.get("jitter_s"):
            words.append(f"{egress['jitter_s'] * 1e6:.0f}us")
    for key, word in (("loss", "loss random"), ("duplicate", "duplicate"), ("reorder", "reorder")):
        if egress.get(key):
            words.append(f"{word} {egress[key] * 100:.9f}%")
    if not words:
        return ""
    return " ".join([f"limit {egress.get('limit_packets') or UNLIMITED_PACKETS}", *words])


def parse_dump(data: bytes) -> list[dict[str, Any]]:
    """Return every qdisc or class of an RTM_GETQDISC or RTM_GETTCLASS dump.

    Each: `ifindex`, `handle`, `parent`, `kind`, `options` (bytes), and the
    counters of TCA_STATS2: `bytes`, `packets` (sent), `qlen_packets`,
    `backlog_bytes`, `drops`, `requeues`, `overlimits`.
    Raises ValueError where the bytes are torn. Layout: struct tcmsg, gnet_stats_basic, gnet_stats_queue.
    """
    found = []
    for kind, body in netlink.messages(data):
        if kind in (netlink.NLMSG_DONE, netlink.NLMSG_ERROR):
            continue
        try:
            found.append(_entry(body))
        except struct.error as torn:
            raise ValueError(f"a qdisc or class of {len(body)} bytes is torn: {torn}") from torn
    return found


def _entry(body: bytes) -> dict[str, Any]:
    """Return one qdisc or class of a dump."""
    _family, ifindex, handle, parent, _info = struct.unpack_from("=BxxxiIII", body)
    attrs = netlink.attributes(body, 20)
    entry = {
        "ifindex": ifindex,
        "handle": handle,
        "parent": parent,
        "kind": attrs.get(1, b"").rstrip(b"\0").decode(),
        "options": attrs.get(2, b""),
    }
    stats = netlink.attributes(attrs[7]) if 7 in attrs else {}
    if 1 in stats:
        entry["bytes"], entry["packets"] = struct.unpack_from("=QI", stats[1])
    if 8 in stats:
        (entry["packets"],) = struct.unpack_from("=Q", stats[8])
    if 3 in stats:
        (
            entry["qlen_packets"],
            entry["backlog_bytes"],
            entry["drops"],
            entry["requeues"],
            entry["overlimits"],
        ) = struct.unpack_from("=IIIII", stats[3])
    return entry


def htb_rate_bytes_per_s(options: bytes) -> tuple[int, int]:
    """Return (rate, ceil) of an htb class in the kernel's own bytes per second.

    TCA_HTB_PARMS holds 32 bits; above that TCA_HTB_RATE64 and CEIL64 hold the number.
    """
    attrs = netlink.attributes(options)
    (rate,) = struct.unpack_from("=I", attrs[1], 8)
    (ceil,) = struct.unpack_from("=I", attrs[1], 20)
    if 6 in attrs:
        (rate,) = struct.unpack("=Q", attrs[6])
    if 7 in attrs:
        (ceil,) = struct.unpack("=Q", attrs[7])
    return rate, ceil


def netem_settings(options: bytes) -> dict[str, int]:
    """Return netem's settings in kernel units: ns for times, 2^-32 for probabilities.

    struct tc_netem_qopt, TCA_NETEM_REORDER, TCA_NETEM_LATENCY64 and JITTER64.
    """
    latency, limit, loss, _gap, duplicate, jitter = struct.unpack_from("=6I", options)
    attrs = netlink.attributes(options, 24)
    settings = {
        "delay_ns": latency * 64,
        "jitter_ns": jitter * 64,
        "limit_packets": limit,
        "loss": loss,
        "duplicate": duplicate,
        "reorder": 0,
    }
    if 10 in attrs:
        (settings["delay_ns"],) = struct.unpack("=q", attrs[10])
    if 11 in attrs:
        (settings["jitter_ns"],) = struct.unpack("=q", attrs[11])
    if 3 in attrs:
        (settings["reorder"],) = struct.unpack_from("=I", attrs[3])
    return settings


def differences(
    egress: dict[str, Any], qdiscs: list[dict[str, Any]], classes: list[dict[str, Any]]
) -> list[str]:
    """Return one sentence for every setting of one device that reads back otherwise.

    qdiscs, classes: entries of `parse_dump` for this device alone.
    """
    wrong = []
    by_handle = {entry["handle"]: entry for entry in qdiscs}

    def check(what: str, wanted: float, got: float, tolerance: float = 0) -> None:
        if abs(wanted - got) > tolerance:
            wrong.append(f"{what}: wanted {wanted}, the kernel has {got}")

    if egress.get("rate_bps"):
        htb = [entry for entry in classes if entry["handle"] == HTB_CLASS]
        if by_handle.get(HTB_HANDLE, {}).get("kind") != "htb" or not htb:
            wrong.append("htb: not there")
        else:
            rate, ceil = htb_rate_bytes_per_s(htb[0]["options"])
            check("htb rate (bytes/s)", int(egress["rate_bps"]) // 8, rate)
            check("htb ceil (bytes/s)", int(egress["rate_bps"]) // 8, ceil)
            buffer_ticks, cbuffer_ticks = struct.unpack_from(
                "=II", netlink.attributes(htb[0]["options"])[1], 24
            )
            ticks = round(egress["burst_bytes"] / (int(egress["rate_bps"]) // 8) / _TICK_S)
            check("htb burst (ticks of 64 ns)", ticks, buffer_ticks, _BURST_TOLERANCE_TICKS)
            check("htb cburst (ticks of 64 ns)", ticks, cbuffer_ticks, _BURST_TOLERANCE_TICKS)
    if netem_words(egress):
        netem = by_handle.get(NETEM_HANDLE)
        if netem is None or netem["kind"] != "netem":
            wrong.append("netem: not there")
        else:
            got = netem_settings(netem["options"])
            check("netem delay (ns)", round((egress.get("delay_s") or 0) * 1e9), got["delay_ns"], 64)
            check("netem jitter (ns)", round((egress.get("jitter_s") or 0) * 1e9), got["jitter_ns"], 64)
            check(
                "netem limit (packets)",
                egress.get("limit_packets") or UNLIMITED_PACKETS,
                got["limit_packets"],
            )
            for key in ("loss", "duplicate", "reorder"):
                check(f"netem {key} (2^-32)", round((egress.get(key) or 0) * (2**32 - 1)), got[key], 64)
    elif egress.get("queue"):
        queue = by_handle.get(QUEUE_HANDLE)
        if queue is None or queue["kind"] != egress["queue"]["kind"]:
            wrong.append(f"{egress['queue']['kind']}: not there")
        else:
            (limit,) = struct.unpack_from("=I", queue["options"])
            check(f"{queue['kind']} limit", int(egress["queue"]["limit"]), limit)
    return wrong
