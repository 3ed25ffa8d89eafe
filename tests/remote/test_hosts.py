"""Hosts over real SSH: what is changed is put back whatever dies, and what is refused is refused clearly."""

from __future__ import annotations

import argparse
import hashlib
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.cli import clean
from lab.errors import EngineError, LabError, PreconditionError
from lab.remote import inventory, preflight
from lab.remote.host import Hosts
from tests.namespace_hosts import Host, Lab, make_key
from tests.remote import kill_points

pytestmark = pytest.mark.remote

RMEM = {"do": "sysctl", "name": "net.ipv4.tcp_rmem", "value": "4096 131072 50000000"}
HTB = {
    "do": "run",
    "argv": ["tc", "qdisc", "add", "dev", "eth1", "root", "handle", "1:", "htb", "default", "1"],
    "undo": ["tc", "qdisc", "del", "dev", "eth1", "root", "handle", "1:"],
}


@pytest.fixture(scope="module")
def pair(lab_hosts: Callable[..., Lab]) -> Lab:
    """Return a sender and a receiver, the same for all tests: each has to leave them as they were."""
    return lab_hosts(2, run_size="8m")


@pytest.fixture(autouse=True)
def as_before(pair: Lab) -> Iterator[None]:
    """Hold every test to that: settings, files and processes."""
    before = [host.settings() for host in pair.hosts]
    yield
    for host, known in zip(pair.hosts, before, strict=True):
        host.mend()
        kill_points.await_gone(host)
        assert host.settings() == known


def sender(lab: Lab, **how: str) -> Hosts:
    """Return the sender alone, not yet connected."""
    known = inventory.load(lab.inventory(**how))
    return Hosts(known, [known.sender])


def refusal(lab: Lab, **how: str) -> str:
    """Return why the sender cannot be connected to."""
    with pytest.raises(PreconditionError) as refused, sender(lab, **how):
        pytest.fail("connected")
    return str(refused.value)


def test_hosts_tell_what_they_are(pair: Lab) -> None:
    known = inventory.load(pair.inventory())
    wanted = preflight.Wanted(
        tools=frozenset({"iperf3"}),
        controls=frozenset({"cubic"}),
        sysctls=frozenset({"net.ipv4.tcp_rmem"}),
    )
    with Hosts(known) as hosts:
        judged = preflight.look(hosts, wanted)
        offsets = [(host.clock_offset_ns, host.clock_error_ns) for host in hosts.values()]
    assert judged.refusals == ()
    for name, facts in judged.facts.items():
        host = pair[name]
        assert facts["uid"] == 0
        assert facts["ssh"]["local"] == host.management
        assert facts["tools"]["iperf3"].startswith("iperf 3")
        device = facts["interfaces"]["eth1"]
        assert device["addresses"] == [f"{host.test_address}/24"]
        assert (device["up"], device["running"], device["mtu_bytes"]) == (True, True, 1500)
        assert (device["driver"], device["carries_ssh"]) == ("veth", False)
        assert device["root"] == {"kind": "noqueue", "configured": False}
        assert facts["sysctls"]["net.ipv4.tcp_rmem"].count(" ") == 2
        assert (facts["held"], facts["leftover"]) == (False, False)
        assert 0 < facts["room_bytes"] <= 8 * 2**20
    for offset_ns, error_ns in offsets:  # one machine: the clocks are one
        assert abs(offset_ns) <= error_ns < 50_000_000


def test_the_interface_of_the_connection_is_not_shaped(lab_hosts: Callable[..., Lab]) -> None:
    three = lab_hosts(3)
    path = three.inventory(mode="shaped")
    path.write_text(path.read_text().replace("['eth1', 'eth2']", '["eth0", "eth2"]'))
    three["emulator"].run(["tc", "qdisc", "add", "dev", "eth2", "root", "handle", "7:", "htb"])
    with Hosts(inventory.load(path)) as hosts:
        judged = preflight.look(hosts, preflight.Wanted(qdiscs=frozenset({"htb", "no_such_kind"})))
    text = "\n".join(judged.refusals)
    assert "host emulator: eth0 carries the SSH connection" in text
    assert "host emulator: eth2 has a root qdisc htb that somebody has configured" in text
    assert "cannot build no_such_kind" in text
    assert "cannot build htb" not in text
    with pytest.raises(PreconditionError, match="carries the SSH connection"):
        judged.check()


def test_changes_are_put_back_at_the_end(pair: Lab) -> None:
    before = pair["sender"].settings()
    with sender(pair) as hosts:
        old = hosts["sender"].call("apply", 10, steps=[RMEM, HTB])
        now = pair["sender"].settings()
        assert now["/proc/sys/net/ipv4/tcp_rmem"].split() == RMEM["value"].split()
        assert "htb 1: dev eth1 root" in now["tc qdisc"]
    assert old[0].split() == before["/proc/sys/net/ipv4/tcp_rmem"].split()
    assert hosts.left == []


def test_points_follow_each_other_on_one_connection(pair: Lab) -> None:
    before = pair["sender"].settings()
    with sender(pair) as hosts:
        for _ in range(3):
            hosts["sender"].call("apply", 10, steps=[RMEM, HTB])
            assert hosts["sender"].call("restore", 10) == []
            assert pair["sender"].settings() == before


def test_a_step_that_fails_names_host_and_words_and_the_others_are_put_back(pair: Lab) -> None:
    with sender(pair) as hosts, pytest.raises(EngineError, match=r"host sender .*Exclusivity flag"):
        hosts["sender"].call("apply", 10, steps=[RMEM, HTB, HTB])
    assert hosts.left == []


def test_what_others_changed_meanwhile_is_left_and_said(pair: Lab) -> None:
    host = pair["sender"]
    old = host.run(["cat", "/proc/sys/net/ipv4/tcp_rmem"])
    with sender(pair) as hosts:
        hosts["sender"].call("apply", 10, steps=[RMEM])
        host.run(["sh", "-c", "echo 4096 131072 77777777 > /proc/sys/net/ipv4/tcp_rmem"])
    (said,) = hosts.left
    assert "host sender" in said
    assert "is 4096 131072 77777777 now: somebody else changed it" in said
    assert "77777777" in host.run(["cat", "/proc/sys/net/ipv4/tcp_rmem"])
    host.run(["sh", "-c", f"echo {old.strip()} > /proc/sys/net/ipv4/tcp_rmem"])


@pytest.mark.parametrize("point", kill_points.POINTS, ids=lambda point: point.name)
def test_kill_9_of_the_controller_at_each_step(pair: Lab, point: kill_points.Point) -> None:
    kill_points.survive(pair, point, "controller: kill -9")


ENDED = [
    ("in the middle of a change", "agent: kill -9"),
    ("in the middle of a change", kill_points.CUT),
    ("under load", "controller: Ctrl-C"),
    ("under load", "agent: kill -9"),
    ("under load", kill_points.HANGS),
    ("under load", kill_points.CUT),
    ("in the middle of putting back", "agent: kill -9"),
    ("in the middle of putting back", kill_points.HANGS),
    ("in the middle of putting back", kill_points.CUT),
    ("in the middle of putting back", kill_points.NEEDS_CLEAN),
]


@pytest.mark.parametrize(("where", "event"), ENDED)
def test_other_ends(pair: Lab, where: str, event: str) -> None:
    (point,) = (one for one in kill_points.POINTS if one.name == where)
    outcome = kill_points.survive(pair, point, event)
    if event in kill_points.THEIRS:
        assert re.search(r"host (sender|receiver) \(root@10\.213\.", outcome.words), outcome.words
    if event == kill_points.NEEDS_CLEAN:
        assert "ran: sysctl -w 'net.ipv4.tcp_rmem=" in outcome.cleaned


def test_after_agent_and_watchdog_were_killed_the_host_is_refused_until_it_is_clean(
    pair: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    host = pair["sender"]
    with sender(pair) as hosts:
        hosts["sender"].call("apply", 10, steps=[RMEM, HTB])
        watchdogs = host.processes("lab.agent.watchdog")
        host.kill("KILL", *watchdogs, *kill_points.agents(host))
        with pytest.raises(EngineError, match="host sender"):
            hosts["sender"].call("restore", 10)
    assert "wanlab clean" in hosts.left[0]
    known = inventory.load(pair.inventory())
    with Hosts(known) as hosts:
        (refused,) = preflight.look(hosts, preflight.Wanted()).refusals
        assert f"`wanlab clean --inventory {known.path}`" in refused
        with pytest.raises(PreconditionError, match="put them back with `wanlab clean`"):
            hosts["sender"].call("apply", 10, steps=[RMEM])

    def run(*words: str) -> str:
        parser = argparse.ArgumentParser()
        clean.add_arguments(parser)
        assert clean.run(parser.parse_args(["--inventory", str(known.path), *words])) == 0
        return capsys.readouterr().out

    changed = host.settings()
    told = run("--dry-run")
    assert "host sender: would run: tc qdisc del dev eth1 root handle 1:" in told
    assert "host receiver: nothing to put back" in told
    assert host.settings() == changed
    assert "host sender: ran: tc qdisc del dev eth1 root handle 1:" in run()
    assert "host sender: nothing to put back" in run()


def test_what_could_not_be_put_back_is_told_even_if_the_controller_died(
    pair: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    host = pair["sender"]
    old = host.run(["cat", "/proc/sys/net/ipv4/tcp_rmem"])
    (point,) = (one for one in kill_points.POINTS if one.name == "after the first sysctl")
    controller = kill_points.run_to(pair.inventory(), point)
    host.run(["sh", "-c", "echo 4096 131072 77777777 > /proc/sys/net/ipv4/tcp_rmem"])
    controller.kill()
    controller.communicate()
    deadline = time.monotonic() + 10
    while kill_points.agents(host) or host.processes("lab.agent.watchdog"):
        assert time.monotonic() < deadline
    with sender(pair) as hosts, pytest.raises(PreconditionError, match="put them back with `wanlab clean`"):
        hosts["sender"].call("hold", 10)
    parser = argparse.ArgumentParser()
    clean.add_arguments(parser)
    assert clean.run(parser.parse_args(["--inventory", str(pair.inventory())])) == 1
    said = capsys.readouterr().out
    assert "host sender: not put back: net.ipv4.tcp_rmem was set to" in said
    assert "is 4096 131072 77777777 now: somebody else changed it" in said
    host.run(["sh", "-c", f"echo {old.strip()} > /proc/sys/net/ipv4/tcp_rmem"])


def test_a_watchdog_that_was_killed_stops_further_changes(pair: Lab) -> None:
    host = pair["sender"]
    with sender(pair) as hosts:
        hosts["sender"].call("apply", 10, steps=[RMEM])
        host.kill("KILL", *host.processes("lab.agent.watchdog"))
        while host.processes("lab.agent.watchdog"):
            time.sleep(0.01)
        with pytest.raises(EngineError, match="the watchdog was ended by somebody"):
            hosts["sender"].call("apply", 10, steps=[HTB])
    assert hosts.left == []


def test_of_two_controllers_at_once_the_second_is_refused(pair: Lab) -> None:
    with sender(pair) as first, sender(pair) as second:
        first["sender"].call("apply", 10, steps=[RMEM])
        with pytest.raises(PreconditionError, match=r"host sender .*another run of wanlab"):
            second["sender"].call("apply", 10, steps=[HTB])
        facts = second["sender"].call("facts", 10)
        assert facts["held"]
        assert not facts["leftover"]
        assert "left alone" in second["sender"].call("clean", 10, dry_run=False)[0]
        assert "50000000" in pair["sender"].run(["cat", "/proc/sys/net/ipv4/tcp_rmem"])
    with sender(pair) as third:
        third["sender"].call("apply", 10, steps=[RMEM])


def fill(host: Host) -> None:
    host.run(["sh", "-c", "cat /dev/zero > /run/filler || true"])


def test_a_full_disk_changes_nothing(pair: Lab) -> None:
    host = pair["sender"]
    before = host.settings()
    fill(host)
    try:
        with sender(pair) as hosts:
            with pytest.raises(
                EngineError, match=r"tcp_rmem was not set: it cannot be noted down .*No space left"
            ):
                hosts["sender"].call("apply", 10, steps=[RMEM])
            with pytest.raises(EngineError, match=r"htb default 1 was not run: .*No space left"):
                hosts["sender"].call("apply", 10, steps=[HTB])
            assert host.settings() == before
        (refused,) = _look(pair).refusals
        assert "/run has 0 B free" in refused
    finally:
        host.run(["rm", "/run/filler"])


def _look(lab: Lab) -> preflight.Judgement:
    with Hosts(inventory.load(lab.inventory())) as hosts:
        return preflight.look(hosts, preflight.Wanted())


def test_a_disk_that_fills_up_meanwhile_keeps_nothing_from_being_put_back(pair: Lab) -> None:
    host = pair["sender"]
    try:
        with sender(pair) as hosts:
            hosts["sender"].call("apply", 10, steps=[RMEM])
            fill(host)
            room = [
                {"do": "sysctl", "name": "net.ipv4.tcp_rmem", "value": f"4096 131072 {50000001 + number}"}
                for number in range(200)
            ]
            with pytest.raises(EngineError, match="No space left"):  # what is left of a page is soon full
                hosts["sender"].call("apply", 10, steps=room)
        assert hosts.left == []
    finally:
        host.run(["rm", "/run/filler"])


def test_files_are_private_and_fetched_by_name_alone(pair: Lab, tmp_path: Path) -> None:
    host = pair["sender"]
    with sender(pair) as hosts:
        agent = hosts["sender"]
        with pytest.raises(EngineError, match="FileNotFoundError"):
            agent.call("fetch", 10, name="nothing", offset=0)
        (work,) = host.run(["sh", "-c", "echo /run/wanlab/net-*/work-*"]).split()
        for folder in (work, str(Path(work).parent), "/run/wanlab"):
            assert host.run(["stat", "-c", "%a %u", folder]).split() == ["700", "0"]
        host.run(
            ["sh", "-c", f"head -c 3000000 /dev/urandom > {work}/records; ln -s /etc/shadow {work}/link"]
        )
        assert agent.fetch("records", tmp_path / "records", 10) == 3000000
        digest = host.run(["sha256sum", f"{work}/records"]).split()[0]
        assert hashlib.sha256((tmp_path / "records").read_bytes()).hexdigest() == digest
        for name in ("../journal.jsonl", "/etc/shadow", "..", ".", "", "link"):
            with pytest.raises(EngineError, match=r"PermissionError|OSError|loop"):
                agent.call("fetch", 10, name=name, offset=0)


def test_sudo_makes_it_root_and_the_connection_is_still_known(pair: Lab) -> None:
    host = pair["sender"]
    address = f"guest@{host.management}"
    said = refusal(pair, become="sudo", sender=address)
    assert "sudo there asks for a password" in said
    assert "NOPASSWD" in said
    host.allow_sudo("guest ALL=(root) NOPASSWD: ALL")
    with sender(pair, become="sudo", sender=address) as hosts:
        facts = hosts["sender"].call("facts", 10, interfaces=["eth0"])
        assert facts["uid"] == 0
        assert facts["interfaces"]["eth0"]["carries_ssh"] is True
        hosts["sender"].call("apply", 10, steps=[RMEM, HTB])
    assert hosts.left == []
    host.allow_sudo("")


def test_without_becoming_root_it_says_so(pair: Lab) -> None:
    path = pair.inventory(sender=f"guest@{pair['sender'].management}")
    with Hosts(inventory.load(path)) as hosts:
        refusals = preflight.look(hosts, preflight.Wanted()).refusals
        with pytest.raises(EngineError, match="notes cannot be made"):
            hosts["sender"].call("apply", 10, steps=[RMEM])
    assert 'runs there as user 1234, and has to be root; set become = "sudo"' in "\n".join(refusals)


def test_an_unknown_host_key_is_refused(pair: Lab) -> None:
    known = pair.folder / "known_hosts"
    text = known.read_text()
    known.write_text("")
    try:
        assert "its host key is not known" in refusal(pair)
        assert known.read_text() == ""
    finally:
        known.write_text(text)


def test_a_changed_host_key_is_refused(pair: Lab, tmp_path: Path) -> None:
    make_key(tmp_path / "other")
    kind, key, _ = (tmp_path / "other.pub").read_text().split()
    known = pair.folder / "known_hosts"
    text = known.read_text()
    known.write_text(f"{pair['sender'].management} {kind} {key}\n")
    try:
        assert "its host key is not the one that your known_hosts has" in refusal(pair)
    finally:
        known.write_text(text)


def test_a_login_that_is_refused(pair: Lab) -> None:
    said = refusal(pair, sender=f"nobody@{pair['sender'].management}")
    assert "it refuses the login" in said


def test_all_hosts_that_fail_are_named_at_once(pair: Lab) -> None:
    pair["receiver"].stop_sshd()
    try:
        path = pair.inventory(sender=f"nobody@{pair['sender'].management}")
        with pytest.raises(PreconditionError) as refused, Hosts(inventory.load(path)):
            pytest.fail("connected")
    finally:
        pair["receiver"].start_sshd()
    assert "host sender (nobody@" in str(refused.value)
    assert "host receiver (root@" in str(refused.value)
    assert "nothing answers on its SSH port" in str(refused.value)


@pytest.fixture
def sshd(pair: Lab) -> Iterator[Callable[[str], None]]:
    """Return a way to start the sender's sshd anew with other lines in its configuration."""
    host = pair["sender"]

    def restart(more: str = "") -> None:
        host.stop_sshd()
        host.start_sshd(more)

    yield restart
    restart()


def test_a_host_without_python(pair: Lab, sshd: Callable[[str], None]) -> None:
    sshd("SetEnv PATH=/nonexistent\n")
    assert "there is no python3; install Python 3.8 or later there" in refusal(pair)


def test_a_talkative_login_shell(pair: Lab, sshd: Callable[[str], None]) -> None:
    sshd('ForceCommand echo "Welcome to $HOSTNAME!"; exec sh -c "$SSH_ORIGINAL_COMMAND"\n')
    with sender(pair) as hosts:
        assert hosts["sender"].call("facts", 10)["uid"] == 0


def test_a_login_shell_that_is_no_shell(pair: Lab, sshd: Callable[[str], None]) -> None:
    sshd("ForceCommand echo This account is currently not available.; exit 1\n")
    said = refusal(pair)
    assert "the agent there ended with status 1 and no word" in said or "cannot log in" in said


def test_a_host_that_is_slow_to_answer_ends_in_an_error_that_names_it(pair: Lab) -> None:
    slow = {"do": "run", "argv": ["sleep", "20"], "undo": None}  # and what hangs is cut short
    with (
        sender(pair) as hosts,
        pytest.raises(EngineError, match=r"host sender .*no answer to 'apply' within 0.5 s"),
    ):
        hosts["sender"].call("apply", 0.5, steps=[slow])


def test_hostile_steps_are_refused(pair: Lab) -> None:
    hostile: list[dict[str, object]] = [
        {"do": "sysctl", "name": "kernel.core_pattern", "value": "|/bin/sh"},
        {"do": "sysctl", "name": "net/../kernel/panic", "value": "1"},
        {"do": "sysctl", "name": "net.ipv4.tcp_rmem\n", "value": "1"},
        {"do": "sysctl", "name": "net.ipv4.tcp_rmem", "value": "1\x00"},
        {"do": "run", "argv": "reboot", "undo": None},
        {"do": "run", "argv": [], "undo": None},
        {"do": "reboot"},
    ]
    with sender(pair) as hosts:
        for step in hostile:
            with pytest.raises(LabError, match="host sender"):
                hosts["sender"].call("apply", 10, steps=[step])
        with pytest.raises(EngineError, match="no operation 'system'"):
            hosts["sender"].call("system", 10)
