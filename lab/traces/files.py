"""Files of traces: lines by the block whatever is wrong with them, and files written whole or not at all.

What the lines mean is not known here.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.errors import UnitError, UserError

MOST_LINES = 10_000_000
"""Of a trace that is written."""
_BLOCK_BYTES = 2**20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Raise UserError where a file cannot be read, in the body too."""
    if "\0" in str(path):
        raise UserError(f"{str(path)!r}: is the name of no file; name a trace, such as traces/fading.csv")
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise UserError(f"{path}: is a folder; name a trace in it")
        if not stat.S_ISREG(mode):  # a pipe gives its text only once, a device for ever
            raise UserError(f"{path}: is no regular file; save the trace to one")
        yield
    except FileNotFoundError as fault:
        raise UserError(f"{path}: there is no such file; name a trace, such as traces/fading.csv") from fault
    except PermissionError as fault:
        raise UserError(
            f"{path}: may not be read by this user; change its mode, or copy it to a folder of yours"
        ) from fault
    except OSError as fault:
        raise UserError(f"{path}: cannot be read ({fault.strerror}); name another file") from fault


def digest(path: Path) -> str:
    """Return the first 8 hexadecimal digits of the SHA-256 of a file's bytes. Raises UserError."""
    with readable(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:8]


def blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield whole lines by the block, with the number of its first; so memory stays small.

    Each line has its end, the last one too. Raises UnitError where this is no text.
    """
    number, rest = 1, b""
    with path.open("rb") as file:
        if file.peek(3)[:3] == _BYTE_ORDER_MARK:
            file.seek(3)
        while data := file.read(_BLOCK_BYTES):
            if b"\0" in data:
                line = number + data.count(b"\n", 0, data.index(b"\0"))
                raise at(path, line, "is not text; a trace is plain text, in UTF-8: unpack or convert it")
            data = rest + data
            until = data.rfind(b"\n") + 1
            if until:
                yield number, data[:until]
            elif len(data) >= _BLOCK_BYTES:
                raise at(path, number, "is over a mebibyte long; a line of a trace has one or two numbers")
            number += data.count(b"\n")
            rest = data[until:]
    if rest:
        yield number, rest + b"\n"


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines of a file that say something."""
    for number, block in blocks(path):
        yield from lines_of(path, number, block)


def lines_of(path: Path, number: int, block: bytes) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines of a block that say something; `number` is its first line's.

    Raises UnitError at a line that is not UTF-8.
    """
    for line, data in enumerate(block[:-1].split(b"\n"), number):
        try:
            text = data.decode().partition("#")[0].strip()
        except UnicodeDecodeError as fault:
            raise at(
                path, line, "is not UTF-8; a trace is plain text, in UTF-8: unpack or convert it"
            ) from fault
        if text:
            yield line, text


def at(path: Path, line: int, what: str) -> UnitError:
    """Return the error of one line."""
    return UnitError(f"{path}, line {line}: {what}")


def short(text: str) -> str:
    """Return a text as a message quotes it, cut where it is long."""
    return repr(text if len(text) <= 40 else f"{text[:37]}...")


def check_lines(name: str, lines: int) -> None:
    """Raise UserError where a trace to be written would have too many lines."""
    if lines > MOST_LINES:
        raise UserError(
            f"{name}: would have over {MOST_LINES} lines; take a shorter duration, a longer step or a lower"
            " rate"
        )


def check_new(path: Path, *, force: bool) -> None:
    """Raise UserError where a file is not to be written, above all one that is there."""
    if path.is_dir():
        raise UserError(f"{path}: is a folder; name a file in it")
    if path.exists() and not path.is_file():  # a device, which a rename would replace
        raise UserError(f"{path}: is no regular file; name one")
    if path.exists() and not force:
        raise UserError(f"{path}: is there already; name another file, or --force to replace it")


def write(path: Path, texts: Iterable[str], *, force: bool = False) -> None:
    """Write a file, aside first, so that it is whole or not there. Raises UserError."""
    check_new(path, force=force)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with aside.open("w", encoding="utf-8") as file:
            file.writelines(texts)
        aside.replace(path)
    except OSError as fault:
        raise UserError(
            f"{path}: cannot be written ({fault.strerror}); name a file in a folder of yours"
        ) from fault
    finally:
        aside.unlink(missing_ok=True)
