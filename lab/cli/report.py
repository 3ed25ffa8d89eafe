"""`wanlab report`: a run as one self-contained HTML page, and its figures as pictures."""

from __future__ import annotations

import argparse
from pathlib import Path

from lab.cli import output
from lab.store import RunFolder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's words."""
    parser.add_argument("folder", type=Path, metavar="RUN", help="run folder")
    parser.add_argument(
        "--png", type=Path, metavar="DIR", help="write every figure as a picture into DIR too"
    )
    output.add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the report; return 0."""
    from lab.report import page  # noqa: PLC0415 (plotting is slow to import and only this command wants it)

    written = page.write(RunFolder(arguments.folder))
    pictures = page.write_pictures(RunFolder(arguments.folder), arguments.png) if arguments.png else []
    if arguments.format == "json":
        output.print_json({"report": str(written), "pictures": [str(path) for path in pictures]})
    else:
        for path in (written, *pictures):
            print(path)
    return 0
