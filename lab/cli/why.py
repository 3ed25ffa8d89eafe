"""`wanlab why`: what the model said of each point, what limited it in fact, and by how much."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab import units
from lab.cli import output
from lab.cli.show import missing, ordered_rows, predicted, telling_apart
from lab.errors import UserError
from lab.model.limits import words
from lab.report import limits
from lab.store import RunFolder

Row = Mapping[str, Any]

_COLUMNS = (
    "status",
    "reason",
    "note",
    "steady_goodput_bps",
    "predicted_goodput_bps",
    "limit_predicted",
    "limit_measured",
    "predicted_shares",
    "limit_shares",
    "next_limit",
    "margin",
    "prediction",
    "verdict",
)
"""What JSON has of a point, besides its identity and its knobs."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's words."""
    parser.add_argument("folder", type=Path, metavar="RUN", help="run folder")
    parser.add_argument(
        "points",
        nargs="*",
        default=[],
        metavar="POINT",
        help="identities, as `wanlab show` prints them (default: all)",
    )
    output.add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the verdicts; return 0. Raises UserError for a point that the run does not have."""
    folder = RunFolder(arguments.folder)
    rows = ordered_rows(folder)
    chosen = _chosen(folder, rows, arguments.points)
    varied = telling_apart(rows)
    if arguments.format == "json":
        output.print_json([_as_json(row, varied) for row in chosen])
    else:
        for number, row in enumerate(chosen):
            if number:
                print()
            _print(row, varied)
    lacking = missing(folder, len(rows))
    if lacking and not arguments.points:
        print(lacking, file=sys.stdout if arguments.format == "table" else sys.stderr)
    return 0


def _chosen(folder: RunFolder, rows: Sequence[Row], asked: Sequence[str]) -> list[Row]:
    """Return the rows of the points asked for, in that order; all of them where none is."""
    if not asked:
        return list(rows)
    stored = {row["point"]: row for row in rows}
    planned = {point["point"] for point in folder.manifest()["points"]}
    unknown = [name for name in asked if name not in planned]
    if unknown:
        raise UserError(
            f"{folder.path}: has no point {', '.join(unknown)}; `wanlab show {folder.path}` lists its points"
        )
    waiting = [name for name in asked if name not in stored]
    if waiting:
        raise UserError(
            f"{folder.path}: point {', '.join(waiting)} has not run yet; run the same command again to get it"
        )
    return [stored[name] for name in dict.fromkeys(asked)]


def _knobs(row: Row, varied: Sequence[str]) -> dict[str, Any]:
    """Return what tells a point from the others; of one alone what tells it from any."""
    return {name: row.get(name) for name in varied or ("rate", "rtt", "kernel", "cc")}


def _as_json(row: Row, varied: Sequence[str]) -> dict[str, Any]:
    return {
        "point": row["point"],
        "knobs": _knobs(row, varied),
        **{name: row.get(name) for name in _COLUMNS},
    }


def _print(row: Row, varied: Sequence[str]) -> None:
    print(" ".join([row["point"], *(f"{name}={value}" for name, value in _knobs(row, varied).items())]))
    if row["status"] != "done":
        reason = (row.get("reason") or "").splitlines()
        print(f"Failed: {reason[0] if reason else 'no reason was stored'}")
        return
    steady = row.get("steady_goodput_bps")
    told = predicted(steady, row.get("predicted_goodput_bps"))
    print(f"Steady goodput {units.human_rate(steady)}, predicted {told}.")
    for name, column in (("Predicted", "prediction"), ("Measured", "verdict")):
        print(f"{name}: {row.get(column) or 'nothing is stored.'}")
    model, records = row.get("predicted_shares") or {}, row.get("limit_shares") or {}
    shown = limits.present(model, records)
    if shown:
        table = [
            {
                "limit": words(limit),
                "predicted": _percent(limit, model),
                "measured": _percent(limit, records),
            }
            for limit in shown
        ]
        output.print_table(table, right=frozenset(("predicted", "measured")))
    if row.get("note"):
        print(f"Note: {row['note']}")


def _percent(limit: str, shares: Mapping[str, float]) -> str:
    return limits.percent(shares.get(limit, 0.0) if shares else None)
