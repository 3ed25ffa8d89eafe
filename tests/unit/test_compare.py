"""`wanlab compare` on made-up runs: what is matched, what differs, which exit status a tolerance gives."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import compare as compare_module
from lab import matching, provenance
from lab.cli.compare import read
from lab.combination import Point
from lab.errors import UserError
from lab.store import RunFolder
from tests import made_up_run as made_up
from tests.said import Said, Wanlab, wanlab_of

Maker = Callable[..., RunFolder]
Setting = tuple[Point, Any]


@pytest.fixture
def wanlab(capsys: pytest.CaptureFixture[str]) -> Wanlab:
    return wanlab_of(capsys, "compare")


def kernel(name: str, **changes: Any) -> dict[str, Any]:
    record = {"release": made_up.KERNELS[name], "hz": 250, "recipe_hash": "ab" * 32, "config_hash": "ef" * 32}
    return {name: {**record, **changes}}


@pytest.fixture
def store(tmp_path: Path) -> Maker:
    """Return a maker of runs of (point, goodput in Mbit/s); None: it failed; ...: it has not run."""

    def build(name: str, points: Sequence[Setting], **manifest: Any) -> RunFolder:
        tables = []
        for of, goodput in points:
            if goodput is None:
                tables.append((of, made_up.failed(of, "the kernel died\nhere")))
            elif goodput is ...:
                tables.append((of, None))
            else:
                row = {"goodput_bps": goodput * 1e6, "digest": f"{name}{of.id}{goodput}"}
                tables.append((of, made_up.done(of, **row)))
        kernels = {k: v for of, _ in points for k, v in kernel(of.knobs["kernel"]).items()}
        return made_up.store(tmp_path / name, tables, **{"kernels": kernels, **manifest})

    return build


def seeds(values: Sequence[Any], **knobs: str) -> list[Setting]:
    """Return (point, goodput) of repetitions, seeds from 1."""
    return [(made_up.point(seed, **knobs), value) for seed, value in enumerate(values, 1)]


def cells(said: Said, column: str = "goodput_bps") -> list[list[str]]:
    """Return the words of the lines on a column in the table."""
    table = said.out.partition("Likely causes")[0]
    return [line.split() for line in table.splitlines() if column in line.split()]


class TestMatching:
    def test_kernels_may_differ(self, wanlab: Wanlab, store: Maker) -> None:
        a = store("a", [*seeds([90], rtt="10ms"), *seeds([80], rtt="20ms")])
        b = store("b", [*seeds([88], rtt="20ms", kernel="6.1"), *seeds([45], rtt="10ms", kernel="6.1")])
        said = wanlab(a.path, b.path, "--column", "goodput")
        assert said.status == 0
        assert [" ".join(words) for words in cells(said)] == [
            "10ms goodput_bps 90 Mbit/s 45 Mbit/s -50 % exact",
            "20ms goodput_bps 80 Mbit/s 88 Mbit/s +10 % exact",
        ]

    def test_the_same_kernel_stands_beside_itself_where_both_have_it(
        self, wanlab: Wanlab, store: Maker
    ) -> None:
        both = [seeds([90], kernel=name) for name in ("6.12", "6.1")]
        a = store("a", [*both[0], *both[1]])
        b = store("b", [(of, value + 1) for one in both for of, value in one])
        found = json.loads(wanlab(a.path, b.path, "--format", "json").out)
        assert [(one["knobs"], one["changed"]) for one in found["comparisons"]] == [
            ({"kernel": "6.12"}, {}),
            ({"kernel": "6.1"}, {}),
        ]

    def test_another_kernel_stands_beside_every_one_of_the_baseline(
        self, wanlab: Wanlab, store: Maker
    ) -> None:
        a = store("a", seeds([90], kernel="6.12"))
        b = store("b", [*seeds([91], kernel="6.12"), *seeds([70], kernel="6.1")])
        found = json.loads(wanlab(a.path, b.path, "--format", "json").out)
        assert [one["changed"] for one in found["comparisons"]] == [{}, {"kernel": "6.1"}]
        assert found["alone"] == []
        back = json.loads(wanlab(b.path, a.path, "--format", "json").out)
        assert [one["changed"] for one in back["comparisons"]] == [{}]
        assert back["alone"] == [{"run": 0, "without": 1, "knobs": {"kernel": "6.1"}}]

    def test_other_knobs_differ_where_they_may(self, wanlab: Wanlab, store: Maker) -> None:
        a = store("a", [*seeds([90], cc="bbr", rtt="10ms"), *seeds([80], cc="bbr", rtt="20ms")])
        b = store("b", [*seeds([99], cc="cubic", rtt="10ms"), *seeds([88], cc="cubic", rtt="20ms")])
        refused = wanlab(a.path, b.path)
        assert refused.status == 2
        assert refused.err == (
            "wanlab: a and b have no point in common: they differ in cc (bbr; cubic);"
            " --across cc compares them nonetheless\n"
        )
        said = wanlab(a.path, b.path, "--across", "kernel,cc", "--column", "goodput")
        assert [" ".join(words[-3:]) for words in cells(said)] == ["+10 % exact", "+10 % exact"]

    def test_the_nearest_of_several_is_taken(self, store: Maker) -> None:
        a = store("a", [*seeds([1], cc="bbr"), *seeds([2], cc="bbr", kernel="6.1")])
        b = store("b", [*seeds([3], cc="cubic"), *seeds([4], cc="cubic", kernel="6.1")])
        found = compare_module.compare(read([a.path, b.path]), ["goodput_bps"], across=["cc", "kernel"])
        assert [one.changed for one in found.comparisons] == [("cc",), ("cc",)]

    def test_what_only_one_has_is_said(self, wanlab: Wanlab, store: Maker) -> None:
        a = store("a", [*seeds([90], rtt="10ms"), *seeds([80], rtt="20ms")])
        b = store("b", [*seeds([90], rtt="10ms"), *seeds([80], rtt="40ms")])
        said = wanlab(a.path, b.path)
        assert said.status == 0
        assert said.out.splitlines()[-2:] == ["Only b has rtt=40ms.", "Only a has rtt=20ms."]

    def test_without_any_point_in_common(self, wanlab: Wanlab, store: Maker) -> None:
        a = store("a", [*seeds([90], rtt="10ms", cc="bbr"), *seeds([80], rtt="20ms", cc="cubic")])
        b = store("b", [*seeds([90], rtt="10ms", cc="cubic"), *seeds([80], rtt="20ms", cc="bbr")])
        said = wanlab(a.path, b.path)
        assert said.status == 2
        assert "no combination of knobs is in both" in said.err
        assert said.err.count("\n") == 1

    def test_points_narrow_all_runs(self, wanlab: Wanlab, store: Maker) -> None:
        a = store("a", [*seeds([90], rtt="10ms"), *seeds([80], rtt="20ms")])
        b = store("b", [*seeds([90], rtt="10ms"), *seeds([80], rtt="40ms")])
        said = wanlab(a.path, b.path, "--points", "rtt=10ms", "--tolerance", "1%")
        assert said.status == 0
        none = wanlab(a.path, b.path, "--points", "rtt=20ms")
        assert none.status == 2
        assert none.err == f"wanlab: b: has no point to compare; look at `wanlab show {b.path}`\n"

    def test_three_runs_name_theirs(self, wanlab: Wanlab, store: Maker) -> None:
        runs = [store(name, seeds([value])) for name, value in (("a", 90), ("b", 91), ("c", 45))]
        said = wanlab(*(run.path for run in runs), "--column", "goodput")
        assert [(words[0], words[-3]) for words in cells(said)] == [("b", "+1.11"), ("c", "-50")]


class TestCertainty:
    def test_equal_records_are_identical(self, wanlab: Wanlab, tmp_path: Path) -> None:
        a, b = (
            made_up.store(path, [(of, made_up.done(of)) for of, _ in seeds([1, 1])])
            for path in (tmp_path / name for name in "ab")
        )
        said = wanlab(a.path, b.path)
        assert "Identical, all records byte for byte: 1 of 1 settings." in said.out
        assert cells(said) == []
        (one,) = json.loads(wanlab(a.path, b.path, "--format", "json").out)["comparisons"]
        assert one["identical"] is True
        assert {measure["certainty"] for measure in one["columns"].values()} == {"identical"}

    def test_several_seeds_give_an_interval(self, wanlab: Wanlab, store: Maker) -> None:
        a = store("a", seeds([90, 91, 92, 90.5, 91.5]))
        b = store("b", seeds([80, 81, 82.1, 80.6, 81.5]))
        found = json.loads(wanlab(a.path, b.path, "--format", "json").out)
        measure = found["comparisons"][0]["columns"]["goodput_bps"]
        assert (measure["n"], measure["baseline_n"], measure["certainty"]) == (5, 5, "interval")
        assert measure["percent_low"] < measure["percent"] == pytest.approx(-10.94, abs=0.01)
        assert measure["percent"] < measure["percent_high"] < -10.5
        said = wanlab(a.path, b.path, "--column", "goodput")
        assert " ".join(cells(said)[0]).startswith("goodput_bps 91.00 ± 0.60 Mbit/s 81.0")

    def test_one_seed_of_another_number_is_one_repetition(self, wanlab: Wanlab, store: Maker) -> None:
        a, b = store("a", [(made_up.point(1), 90)]), store("b", [(made_up.point(2), 91)])
        assert cells(wanlab(a.path, b.path))[0][-2:] == ["one", "repetition"]

    def test_seeds_without_chance_are_said_to_be(self, wanlab: Wanlab, store: Maker) -> None:
        a, b = store("a", seeds([90, 90, 90])), store("b", seeds([45, 45, 45]))
        said = wanlab(a.path, b.path, "--tolerance", "goodput=1%")
        assert said.status == 1
        assert "repetitions are few" not in said.out
        plain = wanlab(a.path, b.path)
        assert " ".join(cells(plain)[0]).endswith("90 Mbit/s 45 Mbit/s -50 % every seed gave the same")

    def test_a_few_seeds_are_cautioned(self, wanlab: Wanlab, store: Maker) -> None:
        a, b = store("a", seeds([90, 91])), store("b", seeds([92, 91.5]))
        assert "2 repetitions are few" in wanlab(a.path, b.path).out

    def test_run_beside_itself_is_noted(self, wanlab: Wanlab, store: Maker) -> None:
        a = store("a", seeds([90]))
        said = wanlab(a.path, a.path, "--tolerance", "0%")
        assert said.status == 0
        assert f"Note: {a.path} is there twice: a run beside itself differs in nothing." in said.out
        assert "Identical" in said.out

    def test_run_that_has_not_ended_is_noted(self, wanlab: Wanlab, store: Maker) -> None:
        a, b = store("a", seeds([90])), store("b", seeds([90]), ended=None)
        assert "Note: b has not ended" in wanlab(a.path, b.path).out


class TestTolerance:
    @pytest.mark.parametrize(
        ("goodput", "tolerance", "status"),
        [
            (97, "2%", 1),
            (103, "2%", 1),
            (98, "2%", 0),
            (102, "2%", 0),
            (97, "goodput=-2%", 1),
            (110, "goodput=-2%", 0),
            (110, "goodput_bps=+5%", 1),
            (50, "goodput_bps=+5%", 0),
            (50, "retransmits=1%", 0),
            (99.9, "0%", 1),
            (97, "2%,goodput_bps=5%", 0),
        ],
    )
    def test_exit_status(
        self, wanlab: Wanlab, store: Maker, goodput: float, tolerance: str, status: int
    ) -> None:
        a, b = store("a", seeds([100])), store("b", seeds([goodput]))
        for form in ("table", "json", "csv"):
            assert wanlab(a.path, b.path, "--tolerance", tolerance, "--format", form).status == status
        assert wanlab(a.path, b.path).status == 0

    def test_what_is_outside_is_a_sentence(self, wanlab: Wanlab, store: Maker) -> None:
        a = store("a", [*seeds([90], rtt="10ms"), *seeds([80], rtt="20ms")])
        b = store("b", [*seeds([80], rtt="10ms", kernel="6.1"), *seeds([80.1], rtt="20ms", kernel="6.1")])
        said = wanlab(a.path, b.path, "--tolerance", "goodput_bps=-2%")
        assert said.status == 1
        assert said.out.splitlines()[-2:] == [
            "b: rtt=10ms: goodput_bps is 80 Mbit/s where the baseline has 90 Mbit/s (-11.1 %), outside -2 %.",
            "1 outside the tolerance: exit status 1.",
        ]
        assert " ".join(cells(said)[0]).endswith("-11.1 % outside -2 %")
        within = wanlab(a.path, b.path, "--tolerance", "goodput_bps=+2%")
        assert within.out.splitlines()[-1] == "Everything is within the tolerance."

    def test_what_chance_can_do_is_not_counted(self, wanlab: Wanlab, store: Maker) -> None:
        a, b = store("a", seeds([90, 99, 84])), store("b", seeds([84, 82, 97]))
        said = wanlab(a.path, b.path, "--tolerance", "goodput=2%")
        assert said.status == 0
        assert "within chance; about " in said.out
        assert said.out.splitlines()[-1] == (
            "Nothing is certain to be outside the tolerance; 1 may be: more --repeat would tell."
        )

    def test_a_column_that_was_zero_is_passed_by_any_rise(self, wanlab: Wanlab, tmp_path: Path) -> None:
        of = made_up.point()
        a, b = (
            made_up.store(tmp_path / name, [(of, made_up.done(of, retransmits=count, digest=name))])
            for name, count in (("a", 0), ("b", 2))
        )
        said = wanlab(a.path, b.path, "--tolerance", "retransmits=500%")
        assert said.status == 1
        assert "(from 0), outside ±500 %" in said.out
        assert wanlab(a.path, b.path, "--tolerance", "retransmits=-500%").status == 0
        assert wanlab(b.path, a.path, "--tolerance", "retransmits=500%").status == 0

    @pytest.mark.parametrize("lacking", [None, ...], ids=["failed", "not run"])
    @pytest.mark.parametrize("baseline", [True, False])
    def test_points_that_lack_count(self, wanlab: Wanlab, store: Maker, lacking: Any, baseline: bool) -> None:
        a, b = seeds([90, 91], rtt="10ms"), seeds([90, lacking], rtt="10ms")
        whole, torn = store("whole", a), store("torn", b)
        words = (torn.path, whole.path) if baseline else (whole.path, torn.path)
        phrase = "failed (the kernel died)" if lacking is None else "has not run"
        loose = wanlab(*words)
        assert loose.status == 0
        assert f"the only setting: in torn seed 2 {phrase}." in loose.out
        strict = wanlab(*words, "--tolerance", "50%")
        assert strict.status == 1
        assert strict.out.count(f"in torn seed 2 {phrase}.") == 1

    def test_points_of_one_run_alone_count(self, wanlab: Wanlab, store: Maker) -> None:
        a, b = (
            store("a", [*seeds([90], rtt="10ms"), *seeds([9], rtt="20ms")]),
            store("b", seeds([90], rtt="10ms")),
        )
        for words, sentence in (
            ((a.path, b.path), "b: rtt=20ms is not there, and a has it."),
            ((b.path, a.path), "b: rtt=20ms is not there, and a has it."),
        ):
            said = wanlab(*words, "--tolerance", "50%")
            assert said.status == 1
            assert sentence in said.out

    def test_columns_of_one_run_alone_count(self, wanlab: Wanlab, store: Maker) -> None:
        of = made_up.point()
        a = store("a", [(of, 90)])
        b = made_up.store(a.path.parent / "b", [(of, made_up.done(of, loaded_rtt_s=None, digest="other"))])
        said = wanlab(a.path, b.path, "--tolerance", "loaded_rtt=50%")
        assert said.status == 1
        assert "b: the only setting: only one of the runs has a loaded_rtt_s." in said.out
        assert "only one has it" in said.out

    @pytest.mark.parametrize(
        "text", ["2", "goodput_bps=2", "goodput_bps=", "=2%", "x=2%", "%", "two%", "goodput_bps=2 ms"]
    )
    def test_nonsense_is_one_sentence(self, wanlab: Wanlab, store: Maker, text: str) -> None:
        a = store("a", seeds([90]))
        said = wanlab(a.path, a.path, "--tolerance", text)
        assert said.status == 2
        assert said.err.startswith("wanlab: ")
        assert said.err.count("\n") == 1
        assert said.out == ""

    @given(st.floats(0, 1000).map(lambda x: round(x, 3)), st.floats(0.1, 1e9), st.floats(0.1, 1e9))
    def test_signs_are_the_halves_of_both(self, size: float, before: float, now: float) -> None:
        verdict = compare_module.tell_apart({1: before}, {1: now})
        measure = compare_module.Measure("goodput_bps", verdict.a, verdict.b, verdict)
        passed = {
            sign: compare_module.tolerances([f"{sign}{size}%"], ["goodput_bps"])["goodput_bps"].passed(
                measure
            )
            for sign in ("", "+", "-")
        }
        assert passed[""] == (passed["+"] or passed["-"])
        assert not (passed["+"] and passed["-"])
        assert passed["+"] == (100 * (now - before) / before > size + 1e-9)


class TestProvenance:
    def test_everything_that_differs_is_said(self, wanlab: Wanlab, store: Maker) -> None:
        host = {"python": "3.11", "machine": "x86_64", "packages": {"numpy": "2.0", "pyarrow": "17"}}
        a = store("a", seeds([90]), host=host)
        b = store(
            "b",
            seeds([90]),
            wanlab_version="9.9.9",
            scenario_hash="77" * 32,
            settings={"rtt": ["10ms", "20ms"]},
            kernels=kernel("6.12", release="6.12.118", hz=1000, config_hash="01" * 32),
            host={**host, "python": "3.13", "packages": {"numpy": "2.1", "pyarrow": "17", "scipy": "1.17"}},
        )
        found = json.loads(wanlab(a.path, b.path, "--format", "json").out)["differs"]
        assert {one["what"]: one["values"] for one in found} == {
            "scenario's text": ["5c5c5c5c5c5c", "777777777777"],
            "settings": ["", "rtt=10ms,20ms"],
            "wanlab": ["0.0.0", "9.9.9"],
            "kernel release": ["6.12.117", "6.12.118"],
            "kernel HZ": ["250", "1000"],
            "kernel config": ["efefefefefef", "010101010101"],
            "python": ["3.11", "3.13"],
            "numpy": ["2.0", "2.1"],
            "scipy": ["", "1.17"],
        }
        assert "kernel config" in wanlab(a.path, b.path).out

    def test_knobs_are_compared_as_sets(self) -> None:
        knobs = [[{"rtt": "10ms"}, {"rtt": "20ms"}], [{"rtt": "20ms"}, {"rtt": "10ms"}, {"rtt": "20ms"}]]
        assert provenance.differences([{}, {}], knobs) == []
        (found,) = provenance.differences([{}, {}], [knobs[0], [{"rtt": "20ms", "cc": "cubic"}]])
        assert found == ("rtt", ("10ms, 20ms", "20ms"))

    def test_many_values_are_cut(self) -> None:
        knobs = [[{"rtt": f"{n}ms"} for n in range(1, 10)], [{"rtt": "1ms"}]]
        (found,) = provenance.differences([{}, {}], knobs)
        assert found.values == ("1ms, 2ms, 3ms, 4ms, 5ms, 6ms and 3 more", "1ms")

    def test_kernels_that_differ_among_themselves_are_named(self) -> None:
        both = {**kernel("6.12"), **kernel("6.1")}
        found = dict(provenance.differences([{"kernels": both}, {"kernels": kernel("6.1")}], [[], []]))
        assert found == {
            "kernel": ("6.12, 6.1", "6.1"),
            "kernel release": ("6.12: 6.12.117, 6.1: 6.1.192", "6.1.192"),
        }

    def test_nothing_that_differs_is_said_too(self, wanlab: Wanlab, store: Maker) -> None:
        a, b = store("a", seeds([90])), store("b", seeds([91]))
        assert "nothing differs" in wanlab(a.path, b.path).out


class TestForms:
    def test_csv_has_a_row_a_column(self, wanlab: Wanlab, store: Maker) -> None:
        a = store("a", [*seeds([90], rtt="10ms"), *seeds([80], rtt="20ms")])
        b = store("b", [*seeds([45], rtt="10ms"), *seeds([80], rtt="20ms")])
        words = ("--column", "goodput,loaded_rtt", "--tolerance", "goodput=1%", "--format", "csv")
        rows = list(csv.DictReader(io.StringIO(wanlab(a.path, b.path, *words).out)))
        assert [(row["rtt"], row["column"]) for row in rows] == [
            ("10ms", "goodput_bps"),
            ("10ms", "loaded_rtt_s"),
            ("20ms", "goodput_bps"),
            ("20ms", "loaded_rtt_s"),
        ]
        assert [row["outside"] for row in rows] == ["True", "", "False", ""]
        assert (rows[0]["percent"], rows[0]["percent_low"], rows[0]["certainty"]) == ("-50.0", "", "exact")

    def test_json_says_what_was_asked_and_what_came_of_it(self, wanlab: Wanlab, store: Maker) -> None:
        a, b = store("a", seeds([90])), store("b", seeds([45]))
        said = wanlab(a.path, b.path, "--tolerance", "goodput=-1%", "--format", "json")
        found = json.loads(said.out)
        assert (found["baseline"], found["runs"], found["exit_status"]) == (str(a.path), [str(b.path)], 1)
        assert found["tolerances"] == {"goodput_bps": {"fall": 1.0, "rise": None}}
        assert len(found["passed"]) == 1
        assert found["comparisons"][0]["points"] == [[made_up.point().id], [made_up.point().id]]

    def test_runs_of_one_name_are_called_by_their_path(self, wanlab: Wanlab, store: Maker) -> None:
        a, b = store("one/run", seeds([90])), store("other/run", seeds([90]))
        assert f"Baseline: {a.path}. Beside it: {b.path}." in wanlab(a.path, b.path).out

    @pytest.mark.parametrize("form", ["table", "json", "csv"])
    def test_runs_without_any_number(self, wanlab: Wanlab, store: Maker, form: str) -> None:
        a, b = store("a", seeds([...])), store("b", seeds([None]))
        assert wanlab(a.path, b.path, "--format", form).status == 0

    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            (("--column", "gooodput"), "did you mean 'goodput_bps'?"),
            (("--across", "kernle"), "did you mean 'kernel'?"),
            (("--points", "rrt=10ms"), "'rrt' is not a knob"),
            (("--points", "0123456789"), "no such point"),
        ],
    )
    def test_words_that_cannot_be(
        self, wanlab: Wanlab, store: Maker, words: tuple[str, ...], sentence: str
    ) -> None:
        a = store("a", seeds([90]))
        said = wanlab(a.path, a.path, *words)
        assert (said.status, said.out) == (2, "")
        assert sentence in said.err

    def test_folder_that_is_no_run(self, wanlab: Wanlab, store: Maker, tmp_path: Path) -> None:
        a = store("a", seeds([90]))
        (tmp_path / "empty").mkdir()
        said = wanlab(a.path, tmp_path / "empty")
        assert said.status == 2
        assert "not a run" in said.err

    def test_point_that_cannot_be_read(self, wanlab: Wanlab, store: Maker) -> None:
        a, b = store("a", seeds([90])), store("b", seeds([90]))
        (b.points_path / made_up.point().id / "point.parquet").write_bytes(b"PAR1")
        said = wanlab(a.path, b.path)
        assert said.status == 2
        assert "cannot be read as Parquet" in said.err


def test_across_is_kernel_where_nobody_chose() -> None:
    assert matching.across(None) == ("kernel",)
    assert matching.across(["cc,kernel", "cc"]) == ("cc", "kernel")
    with pytest.raises(UserError, match="docs/reference/knobs"):
        matching.across(["zzzzzz"])
