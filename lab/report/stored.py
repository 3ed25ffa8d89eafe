"""A run as the report sees it: every point that was asked for, with its row if it has one.

Not here: samples and queues, which are read point by point (see `lab.report.series`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lab.combination import Point
from lab.errors import StoreError
from lab.knobs import PATH_KNOBS
from lab.store import FILES, RunFolder

Row = dict[str, Any]

SAMPLE_COLUMNS = (
    *("t_s", "flow", "end", "cc", "idiag_rqueue", "skmem_sndbuf", "skmem_wmem_queued"),
    *("tcpi_busy_time", "tcpi_bytes_received", "tcpi_lost", "tcpi_retrans", "tcpi_rtt", "tcpi_sacked"),
    *("tcpi_snd_cwnd", "tcpi_snd_mss", "tcpi_snd_ssthresh", "tcpi_snd_wnd", "tcpi_total_retrans"),
    "tcpi_unacked",
)
"""Columns of the samples that a report draws; all of a thousand flows would take gigabytes."""

DONE, FAILED, MISSING = "done", "failed", "not run"


@dataclass(frozen=True)
class Entry:
    """One point: what was asked for, and its row; None where there is none that can be read."""

    id: str
    seed: int
    knobs: Mapping[str, str]
    row: Row | None

    @property
    def status(self) -> str:
        """One of done, failed or not run."""
        return MISSING if self.row is None else str(self.row["status"])

    def number(self, column: str) -> float | None:
        """Return a column of the row as a number, None where there is none."""
        value = None if self.row is None else self.row.get(column)
        return float(value) if isinstance(value, int | float) else None

    def text(self, column: str) -> str:
        """Return a column of the row as text, "" where there is none."""
        value = None if self.row is None else self.row.get(column)
        return "" if value is None else str(value)

    def shares(self, column: str) -> dict[str, float]:
        """Return a column of shares, largest first, none where there is none."""
        held = None if self.row is None else self.row.get(column)
        known = {str(name): share for name, share in (held or {}).items() if isinstance(share, int | float)}
        return dict(sorted(known.items(), key=lambda item: -item[1]))

    def point(self, engine: str) -> Point:
        """Return the point as the model takes it; knobs that its run did not know have their default."""
        defaults = {name: knob.default for name, knob in PATH_KNOBS.items()}
        return Point({**defaults, **self.knobs}, engine, self.seed)


@dataclass(frozen=True)
class Stored:
    """A run folder as read. unreadable: a sentence for each point that cannot be read."""

    folder: RunFolder
    manifest: Mapping[str, Any]
    entries: tuple[Entry, ...]
    unreadable: tuple[str, ...]

    @cached_property
    def done(self) -> tuple[Entry, ...]:
        """Points that are done, in the order of the scenario."""
        return tuple(entry for entry in self.entries if entry.status == DONE)

    def rows(self, table: str, entry: Entry) -> list[Row]:
        """Return the rows of a point in a table; none where this version or its run has no such table.

        Raises StoreError where they cannot be read.
        """
        if table not in FILES:
            return []
        return self.folder.rows(table, [entry.id], SAMPLE_COLUMNS if table == "samples" else None)

    def count(self, status: str) -> int:
        """Return how many points have a status."""
        return sum(entry.status == status for entry in self.entries)

    @cached_property
    def several_seeds(self) -> bool:
        """Whether points were repeated with another seed."""
        return len({entry.seed for entry in self.entries}) > 1

    @cached_property
    def varying(self) -> tuple[str, ...]:
        """Knobs with more than one value, in the order that they have everywhere."""
        return varying(self.entries)

    @cached_property
    def same(self) -> dict[str, str]:
        """Knobs that all points share, with their value; a rare one at its default goes unsaid."""
        first = self.entries[0].knobs if self.entries else {}
        return {
            name: first[name]
            for name in _ordered(first)
            if name not in self.varying and not _goes_unsaid(name, first[name])
        }

    def label(self, entry: Entry) -> str:
        """Return what tells a point from the others."""
        words = [f"{name}={entry.knobs.get(name, '')}" for name in self.varying]
        if self.several_seeds:
            words.append(f"seed {entry.seed}")
        return ", ".join(words)


def varying(entries: tuple[Entry, ...] | list[Entry]) -> tuple[str, ...]:
    """Return the knobs with more than one value among these points."""
    names = _ordered({name: "" for entry in entries for name in entry.knobs})
    return tuple(name for name in names if len({entry.knobs.get(name) for entry in entries}) > 1)


def _goes_unsaid(name: str, text: str) -> bool:
    return name in PATH_KNOBS and PATH_KNOBS[name].later and text == PATH_KNOBS[name].default


def _ordered(knobs: Mapping[str, str]) -> list[str]:
    known = [name for name in PATH_KNOBS if name in knobs]
    return known + sorted(set(knobs) - set(known))


def read(folder: RunFolder) -> Stored:
    """Return the run. StoreError where the folder is none; a point that cannot be read counts as not run."""
    manifest = folder.manifest()
    entries, unreadable = [], []
    for planned in manifest["points"]:
        try:
            rows = folder.rows("points", [planned["point"]])
        except StoreError as broken:
            rows = []
            unreadable.append(str(broken))
        entries.append(
            Entry(planned["point"], planned["seed"], dict(planned["knobs"]), rows[0] if rows else None)
        )
    return Stored(folder, manifest, tuple(entries), tuple(unreadable))
