"""One point for a test: run it, ask what was measured, hold it against bounds.

    trials = Trials(engine("virtual"), Path("tried"))
    result = trials("scenarios/path.py", cc="cubic", rtt="100ms")
    result.assert_at_least(utilisation=0.9)

Not here: pytest, see `lab.pytest_plugin`. A bound that does not hold is a plain
AssertionError; what cannot be run is one of `lab.errors`.
"""

from __future__ import annotations

import difflib
import importlib
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab import point as point_module
from lab import repeats, sweep
from lab import run as run_module
from lab import scenario as scenario_module
from lab.combination import Point
from lab.engines.base import ENGINES, Engine
from lab.errors import EngineError, MeasurementError, SpecError, UserError
from lab.kernels import KernelRecord, find_kernel
from lab.kernels.controls import require_controls
from lab.scenario import Scenario
from lab.scratch import Scratch
from lab.store import RunFolder

Row = dict[str, Any]

PLAIN = Scenario(name="point", question="What does this point give?", why="Every knob as the test sets it.")
"""What runs where a test names no scenario: all knobs at their defaults but those that it sets."""


class Result:
    """What one point left.

    Every column of table `points` is an attribute: `result.goodput_bps`, None
    where it was not measured. row: the same as a dictionary. The other tables
    are read when they are asked for; docs/reference/tables.md has their columns.
    """

    def __init__(self, folder: RunFolder, point: str, label: str, again: str) -> None:
        self.row: Row = folder.rows("points", [point])[0]
        self._folder, self._label, self._again = folder, label, again

    def table(self, name: str) -> list[Row]:
        """Return the rows of a table of this point."""
        return self._folder.rows(name, [self.row["point"]])

    @property
    def flows(self) -> list[Row]:
        """Rows of table `flows`."""
        return self.table("flows")

    @property
    def samples(self) -> list[Row]:
        """Rows of table `samples`: every field of tcp_info, at every interval, of both ends."""
        return self.table("samples")

    @property
    def queues(self) -> list[Row]:
        """Rows of table `queues`."""
        return self.table("queues")

    @property
    def digest(self) -> str:
        """SHA-256 of all that was recorded: equal for equal runs, on any machine."""
        return str(self.row["digest"])

    def __getattr__(self, name: str) -> Any:
        """Return a column of the row. Raises AttributeError with the nearest name there is."""
        if name.startswith("_") or "row" not in vars(self):
            raise AttributeError(name)
        if name in self.row:
            return self.row[name]
        near = difflib.get_close_matches(name, self.row, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "docs/reference/tables.md lists them"
        raise AttributeError(f"{name!r} is not a column of table points; {hint}")

    def __repr__(self) -> str:
        """Return what was run."""
        return f"<point {self.row['point']}: {self._label}>"

    def assert_at_least(self, **bounds: float | str) -> None:
        """Assert that columns are no less than a number, or than another column: `goodput_bps=90e6`."""
        __tracebackhide__ = True
        self._assert_all(bounds, lambda value, bound: value >= bound, "under")

    def assert_at_most(self, **bounds: float | str) -> None:
        """Assert that columns are no more than a number, or than another column."""
        __tracebackhide__ = True
        self._assert_all(bounds, lambda value, bound: value <= bound, "over")

    def assert_within(self, within: float, **bounds: float | str) -> None:
        """Assert that columns are near a number or another column: `steady_goodput_bps="rate_bps"`.

        within: greatest distance, as a fraction of what it is near to.
        """
        __tracebackhide__ = True
        words = f"more than {100 * within:.3g} % from"
        self._assert_all(bounds, lambda value, bound: abs(value - bound) <= within * abs(bound), words)

    def assert_like(
        self, other: Result, within: float = 0.02, columns: Sequence[str] = repeats.COLUMNS
    ) -> None:
        """Assert that columns are near those of another point; equal digests need no look at them.

        within: greatest distance, as a fraction of the other point's value. A
        column that neither has is alike.
        """
        __tracebackhide__ = True
        if self.digest == other.digest:
            return
        faults = []
        for name in columns:
            mine, its = self._number(name), other._number(name)
            if mine is None and its is None:
                continue
            if mine is None or its is None:
                faults.append(f"{name} was measured in one of the points only")
            elif abs(mine - its) > within * abs(its):
                change = f", {100 * (mine / its - 1):+.3g} %" if its else ""
                said, there = repeats.quantity(name, mine), repeats.quantity(name, its)
                faults.append(f"{name} is {said} and not {there}{change}; {100 * within:.3g} % are allowed")
        if faults:
            raise AssertionError(self._message(faults, f"beside {other._label}"))

    def _assert_all(
        self, bounds: Mapping[str, float | str], holds: Callable[[float, float], bool], words: str
    ) -> None:
        __tracebackhide__ = True
        faults = []
        for name, given in bounds.items():
            value = self._number(name)
            bound = self._number(given) if isinstance(given, str) else float(given)
            if value is None or bound is None:
                faults.append(f"{name if value is None else given} was not measured")
            elif not holds(value, bound):
                of = f"{given} = " if isinstance(given, str) else ""
                said = f"{name} is {repeats.quantity(name, value)}"
                faults.append(f"{said}, {words} {of}{repeats.quantity(name, bound)}")
        if faults:
            raise AssertionError(self._message(faults))

    def _number(self, name: str) -> float | None:
        """Return a column as a number; None where it has none. Raises TypeError for one of text."""
        value = getattr(self, name)
        if name not in repeats.NUMBERS:
            raise TypeError(f"{name!r} is not a column of numbers; assert on it yourself, it is {value!r}")
        return None if value is None or not math.isfinite(value) else float(value)

    def _message(self, faults: Sequence[str], beside: str = "") -> str:
        """Return faults with what helps to go on: which point, what bound it, how to run it again."""
        lines = [
            *faults,
            f"at {self._label}",
            beside,
            self.row.get("verdict") or "",
            self.row.get("note") or "",
        ]
        again = f"again: {self._again}" if self._again else ""
        return "\n  ".join(filter(None, [*lines, again]))


class Trials:
    """Runs points on an engine, each once however often it is asked for.

    store: folder that takes their tables. kernel: what runs points for which no
    kernel is named. folder: where relative paths of scenarios begin. worker:
    number of this process among those that test side by side; each has another
    CPU. find: what gives a point's kernel, `kernel_of` unless told otherwise.
    """

    def __init__(
        self,
        on: Engine,
        store: Path,
        *,
        kernel: str | None = None,
        folder: Path = Path(),
        worker: int = 0,
        find: Callable[[Point], KernelRecord] | None = None,
    ) -> None:
        self._engine, self._store = on, RunFolder(store)
        self._kernel, self._folder, self._find = kernel, folder, find or kernel_of
        cpus = run_module.cpus()
        self._cpu = cpus[worker % len(cpus)]
        self._failures: dict[str, EngineError | None] = {}

    def __call__(
        self,
        scenario: Scenario | Path | str | None = None,
        /,
        *,
        seed: int = 1,
        preset: str | None = None,
        **knobs: str | float,
    ) -> Result:
        """Return the result of the one point that these knobs make of a scenario.

        Raises UserError for knobs that cannot be and for several points,
        PreconditionError where the machine lacks something, EngineError where
        the point failed.
        """
        point = self._point(scenario, seed, preset, knobs)
        kernel = self._find(point)
        settings = {**knobs, "kernel": point.knobs["kernel"]}
        label = ", ".join(f"{name}={text}" for name, text in settings.items())
        label = f"{label} ({kernel.release}), seed {seed}: point {point.id}"
        if point.id not in self._failures:
            self._failures[point.id] = self._run(point, kernel, label)
        if failed := self._failures[point.id]:
            raise failed
        again = "" if isinstance(scenario, Scenario) else _command(scenario, preset, settings, seed)
        return Result(self._store, point.id, label, again)

    def _point(
        self, given: Scenario | Path | str | None, seed: int, preset: str | None, knobs: Mapping[str, Any]
    ) -> Point:
        if isinstance(given, Path | str):
            study = scenario_module.load(self._folder / given).scenario
        else:
            study = given or PLAIN
            if faults := scenario_module.check(study):
                raise SpecError(faults)
        chosen = dict(knobs)
        if self._kernel is not None:
            chosen.setdefault("kernel", self._kernel)
        several = [name for name, value in chosen.items() if not isinstance(value, str | int | float)]
        if several:
            raise UserError(
                f"{several[0]}: {chosen[several[0]]!r} is not one value, and a test takes one point;"
                " write it such as '100ms', and pytest.mark.parametrize for several"
            )
        texts = {name: [str(value)] for name, value in chosen.items()}
        found = sweep.points(study.with_preset(preset), texts, engine="virtual", seeds=[seed])
        if len(found) > 1:
            varied = [name for name in found[0].knobs if len({point.knobs[name] for point in found}) > 1]
            raise UserError(
                f"{study.name} has {len(found)} points here, and a test takes one; give one value of each of"
                f" {', '.join(varied)}"
            )
        return found[0]

    def _run(self, point: Point, kernel: KernelRecord, label: str) -> EngineError | None:
        """Run a point and store its tables; return the error of one that failed."""
        with Scratch() as scratch:
            own = scratch / point.id
            own.mkdir()
            try:
                tables, outcome = point_module.run(
                    point, self._engine, kernel, cpu=self._cpu, folder=own, terms=point_module.Terms()
                )
            except (EngineError, MeasurementError) as fault:
                failed = EngineError(f"{label} failed: {fault}")
                failed.__cause__ = fault
                return failed
        self._store.put_point(point.id, tables, outcome)
        return None


def _command(scenario: Path | str | None, preset: str | None, settings: Mapping[str, Any], seed: int) -> str:
    """Return the command that runs the point again, where everything of it can be looked at."""
    chosen = {**({"preset": preset} if preset else {}), **settings}
    words = [word for name, text in chosen.items() for word in ("--set", f"{name}={text}")]
    return shlex.join(["wanlab", "run", str(scenario or "scenarios/path.py"), *words, "--seed", str(seed)])


def kernel_of(point: Point) -> KernelRecord:
    """Return the kernel that runs a point.

    Raises PreconditionError where it is not built, UserError where it lacks the
    point's congestion control.
    """
    address = point.knobs["kernel"]
    record = find_kernel(address)
    require_controls({address: point.controls}, {address: record})
    return record


def engine(name: str) -> Engine:
    """Return an engine. Raises UserError for an unknown one, PreconditionError where it cannot run here."""
    if name not in ENGINES:
        raise UserError(f"{name!r} is not an engine; this version has {', '.join(ENGINES)}")
    made: Engine = importlib.import_module(ENGINES[name]).make()
    return made
