"""`wanlab show`: a run as a table, JSON or CSV. A row a point."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab import repeats, schema, units
from lab.cli import output
from lab.cli.run import parse_settings
from lab.errors import SpecError, UnitError, UserError
from lab.knobs import PATH_KNOBS
from lab.report import limits
from lab.report.competition import harm_sentences
from lab.store import RunFolder

_RESULTS = ("goodput", "steady", "predicted", "predicted limit", "measured limit", "retr", "wall")
_NUMBERS = frozenset(("goodput", "steady", "predicted", "retr", "wall"))


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
    parser.add_argument(
        "--each", action="store_true", help="of a repeated run, every seed and not their means"
    )
    parser.add_argument(
        "--column",
        default="steady_goodput_bps",
        metavar="NAME",
        help="of a repeated run, what settings are told apart by (default: steady_goodput_bps)",
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
                chosen = [row for row in chosen if str(row.get(name, PATH_KNOBS[name].default)) in wanted]
        else:
            wanted = {part.strip() for part in text.split(",")}
            unknown = wanted - {row["point"] for row in rows}
            if unknown:
                raise UserError(f"--points {', '.join(sorted(unknown))}: no such point in this run")
            chosen = [row for row in chosen if row["point"] in wanted]
    return chosen


def ordered_rows(folder: RunFolder) -> list[dict[str, Any]]:
    """Return the stored rows of the points table, in the order of the scenario."""
    return folder.rows("points", _planned(folder))


def _planned(folder: RunFolder) -> list[str]:
    return [point["point"] for point in folder.manifest()["points"]]


def telling_apart(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the knobs, and the seed, that differ between these points."""
    return [name for name in (*PATH_KNOBS, "seed") if len({row.get(name) for row in rows}) > 1]


def missing(folder: RunFolder, stored: int) -> str:
    """Return a sentence on how many points have not run, "" where none is missing."""
    planned = len(_planned(folder))
    if planned <= stored:
        return ""
    return f"{planned - stored} of {planned} points have not run yet; run the same command again to get them."


def run(arguments: argparse.Namespace) -> int:
    """Print the rows; return 0."""
    folder, column = RunFolder(arguments.folder), repeats.column(arguments.column)
    stored = ordered_rows(folder)
    rows = select(stored, arguments.points)
    columns = [one.name for one in schema.POINT_COLUMNS]
    if arguments.format == "json":
        output.print_json([{name: row.get(name) for name in columns} for row in rows])
    elif arguments.format == "csv":
        output.print_csv(rows, columns)
    elif len({row["seed"] for row in rows}) > 1 and not arguments.each:
        print(f"{folder.path}: {len(rows)} points; --each shows every seed")
        print_repeats(rows, column)
    else:
        print_points(rows, folder)
    lacking = missing(folder, len(stored))
    if lacking:
        print(lacking, file=sys.stdout if arguments.format == "table" else sys.stderr)
    return 0


def print_points(rows: Sequence[Mapping[str, Any]], folder: RunFolder) -> None:
    """Print the table for people: what differs between points, and what came of it."""
    if not rows:
        print(f"{folder.path}: no points")
        return
    varied = telling_apart(rows) or ["rate", "rtt", "kernel", "cc"]
    same = [
        f"{name}={rows[0].get(name)}"
        for name in ("rate", "rtt", "queue", "loss", "cc", "kernel", "offloads", "duration")
        if name not in varied
    ]
    print(f"{folder.path}: {len(rows)} points, {' '.join(same)}")
    told = [
        {"point": row["point"], **{name: str(row.get(name)) for name in varied}, **_results(row)}
        for row in rows
    ]
    output.print_table(told, right=_NUMBERS)
    for note in dict.fromkeys(row["note"] for row in rows if row.get("note")):
        print(f"Note: {note}")
    for sentence in harm_sentences(rows):
        print(sentence)


def print_repeats(rows: Sequence[Mapping[str, Any]], column: str) -> None:
    """Print every setting once, over its seeds: means with intervals, and what they cannot tell apart."""
    groups = repeats.summarise(rows, tuple(dict.fromkeys((*repeats.COLUMNS, column))))
    told = []
    for group in groups:
        words = dict(part.partition("=")[::2] for part in group.label.split(", ") if part)
        cells = {name: repeats.say(name, of) if of else "-" for name, of in group.estimates.items()}
        failed = {"failed": str(group.failed)} if any(one.failed for one in groups) else {}
        told.append({**words, "seeds": str(group.n), **failed, **cells})
    output.print_table(told, right=frozenset(repeats.NUMBERS))
    print("Mean of all seeds and the 95 % interval of that mean, by bootstrap.")
    for sentence in repeats.indistinct(groups, column):
        print(sentence)


def _results(row: Mapping[str, Any]) -> dict[str, str]:
    """Return what came of a point; of one that failed its reason, where there is room for it."""
    if row["status"] != "done":
        reason = (row.get("reason") or "").splitlines()
        words = ("failed", "", "", reason[0] if reason else "", "", "", "")
        return dict(zip(_RESULTS, words, strict=True))
    steady, retransmits, wall_s = (row.get(name) for name in ("steady_goodput_bps", "retransmits", "wall_s"))
    measured = limits.named(row.get("limit_measured"), row.get("limit_shares"))
    words = (
        units.human_rate(row.get("goodput_bps")),
        units.human_rate(steady),
        predicted(steady, row.get("predicted_goodput_bps")),
        limits.named(row.get("limit_predicted")),
        measured,
        "" if retransmits is None else str(retransmits),
        "" if wall_s is None else f"{wall_s:.1f} s",
    )
    return dict(zip(_RESULTS, words, strict=True))


def predicted(measured: float | None, prediction: float | None) -> str:
    """Return a predicted rate, and how far measurement is from it: "663.5 Mbit/s (-0.6 %)"."""
    if not prediction or measured is None:
        return units.human_rate(prediction)
    return f"{units.human_rate(prediction)} ({(measured / prediction - 1) * 100:+.1f} %)"
