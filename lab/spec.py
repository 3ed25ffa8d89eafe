"""What the agent is told of a point: the JSON that crosses into the emulated world.

Everything that must not bind and is not swept is sized here, from the path:
the delay lines hold any packet, tcp_mem holds any socket, the hosts' own
interfaces run at ten times the bottleneck.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import layout, memory, pathcheck, queues, traffic, varying
from lab.combination import Point
from lab.knobs import PATH_KNOBS
from lab.losses import Loss
from lab.model.pressure import thresholds_bytes

REPOSITORY = Path(__file__).resolve().parent.parent
DEFAULT_SAMPLES = 200
PROBE_BYTES = 64
"""An IP packet of the latency probe: small, so that it waits like others and costs little itself."""
PAGE_BYTES = 4096
PINGS, PINGS_ON_REAL_CLOCK = 3, 20
"""Of an idle path: where the clock is real they have a distribution."""
TRAINS_ON_REAL_CLOCK = 5
"""Of a path: one may meet a process that holds a CPU for as long as it takes, hardly three of five."""
_LONG_TRAIN_S = 0.5
"""A train that takes so long meets no single process that holds a CPU: one will do."""
_CONTROL = "net.ipv4.tcp_congestion_control"
_SETTLE_S = 30.0
_MOST_MEMORY_PAGES = 2**31 - 1
_AUTO_SAMPLES, _LEAST_AUTO_SAMPLES = 20_000, 40
"""Of all flows' sockets, or of all nodes: many are sampled less often each."""
_NODE_BYTES = 3 * 2**19
"""That a namespace with its interfaces takes, at most."""


@dataclass(frozen=True)
class World:
    """Where a point runs, as far as it tells on what the agent does.

    own_kernel: the kernel is the point's alone, and ends with it. real_clock:
    things take time, and the machine is watched. controls: congestion controls
    that every namespace may take for its own, None for all; others are asked for
    by each socket.
    """

    own_kernel: bool = True
    real_clock: bool = False
    controls: frozenset[str] | None = None

    def opens(self, control: str) -> bool:
        """Return whether a namespace may take a congestion control for its own."""
        return self.controls is None or control in self.controls


OWN = World()
"""A kernel of the point's own, in virtual time."""


def interval_s(point: Point) -> float:
    """Return the time between samples, s."""
    chosen = PATH_KNOBS["interval"].value(point.knobs["interval"])
    if chosen is not None:
        return float(chosen)
    read = max(traffic.most_at_once(point), len(layout.plan(point).nodes))
    wanted = max(_LEAST_AUTO_SAMPLES, _AUTO_SAMPLES // read)
    return point.duration_s / min(DEFAULT_SAMPLES, wanted)


def guest_memory_bytes(point: Point) -> int:
    """Return the memory of a virtual kernel that this point cannot fill.

    What senders may hold, what is on its way and what a receiver may keep out
    of order, each with the overhead of a segment, over what the kernel and the
    agent need.
    """
    pipe = point.rate_bps * max(point.rtts_s) / 8
    queue = point.queue
    queued = float(queue["limit"]) * (point.mtu_bytes if queues.LIMIT_UNIT[queue["kind"]] == "packets" else 1)
    flows = max(1, traffic.most_at_once(point))
    nodes = len(layout.plan(point).nodes)
    in_flight = min(pipe + min(queued, 4 * pipe + 2**24), flows * 2.0**30)
    largest = {
        which: max(point.triple(which).maximum, 2 * (point.size(option) or 0))
        for which, option in (("wmem", "sndbuf"), ("rmem", "rcvbuf"))
    }
    # an autotuned buffer is some times cwnd, and a writer fills it
    sender = min(4 * in_flight + flows * 2**20, flows * 1.2 * largest["wmem"])
    # a writer fills a buffer that is large from the start, whatever is in flight of it
    sender = max(sender, flows * 1.1 * max(point.triple("wmem").default, 2 * (point.size("sndbuf") or 0)))
    receiver = min(1.7 * in_flight, flows * 1.2 * largest["rmem"])
    heads = in_flight / (64e3 if point.offloads else point.mtu_bytes) * 1300
    udp = 64 * 2**20 if point.knobs["udp"] != "none" else 0
    base = (192 + flows / 4) * 2**20 + max(0, nodes - len(("snd", "r1", "r2", "rcv"))) * _NODE_BYTES + udp
    need = base + 1.6 * (sender + receiver + heads)
    return (int(need) // 2**22 + 1) * 2**22


def whole_kernel_sysctls(point: Point) -> dict[str, str]:
    """Return {name: value} of what all namespaces share, in a kernel that is the point's own."""
    most = point.size("tcp_mem")
    ample = guest_memory_bytes(point)
    return {
        "net.ipv4.tcp_mem": _pages((ample,) * 3 if most is None else thresholds_bytes(most)),
        **{name: str(size) for name, size in _socket_limits(point).items()},
        # set for the whole kernel, a congestion control is open to every namespace; else only a few are
        _CONTROL: point.controls[0],
    }


def host_sysctls(point: Point) -> dict[str, str]:
    """Return {name: value} of what a point needs of a host as a whole: no more than its knobs ask for."""
    limits = _socket_limits(point)
    needed = {
        name: str(limits[name])
        for name, option in (("net.core.rmem_max", "rcvbuf"), ("net.core.wmem_max", "sndbuf"))
        if point.size(option) or point.size(name.rpartition(".")[2])
    }
    most = point.size("tcp_mem")
    return needed if most is None else {"net.ipv4.tcp_mem": _pages(thresholds_bytes(most)), **needed}


def _socket_limits(point: Point) -> dict[str, int]:
    """Return the limits of SO_RCVBUF and SO_SNDBUF, bytes; always told, since kernels' defaults differ."""
    return {
        f"net.core.{name}": point.size(name) or memory.CORE_MAX_BYTES for name in ("rmem_max", "wmem_max")
    }


def _pages(thresholds: Sequence[int]) -> str:
    return " ".join(str(min(size // PAGE_BYTES, _MOST_MEMORY_PAGES)) for size in thresholds)


def sysctls(point: Point, world: World) -> dict[str, dict[str, str]]:
    """Return {node: {name: value}}; "" is the kernel as a whole, where it is the point's own.

    The triples are always written out: on a small virtual machine the kernel's
    own defaults would be smaller than on a host.
    """
    control = {_CONTROL: point.controls[0]} if world.opens(point.controls[0]) else {}
    both = {**control, **({"net.ipv4.tcp_ecn": "1"} if point.knobs["ecn"] == "on" else {})}
    receiver = {"net.ipv4.tcp_rmem": point.triple("rmem").sysctl()}
    scale = point.value("adv_win_scale")
    if scale is not None:
        receiver["net.ipv4.tcp_adv_win_scale"] = str(scale)
    if point.value("app_win") is not None:
        receiver["net.ipv4.tcp_app_win"] = str(point.value("app_win"))
    if point.knobs["moderate_rcvbuf"] == "off":
        receiver["net.ipv4.tcp_moderate_rcvbuf"] = "0"
    sender = {"net.ipv4.tcp_wmem": point.triple("wmem").sysctl()}
    lowat = point.size("notsent_lowat")
    if lowat is not None:
        sender["net.ipv4.tcp_notsent_lowat"] = str(lowat)
    sending = {flow.src for flow in traffic.flows(point)} | {p.sender for p in layout.plan(point).pairs}
    receiving = {flow.dst for flow in traffic.flows(point)} | {p.receiver for p in layout.plan(point).pairs}
    other = {
        "send": {"net.ipv4.tcp_wmem": memory.DEFAULTS["wmem"].sysctl()},
        "receive": {"net.ipv4.tcp_rmem": memory.DEFAULTS["rmem"].sysctl()},
    }
    return {
        **({"": whole_kernel_sysctls(point)} if world.own_kernel else {}),
        **{
            host: {
                **both,
                **(sender if host in sending else other["send"]),
                **(receiver if host in receiving else other["receive"]),
            }
            for host in layout.plan(point).hosts
        },
    }


def topology(point: Point) -> dict[str, Any]:
    """Return the topology file, class and parameters."""
    name = layout.shape(point)
    return {
        "file": str(REPOSITORY / "topologies" / f"{name}.py"),
        "name": name,
        "params": layout.params(point),
    }


def path_checks(point: Point, world: World) -> list[dict[str, Any]]:
    """Return what is measured before the load: the RTT of every pair, the rate of every bottleneck once."""
    jitter_s = float(PATH_KNOBS["jitter"].value(point.knobs["jitter"]))
    packet_s = (point.mtu_bytes + 14) * 8 / point.rate_bps
    policed = point.queue["kind"] == "policer"  # its bucket is empty after the first
    slow = packet_s * pathcheck.train_packets(point) > _LONG_TRAIN_S
    found: list[dict[str, Any]] = []
    seen: set[str] = set()
    for pair in layout.plan(point).pairs:
        fresh = not set(pair.bottlenecks) <= seen and pathcheck.can_fill(point, pair)
        if fresh:
            seen |= set(pair.bottlenecks)
        found.append(
            {
                "sender": pair.sender,
                "receiver": pair.receiver,
                "timeout_s": 1 + 2 * pair.rtt_s + 8 * jitter_s + 8 * packet_s,
                "mtu_bytes": point.mtu_bytes,
                "pings": PINGS_ON_REAL_CLOCK if world.real_clock else PINGS,
                "trains": 1 if policed or slow or not world.real_clock else TRAINS_ON_REAL_CLOCK,
                "train_packets": pathcheck.train_packets(point) if fresh else 0,
            }
        )
    return found


def agent_spec(point: Point, world: World = OWN) -> dict[str, Any]:
    """Return the whole specification."""
    checks = path_checks(point, world)
    slack_s = _SETTLE_S if point.knobs["workload"] == "iperf3" else 0.0
    limit_s = point.duration_s + slack_s + (20 * point.rtt_s if slack_s else 0)
    flows = traffic.flows(point)
    drops: Loss = point.loss
    return {
        "topology": topology(point),
        "sysctls": sysctls(point, world),
        "workload": {
            "kind": point.knobs["workload"],
            "flows": [_flow(point, flow, world) for flow in flows],
            "rcvbuf_bytes": point.size("rcvbuf"),
            "sndbuf_bytes": point.size("sndbuf"),
            "request_bytes": point.size("request"),
            "response_bytes": point.size("response"),
            "think_ns": round(float(PATH_KNOBS["think"].value(point.knobs["think"])) * 1e9),
            "duration_s": point.duration_s,
            "limit_ns": round(limit_s * 1e9),
        },
        "streams": _streams(point),
        "changes": varying.commands(point),
        "drops": [
            {
                "node": end.node,
                "interface": end.interface,
                "numbers": [int(number) for number in drops.numbers],
            }
            for end in (one for link in layout.plan(point).links for one in link.ends)
            if drops.kind == "list" and "jitter_s" in end.egress
        ],
        "probes": {
            "sockets": list(dict.fromkeys(name for flow in flows for name in (flow.src, flow.dst))),
            "queues": list(dict.fromkeys(name.rpartition("-")[0] for name in traffic.bottlenecks(point))),
            "interval_ns": max(1, round(interval_s(point) * 1e9)),
            "machine": world.real_clock,
        },
        "path_check": checks,
        "captures": [],
        "own_kernel": world.own_kernel,
        "virtual_limit_ns": round(
            (limit_s + 120 + sum(20 * one["timeout_s"] for one in checks) + 40 * max(point.rtts_s)) * 1e9
        ),
    }


def _flow(point: Point, flow: traffic.Flow, world: World) -> dict[str, Any]:
    """Return a flow as a workload reads it; what it has not is left out."""
    told: dict[str, Any] = {
        "flow": flow.number,
        "kind": flow.kind,
        "src": flow.src,
        "dst": flow.dst,
        "cc": flow.cc,
        "start_ns": round(flow.start_s * 1e9),
        "bytes": flow.size_bytes,
    }
    if flow.stop_s is not None:
        told["stop_ns"] = round(flow.stop_s * 1e9)
    if flow.spells is not None:
        told["spells_ns"] = [[round(a * 1e9), round(b * 1e9)] for a, b in flow.spells]
    if len(set(point.controls)) > 1 or not world.opens(flow.cc):
        told["own_cc"] = True
    if not world.opens(flow.cc):
        told["listen_cc"] = True
    return told


def _streams(point: Point) -> list[dict[str, Any]]:
    """Return the UDP streams: a flow of constant rate, and the latency probe."""
    pair = layout.plan(point).pairs[0]
    ends = {"src": pair.sender, "dst": pair.receiver}
    found = []
    gap_s, probe_s = traffic.udp_gap_s(point), PATH_KNOBS["probe"].value(point.knobs["probe"])
    if gap_s is not None:
        found.append(
            {"kind": "udp", **ends, "gap_ns": max(1, round(gap_s * 1e9)), "ip_bytes": point.mtu_bytes}
        )
    if probe_s is not None:
        found.append({"kind": "probe", **ends, "gap_ns": round(probe_s * 1e9), "ip_bytes": PROBE_BYTES})
    return found
