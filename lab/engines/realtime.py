"""The realtime engine: the same agent, network and records, on the real clock.

On this machine's own kernel, as root, in network namespaces that go with the
agent that made them; or in a kernel of the lab's own, without root. What the
machine cannot do is said before anything starts; what it did meanwhile is
recorded beside the traffic (see `lab.machine`).

The agent is the first process of a PID namespace and holds every network
namespace by a descriptor: however it ends, its processes, links and qdiscs end
with it. What would outlive it, a value of the whole host, is changed only when
the user allows it, and journalled first (see `lab.agent.journal`).
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from lab import command, doctor, spec, uml, wishes
from lab.agent import journal
from lab.combination import Point
from lab.doctor import AGENT_PATH, Feature
from lab.engines.base import EngineResult, Options, Plain
from lab.errors import CommandError, EngineError, PreconditionError
from lab.kernels import HOST, KernelRecord, find_kernel, host_kernel

FEW_CPUS = 4
"""One each for a sender, a receiver, the packets between them, and all else."""

_SYSCTLS = Path("/proc/sys")
_TOOLS = (("ip", "iproute2"), ("tc", "iproute2"), ("unshare", "util-linux"), ("setpriv", "util-linux"))
_ALLOWED, _AVAILABLE = (f"net.ipv4.tcp_{which}_congestion_control" for which in ("allowed", "available"))


class RealtimeEngine(Plain):
    """Runs points on the real clock. See `lab.engines.base.Engine`."""

    name = "realtime"
    timeless = False
    jobs = 1
    default_kernel = HOST

    def __init__(self, options: Options) -> None:
        self._allowed = options.allow_host_sysctls
        self._guests = uml.Guests()
        self._turn = threading.Lock()
        self._on_host = False

    def kernel(self, name: str) -> KernelRecord:
        """See `lab.engines.base.Engine.kernel`."""
        if name != HOST:
            uml.require()
            return find_kernel(name)
        _require_root()
        self._on_host = True
        return host_kernel()

    def agent_spec(self, point: Point) -> dict[str, Any]:
        """See `lab.engines.base.Engine.agent_spec`."""
        if point.knobs["kernel"] != HOST:
            return spec.agent_spec(point, spec.World(real_clock=True))
        allowed = frozenset(_read(_ALLOWED).split())
        if needs_control(point) and self._allowed:
            allowed |= {point.controls[0]}
        world = spec.World(own_kernel=False, real_clock=True, controls=allowed)
        return {**spec.agent_spec(point, world), "host_sysctls": changes(point)}

    def lacking(self, point: Point) -> str | None:
        """See `lab.engines.base.Engine.lacking`."""
        if point.knobs["kernel"] != HOST:
            return None
        for feature, why in wishes.wishes(point):
            finding = grant(feature)
            if not finding.ok:
                return f"{why} needs {feature.name}, and {finding.found}; {finding.mend}"
        for control in point.controls:
            if not has_control(control):
                there = ", ".join(sorted(_read(_AVAILABLE).split()))
                return (
                    f"Linux {platform.release()} here has no congestion control {control!r}, which"
                    f" cc={point.knobs['cc']} asks for; it has {there}; take one of them, or --engine virtual"
                )
        tool = wishes.TOOLS.get(point.knobs["workload"])
        if tool and not shutil.which(tool, path=AGENT_PATH):
            return f"workload={point.knobs['workload']} needs {tool}: {_missing(tool, tool)}"
        if not self._allowed:
            return _forbidden(point)
        return None

    def record(self) -> dict[str, Any]:
        """See `lab.engines.base.Engine.record`."""
        cpus = len(os.sched_getaffinity(0))
        told = {"cpus": cpus, "kernel": platform.release(), "version": platform.version()}
        if self._on_host and cpus < FEW_CPUS:
            few = "one CPU" if cpus == 1 else f"{cpus} CPUs"
            shared = f"sender, links and receiver share {few} of this machine"
            return {**told, "remarks": [f"{shared}; where these are the limit, points say so"]}
        return told

    def dry_run(self, points: Sequence[Point]) -> Iterator[str]:
        """See `lab.engines.base.Engine.dry_run`."""
        needed = {name: value for point in points for name, value in changes(point).items()}
        yield "This machine: network namespaces, links and qdiscs are made inside the agent and end with it."
        if not needed:
            yield "This machine: no value outside of them is changed."
        if needed and not self._allowed:
            yield "Refused without --allow-host-sysctls:"
        for name, value in needed.items():
            yield f"This machine: {name} = {value} (now {_read(name)}) while a point runs, then put back."

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
        """See `lab.engines.base.Engine.run`."""
        if spec["own_kernel"]:
            machine = uml.Machine(kernel, memory_bytes, cpu, seed, virtual=False)
            left = self._guests.run(machine, spec, folder=folder, wall_limit_s=wall_limit_s)
        else:
            with self._held(spec["host_sysctls"]):
                left = self._guests.supervise(
                    lambda: _start(folder), spec, folder=folder, wall_limit_s=wall_limit_s
                )
        return EngineResult(left.frames, left.outcome, left.wall_s, left.wall_s)

    @contextlib.contextmanager
    def _held(self, values: Mapping[str, str]) -> Iterator[None]:
        """Have values of the host changed while the block runs, for one point at a time.

        Raises PreconditionError where they cannot be.
        """
        if not values:
            yield
            return
        try:
            with self._turn, journal.held() as notes:
                for name, value in values.items():
                    notes.sysctl(name, value)
                yield
        except (journal.Held, journal.Leftover, journal.NotAppliedError) as refused:
            raise PreconditionError(str(refused)) from refused
        except journal.NotPutBack as left:
            raise EngineError(str(left)) from left

    def stop(self) -> None:
        """See `lab.engines.base.Engine.stop`."""
        self._guests.stop()


def make(options: Options | None = None) -> RealtimeEngine:
    """Return the engine; what it needs is checked when the kernel that is to run is known."""
    return RealtimeEngine(options or Options())


def _require_root() -> None:
    """Raise PreconditionError where this process may not make namespaces, or a tool is not there."""
    root = doctor.privileges()
    if not root.ok:
        raise PreconditionError(
            f"the realtime engine makes network namespaces here: {root.found}; {root.mend}, or take a kernel"
            " of the lab, such as --kernel 6.12, which needs no root"
        )
    for tool, package in (*_TOOLS, ("mnexec", "mininet"), (uml.PYTHON, "python3")):
        if shutil.which(tool, path=AGENT_PATH) is None:
            raise PreconditionError(_missing(tool, package))


def _missing(tool: str, package: str) -> str:
    return f"{tool} is not in {AGENT_PATH}; `apt-get install {package}` brings it"


@lru_cache(maxsize=32)
def grant(feature: Feature) -> doctor.Finding:
    """Return whether this kernel has a feature, after a try to load its module."""
    if feature.module and not Path("/sys/module", feature.module).is_dir():
        with contextlib.suppress(CommandError, PreconditionError):  # built in, or not there: found out below
            command.run(["modprobe", "--quiet", feature.module], timeout_s=30, env={"PATH": AGENT_PATH})
    return doctor.kernel_feature(feature, platform.release())


@lru_cache(maxsize=32)
def has_control(name: str) -> bool:
    """Return whether this kernel has a congestion control, after a try to load its module."""
    if name not in _read(_AVAILABLE).split():
        with contextlib.suppress(CommandError, PreconditionError):
            command.run(["modprobe", "--quiet", f"tcp_{name}"], timeout_s=30, env={"PATH": AGENT_PATH})
    return name in _read(_AVAILABLE).split()


def needs_control(point: Point) -> bool:
    """Return whether the server of a point can only take its namespace's congestion control, and may not."""
    return point.knobs["workload"] == "http" and point.controls[0] not in _read(_ALLOWED).split()


def changes(point: Point) -> dict[str, str]:
    """Return {name: value} of what a point would change of the host as a whole; empty for most."""
    needed = dict(spec.host_sysctls(point))
    if needs_control(point):
        needed[_ALLOWED] = f"{_read(_ALLOWED)} {point.controls[0]}"
    return {name: value for name, value in needed.items() if _read(name).split() != value.split()}


def _forbidden(point: Point) -> str | None:
    """Return the sentence for a point that needs a value of the whole host changed."""
    told = [f"{name} (now {_read(name)}, wanted {value})" for name, value in changes(point).items()]
    if not told:
        return None
    return (
        f"this point changes what is one for all of this host: {', '.join(told)}; --allow-host-sysctls sets"
        " it while the point runs and puts it back, or take a kernel of the lab, such as --kernel 6.12"
    )


def _read(name: str) -> str:
    """Return a sysctl of the host; "" where this kernel has none of that name."""
    try:
        return " ".join(_SYSCTLS.joinpath(*name.split(".")).read_text().split())
    except OSError:
        return ""


def _start(folder: Path) -> subprocess.Popen[bytes]:
    """Start the agent on this machine, as the first process of a PID namespace of its own."""
    argv = [
        *("setpriv", "--pdeathsig", "KILL"),  # the controller may be killed: nothing may outlive it
        *("unshare", "--pid", "--fork", "--kill-child", "--mount-proc"),
        *(uml.PYTHON, "-I", "-S", "-X", "utf8"),
        *(str(folder / name) for name in ("agent", "spec.json", "out")),
    ]
    return command.spawn(argv, stdout=folder / "console.txt", cwd=folder)
