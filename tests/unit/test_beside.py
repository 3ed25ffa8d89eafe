"""The page that lays two runs over each other: its figures, its tables, its words; nothing fetched."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.report import beside, stored, style
from lab.report.beside import Member, Pair
from lab.store import RunFolder
from tests import made_up_run as made_up
from tests import measured_run as measured
from tests.said import Said, wanlab_of

KNOBS = {"rate": "50mbit", "rtt": "20ms", "duration": "8s"}


@pytest.fixture
def compare(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    return wanlab_of(capsys, "compare")


def one(path: Path, seeds: tuple[int, ...] = (1,), rows: Any = None, **changes: Any) -> RunFolder:
    """Write a run of one setting; rows: other samples."""
    tables = []
    for seed in seeds:
        of = measured.point(seed, "virtual", **KNOBS)
        its = measured.tables(of, digest=f"{path.name}{seed}", **changes)
        tables.append((of, {**its, "samples": rows} if rows is not None else its))
    return measured.store(path, tables)


def member(folder: RunFolder, name: str, seed: int = 1) -> Member:
    run = stored.read(folder)
    return Member(name, run, next(entry for entry in run.entries if entry.seed == seed))


def drawn(tmp_path: Path, a: RunFolder | None = None, b: RunFolder | None = None) -> beside.Drawn:
    a, b = a or one(tmp_path / "real"), b or one(tmp_path / "twin", goodput_bps=40e6)
    found = beside.draw(Pair("the only setting", (member(a, "real"), member(b, "twin"))))
    assert found is not None
    return found


def named(found: beside.Drawn) -> dict[str, Any]:
    """Return the lines of a figure by panel and name."""
    return {f"{trace.yaxis} {trace.name}": trace for trace in found.figure.data}


class TestFigure:
    def test_has_three_panels_with_both_runs_in_each(self, tmp_path: Path) -> None:
        lines = named(drawn(tmp_path))
        assert set(lines) >= {
            *("y real", "y twin", "y2 real", "y2 twin"),
            *("y3 real cwnd", "y3 twin cwnd", "y3 real receive window", "y3 twin receive window"),
        }
        colours = {name: line.line.color for name, line in lines.items()}
        assert colours["y real"] == colours["y2 real"] == colours["y3 real cwnd"] == style.BLUE
        assert colours["y twin"] == colours["y2 twin"] == colours["y3 twin cwnd"] == style.VERMILLION

    def test_shows_what_was_recorded(self, tmp_path: Path) -> None:
        lines = named(drawn(tmp_path))
        assert np.nanmax(lines["y real"].y) == pytest.approx(46, rel=0.01)
        assert np.nanmax(lines["y twin"].y) == pytest.approx(40, rel=0.01)
        assert np.nanmax(lines["y2 twin"].y) == pytest.approx(30, rel=0.001)
        assert np.nanmax(lines["y3 real cwnd"].y) == pytest.approx(100 * made_up.MSS / 1024, rel=0.001)

    def test_axes_say_what_and_in_which_unit(self, tmp_path: Path) -> None:
        layout = drawn(tmp_path).figure.layout
        titles = [layout[name].title.text for name in ("yaxis", "yaxis2", "yaxis3", "xaxis")]
        assert titles == [
            "Goodput (Mbit/s)",
            "Smoothed RTT (ms)",
            "Windows (KiB)",
            "Time from the start of the load (s)",
        ]

    def test_predictions_are_lines_and_one_where_they_agree(self, tmp_path: Path) -> None:
        same = [name for name in named(drawn(tmp_path)) if "predicted" in name]
        assert len(same) == 1
        other = one(tmp_path / "other", predicted_goodput_bps=30e6)
        lines = named(drawn(tmp_path, b=other))
        assert lines["y twin predicted 30"].line.dash == "dash"
        assert {line.line.color for name, line in lines.items() if "predicted" in name} == {
            style.BLUE,
            style.VERMILLION,
        }
        without = one(tmp_path / "without", predicted_goodput_bps=None)
        assert len([name for name in named(drawn(tmp_path, without, without)) if "predicted" in name]) == 0

    def test_a_large_receive_window_does_not_flatten_the_others(self, tmp_path: Path) -> None:
        found = drawn(tmp_path)  # 1 MiB beside a cwnd of 141 KiB
        low, high = found.figure.layout.yaxis3.range
        assert (low, high) == (0, pytest.approx(1.3 * 100 * made_up.MSS / 1024))
        assert "Receive windows go on above, up to 1 MiB." in found.caption

    def test_several_flows_are_drawn_as_one(self, tmp_path: Path) -> None:
        of = measured.point(1, "virtual", **KNOBS, flows="2")
        its = measured.tables(of)
        second = [{**row, "flow": 1} for row in its["samples"]]
        tables = {**its, "samples": [*its["samples"], *second]}
        tables["flows"] = [*its["flows"], {**its["flows"][0], "flow": 1}]
        folder = measured.store(tmp_path / "real", [(of, tables)])
        found = drawn(tmp_path, a=folder)
        assert np.nanmax(named(found)["y real"].y) == pytest.approx(92, rel=0.01)
        assert "drawn as one" in found.caption

    def test_several_controls_have_a_line_each(self, tmp_path: Path) -> None:
        of = measured.point(1, "virtual", **KNOBS, flows="2", cc="bbr+cubic")
        its = measured.tables(of)
        rows = [
            {**row, "flow": n, "cc": cc} for n, cc in enumerate(("bbr", "cubic")) for row in its["samples"]
        ]
        flows = [{**its["flows"][0], "flow": n, "cc": cc} for n, cc in enumerate(("bbr", "cubic"))]
        folder = measured.store(tmp_path / "real", [(of, {**its, "samples": rows, "flows": flows})])
        lines = named(drawn(tmp_path, a=folder))
        own = [line for name, line in lines.items() if name.startswith("y real (1")]
        assert len(own) == 2
        assert {line.line.color for line in own} == {style.BLUE}
        assert len({line.line.dash for line in own}) == 2

    def test_one_without_samples_leaves_the_other(self, tmp_path: Path) -> None:
        found = drawn(tmp_path, b=one(tmp_path / "bare", rows=[]))
        assert not [name for name in named(found) if "twin" in name.split()]
        assert "No samples of twin can be read." in found.caption

    def test_without_any_samples_there_is_none(self, tmp_path: Path) -> None:
        folder = one(tmp_path / "bare", rows=[])
        assert beside.draw(Pair("x", (member(folder, "a"), member(folder, "b")))) is None

    def test_long_names_are_cut_at_their_beginning(self, tmp_path: Path) -> None:
        folder, name = one(tmp_path / "real"), "/a/very/long/place/where/results/are/kept/real"
        found = beside.draw(Pair("x", (member(folder, name), member(folder, "b"))))
        assert found is not None
        (cut,) = {trace.name for trace in found.figure.data if trace.name.startswith("…")} & {
            trace.name for trace in found.figure.data if trace.yaxis == "y2"
        }
        assert cut.endswith("/kept/real")
        assert len(cut) == 28


class TestPage:
    @pytest.fixture
    def page(self, tmp_path: Path, compare: Callable[..., Said]) -> str:
        a = one(tmp_path / "real")
        b = one(tmp_path / "<b>twin", goodput_bps=36e6, measured_rate_bps=40e6, limit_shares={"link": 1.0})
        file = tmp_path / "page.html"
        said = compare(a.path, b.path, "--html", file)
        assert said.status == 0, said.err
        assert said.out.splitlines()[-1] == str(file)
        return file.read_text(encoding="utf-8")

    def test_needs_nothing_else(self, page: str) -> None:
        policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
        assert policy is not None
        assert "default-src 'none'" in policy[1]
        own = page.replace("\\/", "/").split("<script>")[0]
        assert not re.findall(r"""(?:src|href)=["']?(?!#)""", own)

    def test_what_comes_from_a_run_is_text(self, page: str) -> None:
        assert "<b>twin" not in page
        assert "&lt;b&gt;twin" in page

    def test_says_the_likely_cause_under_the_difference_and_over_the_figure(self, page: str) -> None:
        sentence = "The rate is 40 Mbit/s in &lt;b&gt;twin and 50 Mbit/s in real: a slower link."
        assert f'<td class="said" colspan="5">{sentence}</td>' in page
        assert re.search(rf"<li>goodput_bps -21.7 %: {re.escape(sentence)}</li>", page)

    def test_figures_are_inside(self, page: str) -> None:
        held = re.search(r'id="figures-data">(.*?)</script>', page)
        assert held is not None
        (figure,) = json.loads(held[1])
        assert len(figure["data"]) >= 8
        assert "narrow" in figure

    def test_the_command_comes_with_it(self, tmp_path: Path, compare: Callable[..., Said]) -> None:
        a, b = one(tmp_path / "a"), one(tmp_path / "b")
        file = tmp_path / "page.html"
        words = [
            a.path,
            b.path,
            "--column",
            "goodput",
            "--tolerance=-5%",
            "--points",
            "rtt=20ms",
            "--html",
            file,
        ]
        assert compare(*words).status == 0
        text = file.read_text()
        for word in ("--column goodput", "--tolerance=-5%", "--points rtt=20ms"):
            assert word in text

    def test_of_many_pairs_some_are_drawn(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(beside, "MOST_PAIRS", 2)
        folder = one(tmp_path / "real")
        pairs = [Pair(f"pair {n}", (member(folder, "a"), member(folder, "b"))) for n in range(5)]
        empty = beside.Cells((), ())
        text = beside.render(beside.Text("t", (), (), empty, empty, "c"), pairs)
        assert "2 of 5 pairs are drawn here" in text
        assert "<h3>pair 0</h3>" in text
        assert "<h3>pair 1</h3>" not in text

    def test_repetitions_show_the_first_that_both_have(
        self, tmp_path: Path, compare: Callable[..., Said]
    ) -> None:
        a, b = one(tmp_path / "a", seeds=(1, 2, 3)), one(tmp_path / "b", seeds=(2, 3))
        file = tmp_path / "page.html"
        assert compare(a.path, b.path, "--html", file).status == 0
        assert "Drawn is seed 2." in file.read_text()

    @pytest.mark.parametrize("form", ["json", "csv"])
    def test_other_forms_stay_what_they_are(
        self, tmp_path: Path, compare: Callable[..., Said], form: str
    ) -> None:
        a, b = one(tmp_path / "a"), one(tmp_path / "b")
        file = tmp_path / "page.html"
        words = (a.path, b.path, "--format", form)
        assert compare(*words, "--html", file).out == compare(*words).out
        assert file.exists()

    def test_a_place_that_cannot_be_written(self, tmp_path: Path, compare: Callable[..., Said]) -> None:
        a = one(tmp_path / "a")
        said = compare(a.path, a.path, "--html", tmp_path / "no" / "such" / "page.html")
        assert said.status == 2
        assert "cannot be written (No such file or directory); name another file for --html" in said.err
        assert not list(tmp_path.glob(".*"))

    def test_runs_without_anything_done(self, tmp_path: Path, compare: Callable[..., Said]) -> None:
        of = made_up.point()
        runs = [made_up.store(tmp_path / name, [(of, made_up.failed(of, "no"))]) for name in "ab"]
        file = tmp_path / "page.html"
        assert compare(*(run.path for run in runs), "--html", file).status == 0
        assert "there is nothing to draw" in file.read_text()
