"""Building one kernel: check, copy, patch, configure, compile, and put it into the cache.

Not here: what is built (`recipe`, `sources`) and where it stays (`cache`).
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lab import clock, command
from lab.errors import EngineError, LabError, PreconditionError, UserError
from lab.kernels import cache, sources
from lab.kernels.cache import KernelRecord
from lab.kernels.recipe import (
    DEFAULT_HZ,
    OWN_KCONFIGS,
    Recipe,
    check_config,
    check_hz,
    check_name,
    load_recipe,
    own_options,
    with_hz,
)
from lab.kernels.sources import Source
from lab.kernels.steps import Steps

Progress = Callable[[str, float], None]
"""Told the phase and the fraction of the whole build that is done, 0 to 1."""

_TOOL_PACKAGES = {
    "gcc": "gcc",
    "make": "make",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "patch": "patch",
    "xz": "xz-utils",
    "tar": "tar",
}
_NEEDED_BYTES = 3 * 2**30
_COMPILE_LIMIT_S = 6 * 3600.0

_OBJECTS = 780
"""Objects that gcc compiles: 742 in Linux 6.1, 773 in 6.12."""
_OBJECT_LINE = re.compile(rb"^  CC  ", re.MULTILINE)
_CONFIGURE_FROM, _COMPILE_FROM, _COMPILE_TO = 0.06, 0.08, 0.99


def build_kernel(
    name: str,
    *,
    source: Path | None = None,
    hz: int = DEFAULT_HZ,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> KernelRecord:
    """Build a kernel for the virtual engine, or return it at once where it was built already.

    name: `6.12`, `6.1`, or any name for a `source` of one's own, a tree (never
    written to) or a tarball. hz: 100, 250 or 1000. jobs: compilers side by side,
    by default one for each CPU that this process may use. Takes 2 to 10 minutes.

    Raises UserError for arguments or a source that cannot give such a kernel,
    PreconditionError for what the machine lacks, EngineError where a step of the
    build failed; its message ends with what the tool said.
    """
    check_name(name)
    check_hz(hz)
    if jobs is not None and jobs < 1:
        raise UserError(f"a build takes 1 job or more, not {jobs}")
    _require_x86_64()
    recipe = load_recipe(hz)
    try:
        origin = sources.locate(name, source)
    except PreconditionError:
        built = cache.current(name, hz)
        if built is None:
            raise
        return built
    _require_tools()
    cache.make_kernels_folder()
    tell = progress or _tell_nobody
    if origin.is_tree:
        tell("reading the source", 0.0)
    job = _Job(name, origin, _identity(origin), recipe, _compiler())
    if (built := cache.entry(job.key)) is not None:
        return built
    with cache.locked(job.key, lambda: tell("waiting for another build of the same kernel", 0.0)):
        if (built := cache.entry(job.key)) is not None:
            return built
        cache.remove_abandoned(job.key)
        _require_space(cache.kernels_folder())
        return _build(job, jobs or len(os.sched_getaffinity(0)), tell)


@dataclass(frozen=True)
class _Job:
    """What is built from what."""

    name: str
    source: Source
    source_hash: str
    recipe: Recipe
    compiler: str

    @property
    def key(self) -> str:
        return cache.key(self.name, self.recipe.hash, self.source_hash, self.compiler)


def _identity(origin: Source) -> str:
    try:
        return sources.identity(origin, cache.kernels_folder() / "sources.json")
    except OSError as unreadable:
        raise UserError(f"the kernel source {origin.path} cannot be read: {unreadable}") from unreadable


def _tell_nobody(_phase: str, _fraction: float) -> None:
    pass


def _build(job: _Job, jobs: int, tell: Progress) -> KernelRecord:
    """Build in a folder that is gone afterwards; of a failed build the log stays."""
    work = cache.new_work_folder(job.key)
    finished = work / "finished"
    log, kept_log = finished / "build.log", cache.failed_log(job.key)
    try:
        finished.mkdir()
        steps = Steps(log, kept_log)
        tell("unpacking the source", 0.0)
        tree = _copy_of(job.source, work, steps)
        if _identity(job.source) != job.source_hash:
            raise UserError(f"{job.source.path} changed while it was copied; build again")
        steps.run(["make", "ARCH=um", "mrproper"], "cleaning the copy of the source failed", cwd=tree)
        _apply_patches(job, tree, work, steps)
        tell("configuring", _CONFIGURE_FROM)
        left_out = _configure(job.recipe, tree, work, steps)
        _compile(job.name, tree, jobs, steps, tell)
        record = cache.publish(_collect(job, left_out, tree, finished), job.key)
    except (LabError, OSError) as failed:
        if log.exists():
            log.replace(kept_log)
        if isinstance(failed, OSError):
            raise EngineError(f"kernel {job.name} could not be built: {failed}") from failed
        raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    tell("built", 1.0)
    return record


def _copy_of(origin: Source, work: Path, steps: Steps) -> Path:
    """Return a tree of our own, unpacked or copied into `work`."""
    place = work / "source"
    place.mkdir()
    if origin.is_tree:
        names = work / "files"
        names.write_bytes(b"".join(os.fsencode(f"{name}\0") for name in sources.files(origin.path)))
        copy = ["xargs", "-0", "-a", str(names), "cp", "--no-dereference", "--reflink=auto", "--parents"]
        steps.run([*copy, "-t", str(place), "--"], f"copying {origin.path} failed", cwd=origin.path)
        steps.run(["chmod", "-R", "u+w", str(place)], "making the copy writable failed")
        return place
    try:
        tar = ["tar", "-x", "--no-same-owner", "-f", str(origin.path), "-C", str(place)]
        steps.run(tar, "unpacking failed")
    except EngineError as failed:
        raise UserError(f"{origin.path} does not unpack: {failed}") from failed
    tops = list(place.iterdir())
    if len(tops) != 1 or not tops[0].is_dir():
        raise UserError(f"{origin.path} is not a kernel's tarball: it does not hold exactly one folder")
    sources.require_kernel_tree(tops[0], str(origin.path))
    return tops[0]


def _apply_patches(job: _Job, tree: Path, work: Path, steps: Steps) -> None:
    """Apply the lab's patches, where the tree does not have them already, and set HZ."""
    for name, text in job.recipe.patches:
        file = work / name
        file.write_text(text)
        patch = ["patch", "-p1", "--no-backup-if-mismatch", "-i", str(file)]
        try:
            steps.run([*patch, "--forward", "--dry-run"], "it does not fit", cwd=tree)
        except EngineError as failed:
            if _has_patch(patch, tree, steps):
                continue
            raise UserError(
                f"the lab's patch {name} does not apply to {job.source.path}: {failed}"
            ) from failed
        steps.run([*patch, "--forward"], f"applying {name} failed", cwd=tree)
    kconfig = tree / "arch/um/Kconfig"
    kconfig.write_text(with_hz(kconfig.read_text(), job.recipe.hz))


def _has_patch(patch: list[str], tree: Path, steps: Steps) -> bool:
    try:
        steps.run([*patch, "--reverse", "--force", "--dry-run"], "it is not there either", cwd=tree)
    except EngineError:
        return False
    return True


def _configure(recipe: Recipe, tree: Path, work: Path, steps: Steps) -> tuple[str, ...]:
    """Configure; return the optional options that this tree does not have."""
    options = work / "options"
    there = [name for name in OWN_KCONFIGS if (tree / name).exists()]
    kconfigs = {name: (tree / name).read_text(errors="replace") for name in there}
    options.write_text(recipe.options_text + own_options(kconfigs, recipe.options_text))
    steps.run(
        ["make", "ARCH=um", f"KCONFIG_ALLCONFIG={options}", "allnoconfig"], "configuring failed", cwd=tree
    )
    return check_config(recipe, (tree / ".config").read_text())


def _compile(name: str, tree: Path, jobs: int, steps: Steps, tell: Progress) -> None:
    compiled = 0

    def watch(written: bytes) -> None:
        nonlocal compiled
        if found := len(_OBJECT_LINE.findall(written)):
            compiled += found
            done = _COMPILE_FROM + (_COMPILE_TO - _COMPILE_FROM) * compiled / _OBJECTS
            tell("compiling", min(done, _COMPILE_TO))

    tell("compiling", _COMPILE_FROM)
    make = ["make", "ARCH=um", f"-j{jobs}", "linux"]
    steps.run(make, f"kernel {name} did not compile", cwd=tree, limit_s=_COMPILE_LIMIT_S, watch=watch)


def _collect(job: _Job, left_out: tuple[str, ...], tree: Path, finished: Path) -> KernelRecord:
    """Copy what stays of a build into `finished`; return its record."""
    linux, config = finished / "linux", finished / "config"
    shutil.copyfile(tree / "linux", linux)
    linux.chmod(0o755)
    shutil.copyfile(tree / ".config", config)
    return KernelRecord(
        name=job.name,
        release=(tree / "include/config/kernel.release").read_text().strip(),
        recipe_hash=job.recipe.hash,
        source=str(job.source.path),
        source_hash=job.source_hash,
        hz=job.recipe.hz,
        config_hash=hashlib.sha256(config.read_bytes()).hexdigest(),
        compiler=job.compiler,
        built_at=datetime.fromtimestamp(clock.wall_s(), UTC).isoformat(timespec="milliseconds"),
        options_left_out=left_out,
        path=linux,
    )


def _require_x86_64() -> None:
    machine = platform.machine()
    if machine != "x86_64":
        raise PreconditionError(
            f"the lab's kernels run on x86-64 only and this machine is {machine}; "
            "use the realtime or the remote engine"
        )


def _require_tools() -> None:
    missing = [tool for tool in _TOOL_PACKAGES if shutil.which(tool) is None]
    if missing:
        packages = " ".join(_TOOL_PACKAGES[tool] for tool in missing)
        raise PreconditionError(
            f"building a kernel needs {', '.join(missing)}; `apt-get install {packages}` installs them"
        )


def _require_space(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < _NEEDED_BYTES:
        raise PreconditionError(
            f"building a kernel needs {_NEEDED_BYTES / 2**30:.0f} GiB in {folder} and {free / 2**30:.1f} GiB "
            "are free; make room, or set WANLAB_CACHE to a folder elsewhere"
        )


def _compiler() -> str:
    """Return what the compiler calls itself: the first line of `gcc --version`."""
    return command.run(["gcc", "--version"], timeout_s=30, env={"LC_ALL": "C"}).partition("\n")[0]
