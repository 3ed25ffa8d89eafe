"""What a run on real hosts would do, told without doing any of it: no connection is made for it. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lab.agent import between
from lab.combination import Point
from lab.knobs import PATH_KNOBS
from lab.remote import bundle, ssh, steps
from lab.remote.inventory import Entry, Inventory
from lab.workloads import iperf3

PORTS = (
    "TCP 5001 (bulk), 5002 (request), 5201 (iperf3); UDP 5003 (udp), 5004 (probe), 5005 and 5006 (the path)"
)
"""What has to be open between the sender and the receiver."""

_MEASURED = (
    "the path, by packets between the agents of both ends",
    "it forwards meanwhile, as for a point; then that is put back",
)

_SOME_PORT = 20000
"""In place of the first free port, which only the host knows."""


def lines(inventory: Inventory, specs: Sequence[tuple[Point, Mapping[str, Any]]]) -> Iterator[str]:
    """Yield the lines, a host at a time. specs: every point and its specification."""
    yield "This is what the run would do; nothing is done now, and nothing is connected to."
    yield f"Ports of the test network: {PORTS}."
    if inventory.mode == "as-is":
        yield (
            "The links are taken as they are: rate, RTT and MTU are measured before the first point, and the"
            " points are made for them."
        )
    for entry in inventory.used:
        yield ""
        yield f"host {entry.name} ({entry.address}), {entry.role}"
        yield f"  connect: {ssh.shown(entry, inventory.ssh_config)}"
        yield f"  push: {_pushed()}"
        yield "  look: at its kernel, interfaces, qdiscs and tools, each told to say its version; a qdisc is"
        yield "    tried in a network namespace that goes at once"
        yield f"  measure: {_MEASURED[entry.role == 'emulator']}"
        yield f"  hold: a lock, notes and a watchdog below /run/wanlab; the lease is {inventory.lease_s:g} s"
        for names, made in _grouped(inventory, entry, specs):
            yield f"  {names}"
            for line in made:
                yield f"    {line}"
        yield "  after each point: all is put back, the last change first; sysctls to the values of now"
        yield "  after the last point: the watchdog, the notes and /run/wanlab go"


def _pushed() -> str:
    """Return what is pushed, in words."""
    pushed = bundle.make()
    return (
        f"{len(pushed.modules)} modules of the agent over that connection, {len(pushed.data)} bytes, SHA-256"
        f" {pushed.version[:12]}...; they stay in memory"
    )


def _grouped(
    inventory: Inventory, entry: Entry, specs: Sequence[tuple[Point, Mapping[str, Any]]]
) -> Iterator[tuple[str, list[str]]]:
    """Yield (which points, their lines at a host); points that do the same there are told together."""
    groups: dict[tuple[str, ...], list[Point]] = {}
    for point, spec in specs:
        groups.setdefault(tuple(_of_point(inventory, entry, spec)), []).append(point)
    for made, points in groups.items():
        told = ", ".join(_point(point) for point in points[:8])
        more = f" and {len(points) - 8} more" if len(points) > 8 else ""
        yield f"point{'s' if len(points) > 1 else ''} {told}{more}:", list(made)


def _point(point: Point) -> str:
    """Return a point by its name and what was chosen for it."""
    chosen = [
        f"{name}={text}"
        for name, text in point.knobs.items()
        if text != PATH_KNOBS[name].canonical(PATH_KNOBS[name].default) and name != "kernel"
    ]
    return f"{point.id} ({' '.join(chosen) or 'as by default'})"


def _of_point(inventory: Inventory, entry: Entry, spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a point at a host: what is changed and how it is put back, then what is started."""
    yield from steps.lines(steps.all_steps(spec, inventory)[entry.name])
    load = spec["workload"]
    server, client = inventory.receiver.test_address, inventory.sender.test_address
    if entry.role != "emulator":
        other = client if entry.role == "receiver" else server
        yield shlex.join(between.forget_words(other)) + "    # a cache: nothing to put back"
    if load["kind"] == "iperf3" and entry.role != "emulator":
        if entry.role == "receiver":
            yield shlex.join(iperf3.server_words(server))
        else:
            words = iperf3.client_words(dict(load), server, own=client, first=_SOME_PORT)
            yield shlex.join(words) + "    # the port is the first free one"
    for capture in spec.get("captures", ()):
        real = steps.interfaces(spec, inventory).get(capture["node"], {}).get(capture["interface"])
        if real in entry.interfaces:
            yield f"tcpdump on {real}, the first {capture['snap_bytes']} bytes of each packet"
