"""What is changed on a machine: noted down before it is changed, put back from the notes.

Every entry is on the disk before its change is made. So whatever dies at
whatever instant, the notes name everything that may have been changed.
Not here: who may change things (see `lock`, `journal`), and who puts them back
when the one that changed them dies (see `watchdog`). Standard library of
Python 3.8: this is pushed to other hosts.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import socket
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOOLS_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
COMMAND_LIMIT_S = 60.0
"""That one command of a change may take."""

NOTES = "journal.jsonl"
"""The file: a header, then an entry a change, and marks that say what became of entries."""

_SYSCTL_FIELDS, _RUN_FIELDS = {"sysctl", "old", "new"}, {"run", "undo"}
"""Of an entry; a line with neither is none of ours."""

_SO_NETNS_COOKIE = 71
"""include/uapi/asm-generic/socket.h"""

_NAME = re.compile(r"net[./][A-Za-z0-9_][A-Za-z0-9_./@:-]*")
_GONE = re.compile(
    r"No such (?:file|process|device)|Cannot find|does not exist|handle of zero|Invalid (?:argument|handle)"
    r"|Cannot assign requested address|Address not found|n.t exist"
)
"""What tools say of something that is to be removed and is not there: iproute2 3 to 6, coreutils."""

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]")
_SPREADING = re.compile(r"net\.ipv4\.(ip_forward|conf\.(all|default)\.forwarding)")


class NotAppliedError(RuntimeError):
    """A change was not made; what it would have changed is as it was."""


class CutShort(NotAppliedError):
    """A command was ended in its middle: it may have changed something or not."""


@dataclass(frozen=True)
class Place:
    """Where the notes lie and where sysctls are. Tests have others."""

    root: str = "/run/wanlab"
    sysctls: str = "/proc/sys"
    namespace: str = "/proc/thread-self/ns/net"
    boot_id: str = "/proc/sys/kernel/random/boot_id"

    def inode(self) -> int:
        """Return the number of the network namespace that the thread is in."""
        return Path(self.namespace).stat().st_ino

    def folder(self) -> Path:
        """Return the folder of that namespace; it need not be there."""
        return Path(self.root, f"net-{self.inode()}")

    def identity(self) -> str:
        """Return what tells this namespace from all others, also from a later one with the same number.

        The boot, and the cookie of the namespace where the kernel has one (Linux 5.14).
        """
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as any_socket:
            try:
                cookie = any_socket.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8).hex()
            except OSError:
                cookie = ""
        return f"{Path(self.boot_id).read_text().strip()} {cookie}".strip()

    def sysctl(self, name: str) -> Path:
        """Return the file of a sysctl. Dots separate, or slashes where a part has dots, as sysctl(8) has it.

        Raises NotAppliedError for a name that is none, and for one outside of `net`.
        """
        parts = name.split("/" if "/" in name else ".")
        plain = _NAME.fullmatch(name) and parts[0] == "net" and all(parts)
        if not plain or {".", ".."} & set(parts):
            raise NotAppliedError(
                f"{name!r} is not the name of a sysctl of the network, such as net.core.rmem_max"
            )
        return Path(self.sysctls, *parts)


HERE = Place()


@dataclass
class _Entry:
    number: int
    fields: dict[str, Any]
    state: str = "noted"  # done; failed: a command that changed nothing; undoing; undone


class Journal:
    """The notes of one namespace, and the only hand that changes what they name.

    Methods may be called from several threads; one change is made at a time.
    """

    def __init__(self, folder: Path, place: Place = HERE) -> None:
        self.left: list[str] = []
        """What the last `restore` could not put back."""
        self.kept_open: tuple[int, ...] = ()
        """Descriptors that a command of a change holds while it runs: so the watchdog knows that it does."""
        self._file = folder / NOTES
        self._place = place
        self._turn = threading.RLock()
        self._ended = False
        self._changing: subprocess.Popen[str] | None = None

    # changing

    def sysctl(self, name: str, value: str) -> str:
        """Set a sysctl and read it back; return the value that it had, its words joined by one blank.

        Nothing is noted where it has the value already. Raises NotAppliedError
        where the kernel refuses it or reads it back otherwise.
        """
        with self._turn:
            path, wanted = self._place.sysctl(name), " ".join(value.split())
            self._check_open(name)
            if not wanted or _UNPRINTABLE.search(wanted):
                raise NotAppliedError(f"{name}: {value!r} is not a value; give printable words")
            if _SPREADING.fullmatch(name.replace("/", ".")):
                raise NotAppliedError(
                    f"{name} changes every interface and cannot be put back exactly;"
                    " set net.ipv4.conf.INTERFACE.forwarding of those that need it"
                )
            try:
                old = _read(path)
            except OSError as refused:
                raise NotAppliedError(
                    f"{name} cannot be read ({refused.strerror}), so it was not set"
                ) from refused
            if old == wanted:
                return old
            self._append({"sysctl": name, "old": old, "new": wanted}, f"{name} was not set")
            try:
                path.write_text(wanted)
                got = _read(path)
                if got != wanted:  # the notes tell our value from the old one, and this is neither
                    path.write_text(old)
            except OSError as refused:
                raise NotAppliedError(f"{name} cannot be {wanted} ({refused.strerror})") from refused
            if got != wanted:
                raise NotAppliedError(f"{name}: wanted {wanted}, reads back as {got}; it is {old} again")
            return old

    def run(self, argv: Sequence[str], undo: Sequence[str] | None) -> str:
        """Run a command that changes something; return its standard output.

        undo: the command that puts it back; it has to name exactly what `argv`
        makes, since after a sudden end it is run whether or not `argv` was. None
        where nothing is to be put back. A command that fails has changed nothing.
        Raises NotAppliedError with its words.
        """
        with self._turn:
            words = _argv(argv)
            text = " ".join(words)
            self._check_open(text)
            if undo is None:
                return self._command(words, changes=True)
            number = self._append({"run": words, "undo": _argv(undo)}, f"{text} was not run")
            try:
                output = self._command(words, changes=True)
            except CutShort:
                raise
            except NotAppliedError:
                self._mark(number, "failed")
                raise
            self._mark(number, "done")
            return output

    def _command(self, argv: list[str], *, changes: bool) -> str:
        """Run a command to its end. changes: `end` may cut it short."""
        text = " ".join(argv)
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                env={"PATH": TOOLS_PATH, "LC_ALL": "C"},
                cwd="/",
                pass_fds=self.kept_open,
            )
        except OSError as missing:
            raise NotAppliedError(f"{argv[0]} cannot be started: {missing.strerror}") from missing
        self._changing = process if changes else None
        try:
            output, words = process.communicate(timeout=COMMAND_LIMIT_S)
        except subprocess.TimeoutExpired as late:
            process.kill()
            process.communicate()
            raise CutShort(f"{text} did not end within {COMMAND_LIMIT_S:g} s") from late
        finally:
            self._changing = None
        if process.returncode < 0:
            raise CutShort(f"{text} was ended by signal {-process.returncode}")
        if process.returncode != 0:
            raise NotAppliedError(
                f"{text} ended with status {process.returncode}: {(words or output).strip()}"
            )
        return output

    def end(self) -> None:
        """Let nothing be changed any more; a command of a change that runs is cut short."""
        self._ended = True
        changing = self._changing
        if changing is not None:
            changing.kill()

    # putting back

    def restore(self, *, keep: bool = False) -> list[str]:
        """Put everything back, the last change first; return a sentence for all that could not be.

        Whatever fails, the rest is tried. The notes are gone then; `keep` leaves
        what failed in them, for those who have nobody to tell. May be called
        again, also after an end in its middle.
        """
        with self._turn:
            entries, torn = self._pending()
            left: dict[object, str] = {}
            for entry in reversed(entries):
                sentence = self._undo(entry)
                if sentence is None:
                    self._mark(entry.number, "undone")
                else:  # one sentence for all changes of one sysctl: the latest says what is there now
                    left.setdefault(entry.fields.get("sysctl", entry.number), sentence)
            self.left = [*left.values(), *torn]
            if not (keep and self.left):
                self.forget()
            return list(self.left)

    def _undo(self, entry: _Entry) -> str | None:
        """Put one entry back; return None, or why it could not be."""
        try:
            if "sysctl" in entry.fields:
                return self._undo_sysctl(entry.fields)
            undo, certain = entry.fields["undo"], entry.state == "done"
            self._mark(entry.number, "undoing")
            try:
                try:
                    self._command(undo, changes=False)
                except CutShort:  # somebody has ended it: once more, and now it may be undone already
                    certain = False
                    self._command(undo, changes=False)
            except NotAppliedError as failed:
                # Where it is not certain, it may never have been done, or have been undone already.
                if certain or not _GONE.search(str(failed)):
                    return f"{failed} (it was to undo {' '.join(entry.fields['run'])})"
        except Exception as error:  # whatever it is, the other entries are put back
            return f"{entry.fields} cannot be put back: {type(error).__name__}: {error}"
        return None

    def _undo_sysctl(self, fields: dict[str, Any]) -> str | None:
        name, old, new = fields["sysctl"], fields["old"], fields["new"]
        path = self._place.sysctl(name)
        try:
            now = _read(path)
            if now == old:
                return None
            if now != new:
                return (
                    f"{name} was set to {new} and is {now} now: somebody else changed it,"
                    f" so it is left; before, it was {old}"
                )
            path.write_text(old)
            now = _read(path)
        except FileNotFoundError:
            return None  # its interface is gone, and its values with it
        except OSError as refused:
            return f"{name} cannot be put back to {old}: {refused.strerror}"
        return None if now == old else f"{name} should be {old} again and reads back as {now}"

    # reading

    def pending(self) -> list[str]:
        """Return what `restore` would do, a command each, in its order."""
        found = []
        for entry in reversed(self._pending()[0]):
            if "sysctl" in entry.fields:
                found.append(f"sysctl -w '{entry.fields['sysctl']}={entry.fields['old']}'")
            else:
                found.append(" ".join(entry.fields["undo"]))
        return found

    def lasting(self) -> bool:
        """Return whether there are notes of changes of this very namespace, and since the last boot."""
        made_in, entries, torn = self._read()
        return bool(torn or any(_open(entry) for entry in entries)) and made_in == self._place.identity()

    def forget(self) -> None:
        """Remove the notes."""
        with contextlib.suppress(FileNotFoundError):
            self._file.unlink()

    def _pending(self) -> tuple[list[_Entry], list[str]]:
        """Return what is to be undone, and a sentence for every line that does not read."""
        _made_in, entries, torn = self._read()
        return [entry for entry in entries if _open(entry)], torn

    def _read(self) -> tuple[str, list[_Entry], list[str]]:
        """Return whose the notes are, all entries, a sentence for every line that does not read.

        A last line without an end was never acted upon.
        """
        try:
            lines = self._file.read_bytes().split(b"\n")[:-1]
        except FileNotFoundError:
            return "", [], []
        made_in = ""
        entries: list[_Entry] = []
        torn: list[str] = []
        for line in lines:
            try:
                fields = json.loads(line)
                if not isinstance(fields, dict):
                    raise ValueError
                if "made in" in fields:
                    made_in = fields["made in"]
                elif "mark" in fields:
                    entries[fields["entry"]].state = fields["mark"]
                elif fields.keys() >= _SYSCTL_FIELDS or fields.keys() >= _RUN_FIELDS:
                    entries.append(_Entry(len(entries), fields))
                else:
                    raise ValueError
            except (ValueError, LookupError, TypeError):
                torn.append(f"a line of {self._file} does not read: {line[:80]!r}")
        return made_in, entries, torn

    # writing

    def _check_open(self, what: str) -> None:
        if self._ended:
            raise NotAppliedError(f"{what}: not done, since all is being put back")

    def _append(self, fields: dict[str, Any], otherwise: str) -> int:
        """Note an entry, which is on the disk when this returns its number.

        Raises NotAppliedError where there is no room for it.
        """
        try:
            made_in, entries, _torn = self._read()
            if not made_in:
                self._line({"made in": self._place.identity(), "process": os.getpid()})
            self._line(fields)
        except OSError as full:
            raise NotAppliedError(
                f"{otherwise}: it cannot be noted down in {self._file.parent} ({full.strerror})"
            ) from full
        return len(entries)

    def _mark(self, number: int, state: str) -> None:
        """Note what became of an entry. Without room for it the entry counts as uncertain, which is safe."""
        with contextlib.suppress(OSError):
            self._line({"mark": state, "entry": number})

    def _line(self, fields: dict[str, Any]) -> None:
        """Append a whole line or nothing. Raises OSError."""
        line = (json.dumps(fields) + "\n").encode()
        file = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            # a line that a sudden end has cut off is written over
            end = os.pread(file, os.fstat(file).st_size, 0).rfind(b"\n") + 1
            try:
                os.ftruncate(file, end)
                if os.pwrite(file, line, end) != len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(file)
            except OSError:
                os.ftruncate(file, end)
                raise
        finally:
            os.close(file)


def _open(entry: _Entry) -> bool:
    return entry.state not in ("failed", "undone")


def _read(path: Path) -> str:
    """Return a sysctl's value, its words joined by one blank."""
    return " ".join(path.read_text(errors="surrogateescape").split())


def _argv(argv: Sequence[str]) -> list[str]:
    words = [] if isinstance(argv, str) else list(argv)
    if not words or not all(isinstance(word, str) and "\0" not in word for word in words):
        raise NotAppliedError(f"{argv!r} is not a command; give its words as a list")
    return words
