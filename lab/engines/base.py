"""What an engine is: it runs the agent on one point's specification and hands back what it left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from lab import spec
from lab.combination import Point
from lab.errors import UserError
from lab.kernels import HOST, KernelRecord, find_kernel

ENGINES = {
    "virtual": "lab.engines.virtual",
    "realtime": "lab.engines.realtime",
    "remote": "lab.engines.remote",
}
"""Every engine by the module that has its `make()`; loaded when it is asked for."""


@dataclass(frozen=True)
class Options:
    """What the user said of an engine as a whole.

    inventory: the hosts of the remote engine. allow_host_sysctls: values that are
    global to this host may be changed for the time of a point.
    """

    inventory: Path | None = None
    allow_host_sysctls: bool = False


@dataclass(frozen=True)
class EngineResult:
    """What a finished point left: raw frames, the agent's report, and what it cost."""

    frames: bytes
    outcome: Mapping[str, Any]
    wall_s: float
    virtual_s: float


class Engine(Protocol):
    """Runs one point at a time on one CPU; several threads may call it at once.

    timeless: what the machine does meanwhile cannot reach a result. jobs: how
    many points it runs side by side where nobody chose, None for one a CPU.
    default_kernel: what runs a point where nobody chose, None for what the
    scenario says.
    """

    name: str
    timeless: bool
    jobs: int | None
    default_kernel: str | None

    def kernel(self, name: str) -> KernelRecord:
        """Return the kernel of an address, as this engine would run it.

        Raises UserError or PreconditionError where it has none of that name.
        """
        ...

    def agent_spec(self, point: Point) -> dict[str, Any]:
        """Return what the agent is told of a point."""
        ...

    def lacking(self, point: Point) -> str | None:
        """Return why this engine cannot run a point here, in one sentence; None where it can."""
        ...

    def settings(self, stored: Mapping[str, Any] | None) -> dict[str, list[str]]:
        """Return the knobs that the engine fixes, as a real path fixes its RTT.

        stored: what `record` gave to an earlier run of the same folder; it holds.
        """
        ...

    def record(self) -> dict[str, Any]:
        """Return what a manifest keeps of the engine; JSON."""
        ...

    def dry_run(self, points: Sequence[Point]) -> Iterator[str]:
        """Yield, line by line, what running these points would change outside of the run folder."""
        ...

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
        """Run the agent on `spec`; `folder` is empty, ours alone, and removed by the caller.

        Raises EngineError, or PreconditionError where the machine lacks something.
        """
        ...

    def stop(self) -> None:
        """End everything that runs, now; calls of `run` then raise EngineError."""
        ...

    def close(self) -> None:
        """Let go of what the engine holds; nothing runs any more."""
        ...


class Plain:
    """What most engines have in common: kernels of the lab's own, nothing fixed, nothing to put back."""

    name = ""
    timeless = True
    jobs: int | None = None
    default_kernel: str | None = None

    def kernel(self, name: str) -> KernelRecord:
        """See `Engine.kernel`."""
        if name == HOST:
            raise UserError(
                f"kernel: {HOST!r} is this machine's own, and the {self.name} engine boots a kernel of the"
                " lab; take 6.12, or --engine realtime"
            )
        return find_kernel(name)

    def agent_spec(self, point: Point) -> dict[str, Any]:
        """See `Engine.agent_spec`."""
        return spec.agent_spec(point)

    def lacking(self, point: Point) -> str | None:
        """See `Engine.lacking`."""
        del point
        return None

    def settings(self, stored: Mapping[str, Any] | None) -> dict[str, list[str]]:
        """See `Engine.settings`."""
        del stored
        return {}

    def record(self) -> dict[str, Any]:
        """See `Engine.record`."""
        return {}

    def dry_run(self, points: Sequence[Point]) -> Iterator[str]:
        """See `Engine.dry_run`."""
        del points
        yield f"The {self.name} engine changes nothing outside of its own kernel and the run folder."

    def close(self) -> None:
        """See `Engine.close`."""
