"""`wanlab show` and `wanlab why` on made-up runs: limits side by side, what is missing, what is refused."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lab.cli import output
from lab.store import FILES, RunFolder
from tests import made_up_run as made_up
from tests.said import Wanlab, wanlab_of


@pytest.fixture
def wanlab(capsys: pytest.CaptureFixture[str]) -> Wanlab:
    return wanlab_of(capsys)


@pytest.fixture
def small(tmp_path: Path) -> RunFolder:
    return made_up.small(tmp_path / "run")


def half_finished(path: Path) -> RunFolder:
    """Return a run of three points, of which one has run."""
    of = [made_up.point(rmem=rmem) for rmem in ("1MiB", "2MiB", "3MiB")]
    return made_up.store(path / "run", [(of[0], made_up.done(of[0])), (of[1], None), (of[2], None)])


def forget(folder: RunFolder, *columns: str) -> None:
    """Take columns from every row, as a version that did not have them would have left it."""
    for file in folder.points_path.glob(f"*/{FILES['points']}"):
        pq.write_table(pq.read_table(file).drop_columns(list(columns)), file)


class TestShow:
    def test_limits_stand_side_by_side(self, wanlab: Wanlab, small: RunFolder) -> None:
        said = wanlab("show", str(small.path))
        heads = next(line for line in said.out.splitlines() if "measured limit" in line)
        assert heads.index("predicted limit") < heads.index("measured limit")
        (row,) = [line for line in said.out.splitlines() if "256KiB" in line and "cubic" in line]
        assert row.split("%)")[1].split() == ["receive", "window", "receive", "window", "79", "%", "3"]
        assert all(len(line) <= 200 for line in said.out.splitlines())

    def test_failed_point_has_its_reason(self, wanlab: Wanlab, small: RunFolder) -> None:
        (row,) = [line for line in wanlab("show", str(small.path)).out.splitlines() if " failed " in line]
        assert row.rstrip().endswith("the emulated kernel died")

    def test_shares_are_an_object_in_json(self, wanlab: Wanlab, small: RunFolder) -> None:
        rows = json.loads(wanlab("show", str(small.path), "--format", "json").out)
        shares = rows[2]["limit_shares"]
        assert list(shares) == ["receive_window", "slow_start", "application"]
        assert sum(shares.values()) == pytest.approx(1)
        assert rows[-1]["limit_shares"] is None

    def test_shares_are_one_cell_in_csv(self, wanlab: Wanlab, small: RunFolder) -> None:
        rows = list(csv.DictReader(io.StringIO(wanlab("show", str(small.path), "--format", "csv").out)))
        assert rows[2]["limit_shares"] == "receive_window=0.792;slow_start=0.205;application=0.003"
        assert rows[-1]["limit_shares"] == ""

    def test_half_finished_run_says_what_is_missing(self, wanlab: Wanlab, tmp_path: Path) -> None:
        folder = half_finished(tmp_path)
        sentence = "2 of 3 points have not run yet; run the same command again to get them."
        said = wanlab("show", str(folder.path))
        assert said.out.splitlines()[-1] == sentence
        for form in ("json", "csv"):
            said = wanlab("show", str(folder.path), "--format", form)
            assert sentence not in said.out
            assert said.err.strip() == sentence

    def test_filter_does_not_make_points_missing(self, wanlab: Wanlab, small: RunFolder) -> None:
        said = wanlab("show", str(small.path), "--points", "cc=bbr")
        assert "have not run" not in said.out

    def test_run_without_any_point_says_both(self, wanlab: Wanlab, tmp_path: Path) -> None:
        folder = made_up.store(tmp_path / "run", [(made_up.point(), None)])
        assert wanlab("show", str(folder.path)).out.splitlines() == [
            f"{folder.path}: no points",
            "1 of 1 points have not run yet; run the same command again to get them.",
        ]

    def test_columns_that_an_older_version_did_not_have(self, wanlab: Wanlab, small: RunFolder) -> None:
        forget(small, "limit_measured", "limit_shares", "predicted_shares", "limit_predicted", "verdict")
        forget(small, "tcp_mem", "rmem_max", "note", "wall_s", "retransmits", "predicted_goodput_bps")
        for words in ((), ("--format", "json"), ("--format", "csv"), ("--points", "tcp_mem=ample")):
            assert wanlab("show", str(small.path), *words).status == 0
        assert wanlab("why", str(small.path)).status == 0


class TestWhy:
    def test_prints_every_point_with_what_tells_it_apart(self, wanlab: Wanlab, small: RunFolder) -> None:
        said = wanlab("why", str(small.path))
        assert said.status == 0
        rows = small.rows("points")
        assert len(rows) == 8
        for row in rows:
            assert f"{row['point']} rmem={row['rmem']} cc={row['cc']}\n" in said.out
        assert said.out.count("Predicted: ") == said.out.count("Measured: ") == 7
        assert said.out.count("Failed: the emulated kernel died") == 1

    def test_of_one_point(self, wanlab: Wanlab, small: RunFolder) -> None:
        row = next(row for row in small.rows("points") if row["rmem"] == "256KiB" and row["cc"] == "cubic")
        lines = [
            line.rstrip()
            for line in wanlab("why", str(small.path), row["point"]).out.splitlines()
            if line.strip()
        ]
        assert lines[0] == f"{row['point']} rmem=256KiB cc=cubic"
        assert lines[1].startswith("Steady goodput ")
        assert lines[1].endswith("(-1.0 %).")
        assert lines[2] == f"Predicted: {row['prediction']}"
        assert lines[3] == f"Measured: {row['verdict']}"
        table = [line.split() for line in lines[4:]]
        assert table[0] == ["limit", "predicted", "measured"]
        assert table[2][:2] == ["receive", "window"]
        assert table[2][-2:] == ["79", "%"]

    def test_in_json(self, wanlab: Wanlab, small: RunFolder) -> None:
        names = [row["point"] for row in small.rows("points") if row["status"] == "done"][:2]
        found = json.loads(wanlab("why", str(small.path), names[1], names[0], "--format", "json").out)
        assert [one["point"] for one in found] == [names[1], names[0]]
        assert set(found[0]["knobs"]) == {"rmem", "cc"}
        assert sum(found[0]["limit_shares"].values()) == pytest.approx(1)
        assert {"prediction", "verdict", "next_limit", "margin", "predicted_shares"} <= found[0].keys()

    def test_run_of_one_point_says_what_it_is(self, wanlab: Wanlab, tmp_path: Path) -> None:
        one = made_up.point()
        folder = made_up.store(tmp_path / "run", [(one, made_up.done(one, margin=float("inf")))])
        said = wanlab("why", str(folder.path))
        assert said.out.startswith(f"{one.id} rate=1gbit rtt=200ms kernel=6.12 cc=cubic\n")
        assert json.loads(wanlab("why", str(folder.path), "--format", "json").out)[0]["margin"] is None

    @pytest.mark.parametrize("form", ["table", "json"])
    def test_unknown_point_is_one_sentence(self, wanlab: Wanlab, small: RunFolder, form: str) -> None:
        known = small.rows("points")[0]["point"]
        said = wanlab("why", str(small.path), known, "0123456789", "--format", form)
        assert said.status == 2
        assert said.out == ""
        assert said.err == (
            f"wanlab: {small.path}: has no point 0123456789; `wanlab show {small.path}` lists its points\n"
        )

    def test_point_that_has_not_run(self, wanlab: Wanlab, tmp_path: Path) -> None:
        folder = half_finished(tmp_path)
        name = folder.manifest()["points"][1]["point"]
        said = wanlab("why", str(folder.path), name)
        assert said.status == 2
        assert f"point {name} has not run yet" in said.err

    def test_half_finished_run_says_what_is_missing(self, wanlab: Wanlab, tmp_path: Path) -> None:
        said = wanlab("why", str(half_finished(tmp_path).path))
        assert said.out.splitlines()[-1].startswith("2 of 3 points have not run yet")

    def test_of_no_run(self, wanlab: Wanlab, tmp_path: Path) -> None:
        said = wanlab("why", str(tmp_path))
        assert said.status == 2
        assert "not a run" in said.err


@pytest.mark.parametrize(
    ("shares", "text"),
    [
        ({}, ""),
        ({"link": 1.0}, "link=1.000"),
        ({"slow_start": 0.07, "receive_window": 0.93}, "receive_window=0.930;slow_start=0.070"),
    ],
)
def test_shares_as_text(shares: dict[str, float], text: str) -> None:
    assert output.shares_text(shares) == text
