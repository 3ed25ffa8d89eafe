"""Which settings go together: twins with their originals, engines with each other; what is said of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lab import apart, matching
from lab import compare as compare_module
from lab.cli.compare import read
from lab.combination import Point
from lab.store import RunFolder
from lab.twin.records import FIXED
from tests import made_up_run as made_up
from tests import measured_run as measured
from tests.said import Wanlab, wanlab_of


@pytest.fixture
def wanlab(capsys: pytest.CaptureFixture[str]) -> Wanlab:
    return wanlab_of(capsys, "compare")


BEGAN = "2026-01-01T00:00:00+00:00"
REAL = {"duration": "8s", "kernel": "host"}
TWIN = {"duration": "8s", "kernel": "6.1", "rate": "50mbit", "queue": "58KiB"}


def run(path: Path, points: Mapping[Point, Mapping[str, Any]], **manifest: Any) -> RunFolder:
    """Write a run of points, each with changes of its row."""
    tables = [(of, measured.tables(of, **changes)) for of, changes in points.items()]
    return measured.store(path, tables, **manifest)


def real(path: Path, **by_rtt: float) -> RunFolder:
    """Write a run over real links; by_rtt: {"ms20": goodput in Mbit/s}."""
    points = {
        measured.point(rtt=f"{name[2:]}ms", **REAL): {"goodput_bps": goodput * 1e6, "digest": f"real{name}"}
        for name, goodput in by_rtt.items()
    }
    return run(path, points, engine="remote", began=BEGAN)


def twin(path: Path, original: RunFolder, **changes: Any) -> RunFolder:
    """Write the run of a twin whose RTTs lie a little over those of its original."""
    ids = {str(one["knobs"]["rtt"]): str(one["point"]) for one in original.manifest()["points"]}
    points: dict[Point, dict[str, Any]] = {}
    told = {}
    for rtt, identity in ids.items():
        own = f"{float(rtt.removesuffix('ms')) + 0.08:.2f}ms"
        of = measured.point(1, "virtual", rtt=own, **TWIN)
        points[of] = {"goodput_bps": 44e6, "kernel_release": "6.1.192", "digest": f"twin{rtt}", **changes}
        told[identity] = {"rtt": own}
    twin_of = {"run": "results/real", "engine": "remote", "began": BEGAN, "points": told}
    return run(path, points, engine="virtual", twin_of=twin_of, scenario="path_twin")


class TestTwins:
    def test_go_with_their_originals_without_a_word(self, wanlab: Wanlab, tmp_path: Path) -> None:
        a = real(tmp_path / "real", ms20=46, ms30=30)
        b = twin(tmp_path / "twin", a)
        for folders in ((a, b), (b, a)):
            found = json.loads(wanlab(*(one.path for one in folders), "--format", "json").out)
            assert [one["changed"]["rtt"] for one in found["comparisons"]] == (
                ["20.08ms", "30.08ms"] if folders[0] is a else ["20ms", "30ms"]
            )
            assert found["alone"] == []
            assert set(found["across"]) == set(FIXED)

    def test_each_original_has_its_own_though_others_are_nearer(self, tmp_path: Path) -> None:
        """20.08 ms stands for 20 ms, and 20.1 ms, which differs in as few knobs, for itself."""
        a = real(tmp_path / "real", **{"ms20": 46, "ms20.1": 30})
        sides = read([a.path, twin(tmp_path / "twin", a).path])
        found = compare_module.compare(sides, ["goodput_bps"], across=None)
        pairs = [(one.baseline.knobs["rtt"], one.other.knobs["rtt"]) for one in found.comparisons]
        assert pairs == [("20ms", "20.08ms"), ("20.1ms", "20.18ms")]

    def test_a_chosen_across_is_what_may_differ(self, wanlab: Wanlab, tmp_path: Path) -> None:
        a = real(tmp_path / "real", ms20=46)
        b = twin(tmp_path / "twin", a)
        said = wanlab(a.path, b.path, "--across", "kernel")
        assert said.status == 2
        assert "they differ in rate" in said.err

    def test_a_twin_of_another_run_goes_with_nothing(self, wanlab: Wanlab, tmp_path: Path) -> None:
        a = real(tmp_path / "real", ms20=46, ms30=30)
        b = twin(tmp_path / "twin", a)
        told = b.manifest()
        b.write_manifest(
            {**told, "engine": "remote", "twin_of": {**told["twin_of"], "began": "another time"}}
        )
        said = wanlab(a.path, b.path)
        assert said.status == 2
        assert "no point in common" in said.err

    def test_what_a_twin_was_swept_over_besides_stands_beside_the_same_original(self, tmp_path: Path) -> None:
        a = real(tmp_path / "real", ms20=46)
        (identity,) = (str(one["point"]) for one in a.manifest()["points"])
        points = {
            measured.point(1, "virtual", **{**TWIN, "rtt": "20.08ms", "kernel": kernel}): {
                "goodput_bps": 44e6
            }
            for kernel in ("6.1", "6.12")
        }
        twin_of = {
            "run": "real",
            "engine": "remote",
            "began": BEGAN,
            "points": {identity: {"rtt": "20.08ms"}},
        }
        b = run(tmp_path / "twin", points, engine="virtual", twin_of=twin_of)
        found = compare_module.compare(read([a.path, b.path]), ["goodput_bps"], across=None)
        assert [one.other.knobs["kernel"] for one in found.comparisons] == ["6.1", "6.12"]


class TestEngines:
    def test_a_path_of_real_links_is_what_it_is(self, tmp_path: Path) -> None:
        a = real(tmp_path / "a", **{"ms31.4": 46})
        b = run(
            tmp_path / "b", {measured.point(1, "virtual", rtt="30ms", duration="8s"): {}}, engine="virtual"
        )
        found = compare_module.compare(read([a.path, b.path]), ["goodput_bps"], across=None)
        assert len(found.comparisons) == 1
        assert {"kernel", "rtt"} <= set(found.comparisons[0].changed) <= set(found.across)

    def test_knobs_of_several_values_are_not_mixed_up(self, tmp_path: Path) -> None:
        a = real(tmp_path / "a", ms20=46, ms40=30)
        points = {measured.point(1, "virtual", rtt=rtt, duration="8s"): {} for rtt in ("20ms", "60ms")}
        b = run(tmp_path / "b", points, engine="virtual")
        sides = read([a.path, b.path])
        assert "rtt" not in matching.may_differ(*sides)
        found = compare_module.compare(sides, ["goodput_bps"], across=None)
        assert [one.other.knobs["rtt"] for one in found.comparisons] == ["20ms"]

    def test_engines_whose_paths_are_built_have_equal_knobs(self, wanlab: Wanlab, tmp_path: Path) -> None:
        a = run(tmp_path / "a", {measured.point(1, "realtime", rtt="10ms", **REAL): {}}, engine="realtime")
        b = run(
            tmp_path / "b", {measured.point(1, "virtual", rtt="20ms", duration="8s"): {}}, engine="virtual"
        )
        said = wanlab(a.path, b.path)
        assert said.status == 2
        assert "they differ in rtt (10ms; 20ms)" in said.err

    def test_how_far_they_are_apart_is_said(self, wanlab: Wanlab, tmp_path: Path) -> None:
        a = real(tmp_path / "real", ms20=40, ms30=40, ms40=40)
        b = twin(tmp_path / "twin", a, goodput_bps=44e6)
        said = wanlab(a.path, b.path)
        assert (
            "real (remote) and twin (virtual) over 3 settings: goodput is 10 % apart in the median and 10 %"
            " at most (rtt=20.08ms); the RTT under load is the same.\n" in said.out
        )
        found = json.loads(wanlab(a.path, b.path, "--format", "json").out)
        assert found["engines"] == [
            line for line in said.out.splitlines() if line.startswith("real (remote)")
        ]

    def test_one_setting_has_no_median(self, tmp_path: Path) -> None:
        a = real(tmp_path / "real", ms20=40)
        found = compare_module.compare(
            read([a.path, twin(tmp_path / "twin", a, loaded_rtt_s=None).path]), ["retransmits"], across=None
        )
        assert apart.engines(found) == [
            "real (remote) and twin (virtual) over one setting: goodput is 10 % apart."
        ]

    def test_of_one_engine_nothing_is_said(self, tmp_path: Path) -> None:
        runs = [real(tmp_path / name, ms20=40) for name in "ab"]
        found = compare_module.compare(read([one.path for one in runs]), ["goodput_bps"], across=None)
        assert apart.engines(found) == []


class TestCauses:
    def test_one_repetition_counts_from_a_threshold_on(self, wanlab: Wanlab, tmp_path: Path) -> None:
        a = real(tmp_path / "real", ms20=46)
        near = twin(tmp_path / "near", a, goodput_bps=44e6, steady_goodput_bps=46e6)
        assert "Likely causes" not in wanlab(a.path, near.path).out
        far = twin(tmp_path / "far", a, goodput_bps=36e6, measured_rate_bps=40e6, limit_shares={"link": 1.0})
        said = wanlab(a.path, far.path)
        assert (
            "Likely causes of what is more than chance and 1 %, or of one repetition more than 5 %:"
            in said.out
        )
        assert (
            "the only setting: goodput_bps -21.7 %: The rate is 40 Mbit/s in far and 50 Mbit/s in real:"
            " a slower link.\n" in said.out
        )

    def test_json_has_all_of_them_by_column(self, wanlab: Wanlab, tmp_path: Path) -> None:
        a = real(tmp_path / "real", ms20=46)
        far = twin(tmp_path / "far", a, goodput_bps=36e6, measured_rate_bps=40e6, limit_shares={"link": 1.0})
        (one,) = json.loads(wanlab(a.path, far.path, "--format", "json").out)["comparisons"]
        (cause, *_) = one["columns"]["goodput_bps"]["causes"]
        assert cause["rule"] == "rate"
        assert 0.5 < cause["share"] <= 1
        assert one["columns"]["retransmits"]["causes"] is None

    def test_nothing_found_is_said(self, wanlab: Wanlab, tmp_path: Path) -> None:
        a, b = (
            made_up.store(
                tmp_path / name,
                [(of, made_up.done(of, goodput_bps=goodput, digest=name)) for of in [made_up.point()]],
            )
            for name, goodput in (("a", 90e6), ("b", 45e6))
        )
        assert "goodput_bps -50 %: No cause found in what was recorded.\n" in wanlab(a.path, b.path).out

    def test_repetitions_that_chance_explains_have_none(self, wanlab: Wanlab, tmp_path: Path) -> None:
        values = {"a": (90, 80, 100), "b": (85, 98, 74)}
        runs = [
            made_up.store(
                tmp_path / name,
                [
                    (of := made_up.point(seed), made_up.done(of, goodput_bps=v * 1e6, digest=f"{name}{v}"))
                    for seed, v in enumerate(goodputs, 1)
                ],
            )
            for name, goodputs in values.items()
        ]
        assert "Likely causes" not in wanlab(*(one.path for one in runs), "--column", "goodput").out

    def test_certain_and_tiny_differences_are_left_alone(self, wanlab: Wanlab, tmp_path: Path) -> None:
        runs = [
            made_up.store(
                tmp_path / name,
                [
                    (of := made_up.point(seed), made_up.done(of, goodput_bps=v, digest=f"{name}{seed}"))
                    for seed in (1, 2, 3)
                ],
            )
            for name, v in (("a", 90e6), ("b", 90.5e6))
        ]
        assert "Likely causes" not in wanlab(*(one.path for one in runs), "--column", "goodput").out

    def test_samples_that_cannot_be_read_do_not_matter(self, wanlab: Wanlab, tmp_path: Path) -> None:
        a = real(tmp_path / "real", ms20=46)
        far = twin(tmp_path / "far", a, goodput_bps=36e6, measured_rate_bps=40e6, limit_shares={"link": 1.0})
        for file in (*a.points_path.glob("*/samples.parquet"), *far.points_path.glob("*/samples.parquet")):
            file.write_bytes(b"PAR1")
        assert "a slower link" in wanlab(a.path, far.path).out
