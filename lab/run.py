"""All points of a run: side by side, one a CPU; what is done stays done.

A failed point is stored as a row with its reason and never takes the run down.
"""

from __future__ import annotations

import os
import queue
import random
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import captures, spec
from lab import point as point_module
from lab.engines.base import Engine
from lab.errors import EngineError, GuestError, MachineLimited, MeasurementError, PreconditionError
from lab.kernels import KernelRecord
from lab.scratch import Scratch
from lab.store import RunFolder
from lab.sweep import Point

Row = dict[str, Any]

MEMORY_SHARE = 0.8
"""Share of the free memory that the points of a run may have together."""


@dataclass(frozen=True)
class Event:
    """A point has ended. row: its row of the points table."""

    point: Point
    row: Row


def cpus() -> list[int]:
    """Return the CPUs that this process may use."""
    return sorted(os.sched_getaffinity(0))


def free_memory_bytes() -> int:
    """Return MemAvailable."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 2**62


class _MemoryBudget:
    """Lets points start while their memory fits; one alone always may."""

    def __init__(self, total_bytes: float) -> None:
        self._free = total_bytes
        self._holders = 0
        self._changed = threading.Condition()

    def take(self, amount: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._holders == 0 or self._free >= amount)
            self._holders += 1
            self._free -= amount

    def give(self, amount: int) -> None:
        with self._changed:
            self._holders -= 1
            self._free += amount
            self._changed.notify_all()


def missing(
    points: Sequence[Point],
    kernels: Mapping[str, KernelRecord],
    folder: RunFolder,
    captured: Sequence[str] = (),
) -> list[Point]:
    """Return the points that are not stored as done by the very kernel that would run them now.

    captured: interfaces whose packets have to be stored too.
    """
    stored = {row["point"]: row for row in _readable_rows(folder)}

    def done(point: Point) -> bool:
        row, kernel = stored.get(point.id), kernels[point.knobs["kernel"]]
        return (
            row is not None
            and row["status"] == "done"
            and (row["kernel_release"], row["kernel_recipe_hash"], row["kernel_config_hash"])
            == (kernel.release, kernel.recipe_hash, kernel.config_hash)
            and set(captured) <= set(folder.captures(point.id))
        )

    return [point for point in points if not done(point)]


def _readable_rows(folder: RunFolder) -> list[Row]:
    return folder.rows("points", list(folder.statuses()))


def in_order(points: Sequence[Point], engine: Engine) -> list[Point]:
    """Return the points in the order in which they run: by chance, where the hour of day may tell on them.

    Else a machine that grows slower in the course of a run would look like a knob's effect.
    """
    order = list(points)
    if not engine.timeless:
        random.Random(len(order)).shuffle(order)
    return order


def run(
    points: Sequence[Point],
    *,
    engine: Engine,
    kernels: Mapping[str, KernelRecord],
    folder: RunFolder,
    jobs: int,
    terms: point_module.Terms,
    notify: Callable[[Event], None],
) -> None:
    """Run points and store each as it ends. `notify` is called from worker threads.

    Raises StoreError or PreconditionError, which no other point could escape;
    what was stored before stays. KeyboardInterrupt ends every point at once.
    """
    folder.sweep_leftovers()
    free_cpus: queue.SimpleQueue[int] = queue.SimpleQueue()
    available = cpus()
    for number in range(jobs):
        free_cpus.put(available[number % len(available)])
    budget = _MemoryBudget(free_memory_bytes() * MEMORY_SHARE)
    stop = threading.Event()

    def one(scratch: Path, point: Point) -> None:
        if stop.is_set():
            return
        need = spec.guest_memory_bytes(point)
        budget.take(need)
        cpu = free_cpus.get()
        own = scratch / point.id
        try:
            own.mkdir()
            _run_one(point, engine, kernels[point.knobs["kernel"]], folder, cpu, own, terms, notify, stop)
        except BaseException:
            stop.set()
            raise
        finally:
            free_cpus.put(cpu)
            budget.give(need)

    with Scratch() as scratch, ThreadPoolExecutor(jobs, thread_name_prefix="point") as pool:
        futures = [pool.submit(one, scratch, point) for point in in_order(points, engine)]
        try:
            ended, _running = wait(futures, return_when=FIRST_EXCEPTION)
            for future in ended:
                future.result()
        except BaseException:
            stop.set()
            engine.stop()
            raise


def _run_one(  # noqa: PLR0913 (it ties together what the run holds)
    point: Point,
    engine: Engine,
    kernel: KernelRecord,
    folder: RunFolder,
    cpu: int,
    scratch: Path,
    terms: point_module.Terms,
    notify: Callable[[Event], None],
    stop: threading.Event,
) -> None:
    try:
        lacking = engine.lacking(point)
        if lacking:
            raise EngineError(lacking)
        tables, outcome = point_module.run(point, engine, kernel, cpu=cpu, folder=scratch, terms=terms)
    except PreconditionError:
        raise  # no other point would fare better
    except Exception as fault:
        if stop.is_set():
            return  # interrupted, not failed: it runs again next time
        expected = isinstance(fault, EngineError | MeasurementError)
        reason = str(fault) if expected else f"unexpected {type(fault).__name__}: {fault}"
        row = point_module.failed_row(point, kernel, reason)
        console = fault.console if isinstance(fault, GuestError) else ""
        details = {"reason": reason, "console": console, "traceback": traceback.format_exc()}
        rows = dict(fault.rows) if isinstance(fault, MachineLimited) else {}
        folder.put_point(point.id, {"points": [row], **rows}, details)
    else:
        row = tables["points"][0]
        folder.put_point(point.id, tables, outcome, captures.compressed(scratch / "out"))
    notify(Event(point, row))
