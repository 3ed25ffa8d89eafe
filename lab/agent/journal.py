"""Changing a machine so that all is put back: whatever happens to the one who changes it.

    with journal.held() as notes:
        notes.sysctl("net.core.rmem_max", "67108864")
        notes.run(["tc", "qdisc", "add", ...], undo=["tc", "qdisc", "del", ...])

At the end of the block, after an error, after SIGKILL of this process: all is
as before. After SIGKILL of this process and of its watchdog: `clean`.
Standard library of Python 3.8: this is pushed to other hosts.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from lab.agent import lock, netns
from lab.agent.lock import Held
from lab.agent.notes import HERE, Journal, NotAppliedError, Place
from lab.agent.watchdog import Orders, Watchdog

__all__ = [
    "HERE",
    "Held",
    "Hold",
    "Journal",
    "Leftover",
    "NotAppliedError",
    "NotPutBack",
    "Place",
    "clean",
    "held",
    "state",
]


class Leftover(RuntimeError):
    """What a run that died has changed is not put back yet."""


class NotPutBack(RuntimeError):
    """Something could not be put back; a sentence each."""

    def __init__(self, left: Sequence[str]) -> None:
        self.left = list(left)
        super().__init__("\n".join(self.left))


class Hold:
    """The right to change this namespace: the lock, the notes, a private folder, and the watchdog.

    lease_s: how long without `renew` the watchdog waits before it ends `group`
    and puts everything back; None where only the end of this process counts.
    group: the process group that it ends then, and when this process has died;
    None for no group.
    Raises Held where somebody else has the right, Leftover where a run that died
    has left changes, NotAppliedError where there is no private place for notes.
    """

    def __init__(self, lease_s: float | None = None, place: Place = HERE, group: int | None = None) -> None:
        self._folder, self._lock = lock.acquire(place)
        self._work: Path | None = None
        try:
            self.journal = Journal(self._folder, place)
            if self.journal.lasting():
                raise Leftover(
                    "a run that died has left changes on this machine; put them back with `wanlab clean`"
                )
            self.journal.forget()  # notes of before a reboot, or of nothing
            self._watchdog = Watchdog(Orders(self._lock, str(self._folder), place, lease_s, group))
        except BaseException:
            lock.release(self._folder, self._lock)
            raise
        self.journal.kept_open = (self._watchdog.pipe,)

    @property
    def work(self) -> Path:
        """A private folder, 0700, of a name that nobody can guess; gone with the hold."""
        if self._work is None:
            self._work = lock.make_work(self._folder)
        return self._work

    @property
    def watched(self) -> bool:
        """Whether the watchdog is alive; without it, nothing more should be changed."""
        return self._watchdog.alive

    def renew(self) -> None:
        """Renew the lease."""
        self._watchdog.renew()

    def close(self, *, keep: bool = False) -> list[str]:
        """Put everything back, dismiss the watchdog, give up the lock.

        Returns a sentence for all that could not be put back. keep: it stays in
        the notes, for those who may have nobody to tell; `clean` then tells.
        """
        self.renew()
        self.journal.end()
        left = self.journal.restore(keep=keep)
        self._watchdog.dismiss()
        lock.release(self._folder, self._lock)
        return left


@contextlib.contextmanager
def held(lease_s: float | None = None, place: Place = HERE) -> Iterator[Journal]:
    """Hold this namespace for the block; whatever happens in it, all is put back at its end.

    Raises Held and Leftover as `Hold`, and NotPutBack where the block ended well
    and something could not be put back; after an error in the block the journal's
    `left` tells.
    """
    hold = Hold(lease_s, place)
    try:
        yield hold.journal
    except BaseException:
        hold.close()
        raise
    left = hold.close()
    if left:
        raise NotPutBack(left)


def state(place: Place = HERE) -> dict[str, bool]:
    """Return {"held", "leftover"} of this namespace; nothing is made or changed."""
    folder = place.folder()
    taken = lock.taken(folder)
    try:
        leftover = not taken and Journal(folder, place).lasting()
    except PermissionError:  # not root: it will be refused for that
        leftover = False
    return {"held": taken, "leftover": leftover}


def clean(place: Place = HERE, *, dry_run: bool = False) -> list[str]:
    """Put back what runs that died have left in any network namespace; return what was done, a sentence each.

    An empty list: there was nothing. dry_run: change nothing, say what would be
    done. What a living run holds is left alone. Raises PermissionError where
    there are notes that only root may read.
    """
    root = Path(place.root)
    if not root.is_dir():
        return []
    if not os.access(root, os.R_OK | os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "is root's", str(root))
    done: list[str] = []
    for folder in sorted(root.glob("net-*")):
        try:
            held_lock = lock.take(folder)
        except Held:
            done.append(f"left alone: {folder}, which belongs to a run that is under way")
            continue
        except FileNotFoundError:
            continue  # its run has just ended well
        try:
            done += _clean_one(folder, place, dry_run=dry_run)
        finally:
            if dry_run:
                os.close(held_lock)
            else:
                lock.release(folder, held_lock)
    return done


def _clean_one(folder: Path, place: Place, *, dry_run: bool) -> list[str]:
    notes = Journal(folder, place)
    pending = notes.pending()
    done: list[str] = []
    with _inside(folder, place) as there:
        if not (there and notes.lasting()):
            if pending:
                verb = "would drop" if dry_run else "dropped"
                done.append(
                    f"{verb}: notes of {len(pending)} changes in {folder}; the network namespace is gone,"
                    " or the machine was started anew since"
                )
            if not dry_run:
                notes.forget()
        elif dry_run:
            done += [f"would run: {one}" for one in pending]
        else:
            left = notes.restore()
            done += [f"ran: {one}" for one in pending]
            done += [f"not put back: {one}" for one in left]
    return done + [f"{'would remove' if dry_run else 'removed'}: {work}" for work in lock.works(folder)]


@contextlib.contextmanager
def _inside(folder: Path, place: Place) -> Iterator[bool]:
    """Run the block in the namespace that a folder is of; yield whether there is one any more."""
    inode = folder.name.partition("-")[2]
    if inode == str(place.inode()):
        yield True
        return
    file = _namespace(inode)
    if file is None:
        yield False
        return
    try:
        with netns.entered(file):
            yield True
    finally:
        os.close(file)


def _namespace(inode: str) -> int | None:
    """Return a descriptor of a network namespace that some process is in, or that `ip netns` keeps."""
    for pattern in ("proc/[0-9]*/ns/net", "run/netns/*"):
        for candidate in Path("/").glob(pattern):
            with contextlib.suppress(OSError):  # it ended meanwhile
                file = os.open(candidate, os.O_RDONLY | os.O_CLOEXEC)
                if str(os.fstat(file).st_ino) == inode:
                    return file
                os.close(file)
    return None
