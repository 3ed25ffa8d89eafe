"""What a point changes on real hosts: from its specification to steps, a host at a time. Pure.

A step is JSON, and the agent there makes it and notes how it is undone (see
`lab.agent.hostops`): {"do": "sysctl", "name", "value"} or {"do": "run", "argv",
"undo"}. Every word of a command stands for itself: there is no shell anywhere.

Of a host only values of `net.ipv4` are set, and `net.core.rmem_max` and
`wmem_max` where the point's own sockets ask for more than these allow. A knob at
its default means the kernel's default, so that is written too: the hosts may
have been tuned. What an interface may do for the CPU (offloads) is left alone.

An emulator stands for both routers of a path. Its two interfaces face the
sender and the receiver:

    sender --> [delay line] --> forwarding --> [rate, queue] --> receiver
    sender <-- [rate, queue] <-- forwarding <-- [delay line] <-- receiver

A delay line is netem on a device of its own (ifb) that what comes in is led
through; the shaper is at the way out. So packets meet the delay first and the
bottleneck after, where the lab's own networks have it the other way round.
Neither RTT nor rate nor queue is changed by it, but what netem loses never
reaches the bottleneck.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lab import plans, qdisc
from lab.plans.plan import Egress, Plan
from lab.remote.inventory import Inventory

Step = dict[str, Any]

OUT, BACK = "wanlab-out", "wanlab-back"
"""The devices of the delay lines: of what the sender sends, of what the receiver sends."""

_INTERFACE = "@"
"""In place of an interface's name, while its commands are text."""

_SETTABLE = re.compile(r"net\.ipv4\.[a-z0-9_]+|net\.core\.[rw]mem_max")

_DEFAULTS = {
    "net.ipv4.tcp_adv_win_scale": "1",
    "net.ipv4.tcp_app_win": "31",
    "net.ipv4.tcp_ecn": "2",
    "net.ipv4.tcp_moderate_rcvbuf": "1",
    "net.ipv4.tcp_notsent_lowat": "4294967295",
}
"""The kernel's own values of what the lab has knobs for. Source: ip-sysctl.rst of Linux 6.12."""

_ALONE = {"net.ipv4.tcp_no_metrics_save": "1"}
"""What one point has learned of the path is not for the next."""

SYSCTLS = frozenset({*_DEFAULTS, *_ALONE, "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"})
"""What every point sets at both ends."""


def sysctl(name: str, value: str) -> Step:
    """Return the step that sets a sysctl. Raises ValueError for one that a point must never set."""
    if not _SETTABLE.fullmatch(name):
        raise ValueError(f"{name} is not set on hosts that are not the lab's own")
    return {"do": "sysctl", "name": name, "value": value}


def run(argv: Sequence[str], undo: Sequence[str] | None) -> Step:
    """Return the step that runs a command; undo: the command that puts back what it does."""
    return {"do": "run", "argv": list(argv), "undo": None if undo is None else list(undo)}


NODES = {"sender": "snd", "receiver": "rcv"}
"""The node of a path that a host with a role is; an emulator is both routers."""


def all_steps(spec: Mapping[str, Any], inventory: Inventory) -> dict[str, list[Step]]:
    """Return {host: its steps} of a point, in the order of the inventory."""
    found: dict[str, list[Step]] = {}
    for host in inventory.used:
        if host.role == "emulator":
            found[host.name] = emulator_steps(spec, *host.interfaces)
        else:
            found[host.name] = end_steps(spec, NODES[host.role])
    return found


def end_steps(spec: Mapping[str, Any], node: str) -> list[Step]:
    """Return the steps of a host at an end."""
    flows = spec["workload"]["flows"]
    of_all = dict(spec["host_sysctls"])
    if not any(flow["dst"] == node for flow in flows):
        of_all.pop("net.core.rmem_max", None)
    if not any(flow["src"] == node for flow in flows):
        of_all.pop("net.core.wmem_max", None)
    values = {**_DEFAULTS, **spec["sysctls"].get(node, {}), **of_all, **_ALONE}
    return [sysctl(name, values[name]) for name in sorted(values)]


def emulator_steps(spec: Mapping[str, Any], to_sender: str, to_receiver: str) -> list[Step]:
    """Return the steps of the host between: forwarding, delay lines, shapers."""
    plan = _plan(spec)
    found = forwarding(to_sender, to_receiver)
    found += _delay_line(OUT, to_sender, plan.end("r2-eth1").egress)
    found += _delay_line(BACK, to_receiver, plan.end("r1-eth0").egress)
    found += _shaper(to_receiver, plan.end("r1-eth1").egress)
    found += _shaper(to_sender, plan.end("r2-eth0").egress)
    return found


def forwarding(*interfaces: str) -> list[Step]:
    """Return the steps that let packets through an emulator; each interface's own, which can be put back."""
    return [  # with slashes: an interface may have a dot in its name
        {"do": "sysctl", "name": f"net/ipv4/conf/{interface}/forwarding", "value": "1"}
        for interface in interfaces
    ]


def _plan(spec: Mapping[str, Any]) -> Plan:
    return plans.make(spec["topology"]["name"], spec["topology"]["params"])


def _delay_line(device: str, entry: str, egress: Egress) -> Iterator[Step]:
    """Yield the steps of a delay line for what comes in at `entry`; none where nothing is delayed or lost."""
    if not qdisc.netem_words(egress):
        return
    yield run(["ip", "link", "add", "name", device, "type", "ifb"], ["ip", "link", "delete", "dev", device])
    yield run(["ip", "link", "set", "dev", device, "up"], None)  # goes with the device
    for argv in _tc(device, egress):
        yield run(argv, None)
    ingress = ["dev", entry, "handle", "ffff:", "ingress"]
    yield run(["tc", "qdisc", "add", *ingress], ["tc", "qdisc", "del", *ingress])
    # IPv4 alone: an ARP question that waits here would cost the first packet an RTT more
    yield run(
        [
            *("tc", "filter", "add", "dev", entry, "parent", "ffff:", "protocol", "ip"),
            *("u32", "match", "u32", "0", "0"),
            *("action", "mirred", "egress", "redirect", "dev", device),
        ],
        None,  # goes with the ingress
    )


def _shaper(interface: str, egress: Egress) -> Iterator[Step]:
    """Yield the steps of a bottleneck at the way out of an interface.

    `add`, never `replace`: where somebody has configured a queue, tc refuses. The
    undo names the handle, so it cannot take away what is not ours.
    """
    for number, argv in enumerate(_tc(interface, egress)):
        undo = None
        if number == 0:  # the others go with the root
            handle = argv[argv.index("handle") + 1]
            undo = ["tc", "qdisc", "del", "dev", interface, "root", "handle", handle]
        yield run(argv, undo)


def _tc(interface: str, egress: Egress) -> list[list[str]]:
    """Return the commands of an egress; the interface's name is one word, whatever it is."""
    every = (words.split() for words in qdisc.egress_commands(_INTERFACE, egress))
    return [["tc", *(interface if word == _INTERFACE else word for word in words)] for words in every]


def needs(spec: Mapping[str, Any]) -> list[str]:
    """Return what an emulator's kernel must have for a point: kinds of qdisc, "ingress" and "ifb"."""
    plan = _plan(spec)
    found: list[str] = []
    for end in (plan.end("r1-eth1"), plan.end("r2-eth0")):
        for argv in _tc(_INTERFACE, end.egress):
            if "qdisc" in argv:
                found.append(argv[argv.index("handle") + 2])
    if any(qdisc.netem_words(plan.end(name).egress) for name in ("r2-eth1", "r1-eth0")):
        found += ["netem", "ifb", "ingress"]
    return list(dict.fromkeys(found))


def built(spec: Mapping[str, Any], inventory: Inventory) -> dict[str, Egress]:
    """Return {interface of the emulator: what leaves it}: what is read back after it was built."""
    plan = _plan(spec)
    found = {
        own: plan.end(name).egress
        for node, named in interfaces(spec, inventory).items()
        if node in ("r1", "r2")
        for name, own in named.items()
    }
    return {own: egress for own, egress in found.items() if egress}


def wrong(egresses: Mapping[str, Egress], told: Mapping[str, Any]) -> list[str]:
    """Return a sentence for all that reads back otherwise than it was built.

    told: what the emulator says of its queues, see `lab.agent.between.queues`.
    """
    every = qdisc.parse_dump(bytes.fromhex(told["qdiscs"]))
    found: list[str] = []
    for interface, egress in egresses.items():
        known = told["interfaces"][interface]
        here = [entry for entry in every if entry["ifindex"] == known["index"]]
        classes = qdisc.parse_dump(bytes.fromhex(known["classes"]))
        found += [f"{interface}: {sentence}" for sentence in qdisc.differences(egress, here, classes)]
    return found


def interfaces(spec: Mapping[str, Any], inventory: Inventory) -> dict[str, dict[str, str]]:
    """Return {node: {interface in the lab: interface there}} of a point: what its records are of.

    An emulator is both routers: an interface of it belongs to the one whose queue it holds.
    """
    ends = {
        NODES[one.role]: {f"{NODES[one.role]}-eth0": one.interfaces[0]}
        for one in (inventory.sender, inventory.receiver)
    }
    emulator = inventory.emulator
    if emulator is None or inventory.mode != "shaped":
        return ends
    plan, (to_sender, to_receiver) = _plan(spec), emulator.interfaces
    there = {
        "r1-eth0": BACK if qdisc.netem_words(plan.end("r1-eth0").egress) else "",
        "r1-eth1": to_receiver,
        "r2-eth0": to_sender,
        "r2-eth1": OUT if qdisc.netem_words(plan.end("r2-eth1").egress) else "",
    }
    routers = {
        router: {name: own for name, own in there.items() if own and name.startswith(router)}
        for router in ("r1", "r2")
    }
    return {**routers, **ends}


def text(step: Step) -> str:
    """Return a step as a dry run prints it: a line that a shell would take for just that."""
    if step["do"] == "sysctl":
        return f"sysctl -w {shlex.quote(step['name'] + '=' + step['value'])}"
    return shlex.join(step["argv"])


def undo_text(step: Step) -> str | None:
    """Return the command that puts a step back; None where that goes without saying, or with another's."""
    if step["do"] == "sysctl" or step["undo"] is None:
        return None
    return shlex.join(step["undo"])


def lines(steps: Iterable[Step]) -> Iterator[str]:
    """Yield the lines of a dry run: each step, and how it is put back."""
    for step in steps:
        yield text(step)
        back = undo_text(step)
        if back is not None:
            yield f"    # put back: {back}"
