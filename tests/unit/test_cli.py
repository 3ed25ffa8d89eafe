"""The command, in-process: exit codes, what is printed, and that no traceback ever is."""

from __future__ import annotations

import csv
import importlib
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab import schema
from lab.cli.main import main
from lab.engines.base import ENGINES
from lab.errors import EngineError
from lab.kernels import KernelRecord
from lab.knobs import PATH_KNOBS
from lab.model.inputs import Release
from lab.model.predict import predict
from lab.setting import setting
from lab.store import RunFolder
from lab.sweep import Point
from tests.said import Wanlab, wanlab_of

REPOSITORY = Path(__file__).resolve().parents[2]

SCENARIO = """
from lab.scenario import Expectation, Preset, Scenario

scenario = Scenario(
    name="study",
    question="q",
    why="w",
    defaults={"rate": "10mbit", "rtt": "10ms", "duration": "1s"},
    sweep=({"rmem": ["25MiB", "50MiB"], "cc": ["cubic", "bbr"]},),
    expectations=(Expectation("it fills", value="steady_goodput_bps", at_least=8e6),),
    presets={
        "hopeless": Preset("", expectations=(Expectation("it flies", value="goodput_bps", at_least=1e12),)),
    },
)
"""


MakePoint = Callable[..., Point]


@pytest.fixture
def wanlab(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wanlab:
    """Return the command, in an empty folder and with an empty kernel cache."""
    monkeypatch.setenv("WANLAB_CACHE", str(tmp_path / "no kernels"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.py").write_text(SCENARIO)

    return wanlab_of(capsys)


def put_fake_engine(monkeypatch: pytest.MonkeyPatch, kernel: KernelRecord) -> None:
    """Put the fake engine and a kernel that is only a record in the place of real ones."""
    monkeypatch.setitem(ENGINES, "virtual", "lab.engines.fake")
    command = importlib.import_module("lab.cli.run")
    monkeypatch.setattr("lab.engines.base.find_kernel", lambda _: kernel)
    monkeypatch.setattr(command, "require_controls", lambda _wanted, _kernels: None)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, make_kernel: Callable[..., KernelRecord]) -> None:
    """Run what this test runs on the fake engine."""
    put_fake_engine(monkeypatch, make_kernel())


@pytest.fixture(scope="module")
def stored_once(tmp_path_factory: pytest.TempPathFactory, make_kernel: Callable[..., KernelRecord]) -> Path:
    """Return a run of four points, of which one failed with a reason that is hard to print."""
    folder = RunFolder(tmp_path_factory.mktemp("stored") / "run")
    script = folder.path.parent / "study.py"
    script.write_text(SCENARIO)
    with pytest.MonkeyPatch.context() as monkeypatch:
        put_fake_engine(monkeypatch, make_kernel())
        assert main(["run", str(script), "--out", str(folder.path), "--jobs", "1"]) == 0
    row = folder.rows("points")[0]
    kept = {name: row[name] for name in ("point", *PATH_KNOBS, "engine", "seed", "kernel_release")}
    failed = {**kept, "status": "failed", "reason": "died: [/bold] [Errno 5] :smile: ☃\nand a second line"}
    folder.put_point(row["point"], {"points": [failed]}, {"reason": "died"})
    return folder.path


@pytest.fixture
def stored(stored_once: Path, tmp_path: Path) -> RunFolder:
    """Return a copy of that run."""
    shutil.copytree(stored_once, tmp_path / "run")
    return RunFolder(tmp_path / "run")


class TestRefusals:
    """Bad input is 2, a lacking machine 3; each with a line that says what and how to mend it."""

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["--set", "rmen=25MiB"], "'rmen' is not a knob of study; did you mean 'rmem'?"),
            (["--set", "rate=1gbps"], "rate: '1gbps' is ambiguous"),
            (["--set", "rate=1e400gbit"], "rate: '1e400gbit' is out of range"),
            (["--set", "rmem"], "--set 'rmem': write NAME=VALUE or NAME=VALUE,VALUE, such as rmem=25MiB,"),
            (["--set", "=25MiB"], "--set '=25MiB': write NAME=VALUE"),
            (["--set", "rmem=25MiB,,50MiB"], "--set 'rmem=25MiB,,50MiB': an empty value"),
            (["--set", "preset=gone"], "preset: 'gone' is not a preset of study; it has: hopeless"),
            (["--set", "preset=a,b"], "preset: 'a,b': one preset a run"),
            (["--set", "queue=100B"], "queue: '100B' is 100 bytes at rate=10mbit rtt=10ms, under one packet"),
            (["--kernel", "6.12,,6.1"], "--kernel 'kernel=6.12,,6.1': an empty value"),
            (["--kernel", "../x"], "kernel: '../x' is not the name of a kernel"),
            (["--jobs", "0"], "--jobs '0': a whole number of at least 1 is wanted, such as 1"),
            (["--jobs", "two"], "--jobs 'two': a whole number of at least 1 is wanted"),
            (["--repeat", "0"], "--repeat '0': a whole number of at least 1 is wanted"),
            (["--repeat", "99999999"], "--repeat '99999999': a whole number of at least 1"),
            (["--seed", "-1"], "--seed '-1': a whole number of at least 0 is wanted"),
            (["--seed", "9" * 30], "a whole number of at least 0 is wanted"),
            (["--engine", "imaginary"], "--engine 'imaginary': this version has virtual"),
            (["--wall-limit", "0"], "--wall-limit '0': a time above 0 is wanted, such as 30min"),
            (["--wall-limit=-1s"], "--wall-limit '-1s': a time above 0 is wanted"),
            (["--wall-limit", "5m"], "'5m' is ambiguous"),
            (["--format", "xml"], "invalid choice: 'xml'"),
            (["--frobnicate"], "unrecognized arguments: --frobnicate"),
        ],
    )
    def test_of_arguments(self, wanlab: Wanlab, words: list[str], message: str, tmp_path: Path) -> None:
        before = sorted(tmp_path.iterdir())
        said = wanlab("run", "study.py", *words)
        assert said.status == 2
        assert message in said.err
        assert said.out == ""
        assert sorted(tmp_path.iterdir()) == before

    @pytest.mark.parametrize(
        "words", [[], ["frobnicate"], ["run"], ["show"], ["predict"], ["kernel"], ["--what"]]
    )
    def test_of_commands(self, wanlab: Wanlab, words: list[str]) -> None:
        said = wanlab(*words)
        assert said.status == 2
        assert said.err.startswith("usage: wanlab")

    def test_of_a_missing_scenario(self, wanlab: Wanlab) -> None:
        said = wanlab("run", "gone.py")
        assert said.status == 2
        assert said.err == "wanlab: gone.py: cannot read the scenario: No such file or directory\n"

    def test_of_a_broken_scenario_lists_every_fault(self, wanlab: Wanlab) -> None:
        broken = REPOSITORY / "tests" / "golden_errors" / "many_faults.py"
        said = wanlab("run", str(broken))
        assert said.status == 2
        lines = said.err.splitlines()
        assert len(lines) == len(broken.with_suffix(".txt").read_text().splitlines())
        assert all(line.startswith("wanlab: ") for line in lines)

    def test_of_a_missing_kernel(self, wanlab: Wanlab, tmp_path: Path) -> None:
        said = wanlab("run", "study.py")
        assert said.status == 3
        assert said.err == "wanlab: kernel 6.12 is not built yet; `wanlab kernel build 6.12` builds it\n"
        assert not (tmp_path / "results").exists()

    @pytest.mark.usefixtures("engine")
    def test_of_an_out_that_is_something_else(self, wanlab: Wanlab, tmp_path: Path) -> None:
        (tmp_path / "precious").mkdir()
        (tmp_path / "precious" / "thesis.tex").write_text("...")
        said = wanlab("run", "study.py", "--out", "precious")
        assert said.status == 2
        assert said.err == "wanlab: precious: exists and is not a run; choose another --out\n"
        assert wanlab("run", "study.py", "--out", "precious", "--fresh").status == 2
        assert [file.name for file in (tmp_path / "precious").iterdir()] == ["thesis.tex"]

    def test_of_the_machine(self, wanlab: Wanlab, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuses(_: object) -> int:
            raise PermissionError(13, "Permission denied", "/secret")

        monkeypatch.setattr("lab.cli.show.run", refuses)
        said = wanlab("show", "run")
        assert said.status == 3
        assert said.err == "wanlab: this machine refuses: [Errno 13] Permission denied: '/secret'\n"


@pytest.mark.usefixtures("engine")
class TestRun:
    def test_runs_all_points_and_says_so(self, wanlab: Wanlab, tmp_path: Path) -> None:
        said = wanlab("run", "study.py", "--jobs", "1")
        assert said.status == 0
        assert "met: it fills (4 points)" in said.out
        assert "4 of 4 points done (4 ran now) in results/study" in said.out
        assert len(said.err.splitlines()) == 4
        assert len(RunFolder(tmp_path / "results" / "study").statuses()) == 4

    def test_again_runs_nothing(self, wanlab: Wanlab) -> None:
        wanlab("run", "study.py")
        said = wanlab("run", "study.py")
        assert said.status == 0
        assert "4 of 4 points are done already and kept" in said.err
        assert "4 of 4 points done (0 ran now)" in said.out

    def test_in_json(self, wanlab: Wanlab) -> None:
        words = ("--set", "rmem=1MiB", "--repeat", "3", "--seed", "5", "--format", "json")
        said = wanlab("run", "study.py", *words)
        assert said.err == ""
        report = json.loads(said.out)
        assert (report["points"], report["ran"], report["done"], report["failed"]) == (6, 6, 6, [])
        assert report["expectations"] == [{"text": "it fills", "status": "met", "points": 6, "failures": []}]
        assert (report["exit_status"], said.status) == (0, 0)

    def test_unmet_expectation_is_1(self, wanlab: Wanlab) -> None:
        said = wanlab("run", "study.py", "--set", "preset=hopeless")
        assert said.status == 1
        assert "failed: it flies (4 points)" in said.out
        assert "in results/study-hopeless" in said.out

    def test_failed_point_is_1_and_named(self, wanlab: Wanlab, monkeypatch: pytest.MonkeyPatch) -> None:
        def fails(*_: Any, **__: Any) -> None:
            raise EngineError("the kernel [/died]")

        monkeypatch.setattr("lab.engines.fake.FakeEngine.run", fails)
        said = wanlab("run", "study.py")
        assert said.status == 1
        assert said.out.count(": the kernel [/died]\n") == 4
        assert "not tried: it fills (0 points)" in said.out
        assert "0 of 4 points done (4 ran now)" in said.out

    def test_interrupt_is_130_and_keeps_what_is_done(
        self, wanlab: Wanlab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        fake = importlib.import_module("lab.engines.fake").FakeEngine
        real, runs = fake.run, []

        def interrupted(self: Any, *args: Any, **kwargs: Any) -> Any:
            runs.append(1)
            if len(runs) == 3:
                raise KeyboardInterrupt
            return real(self, *args, **kwargs)

        monkeypatch.setattr(fake, "run", interrupted)
        said = wanlab("run", "study.py", "--jobs", "1")
        assert said.status == 130
        assert said.err.splitlines()[-1] == (
            "wanlab: interrupted; points that were done are kept, run again to go on"
        )
        assert len(RunFolder(tmp_path / "results" / "study").statuses()) == 2
        assert "4 of 4 points done (2 ran now)" in wanlab("run", "study.py").out

    def test_folder_of_another_run_is_refused_and_fresh_takes_it(
        self, wanlab: Wanlab, tmp_path: Path
    ) -> None:
        wanlab("run", "study.py", "--out", "run")
        said = wanlab("run", "study.py", "--out", "run", "--set", "rtt=20ms")
        assert said.status == 2
        assert said.err.startswith("wanlab: run: holds another run (its settings differ); choose another")
        said = wanlab("run", "study.py", "--out", "run", "--set", "rtt=20ms", "--fresh")
        assert said.status == 0
        assert {row["rtt"] for row in RunFolder(tmp_path / "run").rows("points")} == {"20ms"}

    def test_fresh_takes_the_report_too_and_leaves_what_is_not_ours(
        self, wanlab: Wanlab, tmp_path: Path
    ) -> None:
        wanlab("run", "study.py", "--out", "run")
        for name in ("report.html", "notes.txt"):
            (tmp_path / "run" / name).write_text("of the run before")
        for _ in range(2):
            assert wanlab("run", "study.py", "--out", "run", "--fresh").status == 0
        assert not (tmp_path / "run" / "report.html").exists()
        assert (tmp_path / "run" / "notes.txt").exists()

    def test_damaged_manifest_is_mended_by_fresh(self, wanlab: Wanlab, tmp_path: Path) -> None:
        wanlab("run", "study.py", "--out", "run")
        (tmp_path / "run" / "manifest.json").write_text("{")
        assert wanlab("run", "study.py", "--out", "run").status == 2
        assert wanlab("run", "study.py", "--out", "run", "--fresh").status == 0

    def test_says_that_a_kernel_ignores_a_knob(self, wanlab: Wanlab) -> None:
        said = wanlab("run", "study.py", "--set", "adv_win_scale=2", "--set", "rmem=1MiB")
        assert (
            said.err.count("Note: adv_win_scale=2 has no effect: Linux 6.12 ignores tcp_adv_win_scale") == 1
        )


class TestShow:
    def test_of_no_run(self, wanlab: Wanlab, tmp_path: Path) -> None:
        for name in ("gone", "study.py", "."):
            said = wanlab("show", name)
            assert said.status == 2
            assert "not a run (it has no manifest.json)" in said.err
        assert sorted(file.name for file in tmp_path.iterdir()) == ["study.py"]

    def test_as_a_table(self, wanlab: Wanlab, stored: RunFolder) -> None:
        said = wanlab("show", str(stored.path))
        assert said.status == 0
        assert said.err == ""
        assert said.out.startswith(f"{stored.path}: 4 points, rate=10mbit rtt=10ms")
        assert said.out.count("9 Mbit/s") >= 3
        assert "died: [/bold] [Errno 5] :smile: ☃" in said.out
        assert "second line" not in said.out

    def test_as_csv(self, wanlab: Wanlab, stored: RunFolder) -> None:
        said = wanlab("show", str(stored.path), "--format", "csv")
        rows = list(csv.DictReader(io.StringIO(said.out)))
        assert list(rows[0]) == [column.name for column in schema.POINT_COLUMNS]
        assert sorted(row["status"] for row in rows) == ["done", "done", "done", "failed"]
        (failed,) = (row for row in rows if row["status"] == "failed")
        assert failed["goodput_bps"] == ""
        assert failed["reason"].endswith("\nand a second line")

    def test_as_json(self, wanlab: Wanlab, stored: RunFolder) -> None:
        rows = json.loads(wanlab("show", str(stored.path), "--format", "json").out)
        assert [row["point"] for row in rows] == [point["point"] for point in stored.manifest()["points"]]
        assert [row["goodput_bps"] is None for row in rows] == [row["status"] == "failed" for row in rows]
        assert [list(row) for row in rows] == [[column.name for column in schema.POINT_COLUMNS]] * 4

    @pytest.mark.parametrize(
        ("filters", "count"),
        [
            (["failed"], 1),
            (["done"], 3),
            (["rmem=25MiB"], 2),
            (["rmem=26214400B,50MiB"], 4),
            (["rmem=25MiB", "cc=bbr"], 1),
            (["rmem=25MiB", "rmem=50MiB"], 0),
            (["rate=10000kbit"], 4),
            (["mtu=1500"], 4),
        ],
    )
    def test_filters(self, wanlab: Wanlab, stored: RunFolder, filters: list[str], count: int) -> None:
        words = [word for text in filters for word in ("--points", text)]
        rows = json.loads(wanlab("show", str(stored.path), "--format", "json", *words).out)
        assert len(rows) == count
        table = wanlab("show", str(stored.path), *words)
        assert table.status == 0
        assert table.out.startswith(f"{stored.path}: {count or 'no'} point")

    def test_filter_by_identity(self, wanlab: Wanlab, stored: RunFolder) -> None:
        points = list(stored.statuses())
        said = wanlab("show", str(stored.path), "--format", "json", "--points", f"{points[1]}, {points[0]}")
        assert {row["point"] for row in json.loads(said.out)} == set(points[:2])

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("0000000000", "--points 0000000000: no such point in this run"),
            ("rmen=25MiB", "--points 'rmen=25MiB': 'rmen' is not a knob; the knobs are rate, rtt, "),
            ("rmem=25mb", "rmem: '25mb' is ambiguous"),
            ("rmem=", "--points 'rmem=': an empty value"),
            ("", "no such point"),
        ],
    )
    def test_filter_that_cannot_be(self, wanlab: Wanlab, stored: RunFolder, text: str, message: str) -> None:
        said = wanlab("show", str(stored.path), "--points", text)
        assert said.status == 2
        assert message in said.err
        assert said.out == ""

    def test_of_a_damaged_point_names_file_and_mend(self, wanlab: Wanlab, stored: RunFolder) -> None:
        file = next(stored.points_path.glob("*/point.parquet"))
        file.write_bytes(file.read_bytes()[:100])
        said = wanlab("show", str(stored.path))
        assert said.status == 2
        assert said.err.startswith(f"wanlab: {file}: cannot be read as Parquet (")

    def test_of_another_schema_version(self, wanlab: Wanlab, stored: RunFolder) -> None:
        stored.write_manifest({**stored.manifest(), "schema_version": 0})
        said = wanlab("show", str(stored.path))
        assert said.status == 2
        assert "written with schema version 0" in said.err

    def test_of_a_run_without_points(self, wanlab: Wanlab, stored: RunFolder) -> None:
        stored.write_manifest({**stored.manifest(), "points": []})
        said = wanlab("show", str(stored.path))
        assert (said.status, said.out) == (0, f"{stored.path}: no points\n")

    def test_of_a_prediction_of_nothing(self, wanlab: Wanlab, stored: RunFolder) -> None:
        row = next(row for row in stored.rows("points") if row["status"] == "done")
        stored.put_point(row["point"], {"points": [{**row, "predicted_goodput_bps": 0.0}]}, {})
        assert wanlab("show", str(stored.path)).status == 0


class TestPredict:
    PATH = ("--rate", "1gbit", "--rtt", "200ms")

    def test_in_json(self, wanlab: Wanlab) -> None:
        words = ("--rmem", "25MiB", "--wmem", "100MiB", "--kernel", "6.1", "--format", "json")
        said = wanlab("predict", *self.PATH, *words)
        assert said.status == 0
        found = json.loads(said.out)
        assert [found[name] for name in ("rate", "rtt", "rmem", "kernel")] == [
            "1gbit",
            "200ms",
            "25MiB",
            "6.1",
        ]
        assert found["bdp_bytes"] == 25e6
        assert found["window_bytes"] == pytest.approx(25 * 2**20 // 2, rel=1e-3)  # less one segment
        assert found["limit"] == found["steady_limit"] == "receive_window"
        assert found["predicted_goodput_bps"] == pytest.approx(
            found["bounds_bps"]["receive_window"], rel=0.01
        )
        assert found["predicted_goodput_bps"] == pytest.approx(524.3e6, rel=0.01)
        assert found["predicted_rtt_s"] == pytest.approx(0.2, rel=0.01)
        assert sum(found["predicted_shares"].values()) == pytest.approx(1)
        assert (found["next_limit"], found["margin"]) == ("link", pytest.approx(956.4 / 522, rel=0.01))
        assert 1 < found["ramp_s"] < 4
        assert found["sentence"].startswith("The receive window binds: 12.5 MiB of a BDP of 23.84 MiB")
        assert found["note"] is None

    def test_is_what_stands_beside_a_measurement(self, wanlab: Wanlab, make_point: MakePoint) -> None:
        """One road from knobs to the model: a stored point and `predict` say the same."""
        knobs = {"rate": "100mbit", "rtt": "80ms", "loss": "0.01%", "duration": "5s", "queue": "0.1bdp"}
        knobs |= {"rcvbuf": "100KB", "rmem_max": "1MiB", "sndbuf": "1MiB", "notsent_lowat": "64KiB"}
        knobs |= {"moderate_rcvbuf": "off", "tcp_mem": "64MiB", "app_win": "2", "wmem_max": "2MiB"}
        words = [word for name, text in knobs.items() for word in (f"--{name.replace('_', '-')}", text)]
        found = json.loads(wanlab("predict", *words, "--format", "json").out)
        made = predict(setting(make_point(**knobs), Release(6, 12)))
        assert found["predicted_goodput_bps"] == made.predicted_goodput_bps
        assert found["predicted_mean_goodput_bps"] == made.mean_goodput_bps
        assert found["sentence"] == made.sentence

    def test_of_the_long_run_has_no_mean(self, wanlab: Wanlab) -> None:
        found = json.loads(wanlab("predict", *self.PATH, "--format", "json").out)
        assert found["duration"] is found["predicted_mean_goodput_bps"] is None
        assert "mean goodput" not in wanlab("predict", *self.PATH).out

    @pytest.mark.parametrize(
        ("words", "row"), [(["--duration", "3s"], "of 3s"), (["--bytes", "1MiB"], "of 1MiB")]
    )
    def test_of_a_load_that_ends_has_its_mean(self, wanlab: Wanlab, words: list[str], row: str) -> None:
        assert f"mean goodput {row}" in wanlab("predict", *self.PATH, *words).out
        found = json.loads(wanlab("predict", *self.PATH, *words, "--format", "json").out)
        assert 0 < found["predicted_mean_goodput_bps"] <= found["predicted_goodput_bps"]

    def test_where_everything_is_lost(self, wanlab: Wanlab) -> None:
        said = wanlab("predict", *self.PATH, "--loss", "100%")
        assert said.status == 0
        assert "Loss binds: every packet is lost, so nothing arrives." in said.out
        found = json.loads(wanlab("predict", *self.PATH, "--loss", "100%", "--format", "json").out)
        assert (found["predicted_goodput_bps"], found["margin"]) == (0, None)

    def test_as_a_table(self, wanlab: Wanlab) -> None:
        said = wanlab("predict", *self.PATH)
        assert said.status == 0
        assert "<- binds" in said.out
        assert "The send buffer binds" in said.out
        rows = {line.split("  ")[0].strip() for line in said.out.splitlines()}
        assert rows >= {"steady goodput", "RTT under load", "ramp", "time limited by", "next limit"}

    def test_needs_no_kernel_whose_name_says_its_release(self, wanlab: Wanlab) -> None:
        assert wanlab("predict", *self.PATH, "--kernel", "6.1@1000").status == 0

    def test_of_a_kernel_whose_name_does_not(self, wanlab: Wanlab) -> None:
        said = wanlab("predict", *self.PATH, "--kernel", "mine")
        assert said.status == 3
        assert said.err.startswith("wanlab: kernel mine is not built yet")

    def test_says_that_a_kernel_ignores_a_knob(self, wanlab: Wanlab) -> None:
        said = wanlab("predict", *self.PATH, "--adv-win-scale", "2", "--format", "json")
        assert json.loads(said.out)["note"].startswith("Linux 6.12 ignores tcp_adv_win_scale")
        older = wanlab("predict", *self.PATH, "--adv-win-scale", "-2", "--kernel", "6.1")
        assert (older.status, "Note" in older.out) == (0, False)

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["--rate", "1gbps"], "rate: '1gbps' is ambiguous"),
            (["--rtt", "200"], "rtt: '200' has no unit"),
            (["--rtt", "0"], "rtt: '0' leaves nothing to predict"),
            (["--loss", "0.1"], "loss: '0.1': it may be a fraction or percent"),
            (["--flows", "0"], "flows: '0' leaves nothing to predict; give at least 1"),
            (["--rtt", "10ms+20ms"], "rtt: '10ms+20ms' lists 2 RTTs, and the model takes one; give one"),
            (["--cc", "bbr+cubic"], "cc: 'bbr+cubic' lists 2 congestion controls, and the model takes one"),
            (["--bytes", "1MB+1GB"], "bytes: '1MB+1GB' lists 2 sizes, and the model takes one; give one"),
            (["--loss", "ge:1%:10%"], "loss: 'ge:1%:10%:100%:0%' is no probability, and the model knows"),
            (["--loss", "list:5"], "loss: 'list:5' is no probability, and the model knows random loss alone"),
            (["--queue", "100B"], "queue: '100B' is 100 bytes at rate=1gbit rtt=200ms, under one packet"),
            (["--rtt", "1500ns"], "rtt: '1.5us' is not whole microseconds"),
            (["--rate", "1gbps", "--loss", "0.1"], "rate: '1gbps' is ambiguous"),
            (["--rate", "1gbps", "--loss", "0.1"], "loss: '0.1': it may be"),
            (["--rcvbuf", "0B"], "rcvbuf: '0B' is out of range"),
            (["--duration", "0"], "duration: '0' is out of range"),
            (["--kernel", "host"], "`host` is this machine's own kernel"),
            (["--qdisc", "fq"], "unrecognized arguments"),
        ],
    )
    def test_refusals(self, wanlab: Wanlab, words: list[str], message: str) -> None:
        said = wanlab("predict", *self.PATH, *words)
        assert said.status == 2
        assert message in said.err


class TestKernel:
    def test_list_of_an_empty_cache(self, wanlab: Wanlab) -> None:
        said = wanlab("kernel", "list")
        assert said.status == 0
        assert "no kernels yet; build the default one: wanlab kernel build 6.12" in said.out
        assert json.loads(wanlab("kernel", "list", "--format", "json").out) == []

    @pytest.mark.parametrize(
        "words", [["6.12", "--hz", "123"], ["6.12", "--hz", "x"], ["6.12", "--jobs", "0"], ["host"], ["a/b"]]
    )
    def test_build_of_what_cannot_be(self, wanlab: Wanlab, words: list[str]) -> None:
        said = wanlab("kernel", "build", *words)
        assert said.status == 2
        assert said.err.startswith("wanlab: ")


def test_version(wanlab: Wanlab) -> None:
    said = wanlab("--version")
    assert (said.status, said.out.split()[0]) == (0, "wanlab")


class TestImports:
    """What a start costs is what it imports."""

    HEAVY = frozenset({"plotly", "kaleido", "pandas", "polars", "duckdb", "jinja2", "mininet"})

    @staticmethod
    def imported_by(code: str) -> set[str]:
        probe = f"import sys\n{code}\nprint('\\nMODULES', *sorted(sys.modules))"
        done = subprocess.run(
            [sys.executable, "-c", probe], capture_output=True, text=True, check=True, cwd=REPOSITORY
        )
        return set(done.stdout.rpartition("MODULES ")[2].split())

    @staticmethod
    def command(*words: str) -> str:
        return f"from lab.cli import main\ntry:\n    main({list(words)!r})\nexcept SystemExit:\n    pass"

    def test_package_imports_nothing(self) -> None:
        assert {name for name in self.imported_by("import lab") if name.startswith("lab")} == {"lab"}

    @pytest.mark.parametrize("words", [["--help"], ["predict", "--rate", "1gbit", "--rtt", "1s"]])
    def test_light_commands_import_no_tables(self, words: list[str]) -> None:
        names = self.imported_by(self.command(*words))
        assert "lab.cli.main" in names
        assert not names & (self.HEAVY | {"pyarrow", "numpy", "lab.store"})

    def test_show_and_run_draw_nothing(self) -> None:
        for words in (["show", "gone"], ["run", "gone.py"]):
            assert not self.imported_by(self.command(*words)) & self.HEAVY

    def test_agent_imports_no_tables(self) -> None:
        """Inside a kernel every import is paid for by every point; Mininet itself is not here to import."""
        modules = ("agent.main", "agent.frames", "agent.netns", "qdisc", "netlink", "workloads.bulk")
        names = self.imported_by(f"import {', '.join(f'lab.{module}' for module in modules)}")
        assert not names & (self.HEAVY | {"pyarrow", "numpy", "rich", "hypothesis"})
