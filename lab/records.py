"""From the agent's raw frames to rows: samples of sockets and queues, under their own names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from lab import machine, qdisc, schema, tcpinfo
from lab.agent import frames
from lab.errors import MeasurementError

Row = dict[str, Any]

_KINDS_WITHOUT_PACKETS = ("htb", "noqueue", "clsact", "ingress")


class Records(NamedTuple):
    """What one point recorded, as rows of the tables of these names."""

    samples: list[Row]
    queues: list[Row]
    delays: list[Row]
    machine: list[Row] = []  # noqa: RUF012 (nothing adds to the default)


def decode(data: bytes, outcome: Mapping[str, Any], *, bottlenecks: Collection[str]) -> Records:
    """Return the rows of one point, without their `point` column.

    outcome: what the agent reported (nodes, interfaces, flows with their ports).
    bottlenecks: interfaces whose inner queues are under study.
    Raises MeasurementError where the frames are torn.
    """
    ports = {flow["port"]: flow["flow"] for flow in outcome["workload"]["flows"]}
    ends = ("sender", "receiver") if outcome["workload"]["client"] == "sender" else ("receiver", "sender")
    names = {
        node: {index: name for name, index in interfaces.items()}
        for node, interfaces in outcome["interfaces"].items()
    }
    found = Records([], [], [], [])
    try:
        for kind, node_number, instant_ns, payload in frames.unpack(data):
            node, t_s = outcome["nodes"][node_number], instant_ns / 1e9
            if kind == frames.SOCKETS:
                found.samples.extend(_sample_rows(payload, ports, ends, t_s))
            elif kind == frames.DELAYS:
                found.delays.extend(_delay_rows(payload))
            elif kind == frames.MACHINE:
                found.machine.extend(machine.rows(payload, t_s, _machine_of(node, outcome)))
            else:
                entries = qdisc.parse_dump(payload)
                found.queues.extend(_queue_rows(entries, node, names[node], t_s, bottlenecks))
    except (ValueError, IndexError) as torn:  # IndexError: a node that the agent did not report
        raise MeasurementError(f"the records of this point are damaged: {torn}") from torn
    found.samples.sort(key=lambda row: row["t_s"])  # nodes are read one after another at one instant
    return found


def _machine_of(node: str, outcome: Mapping[str, Any]) -> str:
    """Return the machine that a reading is of: each node is one of its own, or all are on one."""
    return node if outcome.get("machines") else ""


def _sample_rows(payload: bytes, ports: Mapping[int, int], ends: tuple[str, str], t_s: float) -> list[Row]:
    """Return the flows' sockets of one dump by number: the kernel's own order follows a secret hash.

    ends: what an end is that has the flow's port, and what the other is.
    """
    rows: list[Row] = []
    for socket in tcpinfo.decode(payload):
        connecting = socket.local_port in ports
        flow = ports.get(socket.local_port if connecting else socket.remote_port)
        if flow is not None:
            end = ends[0] if connecting else ends[1]
            rows.append({"t_s": t_s, "flow": flow, "end": end, "cc": socket.cc, **socket.values})
    return sorted(rows, key=lambda row: int(row["flow"]))


def _delay_rows(payload: bytes) -> list[Row]:
    kind, flow, taken = frames.unpack_delays(payload)
    return [
        {
            "kind": kind,
            "flow": flow if flow >= 0 else None,
            "t_s": sent_ns / 1e9,
            "delay_s": None if took_ns < 0 else took_ns / 1e9,
        }
        for sent_ns, took_ns in taken
    ]


def _queue_rows(
    entries: Sequence[Mapping[str, Any]],
    node: str,
    names: Mapping[int, str],
    t_s: float,
    bottlenecks: Collection[str],
) -> list[Row]:
    """Return the queues of one dump. A shaper's own row is left out, but not that of a policer."""
    counters = [c.name for c in schema.QUEUE_COLUMNS[7:]]
    shaped = {entry["ifindex"] for entry in entries if entry["handle"] == qdisc.HTB_HANDLE}
    return [
        {
            "t_s": t_s,
            "node": node,
            "interface": names[entry["ifindex"]],
            "kind": entry["kind"],
            "bottleneck": names[entry["ifindex"]] in bottlenecks,
            "rate_bps": None,
            **{name: entry.get(name) for name in counters},
        }
        for entry in entries
        if entry["ifindex"] in names
        and entry["kind"] not in _KINDS_WITHOUT_PACKETS
        and not (entry["ifindex"] in shaped and entry["handle"] == qdisc.HTB_HANDLE)
    ]


def digest(flows: Sequence[Row], found: Records) -> str:
    """Return the SHA-256 of what a point recorded: equal records, equal digest, on any machine."""
    hasher = hashlib.sha256()
    for rows in (flows, found.samples, found.queues, found.delays):
        for row in rows:
            hasher.update(json.dumps(row, sort_keys=True).encode())
            hasher.update(b"\n")
        hasher.update(b"\f")
    return hasher.hexdigest()
