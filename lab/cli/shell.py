"""`wanlab shell`: the network of one point, up, in Mininet's own command line, without root.

A kernel of the lab's own on the real clock; the terminal is handed to it over
pipes, so that whatever becomes of the kernel the user's terminal is put back here.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab import layout, spec, sweep, uml
from lab import scenario as scenario_module
from lab.cli import terminal
from lab.cli.run import add_study, parse_settings
from lab.combination import Point
from lab.errors import GuestError, UserError
from lab.kernels import HOST, KernelRecord, find_kernel
from lab.kernels.controls import require_controls
from lab.knobs import PATH_KNOBS
from lab.plans.plan import Plan
from lab.queues import LIMIT_UNIT
from lab.scratch import Scratch
from lab.units import human_rate, human_size

SCRIPT = uml.AGENT.with_name("shell.py")
USER_BYTES = 128 * 2**20
"""Over what a point needs: the user's own programs."""
MOST_NAMED = 6
_SYSTEM = {Path(name) for name in ("/", "/dev", "/proc", "/run", "/sys")}
_CHANGES = ("rate_change", "rtt_change", "loss_change", "trace")
_DRAWN_NOT = ("loss", "jitter", "reorder", "duplicate", "mtu", "offloads", "rate_back", "ecn", "ce_threshold")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's words."""
    add_study(parser, "V", "set a knob; of several points the first is taken")
    parser.add_argument("--kernel", metavar="K", help="the same as --set kernel=K")
    parser.add_argument(
        "--files",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="the folder that commands in the lab start in and can write (default: this one)",
    )
    parser.add_argument(
        "--command",
        dest="lines",
        action="append",
        metavar="TEXT",
        help="run this line and end, such as 'h1 ping -c 3 h2'; may be given several times",
    )


def run(arguments: argparse.Namespace) -> int:
    """Bring the network up and hand the terminal over; return 0, or 1 where a line of a script failed."""
    settings = parse_settings(arguments.settings)
    if arguments.kernel:
        settings["kernel"] = parse_settings([f"kernel={arguments.kernel}"], "--kernel")["kernel"]
    files = _files(arguments.files)
    points = _points(arguments.scenario, settings)
    point, choice = points[0], choices(points)
    kernel = _kernel(point)
    uml.require()
    lines = _lines(arguments.lines)
    told = {
        "topology": spec.topology(point),
        "sysctls": spec.sysctls(point, spec.World(real_clock=True)),
        "aliases": aliases(layout.plan(point)),
        "files": str(files),
        "user": [os.getuid(), os.getgid()],
        "greeting": "",
        "terminal": None,
        "lines": lines,
    }
    if lines is None:
        rows, columns = terminal.size(sys.stdin.fileno())
        told["terminal"] = {"rows": rows, "columns": columns, "kind": os.environ.get("TERM") or "dumb"}
        told["greeting"] = greeting(point, told, kernel, str(arguments.scenario), choice)
    elif choice:
        print(f"Note: {choice}", file=sys.stderr)
    try:
        failed = _session(kernel.path, spec.guest_memory_bytes(point) + USER_BYTES, told)
    except KeyboardInterrupt:
        return 130
    for line, status in failed:
        ended = "could not be run" if status is None else f"ended with status {status}"
        print(f"wanlab: {line!r} {ended}", file=sys.stderr)
    return 1 if failed and lines is not None else 0


def _points(path: Path, settings: dict[str, list[str]]) -> list[Point]:
    """Return the points of a scenario. Raises UserError."""
    scenario = scenario_module.load(path).scenario
    presets = settings.pop("preset", [None])
    if len(presets) > 1:
        raise UserError(f"preset: {','.join(map(str, presets))!r}: one preset a lab")
    return sweep.points(scenario.with_preset(presets[0]), settings, engine="realtime", seeds=[1])


def _kernel(point: Point) -> KernelRecord:
    """Return the kernel of a point. Raises UserError or PreconditionError."""
    name = point.knobs["kernel"]
    if name == HOST:
        raise UserError(
            f"kernel: {HOST!r} is this machine's own, and the shell boots a kernel of the lab; take 6.12"
        )
    kernel = find_kernel(name)
    require_controls({name: point.controls}, {name: kernel})
    return kernel


def _files(folder: Path) -> Path:
    """Return the folder that is to be writable inside, resolved. Raises UserError."""
    if not folder.is_dir():
        raise UserError(f"--files {str(folder)!r}: there is no such folder; make it first")
    resolved = folder.resolve()
    if resolved in _SYSTEM or not os.access(resolved, os.W_OK | os.X_OK):
        why = "is the system's" if resolved in _SYSTEM else "cannot be written by you"
        raise UserError(f"--files: {str(resolved)!r} {why}; name a folder of yours, such as --files ~/lab")
    return resolved


def _lines(given: list[str] | None) -> list[str] | None:
    """Return the lines to run: those given, or those of a standard input that is no terminal."""
    if given is None and sys.stdin is None:
        raise UserError("standard input is closed; give lines with --command")
    if given is None and not sys.stdin.isatty():
        try:
            given = [sys.stdin.buffer.read().decode()]
        except UnicodeDecodeError as fault:
            raise UserError(f"the lines on standard input are not UTF-8 text: {fault}") from fault
    if given is None:
        return None
    return [line for text in given for line in text.splitlines()]


def choices(points: Sequence[Point]) -> str:
    """Return which of several points was taken and how to take another; "" of one."""
    first, last = points[0].knobs, points[-1].knobs
    swept = [name for name in first if len({point.knobs[name] for point in points}) > 1]
    if not swept:
        return ""
    taken = " ".join(f"{name}={first[name]}" for name in swept)
    others = [
        f"--set {name}={last[name].partition('@')[0] if name == 'trace' else last[name]}"
        for name in swept
        if first[name] != last[name] and not (name == "rtt" and "route" in swept)  # which sets it
    ]
    return (
        f"This is the first of {len(points)} points: {taken}."
        f" Take another by its values: {' '.join(others) or '--set NAME=VALUE'}"
    )


def aliases(plan: Plan) -> dict[str, str]:
    """Return {"h1": host, ...}: second names of the hosts in order, but those that a node has already."""
    named = {f"h{number}": host for number, host in enumerate(plan.hosts, 1)}
    return {alias: host for alias, host in named.items() if alias not in plan.nodes}


def drawing(plan: Plan) -> str:
    """Return the way from the first sender to its receiver in one line; bottlenecks are doubled."""
    pair = plan.pairs[0]
    came: dict[str, str] = {pair.sender: ""}
    waiting = deque([pair.sender])
    joined = {(a.node, b.node): a for link in plan.links for a, b in (link.ends, link.ends[::-1])}
    while pair.receiver not in came:
        here = waiting.popleft()
        for left, right in joined:
            if left == here and right not in came:
                came[right] = here
                waiting.append(right)
    words, node = pair.receiver, pair.receiver
    while node != pair.sender:
        end = joined[(came[node], node)]
        between = f" === {_bottleneck(end.egress)} === " if end.interface in plan.bottlenecks else " --- "
        words, node = f"{came[node]}{between}{words}", came[node]
    return words


def _bottleneck(egress: Mapping[str, Any]) -> str:
    queue = egress.get("queue")
    limit = "" if not queue else f", {queue['kind']} {_limit(queue)}"
    return f"{human_rate(egress.get('rate_bps'))}{limit}"


def _limit(queue: Mapping[str, Any]) -> str:
    limit = int(queue["limit"])
    return f"{limit} packets" if LIMIT_UNIT[queue["kind"]] == "packets" else human_size(limit)


def greeting(point: Point, told: Mapping[str, Any], kernel: KernelRecord, scenario: str, choice: str) -> str:
    """Return what a user reads first: the network, its names, what was set, what to try."""
    plan = layout.plan(point)
    second = {host: alias for alias, host in told["aliases"].items()}
    pair = plan.pairs[0]
    sender, receiver = (second.get(name, name) for name in (pair.sender, pair.receiver))
    named = [f"{second.get(host, host)} = {host} {plan.address(host)}" for host in plan.hosts]
    if len(named) > MOST_NAMED:
        named = [*named[: MOST_NAMED - 1], "...", named[-1]]
    still = [name for name in _CHANGES if point.knobs[name] != PATH_KNOBS[name].default]
    still += ["loss"] if point.loss.kind == "list" else []
    queued = next(iter(pair.bottlenecks), f"{pair.sender}-eth0")
    parts = [
        f"{scenario} in Linux {kernel.release}, on the real clock",
        choice,
        f"\n    {drawing(plan)}    {', '.join(_properties(point))}\n",
        f"{', '.join(named)}; interfaces too: {sender}-eth0 is {pair.sender}-eth0",
        f"Not played here, as the network stays as it is now: {', '.join(still)}" if still else "",
        "Set:",
        *_sysctl_lines(told["sysctls"]),
        f"Commands start in {told['files']}, the one folder that they can write. Leave with exit or Ctrl-D.",
        f"Try:  {sender} ping -c 3 {receiver}",
        f"      {receiver} iperf3 -s -D   and then   {sender} iperf3 -c {receiver}",
        f"      {queued.rpartition('-')[0]} tc -s qdisc show dev {queued}",
    ]
    return "".join(f"{part}\n" for part in parts if part)


def _properties(point: Point) -> Iterator[str]:
    """Yield what a drawing has no place for: the RTT, and what is not as in most networks."""
    rtts = sorted({pair.rtt_s for pair in layout.plan(point).pairs})
    yield "RTT " + " to ".join(f"{rtt_s * 1e3:.6g} ms" for rtt_s in dict.fromkeys((rtts[0], rtts[-1])))
    for name in _DRAWN_NOT:
        if point.knobs[name] != PATH_KNOBS[name].default:
            yield f"{name} {point.knobs[name]}"


def _sysctl_lines(sysctls: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield a line for each setting, with the hosts that have it."""
    found: dict[tuple[str, str], list[str]] = {}
    for node, settings in sysctls.items():
        for item in settings.items():
            found.setdefault(item, []).append(node)
    hosts = [node for node in sysctls if node]
    for (name, value), nodes in sorted(found.items()):
        where = [node for node in nodes if node]
        if not where:
            told = "whole kernel"
        elif where == hosts:
            told = "every host"
        else:
            told = ", ".join(where[:MOST_NAMED]) + (", ..." if len(where) > MOST_NAMED else "")
        yield f"    {name} = {value}  ({told})"


def _session(kernel: Path, memory_bytes: int, told: Mapping[str, Any]) -> list[tuple[str, int | None]]:
    """Boot, relay the terminal until the kernel ends, return the lines that failed. Raises GuestError."""
    with Scratch() as scratch, terminal.Console() as console:
        folder = scratch / "shell"
        folder.mkdir()
        uml.fill(folder, told, SCRIPT)
        cpus = sorted(os.sched_getaffinity(0))
        cpu = cpus[os.getpid() % len(cpus)]  # several labs side by side are rarely on one
        words = (*uml.SILENT, *console.words)
        machine = uml.Machine(kernel, memory_bytes, cpu, virtual=False, console=words)
        process = uml.boot(machine, folder, pass_fds=console.theirs)
        console.handed_over()
        left = False
        try:
            with terminal.ended_by_signals():
                if told["terminal"]:
                    with terminal.raw(sys.stdin.fileno()), terminal.resized(console):
                        left = terminal.relay(console, process.pid, sys.stdin.fileno())
                else:
                    terminal.relay(console, process.pid)
        finally:
            uml.end(process)
        uml.raise_failure(folder)
        outcome = folder / "out" / "outcome.json"
        if not outcome.exists():
            if told["terminal"]:
                print()  # past the prompt
            if left:
                return []
            raise GuestError(f"the kernel ended before the lab did; {uml.tail(folder)}", uml.tail(folder))
        return [(line, status) for line, status in json.loads(outcome.read_text())["failed"]]
