"""The fake engine: a fluid in place of a kernel, for tests of all that stands around an engine.

It answers a specification as the agent would, in the kernel's own bytes. Not
for results: there is no TCP in it. So `base.ENGINES` does not offer it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab import netlink, qdisc, tcpinfo
from lab.agent import frames
from lab.engines.base import EngineResult
from lab.errors import EngineError

LINK_SHARE = 0.9
"""Goodput of all flows together, of the bottleneck's rate."""

RAMP_RTTS = 10
"""How long the rate grows, evenly."""

_NODES = {
    "snd": ["snd-eth0"],
    "r1": ["r1-eth0", "r1-eth1"],
    "r2": ["r2-eth0", "r2-eth1"],
    "rcv": ["rcv-eth0"],
}
_RECEIVER_PORT, _FIRST_PORT = 5001, 40000
_SOCKET_INFO, _CONGESTION_CONTROL = 2, 4
_TCP_INFO = struct.Struct("@" + "".join(field.code for field in tcpinfo.TCP_INFO))


class FakeEngine:
    """Runs points in no time. See `lab.engines.base.Engine`."""

    name = "fake"
    teardown = False

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
        load = Load(spec)
        outcome = {
            "nodes": list(_NODES),
            "interfaces": {
                node: {name: 2 + i for i, name in enumerate(names)} for node, names in _NODES.items()
            },
            "commands": {},
            "sysctls": spec["sysctls"],
            "path": _path(spec),
            "workload": {"flows": load.flows()},
            "start_ns": load.start_ns,
            "end_ns": load.start_ns + load.limit_ns,
        }
        return EngineResult(_frames(spec, load), outcome, 0.0, outcome["end_ns"] / 1e9)

    def stop(self) -> None:
        """See `lab.engines.base.Engine.stop`."""
        self._stopped = True


def make() -> FakeEngine:
    """Return the engine; it needs nothing of this machine."""
    return FakeEngine()


class Load:
    """Flows that share the link evenly: a linear ramp, then a constant rate."""

    start_ns = 2 * 10**9

    def __init__(self, spec: Mapping[str, Any]) -> None:
        params, workload = spec["topology"]["params"], spec["workload"]
        self.rtt_s = params["delay_out_s"] + params["delay_back_s"]
        self.cc, self.count, self.bytes_each = workload["cc"], workload["flows"], workload["bytes"]
        self.limit_ns = workload["limit_ns"]
        self._ramp_s = RAMP_RTTS * self.rtt_s
        self._bytes_per_s = LINK_SHARE * params["rate_bps"] / 8 / self.count
        self.finished_s = self._finished_s()

    def _finished_s(self) -> float | None:
        if self.bytes_each is None:
            return None
        ramp_bytes = self._bytes_per_s * self._ramp_s / 2
        if self.bytes_each >= ramp_bytes:
            end_s = self.bytes_each / self._bytes_per_s + self._ramp_s / 2
        else:
            end_s = math.sqrt(2 * self.bytes_each * self._ramp_s / self._bytes_per_s)
        return end_s if end_s < self.limit_ns / 1e9 else None

    def delivered(self, t_s: float) -> int:
        """Return the bytes of a flow that were read by an instant."""
        if t_s < self._ramp_s:
            count = self._bytes_per_s * t_s**2 / 2 / self._ramp_s
        else:
            count = self._bytes_per_s * (t_s - self._ramp_s / 2)
        return int(count) if self.bytes_each is None else min(int(count), self.bytes_each)

    def flows(self) -> list[dict[str, int | None]]:
        """Return the flows as a workload reports them."""
        ended = None if self.finished_s is None else self.start_ns + round(self.finished_s * 1e9)
        return [{"flow": i, "port": _FIRST_PORT + i, "finished_ns": ended} for i in range(self.count)]


def _path(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the agent's path check reports of a path that is as asked for."""
    params, check = spec["topology"]["params"], spec["path_check"]
    packet_s = (check["mtu_bytes"] + qdisc.ETHERNET_HEADER_BYTES) * 8 / params["rate_bps"]
    train = [[number, round(number * packet_s * 1e9)] for number in range(check["train_packets"])]
    return {
        "rtts_s": [params["delay_out_s"] + params["delay_back_s"]] * 3,
        "train": train,
        "train_sent_ns": 1,
    }


def _frames(spec: Mapping[str, Any], load: Load) -> bytes:
    """Return samples at every interval, of both ends and the bottleneck's queue; at the end of all queues."""
    end_ns = load.limit_ns if load.finished_s is None else min(load.limit_ns, round(load.finished_s * 1e9))
    interval_ns = spec["probes"]["interval_ns"]
    instants = [*range(0, end_ns, interval_ns), end_ns]
    nodes = list(_NODES)
    parts = []
    for t_ns in instants:
        for node in spec["probes"]["sockets"]:
            parts.append(frames.pack(frames.SOCKETS, nodes.index(node), t_ns, _sockets(load, node, t_ns)))
        for node in spec["probes"]["queues"]:
            parts.append(frames.pack(frames.QUEUES, nodes.index(node), t_ns, _queues(node)))
    parts += [frames.pack(frames.QUEUES, nodes.index(node), end_ns, _queues(node)) for node in nodes]
    return b"".join(parts)


def _attribute(kind: int, payload: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(payload), kind) + payload + b"\0" * (-len(payload) % 4)


def _sockets(load: Load, node: str, t_ns: int) -> bytes:
    """Return an inet_diag dump of one end: struct inet_diag_msg and its attributes, for each flow."""
    delivered = load.delivered(t_ns / 1e9)
    values = {"tcpi_state": 1, "tcpi_min_rtt": round(load.rtt_s * 1e6), "tcpi_snd_mss": 1448}
    if node == "snd":
        values |= {"tcpi_bytes_sent": delivered, "tcpi_busy_time": t_ns // 1000}
    else:
        values |= {"tcpi_bytes_received": delivered}
    info = _TCP_INFO.pack(*(values.get(field.name, 0) for field in tcpinfo.TCP_INFO))
    attributes = _attribute(_SOCKET_INFO, info) + _attribute(_CONGESTION_CONTROL, load.cc.encode() + b"\0")
    dump = b""
    for number in range(load.count):
        ports = (_FIRST_PORT + number, _RECEIVER_PORT)
        body = struct.pack(">4xHH64x", *(ports if node == "snd" else ports[::-1])) + attributes
        dump += netlink.request(netlink.SOCK_DIAG_BY_FAMILY, body)
    return dump


def _queues(node: str) -> bytes:
    """Return a qdisc dump of one node: a queue on each interface, with nothing in it and nothing dropped."""
    dump = b""
    for index, _name in enumerate(_NODES[node], 2):
        stats = _attribute(3, struct.pack("=IIIII", 0, 0, 0, 0, 0))
        body = struct.pack("=BxxxiIII", 0, index, qdisc.QUEUE_HANDLE, 0, 0) + _attribute(1, b"bfifo\0")
        dump += netlink.request(netlink.RTM_GETQDISC, body + _attribute(7, stats))
    return dump
