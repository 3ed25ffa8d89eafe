"""How results are printed: a table for people, JSON and CSV for programs."""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

Row = Mapping[str, Any]


def add_format(parser: argparse.ArgumentParser, *more: str) -> None:
    """Give a command its `--format`."""
    parser.add_argument(
        "--format", choices=("table", "json", *more), default="table", help="how to print (default: table)"
    )


def print_json(value: object) -> None:
    """Print JSON that any reader takes: no NaN, no infinity."""
    print(json.dumps(_finite(value), indent=2))


def _finite(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def print_csv(rows: Sequence[Row], columns: Sequence[str]) -> None:
    """Print rows as CSV with a header, RFC 4180; null is empty, shares are as `shares_text` has them."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow(
            {name: shares_text(item) if isinstance(item, Mapping) else item for name, item in row.items()}
        )
    print(text.getvalue(), end="")


def shares_text(shares: Mapping[str, float]) -> str:
    """Return shares in one cell, largest first: "receive_window=0.930;slow_start=0.070"."""
    order = sorted(shares.items(), key=lambda item: -item[1])
    return ";".join(f"{name}={share:.3f}" for name, share in order)


def print_table(
    rows: Sequence[Mapping[str, str]], *, right: frozenset[str] = frozenset(), title: str = ""
) -> None:
    """Print rows of text as a table; all rows have the keys of the first. `right`: columns of numbers."""
    table = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False)
    for column in rows[0] if rows else ():
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*row.values())
    console().print(table)


def console(*, stderr: bool = False) -> Console:
    """Return a console; a pipe gets lines as wide as they need."""
    made = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not made.is_terminal:
        made.width = 200
    return made
