"""A terminal handed over to somebody else, and put back: keys, sizes, signals.

Not here: who gets it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import struct
import sys
import termios
import tty
from collections.abc import Iterator
from io import FileIO

LEAVE_KEY, LEAVE_TIMES = b"\x1d", 3
"""Ctrl-], this often in a row, ends what answers no more."""
_SIZE = struct.Struct("=4H")
"""struct winsize: rows, columns and two that nobody fills in; see ioctl_tty(2)."""


class Console:
    """A kernel's terminal: what it says, the keys that it gets, and the size of its window.

    theirs: the descriptors that the kernel is to inherit; words: how it is told
    of them at its boot. Context manager: all is closed at its end.
    """

    def __init__(self) -> None:
        self.said, self._says = _pipe()
        self._gets, self.keys = _pipe()
        self._learns, self.size = _pipe()
        self._theirs = (self._gets, self._says, self._learns)
        self.theirs = tuple(one.fileno() for one in self._theirs)
        gets, says, learns = self.theirs
        self.words = (f"con0=fd:{gets},fd:{says}", f"con1=fd:{learns},null")

    def __enter__(self) -> Console:
        return self

    def __exit__(self, *_: object) -> None:
        self.handed_over()
        for one in (self.said, self.keys, self.size):
            one.close()

    def handed_over(self) -> None:
        """Let go of the kernel's side, which it has itself: so its end shows as the end of what it says."""
        for one in self._theirs:
            one.close()


def _pipe() -> tuple[FileIO, FileIO]:
    read, write = os.pipe()
    return FileIO(read, "r"), FileIO(write, "w")


def relay(console: Console, process: int, keys: int | None = None) -> bool:
    """Carry bytes between the console and the user until the kernel ends; True where the user left before."""
    handle, said = os.pidfd_open(process), console.said.fileno()
    leaving = 0
    try:
        poller = select.poll()
        for number in (said, handle, *(() if keys is None else (keys,))):
            poller.register(number, select.POLLIN)
        while True:
            ready = {number for number, _event in poller.poll()}
            if said in ready:
                data = os.read(said, 65536)
                _show(data)
                if not data:
                    return False
            elif handle in ready:
                return False  # and all that it said has been shown
            if keys in ready and keys is not None:
                typed = os.read(keys, 1024)
                leaving = leaving + 1 if typed == LEAVE_KEY else 0
                if not typed or leaving == LEAVE_TIMES:
                    return True
                with contextlib.suppress(BrokenPipeError):  # it has just ended, which the next look tells
                    os.write(console.keys.fileno(), typed)
    finally:
        os.close(handle)


def _show(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def size(terminal: int) -> tuple[int, int]:
    """Return rows and columns of a terminal; what a terminal has always had, where it does not say."""
    rows, columns, _x, _y = _SIZE.unpack(fcntl.ioctl(terminal, termios.TIOCGWINSZ, b"\0" * _SIZE.size))
    return rows or 24, columns or 80


@contextlib.contextmanager
def raw(terminal: int) -> Iterator[None]:
    """Have every key handed over as it is while the block runs; then put the terminal back."""
    before = termios.tcgetattr(terminal)
    try:
        tty.setraw(terminal, termios.TCSADRAIN)
        yield
    finally:
        with contextlib.suppress(termios.error):  # it may be gone
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)


@contextlib.contextmanager
def resized(console: Console) -> Iterator[None]:
    """Tell the kernel's side of every change of the window's size while the block runs."""

    def tell(*_: object) -> None:
        rows, columns = size(sys.stdin.fileno())
        with contextlib.suppress(BrokenPipeError):
            console.size.write(f"{rows} {columns}\n".encode())

    before = signal.signal(signal.SIGWINCH, tell)
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let a request to end pass through every clean-up while the block runs."""

    def leave(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
