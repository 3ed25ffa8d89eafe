"""`wanlab twin`: the scenario that emulates, in virtual time, the path that a run measured."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from lab import scenario
from lab.cli import output
from lab.errors import UserError
from lab.report import stored
from lab.report.stored import Entry, Stored
from lab.store import RunFolder
from lab.traffic import REVERSE
from lab.twin import path as path_module
from lab.twin import script
from lab.twin.records import SAMPLES, Record

AS_IS = "as-is"
"""Links that nobody shaped, as an outcome has it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's words."""
    parser.add_argument("folder", type=Path, metavar="RUN", help="run folder, of any engine")
    parser.add_argument(
        "--out", type=Path, metavar="FILE.py", help="write the scenario there (default: print it)"
    )
    output.add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the scenario; return 0. Raises UserError for a run without a point that is done."""
    folder, out = RunFolder(arguments.folder), arguments.out
    run_ = stored.read(folder)
    records = read(run_)
    if not records:
        raise UserError(
            f"{folder.path}: no point is done, so there is nothing to emulate;"
            f" `wanlab show {folder.path}` says why"
        )
    paths = path_module.paths(records)
    study = _study(run_, out.name if out else f"{script.scenario_name(_name(run_))}.py")
    text = script.write(study, paths)
    if out is not None:
        _write(out, text)
    if arguments.format == "json":
        output.print_json(as_json(study, paths, text, out))
    elif out is None:
        print(text, end="")
    else:
        _say(paths)
        print(f"Run it: wanlab run {out}{script.repeat(paths)}")
        print(f"Then: wanlab compare {folder.path} results/{_twin(study)}")
    return 0


def read(run_: Stored) -> list[Record]:
    """Return the points of a run that are done. Raises StoreError for one whose records cannot be read."""
    records = [_record(run_, entry) for entry in run_.done]
    path = (run_.manifest.get("engine_record") or {}).get("path")
    if records and path and (run_.folder.outcome(run_.done[0].id) or {}).get("links") == AS_IS:
        # what was measured of them before the first point ran, once for all
        first = records[0]
        records[0] = replace(
            first,
            checks=[*first.checks, {"rtts_s": path.get("rtts_s") or [], "train": None}],
            trains_bps=(*first.trains_bps, *map(float, path.get("rates_bps") or ())),
            slow_sender=bool(path.get("at_least")),
        )
    return records


def _record(run_: Stored, entry: Entry) -> Record:
    assert entry.row is not None
    rows = run_.folder.rows("samples", [entry.id], SAMPLES)
    senders: dict[int, list[dict[str, object]]] = {}
    for row in sorted((row for row in rows if row["end"] == "sender"), key=lambda row: float(row["t_s"])):
        senders.setdefault(int(row["flow"]), []).append(row)
    flows = run_.folder.rows("flows", [entry.id], ("flow", "kind"))
    outcome = run_.folder.outcome(entry.id) or {}
    train_bps = (outcome.get("measured") or {}).get("rate_bps") if outcome.get("links") == AS_IS else None
    return Record(
        row=entry.row,
        knobs=entry.knobs,
        senders=senders,
        checks=outcome.get("path") or [],
        backwards=frozenset(int(row["flow"]) for row in flows if row["kind"] == REVERSE),
        trains_bps=(float(train_bps),) if train_bps else (),
    )


def _name(run_: Stored) -> str:
    return str(run_.manifest.get("scenario", ""))


def _study(run_: Stored, file: str) -> script.Study:
    manifest = run_.manifest
    return script.Study(
        run=str(run_.folder.path),
        name=_name(run_),
        question=str(manifest.get("question", "")),
        engine=str(manifest.get("engine", "")),
        began=str(manifest.get("began", "")),
        figures=tuple(manifest.get("figures", ())),
        file=file,
    )


def _twin(study: script.Study) -> str:
    return script.scenario_name(study.name)


def _write(out: Path, text: str) -> None:
    """Write the script, over nothing that is there, and load it as `wanlab run` will."""
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as there:
        raise UserError(
            f"--out {out}: is there already, perhaps with changes of yours; name another file or remove it"
        ) from there
    except OSError as refused:
        raise UserError(
            f"--out {out}: cannot be written ({refused.strerror}); name a file in a folder that is there"
        ) from refused
    scenario.load(out)


def as_json(
    study: script.Study, paths: list[path_module.Path], text: str, out: Path | None
) -> dict[str, object]:
    """Return what was found, for programs."""
    return {
        "run": study.run,
        "scenario": str(out) if out else None,
        "name": _twin(study),
        "paths": [
            {
                "knobs": dict(path.knobs),
                "points": [record.row["point"] for record in path.records],
                "measured": list(path.measured),
                "assumed": list(path.assumed),
            }
            for path in paths
        ],
        "text": text,
    }


def _say(paths: list[path_module.Path]) -> None:
    for path in paths:
        if len(paths) > 1:
            told = ", ".join(f"{name}={path.knobs[name]}" for name in ("rate", "rtt", "queue", "loss"))
            print(f"{len(path.records)} points over {told}:")
        for sentence in path.measured:
            print(sentence)
        for sentence in path.assumed:
            print(f"Assumed: {sentence}")
    sys.stdout.flush()
