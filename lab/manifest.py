"""The manifest of a run: what was asked, by which versions, on which machine, and how to repeat it."""

from __future__ import annotations

import os
import platform
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from lab import __version__, schema
from lab.clock import wall_s
from lab.errors import StoreError
from lab.expectations import Verdict
from lab.kernels import KernelRecord
from lab.scenario import LoadedScenario, Scenario
from lab.store import RunFolder
from lab.sweep import Point

_IDENTITY = ("scenario", "scenario_hash", "preset", "settings", "engine", "seeds")


def _now() -> str:
    return datetime.fromtimestamp(wall_s(), UTC).isoformat(timespec="seconds")


def describe(
    loaded: LoadedScenario,
    scenario: Scenario,
    preset: str | None,
    settings: Mapping[str, Sequence[str]],
    points: Sequence[Point],
    kernels: Mapping[str, KernelRecord],
    engine_record: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the manifest of a run that is about to start.

    engine_record: what the engine wants kept of itself, such as the hosts that it drove.
    """
    seeds = sorted({point.seed for point in points})
    engine = points[0].engine
    return {
        "schema_version": schema.VERSION,
        "wanlab_version": __version__,
        "scenario": scenario.name,
        "scenario_path": str(loaded.path),
        "scenario_hash": loaded.source_hash,
        "scenario_source": loaded.source,
        "question": scenario.question,
        "why": scenario.why.strip(),
        "preset": preset,
        "settings": {name: list(values) for name, values in sorted(settings.items())},
        "engine": engine,
        **({"engine_record": dict(engine_record)} if engine_record else {}),
        "seeds": seeds,
        "command": command(loaded, preset, settings, engine, seeds),
        "figures": [figure.told() for figure in scenario.figures],
        "published": [
            {
                "where": {name: scenario.knobs[name].canonical(text) for name, text in p.where.items()},
                "goodput_bps": p.goodput_bps,
                "source": p.source,
                "of": p.of,
            }
            for p in scenario.published
        ],
        **_original(scenario),
        "points": [{"point": p.id, "seed": p.seed, "knobs": dict(p.knobs)} for p in points],
        "kernels": {
            name: {
                "release": record.release,
                "hz": record.hz,
                "recipe_hash": record.recipe_hash,
                "config_hash": record.config_hash,
                "source": Path(record.source).name,
                "source_hash": record.source_hash,
                "compiler": record.compiler,
            }
            for name, record in kernels.items()
        },
        "host": {
            "machine": platform.machine(),
            "kernel": platform.release(),
            "cpus": os.cpu_count(),
            "python": platform.python_version(),
            "packages": {name: metadata.version(name) for name in ("numpy", "plotly", "pyarrow", "scipy")},
        },
        "began": _now(),
        "ended": None,
        "expectations": [],
    }


def _original(scenario: Scenario) -> dict[str, Any]:
    """Return what a twin says of the run that it emulates; nothing of any other scenario."""
    twin_of = scenario.twin_of
    if twin_of is None:
        return {}
    points = {
        point: {name: scenario.knobs[name].canonical(text) for name, text in where.items()}
        for point, where in twin_of.points.items()
    }
    told = {"run": twin_of.run, "engine": twin_of.engine, "began": twin_of.began, "points": points}
    return {"twin_of": told}


def command(
    loaded: LoadedScenario,
    preset: str | None,
    settings: Mapping[str, Sequence[str]],
    engine: str,
    seeds: Sequence[int],
) -> str:
    """Return the command line that repeats the run."""
    words = ["wanlab", "run", str(loaded.path)]
    if preset:
        words += ["--set", f"preset={preset}"]
    for name, values in sorted(settings.items()):
        words += ["--set", f"{name}={','.join(values)}"]
    words += ["--engine", engine, "--seed", str(seeds[0])]
    if len(seeds) > 1:
        words += ["--repeat", str(len(seeds))]
    return shlex.join(words)


def claim(folder: RunFolder, manifest: Mapping[str, Any]) -> None:
    """Write the manifest, unless the folder is another run's or not a run's at all. Raises StoreError."""
    path = folder.path
    if (path / "manifest.json").exists():
        there = folder.manifest()
        differing = [name for name in _IDENTITY if there.get(name) != manifest[name]]
        if differing:
            raise StoreError(
                f"{path}: holds another run (its {', '.join(differing)} differ);"
                " choose another --out, or --fresh to throw that one away"
            )
    elif path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise StoreError(f"{path}: exists and is not a run; choose another --out")
    folder.write_manifest(manifest)


def finish(folder: RunFolder, manifest: Mapping[str, Any], verdicts: Sequence[Verdict]) -> None:
    """Add the end and what became of the expectations."""
    folder.write_manifest(
        {
            **manifest,
            "ended": _now(),
            "expectations": [
                {"text": v.text, "status": v.status, "points": v.tried, "failures": list(v.failures)}
                for v in verdicts
            ],
        }
    )
