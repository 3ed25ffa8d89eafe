"""The pytest plugin on the fake engine: what a test gets, what it is told, and what it costs all others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab import trial
from lab.combination import Point
from lab.engines.base import EngineResult
from lab.engines.fake import FakeEngine, make
from lab.errors import EngineError, PointTimeout, PreconditionError, SpecError, UserError
from lab.kernels import KernelRecord
from lab.scenario import Scenario
from lab.trial import Result, Trials

pytest_plugins = ["pytester"]

SHORT = {"rate": "10mbit", "rtt": "10ms", "duration": "1s", "interval": "100ms"}
STUDY = Scenario(name="study", question="q", why="w", defaults=SHORT, sweep=({"cc": ["cubic", "bbr"]},))

MakeTrials = Callable[..., Trials]


class Counting(FakeEngine):
    """The fake engine, with a list of what ran and a fault for those that are to fail."""

    def __init__(self, fault: Exception | None = None) -> None:
        super().__init__()
        self.fault = fault
        self.kernels: list[Path] = []

    def run(self, spec: Any, *, kernel: Path, folder: Path, **rest: Any) -> EngineResult:
        assert list(folder.iterdir()) == []
        self.kernels.append(kernel)
        if self.fault:
            raise self.fault
        return super().run(spec, kernel=kernel, folder=folder, **rest)


@pytest.fixture
def trials(tmp_path: Path, make_kernel: Callable[..., KernelRecord]) -> MakeTrials:
    """Return a maker of trials on the fake engine; every kernel there is, is built."""

    def build(engine: FakeEngine | None = None, **more: Any) -> Trials:
        def find(point: Point) -> KernelRecord:
            name = point.knobs["kernel"]
            release = f"{name}.1" if name[0].isdigit() else "6.12.9"
            return make_kernel(name=name, release=release, path=Path(f"/nonexistent/{name}"))

        return Trials(engine or make(), tmp_path / "tried", **{"find": find, **more})

    return build


class TestTrials:
    def test_result_has_what_was_measured(self, trials: MakeTrials) -> None:
        result = trials()(**SHORT, cc="bbr", seed=7)
        assert result.goodput_bps == result.row["goodput_bps"] == pytest.approx(9e6 * 0.95, rel=1e-3)
        assert (result.cc, result.seed, result.kernel_release) == ("bbr", 7, "6.12.1")
        assert {row["cc"] for row in result.flows} == {"bbr"}
        assert len(result.samples) == 22
        assert len(result.queues) >= 11
        assert result.table("limits")
        assert result.digest == result.row["digest"]
        assert repr(result) == f"<point {result.point}: {result._label}>"

    def test_point_runs_once(self, trials: MakeTrials) -> None:
        engine = Counting()
        run = trials(engine)
        first, again = run(**SHORT), run(STUDY, cc="cubic")
        assert first.row == again.row
        assert len(engine.kernels) == 1
        run(**SHORT, seed=2)
        run(**SHORT, kernel="6.1")
        assert len(engine.kernels) == 3

    def test_kernel_of_the_session_is_for_tests_that_name_none(self, trials: MakeTrials) -> None:
        engine = Counting()
        run = trials(engine, kernel="mycc")
        assert run(**SHORT).kernel == "mycc"
        assert run(**SHORT, kernel="6.1").kernel == "6.1"
        assert engine.kernels == [Path("/nonexistent/mycc"), Path("/nonexistent/6.1")]

    def test_scenario_of_a_file_begins_at_the_folder(self, trials: MakeTrials, tmp_path: Path) -> None:
        (tmp_path / "mine.py").write_text(
            "from lab.scenario import Scenario\n"
            f"scenario = Scenario(name='mine', question='q', why='w', defaults={SHORT})\n"
        )
        result = trials(folder=tmp_path)("mine.py", rtt="20ms")
        assert (result.rate, result.rtt) == ("10mbit", "20ms")

    @pytest.mark.parametrize(
        ("settings", "sentence"),
        [
            ({"rtt": "10"}, "rtt: '10' has no unit"),
            ({"rrt": "10ms"}, "'rrt' is not a knob of point; did you mean 'rtt'?"),
            ({"rtt": ["10ms", "20ms"]}, "rtt: ['10ms', '20ms'] is not one value"),
            ({"queue": "1B"}, "under one packet"),
        ],
    )
    def test_faults_are_sentences(self, trials: MakeTrials, settings: Any, sentence: str) -> None:
        with pytest.raises(UserError) as refused:
            trials()(**{**SHORT, **settings})
        assert sentence in str(refused.value)

    def test_several_points_are_refused(self, trials: MakeTrials) -> None:
        with pytest.raises(UserError, match=r"study has 2 points here.*one value of each of cc$"):
            trials()(STUDY)

    def test_scenario_with_faults_is_refused(self, trials: MakeTrials) -> None:
        with pytest.raises(SpecError, match="not a knob"):
            trials()(Scenario(name="study", question="q", why="w", defaults={"rat": "1gbit"}))

    def test_failed_point_says_why_and_does_not_run_again(self, trials: MakeTrials) -> None:
        engine = Counting(PointTimeout("no end after 60 s"))
        run = trials(engine)
        for _ in range(2):
            with pytest.raises(
                EngineError, match=r"kernel=6\.12 .* seed 1: point \w+ failed: no end after 60 s"
            ):
                run(**SHORT)
        assert len(engine.kernels) == 1

    def test_what_the_machine_lacks_is_said_as_it_is(self, trials: MakeTrials) -> None:
        def missing(point: Point) -> KernelRecord:
            raise PreconditionError(f"kernel {point.knobs['kernel']} is not built yet")

        with pytest.raises(PreconditionError, match="kernel mycc is not built yet"):
            trials(find=missing)(**SHORT, kernel="mycc")

    def test_processes_side_by_side_take_different_cpus(self, trials: MakeTrials) -> None:
        cpus = {trials(worker=number)._cpu for number in range(8)}
        assert cpus == set(trial.run_module.cpus()[:8])

    def test_engines_are_those_of_the_lab(self) -> None:
        with pytest.raises(UserError, match="'fake' is not an engine; this version has virtual"):
            trial.engine("fake")


class TestAssertions:
    @pytest.fixture
    def result(self, trials: MakeTrials) -> Result:
        return trials()(**SHORT)

    def test_that_hold_say_nothing(self, result: Result) -> None:
        result.assert_at_least(goodput_bps=8e6, retransmits=0, rate_bps="steady_goodput_bps")
        result.assert_at_most(goodput_bps="rate_bps", retransmits=0)
        result.assert_within(0.01, steady_goodput_bps=9e6, load_s=1)
        result.assert_like(result)

    def test_that_do_not_hold_say_all_that_helps(self, result: Result) -> None:
        with pytest.raises(AssertionError) as failed:
            result.assert_at_least(goodput_bps=90e6, steady_goodput_bps="rate_bps", retransmits=0)
        lines = [line.strip() for line in str(failed.value).splitlines()]
        assert lines[:2] == [
            "goodput_bps is 8.55 Mbit/s, under 90 Mbit/s",
            "steady_goodput_bps is 9 Mbit/s, under rate_bps = 10 Mbit/s",
        ]
        assert lines[2].startswith(
            "at rate=10mbit, rtt=10ms, duration=1s, interval=100ms, kernel=6.12 (6.12.1), "
        )
        assert lines[3] == result.verdict
        assert lines[4].startswith("again: wanlab run scenarios/path.py --set rate=10mbit --set rtt=10ms")

    def test_of_a_distance(self, result: Result) -> None:
        with pytest.raises(
            AssertionError, match=r"steady_goodput_bps is 9 Mbit/s, more than 5 % from rate_bps = 10"
        ):
            result.assert_within(0.05, steady_goodput_bps="rate_bps")

    def test_of_what_was_not_measured(self, result: Result) -> None:
        result.row["loaded_rtt_s"] = None
        with pytest.raises(AssertionError, match="loaded_rtt_s was not measured"):
            result.assert_at_most(loaded_rtt_s=1)

    def test_of_unknown_columns_and_of_text(self, result: Result) -> None:
        with pytest.raises(AttributeError, match="did you mean 'goodput_bps'"):
            result.assert_at_least(gooodput_bps=1)
        with pytest.raises(TypeError, match="'cc' is not a column of numbers"):
            result.assert_at_least(cc=1)
        with pytest.raises(AttributeError):
            _ = result._repr_html_

    def test_of_likeness(self, trials: MakeTrials) -> None:
        run = trials()
        one, other = run(**SHORT), run(**{**SHORT, "rate": "11mbit"})
        one.assert_like(other, within=0.1, columns=["goodput_bps", "queue_drops"])
        with pytest.raises(AssertionError) as failed:
            one.assert_like(other)
        assert "goodput_bps is 8.55 Mbit/s and not 9.405 Mbit/s, -9.09 %; 2 % are allowed" in str(
            failed.value
        )
        assert "beside rate=11mbit" in str(failed.value)
        other.row["retransmits"] = None
        with pytest.raises(AssertionError, match="retransmits was measured in one of the points only"):
            one.assert_like(other, columns=["retransmits"])


CONFTEST = """
    import pytest
    from pathlib import Path
    from lab.engines.fake import FakeEngine
    from lab.kernels import KernelRecord
    from lab.trial import Trials

    def find(point):
        name = point.knobs["kernel"]
        release = f"{name}.1" if name[0].isdigit() else "6.12.9"
        return KernelRecord(
            name, release, "", "", "", 250, "", "", "", (), Path("/nonexistent")
        )

    @pytest.fixture(scope="session")
    def _wanlab_trials(pytestconfig, tmp_path_factory):
        kernel = pytestconfig.getoption("wanlab_kernel")
        folder = tmp_path_factory.mktemp("wanlab")
        return Trials(FakeEngine(), folder, kernel=kernel, folder=pytestconfig.rootpath, find=find)
"""


@pytest.fixture
def fake(pytester: pytest.Pytester) -> pytest.Pytester:
    """Return a folder of tests whose points run on the fake engine."""
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(
        scenario_of_mine=f"""
        from lab.scenario import Scenario
        scenario = Scenario(name="mine", question="q", why="w", defaults={SHORT!r})
        """
    )
    return pytester


class TestPlugin:
    def test_runs_a_point_for_a_test(self, fake: pytest.Pytester) -> None:
        fake.makepyfile(
            """
            import pytest

            @pytest.mark.parametrize("cc", ["cubic", "bbr"])
            def test_fills_the_link(wanlab_point, cc):
                result = wanlab_point("scenario_of_mine.py", cc=cc, seed=3)
                result.assert_at_least(steady_goodput_bps=8.9e6)
                assert result.cc == cc and result.flows[0]["cc"] == cc
                assert result.kernel == "mycc"
            """
        )
        done = fake.runpytest("--wanlab-kernel", "mycc")
        done.assert_outcomes(passed=2)
        done.stdout.fnmatch_lines(["wanlab: kernel mycc"])

    def test_bound_that_does_not_hold_shows_the_test_and_not_the_lab(self, fake: pytest.Pytester) -> None:
        fake.makepyfile(
            """
            def test_fills_the_link(wanlab_point):
                wanlab_point("scenario_of_mine.py").assert_at_least(steady_goodput_bps=9.5e6)
            """
        )
        done = fake.runpytest()
        done.assert_outcomes(failed=1)
        done.stdout.fnmatch_lines(
            [
                "*AssertionError: steady_goodput_bps is 9 Mbit/s, under 9.5 Mbit/s",
                "*at kernel=6.12 (6.12.1), seed 1: point *",
                "*again: wanlab run scenario_of_mine.py --set kernel=6.12 --seed 1",
            ]
        )
        done.stdout.no_fnmatch_line("*trial.py*")

    @pytest.mark.parametrize(
        ("call", "sentence"),
        [
            ("rtt='10'", "rtt: '10' has no unit; *"),
            ("rtt='10ms,20ms'", "rtt: '10ms,20ms' is not a time; *"),
            ("preset='big'", "preset: 'big' is not a preset of mine; it has: none"),
        ],
    )
    def test_fault_is_a_sentence_without_a_traceback(
        self, fake: pytest.Pytester, call: str, sentence: str
    ) -> None:
        fake.makepyfile(f"def test_it(wanlab_point):\n    wanlab_point('scenario_of_mine.py', {call})\n")
        done = fake.runpytest()
        done.assert_outcomes(failed=1)
        done.stdout.fnmatch_lines([sentence])
        done.stdout.no_fnmatch_line("*Traceback*")
        done.stdout.no_fnmatch_line("*pytest_plugin.py*")

    def test_missing_kernel_is_a_sentence(
        self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """This one is on the virtual engine: it comes as far as looking for its kernel."""
        monkeypatch.setenv("WANLAB_CACHE", str(tmp_path / "empty"))
        pytester.makepyfile("def test_it(wanlab_point):\n    wanlab_point(rtt='10ms')\n")
        done = pytester.runpytest("--wanlab-kernel", "mycc")
        done.assert_outcomes(failed=1)
        done.stdout.fnmatch_lines(["kernel mycc is not built yet; `wanlab kernel build mycc*"])

    def test_unknown_engine_is_a_sentence(self, pytester: pytest.Pytester) -> None:
        pytester.makepyfile("def test_it(wanlab_point):\n    pass\n")
        done = pytester.runpytest("--wanlab-engine", "fake")
        done.assert_outcomes(errors=1)
        done.stdout.fnmatch_lines(["--wanlab-engine: 'fake' is not an engine; this version has virtual*"])

    def test_nothing_of_the_lab_is_imported_before_a_test_asks(self) -> None:
        script = (
            "import sys, pytest, lab.pytest_plugin;"
            "print(sorted(n for n in sys.modules if n.split('.')[0] in ('lab', 'numpy', 'scipy', 'pyarrow')))"
        )
        told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert told.stdout.strip() == "['lab', 'lab.pytest_plugin']"

    def test_the_lab_needs_no_pytest(self) -> None:
        script = (
            "import sys; sys.modules['pytest'] = None;"
            "import lab.cli.main, lab.cli.run, lab.cli.compare, lab.trial"
        )
        subprocess.run([sys.executable, "-c", script], check=True)

    def test_fixture_is_told_of(self, pytester: pytest.Pytester) -> None:
        done = pytester.runpytest("--fixtures")
        done.stdout.fnmatch_lines(["wanlab_point [[]session scope[]]*", "*Run one point in virtual time:*"])
        assert "_wanlab_trials" not in done.stdout.str()
