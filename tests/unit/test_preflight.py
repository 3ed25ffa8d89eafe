"""Judging hosts by their facts: each fault gives its sentence, and a good host none."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.agent import facts as agent_facts
from lab.agent import links
from lab.agent.links import Link
from lab.errors import PreconditionError
from lab.remote import inventory, preflight
from lab.remote.preflight import Wanted

LAB = inventory.parse(
    """
    [hosts.sender]
    address = "lab1"
    role = "sender"
    interface = "eth1"
    test_address = "192.0.2.1"
    [hosts.receiver]
    address = "lab2"
    role = "receiver"
    interface = "eth1"
    test_address = "198.51.100.1"
    become = "sudo"
    [hosts.emulator]
    address = "lab3"
    role = "emulator"
    interfaces = ["eth1", "eth2"]
    [links]
    mode = "shaped"
    """,
    Path("lab.toml"),
)
WANTED = Wanted(
    tools=frozenset({"iperf3"}),
    controls=frozenset({"bbr"}),
    sysctls=frozenset({"net.ipv4.tcp_rmem"}),
    qdiscs=frozenset({"netem", "htb"}),
    mtu_bytes=1500,
    rate_bps=1e9,
    offloads=False,
)


def interface(*addresses: str) -> dict[str, Any]:
    return {
        "up": True,
        "running": True,
        "mtu_bytes": 1500,
        "speed_bps": 1e10,
        "driver": "ixgbe",
        "offloads": [],
        "addresses": list(addresses),
        "root": {"kind": "mq", "configured": False},
        "ingress": False,
        "carries_ssh": False,
    }


def good() -> dict[str, dict[str, Any]]:
    """Return the facts of three hosts that are as they should be."""
    found = {}
    for number, entry in enumerate(LAB.hosts):
        questions = preflight.questions(entry, WANTED)
        addresses = [f"{entry.test_address}/24"] if entry.test_address else []
        found[entry.name] = {
            "kernel": "6.1.0-30-amd64",
            "uid": 0,
            "host": f"boot-{number}",
            "tools": dict.fromkeys(questions["tools"], "1.0"),
            "controls": {"available": ["cubic", "bbr"], "loadable": [], "missing": []},
            "interfaces": {name: interface(*addresses) for name in entry.interfaces},
            "interface_names": ["lo", "eth0", "eth1", "eth2"],
            "sysctls": dict.fromkeys(questions["sysctls"], "4096 131072 6291456"),
            "default_qdisc": "fq_codel",
            "room_bytes": 2**30,
            "qdiscs": dict.fromkeys(questions["qdiscs"], ""),
            "held": False,
            "leftover": False,
        }
    return found


def judge(change: Callable[[dict[str, dict[str, Any]]], None], **clocks_ns: int) -> preflight.Judgement:
    facts = copy.deepcopy(good())
    change(facts)
    return preflight.judge(LAB, WANTED, facts, clocks_ns)


def put(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Return a change of one fact: "sender/interfaces/eth1/up"."""

    def change(facts: dict[str, Any]) -> None:
        *folders, last = path.split("/")
        for folder in folders:
            facts = facts[folder]
        facts[last] = value

    return change


def test_good_hosts_are_fit_and_need_no_remark() -> None:
    judged = judge(lambda _facts: None, sender=10_000)
    assert judged.refusals == judged.remarks == ()
    assert judged.facts == good()
    judged.check()


def test_each_is_asked_for_what_it_has_to_have() -> None:
    sender, _, emulator = (preflight.questions(entry, WANTED) for entry in LAB.hosts)
    assert sender == {
        "interfaces": ["eth1"],
        "tools": ["ip", "iperf3"],
        "controls": ["bbr"],
        "qdiscs": [],
        "sysctls": ["net.ipv4.tcp_rmem"],
    }
    assert emulator == {
        "interfaces": ["eth1", "eth2"],
        "tools": ["ip", "tc"],
        "controls": [],
        "qdiscs": ["htb", "netem"],
        "sysctls": [],
    }
    agent_facts.Questions(**emulator)  # the agent takes all of them


REFUSED = [
    (
        put("sender/held", True),
        "host sender: another run of wanlab may change it now; wait for its end, or end it",
    ),
    (
        put("sender/leftover", True),
        "host sender: a run that died has left changes there;"
        " put them back with `wanlab clean --inventory lab.toml`",
    ),
    (
        put("sender/uid", 1000),
        "host sender: the agent runs there as user 1000, and has to be root;"
        ' set become = "sudo" or "doas", or log in as root',
    ),
    (
        put("receiver/uid", 1000),
        "host receiver: the agent runs there as user 1000, and has to be root;"
        " let sudo make it root, not another user",
    ),
    (
        put("sender/tools/iperf3", None),
        "host sender: iperf3 is not installed; install package iperf3 there",
    ),
    (put("emulator/tools/tc", None), "host emulator: tc is not installed; install package iproute2 there"),
    (
        put("sender/controls", {"available": ["cubic", "reno"], "loadable": [], "missing": ["bbr"]}),
        "host sender: its kernel (6.1.0-30-amd64) has no congestion control bbr, only cubic, reno;"
        " install a kernel that has it, or leave it out",
    ),
    (
        put("receiver/sysctls/net.ipv4.tcp_rmem", None),
        "host receiver: its kernel (6.1.0-30-amd64) has no net.ipv4.tcp_rmem;"
        " leave its knob out, or take a later kernel",
    ),
    (
        put("emulator/qdiscs/netem", "Error: Specified qdisc kind is unknown."),
        "host emulator: its kernel (6.1.0-30-amd64) cannot build netem, which the link needs"
        " (Error: Specified qdisc kind is unknown.); install the kernel's modules, or another kernel",
    ),
    (
        put("sender/room_bytes", 1024),
        "host sender: /run has 1 KiB free, and 4 MiB are needed; make room there, or record less",
    ),
    (
        put("sender/interfaces/eth1", None),
        "host sender: there is no interface eth1, only lo, eth0, eth1, eth2; correct the inventory",
    ),
    (
        put("sender/interfaces/eth1/up", False),
        "host sender: eth1 is down; bring it up with `ip link set dev eth1 up`",
    ),
    (
        put("sender/interfaces/eth1/running", False),
        "host sender: eth1 has no carrier; look at its cable and its other end",
    ),
    (
        put("sender/interfaces/eth1/addresses", ["192.0.2.10/24"]),
        "host sender: eth1 has not the address 192.0.2.1 (192.0.2.10/24); correct the inventory",
    ),
    (
        put("emulator/interfaces/eth2/carries_ssh", True),
        "host emulator: eth2 carries the SSH connection, and shaping it could cut that;"
        " name another interface",
    ),
    (
        put("emulator/interfaces/eth2/carries_ssh", None),
        "host emulator: whether eth2 carries the SSH connection cannot be told, so it is not shaped;"
        " name another",
    ),
    (
        put("emulator/interfaces/eth1/root", {"kind": "cake", "configured": True}),
        "host emulator: eth1 has a root qdisc cake that somebody has configured, and it could not be put back"
        " as it was; remove it (`tc qdisc del dev eth1 root`) or name another interface",
    ),
    (
        put("emulator/interfaces/eth1/ingress", True),
        "host emulator: eth1 has an ingress qdisc that somebody has configured; remove it"
        " (`tc qdisc del dev eth1 ingress`, or clsact) or name another interface",
    ),
    (
        put("receiver/host", "boot-0"),
        "hosts sender and receiver are the same machine; each has to be one of its own",
    ),
]


@pytest.mark.parametrize(("change", "sentence"), REFUSED)
def test_refusals(change: Callable[[Any], None], sentence: str) -> None:
    judged = judge(change)
    assert judged.refusals == (sentence,)
    with pytest.raises(PreconditionError) as refused:
        judged.check()
    assert str(refused.value) == sentence


def test_all_refusals_are_said_at_once() -> None:
    def change(facts: dict[str, Any]) -> None:
        for each, _ in REFUSED[:8]:
            each(facts)

    assert len(judge(change).refusals) == 8


REMARKED = [
    (
        put("sender/controls", {"available": ["cubic"], "loadable": ["bbr"], "missing": []}),
        "host sender: the module of bbr will be loaded, and stays until its next boot",
    ),
    (
        put("sender/interfaces/eth1/mtu_bytes", 1400),
        "host sender: eth1 has an MTU of 1400 bytes, and 1500 are asked for",
    ),
    (
        put("sender/interfaces/eth1/speed_bps", 1e8),
        "host sender: eth1 runs at 100 Mbit/s, and 1 Gbit/s are asked for",
    ),
    (
        put("sender/interfaces/eth1/offloads", ["rx-gro", "tx-tcp-segmentation"]),
        "host sender: eth1 has offloads on, and they are left on: a queue counts what they join as one packet"
        " (rx-gro, tx-tcp-segmentation)",
    ),
    (
        put("sender/interfaces/eth1/carries_ssh", True),
        "host sender: eth1 carries the SSH connection as well: its packets are among those of the test",
    ),
    (
        put("emulator/interfaces/eth1/root", {"kind": "pfifo_fast", "configured": False}),
        "host emulator: eth1 has the root qdisc pfifo_fast, and new ones are fq_codel"
        " (net.core.default_qdisc), so fq_codel is what it will have afterwards",
    ),
    (
        put("receiver/kernel", "5.10.0"),
        "the hosts have different kernels: sender 6.1.0-30-amd64, receiver 5.10.0",
    ),
]


@pytest.mark.parametrize(("change", "sentence"), REMARKED)
def test_remarks(change: Callable[[Any], None], sentence: str) -> None:
    judged = judge(change)
    assert judged.remarks == (sentence,)
    assert judged.refusals == ()


def test_a_clock_that_is_hardly_known_is_remarked() -> None:
    judged = judge(lambda _facts: None, receiver=5_000_000)
    assert judged.remarks == (
        "host receiver: its clock is known to within 5ms only: the ends may start so far apart",
    )


def test_what_is_not_known_is_no_fault() -> None:
    def change(facts: dict[str, Any]) -> None:
        facts["sender"]["interfaces"]["eth1"].update(speed_bps=None, offloads=None, driver=None, root=None)
        facts["emulator"]["default_qdisc"] = None

    judged = judge(change)
    assert judged.refusals == judged.remarks == ()


def test_an_unused_emulator_is_not_judged() -> None:
    as_is = inventory.Inventory(LAB.path, LAB.hosts, "as-is", None, 30.0)
    facts = good()
    del facts["emulator"]
    assert preflight.judge(as_is, WANTED, facts, {}).refusals == ()


# what the agent makes of what the kernel tells


LINKS = [
    Link(1, "lo", 1, 65536, None, None),
    Link(2, "eth0", 1, 1500, None, 10),
    Link(3, "eth1", 1, 1500, None, 10),
    Link(4, "eth2", 1, 1500, None, None),
    Link(10, "bond0", 1, 1500, None, 11),
    Link(11, "br0", 1, 1500, None, None),
    Link(12, "br0.100", 1, 1500, 11, None),
    Link(13, "eth2.5", 1, 1500, 4, None),
]


@pytest.mark.parametrize(
    ("used", "carrying"),
    [
        ({4}, {4}),
        ({13}, {13, 4}),
        ({10}, {10, 2, 3}),
        ({12}, {12, 11, 10, 2, 3}),
        (set(), set()),
    ],
)
def test_a_connection_passes_the_devices_below_and_the_ports(used: set[int], carrying: set[int]) -> None:
    assert links.carriers(LINKS, used) == carrying


def processes(folder: Path, *environments: str) -> int:
    """Make a chain of processes, each the parent of the one before; return the first."""
    for number, environment in enumerate(environments):
        place = folder / str(100 - number)
        place.mkdir()
        (place / "environ").write_bytes(environment.encode())
        parent = 99 - number if number + 1 < len(environments) else 1
        (place / "stat").write_text(f"{100 - number} (a (strange) name) S {parent} 1 1 0")
    return 100


@pytest.mark.parametrize(
    ("environments", "found"),
    [
        (["SSH_CONNECTION=10.0.0.1 5000 10.0.0.2 22\0A=b\0"], ("10.0.0.1", "10.0.0.2")),
        (["A=b", "SUDO_USER=x", "X=y\0SSH_CONNECTION=10.0.0.1 5000 10.0.0.2 22"], ("10.0.0.1", "10.0.0.2")),
        (["SSH_CONNECTION=fe80::1%eth0 1 fe80::2%eth0 22"], ("fe80::1%eth0", "fe80::2%eth0")),
        (["A=b", "B=c"], None),
        (
            ["SSH_CONNECTION=UNKNOWN 65535 UNKNOWN 65535", "SSH_CONNECTION=10.0.0.1 1 10.0.0.2 22"],
            ("10.0.0.1", "10.0.0.2"),
        ),
    ],
)
def test_the_connection_is_found_above_sudo(
    tmp_path: Path, environments: list[str], found: tuple[str, str] | None
) -> None:
    known = agent_facts.ssh_connection(processes(tmp_path, *environments), tmp_path)
    assert known == (None if found is None else {"remote": found[0], "local": found[1]})


def test_this_machine_can_be_asked() -> None:
    known = agent_facts.gather(
        agent_facts.Questions(
            interfaces=("lo", "none0"), tools=("sh", "no-such-tool"), controls=("cubic", "nope")
        )
    )
    assert known["interfaces"]["lo"]["addresses"][0] == "127.0.0.1/8"
    assert known["interfaces"]["lo"]["mtu_bytes"] == 65536
    assert known["interfaces"]["none0"] is None
    assert known["tools"]["no-such-tool"] is None
    assert known["tools"]["sh"] is not None
    assert "nope" in known["controls"]["missing"]
    assert "lo" in known["interface_names"]
