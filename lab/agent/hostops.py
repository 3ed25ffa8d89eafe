"""What a host does for the controller: facts, changes that are put back, files, cleaning.

Not here: the connection (see `serve`), what is changed for a point, and the
load. Every operation takes this host and its arguments, and returns what JSON
can hold, or that and bytes.
"""

from __future__ import annotations

import os
import stat
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from lab.agent import facts, journal

MOST_FETCHED_BYTES = 2**20
"""Of a file in one answer: longer ones would hold up the others."""


class Blob(NamedTuple):
    """An answer with bytes behind it."""

    result: Any
    data: bytes


class Host:
    """This host: who asks, for how long without a word, and what is held for it.

    version: SHA-256 of the code that runs here, as it arrived.
    group: the process group that the watchdog ends, None for none.
    """

    def __init__(self, version: str, place: journal.Place = journal.HERE, group: int | None = None) -> None:
        self.version = version
        self.place = place
        self.lease_s: float | None = None
        self._group = group
        self._hold: journal.Hold | None = None
        self._turn = threading.Lock()
        self._closed = False

    def hold(self) -> journal.Hold:
        """Return the right to change this host, taken at the first call. Raises as `journal.Hold`."""
        with self._turn:
            if self._closed:
                raise journal.NotAppliedError("this connection is being closed")
            if self._hold is None:
                self._hold = journal.Hold(self.lease_s, self.place, self._group)
            elif not self._hold.watched:
                raise journal.NotAppliedError(
                    "the watchdog was ended by somebody, so nothing more is changed on this host"
                )
            return self._hold

    @property
    def work(self) -> Path:
        """A private folder for files of this run; gone with the connection."""
        return self.hold().work

    def renew(self) -> None:
        """Renew the lease: the controller is there."""
        hold = self._hold
        if hold is not None:
            hold.renew()

    def restore(self) -> list[str]:
        """Put all changes back and keep the right to make others; return what could not be put back.

        It stays in the notes: the controller may be gone before it is told.
        """
        hold = self._hold
        return [] if hold is None else hold.journal.restore(keep=True)

    def finish(self) -> list[str]:
        """Put all back and let nothing more be changed; return what could not be put back.

        Where there is such, it stays in the notes until `told`; else all is given up.
        """
        hold = self._hold
        if hold is None:
            return []
        hold.journal.end()
        return hold.journal.restore(keep=True) or self.close()

    def told(self) -> None:
        """Drop what could not be put back: the controller knows of it. All is given up then."""
        hold = self._hold
        if hold is not None:
            hold.journal.forget()
        self.close()

    def close(self) -> list[str]:
        """Put all back and give up the right; return what could not be put back and stays in the notes."""
        with self._turn:
            self._closed = True
            hold, self._hold = self._hold, None
            # another call waits until all is put back
            return [] if hold is None else hold.close(keep=True)


def hello(host: Host, args: dict[str, Any]) -> dict[str, Any]:
    """Say who is here. args: `lease_s`, how long the controller may be silent once something is held."""
    host.lease_s = args["lease_s"]
    return {"version": host.version, "python": sys.version.split()[0], "process": os.getpid()}


def gather(host: Host, args: dict[str, Any]) -> dict[str, Any]:
    """Return what is known of this host; args: see `facts.Questions`."""
    return facts.gather(facts.Questions(**args), host.place)


def hold(host: Host, _args: dict[str, Any]) -> None:
    """Take the right to change this host, before anything is changed."""
    host.hold()


def apply(host: Host, args: dict[str, Any]) -> list[str]:
    """Make changes in their order; return, for each, the old value of a sysctl or the words of a command.

    args: `steps`, each {"do": "sysctl", "name", "value"} or {"do": "run", "argv",
    "undo"}. Where one fails, those before it stay: `restore` puts them back.
    """
    notes = host.hold().journal
    words = []
    for step in args["steps"]:
        if step["do"] == "sysctl":
            words.append(notes.sysctl(step["name"], step["value"]))
        elif step["do"] == "run":
            words.append(notes.run(step["argv"], step["undo"]))
        else:
            raise journal.NotAppliedError(f"there is no step {step['do']!r}; there are sysctl and run")
    return words


def restore(host: Host, _args: dict[str, Any]) -> list[str]:
    """Put all changes back, the last first; return a sentence for all that could not be."""
    return host.restore()


def fetch(host: Host, args: dict[str, Any]) -> Blob:
    """Return a part of a file of the private folder. args: `name`, `offset`, bytes.

    The result is {"size"} of the whole file, bytes. Raises FileNotFoundError, PermissionError.
    """
    name = args["name"]
    if Path(name).name != name or name in ("", ".", ".."):
        raise PermissionError(f"{name!r} is not the name of a file in the private folder")
    file = os.open(host.work / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        known = os.fstat(file)
        if not stat.S_ISREG(known.st_mode):
            raise PermissionError(f"{name} is not a file")
        return Blob({"size": known.st_size}, os.pread(file, MOST_FETCHED_BYTES, args["offset"]))
    finally:
        os.close(file)


def clean(host: Host, args: dict[str, Any]) -> list[str]:
    """Put back what dead runs have left on this host, in all its namespaces. args: `dry_run`."""
    return journal.clean(host.place, dry_run=args["dry_run"])


def bye(host: Host, _args: dict[str, Any]) -> list[str]:
    """Put all back; return what could not be put back. Where there is such, `told` has to follow."""
    return host.finish()


def told(host: Host, _args: dict[str, Any]) -> None:
    """Drop what `bye` could not put back: the controller has its sentences."""
    host.told()


OPS: dict[str, Callable[[Host, dict[str, Any]], Any]] = {
    "hello": hello,
    "facts": gather,
    "hold": hold,
    "apply": apply,
    "restore": restore,
    "fetch": fetch,
    "clean": clean,
    "bye": bye,
    "told": told,
}
