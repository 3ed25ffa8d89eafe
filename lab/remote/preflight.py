"""Whether the hosts are fit for a run, judged by their facts before anything is changed.

A refusal is what would make the run wrong or do harm; a remark is what the
reader of its results should know. Pure but for `look`, which asks the hosts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lab import units
from lab.errors import PreconditionError
from lab.remote.host import Hosts
from lab.remote.inventory import Entry, Inventory

FACTS_LIMIT_S = 60.0
LEAST_ROOM_BYTES = 4 * 2**20
"""For the notes of what is changed, and room to spare."""

_CLOCK_NS = 1_000_000
"""Above this error of a clock's offset instants of two hosts no longer tell which was first."""

_PACKAGES = {"ip": "iproute2", "tc": "iproute2"}
_DEFAULTS_OF_THEIR_OWN = ("noqueue", "mq")  # chosen by the kind of device, whatever the sysctl says


@dataclass(frozen=True)
class Wanted:
    """What a run needs of its hosts.

    tools, controls (congestion controls), sysctls (names that are set): of sender
    and receiver. qdiscs: of the emulator, see `facts.Questions`. mtu_bytes,
    rate_bps: the most that is asked of the path, None for nothing. offloads: as
    asked, None for as they are. room_bytes: for files below /run.
    """

    tools: frozenset[str] = frozenset()
    controls: frozenset[str] = frozenset()
    sysctls: frozenset[str] = frozenset()
    qdiscs: frozenset[str] = frozenset()
    mtu_bytes: int | None = None
    rate_bps: float | None = None
    offloads: bool | None = None
    room_bytes: int = LEAST_ROOM_BYTES


@dataclass(frozen=True)
class Judgement:
    """A sentence each: refusals stop the run, remarks go with its results."""

    refusals: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def check(self) -> None:
        """Raise PreconditionError with all refusals, if there are any."""
        if self.refusals:
            raise PreconditionError("\n".join(self.refusals))


def questions(entry: Entry, wanted: Wanted) -> dict[str, list[str]]:
    """Return the arguments of operation `facts` for a host."""
    emulator = entry.role == "emulator"
    tools = {"ip", "tc"} if emulator else {"ip", *wanted.tools}
    return {
        "interfaces": list(entry.interfaces),
        "tools": sorted(tools),
        "controls": [] if emulator else sorted(wanted.controls),
        "qdiscs": sorted(wanted.qdiscs) if emulator else [],
        "sysctls": [] if emulator else sorted(wanted.sysctls),
    }


def look(hosts: Hosts, wanted: Wanted) -> Judgement:
    """Ask all hosts for their facts, and judge. Raises EngineError where one fails to answer."""
    facts = hosts.each(lambda host: host.call("facts", FACTS_LIMIT_S, **questions(host.entry, wanted)))
    errors_ns = {name: host.clock_error_ns for name, host in hosts.items()}
    return judge(hosts.inventory, wanted, facts, errors_ns)


def judge(
    inventory: Inventory,
    wanted: Wanted,
    facts: Mapping[str, Mapping[str, Any]],
    clock_errors_ns: Mapping[str, int],
) -> Judgement:
    """Judge by the facts of each host that is used (see `lab.agent.facts.gather`)."""
    refusals: list[str] = []
    remarks: list[str] = []
    for entry in inventory.used:
        known, where = facts[entry.name], f"host {entry.name}: "
        for found in (
            _free(inventory, known),
            _rights(entry, known),
            _means(wanted, known),
            # what another run has built there is no reason to remove anything
            () if known["held"] else _devices(entry, known),
        ):
            refusals += [where + sentence for sentence in found]
        remarks += [where + sentence for sentence in _cautions(entry, wanted, known)]
        if clock_errors_ns.get(entry.name, 0) > _CLOCK_NS:
            error = units.format_time(clock_errors_ns[entry.name] / 1e9)
            remarks.append(
                f"{where}its clock is known to within {error} only: the ends may start so far apart"
            )
    refusals += _same_machine(inventory, facts)
    sender, receiver = (facts[one.name]["kernel"] for one in (inventory.sender, inventory.receiver))
    if sender != receiver:
        remarks.append(f"the hosts have different kernels: sender {sender}, receiver {receiver}")
    return Judgement(tuple(refusals), tuple(remarks), facts)


def _free(inventory: Inventory, known: Mapping[str, Any]) -> Iterator[str]:
    if known["held"]:
        yield "another run of wanlab may change it now; wait for its end, or end it"
    if known["leftover"]:
        yield (
            "a run that died has left changes there; put them back with"
            f" `wanlab clean --inventory {inventory.path}`"
        )


def _rights(entry: Entry, known: Mapping[str, Any]) -> Iterator[str]:
    if known["uid"] != 0:
        mend = (
            'set become = "sudo" or "doas", or log in as root'
            if entry.become == "none"
            else f"let {entry.become} make it root, not another user"
        )
        yield f"the agent runs there as user {known['uid']}, and has to be root; {mend}"


def _means(wanted: Wanted, known: Mapping[str, Any]) -> Iterator[str]:
    for name, version in known["tools"].items():
        if version is None:
            yield f"{name} is not installed; install package {_PACKAGES.get(name, name)} there"
    for name in known["controls"]["missing"]:
        yield (
            f"its kernel ({known['kernel']}) has no congestion control {name}, only"
            f" {', '.join(known['controls']['available'])}; install a kernel that has it, or leave it out"
        )
    for name, value in known["sysctls"].items():
        if value is None:
            yield f"its kernel ({known['kernel']}) has no {name}; leave its knob out, or take a later kernel"
    for kind, words in (known["qdiscs"] or {}).items():
        if words:
            yield (
                f"its kernel ({known['kernel']}) cannot build {kind}, which the link needs ({words});"
                " install the kernel's modules, or another kernel"
            )
    if known["room_bytes"] < wanted.room_bytes:
        free, need = units.human_size(known["room_bytes"]), units.human_size(wanted.room_bytes)
        yield f"/run has {free} free, and {need} are needed; make room there, or record less"


def _devices(entry: Entry, known: Mapping[str, Any]) -> Iterator[str]:
    for name in entry.interfaces:
        device = known["interfaces"].get(name)
        if device is None:
            names = ", ".join(known["interface_names"])
            yield f"there is no interface {name}, only {names}; correct the inventory"
        elif not device["up"]:
            yield f"{name} is down; bring it up with `ip link set dev {name} up`"
        elif not device["running"]:
            yield f"{name} has no carrier; look at its cable and its other end"
        elif entry.role == "emulator":
            yield from _shaped(name, device)
        elif entry.test_address not in {one.partition("/")[0] for one in device["addresses"]}:
            has = ", ".join(device["addresses"]) or "none"
            yield f"{name} has not the address {entry.test_address} ({has}); correct the inventory"


def _shaped(name: str, device: Mapping[str, Any]) -> Iterator[str]:
    """Yield why an interface must not be shaped."""
    if device["carries_ssh"] is None:
        yield f"whether {name} carries the SSH connection cannot be told, so it is not shaped; name another"
    elif device["carries_ssh"]:
        yield f"{name} carries the SSH connection, and shaping it could cut that; name another interface"
    if device["root"] and device["root"]["configured"]:
        yield (
            f"{name} has a root qdisc {device['root']['kind']} that somebody has configured, and it could not"
            f" be put back as it was; remove it (`tc qdisc del dev {name} root`) or name another interface"
        )
    if device["ingress"]:
        yield (
            f"{name} has an ingress qdisc that somebody has configured; remove it"
            f" (`tc qdisc del dev {name} ingress`, or clsact) or name another interface"
        )


def _cautions(entry: Entry, wanted: Wanted, known: Mapping[str, Any]) -> Iterator[str]:
    for name in known["controls"]["loadable"]:
        yield f"the module of {name} will be loaded, and stays until its next boot"
    for name in entry.interfaces:
        device = known["interfaces"].get(name)
        if device is None:
            continue
        if wanted.mtu_bytes is not None and device["mtu_bytes"] < wanted.mtu_bytes:
            yield f"{name} has an MTU of {device['mtu_bytes']} bytes, and {wanted.mtu_bytes} are asked for"
        if wanted.rate_bps and device["speed_bps"] and device["speed_bps"] < wanted.rate_bps:
            has, asked = units.human_rate(device["speed_bps"]), units.human_rate(wanted.rate_bps)
            yield f"{name} runs at {has}, and {asked} are asked for"
        if wanted.offloads is False and device["offloads"]:
            yield (
                f"{name} has offloads on, and they are left on: a queue counts what they join as one packet"
                f" ({', '.join(device['offloads'])})"
            )
        if entry.role != "emulator":
            if device["carries_ssh"]:
                yield f"{name} carries the SSH connection as well: its packets are among those of the test"
            continue
        root, usual = device["root"], known["default_qdisc"]
        if root and usual and root["kind"] not in (usual, *_DEFAULTS_OF_THEIR_OWN):
            yield (
                f"{name} has the root qdisc {root['kind']}, and new ones are {usual}"
                f" (net.core.default_qdisc), so {usual} is what it will have afterwards"
            )


def _same_machine(inventory: Inventory, facts: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    seen: dict[str, str] = {}
    for entry in inventory.used:
        other = seen.setdefault(facts[entry.name]["host"], entry.name)
        if other != entry.name:
            yield f"hosts {other} and {entry.name} are the same machine; each has to be one of its own"
