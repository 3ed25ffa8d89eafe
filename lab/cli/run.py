"""`wanlab run`: make the points of a scenario, run those that are missing, say how it went."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from lab import expectations, manifest, sweep
from lab import run as run_module
from lab import scenario as scenario_module
from lab.cli import output
from lab.cli.progress import Progress
from lab.engines.base import ENGINES
from lab.errors import UserError
from lab.kernels import find_kernel
from lab.kernels.controls import require_controls
from lab.model.inputs import Release
from lab.point import Limits, notes
from lab.store import MANIFEST, RunFolder

DEFAULT_RESULTS = Path("results")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's words."""
    parser.add_argument(
        "scenario", type=Path, metavar="SCENARIO", help="a scenario script, such as scenarios/path.py"
    )
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="NAME=V[,V...]",
        help="set a knob, or sweep it over several values; preset=NAME takes a preset of the scenario",
    )
    parser.add_argument(
        "--engine", default="virtual", help=f"where to run: {', '.join(ENGINES)} (default: virtual)"
    )
    parser.add_argument("--kernel", metavar="K[,K...]", help="the same as --set kernel=K[,K...]")
    parser.add_argument(
        "--seed", default="1", metavar="N", help="seed of everything that chance decides (default: 1)"
    )
    parser.add_argument(
        "--repeat", default="1", metavar="N", help="run every point with N seeds in a row (default: 1)"
    )
    parser.add_argument("--jobs", metavar="N", help="points side by side (default: one a CPU)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="run folder (default: results/SCENARIO)")
    parser.add_argument(
        "--fresh", action="store_true", help="throw away what the run folder holds and start again"
    )
    parser.add_argument(
        "--wall-limit",
        default="30min",
        metavar="T",
        help="wall time that one point may take (default: 30min)",
    )
    output.add_format(parser)


def parse_settings(texts: list[str], flag: str = "--set") -> dict[str, list[str]]:
    """Return {knob: values} of `--set` arguments, or of another flag's. Raises UserError."""
    found: dict[str, list[str]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not name.strip():
            raise UserError(
                f"{flag} {text!r}: write NAME=VALUE or NAME=VALUE,VALUE, such as rmem=25MiB,50MiB"
            )
        parts = [part.strip() for part in values.split(",")]
        if not all(parts):
            raise UserError(f"{flag} {text!r}: an empty value; write NAME=VALUE or NAME=VALUE,VALUE")
        found.setdefault(name.strip(), []).extend(parts)
    return found


def whole_number(text: str, flag: str, low: int, high: int = 2**63 - 1) -> int:
    """Return a whole number in a range. Raises UserError naming the flag."""
    try:
        value = int(text)
    except ValueError:
        value = low - 1
    if not low <= value <= high:
        raise UserError(f"{flag} {text!r}: a whole number of at least {low} is wanted, such as {max(low, 1)}")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Run the points; return 0 or 1."""
    settings = parse_settings(arguments.settings)
    if arguments.kernel:
        settings["kernel"] = parse_settings([f"kernel={arguments.kernel}"], "--kernel")["kernel"]
    seed = whole_number(arguments.seed, "--seed", 0)
    repeat = whole_number(arguments.repeat, "--repeat", 1, 10_000)
    jobs = whole_number(arguments.jobs or str(len(run_module.cpus())), "--jobs", 1, 1024)
    if arguments.engine not in ENGINES:
        raise UserError(f"--engine {arguments.engine!r}: this version has {', '.join(ENGINES)}")
    limits = Limits(wall_s=_wall_limit(arguments.wall_limit))

    loaded = scenario_module.load(arguments.scenario)
    presets = settings.pop("preset", [None])
    if len(presets) > 1:
        raise UserError(f"preset: {','.join(map(str, presets))!r}: one preset a run")
    scenario = loaded.scenario.with_preset(presets[0])
    points = sweep.points(scenario, settings, engine=arguments.engine, seeds=range(seed, seed + repeat))
    kernels = {name: find_kernel(name) for name in dict.fromkeys(p.knobs["kernel"] for p in points)}
    require_controls(
        {name: {cc for p in points if p.knobs["kernel"] == name for cc in p.controls} for name in kernels},
        kernels,
    )
    engine = importlib.import_module(ENGINES[arguments.engine]).make()

    name = f"{scenario.name}-{presets[0]}" if presets[0] else scenario.name
    folder = RunFolder(arguments.out or DEFAULT_RESULTS / name)
    written = manifest.describe(loaded, scenario, presets[0], settings, points, kernels)
    with folder.locked():
        if arguments.fresh and (folder.path / MANIFEST).exists():
            folder.clear()
            folder.write_manifest(written)
        else:
            manifest.claim(folder, written)
        todo = run_module.missing(points, kernels, folder)
        for note in dict.fromkeys(
            note for p in points if (note := notes(p, Release.parse(kernels[p.knobs["kernel"]].release)))
        ):
            print(f"Note: {note}", file=sys.stderr)
        kept = len(points) - len(todo)
        with Progress(total=len(points), kept=kept, quiet=arguments.format == "json") as progress:
            run_module.run(
                todo,
                engine=engine,
                kernels=kernels,
                folder=folder,
                jobs=min(jobs, max(1, len(todo))),
                limits=limits,
                notify=progress.notify,
            )
        rows = folder.rows("points", [point.id for point in points])
        verdicts = expectations.check(scenario, rows)
        manifest.finish(folder, written, verdicts)
    return _say(arguments, folder, rows, verdicts, len(todo))


def _wall_limit(text: str) -> float:
    from lab import units  # noqa: PLC0415

    limit_s = units.parse_time(text)
    if limit_s <= 0:
        raise UserError(f"--wall-limit {text!r}: a time above 0 is wanted, such as 30min")
    return limit_s


def _say(
    arguments: argparse.Namespace,
    folder: RunFolder,
    rows: list[dict[str, object]],
    verdicts: list[expectations.Verdict],
    ran: int,
) -> int:
    failed = [row for row in rows if row["status"] != "done"]
    unmet = [verdict for verdict in verdicts if verdict.status == "failed"]
    status = 1 if failed or unmet else 0
    if arguments.format == "json":
        output.print_json(
            {
                "run": str(folder.path),
                "points": len(rows),
                "ran": ran,
                "done": len(rows) - len(failed),
                "failed": [{"point": row["point"], "reason": row["reason"]} for row in failed],
                "expectations": [
                    {"text": v.text, "status": v.status, "points": v.tried, "failures": list(v.failures)}
                    for v in verdicts
                ],
                "exit_status": status,
            }
        )
        return status
    for row in failed:
        print(f"failed: point {row['point']}: {row['reason']}")
    for verdict in verdicts:
        print(f"{verdict.status}: {verdict.text} ({verdict.tried} points)")
        for failure in verdict.failures[:10]:
            print(f"    {failure}")
    print(f"{len(rows) - len(failed)} of {len(rows)} points done ({ran} ran now) in {folder.path}")
    print(f"Look at it: wanlab show {folder.path}; wanlab report {folder.path}")
    return status
