"""What changes while packets flow: steps and ramps at given instants, and how they are written.

    5s:50mbit              at 5 s it becomes 50 Mbit/s
    5s:50mbit+10s:100mbit  and at 10 s 100 Mbit/s
    5s~10s:50mbit          from 5 s to 10 s it goes there evenly

Instants count from the start of the load. A ramp is cut into steps, as fine as
`RAMP_STEPS` or a millisecond allows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from lab import units
from lab.errors import UnitError
from lab.values import fields, parts

MOST_CHANGES = 1000
RAMP_STEPS = 100
_SHORTEST_STEP_S = 1e-3


class Change(NamedTuple):
    """From one instant (s) until another, equal for a step, to a value."""

    from_s: float
    until_s: float
    value: float


def parser(parse: Callable[[str], float], example: str) -> Callable[[str], tuple[Change, ...]]:
    """Return a parser of changes of something that `parse` reads."""

    def parsed(text: str) -> tuple[Change, ...]:
        found: list[Change] = []
        for part in parts(text, "changes"):
            when, value = fields(part, example, 2, 2)
            start, ramp, end = when.partition("~")
            from_s = units.parse_time(start)
            until_s = units.parse_time(end) if ramp else from_s
            if from_s < 0 or until_s < from_s or (ramp and until_s == from_s):
                raise UnitError(f"{part!r}: a ramp goes from an earlier instant to a later; write {example}")
            if found and from_s < found[-1].until_s + _SHORTEST_STEP_S / 2:
                raise UnitError(
                    f"{part!r} begins before the change before it is over; changes follow one another"
                )
            found.append(Change(from_s, until_s, parse(value)))
        if len(found) > MOST_CHANGES:
            raise UnitError(
                f"{text[:40]!r}...: {len(found)} changes; take a trace for more than {MOST_CHANGES}"
            )
        return tuple(found)

    return parsed


def shower(show: Callable[[float], str]) -> Callable[[tuple[Change, ...]], str]:
    """Return what prints changes as `parser` reads them."""

    def shown(changes: tuple[Change, ...]) -> str:
        return "+".join(
            f"{units.format_time(change.from_s)}"
            f"{f'~{units.format_time(change.until_s)}' if change.until_s > change.from_s else ''}"
            f":{show(change.value)}"
            for change in changes
        )

    return shown


def steps(first: float, changes: Sequence[Change]) -> list[tuple[float, float]]:
    """Return (instant in s, value) from the first value on; ramps as steps, each at its middle's value."""
    found = [(0.0, first)]
    for change in changes:
        before, span_s = found[-1][1], change.until_s - change.from_s
        count = max(1, min(RAMP_STEPS, int(span_s / _SHORTEST_STEP_S)))
        for number in range(count if span_s else 0):
            share = (number + 0.5) / count
            value = before + (change.value - before) * share
            found.append((round(change.from_s + span_s * number / count, 9), value))
        found.append((change.until_s, change.value))
    return found


def last_s(changes: Sequence[Change]) -> float:
    """Return when the last change is through, s."""
    return changes[-1].until_s
