"""`wanlab run`: make the points of a scenario, run those that are missing, say how it went."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab import captures, expectations, manifest, sweep
from lab import run as run_module
from lab import scenario as scenario_module
from lab.cli import output
from lab.cli.progress import Progress
from lab.combination import REALTIME, REMOTE
from lab.engines.base import ENGINES, Engine, Options
from lab.errors import PreconditionError, UserError
from lab.kernels import HOST, KernelRecord
from lab.kernels.controls import require_controls
from lab.model.inputs import Release
from lab.point import Terms, notes
from lab.store import MANIFEST, RunFolder

DEFAULT_RESULTS = Path("results")


def add_study(parser: argparse.ArgumentParser, value: str, meaning: str) -> None:
    """Add the words that say of what scenario, with what knobs; value and meaning: of what --set takes."""
    parser.add_argument(
        "scenario", type=Path, metavar="SCENARIO", help="a scenario script, such as scenarios/path.py"
    )
    parser.add_argument(
        "--set", dest="settings", action="append", default=[], metavar=f"NAME={value}", help=meaning
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's words."""
    add_study(
        parser,
        "V[,V...]",
        "set a knob, or sweep it over several values; preset=NAME takes a preset of the scenario",
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
    parser.add_argument(
        "--jobs", metavar="N", help="points side by side (default: one a CPU; on the real clock one)"
    )
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
    parser.add_argument(
        "--capture",
        metavar="IFACE[,IFACE...]",
        help="keep the packets of these interfaces with each point, such as snd-eth0 (see `wanlab shell`)",
    )
    parser.add_argument(
        "--snaplen",
        default=str(captures.DEFAULT_SNAP_BYTES),
        metavar="N",
        help=f"bytes kept of each packet of a capture (default: {captures.DEFAULT_SNAP_BYTES}, all headers)",
    )
    parser.add_argument(
        "--inventory",
        type=Path,
        metavar="FILE",
        help="the hosts of the remote engine, such as inventory.toml",
    )
    parser.add_argument(
        "--allow-host-sysctls",
        action="store_true",
        help="let the realtime engine change values of this whole host while a point runs; they are put back",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print what the run would change outside of its folder, and change nothing",
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
    jobs = whole_number(arguments.jobs, "--jobs", 1, 1024) if arguments.jobs else None
    if arguments.engine not in ENGINES:
        raise UserError(f"--engine {arguments.engine!r}: this version has {', '.join(ENGINES)}")
    if arguments.inventory and arguments.engine != REMOTE:
        raise UserError(f"--inventory {str(arguments.inventory)!r}: only --engine remote has hosts; add it")
    if arguments.allow_host_sysctls and arguments.engine != REALTIME:
        raise UserError("--allow-host-sysctls: only --engine realtime asks for it; leave it out")
    terms = Terms(
        _wall_limit(arguments.wall_limit),
        captures.interfaces(arguments.capture or ""),
        whole_number(arguments.snaplen, "--snaplen", captures.LEAST_SNAP_BYTES, captures.MOST_SNAP_BYTES),
    )

    loaded = scenario_module.load(arguments.scenario)
    presets = settings.pop("preset", [None])
    if len(presets) > 1:
        raise UserError(f"preset: {','.join(map(str, presets))!r}: one preset a run")
    scenario = loaded.scenario.with_preset(presets[0])
    name = f"{scenario.name}-{presets[0]}" if presets[0] else scenario.name
    folder = RunFolder(arguments.out or DEFAULT_RESULTS / name)

    options = Options(arguments.inventory, arguments.allow_host_sysctls)
    engine: Engine = importlib.import_module(ENGINES[arguments.engine]).make(options)
    with contextlib.closing(engine):
        if engine.default_kernel:
            settings.setdefault("kernel", [engine.default_kernel])
        if not arguments.dry_run:
            settings |= _fixed(engine, settings, folder, fresh=arguments.fresh)
        points = sweep.points(scenario, settings, engine=arguments.engine, seeds=range(seed, seed + repeat))
        captures.check(points, terms.captured)
        if arguments.dry_run:
            lines = list(engine.dry_run(points))
            if arguments.format == "json":
                output.print_json({"dry_run": lines})
            else:
                print("\n".join(lines))
            return 0
        if terms.captured and arguments.engine != REMOTE:
            captures.require_tool()
        kernels = {
            kernel: engine.kernel(kernel) for kernel in dict.fromkeys(p.knobs["kernel"] for p in points)
        }
        require_controls(
            {
                kernel: {cc for p in points if p.knobs["kernel"] == kernel for cc in p.controls}
                for kernel in kernels
                if kernel != HOST
            },
            kernels,
        )
        _require_one(engine, points)
        for remark in engine.record().get("remarks", ()):
            print(f"Note: {remark}", file=sys.stderr)
        study = Study(loaded, scenario, presets[0], settings, points, kernels)
        jobs = jobs or engine.jobs or len(run_module.cpus())
        return _run(arguments, study, engine, folder, jobs, terms)


@dataclass(frozen=True)
class Study:
    """What a run is of: a scenario as it was asked for, its points, the kernels that run them."""

    loaded: scenario_module.LoadedScenario
    scenario: scenario_module.Scenario
    preset: str | None
    settings: Mapping[str, Sequence[str]]
    points: Sequence[sweep.Point]
    kernels: Mapping[str, KernelRecord]


def _fixed(
    engine: Engine, settings: Mapping[str, Sequence[str]], folder: RunFolder, *, fresh: bool
) -> dict[str, list[str]]:
    """Return the knobs that the engine fixes; what an earlier run of the folder measured holds.

    Raises UserError where the user set one of them.
    """
    stored = None
    if not fresh and (folder.path / MANIFEST).exists():
        stored = folder.manifest().get("engine_record")
    fixed = engine.settings(stored)
    both = sorted(set(fixed) & set(settings))
    if both:
        raise UserError(
            f"--set {both[0]}={','.join(settings[both[0]])}: it is {', '.join(fixed[both[0]])} on the path as"
            " it is; leave it out, or have the links shaped"
        )
    return fixed


def _require_one(engine: Engine, points: Sequence[sweep.Point]) -> None:
    """Raise PreconditionError where no point at all can run on the engine; some lacking, the others run."""
    lacking = [engine.lacking(point) for point in points]
    told = [sentence for sentence in dict.fromkeys(lacking) if sentence]
    if points and None not in lacking:
        raise PreconditionError("\n".join(told))
    for sentence in told:
        print(
            f"Note: {lacking.count(sentence)} of {len(points)} points cannot run: {sentence}", file=sys.stderr
        )


def _run(
    arguments: argparse.Namespace, study: Study, engine: Engine, folder: RunFolder, jobs: int, terms: Terms
) -> int:
    """Run what is missing in the folder and say how it went; return 0 or 1."""
    points, kernels = study.points, study.kernels
    written = manifest.describe(
        study.loaded, study.scenario, study.preset, study.settings, points, kernels, engine.record()
    )
    with folder.locked():
        if arguments.fresh and (folder.path / MANIFEST).exists():
            folder.clear()
            folder.write_manifest(written)
        else:
            manifest.claim(folder, written)
        todo = run_module.missing(points, kernels, folder, terms.captured)
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
                terms=terms,
                notify=progress.notify,
            )
        rows = folder.rows("points", [point.id for point in points])
        verdicts = expectations.check(study.scenario, rows)
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
