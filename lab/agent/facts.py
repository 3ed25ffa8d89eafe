"""What this host is and has, looked at before anything is changed.

Nothing of the host is changed: qdiscs are tried in a network namespace that
goes at once. A trial may load the kernel's own module, as the qdisc itself would.
Not here: what of it is good enough (see `lab.remote.preflight`).
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.agent import journal, links, netns
from lab.agent.notes import TOOLS_PATH

_LIMIT_S = 10.0
_ENVIRONMENT = {"PATH": TOOLS_PATH, "LC_ALL": "C"}

_VERSION_WORD = {"ip": "-V", "tc": "-V"}  # all others: --version

_TRIALS = {  # the kinds that need words of their own
    "tbf": "rate 1mbit burst 10kb limit 10kb",
    "red": "limit 400000 avpkt 1000",
    "netem": "delay 1ms",
}
"""What a qdisc is tried with."""

_MIRROR = (
    *("protocol", "ip", "u32", "match", "u32", "0", "0"),
    *("action", "mirred", "egress", "redirect", "dev", "lo"),
)


@dataclass(frozen=True)
class Questions:
    """What the controller wants to know.

    tools: names of programs. controls: congestion controls. qdiscs: kinds,
    "ifb" for that device, "ingress" for leading packets to one. sysctls: names
    whose values are wanted.
    """

    interfaces: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()
    qdiscs: tuple[str, ...] = ()
    sysctls: tuple[str, ...] = ()


def gather(asked: Questions, place: journal.Place = journal.HERE) -> dict[str, Any]:
    """Return everything that is asked for, as JSON can hold it.

    Rates in bit/s, sizes in bytes; None where something cannot be told. Without
    root, `qdiscs` is None.
    """
    return {
        "python": platform.python_version(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpus": len(os.sched_getaffinity(0)),
        "uid": os.geteuid(),
        "host": f"{place.identity()} {place.inode()}",
        "tools": {name: _tool(name) for name in asked.tools},
        "controls": _controls(asked.controls),
        "interfaces": _interfaces(asked.interfaces),
        "interface_names": [one.name for one in links.all_links()],
        "ssh": ssh_connection(os.getpid()),
        "sysctls": {name: _sysctl(place, name) for name in asked.sysctls},
        "default_qdisc": _sysctl(place, "net.core.default_qdisc"),
        "room_bytes": _room(Path(place.root)),
        "qdiscs": _qdiscs(asked.qdiscs) if os.geteuid() == 0 else None,
        **journal.state(place),
    }


def _tool(name: str) -> str | None:
    """Return the first line that a tool says of its version, None where there is no such tool."""
    if shutil.which(name, path=TOOLS_PATH) is None:
        return None
    done = _run([name, _VERSION_WORD.get(name, "--version")])
    lines = (done.stdout or done.stderr).splitlines() if done else []
    return lines[0].strip() if lines else ""


def _run(argv: list[str]) -> subprocess.CompletedProcess[str] | None:
    """Run a tool that only tells; None where it cannot be started or does not end."""
    try:
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LIMIT_S,
            env=_ENVIRONMENT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def _controls(asked: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the congestion controls there are; of those asked for, what a module brings, and the rest."""
    known = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    loadable: list[str] = []
    missing: list[str] = []
    for name in asked:
        if name not in known:
            done = _run(["modprobe", "-n", "-q", "--", f"tcp_{name}"])
            (loadable if done is not None and done.returncode == 0 else missing).append(name)
    return {"available": known, "loadable": loadable, "missing": missing}


def _interfaces(asked: tuple[str, ...]) -> dict[str, Any]:
    every = links.all_links()
    known, qdiscs = links.addresses(), links.all_qdiscs()
    connection = ssh_connection(os.getpid())
    carrying = links.ssh_interfaces(every, connection["local"], connection["remote"]) if connection else None
    found: dict[str, Any] = dict.fromkeys(asked)
    for one in every:
        if one.name in found:
            found[one.name] = links.describe(one, known.get(one.index, []), qdiscs)
            found[one.name]["carries_ssh"] = None if carrying is None else one.index in carrying
    return found


def ssh_connection(process: int, proc: Path = Path("/proc")) -> dict[str, str] | None:
    """Return {"remote", "local"}, the addresses of the SSH connection that a process came by.

    sudo and doas drop the variable that sshd sets, so the processes above are
    asked as well. None where none of them has it, or may not be looked at.
    """
    while process > 1:
        with contextlib.suppress(OSError, ValueError):
            for pair in (proc / str(process) / "environ").read_bytes().split(b"\0"):
                if pair.startswith(b"SSH_CONNECTION="):
                    remote, _, local, _ = pair.partition(b"=")[2].decode().split(" ")
                    for address in (remote, local):
                        ipaddress.ip_address(address.partition("%")[0])
                    return {"remote": remote, "local": local}
        try:
            status = (proc / str(process) / "stat").read_text(errors="replace")
        except OSError:
            return None
        process = int(status.rpartition(")")[2].split()[1])
    return None


def _sysctl(place: journal.Place, name: str) -> str | None:
    try:
        return " ".join(place.sysctl(name).read_text(errors="replace").split())
    except (OSError, journal.NotAppliedError):
        return None


def _room(folder: Path) -> int:
    """Return the free bytes of the file system that a folder is or would be on."""
    while not folder.is_dir():
        folder = folder.parent
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 0


def _qdiscs(asked: tuple[str, ...]) -> dict[str, str]:
    """Try each kind in a namespace of its own; return "" for those that work, and else the tool's words."""
    if not asked:
        return {}
    try:
        namespace = netns.new()
    except OSError as refused:
        return dict.fromkeys(asked, str(refused))
    try:
        with netns.entered(namespace):
            return {kind: _try(kind) for kind in asked}
    finally:
        os.close(namespace)


def _try(kind: str) -> str:
    place = "ingress" if kind == "ingress" else "root"
    if kind == "ifb":
        words = ["ip", "link", "add", "wlabtry", "type", "ifb"]
    else:
        words = ["tc", "qdisc", "add", "dev", "lo", place, *([] if kind == place else [kind])]
        words += _TRIALS.get(kind, "").split()
    done = _run(words)
    if done is None:
        return f"{words[0]} cannot be started"
    if done.returncode != 0:
        return done.stderr.strip() or f"{words[0]} ended with status {done.returncode}"
    if kind == "ingress":  # what is led through a delay line of its own
        led = _run(["tc", "filter", "add", "dev", "lo", "parent", "ffff:", *_MIRROR])
        return (
            "" if led is not None and led.returncode == 0 else f"u32 and mirred: {led and led.stderr.strip()}"
        )
    if kind != "ifb":
        _run(["tc", "qdisc", "del", "dev", "lo", place])
    return ""
