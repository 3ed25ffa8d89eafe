"""What each engine needs of this machine, what is here, and the command that mends what is not.

Not here: mending. Nothing is installed, loaded or written; the only trials are
a temporary file without a name, a child that asks to be traced, and qdiscs and
links in a network namespace that goes with the process that made it.
"""

from __future__ import annotations

import errno
import mmap
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lab import command, kernels, units
from lab.errors import LabError

Engine = Literal["all", "virtual", "realtime", "remote", "report"]

AGENT_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
"""Where the agent looks for tools, whatever the user's PATH is (see `lab.agent.main`)."""

GUEST_BYTES = 2**30
"""What a point of the socket-buffer study may take; `lab.spec.guest_memory_bytes` says it of any point."""

_TOOLS = (  # tool, Debian package, what it is for
    ("mnexec", "mininet", "Mininet's processes inside namespaces"),
    ("ip", "iproute2", "building links"),
    ("tc", "iproute2", "shaping links"),
    ("taskset", "util-linux", "keeping each point on one CPU"),
    ("setpriv", "util-linux", "ending what a killed run started"),
    ("iperf3", "iperf3", "workload iperf3 only"),
    ("nginx", "nginx", "workload http only"),
    ("tcpdump", "tcpdump", "captures only"),
)
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21}  # include/uapi/linux/capability.h
_TRACE_ME = (
    "import ctypes, sys; libc = ctypes.CDLL(None, use_errno=True);"
    "sys.exit(0 if libc.ptrace(0, 0, None, None) == 0 else 1)"  # 0 is PTRACE_TRACEME
)


@dataclass(frozen=True)
class Finding:
    """One need of one engine.

    engine: whose need; "all" where every engine that runs here has it.
    found: what is here, for reading. mend: what to do, empty where ok.
    """

    engine: Engine
    name: str
    ok: bool
    found: str
    mend: str = ""


@dataclass(frozen=True)
class Feature:
    """A part of the host's kernel that the realtime engine needs; `trial` is a command that uses it."""

    name: str
    option: str
    module: str
    trial: str


FEATURES = (
    Feature("netem", "CONFIG_NET_SCH_NETEM", "sch_netem", "tc qdisc add dev lo root netem"),
    Feature("htb", "CONFIG_NET_SCH_HTB", "sch_htb", "tc qdisc add dev lo root htb"),
    Feature("veth", "CONFIG_VETH", "veth", "ip link add type veth"),
    Feature("namespaces", "CONFIG_NET_NS", "", "true"),
)


def diagnose() -> list[Finding]:
    """Look at everything; takes well under two seconds."""
    release = platform.release()
    return [
        *tools(),
        agent_python(),
        architecture(platform.machine()),
        tracing(),
        guest_memory(os.environ),
        memory(),
        processors(),
        built_kernels(),
        privileges(),
        *(kernel_feature(feature, release) for feature in FEATURES),
        ssh(),
        browser(os.environ),
    ]


def _setup(package: str) -> str:
    return f"run `make setup`, which installs Debian's {package}"


def tools(path: str = AGENT_PATH) -> list[Finding]:
    """The programs that the agent starts."""
    findings = []
    for tool, package, purpose in _TOOLS:
        where = shutil.which(tool, path=path)
        found = where or f"not in {path} (for {purpose})"
        findings.append(Finding("all", tool, where is not None, found, "" if where else _setup(package)))
    return findings


def agent_python(python: str = "/usr/bin/python3") -> Finding:
    """Debian's Python with Debian's Mininet, which the agent runs on."""
    name = "Mininet"
    look = "import sys, mininet.net as net; print(net.VERSION, 'on Python', sys.version.split()[0])"
    try:
        found = command.run([python, "-c", look], timeout_s=10).strip()
    except LabError as error:
        why = str(error).strip().splitlines()[-1]
        return Finding("all", name, False, f"{python} cannot load it: {why}", _setup("python3 and mininet"))
    return Finding("all", name, True, found)


def architecture(machine: str) -> Finding:
    """User-Mode Linux is for x86 alone."""
    if machine == "x86_64":
        return Finding("virtual", "architecture", True, machine)
    found = f"{machine}, but User-Mode Linux is for x86-64 only"
    mend = "use `--engine realtime` or `--engine remote` here, or an x86-64 machine"
    return Finding("virtual", "architecture", False, found, mend)


def tracing(root: Path = Path("/")) -> Finding:
    """User-Mode Linux traces its own children; some machines and containers forbid that."""
    scope = _read(root / "proc/sys/kernel/yama/ptrace_scope").strip()
    yama = f"kernel.yama.ptrace_scope is {scope}" if scope else "no Yama"
    try:
        command.run([sys.executable, "-I", "-S", "-c", _TRACE_ME], timeout_s=10)
    except LabError:
        mend = {
            "2": "run `sudo sysctl kernel.yama.ptrace_scope=1`",
            "3": "set kernel.yama.ptrace_scope below 3 in /etc/sysctl.d and reboot; 3 holds until then",
        }.get(scope, "allow ptrace in this container, as `docker run --cap-add SYS_PTRACE` does")
        return Finding("virtual", "ptrace", False, f"refused ({yama})", mend)
    return Finding("virtual", "ptrace", True, f"allowed ({yama})")


def guest_memory(environ: Mapping[str, str], root: Path = Path("/")) -> Finding:
    """A folder for the memory file of a virtual kernel, as `lab.engines.virtual` chooses it."""
    name = "guest memory"
    faults = []
    for folder in (root / "dev/shm", Path(environ.get("TMPDIR") or root / "tmp"), root / "var/tmp"):
        room_bytes, fault = _room(folder)
        found = f"{units.human_size(room_bytes)} free in {folder}"
        if not fault and room_bytes >= GUEST_BYTES:
            slower = "" if _file_system(folder, root) == "tmpfs" else ", on disk: a tmpfs would be faster"
            return Finding("virtual", name, True, found + slower)
        faults.append(f"{folder} {fault}" if fault else found)
    mend = (
        f"make room for {units.human_size(GUEST_BYTES)} in one of them, or set TMPDIR to a folder with it,"
        " mounted without noexec; in a container give /dev/shm more, as `docker run --shm-size 4g` does"
    )
    return Finding("virtual", name, False, "; ".join(faults), mend)


def _room(folder: Path) -> tuple[int, str]:
    """Return the room in a folder, bytes, and why a kernel's memory file cannot be there, "" where it can.

    Source: check_tmpexec(), arch/um/os-Linux/mem.c, Linux 6.12.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.truncate(mmap.PAGESIZE)
            executable = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
            mmap.mmap(file.fileno(), mmap.PAGESIZE, flags=mmap.MAP_PRIVATE, prot=executable).close()
        return shutil.disk_usage(folder).free, ""
    except OSError as refused:
        return (
            0,
            "is mounted noexec" if refused.errno == errno.EPERM else f"cannot be used: {refused.strerror}",
        )


def _file_system(folder: Path, root: Path) -> str:
    """Return the type of the file system that a folder is on, "" where it cannot be told."""
    kinds = {}
    for line in _read(root / "proc/self/mounts").splitlines():
        _device, place, kind = line.split(" ")[:3]
        kinds[place] = kind  # of two mounts at one place the later covers the earlier
    folder = folder.resolve()
    return next((kinds[str(place)] for place in (folder, *folder.parents) if str(place) in kinds), "")


def memory(root: Path = Path("/")) -> Finding:
    """Memory that is free for guests, within the control group's limit where there is one."""
    fields = dict(line.split(":") for line in _read(root / "proc/meminfo").splitlines())
    free_bytes = int(fields["MemAvailable"].split()[0]) * 1024
    limit = _read(root / "sys/fs/cgroup/memory.max").strip()
    if limit.isdigit():
        used = _read(root / "sys/fs/cgroup/memory.current").strip() or "0"
        free_bytes = min(free_bytes, int(limit) - int(used))
    found = f"{units.human_size(free_bytes)} available"
    if free_bytes >= GUEST_BYTES:
        return Finding("virtual", "memory", True, found)
    mend = "end other programs; a point needs less at a lower rate or a shorter RTT"
    return Finding("virtual", "memory", False, f"{found}, under {units.human_size(GUEST_BYTES)}", mend)


def processors() -> Finding:
    """CPUs that this process may use: points run side by side, one a CPU."""
    count = len(os.sched_getaffinity(0))
    return Finding("virtual", "CPUs", True, f"{count}: as many points at a time")


def built_kernels() -> Finding:
    """The lab's own kernels."""
    default = kernels.STANDARD_NAMES[0]
    records = kernels.list_kernels()
    names = [
        f"{record.address} ({record.release}{', of an older recipe' if record.stale else ''})"
        for record in records
    ]
    fresh = {record.name for record in records if not record.stale}
    mend = "" if default in fresh else f"run `wanlab kernel build {default}`"
    return Finding("virtual", "kernels", not mend, ", ".join(names) or "none is built", mend)


def privileges(root: Path = Path("/")) -> Finding:
    """The realtime engine makes namespaces and shapes links: two capabilities, which root has."""
    status = dict(line.split(":", 1) for line in _read(root / "proc/self/status").splitlines())
    effective = int(status["CapEff"], 16)
    lacking = [name for name, bit in _CAPABILITIES.items() if not effective >> bit & 1]
    if not lacking:
        return Finding("realtime", "root", True, "enough: " + ", ".join(_CAPABILITIES))
    mend = "run it with sudo; in a container, as `docker run --privileged` does"
    return Finding("realtime", "root", False, f"lacks {', '.join(lacking)}", mend)


def try_feature(feature: Feature) -> tuple[bool, str]:
    """Try a feature in a network namespace that goes with the command; return whether it works, and why."""
    scope = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
    try:
        command.run([*scope, *feature.trial.split()], timeout_s=2, env={"PATH": AGENT_PATH})
    except LabError as error:
        why = str(error).strip().splitlines()[-1]
        return False, f"the kernel's files do not tell, and a trial gave: {why}"
    return True, "works in a namespace made for trial"


def kernel_feature(
    feature: Feature,
    release: str,
    root: Path = Path("/"),
    trial: Callable[[Feature], tuple[bool, str]] = try_feature,
) -> Finding:
    """Whether the host's kernel has a feature: by its files, and only where there are none by a trial.

    A trial could load a module, but a kernel without files here has none to load.
    """
    modules = root / "lib/modules" / release
    listed = _read(modules / "modules.dep") + _read(modules / "modules.builtin")
    option = _option(feature.option, release, root)
    wanted = f"/{feature.module}.ko"
    if feature.module and (root / "sys/module" / feature.module).is_dir():
        known, found = True, "loaded"
    elif option == "y":
        known, found = True, "built into the kernel"
    elif wanted in listed:
        known, found = True, "a module of the kernel"
    elif option == "n":
        known, found = False, f"Linux {release} was built without {feature.option}"
    elif option == "m" or listed:
        known, found = False, f"no module {feature.module} for Linux {release} here"
    else:
        known, found = trial(feature)
    mend = (
        f"use `--engine virtual`, or boot a kernel with {feature.option}, such as Debian's linux-image-amd64"
    )
    return Finding("realtime", feature.name, known, found, "" if known else mend)


def _option(name: str, release: str, root: Path) -> str:
    """Return "y", "m" or "n" from the kernel's own configuration, "" where that is not to be had."""
    config = kernels.host_config(root, release)
    if not config:
        return ""
    return next((line[-1] for line in config.splitlines() if line.startswith(f"{name}=")), "n")


def ssh() -> Finding:
    """The remote engine's way to its hosts."""
    where = shutil.which("ssh")
    mend = "" if where else "run `sudo apt-get install openssh-client`"
    return Finding("remote", "ssh", where is not None, where or "not there", mend)


def browser(environ: Mapping[str, str]) -> Finding:
    """Chromium or Chrome, which draws PNG files; all else in a report needs none."""
    named = environ.get("BROWSER_PATH", "")  # kaleido's own variable
    candidates = (named,) if named else _BROWSERS
    where = next((found for name in candidates if (found := shutil.which(name))), None)
    if where:
        return Finding("report", "chromium", True, where)
    if named:
        found, mend = f"BROWSER_PATH is {named}, which is no program", "correct BROWSER_PATH or unset it"
    else:
        found, mend = "not there (for `report --png` only)", _setup("chromium")
    return Finding("report", "chromium", False, found, mend)


def _read(path: Path) -> str:
    """Return a file's text, "" where it cannot be read."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
