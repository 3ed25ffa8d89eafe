"""Runs points into the run folder of the advice, those that are missing, and hands back their rows.

The folder is a run like any other: `wanlab show` and `wanlab report` read it,
and what is in it is never run again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lab import manifest
from lab import run as run_module
from lab.advise.ask import PATH, SCENARIO, Ask
from lab.engines.base import Engine
from lab.errors import MeasurementError, StoreError
from lab.kernels import KernelRecord
from lab.point import Terms
from lab.scenario import Figure, LoadedScenario, Scenario
from lab.store import RunFolder
from lab.sweep import Point

Row = dict[str, Any]
RUN = "run"
"""The run folder, inside the folder of the advice."""


@dataclass
class Bench:
    """What runs points: an engine, kernels, a folder that the caller holds locked.

    before: told how many points are about to run; notify: told of each that ended.
    """

    ask: Ask
    command: str
    engine: Engine
    kernels: Mapping[str, KernelRecord]
    folder: RunFolder
    jobs: int
    before: Callable[[int], None]
    notify: Callable[[run_module.Event], None]

    def claim(self) -> None:
        """Make the folder this path's. Raises StoreError where it is another's."""
        try:
            manifest.claim(self.folder, self._manifest(()))
        except StoreError as refused:
            if "holds another run" not in str(refused):
                raise
            raise StoreError(
                f"{self.folder.path}: holds the runs of another path; choose another --out, or remove it"
            ) from refused

    def rows(self, points: Sequence[Point]) -> list[Row]:
        """Return the rows of points, run now where missing. Raises MeasurementError for one that failed."""
        todo = run_module.missing(list(dict.fromkeys(points)), self.kernels, self.folder)
        self.folder.write_manifest(self._manifest(points))
        if todo:
            self.before(len(todo))
            run_module.run(
                todo,
                engine=self.engine,
                kernels=self.kernels,
                folder=self.folder,
                jobs=min(self.jobs, len(todo)),
                terms=Terms(),
                notify=self.notify,
            )
        rows = self.folder.rows("points", [point.id for point in points])
        for row in rows:
            if row["status"] != "done":
                raise MeasurementError(
                    f"point {row['point']} of {self.folder.path} failed: {row['reason']}; `wanlab show"
                    f" {self.folder.path}` has its settings"
                )
        return rows

    def _manifest(self, points: Sequence[Point]) -> dict[str, Any]:
        """Return the manifest with these points added to those that it has."""
        loaded = study(self.ask)
        case = self.ask.cases[0]
        some = points or [self.ask.point(case)]
        made = manifest.describe(loaded, loaded.scenario, None, {}, some, dict(self.kernels))
        made["command"] = self.command
        if (self.folder.path / "manifest.json").exists():
            there = self.folder.manifest()
            known = {entry["point"] for entry in there["points"]}
            added = [entry for entry in made["points"] if points and entry["point"] not in known]
            made["points"] = there["points"] + list({entry["point"]: entry for entry in added}.values())
            made["kernels"] = {**there["kernels"], **made["kernels"]}
            made["began"] = there["began"]
        elif not points:
            made["points"] = []
        return made


def study(ask: Ask) -> LoadedScenario:
    """Return the scenario of the stored run, with a script of its own: it knows the path, not the points."""
    figures = (
        Figure("Goodput against tcp_rmem", x="rmem", by=("cc", "kernel")),
        Figure("Goodput against tcp_wmem", x="wmem", by=("cc", "kernel")),
    )
    scenario: Scenario = replace(
        SCENARIO,
        question=f"How big must the socket buffers be to fill {ask.words}?",
        why="Runs of `wanlab advise`: it searches the least tcp_rmem and tcp_wmem, so its points are not a"
        " grid.",
        defaults=dict(ask.path),
        figures=figures,
    )
    lines = [
        '"""The path of `wanlab advise`; the sizes that it tried are in the points."""',
        "",
        "from lab.scenario import Scenario",
        "",
        "scenario = Scenario(",
        f'    name="{scenario.name}",',
        f'    question="{scenario.question}",',
        f'    why="{scenario.why}",',
        f"    defaults={ {name: ask.path[name] for name in PATH} },",
        ")",
        "",
    ]
    return LoadedScenario(scenario, Path("advice.py"), "\n".join(lines))
