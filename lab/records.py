"""From the agent's raw frames to rows: samples of sockets and queues, under their own names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from lab import qdisc, schema, tcpinfo
from lab.agent import frames
from lab.errors import MeasurementError

Row = dict[str, Any]

_KINDS_WITHOUT_PACKETS = ("htb", "noqueue")


def decode(
    data: bytes, outcome: Mapping[str, Any], *, sender: str, bottleneck: str
) -> tuple[list[Row], list[Row]]:
    """Return (sample rows, queue rows) of one point, without their `point` column.

    outcome: what the agent reported (nodes, interfaces, flows with their ports).
    bottleneck: interface whose inner queue is under study.
    Raises MeasurementError where the frames are torn.
    """
    ports = {flow["port"]: flow["flow"] for flow in outcome["workload"]["flows"]}
    names = {
        node: {index: name for name, index in interfaces.items()}
        for node, interfaces in outcome["interfaces"].items()
    }
    samples: list[Row] = []
    queues: list[Row] = []
    try:
        for kind, node_number, instant_ns, payload in frames.unpack(data):
            node, t_s = outcome["nodes"][node_number], instant_ns / 1e9
            if kind == frames.SOCKETS:
                end = "sender" if node == sender else "receiver"
                samples.extend(_sample_rows(payload, ports, end, t_s))
            else:
                queues.extend(_queue_rows(qdisc.parse_dump(payload), node, names[node], t_s, bottleneck))
    except (ValueError, IndexError) as torn:  # IndexError: a node that the agent did not report
        raise MeasurementError(f"the records of this point are damaged: {torn}") from torn
    return samples, queues


def _sample_rows(payload: bytes, ports: Mapping[int, int], end: str, t_s: float) -> list[Row]:
    """Return the flows' sockets of one dump by number: the kernel's own order follows a secret hash."""
    rows: list[Row] = []
    for socket in tcpinfo.decode(payload):
        flow = ports.get(socket.local_port, ports.get(socket.remote_port))
        if flow is not None:
            rows.append({"t_s": t_s, "flow": flow, "end": end, "cc": socket.cc, **socket.values})
    return sorted(rows, key=lambda row: int(row["flow"]))


def _queue_rows(
    entries: Sequence[Mapping[str, Any]], node: str, names: Mapping[int, str], t_s: float, bottleneck: str
) -> list[Row]:
    counters = [c.name for c in schema.QUEUE_COLUMNS[6:]]
    return [
        {
            "t_s": t_s,
            "node": node,
            "interface": names[entry["ifindex"]],
            "kind": entry["kind"],
            "bottleneck": names[entry["ifindex"]] == bottleneck,
            **{name: entry.get(name) for name in counters},
        }
        for entry in entries
        if entry["ifindex"] in names and entry["kind"] not in _KINDS_WITHOUT_PACKETS
    ]


def digest(flows: Sequence[Row], samples: Sequence[Row], queues: Sequence[Row]) -> str:
    """Return the SHA-256 of what a point recorded: equal records, equal digest, on any machine."""
    hasher = hashlib.sha256()
    for rows in (flows, samples, queues):
        for row in rows:
            hasher.update(json.dumps(row, sort_keys=True).encode())
            hasher.update(b"\n")
        hasher.update(b"\f")
    return hasher.hexdigest()
