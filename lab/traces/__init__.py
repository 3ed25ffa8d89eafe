"""Traces of a link's rate over time: files of them, read as steps that a shaper can follow, and written.

    trace      Trace: a rate over time; what of it a run gets
    files      lines of a file, whatever is wrong with it; writing one whole
    table      CSV: two columns, time and rate; the last rate holds for ever
    deliveries mahimahi's packet deliveries: one line a packet, in milliseconds; the trace repeats
    formula    a rate as a formula of time, sampled

A file whose name ends in `.csv` is CSV. In any other the first line that says
something decides: with a comma it is CSV, without one packet deliveries. Blank
lines, `#` comments, Windows line ends and a byte order mark say nothing.

Importing this package is cheap; reading a trace imports numpy.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lab.errors import UserError
from lab.traces import files

if TYPE_CHECKING:
    from lab.traces.trace import Trace

__all__ = ["STEP_S", "Trace", "digest", "load"]

STEP_S = 0.01
"""What a rate of packet deliveries is the mean of, unless somebody says otherwise."""


def load(path: Path, step_s: float = STEP_S) -> Trace:
    """Read a trace. Of packet deliveries `step_s`, whole milliseconds, is what a rate is the mean of.

    Raises UserError naming the file, and where one line is wrong UnitError naming that too.
    """
    from lab.traces import deliveries, table  # noqa: PLC0415 (numpy takes a tenth of a second)

    with files.readable(path):
        _, first = next(files.lines(path), (0, ""))
        if not first:
            raise UserError(
                f"{path}: says nothing; write time,rate in each line, or a line a packet with its millisecond"
            )
        if path.suffix.lower() == ".csv" or "," in first:
            return table.load(path)
        return deliveries.load(path, step_s)


def digest(path: Path) -> str:
    """Return the first 8 hexadecimal digits of the SHA-256 of a file. Raises UserError as `load` does."""
    return files.digest(path)
