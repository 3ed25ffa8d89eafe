"""Ends a remote run at every point of its life, in every way, and looks whether all is put back.

As a script (as root, from the repository's folder) it runs the whole table on
hosts made of namespaces and writes it into docs/kill-points.md:

    python -m tests.remote.kill_points --write

The tests run a part of it.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab.cli import clean
from tests.namespace_hosts import Host, Lab

LEASE_S = 1.0

PAGE = Path(__file__).resolve().parents[2] / "docs" / "kill-points.md"
BEGIN = "<!-- written by tests/remote/kill_points.py -->"
END = "<!-- end of tests/remote/kill_points.py -->"

# ruff: noqa: SIM905 (commands read better as they are typed)

STEPS = [
    {"do": "sysctl", "name": "net.ipv4.tcp_rmem", "value": "4096 131072 50000000"},
    {"do": "sysctl", "name": "net.ipv4.tcp_congestion_control", "value": "reno"},
    {"do": "sysctl", "name": "net/ipv4/conf/eth1/forwarding", "value": "1"},
    {
        "do": "run",
        "argv": "tc qdisc add dev eth1 root handle 1: htb default 1".split(),
        "undo": "tc qdisc del dev eth1 root handle 1:".split(),
    },
    {
        "do": "run",
        "argv": "tc class add dev eth1 parent 1: classid 1:1 htb rate 50mbit".split(),
        "undo": None,
    },
    {"do": "run", "argv": ["sleep", "0.4"], "undo": ["sleep", "0.4"]},  # time to be ended in
    {
        "do": "run",
        "argv": "ip route add blackhole 192.0.2.99/32 proto 77".split(),
        "undo": "ip route del blackhole 192.0.2.99/32 proto 77".split(),
    },
    {"do": "sysctl", "name": "net.ipv4.tcp_rmem", "value": "4096 131072 60000000"},
]
"""What a run changes on each host: all kinds of changes, one of them twice."""

_SLOW = 5

_CONTROLLER = """
import json, sys
from pathlib import Path
from lab.errors import LabError
from lab.remote import inventory
from lab.remote.host import Hosts

def say(word):
    print(word, flush=True)
    if word == stop_at:
        sys.stdin.read()

steps, stop_at = json.loads(sys.argv[2]), sys.argv[3]
try:
    say("connecting")
    with Hosts(inventory.load(Path(sys.argv[1]))) as hosts:
        say("connected")
        hosts.each(lambda host: host.call("hold", 10))
        say("held")
        for number, step in enumerate(steps):
            say(f"change {number}")
            hosts.each(lambda host: host.call("apply", 10, steps=[step]))
            say(f"changed {number}")
        say("load")
        load = {"do": "run", "argv": ["sleep", "LOAD"], "undo": None}
        hosts.each(lambda host: host.call("apply", 60, steps=[load]))
        say("putting back")
        hosts.each(lambda host: host.call("restore", 20))
        say("put back")
    say("parted")
except LabError as error:
    print(error, file=sys.stderr)
    sys.exit(1)
except KeyboardInterrupt:
    sys.exit(130)
"""


@dataclass(frozen=True)
class Point:
    """An instant of a run: the word that the controller says, and how long after it.

    Without any time after it, the controller waits there. agents, held: whether
    there are agents, and whether they may change something.
    """

    name: str
    word: str
    after_s: float = 0.0
    agents: bool = True
    held: bool = True
    load_s: str = "30"


POINTS = (
    Point("while it connects", "connecting", 0.3, agents=False, held=False),
    Point("connected, nothing changed", "connected", held=False),
    Point("lock taken, nothing changed", "held"),
    Point("after the first sysctl", "changed 0"),
    Point("after all sysctls", "changed 2"),
    Point("after the root qdisc, before its class", "changed 3"),
    Point("in the middle of a change", f"change {_SLOW}", 0.15),
    Point("after the last change", f"changed {len(STEPS) - 1}"),
    Point("under load", "load", 0.2),
    Point("in the middle of putting back", "putting back", 0.15, load_s="0"),
    Point("put back, still connected", "put back", load_s="0"),
)


def agents(host: Host) -> list[int]:
    """Return the agents of a host, by their numbers inside; not the shells and sudos that started them."""
    return host.processes("serve.main", first="python3")


def _kill_agents(lab: Lab, _controller: subprocess.Popen[str]) -> None:
    for host in lab.hosts:
        host.kill("KILL", *agents(host))


def _stop_agents(lab: Lab, _controller: subprocess.Popen[str]) -> None:
    for host in lab.hosts:
        host.kill("STOP", *agents(host))


def _cut(lab: Lab, _controller: subprocess.Popen[str]) -> None:
    for host in lab.hosts:
        host.cut()


def _kill_all(lab: Lab, _controller: subprocess.Popen[str]) -> None:
    """Leave nobody who could put anything back."""
    for host in lab.hosts:
        watchdogs = host.processes("lab.agent.watchdog")
        host.kill("KILL", *watchdogs, *agents(host))


HANGS = "agent hangs (SIGSTOP)"
CUT = "link cut"
NEEDS_CLEAN = "agent and watchdog: kill -9, then `clean`"
THEIRS = ("agent: kill -9", HANGS, CUT)
"""What the controller has to find out."""
EVENTS: dict[str, Callable[[Lab, subprocess.Popen[str]], None]] = {
    "controller: kill -9": lambda _lab, controller: controller.kill(),
    "controller: Ctrl-C": lambda _lab, controller: controller.send_signal(signal.SIGINT),
    "controller: SIGTERM": lambda _lab, controller: controller.terminate(),
    "agent: kill -9": _kill_agents,
    HANGS: _stop_agents,
    CUT: _cut,
    NEEDS_CLEAN: _kill_all,
}


@dataclass(frozen=True)
class Outcome:
    """What came of it. seconds: from the event until all was as before; words: the controller's last."""

    seconds: float
    words: str
    cleaned: str = ""


def applies(point: Point, event: str) -> bool:
    """Return whether an event can be at a point: an agent that hangs and holds nothing does no harm."""
    if event == HANGS:
        return point.held
    return point.agents or event.startswith("controller")


def run_to(inventory: Path, point: Point) -> subprocess.Popen[str]:
    """Start a controller and return it when the run is at the point."""
    controller = subprocess.Popen(
        [
            *(sys.executable, "-c", _CONTROLLER.replace("LOAD", point.load_s)),
            *(str(inventory), json.dumps(STEPS), "" if point.after_s else point.word),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
    )
    assert controller.stdout is not None
    for line in controller.stdout:
        if line.strip() == point.word:
            time.sleep(point.after_s)
            return controller
    assert controller.stderr is not None
    raise AssertionError(f"the controller ended before {point.name}: {controller.stderr.read()}")


def survive(lab: Lab, point: Point, event: str) -> Outcome:
    """Run to a point, let an event happen, and wait until all is as before.

    Raises AssertionError where it is not within some leases, or where something
    of the lab's is left on a host.
    """
    inventory = lab.inventory(lease=f"{LEASE_S:g}s")
    before = {host.name: host.settings() for host in lab.hosts}
    for host in lab.hosts:
        assert host.leftovers() == "", "something was left by what was before"
    controller = run_to(inventory, point)
    cleaned = ""
    try:
        start = time.monotonic()
        EVENTS[event](lab, controller)
        if event == NEEDS_CLEAN:
            controller.kill()
            cleaned = _clean(inventory)
        for host in lab.hosts:
            await_gone(host)
        seconds = time.monotonic() - start
        after = {host.name: host.settings() for host in lab.hosts}
        if point.after_s and event in THEIRS:  # it finds out by itself, with the link still cut
            assert controller.wait(20) == 1, "the controller ended as if all were well"
    finally:
        for host in lab.hosts:
            host.mend()
        if event.startswith("controller") and controller.poll() is None:
            controller.wait(20)
        controller.kill()
        words = controller.communicate()[1]
        for host in lab.hosts:  # an agent that was only about to come
            await_gone(host)
    for name, known in before.items():
        changed = {
            what: (value, after[name].get(what))
            for what, value in known.items()
            if after[name].get(what) != value
        }
        assert not changed, f"host {name}: {changed}"
        assert after[name].keys() == known.keys()
    return Outcome(seconds, words, cleaned)


def await_gone(host: Host) -> None:
    """Wait until no file and no process of ours is on a host."""
    deadline = time.monotonic() + 8 * LEASE_S + 4
    while left := host.leftovers():
        assert time.monotonic() < deadline, f"host {host.name}: left: {left}"
        time.sleep(0.02)


def _clean(inventory: Path) -> str:
    """Clean the hosts as `wanlab clean --inventory` does; return what it says."""
    parser = argparse.ArgumentParser()
    clean.add_arguments(parser)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        assert clean.run(parser.parse_args(["--inventory", str(inventory)])) == 0
    return said.getvalue()


def table(lab: Lab) -> str:
    """Return what becomes of every event at every point, as Markdown."""
    lines = [f"| ended | {' | '.join(EVENTS)} |", f"| --- |{' --- |' * len(EVENTS)}"]
    for point in POINTS:
        cells = []
        for event in EVENTS:
            print(f"{point.name}: {event}", file=sys.stderr)
            there = applies(point, event)
            cells.append(f"{survive(lab, point, event).seconds:.1f} s" if there else "–")
        lines.append(f"| {point.name} | {' | '.join(cells)} |")
    ran = sum(applies(point, event) for point in POINTS for event in EVENTS)
    kernel = platform.release().partition("-")[0]
    lines += ["", f"{ran} of {ran} survived: Linux {kernel}, Python {platform.python_version()}."]
    return "\n".join(lines)


def main() -> None:
    """Run the whole table; print it, or write it into its page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write it into {PAGE.name}")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Lab(Path(folder), 2) as lab:
        made = table(lab)
    if not arguments.write:
        print(made)
        return
    head, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}\n\n{made}\n\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
