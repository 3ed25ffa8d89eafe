"""The remote engine: the same workloads, probes and records on real hosts, over the user's own OpenSSH.

Two hosts, or three with an emulator between them. The agent is pushed to each
and keeps nothing there: what it changes for a point is noted on the host first
and put back after the point, by itself or by its watchdog. Links are taken as
they are and measured, or shaped on the emulator.

Not here: the connections (see `lab.remote.host`), what is looked at before
(`lab.remote.preflight`), what a point changes (`lab.remote.steps`) and how it runs
(`lab.remote.points`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab import clock, spec, units
from lab.combination import Point
from lab.engines.base import EngineResult, Options, Plain
from lab.errors import EngineError, LabError, PreconditionError, UserError
from lab.kernels import HOST, KernelRecord
from lab.knobs import PATH_KNOBS
from lab.remote import dryrun, fit, measure, points, preflight, steps
from lab.remote import inventory as inventory_file
from lab.remote.host import Hosts
from lab.remote.inventory import Inventory
from lab.remote.measure import MeasuredPath

_RATE_DIGITS = 4


class RemoteEngine(Plain):
    """Runs points on real hosts. See `lab.engines.base.Engine`."""

    name = "remote"
    timeless = False
    jobs = 1
    default_kernel = HOST

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._hosts: Hosts | None = None
        self._facts: dict[str, dict[str, Any]] = {}
        self._remarks: tuple[str, ...] = ()
        self._asked: dict[tuple[str, str, str], str] = {}
        self._path: MeasuredPath | None = None
        self._opening, self._turn = threading.Lock(), threading.Lock()
        self._stopped = self._lost = False
        self._first_port = 0

    # the hosts

    def _connected(self) -> Hosts:
        """Return the hosts, connected, looked at and held by us; so they are from the first call on."""
        with self._opening:
            if self._hosts is None:
                hosts = Hosts(self._inventory)
                hosts.__enter__()
                try:
                    judged = preflight.look(hosts, preflight.Wanted(sysctls=steps.SYSCTLS))
                    judged.check()
                    self._facts = {name: dict(facts) for name, facts in judged.facts.items()}
                    self._remarks = judged.remarks
                    hosts.each(lambda host: host.call("hold", points.CALL_S))
                except BaseException:
                    hosts.__exit__()
                    raise
                self._hosts = hosts
            return self._hosts

    # what an engine says of itself

    def kernel(self, name: str) -> KernelRecord:
        """See `lab.engines.base.Engine.kernel`: the receiver's, which sizes windows."""
        if name != HOST:
            raise UserError(
                f"kernel: {name!r} is a kernel of the lab, and real hosts run their own; leave it out"
            )
        self._connected()
        receiver = self._facts[self._inventory.receiver.name]
        return KernelRecord(
            name=HOST,
            release=receiver["kernel"],
            recipe_hash="",
            source="the receiver",
            source_hash="",
            hz=0,
            config_hash="",
            compiler="",
            built_at="",
            options_left_out=(),
            path=Path("/"),
        )

    def agent_spec(self, point: Point) -> dict[str, Any]:
        """See `lab.engines.base.Engine.agent_spec`."""
        return {**spec.agent_spec(point, _WORLD), "host_sysctls": spec.host_sysctls(point)}

    def lacking(self, point: Point) -> str | None:
        """See `lab.engines.base.Engine.lacking`."""
        return fit.unfit(point, self._inventory.mode) or self._missing(point)

    def _missing(self, point: Point) -> str | None:
        """Return what a host has not that a point needs, None for nothing."""
        self._connected()
        for entry in (self._inventory.sender, self._inventory.receiver):
            if point.knobs["workload"] == "iperf3" and self._lacks(entry.name, "tools", "iperf3"):
                return (
                    f"workload=iperf3 needs iperf3 on host {entry.name}; install it there, or take"
                    " workload=bulk"
                )
            for control in point.controls:
                facts = self._facts[entry.name]
                if self._lacks(entry.name, "controls", control):
                    there = ", ".join(sorted(facts["controls"]["available"]))
                    return (
                        f"host {entry.name} (Linux {facts['kernel']}) has no congestion control {control!r},"
                        f" which cc={point.knobs['cc']} asks for; it has {there}; take one of them"
                    )
        emulator = self._inventory.emulator
        if self._inventory.mode == "shaped" and emulator is not None:
            found_bytes = self._measured().mtu_bytes
            if found_bytes != point.mtu_bytes:
                return (
                    f"mtu={point.mtu_bytes} is not the path's, which is {found_bytes} bytes; take"
                    f" mtu={found_bytes}, or set the interfaces on the way"
                )
            for kind in steps.needs(self.agent_spec(point)):
                words = self._lacks(emulator.name, "qdiscs", kind)
                if words:
                    return (
                        f"host {emulator.name} (Linux {self._facts[emulator.name]['kernel']}) cannot build"
                        f" {kind} ({words}); install the module of its kernel, or ask for links without"
                    )
        return None

    def _lacks(self, name: str, what: str, which: str) -> str:
        """Return why a host has not a tool, control or qdisc, "" where it has; each is asked for once."""
        key = (name, what, which)
        if key not in self._asked:
            told = self._connected()[name].call("facts", preflight.FACTS_LIMIT_S, **{what: [which]})[what]
            if what == "controls":
                self._asked[key] = "it is not there" if which in told["missing"] else ""
            elif what == "tools":
                self._asked[key] = "it is not installed" if told[which] is None else ""
            else:
                self._asked[key] = told[which]
        return self._asked[key]

    def settings(self, stored: Mapping[str, Any] | None) -> dict[str, list[str]]:
        """See `lab.engines.base.Engine.settings`: what the path is, measured once a run folder.

        Links as they are fix rate, RTT and MTU, and what the ends' interfaces do for the CPU, which
        sizes windows. Shaped ones fix nothing, so that a dry run knows every word of theirs.
        """
        same = stored is not None and stored.get("inventory") == _told(self._inventory)
        if same and stored is not None and stored.get("path"):
            self._path = MeasuredPath.of(stored["path"])
        path, offloads = self._measured(), self._offloads()
        if path.rate_bps is None:
            if offloads:
                self._remarks += (
                    "the hosts join packets on their interfaces (offloads): --set offloads=on has that"
                    " predicted, and queues made for it; ethtool -K switches it off",
                )
            return {}
        return {
            "rate": [_canonical("rate", units.format_rate(_significant(path.rate_bps)))],
            "rtt": [_canonical("rtt", units.format_time(round(path.base_rtt_s, 6)))],
            "mtu": [str(path.mtu_bytes)],
            "offloads": ["on" if offloads else "off"],
            "queue": ["auto"],  # whatever a scenario says: it is what it is, and nobody knows it
        }

    def _offloads(self) -> bool:
        """Return whether an end hands over or takes several packets as one."""
        every = [
            self._facts[entry.name]["interfaces"][entry.interfaces[0]]["offloads"]
            for entry in (self._inventory.sender, self._inventory.receiver)
        ]
        return any(every)

    def _measured(self) -> MeasuredPath:
        """Return the path as it was measured before anything was changed."""
        hosts = self._connected()
        if self._path is None:
            sender = self._inventory.sender
            interface = self._facts[sender.name]["interfaces"][sender.interfaces[0]]
            self._path = points.measured_path(hosts, interface["mtu_bytes"])
            self._remarks += tuple(measure.remarks(self._path))
        return self._path

    def record(self) -> dict[str, Any]:
        """See `lab.engines.base.Engine.record`: the hosts as they were found, and the path between them."""
        return {
            "inventory": _told(self._inventory),
            "hosts": self._facts,
            "remarks": list(self._remarks),
            "path": None if self._path is None else self._path.told(),
        }

    def dry_run(self, points: Sequence[Point]) -> Iterator[str]:
        """See `lab.engines.base.Engine.dry_run`."""
        for sentence in dict.fromkeys(fit.unfit(point, self._inventory.mode) for point in points):
            if sentence:
                yield f"Cannot run: {sentence}"
        able = [point for point in points if fit.unfit(point, self._inventory.mode) is None]
        yield from dryrun.lines(self._inventory, [(point, self.agent_spec(point)) for point in able])

    # running

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
        """See `lab.engines.base.Engine.run`. Points wait for each other: there is one path."""
        del kernel, seed, memory_bytes, cpu
        with self._turn:
            began_ns = clock.now_ns()
            watch = points.Watch(lambda: self._stopped, began_ns + int(wall_limit_s * 1e9))
            watch.look()
            one = points.PointRun(self._connected(), spec, self._measured(), watch, self._first_port)
            try:
                frames, outcome = one.run(folder)
            except EngineError as failed:
                self._require_all(failed)
                raise
            finally:
                self._first_port = one.last_port
            wall_s = (clock.now_ns() - began_ns) / 1e9
            releases = {name: facts["kernel"] for name, facts in self._facts.items()}
            return EngineResult(frames, {**outcome, "kernels": releases}, wall_s, wall_s)

    def _require_all(self, failed: EngineError) -> None:
        """Raise PreconditionError where a host is lost: then no other point would fare better."""
        try:
            self._connected().each(lambda host: host.call("clock", points.CALL_S / 4))
        except LabError as lost:
            self._lost = True
            raise PreconditionError(f"{failed}\nrun it again when all hosts answer: {lost}") from failed

    def stop(self) -> None:
        """See `lab.engines.base.Engine.stop`. The point that runs puts everything back first."""
        self._stopped = True

    def close(self) -> None:
        """See `lab.engines.base.Engine.close`. Raises EngineError where a host could not put all back."""
        with self._opening:
            hosts, self._hosts = self._hosts, None
        if hosts is not None:
            hosts.__exit__()
            if hosts.left and not self._lost:  # else it was said, and why
                raise EngineError("\n".join(hosts.left))


_WORLD = spec.World(own_kernel=False, real_clock=True, controls=frozenset())
"""Hosts that are not ours: no congestion control becomes theirs, each socket asks for its own."""


def make(options: Options | None = None) -> RemoteEngine:
    """Return the engine for an inventory; no host is connected to yet. Raises UserError."""
    if options is None or options.inventory is None:
        raise UserError(
            "--engine remote: name the hosts with --inventory FILE, such as inventory.toml"
            " (see docs/how-to/remote.md)"
        )
    return RemoteEngine(inventory_file.load(options.inventory))


def _told(inventory: Inventory) -> dict[str, Any]:
    """Return the inventory as a manifest keeps it; nothing in it is secret."""
    return {
        "links": inventory.mode,
        "hosts": {
            entry.name: {
                "address": entry.address,
                "role": entry.role,
                "interfaces": list(entry.interfaces),
                "test_address": entry.test_address,
            }
            for entry in inventory.used
        },
    }


def _canonical(name: str, text: str) -> str:
    return PATH_KNOBS[name].canonical(text)


def _significant(value: float) -> float:
    """Round to as many digits as a measurement bears."""
    return float(f"{value:.{_RATE_DIGITS}g}")
