"""Quantities as people write them: the one place that parses and prints them.

Inside the lab a rate is bit/s, a size bytes, a time seconds, a probability a
fraction; only here do they have other spellings. What can be mistaken is
refused: `bps` (tc reads it as bytes per second), `b`, `m`, a bare number where
a unit decides.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal

from lab.errors import UnitError

_NUMBER = re.compile(r"\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?)\s*([A-Za-zµμ%/]*)\s*\Z")
_WHOLE = re.compile(r"\s*([+-]?[0-9]{1,18})\s*\Z")
_MOST_DIGITS = 30
"""A number of more digits before or after its point is no quantity of a network."""

_RATE = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9, "tbit": 10**12}
_RATE |= {f"{unit}/s": factor for unit, factor in _RATE.items()}
_RATE_BYTES = {"B/s": 8, "kB/s": 8 * 10**3, "KB/s": 8 * 10**3, "MB/s": 8 * 10**6, "GB/s": 8 * 10**9}
_RATE_BYTES |= {"KiB/s": 8 * 2**10, "MiB/s": 8 * 2**20, "GiB/s": 8 * 2**30}
_SIZE = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE |= {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_TIME: dict[str, int | Decimal] = {
    "s": 1,
    "ms": Decimal("1e-3"),
    "us": Decimal("1e-6"),
    "ns": Decimal("1e-9"),
    "min": 60,
}
_TIME |= {"µs": Decimal("1e-6"), "μs": Decimal("1e-6"), "sec": 1, "h": 3600}

_AMBIGUOUS = {
    "bps": "`bps` is bits per second to some and bytes per second to tc",
    "kbps": "`kbps` is kilobits to some and kilobytes per second to tc",
    "mbps": "`mbps` is megabits to some and megabytes per second to tc",
    "gbps": "`gbps` is gigabits to some and gigabytes per second to tc",
    "mb": "`mb` may be megabits or megabytes",
    "m": "`m` may be mega, mebi, milli or minutes",
    "k": "`k` may be 1000 or 1024",
    "g": "`g` may be 10^9 or 2^30",
    "b": "`b` may be bits or bytes",
}


def split(text: str, what: str, example: str) -> tuple[Decimal, str]:
    """Return the number and the unit of a quantity; the unit may be "". Raises UnitError."""
    match = _NUMBER.match(text)
    if not match:
        raise UnitError(f"{text!r} is not a {what}; write a number and a unit, such as {example}")
    value = Decimal(match[1])
    if not value:
        return Decimal(0), match[2]
    if abs(value.adjusted()) > _MOST_DIGITS:
        raise UnitError(f"{text!r} is out of range; no {what} is of that order, write it such as {example}")
    return value, match[2]


def _refuse(text: str, unit: str, what: str, known: str, example: str) -> UnitError:
    if not unit:
        return UnitError(f"{text!r} has no unit; a {what} needs one ({known}), such as {example}")
    why = _AMBIGUOUS.get(unit.lower())
    if why:
        return UnitError(f"{text!r} is ambiguous: {why}; write a {what} such as {example}")
    return UnitError(f"{text!r}: {unit!r} is not a unit of a {what} ({known}); write it such as {example}")


def parse_rate(text: str) -> float:
    """Return bit/s. `1gbit`, `1.5Gbit/s`, `125MB/s`, `100MiB/s`."""
    value, unit = split(text, "rate", "100mbit or 12.5MB/s")
    factor = _RATE_BYTES.get(unit) or _RATE.get(
        unit.lower() if unit.lower().endswith(("bit", "bit/s")) else ""
    )
    if factor is None:
        raise _refuse(text, unit, "rate", "bit, kbit, mbit, gbit, MB/s, MiB/s", "100mbit or 12.5MB/s")
    return float(value * factor)


def parse_size(text: str) -> int:
    """Return bytes. `50MiB`, `64KiB`, `1.5MB`, `4096B`, `0`. MB is 10^6, MiB 2^20."""
    value, unit = split(text, "size", "50MiB or 50MB")
    if not unit and value == 0:
        return 0
    factor = _SIZE.get(unit)
    if factor is None:
        raise _refuse(text, unit, "size", "B, KB, MB, GB of 1000s; KiB, MiB, GiB of 1024s", "50MiB or 50MB")
    size = value * factor
    if size != size.to_integral_value():
        raise UnitError(f"{text!r} is {size} bytes; a size is a whole number of bytes")
    return int(size)


def parse_time(text: str) -> float:
    """Return seconds. `200ms`, `1.5s`, `80us`, `2min`, `0`."""
    value, unit = split(text, "time", "200ms or 1.5s")
    if not unit and value == 0:
        return 0.0
    factor = _TIME.get(unit)
    if factor is None:
        raise _refuse(text, unit, "time", "s, ms, us, ns, min", "200ms or 1.5s")
    return float(value * Decimal(factor))


def parse_probability(text: str) -> float:
    """Return a fraction 0 to 1. `0.1%`, `100%`, `0`. Any other bare number is refused."""
    value, unit = split(text, "probability", "0.1%")
    if unit != "%" and (unit or value != 0):
        problem = f"{unit!r} is not a unit of a probability" if unit else "it may be a fraction or percent"
        raise UnitError(f"{text!r}: {problem}; write it in percent, such as 0.1%")
    value /= 100
    if not 0 <= value <= 1:
        raise UnitError(f"{text!r} is out of range; a probability lies between 0% and 100%")
    return float(value)


def parse_count(text: str) -> int:
    """Return a whole number."""
    match = _WHOLE.match(text)
    if not match:
        raise UnitError(f"{text!r} is not a whole number; write it such as 4")
    return int(match[1])


def _scaled(value: float, steps: tuple[tuple[float, str], ...]) -> str:
    """Return the value in the largest unit that leaves it at 1 or more, exact to 12 digits.

    steps: factors with their units, falling. Zero has the first unit that is 1.
    """
    value = float(f"{value:.12g}")  # first, or 999.9999999999999 would stay in its unit as 1000
    if value == 0:
        return f"0{next(unit for factor, unit in steps if factor == 1)}"
    for factor, unit in steps:
        if abs(value) >= factor:
            return f"{value / factor:.12g}{unit}"
    factor, unit = steps[-1]
    return f"{value / factor:.12g}{unit}"


def format_rate(rate_bps: float) -> str:
    """Return a rate as `parse_rate` reads it."""
    return _scaled(rate_bps, ((1e9, "gbit"), (1e6, "mbit"), (1e3, "kbit"), (1, "bit")))


def format_size(size_bytes: int) -> str:
    """Return a size as `parse_size` reads it, in the unit that makes it shortest."""
    if size_bytes == 0:
        return "0B"
    texts = [f"{size_bytes}B"]
    for unit in ("KiB", "MiB", "GiB", "KB", "MB", "GB"):
        value = Decimal(size_bytes) / _SIZE[unit]
        text = f"{value.normalize():f}{unit}"
        if value >= 1 and len(text) <= min(map(len, texts)) + 1 and "." not in text:
            texts.append(text)
    return min(texts, key=lambda text: (len(text), texts.index(text)))


def format_time(time_s: float) -> str:
    """Return a time as `parse_time` reads it."""
    return _scaled(time_s, ((1, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")))


def format_probability(fraction: float) -> str:
    """Return a probability in percent, as `parse_probability` reads it."""
    return f"{fraction * 100:.12g}%"


def human_rate(rate_bps: float | None) -> str:
    """Return a rate for reading: three or four digits, `Mbit/s`. Not for parsing."""
    if rate_bps is None or not math.isfinite(rate_bps):
        return "-"
    return _human(rate_bps, 1000, ("bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"))


def human_size(size_bytes: float | None) -> str:
    """Return a size for reading, in 1024s. Not for parsing."""
    if size_bytes is None or not math.isfinite(size_bytes):
        return "-"
    return _human(size_bytes, 1024, ("B", "KiB", "MiB", "GiB", "TiB"))


def _human(value: float, base: int, names: tuple[str, ...]) -> str:
    step = 0
    while abs(value) >= base and step < len(names) - 1:
        value /= base
        step += 1
    return f"{value:.4g} {names[step]}"
