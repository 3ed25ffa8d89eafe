"""The fake engine: a fluid in place of a kernel, for tests of all that stands around an engine.

It answers a specification as the agent would, in the kernel's own bytes. Not
for results: there is no TCP in it, nothing is lost, no rate changes and no flow
pauses. So `base.ENGINES` does not offer it.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab import netlink, plans, qdisc, tcpinfo
from lab.agent import frames
from lab.engines.base import EngineResult, Options, Plain
from lab.errors import EngineError
from lab.plans.plan import Pair, Plan

LINK_SHARE = 0.9
"""Goodput of all flows together, of the bottleneck's rate."""

RAMP_RTTS = 10
"""How long a flow's rate grows, evenly."""

_RECEIVER_PORT, _FIRST_PORT = 5001, 40000
_SOCKET_INFO, _CONGESTION_CONTROL = 2, 4
_TCP_INFO = struct.Struct("@" + "".join(field.code for field in tcpinfo.TCP_INFO))


class FakeEngine(Plain):
    """Runs points in no time. See `lab.engines.base.Engine`."""

    name = "fake"

    def __init__(self) -> None:
        self._stopped = False

    def run(
        self,
        spec: Mapping[str, Any],
        *,
        kernel: Path,
        seed: int,
        memory_bytes: int,
        cpu: int,
        folder: Path,
        wall_limit_s: float,
    ) -> EngineResult:
        """See `lab.engines.base.Engine.run`."""
        del kernel, seed, memory_bytes, cpu, folder, wall_limit_s
        if self._stopped:
            raise EngineError("stopped")
        plan = plans.make(spec["topology"]["name"], spec["topology"]["params"])
        load = Load(spec, plan)
        outcome = {
            "nodes": list(plan.nodes),
            "interfaces": {
                node: {name: 2 + i for i, name in enumerate(_interfaces(plan, node))} for node in plan.nodes
            },
            "commands": {},
            "sysctls": spec["sysctls"],
            "path": [
                _path(spec, check, pair, plan.end(f"{pair.sender}-eth0").egress.get("rate_bps"))
                for check, pair in zip(spec["path_check"], plan.pairs, strict=True)
            ],
            "workload": {"client": "sender", "flows": [flow.told() for flow in load.flows]},
            "dropped": [],
            "start_ns": load.start_ns,
            "end_ns": load.start_ns + load.limit_ns,
        }
        return EngineResult(_frames(spec, plan, load), outcome, 0.0, outcome["end_ns"] / 1e9)

    def stop(self) -> None:
        """See `lab.engines.base.Engine.stop`."""
        self._stopped = True


def make(options: Options | None = None) -> FakeEngine:
    """Return the engine; it needs nothing of this machine."""
    del options
    return FakeEngine()


class Load:
    """Flows that share a bottleneck evenly with all that ever cross it; those that arrive have it alone."""

    start_ns = 2 * 10**9

    def __init__(self, spec: Mapping[str, Any], plan: Plan) -> None:
        self.limit_ns: int = spec["workload"]["limit_ns"]
        told = spec["workload"]["flows"]
        ways = {(pair.sender, pair.receiver): pair for pair in (*plan.pairs, *plan.back_pairs)}
        pairs = [ways[one["src"], one["dst"]] for one in told]
        lasting = [pair for one, pair in zip(told, pairs, strict=True) if one["kind"] != "arrival"]
        crossing = Counter(name for pair in lasting for name in pair.bottlenecks)
        link_bytes_per_s = LINK_SHARE * spec["topology"]["params"]["rate_bps"] / 8
        self.flows = [
            Flow(
                one, pair, link_bytes_per_s / _others(one, pair, crossing), self.start_ns, self.limit_ns / 1e9
            )
            for one, pair in zip(told, pairs, strict=True)
        ]

    @property
    def end_ns(self) -> int:
        """When the last flow of a size was through, or the end of the load, from its start."""
        ends = [flow.finished_s for flow in self.flows]
        last_s = max((end for end in ends if end is not None), default=None)
        if last_s is None or None in ends:
            return self.limit_ns
        return min(self.limit_ns, round(last_s * 1e9))


def _others(told: Mapping[str, Any], pair: Pair, crossing: Mapping[str, int]) -> int:
    return 1 if told["kind"] == "arrival" else max(crossing[name] for name in pair.bottlenecks)


class Flow:
    """One flow: from its start a linear ramp, then a constant rate, to its size or its stop."""

    def __init__(
        self, told: Mapping[str, Any], pair: Pair, bytes_per_s: float, origin_ns: int, limit_s: float
    ) -> None:
        self.number, self.src, self.dst, self.cc = told["flow"], told["src"], told["dst"], told["cc"]
        self.port, self.rtt_s = _FIRST_PORT + told["flow"], pair.rtt_s
        self.start_s, self.size = told["start_ns"] / 1e9, told["bytes"]
        self._origin_ns = origin_ns
        self._stop_s = min(told.get("stop_ns", math.inf) / 1e9, limit_s)
        self._ramp_s, self._bytes_per_s = RAMP_RTTS * pair.rtt_s, bytes_per_s
        self.finished_s = self._finished_s()
        self.end_s = self._stop_s if self.finished_s is None else self.finished_s

    def _finished_s(self) -> float | None:
        if self.size is None:
            return None
        ramp_bytes = self._bytes_per_s * self._ramp_s / 2
        if self.size >= ramp_bytes:
            took_s = self.size / self._bytes_per_s + self._ramp_s / 2
        else:
            took_s = math.sqrt(2 * self.size * self._ramp_s / self._bytes_per_s)
        end_s = self.start_s + took_s
        return end_s if end_s < self._stop_s else None

    def delivered(self, t_s: float) -> int:
        """Return the bytes that were read by an instant."""
        on_s = max(0.0, min(t_s, self._stop_s) - self.start_s)
        if on_s < self._ramp_s:
            count = self._bytes_per_s * on_s**2 / 2 / self._ramp_s
        else:
            count = self._bytes_per_s * (on_s - self._ramp_s / 2)
        return int(count) if self.size is None else min(int(count), self.size)

    def info(self, t_s: float, *, sending: bool) -> bytes:
        """Return the struct tcp_info of one of its ends."""
        values = {"tcpi_state": 1, "tcpi_min_rtt": round(self.rtt_s * 1e6), "tcpi_snd_mss": 1448}
        if sending:
            busy_s = max(0.0, min(t_s, self.end_s) - self.start_s)
            values |= {"tcpi_bytes_sent": self.delivered(t_s), "tcpi_busy_time": round(busy_s * 1e6)}
        else:
            values |= {"tcpi_bytes_received": self.delivered(t_s)}
        return _TCP_INFO.pack(*(values.get(field.name, 0) for field in tcpinfo.TCP_INFO))

    def told(self) -> dict[str, Any]:
        """Return the flow as a workload reports it."""
        done_s = self.finished_s
        return {
            "flow": self.number,
            "port": self.port,
            "finished_ns": None if done_s is None else self._origin_ns + round(done_s * 1e9),
            "tcp_info": None if done_s is None else self.info(done_s, sending=True).hex(),
        }


def _interfaces(plan: Plan, node: str) -> list[str]:
    return [end.interface for link in plan.links for end in link.ends if end.node == node]


def _path(
    spec: Mapping[str, Any], check: Mapping[str, Any], pair: Pair, own_bps: float | None
) -> dict[str, Any]:
    """Return what the agent's path check reports of a pair whose path is as asked for."""
    packet_bytes = check["mtu_bytes"] + qdisc.ETHERNET_HEADER_BYTES
    rate_bps = min(spec["topology"]["params"]["rate_bps"], own_bps or math.inf)
    packet_s = packet_bytes * 8 / rate_bps
    train = [[number, round(number * packet_s * 1e9)] for number in range(check["train_packets"])]
    return {"rtts_s": [pair.rtt_s] * 3, "train": train or None, "train_sent_ns": 1}


def _frames(spec: Mapping[str, Any], plan: Plan, load: Load) -> bytes:
    """Return samples at every interval, at the end the other queues as well, and what streams timed."""
    end_ns, interval_ns = load.end_ns, spec["probes"]["interval_ns"]
    instants = [*range(0, end_ns, interval_ns), end_ns]
    numbers = {node: number for number, node in enumerate(plan.nodes)}
    queues = {node: _queues(plan, node) for node in plan.nodes}
    parts = []
    for t_ns in instants:
        for node in spec["probes"]["sockets"]:
            parts.append(frames.pack(frames.SOCKETS, numbers[node], t_ns, _sockets(load, node, t_ns)))
        for node in spec["probes"]["queues"]:
            parts.append(frames.pack(frames.QUEUES, numbers[node], t_ns, queues[node]))
    rest = [node for node in plan.nodes if node not in spec["probes"]["queues"]]
    parts += [frames.pack(frames.QUEUES, numbers[node], end_ns, queues[node]) for node in rest]
    for stream in spec["streams"]:
        pair = next(one for one in plan.pairs if (one.sender, one.receiver) == (stream["src"], stream["dst"]))
        took_ns = round(pair.rtt_s / 2 * 1e9)
        taken = [(sent_ns, took_ns) for sent_ns in range(0, end_ns, stream["gap_ns"])]
        payload = frames.pack_delays(stream["kind"], -1, taken)
        parts.append(frames.pack(frames.DELAYS, 0, 0, payload))
    return b"".join(parts)


def _attribute(kind: int, payload: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(payload), kind) + payload + b"\0" * (-len(payload) % 4)


def _sockets(load: Load, node: str, t_ns: int) -> bytes:
    """Return an inet_diag dump of a node: struct inet_diag_msg and its attributes, of each end there is."""
    dump, t_s = b"", t_ns / 1e9
    for flow in load.flows:
        there = flow.start_s <= t_s and t_ns <= round(flow.end_s * 1e9)
        if not there or node not in (flow.src, flow.dst):
            continue
        ports = (flow.port, _RECEIVER_PORT)
        info = flow.info(t_s, sending=node == flow.src)
        attributes = _attribute(_SOCKET_INFO, info)
        attributes += _attribute(_CONGESTION_CONTROL, flow.cc.encode() + b"\0")
        body = struct.pack(">4xHH64x", *(ports if node == flow.src else ports[::-1])) + attributes
        dump += netlink.request(netlink.SOCK_DIAG_BY_FAMILY, body)
    return dump


def _queues(plan: Plan, node: str) -> bytes:
    """Return a qdisc dump of one node: a queue on each interface, with nothing in it and nothing dropped."""
    dump = b""
    for index, _name in enumerate(_interfaces(plan, node), 2):
        stats = _attribute(3, struct.pack("=IIIII", 0, 0, 0, 0, 0))
        body = struct.pack("=BxxxiIII", 0, index, qdisc.QUEUE_HANDLE, 0, 0) + _attribute(1, b"bfifo\0")
        dump += netlink.request(netlink.RTM_GETQDISC, body + _attribute(7, stats))
    return dump
