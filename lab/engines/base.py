"""What an engine is: it runs the agent on one point's specification and hands back what it left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

ENGINES = {"virtual": "lab.engines.virtual"}
"""Every engine by the module that has its `make()`; loaded when it is asked for."""


@dataclass(frozen=True)
class EngineResult:
    """What a finished point left: raw frames, the agent's report, and what it cost."""

    frames: bytes
    outcome: Mapping[str, Any]
    wall_s: float
    virtual_s: float


class Engine(Protocol):
    """Runs one point at a time on one CPU; several threads may call it at once.

    timeless: what the machine does meanwhile cannot reach a result.
    """

    name: str
    teardown: bool
    timeless: bool

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
