"""Reads sysctl.d files as `sysctl --system` of procps does: lines into keys and values. Knows no key.

`key = value` with or without spaces and tabs, comments in lines of their own
after `#` or `;`, a leading `-` for a value that may be refused, dots or slashes
in keys, Windows line ends. Source: sysctl.conf(5); sysctl of procps-ng 4.0.2,
tried with --dry-run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lab.errors import UserError


@dataclass(frozen=True)
class Line:
    """One setting where it stands. optional: a refused value is no error."""

    file: str
    number: int
    key: str
    value: str
    optional: bool = False

    @property
    def place(self) -> str:
        """File and line, as compilers write them."""
        return f"{self.file}:{self.number}"


@dataclass(frozen=True)
class File:
    """The settings of a file in its order, and every line that does not read."""

    lines: tuple[Line, ...]
    faults: tuple[str, ...]


def read(path: Path) -> File:
    """Return what a file holds. Raises UserError where it cannot be read."""
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as fault:
        raise UserError(f"{path}: is not UTF-8 text (byte {fault.start}); save it as plain text") from fault
    except OSError as fault:
        raise UserError(f"{path}: cannot be read: {fault.strerror}; name a sysctl.d file") from fault
    return parse(text, str(path))


def parse(text: str, file: str) -> File:
    """Return the settings of a text."""
    lines, faults = [], []
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip(" \t\r\f\v")
        if not line or line[0] in "#;":
            continue
        place = f"{file}:{number}"
        if line[0] == "\ufeff":
            faults.append(
                f"{place}: begins with a byte-order mark, which sysctl reads as part of the key; remove it"
            )
            continue
        optional = line[0] == "-"
        line = line[1:] if optional else line
        key, equals, value = line.partition("=")
        value = value.strip()
        if not equals:
            if optional and key.strip():
                continue  # excludes a key from patterns elsewhere: nothing is set
            faults.append(
                f"{place}: {line!r} has no '='; write KEY = VALUE, such as net.ipv4.tcp_rmem = 4096 131072"
                " 6291456"
            )
        elif not key.strip():
            faults.append(f"{place}: {line!r} has no key before '='; write KEY = VALUE")
        elif optional and key[0] in " \t":
            faults.append(
                f"{place}: '-{key}' has a space after '-', which sysctl takes for a part of the key; remove"
                " it"
            )
        elif any(character in key.strip() for character in " \t"):
            faults.append(f"{place}: {key.strip()!r} has a space in it and is no key; write KEY = VALUE")
        elif not value:
            faults.append(f"{place}: {key.strip()} has no value after '='; write one or take the line out")
        else:
            lines.append(Line(file, number, normal(key.strip()), value, optional))
    return File(tuple(lines), tuple(faults))


def normal(key: str) -> str:
    """Return a key with dots between its parts: the separator that comes first decides, as in sysctl.d(5)."""
    first = next((character for character in key if character in "./"), ".")
    swapped = key.translate(str.maketrans("./", "/.")) if first == "/" else key
    return swapped.strip(".")


def last_ones(lines: Iterable[Line]) -> tuple[dict[str, Line], list[str]]:
    """Return the line that holds for each key, and a note for each that another one overrides."""
    held: dict[str, Line] = {}
    notes = []
    for line in lines:
        before = held.pop(line.key, None)
        if before is not None:
            value = " ".join(line.value.split())
            notes.append(
                f"{line.place}: sets {line.key} again, after {before.place}; the last one holds: {value}"
            )
        held[line.key] = line
    return held, notes
