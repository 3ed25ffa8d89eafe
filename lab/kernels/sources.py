"""Where a kernel's source is, what exactly it is, and a copy of it to build in.

A user's tree is read and never written to: not built in, not patched, its git
index not refreshed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import stat
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import command
from lab.errors import CommandError, PreconditionError, UserError
from lab.kernels.recipe import DEFAULT_HZ

STANDARD_NAMES = ("6.12", "6.1")
"""Kernels that need no source to be named: Debian packages theirs."""

DEBIAN_FOLDER = Path("/usr/src")

_VERSION = re.compile(r"^VERSION = \d+$.*^PATCHLEVEL = \d+$", re.MULTILINE | re.DOTALL)
_PRODUCT_SUFFIXES = (".o", ".a", ".ko", ".mod", ".mod.c", ".order", ".symvers", ".cmd")
_PRODUCT_FOLDER = re.compile(r"(arch/\w+/)?include/(config|generated)\Z")


@dataclass(frozen=True)
class Source:
    """A kernel's source, a folder or a tarball; `path` is absolute."""

    path: Path

    @property
    def is_tree(self) -> bool:
        """Whether it is a folder."""
        return self.path.is_dir()


def debian_tarball(name: str) -> Path:
    """Return where Debian's package linux-source-NAME puts the source."""
    return DEBIAN_FOLDER / f"linux-source-{name}.tar.xz"


def build_command(name: str, hz: int = DEFAULT_HZ, source: str | None = None) -> str:
    """Return the command that builds a kernel, as a user would type it."""
    words = f"wanlab kernel build {name}"
    if source is not None and source != str(debian_tarball(name)):
        words += f" --source {shlex.quote(source)}"
    elif source is None and name not in STANDARD_NAMES:
        words += " --source TREE-or-TARBALL"
    return words if hz == DEFAULT_HZ else f"{words} --hz {hz}"


def locate(name: str, given: Path | None) -> Source:
    """Return the source to build `name` from.

    Raises UserError where the one given cannot be it or where one must be given,
    PreconditionError where Debian's is not installed.
    """
    if given is None:
        if name not in STANDARD_NAMES:
            raise UserError(
                f"the lab has no source of its own for a kernel named {name} (it has for "
                f"{' and '.join(STANDARD_NAMES)}); say where yours is: {build_command(name)}"
            )
        tarball = debian_tarball(name)
        if not tarball.is_file():
            raise PreconditionError(
                f"{tarball} is not there; `apt-get install linux-source-{name}` puts it there, "
                "or give a kernel's tree or tarball with --source"
            )
        return Source(tarball)
    path = given.expanduser().absolute()
    if path.is_dir():
        path = path.resolve()
        require_kernel_tree(path, str(given))
    elif not path.is_file():
        raise UserError(f"there is no kernel source at {path}")
    return Source(path)


def require_kernel_tree(tree: Path, told: str) -> None:
    """Raise UserError unless `tree` is a Linux tree that knows UML; `told` is what the user called it."""
    try:
        is_kernel = bool(_VERSION.search((tree / "Makefile").read_text(errors="replace")))
    except OSError:
        is_kernel = False
    if not is_kernel:
        raise UserError(f"{told} is not a Linux source tree: it has no Makefile with VERSION and PATCHLEVEL")
    if not (tree / "arch/um/Makefile").is_file():
        raise UserError(
            f"{told} is a Linux source tree without arch/um, so it cannot give a user-mode kernel"
        )


def identity(source: Source, index: Path) -> str:
    """Return what the source is, as text: equal text, equal kernel.

    `sha256:` of a tarball, `git:` commit of a clean checkout, `git:` commit `+`
    hash of what differs from it, or `tree:` hash of all files. `index` is a file
    that remembers the hashes of tarballs by size and times.
    """
    if not source.is_tree:
        return f"sha256:{_remembered_sha256(source.path, index)}"
    commit = _git_commit(source.path)
    if commit is None:
        return f"tree:{content_hash(source.path, _walk(source.path))}"
    # Each entry is two letters of state, a space and a path.
    status = _git_names(source.path, "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames")
    changed = [entry[3:] for entry in status]
    return f"git:{commit}" + (f"+{content_hash(source.path, changed)[:16]}" if changed else "")


def files(tree: Path) -> list[str]:
    """Return the paths, relative to it, of what belongs to a tree: not .git, not what a build left there."""
    if _git_commit(tree) is None:
        return list(_walk(tree))
    names = _git_names(tree, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return [name for name in names if _is_file_or_link(tree / name)]


def content_hash(root: Path, names: Iterable[str]) -> str:
    """Return the SHA-256, hex, of names, kinds and contents of files; one that is gone counts as gone."""
    total = hashlib.sha256()
    for name in sorted(set(names)):
        path = root / name
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            told = "gone"
        else:
            if stat.S_ISLNK(mode):
                told = f"link {path.readlink()}"
            elif stat.S_ISREG(mode):
                told = f"{'program' if mode & 0o100 else 'file'} {_sha256(path)}"
            else:
                told = "other"
        total.update(os.fsencode(f"{name}\0{told}\0"))
    return total.hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remembered_sha256(path: Path, index: Path) -> str:
    """Return a file's hash, from the index where size and times are still those of the last look."""
    facts = path.stat()
    stamp = [facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns]
    known = _read_index(index)
    entry = known.get(str(path), {})
    if entry.get("stamp") == stamp:
        return str(entry["sha256"])
    found = _sha256(path)
    write_aside(index, json.dumps({**known, str(path): {"stamp": stamp, "sha256": found}}, indent=1))
    return found


def _read_index(index: Path) -> dict[str, dict[str, Any]]:
    """Return what the index remembers; nothing where it is not there or not to be read."""
    try:
        known = json.loads(index.read_text())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def write_aside(path: Path, text: str) -> None:
    """Write a small file so that a reader sees the old or the new one, never a part."""
    handle, aside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    Path(aside).replace(path)


def _walk(tree: Path) -> Iterable[str]:
    """Yield the files of a tree that is no git checkout, but for what builds leave in one.

    Hidden files are left out: those of a kernel's source decide nothing, and a
    build's command files, old options and temporary files are such.
    """
    for at, folders, names in os.walk(tree):
        folder = Path(at).relative_to(tree)
        links = [name for name in folders if (tree / folder / name).is_symlink()]
        folders[:] = [
            name
            for name in folders
            if name not in links
            and not name.startswith(".")
            and not _PRODUCT_FOLDER.match(str(folder / name))
        ]
        for name in names + links:
            if not name.startswith(".") and not name.endswith(_PRODUCT_SUFFIXES):
                yield str(folder / name)


def _git_commit(tree: Path) -> str | None:
    """Return the commit that is checked out, or None where `tree` is not the top of a git checkout."""
    try:
        top = _git(tree, "rev-parse", "--show-toplevel").strip()
        commit = _git(tree, "rev-parse", "--verify", "HEAD").strip()
    except (CommandError, PreconditionError):
        return None
    return commit if Path(top).resolve() == tree.resolve() else None


def _git_names(tree: Path, *words: str) -> list[str]:
    return [name for name in _git(tree, *words).split("\0") if name]


def _git(tree: Path, *words: str) -> str:
    """Run git on a user's tree: none of the caller's git variables, nothing written, its index neither."""
    argv = ["env", "-u", "GIT_DIR", "-u", "GIT_WORK_TREE", "-u", "GIT_INDEX_FILE"]
    argv += ["git", "--no-optional-locks", "-C", str(tree), *words]
    return command.run(argv, timeout_s=300, env={"LC_ALL": "C"})


def _is_file_or_link(path: Path) -> bool:
    return path.is_symlink() or path.is_file()
