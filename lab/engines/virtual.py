"""The virtual engine: the agent in a kernel of the lab's own, in virtual time.

What a point leaves follows from its settings, its kernel and its seed alone:
nothing that this machine does meanwhile can reach it. Not here: booting a
kernel and ending it (see `lab.uml`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab import uml
from lab.engines.base import EngineResult, Options, Plain


class VirtualEngine(Plain):
    """Runs points in virtual time. See `lab.engines.base.Engine`."""

    name = "virtual"

    def __init__(self) -> None:
        self._guests = uml.Guests()

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
        machine = uml.Machine(kernel, memory_bytes, cpu, seed)
        left = self._guests.run(machine, spec, folder=folder, wall_limit_s=wall_limit_s)
        return EngineResult(left.frames, left.outcome, left.wall_s, left.outcome["end_ns"] / 1e9)

    def stop(self) -> None:
        """See `lab.engines.base.Engine.stop`."""
        self._guests.stop()


def make(options: Options | None = None) -> VirtualEngine:
    """Return the engine, after checking what it needs of this machine. Raises PreconditionError."""
    del options
    uml.require()
    return VirtualEngine()
