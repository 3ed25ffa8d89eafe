"""What flows do over time, as it is written: arrivals, sizes, and pauses.

arrivals  poisson:60%        flows begin at random, 60 % of the bottleneck offered on average
          every:100ms        a flow at every such instant
sizes     64KB               all alike; 10KB+1MB in turn
          exp:100KB          exponentially distributed, with that mean
          pareto:1.2:100KB   Pareto with that shape (over 1) and mean: few flows carry most
on_off    1s:2s              1 s of sending, 2 s of silence, and again
          exp:1s:2s          the same with exponentially distributed lengths of those means
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from lab import units
from lab.errors import UnitError
from lab.values import fields, parts

LEAST_FLOW_BYTES = 100
MOST_FLOW_BYTES = 2**40


class Arrivals(NamedTuple):
    """How flows begin: kind "poisson" with the offered share of the link, or "every" with seconds."""

    kind: str
    amount: float


class Sizes(NamedTuple):
    """How large flows are: kind "list" with the sizes, "exp" with the mean, "pareto" with shape and mean."""

    kind: str
    numbers: tuple[float, ...]

    @property
    def mean_bytes(self) -> float:
        """Mean size, bytes."""
        return sum(self.numbers) / len(self.numbers) if self.kind == "list" else self.numbers[-1]

    def draw(self, chance: random.Random) -> Iterator[int]:
        """Yield sizes without end, bytes. Pareto by inversion: least x (1 - u)^(-1/shape)."""
        number = 0
        while True:
            if self.kind == "list":
                size = self.numbers[number % len(self.numbers)]
            elif self.kind == "exp":
                size = chance.expovariate(1 / self.numbers[0])
            else:
                shape, mean = self.numbers
                size = mean * (shape - 1) / shape * chance.paretovariate(shape)
            number += 1
            yield min(max(LEAST_FLOW_BYTES, round(size)), MOST_FLOW_BYTES)


class OnOff(NamedTuple):
    """Seconds of sending and of silence; kind "fixed" or "exp", where they are means."""

    kind: str
    on_s: float
    off_s: float

    def spells(self, chance: random.Random, until_s: float) -> list[tuple[float, float]]:
        """Return (from, to) of each time of sending, s from the flow's start."""
        found, at = [], 0.0
        while at < until_s:
            on, off = self.on_s, self.off_s
            if self.kind == "exp":
                on, off = chance.expovariate(1 / on), chance.expovariate(1 / off)
            found.append((round(at, 6), round(min(at + on, until_s), 6)))
            at += on + off
        return found


def parse_arrivals(text: str) -> Arrivals:
    """Return arrivals. Raises UnitError."""
    kind, amount = fields(text, "poisson:60%", 2, 2)
    if kind == "poisson":
        value, unit = units.split(amount, "load", "60%")
        if unit != "%" or not 0 < value <= 500:
            raise UnitError(f"{text!r}: a load is a share of the link over 0% and up to 500%, such as 60%")
        return Arrivals(kind, float(value) / 100)
    if kind == "every":
        every_s = units.parse_time(amount)
        if every_s < 1e-4:
            raise UnitError(f"{text!r}: at least 100us lie between two flows")
        return Arrivals(kind, every_s)
    raise UnitError(f"{text!r}: arrivals are poisson:LOAD or every:TIME, such as poisson:60%")


def show_arrivals(arrivals: Arrivals) -> str:
    """Return the canonical spelling."""
    if arrivals.kind == "every":
        return f"every:{units.format_time(arrivals.amount)}"
    return f"poisson:{units.format_probability(arrivals.amount)}"


def _size(text: str) -> int:
    size = units.parse_size(text)
    if not LEAST_FLOW_BYTES <= size <= MOST_FLOW_BYTES:
        raise UnitError(f"{text!r} is out of range; a flow has between 100B and 1TiB")
    return size


def parse_sizes(text: str) -> Sizes:
    """Return sizes. Raises UnitError."""
    kind, colon, rest = text.strip().partition(":")
    if not colon:
        return Sizes("list", tuple(_size(part) for part in parts(text, "sizes")))
    if kind == "exp":
        return Sizes("exp", (_size(rest),))
    if kind == "pareto":
        shape_text, mean = fields(rest, "pareto:1.2:100KB", 2, 2)
        shape, unit = units.split(shape_text, "shape", "1.2")
        if unit or not 1 < shape <= 10:
            raise UnitError(f"{text!r}: a shape is a number over 1, or there is no mean, and up to 10")
        return Sizes("pareto", (float(shape), _size(mean)))
    raise UnitError(f"{text!r}: sizes are 64KB, 10KB+1MB, exp:MEAN or pareto:SHAPE:MEAN, such as exp:100KB")


def show_sizes(sizes: Sizes) -> str:
    """Return the canonical spelling."""
    if sizes.kind == "list":
        return "+".join(units.format_size(int(size)) for size in sizes.numbers)
    if sizes.kind == "exp":
        return f"exp:{units.format_size(int(sizes.numbers[0]))}"
    return f"pareto:{sizes.numbers[0]:.12g}:{units.format_size(int(sizes.numbers[1]))}"


def parse_on_off(text: str) -> OnOff:
    """Return times of sending and silence. Raises UnitError."""
    given = fields(text, "1s:2s or exp:1s:2s", 2, 3)
    kind = given.pop(0) if len(given) == 3 else "fixed"
    if kind not in ("fixed", "exp"):
        raise UnitError(f"{text!r}: {kind!r} is not a distribution; write 1s:2s or exp:1s:2s")
    on_s, off_s = (units.parse_time(part) for part in given)
    if on_s < 1e-3 or off_s < 1e-3:
        raise UnitError(f"{text!r}: sending and silence each last at least 1ms")
    return OnOff(kind, on_s, off_s)


def show_on_off(on_off: OnOff) -> str:
    """Return the canonical spelling."""
    times = f"{units.format_time(on_off.on_s)}:{units.format_time(on_off.off_s)}"
    return f"exp:{times}" if on_off.kind == "exp" else times
