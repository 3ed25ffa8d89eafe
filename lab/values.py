"""How a knob's value is written: the grammar of single values and of lists, and what a knob is.

A knob's value travels as its one canonical spelling (`1gbit`, `200ms`,
`max=50MiB`, `bbr+cubic`): that is what tables show and digests hold.
`Knob.value` turns it into what the code works with. In a list values are
joined by +, since a comma parts the values of a sweep.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lab import units
from lab.errors import UnitError

MOST_LISTED = 1000
"""Values in one list."""


@dataclass(frozen=True)
class Knob:
    """One knob.

    parse: text to value, raising UnitError; show: value to canonical text.
    later: at its default it is no part of a point's identity, so that points
    keep the names that they had before there was this knob.
    """

    name: str
    default: str
    meaning: str
    parse: Callable[[str], Any]
    show: Callable[[Any], str]
    later: bool = False

    def canonical(self, text: str) -> str:
        """Return the canonical spelling of `text`. Raises UnitError naming the knob."""
        return self.show(self._parsed(text))

    def value(self, text: str) -> Any:
        """Return the value that `text` means."""
        return self._parsed(text)

    def _parsed(self, text: str) -> Any:
        try:
            return self.parse(str(text))
        except UnitError as fault:
            raise UnitError(f"{self.name}: {fault}") from fault


def ranged(
    parse: Callable[[str], float], low: float, high: float, show: Callable[[Any], str], what: str
) -> Callable[[str], float]:
    """Return a parser that refuses what lies outside of a range."""

    def checked(text: str) -> float:
        value = parse(text)
        if not low <= value <= high:
            raise UnitError(
                f"{text.strip()!r} is out of range; {what} lies between {show(low)} and {show(high)}"
            )
        return value

    return checked


def choice(*names: str) -> Callable[[str], str]:
    """Return a parser of one of these words."""

    def parse(text: str) -> str:
        chosen = text.strip().lower()
        if chosen not in names:
            raise UnitError(f"{text!r} is not one of {', '.join(names)}")
        return chosen

    return parse


def count(low: int, high: int, what: str) -> Callable[[str], int]:
    """Return a parser of a whole number in a range."""

    def parse(text: str) -> int:
        value = units.parse_count(text)
        if not low <= value <= high:
            raise UnitError(f"{text.strip()!r} is out of range; {what} lies between {low} and {high}")
        return value

    return parse


def word(pattern: str, what: str) -> Callable[[str], str]:
    """Return a parser of one word of a pattern."""

    def parse(text: str) -> str:
        stripped = text.strip()
        if not re.fullmatch(pattern, stripped):
            raise UnitError(f"{text!r} is not {what}")
        return stripped

    return parse


def optional(parse: Callable[[str], Any], none: str) -> Callable[[str], Any]:
    """Return a parser that reads one word as None."""
    return lambda text: None if text.strip() == none else parse(text)


def shown(show: Callable[[Any], str], none: str) -> Callable[[Any], str]:
    """Return what prints None as that word."""
    return lambda value: none if value is None else show(value)


def listed(parse: Callable[[str], Any], what: str) -> Callable[[str], tuple[Any, ...]]:
    """Return a parser of values joined by +."""

    def parsed(text: str) -> tuple[Any, ...]:
        found = parts(text, what)
        if len(found) > MOST_LISTED:
            raise UnitError(
                f"{text[:40]!r}... joins {len(found)} values; at most {MOST_LISTED} can be listed"
            )
        return tuple(parse(part) for part in found)

    return parsed


def parts(text: str, what: str) -> list[str]:
    """Return what is joined by +. Raises UnitError where something is missing between two of them."""
    found = text.split("+")
    if len(found) > 1 and not all(part.strip() for part in found):
        raise UnitError(f"{text!r} has an empty place; join {what} by +, such as A+B")
    return found


def show_list(show: Callable[[Any], str]) -> Callable[[tuple[Any, ...]], str]:
    """Return what prints a list as `listed` reads it; where all values are equal, one."""

    def shown_list(values: tuple[Any, ...]) -> str:
        texts = [show(value) for value in values]
        return texts[0] if len(set(texts)) == 1 else "+".join(texts)

    return shown_list


def fields(text: str, example: str, least: int, most: int) -> list[str]:
    """Return the parts of a value that is written A:B:C. Raises UnitError."""
    parts = text.split(":")
    if not least <= len(parts) <= most or not all(part.strip() for part in parts):
        raise UnitError(f"{text!r} has not the form that is wanted here; write it such as {example}")
    return [part.strip() for part in parts]
