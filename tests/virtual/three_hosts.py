"""The first process of a kernel in which three hosts stand for machines: a remote point over an emulator.

Started as `python3 three_hosts.py SPEC OUT` (see `lab.uml`). The hosts are network
namespaces; in the place of ssh each agent is started inside of its own, and all
else is as over ssh: the pushed agent, its notes, its watchdog, the controller's
side of a point. SPEC has the point's `spec` and the `inventory`'s text. OUT
receives `records.bin`, `outcome.json`, and `hosts.json`: what the tools said of
each host before and after.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[2])]

from lab import clock  # noqa: E402
from lab.agent import guest  # noqa: E402
from lab.remote import inventory, points, ssh  # noqa: E402
from lab.remote.host import Hosts  # noqa: E402

HOSTS = ("sender", "emulator", "receiver")
LOOKS = ("tc qdisc", "ip link", "sysctl net.ipv4.tcp_rmem net.ipv4.tcp_no_metrics_save")
LIMIT_NS = 900 * 10**9
SETTLE_NS = 3 * 10**9
"""After which every interface has noticed that the other end is up."""


def run(words: str) -> str:
    """Run a command; return what it says. Raises where it fails."""
    return subprocess.run(words.split(), check=True, capture_output=True, text=True, timeout=60).stdout


def inside(host: str, words: str) -> str:
    """Run a command inside a host."""
    return run(
        f"ip -n {host} {words[3:]}" if words.startswith("ip ") else f"nsenter --net=/run/netns/{host} {words}"
    )


def build() -> None:
    """Make three hosts in a row; those at the ends know the way through the one between."""
    for host in HOSTS:
        run(f"ip netns add {host}")
        inside(host, "ip link set dev lo up")
    run("ip link add name eth1 netns sender type veth peer name eth1 netns emulator")
    run("ip link add name eth2 netns emulator type veth peer name eth1 netns receiver")
    for host, device, address in (
        ("sender", "eth1", "198.51.100.1"),
        ("emulator", "eth1", "198.51.100.254"),
        ("emulator", "eth2", "203.0.113.254"),
        ("receiver", "eth1", "203.0.113.1"),
    ):
        inside(host, f"ip address add {address}/24 dev {device}")
        inside(host, f"ip link set dev {device} up")
    inside("sender", "ip route add 203.0.113.0/24 via 198.51.100.254")
    inside("receiver", "ip route add 198.51.100.0/24 via 203.0.113.254")


def look() -> dict[str, list[str]]:
    """Return what each host is set to."""
    return {host: [inside(host, words) for words in LOOKS] for host in HOSTS}


def drive(told: dict[str, Any], out: Path) -> None:
    """Run the point over the three hosts."""

    def started(entry: inventory.Entry, *_: object) -> list[str]:
        return [
            *("nsenter", f"--net=/run/netns/{entry.name}", sys.executable, "-I", "-S", "-c", ssh.BOOTSTRAP),
        ]

    ssh.argv = started
    build()
    clock.sleep_until_ns(clock.now_ns() + SETTLE_NS)
    before = look()
    with Hosts(inventory.parse(told["inventory"])) as hosts:
        hosts.each(lambda host: host.call("hold", points.CALL_S))
        path = points.measured_path(hosts, 1500)
        watch = points.Watch(lambda: False, LIMIT_NS)
        recorded, outcome = points.PointRun(hosts, told["spec"], path, watch, 0).run(out)
    (out / "records.bin").write_bytes(recorded)
    (out / "outcome.json").write_text(json.dumps({**outcome, "bare": path.told(), "left": hosts.left}))
    (out / "hosts.json").write_text(json.dumps([before, look()]))


def main() -> None:
    """Run the point; whatever goes wrong is written down."""
    os.environ.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL="C.UTF-8")
    told = json.loads(Path(sys.argv[1]).read_text())
    guest.prepare(str(Path(sys.argv[2]).resolve()))
    guest.power_off_at(LIMIT_NS, "the three hosts did not come to an end")
    clock.exact_timers()
    try:
        drive(told, guest.OUT)
    except BaseException as error:
        words = getattr(error, "stderr", "") or ""
        report = {"error": f"{type(error).__name__}: {error} {words}", "traceback": traceback.format_exc()}
        (guest.OUT / "failure.json").write_text(json.dumps(report))
    guest.power_off()


if __name__ == "__main__":
    main()
