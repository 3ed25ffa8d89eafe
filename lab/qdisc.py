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
from collections.abc import Mapping
from typing import Any

from lab import netlink, queues

ETHERNET_HEADER_BYTES = 14
"""What htb, bfifo and netem count on a veth above the IP packet: no FCS, no preamble."""

UNLIMITED_PACKETS = 2**31 - 1
"""Limit of a delay line: it holds what the path holds and can never drop."""

GSO_MAX_BYTES = 65536

_MOST_HEADER_BYTES = 80
"""Of IPv4 without options and TCP with all of them."""

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


def egress_commands(dev: str, egress: Mapping[str, Any]) -> list[str]:
    """Return the `tc` commands (without `tc`) that shape what leaves `dev`.

    egress: `rate_bps`, `burst_bytes`, `mtu_bytes`, `offloads`, `queue` (see `lab.queues`),
    `delay_s`, `jitter_s`, `jitter_distribution`, `loss`, `duplicate`, `reorder`,
    `limit_packets`; each optional. With a rate and a delay together the delay
    line is the leaf of the shaper and shares its limit: the form that many
    recipes use, and the reason why many recipes drop. The lab's own topologies
    never ask for it unless told.
    """
    commands = []
    parent = "root"
    queue = egress.get("queue")
    if queue and queue["kind"] == "policer":
        return [f"qdisc add dev {dev} root handle 10: {policer_words(egress)}"]
    if egress.get("rate_bps"):
        commands.append(f"qdisc add dev {dev} root handle 1: htb default 1")
        commands.append(f"class add {htb_class(dev, egress)}")
        parent = "parent 1:1"
    netem = netem_words(egress)
    if netem:
        commands.append(f"qdisc add dev {dev} {parent} handle 20: netem {netem}")
    elif queue:
        told = {"rate_bps": egress["rate_bps"], **queue} if egress.get("rate_bps") else queue
        commands.append(f"qdisc add dev {dev} {parent} handle 10: {queues.words(told)}")
    return commands


def htb_class(dev: str, egress: Mapping[str, Any]) -> str:
    """Return the `tc` words of the shaper's one class, to add it or to change it."""
    rate = f"{int(egress['rate_bps'])}bit"
    burst = f"{int(egress['burst_bytes'])}b"
    quantum = max(1000, int(egress["mtu_bytes"]) + ETHERNET_HEADER_BYTES)
    return (
        f"dev {dev} parent 1: classid 1:1 htb rate {rate} ceil {rate}"
        f" burst {burst} cburst {burst} quantum {quantum}"
    )


def policer_words(egress: Mapping[str, Any]) -> str:
    """Return the `tc` words of a policer: a token bucket that holds one packet and drops the others.

    A packet that stands for many is counted with the headers of each (qdisc_pkt_len_init(), net/core/dev.c).
    """
    packet = int(egress["mtu_bytes"]) + ETHERNET_HEADER_BYTES
    if egress.get("offloads"):
        segments = -(-GSO_MAX_BYTES // (int(egress["mtu_bytes"]) - _MOST_HEADER_BYTES))
        packet = GSO_MAX_BYTES + segments * (ETHERNET_HEADER_BYTES + _MOST_HEADER_BYTES)
    return f"tbf rate {int(egress['rate_bps'])}bit burst {int(egress['queue']['limit'])}b limit {packet}b"


def netem_words(egress: Mapping[str, Any]) -> str:
    """Return netem's arguments, or "" where the egress needs no netem."""
    words = []
    if egress.get("delay_s") or egress.get("jitter_s"):
        words.append(f"delay {egress.get('delay_s', 0) * 1e6:.0f}us")
        if egress.get("jitter_s"):
            words.append(f"{egress['jitter_s'] * 1e6:.0f}us")
            if egress.get("jitter_distribution", "uniform") != "uniform":
                words.append(f"distribution {egress['jitter_distribution']}")
    lossy = loss_words(egress.get("loss"))
    if lossy:
        words.append(lossy)
    words += [f"{key} {egress[key] * 100:.9f}%" for key in ("duplicate", "reorder") if egress.get(key)]
    if not words:
        return ""
    return " ".join([f"limit {egress.get('limit_packets') or UNLIMITED_PACKETS}", *words])


def loss_words(loss: Any) -> str:
    """Return netem's words for a loss, "" for none.

    loss: a probability, or {"kind": "ge", "numbers": [p, r, 1-h, 1-k]} for the
    Gilbert-Elliott model, {"kind": "state", "numbers": [p13, p31, p32, p23, p14]}
    for the Markov chain of four states (tc-netem(8)); a "list" of packets is not
    netem's to drop, see `lab.agent.droplist`.
    """
    if not loss:
        return ""
    if isinstance(loss, int | float):
        return f"loss random {loss * 100:.9f}%"
    if loss["kind"] == "list":
        return ""
    name = {"ge": "gemodel", "state": "state"}[loss["kind"]]
    return f"loss {name} " + " ".join(f"{number * 100:.9f}%" for number in loss["numbers"])


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


def tbf_settings(options: bytes) -> dict[str, int]:
    """Return tbf's `rate` (bytes/s) and `limit` (bytes). struct tc_tbf_qopt, TCA_TBF_RATE64."""
    attrs = netlink.attributes(options)
    (rate,) = struct.unpack_from("=I", attrs[1], 8)
    (limit,) = struct.unpack_from("=I", attrs[1], 24)
    if 4 in attrs:
        (rate,) = struct.unpack("=Q", attrs[4])
    return {"rate": rate, "limit": limit}


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
    if 5 in attrs:  # TCA_NETEM_LOSS: struct tc_netem_gimodel (1) or tc_netem_gemodel (2)
        ((_kind, model),) = netlink.attributes(attrs[5]).items()
        settings["loss"] = struct.unpack_from("=I", model)[0]
    return settings


def differences(
    egress: Mapping[str, Any], qdiscs: list[dict[str, Any]], classes: list[dict[str, Any]]
) -> list[str]:
    """Return one sentence for every setting of one device that reads back otherwise.

    qdiscs, classes: entries of `parse_dump` for this device alone.
    """
    found = _Readings(qdiscs, classes)
    queue = egress.get("queue")
    if queue and queue["kind"] == "policer":
        found.policer(egress)
        return found.wrong
    if egress.get("rate_bps"):
        found.htb(egress)
    if netem_words(egress):
        found.netem(egress)
    elif queue:
        found.queue(queue)
    return found.wrong


class _Readings:
    """What one device reads back with; `wrong` gathers what differs."""

    def __init__(self, qdiscs: list[dict[str, Any]], classes: list[dict[str, Any]]) -> None:
        self.wrong: list[str] = []
        self._by_handle = {entry["handle"]: entry for entry in qdiscs}
        self._classes = classes

    def _check(self, what: str, wanted: float, got: float | None, tolerance: float = 0) -> None:
        if got is None or abs(wanted - got) > tolerance:
            self.wrong.append(f"{what}: wanted {wanted}, the kernel has {got}")

    def _at(self, handle: int, kind: str) -> bytes | None:
        """Return the options of what has a handle, None (and a sentence) where it is not of the kind."""
        entry = self._by_handle.get(handle)
        if entry is None or entry["kind"] != kind:
            self.wrong.append(f"{kind}: not there")
            return None
        options: bytes = entry["options"]
        return options

    def htb(self, egress: Mapping[str, Any]) -> None:
        own = [entry for entry in self._classes if entry["handle"] == HTB_CLASS]
        if self._by_handle.get(HTB_HANDLE, {}).get("kind") != "htb" or not own:
            self.wrong.append("htb: not there")
            return
        rate, ceil = htb_rate_bytes_per_s(own[0]["options"])
        self._check("htb rate (bytes/s)", int(egress["rate_bps"]) // 8, rate)
        self._check("htb ceil (bytes/s)", int(egress["rate_bps"]) // 8, ceil)
        buffer_ticks, cbuffer_ticks = struct.unpack_from("=II", netlink.attributes(own[0]["options"])[1], 24)
        ticks = round(egress["burst_bytes"] / (int(egress["rate_bps"]) // 8) / _TICK_S)
        self._check("htb burst (ticks of 64 ns)", ticks, buffer_ticks, _BURST_TOLERANCE_TICKS)
        self._check("htb cburst (ticks of 64 ns)", ticks, cbuffer_ticks, _BURST_TOLERANCE_TICKS)

    def policer(self, egress: Mapping[str, Any]) -> None:
        options = self._at(QUEUE_HANDLE, "tbf")
        if options is not None:
            rate = tbf_settings(options)["rate"]
            self._check("tbf rate (bytes/s)", int(egress["rate_bps"]) // 8, rate)

    def netem(self, egress: Mapping[str, Any]) -> None:
        options = self._at(NETEM_HANDLE, "netem")
        if options is None:
            return
        got = netem_settings(options)
        self._check("netem delay (ns)", round((egress.get("delay_s") or 0) * 1e9), got["delay_ns"], 64)
        self._check("netem jitter (ns)", round((egress.get("jitter_s") or 0) * 1e9), got["jitter_ns"], 64)
        limit = egress.get("limit_packets") or UNLIMITED_PACKETS
        self._check("netem limit (packets)", limit, got["limit_packets"])
        loss = egress.get("loss") or 0
        if not isinstance(loss, int | float):  # the first number of a model
            loss = 0 if loss["kind"] == "list" else loss["numbers"][0]
        for key, wanted in (("loss", loss), ("duplicate", None), ("reorder", None)):
            share = (egress.get(key) or 0) if wanted is None else wanted
            self._check(f"netem {key} (2^-32)", round(share * (2**32 - 1)), got[key], 64)

    def queue(self, queue: Mapping[str, Any]) -> None:
        kind = str(queue["kind"])
        options = self._at(QUEUE_HANDLE, kind)
        if options is not None:
            self._check(f"{kind} limit", int(queue["limit"]), queues.limit_of(kind, options))
