"""CSV: two columns, time and rate. The first rate counts from 0, the last one holds for ever."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lab import units
from lab.errors import UnitError, UserError
from lab.knobs import RATE_RANGE_BPS
from lab.traces import files
from lab.traces.trace import FRAME_BYTES, LONGEST_S, NS, RATE_RULE, Instants, Rates, Trace, frozen, whole_ns

_TIMES = {"time_s": 1.0, "time_ms": 1e-3, "time_us": 1e-6, "time": None}
_RATES = {"rate_bps": 1.0, "rate_kbps": 1e3, "rate_mbps": 1e6, "rate_gbps": 1e9, "rate": None}
"""What a column can be called, and what its numbers are in; None: each may have its own unit."""
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_SIGNS_OF_NUMBERS = b"0123456789.eE+- \t\r"


def load(path: Path) -> Trace:
    """Return the trace of a file. Raises UserError and UnitError."""
    reader = _Reader(path)
    parts = [reader.rows(number, block) for number, block in files.blocks(path)]
    starts_ns, rates_bps = (np.concatenate(part) for part in zip(*parts, strict=True))
    if not len(starts_ns):
        raise UserError(f"{path}: has a header and no line below it; write time,rate in each")
    if rates_bps[-1] == 0:
        raise UserError(
            f"{path}: its last rate is 0, an outage without an end;"
            " add a line with the time at which the link is back"
        )
    starts_ns[0] = 0
    changes = np.flatnonzero(
        np.diff(rates_bps == 0, prepend=False)
    )  # into an outage, out of it, into the next
    outages_ns = starts_ns[changes[1::2]] - starts_ns[changes[::2]]
    return Trace(
        *(str(path), "csv", len(starts_ns), *frozen(starts_ns, rates_bps)),
        period_ns=None,
        packet_bytes=FRAME_BYTES,
        longest_outage_s=int(outages_ns.max(initial=0)) / NS,
    )


class _Column(NamedTuple):
    """How the numbers of a column read."""

    name: str
    unit: float | None
    parse: Callable[[str], float]

    def value(self, text: str) -> float:
        """Return a value in seconds or bit/s. Raises UnitError."""
        if _DECIMAL.fullmatch(text):
            return float(text) * (self.unit or 1.0)
        if self.unit:
            raise UnitError(
                f"{files.short(text)} is not a number; in column {self.name} write bare ones, such as 40"
            )
        return self.parse(text)


def _columns(cells: list[str]) -> tuple[tuple[_Column, _Column], bool]:
    """Return how time and rate read by the first line, and whether that is a header. Raises UnitError."""
    header = any(cell[:1].isalpha() and cell.lower() not in ("nan", "inf", "infinity") for cell in cells)
    time, rate = (cell.lower() for cell in cells) if header else ("time", "rate")
    for name, known in ((time, _TIMES), (rate, _RATES)):
        if name not in known:
            raise UnitError(f"{files.short(name)} is no name for this column; name it {', '.join(known)}")
    return (
        _Column(time, _TIMES[time], units.parse_time),
        _Column(rate, _RATES[rate], units.parse_rate),
    ), header


class _Reader:
    """Reads one file block by block; between them it keeps what came last and what the columns are."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._columns: tuple[_Column, _Column] | None = None
        self._last_ns = -1

    def rows(self, number: int, block: bytes) -> tuple[Instants, Rates]:
        """Return starts (ns) and rates of a block of lines. Raises UnitError for the first that is wrong."""
        starts_ns, rates_bps = self._plain(block) or self._each(number, block)
        if len(starts_ns):
            self._last_ns = int(starts_ns[-1])
        return starts_ns, rates_bps

    def _plain(self, block: bytes) -> tuple[Instants, Rates] | None:
        """Return the rows of a block that has two good bare numbers in every line, or None."""
        marks = block.translate(None, _SIGNS_OF_NUMBERS)
        if self._columns is None or marks != b",\n" * (len(marks) // 2):
            return None
        try:
            numbers = np.array(list(map(float, block.replace(b",", b"\n").split(b"\n")[:-1])))
        except ValueError:
            return None
        times_s, rates_bps = (numbers[at::2] * (column.unit or 1) for at, column in enumerate(self._columns))
        low, high = RATE_RANGE_BPS
        fine = ((rates_bps >= low) & (rates_bps <= high)) | (rates_bps == 0)
        fine &= (times_s >= 0) & (times_s <= LONGEST_S)
        if not fine.all():
            return None
        starts_ns = np.rint(times_s * NS).astype(np.int64)
        rising = starts_ns[0] > self._last_ns and (starts_ns[1:] > starts_ns[:-1]).all()
        return (starts_ns, rates_bps) if rising else None

    def _each(self, number: int, block: bytes) -> tuple[Instants, Rates]:
        """Return the rows of any block, line by line."""
        starts_ns, rates_bps = [], []
        for line, text in files.lines_of(self._path, number, block):
            try:
                row = self._row(text)
            except UnitError as fault:
                raise files.at(self._path, line, str(fault)) from fault
            if row:
                self._last_ns = row[0]
                starts_ns.append(row[0])
                rates_bps.append(row[1])
        return np.array(starts_ns, dtype=np.int64), np.array(rates_bps, dtype=np.float64)

    def _row(self, text: str) -> tuple[int, float] | None:
        """Return start (ns) and rate of one line, None for a header."""
        cells = [cell.strip() for cell in text.split(",")]
        if len(cells) != 2:
            columns = "1 column" if len(cells) == 1 else f"{len(cells)} columns"
            raise UnitError(
                f"{files.short(text)} has {columns}; write two, time and rate, with a comma between"
            )
        if self._columns is None:
            self._columns, header = _columns(cells)
            if header:
                return None
        time, rate = self._columns
        return self._start_ns(cells[0], time.value(cells[0])), self._rate_bps(cells[1], rate.value(cells[1]))

    def _start_ns(self, text: str, time_s: float) -> int:
        said = files.short(text)
        if time_s < 0:
            raise UnitError(f"time {said} is negative; times count from 0")
        if time_s > LONGEST_S:
            raise UnitError(
                f"time {said} is beyond {LONGEST_S:.0f} s; times count from the trace's own start: take the"
                " first off all"
            )
        if whole_ns(time_s) <= self._last_ns:
            raise UnitError(
                f"time {said} is not after {units.format_time(self._last_ns / NS)}, the one before;"
                " times rise from line to line: sort the lines"
            )
        return whole_ns(time_s)

    def _rate_bps(self, text: str, rate_bps: float) -> float:
        low, high = RATE_RANGE_BPS
        if rate_bps != 0 and not low <= rate_bps <= high:
            assert self._columns is not None
            bare = 0 < rate_bps < low and self._columns[1].unit is None and _DECIMAL.fullmatch(text)
            hint = "; a bare number is bit/s: write 40mbit, or name the column rate_mbps" if bare else ""
            raise UnitError(f"rate {files.short(text)} is out of range; {RATE_RULE}{hint}")
        return abs(rate_bps)  # -0 is 0


def text(starts_ns: Instants, rates_bps: Rates) -> Iterator[str]:
    """Yield the text of a CSV with a header; neighbours with one rate are one line.

    Raises UnitError for rates that could not be read again.
    """
    low, high = RATE_RANGE_BPS
    wrong = np.flatnonzero((rates_bps != 0) & ~((rates_bps >= low) & (rates_bps <= high)))
    if len(wrong):
        instant = units.format_time(int(starts_ns[wrong[0]]) / NS)
        raise UnitError(
            f"at {instant} the rate is {units.human_rate(float(rates_bps[wrong[0]]))}; {RATE_RULE}"
        )
    if rates_bps[-1] == 0:
        raise UnitError(
            "the last rate is 0, an outage without an end; take a duration that ends when the link is back"
        )
    changes = np.flatnonzero(np.diff(rates_bps, prepend=-1.0))
    yield "time_s,rate_bps\n"
    for first in range(0, len(changes), 4096):
        some = changes[first : first + 4096]
        rows = zip(starts_ns[some].tolist(), rates_bps[some].tolist(), strict=True)
        yield "".join(f"{start_ns / NS:.15g},{rate_bps:.12g}\n" for start_ns, rate_bps in rows)
