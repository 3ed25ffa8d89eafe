"""The progress of a run: a bar on a terminal, a line a point elsewhere."""

from __future__ import annotations

import threading
import time

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from lab.cli.output import console
from lab.run import Event


class Progress:
    """Context manager; `notify` takes the events of a run from any thread."""

    def __init__(self, *, total: int, kept: int, quiet: bool) -> None:
        self._console = console(stderr=True)
        self._total, self._kept, self._quiet = total, kept, quiet
        self._done = kept
        self._failed = 0
        self._virtual_s = 0.0
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[failed]} failed"),
            TextColumn("{task.fields[pace]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
            disable=quiet or not self._console.is_terminal,
        )

    def __enter__(self) -> Progress:
        self._bar.start()
        self._task = self._bar.add_task("points", total=self._total, completed=self._kept, failed=0, pace="")
        if self._kept and not self._quiet:
            self._console.print(f"{self._kept} of {self._total} points are done already and kept")
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def expect(self, count: int) -> None:
        """Say that so many more points are about to run."""
        with self._lock:
            self._total += count
            self._bar.update(self._task, total=self._total)

    def notify(self, event: Event) -> None:
        """Count a point that has ended."""
        with self._lock:
            self._done += 1
            self._failed += event.row["status"] != "done"
            self._virtual_s += event.row.get("virtual_s") or 0.0
            wall_s = time.monotonic() - self._began
            pace = (
                "on the real clock"
                if event.point.on_real_clock
                else f"{self._virtual_s / wall_s:.1f} virtual s per s"
            )
            self._bar.update(self._task, completed=self._done, failed=self._failed, pace=pace)
            if self._bar.disable and not self._quiet:
                left_s = wall_s / (self._done - self._kept) * (self._total - self._done)
                self._console.print(
                    f"{self._done}/{self._total} points, {self._failed} failed, {left_s:.0f} s left, {pace}:"
                    f" {event.point.id} {event.row['status']}"
                )
