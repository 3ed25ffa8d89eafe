"""Whole runs on the fake engine: all points, some failing, a crash in the middle, and going on after it."""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lab import run as run_module
from lab import sweep, traffic
from lab.engines.base import ENGINES, Engine, EngineResult
from lab.engines.fake import FakeEngine, make
from lab.errors import EngineError, GuestError, PointTimeout, PreconditionError
from lab.kernels import KernelRecord
from lab.point import Terms
from lab.scenario import Scenario
from lab.store import RunFolder
from lab.sweep import Point

STUDY = Scenario(
    name="study",
    question="q",
    why="w",
    defaults={"rate": "10mbit", "rtt": "10ms", "duration": "1s", "interval": "100ms"},
    sweep=({"rmem": ["25MiB", "50MiB"], "cc": ["cubic", "bbr"]},),
)
POINTS = sweep.points(STUDY, {}, engine="virtual", seeds=[1])

Behaviour = Callable[[int, Any], None]


class Behaving(FakeEngine):
    """The fake engine with something that happens before a point: `before(number of the run, spec)`."""

    def __init__(self, before: Behaviour = lambda _number, _spec: None) -> None:
        super().__init__()
        self.ran: list[str] = []
        self.cpus: set[int] = set()
        self.folders: list[Path] = []
        self.stops = 0
        self._before = before
        self._lock = threading.Lock()

    def run(self, spec: Any, *, cpu: int, folder: Path, **rest: Any) -> EngineResult:
        with self._lock:
            number = len(self.ran)
            self.ran.append(folder.name)
            self.cpus.add(cpu)
            self.folders.append(folder)
            assert list(folder.iterdir()) == []
        self._before(number, spec)
        return super().run(spec, cpu=cpu, folder=folder, **rest)

    def stop(self) -> None:
        self.stops += 1
        super().stop()


def raising(fault: BaseException, *numbers: int) -> Behaviour:
    """Return a behaviour that raises at these runs, counted from 0."""

    def before(number: int, _spec: Any) -> None:
        if number in numbers:
            raise fault

    return before


class Run:
    """A folder and a kernel, to run points with."""

    def __init__(self, path: Path, kernel: KernelRecord) -> None:
        self.folder = RunFolder(path)
        self.kernels = {"6.12": kernel}
        self.events: list[run_module.Event] = []

    def missing(self) -> list[Point]:
        return run_module.missing(POINTS, self.kernels, self.folder)

    def go(self, engine: Engine, points: Sequence[Point] | None = None, jobs: int = 1) -> None:
        run_module.run(
            self.missing() if points is None else points,
            engine=engine,
            kernels=self.kernels,
            folder=self.folder,
            jobs=jobs,
            terms=Terms(wall_s=60),
            notify=self.events.append,
        )

    def digests(self) -> dict[str, str]:
        return {row["point"]: row["digest"] for row in self.folder.rows("points")}


@pytest.fixture
def run(tmp_path: Path, make_kernel: Callable[..., KernelRecord]) -> Run:
    return Run(tmp_path / "run", make_kernel())


def ids(points: Sequence[Point]) -> list[str]:
    return [point.id for point in points]


class TestWhole:
    def test_every_point_is_stored_and_told(self, run: Run) -> None:
        engine = Behaving()
        run.go(engine)
        assert engine.ran == ids(POINTS)
        assert run.folder.statuses() == dict.fromkeys(sorted(ids(POINTS)), "done")
        assert ids([event.point for event in run.events]) == ids(POINTS)
        assert [event.row["status"] for event in run.events] == ["done"] * 4
        assert run.missing() == []

    def test_rows_say_what_the_fluid_did(self, run: Run) -> None:
        run.go(make())
        for row in run.folder.rows("points"):
            assert row["steady_goodput_bps"] == pytest.approx(9e6, rel=1e-3)
            assert row["delivered_bytes"] == pytest.approx(9e6 * (1 - 0.05) / 8, rel=1e-3)
            assert (row["retransmits"], row["queue_drops"], row["note"]) == (0, 0, None)
            assert row["measured_rate_bps"] == pytest.approx(10e6, rel=1e-3)
            assert row["rtt_s"] == 0.01
            assert row["kernel_release"] == "6.12.117"
        assert {row["cc"] for row in run.folder.rows("flows")} == {"cubic", "bbr"}

    def test_each_table_has_its_point_s_rows(self, run: Run) -> None:
        run.go(make())
        for point in ids(POINTS):
            for table, least in (("points", 1), ("flows", 1), ("samples", 22), ("queues", 11)):
                rows = run.folder.rows(table, [point])
                assert len(rows) >= least
                assert {row["point"] for row in rows} == {point}
            outcome = run.folder.outcome(point)
            assert outcome is not None
            assert outcome["workload"]["flows"] == [
                {"flow": 0, "port": 40000, "finished_ns": None, "tcp_info": None}
            ]

    def test_flows_of_a_given_size_end_when_they_arrived(
        self, tmp_path: Path, make_kernel: Callable[..., KernelRecord]
    ) -> None:
        chosen = {"rmem": ["1MiB"], "cc": ["bbr"], "bytes": ["300KB"], "flows": ["3"]}
        (point,) = sweep.points(STUDY, chosen, engine="virtual", seeds=[1])
        run = Run(tmp_path / "run", make_kernel())
        run.go(make(), [point])
        (row,) = run.folder.rows("points")
        assert row["delivered_bytes"] == 900_000
        assert row["load_s"] == pytest.approx(0.9e6 * 8 / 9e6 + 0.05, rel=1e-3)
        assert [flow["delivered_bytes"] for flow in run.folder.rows("flows")] == [300_000] * 3
        assert all(flow["finished_s"] == pytest.approx(row["load_s"]) for flow in run.folder.rows("flows"))

    @pytest.mark.parametrize(
        "knobs",
        [
            {
                "topology": "dumbbell",
                "flows": "3",
                "rtt": "10ms+20ms",
                "cc": "bbr+cubic",
                "start": "0s+300ms",
            },
            {"topology": "parking_lot", "bottlenecks": "2", "flows": "3"},
            {"topology": "star", "flows": "3", "bytes": "10KB+100KB+1GB", "stop": "end+end+800ms"},
            {"topology": "two_way", "flows": "2", "reverse": "2", "rate_back": "5mbit"},
            {"topology": "long_haul", "route": "geo-satellite"},
            {"arrivals": "poisson:60%", "sizes": "exp:5KB", "flows": "1", "on_off": "exp:10ms:10ms"},
            {"flows": "0", "udp": "1mbit", "probe": "10ms"},
            {"workload": "request", "flows": "2"},
            {"rate_change": "100ms:5mbit+200ms~400ms:20mbit", "rtt_change": "500ms:5ms", "qdisc": "codel"},
            {"access": "5mbit", "loss": "list:5+17", "reverse": "1"},
        ],
        ids=lambda knobs: " ".join(f"{name}={text}" for name, text in knobs.items()),
    )
    def test_every_shape_and_kind_of_traffic_goes_through(
        self, tmp_path: Path, make_kernel: Callable[..., KernelRecord], knobs: dict[str, str]
    ) -> None:
        chosen = {"rmem": ["default"], "cc": ["cubic"], **{name: [text] for name, text in knobs.items()}}
        (point,) = sweep.points(STUDY, chosen, engine="virtual", seeds=[1])
        run = Run(tmp_path / "run", make_kernel())
        run.go(make(), [point])
        (row,) = run.folder.rows("points")
        assert (row["status"], row["reason"]) == ("done", None)
        planned = traffic.flows(point)
        told = run.folder.rows("flows")
        assert [(flow["flow"], flow["src"], flow["dst"], flow["kind"]) for flow in told] == [
            (flow.number, flow.src, flow.dst, flow.kind) for flow in planned
        ]
        assert {queue["interface"] for queue in run.folder.rows("queues") if queue["bottleneck"]} == set(
            traffic.bottlenecks(point)
        )
        kinds = {one["kind"] for one in run.folder.rows("delays")}
        assert kinds == {name for name in ("udp", "probe") if point.knobs[name] != "none"}

    def test_later_starters_begin_later_and_stopped_ones_end(
        self, tmp_path: Path, make_kernel: Callable[..., KernelRecord]
    ) -> None:
        chosen = {
            "rmem": ["default"],
            "cc": ["cubic"],
            "flows": ["2"],
            "start": ["0s+400ms"],
            "stop": ["900ms"],
        }
        (point,) = sweep.points(STUDY, chosen, engine="virtual", seeds=[1])
        run = Run(tmp_path / "run", make_kernel())
        run.go(make(), [point])
        seen = {
            flow: [row["t_s"] for row in run.folder.rows("samples") if row["flow"] == flow] for flow in (0, 1)
        }
        assert (min(seen[0]), max(seen[0])) == (0.0, 0.9)
        assert (min(seen[1]), max(seen[1])) == (0.4, 0.9)
        first, second = run.folder.rows("flows")
        assert first["delivered_bytes"] > second["delivered_bytes"] > 0

    def test_same_settings_give_the_same_records(
        self, tmp_path: Path, make_kernel: Callable[..., KernelRecord]
    ) -> None:
        one, other = (Run(tmp_path / name, make_kernel()) for name in ("one", "other"))
        one.go(make())
        other.go(make(), list(reversed(POINTS)), jobs=2)
        assert one.digests() == other.digests()
        assert len(set(one.digests().values())) == 2  # by congestion control; a fluid has no receive window

    def test_scratch_folders_are_gone(self, run: Run) -> None:
        engine = Behaving(lambda _number, _spec: None)
        run.go(engine)
        assert len({folder.parent for folder in engine.folders}) == 1
        assert not engine.folders[0].parent.exists()

    def test_nothing_to_do(self, run: Run) -> None:
        engine = Behaving()
        run.go(engine, [])
        assert engine.ran == []


class TestJobs:
    def test_two_points_run_at_once(self, run: Run) -> None:
        meeting = threading.Barrier(2)
        engine = Behaving(lambda _number, _spec: meeting.wait(timeout=20) and None)
        run.go(engine, jobs=2)
        assert list(run.folder.statuses().values()) == ["done"] * 4
        assert engine.cpus <= set(run_module.cpus())
        assert len(engine.cpus) == min(2, len(run_module.cpus()))

    def test_one_job_runs_one_at_a_time(self, run: Run) -> None:
        inside = threading.Semaphore(1)

        def alone(_number: int, _spec: Any) -> None:
            assert inside.acquire(blocking=False)
            threading.Event().wait(0.01)
            inside.release()

        run.go(Behaving(alone))
        assert list(run.folder.statuses().values()) == ["done"] * 4

    def test_points_wait_for_memory_and_one_alone_never_does(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(run_module, "free_memory_bytes", lambda: 1)
        inside: list[int] = []
        most: list[int] = []

        def counts(number: int, _spec: Any) -> None:
            inside.append(number)
            most.append(len(inside))
            threading.Event().wait(0.02)
            inside.remove(number)

        run.go(Behaving(counts), jobs=4)
        assert most == [1, 1, 1, 1]
        assert list(run.folder.statuses().values()) == ["done"] * 4


class TestFailures:
    @pytest.mark.parametrize(
        ("fault", "reason"),
        [
            (EngineError("no end"), "no end"),
            (PointTimeout("no end after 60 s"), "no end after 60 s"),
            (GuestError("the kernel died", console="Kernel panic"), "the kernel died"),
            (KeyError("nodes"), "unexpected KeyError: 'nodes'"),
        ],
    )
    def test_of_a_point_is_a_row_and_the_others_run(self, run: Run, fault: Exception, reason: str) -> None:
        run.go(Behaving(raising(fault, 1)))
        failed = POINTS[1].id
        assert run.folder.statuses() == {
            point: "failed" if point == failed else "done" for point in sorted(ids(POINTS))
        }
        (row,) = run.folder.rows("points", [failed])
        assert row["reason"] == reason
        assert (row["goodput_bps"], row["retransmits"], row["digest"]) == (None, None, None)
        assert (row["rmem"], row["cc"], row["kernel_release"]) == ("25MiB", "bbr", "6.12.117")
        assert row["predicted_goodput_bps"] > 0
        assert [event.row["status"] for event in run.events] == ["done", "failed", "done", "done"]

    def test_of_a_guest_keeps_its_last_words(self, run: Run) -> None:
        run.go(Behaving(raising(GuestError("the kernel died", console="Kernel panic"), 0)))
        outcome = run.folder.outcome(POINTS[0].id)
        assert outcome is not None
        assert outcome["reason"] == "the kernel died"
        assert outcome["console"] == "Kernel panic"

    def test_of_a_point_runs_again(self, run: Run) -> None:
        run.go(Behaving(raising(EngineError("no end"), 1, 2)))
        assert ids(run.missing()) == ids(POINTS[1:3])
        engine = Behaving()
        run.go(engine)
        assert engine.ran == ids(POINTS[1:3])
        assert set(run.folder.statuses().values()) == {"done"}

    def test_of_the_path_is_a_failure_of_the_point(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        real = FakeEngine.run

        def other_path(self: FakeEngine, spec: Any, **rest: Any) -> EngineResult:
            result = real(self, spec, **rest)
            path = {**result.outcome["path"][0], "rtts_s": [0.5]}
            return EngineResult(result.frames, {**result.outcome, "path": [path]}, 0.0, 0.0)

        monkeypatch.setattr(FakeEngine, "run", other_path)
        run.go(make(), POINTS[:1])
        (row,) = run.folder.rows("points")
        assert row["reason"] == "the idle RTT is 500.000000 ms where 10.000000 ms was asked for"

    def test_of_torn_records_is_a_failure_of_the_point(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = FakeEngine.run

        def torn(self: FakeEngine, spec: Any, **rest: Any) -> EngineResult:
            result = real(self, spec, **rest)
            return EngineResult(result.frames[:-3], result.outcome, 0.0, 0.0)

        monkeypatch.setattr(FakeEngine, "run", torn)
        run.go(make(), POINTS[:1])
        (row,) = run.folder.rows("points")
        assert row["reason"].startswith("the records of this point are damaged: ")

    def test_of_a_machine_that_lacks_something_ends_the_run(self, run: Run) -> None:
        engine = Behaving(raising(PreconditionError("no memory"), 2))
        with pytest.raises(PreconditionError, match="no memory"):
            run.go(engine)
        assert list(run.folder.statuses()) == sorted(ids(POINTS[:2]))
        assert engine.stops == 1


class TestCrash:
    @pytest.mark.parametrize("jobs", [1, 2])
    @pytest.mark.parametrize("fault", [KeyboardInterrupt(), MemoryError()], ids=repr)
    def test_keeps_what_is_done_and_goes_on_with_the_rest(
        self, run: Run, fault: BaseException, jobs: int
    ) -> None:
        engine = Behaving(raising(fault, 2))
        if isinstance(fault, Exception):
            run.go(engine, jobs=jobs)
        else:
            with pytest.raises(type(fault)):
                run.go(engine, jobs=jobs)
            assert engine.stops == 1
        kept = {row["point"]: row for row in run.folder.rows("points") if row["status"] == "done"}
        assert 1 <= len(kept) <= 3
        before = {point: (run.folder.points_path / point).stat().st_mtime_ns for point in kept}

        again = Behaving()
        run.go(again, jobs=jobs)
        assert set(again.ran) == set(ids(POINTS)) - set(kept)
        assert set(run.folder.statuses().values()) == {"done"}
        after = {point: (run.folder.points_path / point).stat().st_mtime_ns for point in kept}
        assert after == before

    def test_interrupted_points_are_missing_and_not_failed(self, run: Run) -> None:
        """What an engine says of points that were ended under it is no result."""
        held, stopped = threading.Event(), threading.Event()

        class Stoppable(Behaving):
            def stop(self) -> None:
                super().stop()
                stopped.set()

        def before(number: int, _spec: Any) -> None:
            if number == 0:
                held.set()
                assert stopped.wait(20), "the engine was not stopped while a point still ran"
                raise EngineError("stopped")
            held.wait(20)
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run.go(Stoppable(before), POINTS[:2], jobs=2)
        assert run.folder.statuses() == {}

    def test_leftovers_of_a_crash_are_swept_by_the_next_run(self, run: Run) -> None:
        leftover = run.folder.path / ".point-abc.4711"
        leftover.mkdir(parents=True)
        (leftover / "samples.parquet").write_bytes(b"half")
        run.go(make(), POINTS[:1])
        assert not leftover.exists()

    def test_damaged_point_runs_again(self, run: Run) -> None:
        run.go(make())
        (run.folder.points_path / POINTS[2].id / "point.parquet").write_bytes(b"PAR1")
        engine = Behaving()
        run.go(engine)
        assert engine.ran == [POINTS[2].id]
        assert run.missing() == []


class TestKernel:
    @pytest.mark.parametrize(
        "change", [{"release": "6.12.118"}, {"recipe_hash": "cd" * 32}, {"config_hash": "cd" * 32}]
    )
    def test_that_changed_runs_again(
        self, run: Run, make_kernel: Callable[..., KernelRecord], change: dict[str, str]
    ) -> None:
        run.go(make())
        run.kernels = {"6.12": make_kernel(**change)}
        assert ids(run.missing()) == ids(POINTS)
        run.go(make(), POINTS[:1])
        assert ids(run.missing()) == ids(POINTS[1:])

    def test_that_was_only_built_again_does_not(
        self, run: Run, make_kernel: Callable[..., KernelRecord]
    ) -> None:
        run.go(make())
        run.kernels = {"6.12": make_kernel(built_at="2027-01-01T00:00:00+00:00", path=Path("/elsewhere"))}
        assert run.missing() == []


class TestFullDisk:
    def test_ends_the_run_and_keeps_what_is_stored(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        real, calls = RunFolder.put_point, []

        def fills_up(self: RunFolder, point: str, *rest: Any) -> None:
            calls.append(point)
            if len(calls) == 3:
                monkeypatch.setattr("lab.store.pq.write_table", refuses)
            real(self, point, *rest)

        def refuses(*_args: Any, **_kwargs: Any) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patched:
            patched.setattr(RunFolder, "put_point", fills_up)
            engine = Behaving()
            with pytest.raises(PreconditionError) as refused:
                run.go(engine)
        monkeypatch.undo()
        message = str(refused.value)
        assert message.startswith(f"{run.folder.path}: point {POINTS[2].id} cannot be stored (")
        assert message.endswith("No space left on device); make room and run again")
        assert engine.ran == ids(POINTS[:3])
        assert run.folder.statuses() == dict.fromkeys(sorted(ids(POINTS[:2])), "done")
        assert len(run.folder.rows("samples")) == 2 * 22
        run.go(make())
        assert run.missing() == []


class TestFakeEngine:
    def test_is_not_offered_to_users(self) -> None:
        assert "lab.engines.fake" not in ENGINES.values()

    def test_stopped_engine_runs_nothing(self, run: Run) -> None:
        engine = make()
        engine.stop()
        run.go(engine, POINTS[:1])
        assert run.folder.statuses() == {POINTS[0].id: "failed"}

    def test_outcome_is_json(self, run: Run) -> None:
        run.go(make(), POINTS[:1])
        assert json.loads(json.dumps(run.folder.outcome(POINTS[0].id))) == run.folder.outcome(POINTS[0].id)


class TestOrder:
    def test_is_the_scenario_s_where_the_machine_cannot_reach_the_result(self) -> None:
        engine = make()
        assert run_module.in_order([1, 2, 3], engine) == [1, 2, 3]  # type: ignore[list-item]

    def test_is_by_chance_elsewhere_and_loses_nothing(self) -> None:
        engine = make()
        engine.timeless = False
        points = list(range(50))
        order = run_module.in_order(points, engine)  # type: ignore[arg-type]
        assert order != points
        assert sorted(order) == points
