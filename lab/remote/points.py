"""One point on real hosts: change, measure, load, put back, and put together what each host saw.

What is changed is changed through the agents' notes (see `lab.agent.journal`),
so it is put back whatever becomes of this. The hosts' clocks are their own:
each is told the start by its own, and what it saw counts from there.
"""

from __future__ import annotations

import array
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import clock
from lab.agent import frames
from lab.errors import EngineError, LabError, PointTimeout
from lab.remote import measure, steps
from lab.remote.host import Host, Hosts
from lab.remote.inventory import Entry, Inventory
from lab.remote.measure import Ends, MeasuredPath, TrainShape
from lab.workloads.stream import joined

CALL_S = 120.0
"""That an operation may take which has nothing to wait for but a slow host and a slow connection."""

_LOOK_S = 1.0
_LEAD_S = 0.5
_FIRST_PORT, _LAST_PORT = 20000, 60999


@dataclass(frozen=True)
class Watch:
    """What ends a point before its time.

    stopped: whether somebody wants it ended; deadline_ns: when it must have, by our clock.
    """

    stopped: Callable[[], bool]
    deadline_ns: int

    def look(self) -> None:
        """Raise EngineError or PointTimeout where the point is to end."""
        if self.stopped():
            raise EngineError("stopped")
        if clock.now_ns() > self.deadline_ns:
            raise PointTimeout("the point took longer than it may")


class PointRun:
    """One point on connected hosts. path: what was measured of it before anything was changed."""

    def __init__(
        self, hosts: Hosts, spec: Mapping[str, Any], path: MeasuredPath, watch: Watch, first_port: int
    ) -> None:
        self._hosts, self._spec, self._path, self._watch = hosts, spec, path, watch
        self._inventory: Inventory = hosts.inventory
        self._names = steps.interfaces(spec, self._inventory)
        self._ends = ends(hosts)
        self._first_port = first_port
        self.last_port = first_port

    def run(self, folder: Path) -> tuple[bytes, dict[str, Any]]:
        """Run the point; return its records (see `lab.agent.frames`) and its outcome.

        folder: what was captured goes to its `out`. Whatever happens, everything
        is put back before this returns or raises, as far as the hosts can be
        reached. Raises EngineError and MeasurementError.
        """
        self._watch.look()
        self._check_captures()
        made = steps.all_steps(self._spec, self._inventory)
        try:
            self._hosts.each(lambda host: self._change(host, made[host.name]))
            self._watch.look()
            checked, told = self._measured()
            self._watch.look()
            parts, clocks = self._load()
            self._fetch(parts, folder / "out")
        except LabError as failed:
            left = self._put_back()
            if left:
                raise EngineError("\n".join((str(failed), *left))) from failed
            raise
        except BaseException:
            self._put_back()
            raise
        left = self._put_back()
        if left:
            raise EngineError("\n".join(left))
        base_rtt_s = told["base_rtt_s"]
        recorded, outcome = self._together(parts, self._path.base_rtt_s if base_rtt_s is None else base_rtt_s)
        return recorded, {
            **outcome,
            **_commands(made, self._inventory),
            "path": [checked],
            "links": self._inventory.mode,
            "measured": told,
            "clocks": clocks,
            "dropped": [],
        }

    def _check_captures(self) -> None:
        """Raise EngineError for a capture at an interface that no host here stands for."""
        there = [name for named in self._names.values() for name in named]
        for one in self._spec.get("captures", ()):
            if one["interface"] not in there:
                raise EngineError(
                    f"--capture {one['interface']}: there is no such interface between these hosts; there are"
                    f" {', '.join(there)}"
                )

    def _change(self, host: Host, made: list[steps.Step]) -> None:
        """Make a host's changes and read them back; have TCP forget what it has learned of the other end.

        The notes read each sysctl back as it is set (see `lab.agent.notes`).
        """
        host.call("apply", CALL_S, steps=made)
        if host.entry.role in steps.NODES:
            ends = (self._inventory.sender, self._inventory.receiver)
            other = ends[host.entry.role == "sender"]
            host.call("forget", CALL_S, other=other.test_address, timeout_s=CALL_S / 4)
            return
        built = steps.built(self._spec, self._inventory)
        wrong = steps.wrong(built, host.call("queues", CALL_S, interfaces=list(built)))
        if wrong:
            raise EngineError(f"host {host.name}: {'; '.join(wrong)}")

    def _put_back(self) -> list[str]:
        """End the load where there is one still, and put everything back; return what could not be."""
        found = self._hosts.each(self._put_back_one)
        return [sentence for sentences in found.values() for sentence in sentences]

    def _put_back_one(self, host: Host) -> list[str]:
        try:
            host.call("load_drop", CALL_S)
            left = host.call("restore", CALL_S)
        except LabError as lost:
            return [f"{lost}; if it was lost, its watchdog puts everything back there"]
        return [f"host {host.name}: not put back: {one}" for one in left]

    # the path

    def _measured(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Measure the path as it is now; return what a path check says of it, and more.

        Links as they are have no rate that was asked for and no known queue: their trains are
        as long as the path needed, and what they told stands beside the check, which has none.
        """
        check = self._spec["path_check"][0]
        shaped = self._inventory.mode == "shaped"
        with self._ends.answering():
            echoed = self._ends.pings(check["pings"])
            self._clock_ahead = self._ends.clock_offset_ns()
        self._watch.look()
        packets = check["train_packets"] if shaped else self._path.train_packets
        timeout_s = check["timeout_s"] if shaped else self._path.answer_s
        shape = TrainShape(packets, check["mtu_bytes"], timeout_s, self._path.train_burst)
        took_s = packets * measure.packet_bits(shape.mtu_bytes) / self._rate_bps
        trains = []
        for _ in range(check["trains"] if packets else 0):
            self._watch.look()
            trains.append(measure.settled(self._ends, took_s).train(shape))
        rates = [measure.train_rate_bps(arrivals, shape.mtu_bytes) for arrivals, _sent_ns in trains]
        known = [rate for rate in rates if rate is not None]
        told = {
            "base_rtt_s": min(echoed["rtts_s"], default=None),
            "rtt_by": echoed["by"],
            "ping_loss": echoed["lost"] / check["pings"],
            "rate_bps": statistics.median(known) if known else None,
            "rates_bps": known,
        }
        checked = {"rtts_s": echoed["rtts_s"], "train": None, "train_sent_ns": 0}
        if shaped and trains:
            checked |= {"train": trains[0][0], "train_sent_ns": trains[0][1], "more_trains": trains[1:]}
        return checked, told

    @property
    def _rate_bps(self) -> float:
        """The bottleneck's rate: as it was measured, or as it is shaped."""
        return self._path.rate_bps or float(self._spec["topology"]["params"]["rate_bps"])

    # the load

    def _load(self) -> tuple[dict[str, tuple[dict[str, Any], bytes]], dict[str, Any]]:
        """Run the load; return what each host saw, and how far their clocks are known."""
        first = self._free_ports()
        self._hosts.each(lambda host: host.call("load_listen", CALL_S, **self._told(host, first)))
        self._watch.look()
        self._hosts.each(lambda host: host.call("load_connect", CALL_S))
        starts, clocks = self._starts()
        self._hosts.each(lambda host: host.call("load_start", CALL_S, start_ns=starts[host.name]))
        self._wait()
        self._hosts.each(lambda host: host.call("load_stop", CALL_S + self._interval_s))
        return self._hosts.each(lambda host: host.call_with_bytes("load_end", CALL_S)), clocks

    @property
    def _interval_s(self) -> float:
        return float(self._spec["probes"]["interval_ns"]) / 1e9

    def _told(self, host: Host, first_port: int) -> dict[str, Any]:
        """Return what a host is told of the load."""
        spec, entry = self._spec, host.entry
        addresses = {
            "snd": self._inventory.sender.test_address,
            "rcv": self._inventory.receiver.test_address,
        }
        here = [steps.NODES[entry.role]] if entry.role in steps.NODES else ["r1", "r2"]
        own, other = self._inventory.sender.test_address, self._inventory.receiver.test_address
        between = {"sender": [own, other], "receiver": [other, own]}.get(entry.role)
        return {
            "nodes": {node: addresses.get(node, "") for node in self._names},
            "here": here,
            "interfaces": {node: self._names[node] for node in here},
            "between": between,
            "workload": {**spec["workload"], "first_port": first_port},
            "streams": spec["streams"],
            "probes": self._probes(),
            "captures": [
                {**one, "interface": self._names[one["node"]][one["interface"]], "filter": ["host", own]}
                for one in spec.get("captures", ())
                if one["node"] in here
            ],
        }

    def _probes(self) -> dict[str, Any]:
        """Return what is sampled: of links as they are no queue is in reach but the sender's own."""
        probes: dict[str, Any] = self._spec["probes"]
        return probes if self._inventory.mode == "shaped" else {**probes, "queues": ["snd"]}

    def _free_ports(self) -> int:
        """Return the first of enough TCP ports in a row that are free at both ends.

        Not those of the point before: the last one's connections may be remembered for a minute.
        """
        count = len(self._spec["workload"]["flows"])
        first = max(self._first_port, _FIRST_PORT)
        first = first if first + count <= _LAST_PORT else _FIRST_PORT
        while True:
            free = [
                host.call("ports", CALL_S, own=entry.test_address, first=first, count=count)["first"]
                for entry in (self._inventory.sender, self._inventory.receiver)
                for host in (self._hosts[entry.name],)
            ]
            if free == [first, first]:
                self.last_port = first + count
                return first
            first = max(free)

    def _starts(self) -> tuple[dict[str, int], dict[str, Any]]:
        """Return the instant of the start by each host's own clock, and what is known of the clocks."""
        self._hosts.each(lambda host: host.measure_clock())
        sender, receiver = (
            self._hosts[one.name] for one in (self._inventory.sender, self._inventory.receiver)
        )
        lead_s = _LEAD_S + 8 * max(host.clock_error_ns for host in self._hosts.values()) / 1e9
        start_ns = clock.now_ns() + int(lead_s * 1e9)
        starts = {name: start_ns + host.clock_offset_ns for name, host in self._hosts.items()}
        ahead_ns, error_ns = self._clock_ahead
        # through the path itself, both ends are known to each other better than through us
        starts[receiver.name] = starts[sender.name] + ahead_ns
        return starts, {
            "receiver_ahead_s": ahead_ns / 1e9,
            "receiver_error_s": error_ns / 1e9,
            "errors_s": {name: host.clock_error_ns / 1e9 for name, host in self._hosts.items()},
        }

    def _wait(self) -> None:
        """Wait until the load's time is over, or until every host at which flows end has seen their end."""
        deciding = self._deciding()
        while True:
            self._watch.look()
            seen = self._hosts.each(lambda host: host.call("load_wait", CALL_S, timeout_s=_LOOK_S))
            failed = [f"host {name}: {one['failure']}" for name, one in seen.items() if one["failure"]]
            if failed:
                raise EngineError("; ".join(failed))
            if all(one["over"] for one in seen.values()):
                return
            finished = [seen[name]["finished"] for name in deciding]
            if finished and all(finished):
                return
            if any(one["finished"] or one["over"] for one in seen.values()):  # these do not wait
                clock.sleep_until_ns(clock.now_ns() + int(_LOOK_S * 1e9 / 4))

    def _deciding(self) -> list[str]:
        """Return the hosts that know when the load is through: where flows end, or where iperf3 asks."""
        kind, flows = self._spec["workload"]["kind"], self._spec["workload"]["flows"]
        which = {"bulk": "dst", "iperf3": "src"}.get(kind)
        nodes = {flow[which] for flow in flows} if which else set()
        return [entry.name for entry in self._inventory.used if steps.NODES.get(entry.role) in nodes]

    def _fetch(self, parts: Mapping[str, tuple[dict[str, Any], bytes]], out: Path) -> None:
        """Bring what was captured here, under the lab's own names of interfaces."""
        for name, (told, _blob) in parts.items():
            host = self._hosts[name]
            for one in told["captures"]:
                out.mkdir(exist_ok=True)
                real = one["interface"]
                one["interface"] = self._lab_name(host.entry, real)
                host.fetch(f"{real}.pcap", out / f"{one['interface']}.pcap", CALL_S)

    def _lab_name(self, entry: Entry, real: str) -> str:
        here = [steps.NODES[entry.role]] if entry.role in steps.NODES else ["r1", "r2"]
        return next(name for node in here for name, own in self._names[node].items() if own == real)

    # what came of it

    def _together(
        self, parts: Mapping[str, tuple[dict[str, Any], bytes]], base_rtt_s: float
    ) -> tuple[bytes, dict[str, Any]]:
        """Return the records and the outcome of all hosts as if they were of one.

        base_rtt_s: half of it is what the least delay of a stream counts as.
        """
        recorded: list[bytes] = []
        sent: dict[int, list[int]] = {}
        arrived: dict[int, dict[int, int]] = {}
        for told, blob in parts.values():
            recorded.append(blob[: told["frames_bytes"]])
            take_streams(told["streams"], blob[told["frames_bytes"] :], sent, arrived)
        least_ns = round(base_rtt_s / 2 * 1e9)
        for number, stream in enumerate(self._spec["streams"]):
            taken = joined(sent.get(number, []), arrived.get(number, {}), least_ns)
            payload = frames.pack_delays(stream["kind"], -1, taken)
            recorded.append(frames.pack(frames.DELAYS, 0, 0, payload))
        outcomes = [told["workload"] for told, _blob in parts.values()]
        return b"".join(recorded), {
            "nodes": list(self._names),
            "machines": True,
            "interfaces": {
                node: found for told, _blob in parts.values() for node, found in told["interfaces"].items()
            },
            "workload": merged(outcomes),
            "captures": [one for told, _blob in parts.values() for one in told["captures"]],
            "start_ns": 0,
            "end_ns": max(told["ended_ns"] for told, _blob in parts.values()),
        }


def measured_path(hosts: Hosts, interface_mtu_bytes: int) -> MeasuredPath:
    """Return the path between connected hosts, before any point.

    Of a path that is to be shaped the rate is not wanted. Its emulator has to let packets through, so
    for as long as this takes it forwards. Raises EngineError, MeasurementError.
    """
    emulator = hosts.inventory.emulator
    if emulator is None or hosts.inventory.mode != "shaped":
        return measure.measure(ends(hosts), interface_mtu_bytes)
    host = hosts[emulator.name]
    try:
        host.call("apply", CALL_S, steps=steps.forwarding(*emulator.interfaces))
        return measure.measure(ends(hosts), interface_mtu_bytes, trains=False)
    finally:
        host.call("restore", CALL_S)


def ends(hosts: Hosts) -> Ends:
    """Return both ends of the path between connected hosts."""
    sender, receiver = hosts.inventory.sender, hosts.inventory.receiver
    return Ends(
        (hosts[sender.name], sender.test_address),
        (hosts[receiver.name], receiver.test_address),
    )


def take_streams(
    told: Iterable[Mapping[str, Any]],
    blob: bytes,
    sent: dict[int, list[int]],
    arrived: dict[int, dict[int, int]],
) -> None:
    """Add what one host saw of each stream, by the stream's number. blob: see `lab.agent.load.Load.end`."""
    offset = 0

    def numbers(count: int) -> Iterator[int]:
        nonlocal offset
        found = array.array("q")
        found.frombytes(blob[offset : offset + 8 * count])
        offset += 8 * count
        return iter(found)

    for number, stream in enumerate(told):
        instants = list(numbers(stream["sent"]))
        pairs = numbers(2 * stream["arrived"])
        if instants:
            sent[number] = instants
        if stream["arrived"]:
            arrived[number] = dict(zip(pairs, pairs, strict=True))


def merged(outcomes: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what a workload saw, from what each host saw of it: of each flow whatever any of them knows."""
    whole: dict[str, Any] = {}
    flows: dict[int, dict[str, Any]] = {}
    for outcome in outcomes:
        whole |= {name: value for name, value in outcome.items() if name != "flows"}
        for flow in outcome["flows"]:
            known = flows.setdefault(flow["flow"], {})
            for name, value in flow.items():
                if known.get(name) is None:
                    known[name] = value
    return {**whole, "flows": [flows[number] for number in sorted(flows)]}


def _commands(made: Mapping[str, list[steps.Step]], inventory: Inventory) -> dict[str, Any]:
    """Return what was done where, by node, as the outcome of any engine has it: `commands` and `sysctls`."""
    commands: dict[str, dict[str, list[str]]] = {}
    sysctls: dict[str, dict[str, str]] = {}
    for entry in inventory.used:
        node = steps.NODES.get(entry.role, "r1")  # an emulator is both routers; once is enough
        for step in made[entry.name]:
            if step["do"] == "sysctl":
                sysctls.setdefault(node, {})[step["name"]] = step["value"]
            else:
                tool, *words = step["argv"]
                commands.setdefault(node, {}).setdefault(tool, []).append(" ".join(words))
    return {"commands": commands, "sysctls": sysctls}
