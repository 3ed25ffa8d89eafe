"""Who may change a network namespace: a private folder for each, and a lock in it.

    /run/wanlab/                       0700, root's; memory, so gone after a reboot
      net-<inode of the namespace>/
        lock                           flock, held as long as something may be changed
        journal.jsonl                  see `notes`
        work-<random>/                 private files of the one who holds the lock

The lock goes with its descriptor: the watchdog has it as well, so nobody else
gets it before everything is put back, and a lock cannot outlive its holders.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path

from lab.agent.notes import NOTES, NotAppliedError, Place

LOCK = "lock"
_WORK = "work-"
_ATTEMPTS = 50


class Held(RuntimeError):
    """Somebody else may change this machine now."""


def acquire(place: Place) -> tuple[Path, int]:
    """Return the folder of this namespace, made where it is not there, and the descriptor of its lock.

    Raises Held where another has it, NotAppliedError where there is no private place.
    """
    root, folder = Path(place.root), place.folder()
    for _ in range(_ATTEMPTS):
        try:
            _make_private(root)
            _make_private(folder)
            return folder, take(folder)
        except FileNotFoundError:
            continue  # the one before us is just removing it
        except OSError as refused:
            where = refused.filename or root
            raise NotAppliedError(f"notes cannot be made in {where}: {refused.strerror}") from refused
    raise NotAppliedError(f"{folder} goes as fast as it is made")


def take(folder: Path) -> int:
    """Return a descriptor of the lock in a folder, locked. Raises Held, FileNotFoundError."""
    while True:
        file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as busy:
            holder = os.pread(file, 32, 0).decode(errors="replace").strip()
            os.close(file)
            raise Held(
                f"another run of wanlab (process {holder or 'unknown'}) may change this machine now;"
                " wait for its end, or end it"
            ) from busy
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file), (folder / LOCK).stat()):
                with contextlib.suppress(OSError):  # no room: it holds without its holder's number
                    os.ftruncate(file, 0)
                    os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
                return file
        os.close(file)  # the one before us has removed the file that we had opened


def taken(folder: Path) -> bool:
    """Return whether somebody holds the lock in a folder; nothing is made or changed."""
    try:
        file = os.open(folder / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False


def release(folder: Path, lock: int) -> None:
    """Remove the private files, and the folder unless there are notes in it; then give up the lock."""
    for work in works(folder):
        shutil.rmtree(work, ignore_errors=True)
    with contextlib.suppress(OSError):
        if not (folder / NOTES).exists():
            (folder / LOCK).unlink()
            folder.rmdir()
            folder.parent.rmdir()
    os.close(lock)


def make_work(folder: Path) -> Path:
    """Make a private folder of a name that nobody can guess."""
    return Path(tempfile.mkdtemp(prefix=_WORK, dir=folder))


def works(folder: Path) -> list[Path]:
    """Return the private folders there are."""
    return sorted(folder.glob(f"{_WORK}*"))


def _make_private(folder: Path) -> None:
    """Make a folder that is ours alone; NotAppliedError where one is there that is not."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    known = folder.lstat()
    if not stat.S_ISDIR(known.st_mode) or known.st_uid != os.geteuid() or known.st_mode & 0o077:
        raise NotAppliedError(f"{folder} is not a private folder of this user; remove it")
