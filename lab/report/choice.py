"""Which points a figure shows: those that differ in its own knobs and the seed only, told apart by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.knobs import PATH_KNOBS
from lab.report import axes
from lab.report.stored import Entry, varying
from lab.schema import TABLES
from lab.units import human_rate, human_size

_BARE = ("cc", "kind", "qdisc", "topology")
"""Knobs and columns whose values say what they are."""
_SHORT = {"rtt_base_s": "RTT", "size_bytes": "size"}


@dataclass(frozen=True)
class Choice:
    """Points, with the knobs that vary in the run and not among them; left_out: points with other values."""

    entries: list[Entry]
    fixed: Mapping[str, str]
    left_out: int

    @property
    def words(self) -> str:
        """What the figure leaves out, "" for nothing."""
        if not self.fixed:
            return ""
        fixed = ", ".join(f"{name}={value}" for name, value in self.fixed.items())
        return f"Here {fixed}; {count(self.left_out)} with other values left out."


def choose(candidates: Sequence[Entry], over: Sequence[str], by: Sequence[str] = ()) -> Choice:
    """Return the points of a figure over the knobs `over`, told apart by others.

    Where more knobs vary, they have the values with most combinations of
    `over`, then with most points.
    """
    others = [name for name in varying(list(candidates)) if name not in (*over, *by)]
    groups: dict[tuple[str, ...], list[Entry]] = {}
    for entry in candidates:
        groups.setdefault(tuple(entry.knobs.get(name, "") for name in others), []).append(entry)
    if not groups:
        return Choice([], {}, 0)

    def weight(members: list[Entry]) -> tuple[int, int]:
        return len({tuple(entry.knobs.get(name) for name in over) for entry in members}), len(members)

    chosen = max(groups.values(), key=weight)
    fixed = {name: chosen[0].knobs.get(name, "") for name in others}
    return Choice(chosen, fixed, len(candidates) - len(chosen))


def name(keys: Sequence[str], words: Sequence[str]) -> str:
    """Return the name of a curve: "cubic, kernel 6.1, adv_win_scale 2". A knob at `default` goes unsaid."""
    parts = [
        word if key in _BARE else f"{_SHORT.get(key, key)} {word}"
        for key, word in zip(keys, words, strict=True)
    ]
    said = [part for part, word in zip(parts, words, strict=True) if word != "default"]
    return ", ".join(said or parts) or "measured"


def tag(key: str, entry: Entry, row: Mapping[str, Any] | None = None, table: str = "points") -> str:
    """Return what tells a row of a table by a column of it, or by a knob of its point."""
    for column in TABLES.get(table, ()) if row is not None and table != "points" else ():
        if column.name != key:
            continue
        value = row.get(key) if row is not None else None
        if isinstance(value, int | float) and column.unit == "s":
            return f"{value * 1e3:.4g} ms"
        if isinstance(value, int | float) and column.unit == "bytes":
            return human_size(value)
        if isinstance(value, int | float) and column.unit == "bit/s":
            return human_rate(value)
        return "none" if value is None else str(value)
    return entry.knobs.get(key, "")


def in_order(key: str, texts: Sequence[str], entries: Sequence[Entry]) -> list[str]:
    """Return values of a knob, each once, by size where they have one, else as they come."""
    numbers = {entry.knobs.get(key, ""): axes.measure(key, entry) for entry in entries if key in PATH_KNOBS}
    found = list(dict.fromkeys(texts))
    if all(numbers.get(text) is not None for text in found):
        found.sort(key=lambda text: numbers[text] or 0.0)
    return found


def count(number: int) -> str:
    """Return so many points, in words."""
    return "1 point" if number == 1 else f"{number} points"
