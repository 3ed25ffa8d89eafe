"""The kernels that were built: one folder each in the user's cache, their records, and the locks.

    kernels/<name>-<hash12>/    linux, config, kernel.json, build.log
    kernels/failed-<name>-<hash12>.log
    kernels/.build.<key>.*      a build on its way, removed when its builder is gone
    kernels/.lock.<key>         held by the builder of that key

A folder of the first kind appears by one rename, so it is whole or not there.
Looking a kernel up reads records only: neither sources nor a compiler.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from lab.errors import PreconditionError
from lab.kernels.recipe import address, load_recipe, parse_address
from lab.kernels.sources import build_command

_RECORD = "kernel.json"
_BUILDING, _LOCK = ".build.", ".lock."


@dataclass(frozen=True)
class KernelRecord:
    """A kernel that was built, and from what.

    release: as `uname -r` says it. source: where the source was. source_hash:
    what it was, see `sources.identity`. hz: timer interrupts a second.
    config_hash: SHA-256 of its `.config`. compiler: first line of `gcc --version`.
    built_at: UTC, ISO 8601. options_left_out: optional options that the tree does
    not have. path: the program that is the kernel. stale: built by another
    recipe than the lab's present one.
    """

    name: str
    release: str
    recipe_hash: str
    source: str
    source_hash: str
    hz: int
    config_hash: str
    compiler: str
    built_at: str
    options_left_out: tuple[str, ...]
    path: Path
    stale: bool = False

    @property
    def address(self) -> str:
        """What a scenario calls it: the name, and `@hz` where that is not the default."""
        return address(self.name, self.hz)


_STORED = [field.name for field in fields(KernelRecord) if field.name not in ("path", "stale")]


def cache_root() -> Path:
    """Return the user's cache folder: $WANLAB_CACHE, else wanlab in $XDG_CACHE_HOME or ~/.cache."""
    if chosen := os.environ.get("WANLAB_CACHE"):
        return Path(chosen).expanduser().absolute()
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "wanlab"


def kernels_folder() -> Path:
    """Return the folder of the kernels; it need not be there."""
    return cache_root() / "kernels"


def make_kernels_folder() -> Path:
    """Return the folder of the kernels, made. Raises PreconditionError where none can be built in it."""
    folder = kernels_folder()
    if re.search(r"[\s:]", str(folder)):
        raise PreconditionError(
            f"the kernel cache {folder} has a space or a colon in its path, which a kernel's Makefile "
            "refuses; set WANLAB_CACHE to a folder without"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError("not writable")
    except OSError as refused:
        raise PreconditionError(
            f"the kernel cache {folder} cannot be written ({refused.strerror or refused}); "
            "set WANLAB_CACHE to a folder that can"
        ) from refused
    return folder


def key(name: str, recipe_hash: str, source_hash: str, compiler: str) -> str:
    """Return the name of a kernel's folder: equal for equal inputs only."""
    told = json.dumps([name, recipe_hash, source_hash, compiler])
    return f"{name}-{hashlib.sha256(told.encode()).hexdigest()[:12]}"


def failed_log(entry_key: str) -> Path:
    """Return where the log of a failed build stays."""
    return kernels_folder() / f"failed-{entry_key}.log"


def list_kernels() -> list[KernelRecord]:
    """Return every kernel in the cache, stale ones too, by name, HZ and then age, newest first."""
    try:
        folders = list(kernels_folder().iterdir())
    except OSError:
        return []
    records = [record for folder in folders if (record := _read(folder)) is not None]
    records.sort(key=lambda record: record.built_at, reverse=True)
    return sorted(records, key=lambda record: (record.name, record.hz))


def find_kernel(name: str) -> KernelRecord:
    """Return the kernel at an address, `6.12` or `6.12@1000`; of several the newest.

    Raises UserError for what is no address, PreconditionError with the command
    that builds it where there is none, or none that the present recipe built.
    """
    bare, hz = parse_address(name)
    found = _of(bare, hz)
    for record in found:
        if not record.stale:
            return record
    if found:
        rebuild = build_command(bare, hz, found[0].source)
        raise PreconditionError(
            f"kernel {name} was built by another recipe than the present one; `{rebuild}` rebuilds it"
        )
    raise PreconditionError(f"kernel {name} is not built yet; `{build_command(bare, hz)}` builds it")


def current(name: str, hz: int) -> KernelRecord | None:
    """Return the newest kernel of that name and HZ that the present recipe built, or None."""
    return next((record for record in _of(name, hz) if not record.stale), None)


def entry(entry_key: str) -> KernelRecord | None:
    """Return the kernel in a folder of the cache, or None where there is no whole one."""
    return _read(kernels_folder() / entry_key)


def _of(name: str, hz: int) -> list[KernelRecord]:
    return [record for record in list_kernels() if (record.name, record.hz) == (name, hz)]


def _read(folder: Path) -> KernelRecord | None:
    """Return a folder's record; None for a folder that is none or is damaged."""
    if folder.name.startswith("."):
        return None
    linux = folder / "linux"
    try:
        stored: dict[str, Any] = json.loads((folder / _RECORD).read_text())
        known = {field: stored[field] for field in _STORED}
        hz, left_out = int(known.pop("hz")), tuple(known.pop("options_left_out"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not os.access(linux, os.X_OK):
        return None
    stale = load_recipe(hz).hash != known["recipe_hash"]
    return KernelRecord(**known, hz=hz, options_left_out=left_out, path=linux, stale=stale)


@contextmanager
def locked(entry_key: str, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of a key; where another process has it, call `on_wait` and wait for it."""
    with (kernels_folder() / f"{_LOCK}{entry_key}").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def new_work_folder(entry_key: str) -> Path:
    """Return a new folder to build in, on the file system of the cache. Hold the key's lock."""
    return Path(tempfile.mkdtemp(prefix=f"{_BUILDING}{entry_key}.", dir=kernels_folder()))


def remove_abandoned(held_key: str) -> None:
    """Remove the work folders whose builder is gone: those whose lock nobody holds, and `held_key`'s."""
    for folder in kernels_folder().glob(f"{_BUILDING}*"):
        entry_key = folder.name.removeprefix(_BUILDING).rpartition(".")[0]
        with (kernels_folder() / f"{_LOCK}{entry_key}").open("a") as file:
            if entry_key != held_key:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
            shutil.rmtree(folder, ignore_errors=True)


def publish(record: KernelRecord, entry_key: str) -> KernelRecord:
    """Write the record beside its kernel and rename their folder into place; return it as found there.

    Hold the key's lock. What stood there before was damaged, or it would have
    been used.
    """
    finished = record.path.parent
    stored = {name: value for name, value in asdict(record).items() if name in _STORED}
    (finished / _RECORD).write_text(json.dumps(stored, indent=1) + "\n")
    for file in finished.iterdir():
        _to_disk(file)
    place = kernels_folder() / entry_key
    if place.exists():
        place.rename(finished.parent / "damaged")
    finished.rename(place)
    _to_disk(place.parent)
    failed_log(entry_key).unlink(missing_ok=True)
    published = _read(place)
    assert published is not None
    return published


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
