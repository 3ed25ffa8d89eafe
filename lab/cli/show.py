"""`wanlab show`: a run as a table, JSON or CSV. A row a point."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab import schema, units
from lab.cli import output
from lab.cli.run import parse_settings
from lab.errors import SpecError, UnitError, UserError
from lab.knobs import PATH_KNOBS
from lab.store import RunFolder

_NUMBERS = frozenset(("goodput", "steady", "predicted", "retr", "RTT", "wall"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's words."""
    parser.add_argument("folder", type=Path, metavar="RUN", help="run folder")
    parser.add_argument(
        "--points",
        action="append",
        default=[],
        metavar="WHICH",
        help="only these: identities (2024f41e98,...), `failed`, `done`, or NAME=V[,V...]; repeat to narrow",
    )
    output.add_format(parser, "csv")


def select(rows: Sequence[Mapping[str, Any]], filters: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the rows that all filters take. Raises UserError for a filter that cannot be."""
    chosen = list(rows)
    for text in filters:
        if text in ("failed", "done"):
            chosen = [row for row in chosen if row["status"] == text]
        elif "=" in text:
            for name, values in parse_settings([text], "--points").items():
                if name not in PATH_KNOBS:
                    raise UserError(
                        f"--points {text!r}: {name!r} is not a knob; the knobs are {', '.join(PATH_KNOBS)}"
                    )
                try:
                    wanted = {PATH_KNOBS[name].canonical(value) for value in values}
                except UnitError as fault:
                    raise SpecError([str(fault)]) from fault
                chosen = [row for row in chosen if str(row[name]) in wanted]
        else:
            wanted = {part.strip() for part in text.split(",")}
            unknown = wanted - {row["point"] for row in rows}
            if unknown:
                raise UserError(f"--points {', '.join(sorted(unknown))}: no such point in this run")
            chosen = [row for row in chosen if row["point"] in wanted]
    return chosen


def ordered_rows(folder: RunFolder) -> list[dict[str, Any]]:
    """Return the stored rows of the points table, in the order of the scenario."""
    manifest = folder.manifest()
    return folder.rows("points", [point["point"] for point in manifest["points"]])


def run(arguments: argparse.Namespace) -> int:
    """Print the rows; return 0."""
    folder = RunFolder(arguments.folder)
    rows = select(ordered_rows(folder), arguments.points)
    columns = [column.name for column in schema.POINT_COLUMNS]
    if arguments.format == "json":
        output.print_json([{name: row.get(name) for name in columns} for row in rows])
    elif arguments.format == "csv":
        output.print_csv(rows, columns)
    else:
        print_points(rows, folder)
    return 0


def print_points(rows: Sequence[Mapping[str, Any]], folder: RunFolder) -> None:
    """Print the table for people: what differs between points, and what came of it."""
    if not rows:
        print(f"{folder.path}: no points")
        return
    varied = [name for name in (*PATH_KNOBS, "seed") if len({row[name] for row in rows}) > 1] or [
        "rate",
        "rtt",
        "kernel",
        "cc",
    ]
    same = [
        f"{name}={rows[0][name]}"
        for name in ("rate", "rtt", "queue", "loss", "cc", "kernel", "offloads", "duration")
        if name not in varied
    ]
    print(f"{folder.path}: {len(rows)} points, {' '.join(same)}")
    table = []
    for row in rows:
        line = {"point": row["point"], **{name: str(row[name]) for name in varied}}
        if row["status"] == "done":
            predicted, steady = row["predicted_goodput_bps"], row["steady_goodput_bps"]
            line |= {
                "goodput": units.human_rate(row["goodput_bps"]),
                "steady": units.human_rate(steady),
                "predicted": units.human_rate(predicted)
                + (f" ({(steady / predicted - 1) * 100:+.1f} %)" if predicted else ""),
                "binds": row["limit_predicted"].replace("_", " "),
                "retr": str(row["retransmits"]),
                "wall": f"{row['wall_s']:.1f} s",
            }
        else:
            reason = (row["reason"] or "").splitlines()
            line |= {
                "goodput": "failed",
                "steady": "",
                "predicted": "",
                "binds": reason[0] if reason else "",
                "retr": "",
                "wall": "",
            }
        table.append(line)
    output.print_table(table, right=_NUMBERS)
    for note in dict.fromkeys(row["note"] for row in rows if row["note"]):
        print(f"Note: {note}")
