"""Kinds of figures beside curves, theory in them, several flows over time, points without a prediction."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab import measures, scenario, schema
from lab.model import competition, loss
from lab.model.path import mss_bytes
from lab.report import (
    asked,
    boxes,
    cdf,
    choice,
    columns,
    curves,
    ellipses,
    figures,
    overtime,
    overview,
    page,
    panels,
    points,
    series,
    shades,
    spread,
    style,
    tables,
    theory,
    winners,
)
from lab.report import band as band_module
from lab.report import grid as grid_module
from lab.report import stored as stored_module
from lab.report.drawn import Drawn
from lab.report.stored import Entry, Stored
from lab.scenario import Figure, Scenario
from lab.store import RunFolder
from tests import made_up_run as made_up
from tests.unit.test_report import HOSTILE, Page

Read = Callable[..., Stored]
Tables = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """Return a made-up run of two BBR and two CUBIC flows, by queue and seed."""
    return stored_module.read(made_up.mixed(tmp_path_factory.mktemp("mixed") / "run"))


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Return a maker of runs: points with their rows changed by `change`."""

    def make(
        of: list[made_up.Point],
        *asked_for: Figure,
        change: Callable[[made_up.Point], dict[str, Any]] = lambda _: {},
    ) -> Stored:
        its: list[tuple[made_up.Point, Tables | None]] = []
        for one in of:
            rows = made_up.done(one, **change(one))
            its.append((one, {**rows, "samples": [], "queues": [], "limits": []}))
        told = [figure.told() for figure in asked_for]
        return stored_module.read(made_up.store(tmp_path / "run", its, figures=told))

    return make


def only(run: Stored) -> Drawn:
    """Return the only figure that a run's scenario asks for."""
    return next(one for one in figures.draw(run) if one.title != "Measured against predicted")


def grid(seeds: int = 1, ccs: tuple[str, ...] = ("cubic", "bbr")) -> list[made_up.Point]:
    return [
        made_up.point(seed, rate=rate, rtt=rtt, cc=cc, queue="1bdp")
        for rate in ("1mbit", "10mbit", "100mbit")
        for rtt in ("20ms", "100ms")
        for cc in ccs
        for seed in range(1, seeds + 1)
    ]


class TestFigure:
    def check(self, **fields: Any) -> list[str]:
        return scenario.check(
            Scenario(name="study", question="q", why="w", figures=(Figure("F", **fields),))  # type: ignore[arg-type]
        )

    @pytest.mark.parametrize(
        "fields",
        [
            {"x": "rtt"},
            {"x": "queue", "y": "cc_shares:bbr", "theory": "ware"},
            {"x": "rtt", "rows": "rate", "kind": "heat", "y": "utilisation"},
            {"x": "rtt", "rows": "rate", "kind": "heat", "y": "winner", "by": ["cc"]},
            {"kind": "box", "x": "rtt", "y": "jain"},
            {"kind": "box", "table": "flows", "x": "rtt_base_s", "by": ["cc", "kind"], "y": "fct_s"},
            {"kind": "cdf", "table": "delays", "by": ["qdisc", "kind"], "y": "delay_s"},
            {"kind": "ellipse", "x": "queue_delay_s", "by": ["cc"]},
            {"kind": "time", "x": "queue", "by": []},
            {"kind": "time", "y": "cwnd_bytes"},
        ],
    )
    def test_is_sound(self, fields: dict[str, Any]) -> None:
        assert self.check(**fields) == []

    @pytest.mark.parametrize(
        ("fields", "fault"),
        [
            ({}, "x: a figure of kind curve needs a knob, such as rtt"),
            ({"x": "rtt", "kind": "pie"}, "kind: 'pie' is not known; it can be curve, heat"),
            ({"x": "rtt", "kind": "heat"}, "rows: a figure of kind heat needs the knob of its rows"),
            ({"x": "rtt", "rows": "rate"}, "rows: a figure of kind heat needs the knob of its rows"),
            ({"x": "rtt", "table": "flows"}, "table: a figure of kind curve is drawn of points"),
            ({"kind": "cdf", "x": "rtt"}, "x: a figure of kind cdf has none"),
            ({"kind": "cdf", "table": "delays"}, "'steady_goodput_bps' is not a number of table delays"),
            ({"kind": "ellipse", "x": "rtt"}, "x: 'rtt' is not a number of `wanlab show`"),
            ({"x": "rtt", "rows": "rate", "kind": "heat", "y": "winner"}, 'write it as by=["cc"]'),
            ({"x": "rtt", "theory": "magic"}, "theory: 'magic' is not known; it can be mathis"),
            ({"kind": "box", "y": "jain", "theory": "ware"}, "only a figure of kind curve or heat"),
            ({"kind": "time", "y": "jain"}, "'jain' is no series of a flow"),
            ({"x": "rtt", "y": "cc_share:bbr"}, "'cc_share:bbr' is not a number"),
            ({"kind": "box", "x": "kind", "y": "jain"}, "'kind' is not a knob"),
        ],
    )
    def test_fault_says_the_rule(self, fields: dict[str, Any], fault: str) -> None:
        found = self.check(**fields)
        assert any(fault in one for one in found), found

    def test_manifest_holds_what_is_not_at_its_default(self) -> None:
        plain = Figure("F", x="rtt")
        assert plain.told() == {"title": "F", "x": "rtt", "by": ["cc", "kernel"], "y": "steady_goodput_bps"}
        full = Figure("F", "rtt", ("cc",), "winner", kind="heat", rows="rate", theory="ware", table="flows")
        assert asked.asked(json.loads(json.dumps(full.told()))) == full

    def test_every_kind_and_theory_has_its_drawing(self) -> None:
        assert tuple(figures.KINDS) == scenario.FIGURE_KINDS
        assert tuple(theory.THEORIES) == scenario.THEORIES
        assert tuple(overtime.SERIES) == scenario.FIGURE_SERIES
        assert set(scenario.FIGURE_TABLES["cdf"]) <= schema.TABLES.keys()


class TestColumns:
    @pytest.mark.parametrize(
        ("name", "values", "title", "ends", "middle"),
        [
            ("jain", [0.5], "Jain's fairness index", (0, 1), None),
            ("utilisation", [0.5], "Use of the link (%)", (0, 100), None),
            ("retransmit_share", [0.01], "Segments sent again (%)", None, None),
            ("queue_delay_s", [0.02, 0.2], "Queueing delay, median (ms)", None, None),
            ("fct_s", [0.2, 2.0], "Flow completion time, median (s)", None, None),
            ("queue_max_bytes", [2000.0], "Longest queue in any sample (KiB)", None, None),
            ("cc_shares:bbr", [0.4], "Share of the goodput, bbr (%)", (0, 100), 50),
            ("rtt_unfairness", [2.0], "Goodput of the shortest RTT / longest", None, 1),
            ("udp_goodput_bps", [1e6], "UDP goodput (Mbit/s)", None, None),
        ],
    )
    def test_as_an_axis(
        self,
        name: str,
        values: list[float],
        title: str,
        ends: tuple[float, float] | None,
        middle: float | None,
    ) -> None:
        found = columns.scale(name, values)
        assert (found.title, found.ends, found.middle) == (title, ends, middle)

    def test_every_number_of_every_table_is_one(self) -> None:
        for table, its in schema.TABLES.items():
            for column in its:
                if column.kind in ("int", "float"):
                    assert columns.scale(column.name, [1.0], table).title
                else:
                    with pytest.raises(KeyError):
                        columns.scale(column.name, [1.0], table)

    def test_share_that_is_not_named(self) -> None:
        row = {"cc_shares": {"bbr": 0.7, "cubic": 0.3}, "limit_shares": {"link": 1.0}, "jain": math.nan}
        assert columns.number(row, "cc_shares:bbr") == 0.7
        assert columns.number(row, "cc_shares:reno") is None
        assert columns.number(row, "limit_shares:loss") == 0.0
        assert columns.number({}, "limit_shares:loss") is None
        assert columns.number(row, "jain") is None

    def test_ticks_of_a_logarithmic_axis(self) -> None:
        assert columns.log_ticks(0.9, 60)["ticktext"] == ["1", "2", "5", "10", "20", "50"]
        assert columns.log_ticks(0.9, 20_000)["ticktext"] == ["1", "10", "100", "1000", "10000"]


class TestChoice:
    def test_flow_is_told_by_its_own_column(self) -> None:
        entry = Entry("p", 1, {"cc": "bbr+cubic", "rtt": "10ms+40ms"}, {})
        row = {"cc": "bbr", "rtt_base_s": 0.04, "size_bytes": None}
        assert choice.tag("cc", entry, row, "flows") == "bbr"
        assert choice.tag("rtt_base_s", entry, row, "flows") == "40 ms"
        assert choice.tag("size_bytes", entry, row, "flows") == "none"
        assert choice.tag("rtt", entry, row, "flows") == "10ms+40ms"
        assert choice.tag("cc", entry) == "bbr+cubic"

    def test_names_leave_the_default_and_plain_words(self) -> None:
        assert choice.name(["cc", "qdisc", "rmem"], ["bbr", "cake", "default"]) == "bbr, cake"
        assert choice.name(["rtt_base_s"], ["10 ms"]) == "RTT 10 ms"


class TestHeat:
    def test_cells_are_in_order_and_hold_the_mean(self, read: Read) -> None:
        figure = Figure("H", x="rtt", rows="rate", by=(), y="utilisation", kind="heat")
        of = grid(seeds=2, ccs=("cubic",))
        drawn = only(read(of, figure, change=lambda one: {"utilisation": 0.4 + 0.1 * one.seed}))
        (trace,) = drawn.figure.data
        assert drawn.figure.layout.xaxis.ticktext == ("20ms", "100ms")
        assert drawn.figure.layout.yaxis.ticktext == ("1mbit", "10mbit", "100mbit")
        assert np.array(trace.z) == pytest.approx(np.full((3, 2), 55.0))
        assert ">55<" in trace.text[0][0]
        assert trace.customdata[0][0] == of[0].id
        assert "mean of 2 seeds 55 %" in trace.hovertext[0][0]

    def test_many_cells_are_not_written(self, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(grid_module, "MOST_WRITTEN", 5)
        figure = Figure("H", x="rtt", rows="rate", by=(), kind="heat")
        (trace,) = only(read(grid(ccs=("cubic",)), figure)).figure.data
        assert trace.text is None

    def test_cell_without_a_point_is_empty(self, read: Read) -> None:
        figure = Figure("H", x="rtt", rows="rate", by=(), kind="heat")
        (trace,) = only(read(grid(ccs=("cubic",))[:-1], figure)).figure.data
        assert trace.z[2][1] is None

    def test_maps_are_told_apart_and_share_their_colours(self, read: Read) -> None:
        figure = Figure("H", x="rtt", rows="rate", by=("cc",), y="utilisation", kind="heat")
        drawn = only(read(grid(), figure, change=lambda _: {"utilisation": 0.5}))
        assert [note.text for note in drawn.figure.layout.annotations] == ["<b>cubic</b>", "<b>bbr</b>"]
        assert {trace.coloraxis for trace in drawn.figure.data} == {"coloraxis"}
        assert drawn.figure.layout.coloraxis.cmax == 100
        first, second = (drawn.narrow[f"yaxis{n}.domain"] for n in ("", "2"))
        assert first[0] > second[1]  # one below the other on a small screen

    @pytest.mark.parametrize(
        ("y", "changes", "ends"),
        [
            ("cc_shares:bbr", {"cc_shares": {"bbr": 0.7, "cubic": 0.3}}, (0.0, 100.0)),
            ("rtt_unfairness", {"rtt_unfairness": 4.0}, (-math.log10(4), math.log10(4))),
        ],
    )
    def test_what_has_a_middle_diverges_from_it(
        self, read: Read, y: str, changes: dict[str, Any], ends: tuple[float, float]
    ) -> None:
        figure = Figure("H", x="rtt", rows="rate", by=(), y=y, kind="heat")
        drawn = only(read(grid(ccs=("cubic",)), figure, change=lambda _: changes))
        axis = drawn.figure.layout.coloraxis
        assert (axis.cmin, axis.cmax) == pytest.approx(ends)
        assert axis.colorscale[0][1] == style.VERMILLION
        assert axis.colorscale[-1][1] == style.BLUE

    def test_ink_reads_on_every_colour(self) -> None:
        for colour, ink in (("#ffffff", "#111111"), ("rgb(253, 231, 37)", "#111111"), ("#440154", "#ffffff")):
            assert shades.ink(colour) == ink


class TestWinner:
    FIGURE = Figure("W", x="rtt", rows="rate", by=("cc",), y="winner", kind="heat")

    def test_is_who_has_most_and_by_how_much(self, read: Read) -> None:
        def change(one: made_up.Point) -> dict[str, Any]:
            ahead = one.knobs["cc"] == ("bbr" if one.knobs["rtt"] == "100ms" else "cubic")
            return {"steady_goodput_bps": 2e6 if ahead else 1e6}

        drawn = only(read(grid(), self.FIGURE, change=change))
        maps = {
            trace.text[0][0] or trace.text[0][1]: trace
            for trace in drawn.figure.data
            if trace.type == "heatmap"
        }
        assert sorted("bbr" in text for text in maps) == [False, True]
        assert all("×2" in text for text in maps)
        assert [trace.name for trace in drawn.figure.data if trace.type == "scatter"] == ["bbr", "cubic"]

    def test_next_to_nothing_is_no_win(self, read: Read) -> None:
        drawn = only(
            read(
                grid(),
                self.FIGURE,
                change=lambda one: {"steady_goodput_bps": 1e6 + 1e3 * (one.knobs["cc"] == "bbr")},
            )
        )
        assert [trace.name for trace in drawn.figure.data if trace.type == "scatter"] == ["not told apart"]
        assert "within 1 %" in drawn.caption

    def test_repetitions_decide_where_there_are_some(self) -> None:
        entry = Entry("p", 1, {}, {})
        steady = winners.Rival({1: 10.0, 2: 10.1, 3: 9.9}, entry)
        assert winners.apart(steady, winners.Rival({1: 9.0, 2: 9.1, 3: 8.9}, entry))
        assert not winners.apart(steady, winners.Rival({1: 5.0, 2: 14.0, 3: 9.0}, entry))

    def test_mixed_point_is_won_within_it_by_the_mean_flow(self) -> None:
        row = {"steady_goodput_bps": 100e6, "cc_shares": {"bbr": 0.4, "cubic": 0.6}}
        entry = Entry("p", 1, {"cc": "bbr+cubic*3", "flows": "4"}, row)
        found = winners.rivals("cc", [entry])
        assert {name: rival.mean for name, rival in found.items()} == pytest.approx(
            {"bbr": 40e6, "cubic": 20e6}
        )


class TestBoxes:
    def test_of_flows_by_their_own_control(self, mixed: Stored) -> None:
        figure = Figure("B", x="queue", by=("cc",), y="goodput_bps", kind="box", table="flows")
        drawn = boxes.draw(figure, mixed, 1)
        assert drawn is not None
        assert [trace.name for trace in drawn.figure.data] == ["bbr", "cubic"]
        assert drawn.figure.layout.xaxis.ticktext == made_up.QUEUES
        for trace in drawn.figure.data:
            assert len(trace.y) == len(made_up.QUEUES) * 3 * 2
            assert trace.boxpoints == "all"
            assert set(trace.customdata) == {entry.id for entry in mixed.done}
        assert "flow 0 bbr of point" in drawn.figure.data[0].text[0]

    def test_of_seeds_without_an_axis(self, mixed: Stored) -> None:
        drawn = boxes.draw(Figure("B", by=("queue",), y="jain", kind="box"), mixed, 1)
        assert drawn is not None
        assert [list(set(trace.x)) for trace in drawn.figure.data] == [
            [f"queue {one}"] for one in made_up.QUEUES
        ]
        assert not any(trace.showlegend for trace in drawn.figure.data)

    def test_many_values_are_drawn_by_their_outliers(
        self, mixed: Stored, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(boxes, "MOST_MARKS", 3)
        figure = Figure("B", x="queue", by=("cc",), y="goodput_bps", kind="box", table="flows")
        drawn = boxes.draw(figure, mixed, 1)
        assert drawn is not None
        assert {trace.boxpoints for trace in drawn.figure.data} == {"outliers"}
        assert {trace.text for trace in drawn.figure.data} == {None}
        assert "beyond the whiskers" in drawn.caption

    def test_column_that_knobs_set_is_not_fixed_by_them(self, tmp_path: Path) -> None:
        of = [
            made_up.point(1, topology="dumbbell", flows="2", rtt=rtt, duration="2s")
            for rtt in ("10ms+20ms", "10ms+40ms")
        ]
        run = stored_module.read(
            made_up.store(tmp_path / "run", [(one, made_up.competing(one)) for one in of])
        )
        figure = Figure("B", x="rtt_base_s", by=("cc",), y="goodput_bps", kind="box", table="flows")
        drawn = boxes.draw(figure, run, 1)
        assert drawn is not None
        assert drawn.figure.layout.xaxis.ticktext == ("10 ms", "20 ms", "40 ms")
        assert drawn.figure.layout.xaxis.title.text == "Base RTT"
        assert drawn.restricted == ""

    def test_without_values_is_not_there(self, mixed: Stored) -> None:
        assert boxes.draw(Figure("B", y="fct_s", kind="box", table="flows"), mixed, 1) is None


class TestCdf:
    def test_rises_to_the_share_that_arrived(self, mixed: Stored) -> None:
        drawn = cdf.draw(Figure("C", by=("queue",), y="delay_s", kind="cdf", table="delays"), mixed, 1)
        assert drawn is not None
        assert [trace.name for trace in drawn.figure.data] == [f"queue {one}" for one in made_up.QUEUES]
        for trace in drawn.figure.data:
            assert list(trace.x) == sorted(trace.x)
            assert trace.y[0] == 0
            assert 90 < trace.y[-1] < 100
            assert trace.line.shape == "hv"
        rows = [row for entry in mixed.done[:3] for row in mixed.rows("delays", entry)]
        arrived = [row["delay_s"] for row in rows if row["delay_s"] is not None]
        assert drawn.figure.data[0].y[-1] == pytest.approx(100 * len(arrived) / len(rows))
        assert "never arrived" in drawn.caption

    def test_thinning_keeps_both_ends_and_the_tail(self) -> None:
        assert cdf.steps(5) == [0, 1, 2, 3, 4]
        kept = cdf.steps(100_000)
        assert len(kept) <= cdf.MOST_STEPS
        assert kept[0] == 0
        assert kept[-1] == 99_999
        assert sum(at > 90_000 for at in kept) > 50
        assert kept == sorted(set(kept))

    def test_wide_span_is_logarithmic(self, read: Read) -> None:
        of = [made_up.point(seed, rmem="1MiB") for seed in range(1, 6)]
        figure = Figure("C", by=(), y="fct_s", kind="cdf")
        run = read(of, figure, change=lambda one: {"fct_s": 10.0**one.seed / 1e3})
        drawn = only(run)
        assert drawn.figure.layout.xaxis.type == "log"
        assert list(drawn.figure.data[0].y) == pytest.approx([0, 20, 40, 60, 80, 100])
        assert drawn.figure.data[0].customdata[1] == of[0].id

    def test_kinds_of_delays_are_told_apart(self, tmp_path: Path) -> None:
        one = made_up.point(topology="dumbbell", duration="2s", probe="10ms")
        its = made_up.competing(one)
        its["delays"] += [{**row, "kind": "udp"} for row in its["delays"]]
        run = stored_module.read(made_up.store(tmp_path / "run", [(one, its)]))
        drawn = cdf.draw(Figure("C", by=(), y="delay_s", kind="cdf", table="delays"), run, 1)
        assert drawn is not None
        assert [trace.name for trace in drawn.figure.data] == ["probe", "udp"]


class TestEllipse:
    def test_outline_is_one_standard_deviation(self) -> None:
        at = [(1.0, 1.0), (3.0, 5.0), (5.0, 3.0), (7.0, 7.0)]
        found = ellipses._ellipse(at, log=False)
        assert found is not None
        assert found[0] == pytest.approx(np.mean(at, axis=0))
        inverse = np.linalg.inv(np.cov(np.array(at).T))
        for corner in found[1:] - found[0]:
            assert corner @ inverse @ corner == pytest.approx(1)

    def test_two_points_have_none(self) -> None:
        assert ellipses._ellipse([(1, 1), (2, 2)], log=False) is None

    def test_points_on_a_line_have_a_flat_one(self) -> None:
        found = ellipses._ellipse([(1, 1), (2, 2), (3, 3)], log=False)
        assert found is not None
        assert np.isfinite(found).all()

    def test_mark_a_point_and_an_ellipse_a_setting(self, mixed: Stored) -> None:
        drawn = ellipses.draw(
            Figure("E", x="queue_delay_s", y="goodput_bps", by=("queue",), kind="ellipse"), mixed, 1
        )
        assert drawn is not None
        marks = [trace for trace in drawn.figure.data if trace.customdata is not None]
        outlines = [trace for trace in drawn.figure.data if trace.fill == "toself"]
        assert len(marks) == len(outlines) == len(made_up.QUEUES)
        assert all(len(trace.x) == 3 + 1 for trace in marks)
        high, low = drawn.figure.layout.xaxis.range
        assert high > low  # delay falls to the right
        assert "better" in drawn.figure.layout.annotations[0].text

    def test_colour_is_the_first_knob_and_the_mark_the_others(self) -> None:
        groups = {(cc, queue): () for cc in ("cubic", "bbr") for queue in ("1bdp", "2bdp")}
        looks = ellipses._looks(["cc", "queue"], groups)
        assert looks["cubic", "1bdp"][0] == looks["cubic", "2bdp"][0] == style.BLUE
        assert looks["bbr", "1bdp"][0] == style.VERMILLION
        assert looks["cubic", "1bdp"][1] == looks["bbr", "1bdp"][1] != looks["cubic", "2bdp"][1]

    def test_throughput_against_throughput_is_not_turned_round(self, mixed: Stored) -> None:
        drawn = ellipses.draw(
            Figure("E", x="goodput_bps", y="steady_goodput_bps", by=(), kind="ellipse"), mixed, 1
        )
        assert drawn is not None
        low, high = drawn.figure.layout.xaxis.range
        assert low < high
        assert not drawn.figure.layout.annotations


class TestOverTime:
    def test_panel_a_value_and_the_index_below(self, mixed: Stored) -> None:
        drawn = overtime.draw(Figure("T", x="queue", by=(), kind="time"), mixed, 1)
        assert drawn is not None
        titles = [drawn.figure.layout[f"legend{n}"].title.text for n in ("", *range(2, 7))]
        assert [title.removesuffix("</b>  ") for title in titles] == [
            *(f"<b>Goodput: queue {one}" for one in made_up.QUEUES),
            "<b>Jain's index",
        ]
        lines = [trace for trace in drawn.figure.data if trace.mode == "lines"]
        assert {trace.meta for trace in lines} == {entry.id for entry in mixed.done if entry.seed == 1}
        first = [trace for trace in lines if trace.yaxis == "y"]
        assert [trace.line.color for trace in first] == [style.VERMILLION, style.BLUE] * 2
        assert [trace.name for trace in first if trace.showlegend] == ["bbr", "cubic"]
        assert "flow 3 cubic" in first[3].hovertemplate

    def test_late_flow_has_a_mark_where_it_begins(self, mixed: Stored) -> None:
        drawn = overtime.draw(Figure("T", x="queue", by=(), kind="time"), mixed, 1)
        assert drawn is not None
        marks = [trace for trace in drawn.figure.data if trace.mode == "markers" and trace.yaxis == "y"]
        assert [trace.text[0] for trace in marks] == [
            f"flow {n} {cc} begins" for n, cc in enumerate(["cubic", "bbr", "cubic"], 1)
        ]
        assert [float(trace.x[0]) for trace in marks] == pytest.approx([1, 2, 3], abs=0.2)
        assert {trace.showlegend for trace in marks} == {False}

    def test_too_many_settings_are_thinned_and_said(
        self, mixed: Stored, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(overtime, "MOST_PANELS", 2)
        drawn = overtime.draw(Figure("T", kind="time", by=()), mixed, 1)
        assert drawn is not None
        assert drawn.figure.layout.legend.title.text == "<b>Goodput: queue 0.5bdp</b>  "
        assert drawn.figure.layout.legend2.title.text == "<b>Goodput: queue 8bdp</b>  "
        assert "3 points of as many settings are not shown" in drawn.caption

    def test_another_series(self, mixed: Stored) -> None:
        drawn = overtime.draw(Figure("T", x="queue", by=(), y="rtt_s", kind="time"), mixed, 1)
        assert drawn is not None
        assert drawn.figure.layout.yaxis.title.text == "ms"
        assert float(drawn.figure.data[0].y[5]) > 40

    def test_index_is_that_of_the_flows_that_are_there(self) -> None:
        t_s = np.linspace(0, 10, 101)

        def flow(rate: float, start: float = 0.0) -> series.FlowSeries:
            inside = t_s >= start
            read = rate * (t_s[inside] - start)
            return series.FlowSeries("f", t_s[inside], {}, t_s[inside], read, cc="cubic")

        found = overtime.fairness([flow(1e6), flow(1e6), flow(4e6, 5.0)], 0.5)
        early = found.values[(found.t_s > 1) & (found.t_s < 4.5)]
        late = found.values[found.t_s > 6.5]
        assert early == pytest.approx(1, abs=1e-6)
        assert late == pytest.approx(measures.jain([1, 1, 4]), abs=1e-3)
        assert len(overtime.fairness([flow(1e6)], 0.5).t_s) == 0

    def test_point_without_samples_is_left_out(self, read: Read) -> None:
        run = read(grid(), Figure("T", kind="time", by=()))
        assert only(run).title == "Goodput of each point"


class TestTheory:
    @staticmethod
    def line(run: Stored, place: int = 0) -> theory.Theory:
        (plot,) = curves.plots(run)
        return plot.theories[place]

    @pytest.mark.parametrize(("name", "cc"), [("mathis", "reno"), ("cubic", "cubic")])
    def test_of_loss_is_the_models_bound_for_all_flows(self, read: Read, name: str, cc: str) -> None:
        of = [made_up.point(loss=one, rtt="40ms", flows="2", duration="2s") for one in ("0.01%", "1%")]
        line = self.line(read(of, Figure("F", x="loss", by=(), theory=name)))
        for percent, mbit in line.line[::20]:
            bound = 2 * loss.rate_bound_bps(cc, float(percent) / 100, 0.04, mss_bytes(1500), math.inf)
            assert mbit == pytest.approx(bound / 1e6)

    def test_of_loss_along_the_rtt_and_not_without_loss(self, read: Read) -> None:
        of = [made_up.point(loss="1%", rtt=one, duration="2s") for one in ("10ms", "100ms")]
        ends = self.line(read(of, Figure("F", x="rtt", by=(), theory="mathis"))).line
        assert ends[0][1] / ends[-1][1] == pytest.approx(float(ends[-1][0]) / float(ends[0][0]))

    def test_lines_are_named_by_what_differs(self, read: Read) -> None:
        of = [
            made_up.point(loss=one, rtt=rtt, duration="2s")
            for one in ("0.1%", "1%")
            for rtt in ("10ms", "50ms")
        ]
        (plot,) = curves.plots(read(of, Figure("F", x="loss", by=("rtt",), theory="mathis")))
        assert [one.name for one in plot.theories] == ["Mathis, rtt 10ms", "Mathis, rtt 50ms"]

    def test_of_another_column_says_nothing(self, read: Read) -> None:
        of = [made_up.point(loss=one, duration="2s") for one in ("0.1%", "1%")]
        for name in scenario.THEORIES:
            (plot,) = curves.plots(read(of, Figure("F", x="loss", by=(), y="retransmits", theory=name)))
            assert plot.theories == ()

    def test_router_buffer_stands_where_the_queue_is_long_enough(self, read: Read) -> None:
        of = [
            made_up.point(queue=queue, flows=flows, rate="10mbit", rtt="40ms", duration="2s")
            for queue in ("0.1bdp", "2bdp")
            for flows in ("1", "16")
        ]
        run = read(of, Figure("F", x="queue", by=("flows",), theory="router_buffer"))
        (plot,) = curves.plots(run)
        assert {one.name: one.line[0][0] for one in plot.theories} == pytest.approx(
            {"RTT × rate / √1": 1.0, "RTT × rate / √16": 0.25}
        )
        assert all(one.upright for one in plot.theories)
        drawn = only(run)
        upright = [trace for trace in drawn.figure.data if trace.name == "RTT × rate / √16"]
        assert upright[0].x == (0.25, 0.25)
        assert "Appenzeller" in drawn.caption

    def test_router_buffer_crosses_a_map(self, read: Read) -> None:
        of = [
            made_up.point(queue=queue, flows=flows, rate="10mbit", rtt="40ms", duration="2s")
            for queue in ("0.25bdp", "0.5bdp", "1bdp")
            for flows in ("1", "4", "16")
        ]
        figure = Figure("F", x="flows", rows="queue", by=(), kind="heat", theory="router_buffer")
        line = only(read(of, figure)).figure.data[-1]
        assert (list(line.x), list(line.y)) == ([0, 1, 2], pytest.approx([2, 1, 0]))

    def test_ware_is_the_share_of_bbr(self, mixed: Stored) -> None:
        (plot,) = [one for one in curves.plots(mixed) if one.y == "cc_shares:bbr"]
        (line,) = plot.theories
        for place, share in line.line[::10]:
            expected = competition.bbr_share(
                2, 2, rate_bps=100e6, rtt_s=0.04, queue_bytes=float(place) * 500_000
            )
            assert share == pytest.approx(100 * (expected or 0))
        other = theory.of("ware", plot.axis, "cc_shares:cubic", mixed.done, 0.01)
        assert other[0].line[-1][1] == pytest.approx(100 - line.line[-1][1])

    def test_ratio_of_rtts_lies_between_two_lines(self, read: Read) -> None:
        of = [
            made_up.point(topology="dumbbell", flows="2", rtt=rtt, cc="reno", queue="1MiB")
            for rtt in ("10ms+20ms", "10ms+40ms")
        ]
        figure = Figure("F", x="rtt", by=(), y="rtt_unfairness", theory="rtt_ratio")
        run = read(of, figure, change=lambda _: {"rtt_unfairness": 2.0, "queue_delay_s": None})
        (plot,) = curves.plots(run)
        least, most = plot.theories
        assert [y for _, y in least.line] == pytest.approx([2, 4])
        assert [y for _, y in most.line] == pytest.approx([4, 16])

    def test_line_ends_where_the_plot_does(self, read: Read) -> None:
        of = [made_up.point(loss=one, rate="100mbit", rtt="40ms", duration="2s") for one in ("0.001%", "1%")]
        drawn = only(read(of, Figure("F", x="loss", by=(), theory="mathis")))
        (line,) = [trace for trace in drawn.figure.data if trace.name == "Mathis"]
        high = drawn.figure.layout.yaxis.range[1]
        top = 10**high if drawn.figure.layout.yaxis.type == "log" else high
        assert max(y for y in line.y if y is not None) <= top
        assert None in line.y
        assert "Mathis" in drawn.caption

    def test_line_beyond_the_plot_is_not_in_the_legend(self, read: Read) -> None:
        of = [made_up.point(loss=one, rate="1mbit", rtt="10ms", duration="2s") for one in ("0.001%", "0.1%")]
        drawn = only(read(of, Figure("F", x="loss", by=(), theory="mathis")))
        assert "Mathis" not in [trace.name for trace in drawn.figure.data]
        assert "Mathis" not in drawn.caption


class TestNoPrediction:
    def test_page_says_so_and_draws_no_dashes(self, mixed: Stored) -> None:
        text = page.render(mixed)
        made = Page(text.replace(page.get_plotlyjs(), ""))
        assert "No prediction: the model knows one congestion control" in made.text
        assert "Predicted." not in made.text
        heads = [column.head for column in tables.points(mixed).columns]
        assert not any("predicted" in head or "difference" in head for head in heads)
        assert {"Jain's<br>index", "shares", "use<br>%", "queueing<br>ms"} <= set(heads)
        for drawn in figures.draw(mixed):
            assert not any(trace.name == "predicted" for trace in drawn.figure.data)

    def test_table_of_a_predicted_run_has_no_new_columns(self, read: Read) -> None:
        heads = [column.head for column in tables.points(read(grid())).columns]
        assert "predicted<br>Mbit/s" in heads
        assert not any("index" in head for head in heads)

    def test_why_holds_what_was_measured(self, mixed: Stored) -> None:
        (part, *_), _ = points.parts(mixed)
        assert not part.why.predicted
        assert [bar.name for bar in part.why.bars] == ["measured"]
        assert "steady goodput" in [row.name for row in part.why.rows]
        assert all(row.measured not in ("", "–") for row in part.why.rows)

    def test_overview_needs_predictions(self, mixed: Stored) -> None:
        assert overview.draw(mixed, 1) is None

    def test_bars_leave_the_mark_out(self, tmp_path: Path) -> None:
        one = made_up.point(topology="dumbbell", flows="2", duration="2s", cc="bbr+cubic")
        run = stored_module.read(made_up.store(tmp_path / "run", [(one, made_up.competing(one))], figures=[]))
        (drawn,) = figures.draw(run)
        assert "prediction" not in drawn.caption
        assert [trace.name for trace in drawn.figure.data] == ["goodput, whole load", "steady part"]

    def test_curve_through_points_with_and_without_has_marks_where_there_are_any(self, read: Read) -> None:
        of = [made_up.point(qdisc=qdisc) for qdisc in ("fifo", "fq_codel")]
        (plot,) = curves.plots(read(of, Figure("F", x="qdisc", by=())))
        (curve,) = plot.curves
        assert [place for place, _ in curve.prediction] == ["fifo"]
        assert not curve.outdated

    def test_colours_of_controls_are_the_same_everywhere(self, read: Read) -> None:
        of = [made_up.point(rmem=rmem, cc=cc) for rmem in ("1MiB", "2MiB") for cc in ("reno", "bbr", "cubic")]
        (plot,) = curves.plots(read(of, Figure("F", x="rmem", by=("cc",))))
        assert [plot.colour(place) for place in range(3)] == [style.GREEN, style.VERMILLION, style.BLUE]
        assert style.colours(["nv", "cubic", "yeah"]) == {
            "cubic": style.BLUE,
            "nv": style.VERMILLION,
            "yeah": style.GREEN,
        }


class TestPoint:
    @staticmethod
    def of(
        point: made_up.Point, change: Callable[[Tables], None] = lambda _: None
    ) -> tuple[list[panels.Panel], str]:
        its = made_up.competing(point)
        change(its)
        entry = Entry(point.id, point.seed, point.knobs, its["points"][0])
        whole = series.read(its["samples"], its["queues"], its["flows"], its["delays"])
        limited = band_module.read(its["limits"])
        return panels.build(entry, whole, limited), panels.caption(entry, whole, limited)

    def panel(self, built: list[panels.Panel], title: str) -> panels.Panel:
        (found,) = [one for one in built if one.title.startswith(title)]
        return found

    def test_flows_are_named_by_their_control_where_it_differs(self) -> None:
        built, _ = self.of(made_up.point(**made_up.MIXED, cc="bbr+cubic"))
        assert [line.name for line in built[0].lines][:4] == [
            "flow 0 bbr",
            "flow 1 cubic",
            "flow 2 bbr",
            "flow 3 cubic",
        ]
        built, _ = self.of(made_up.point(**made_up.MIXED, cc="cubic"))
        assert built[0].lines[0].name == "flow 0"

    def test_threshold_is_a_broken_line_in_the_colour_of_its_window(self) -> None:
        built, caption = self.of(made_up.point(**made_up.MIXED, cc="bbr+cubic"))
        panel = self.panel(built, "Congestion window")
        thresholds = [line for line in panel.lines if line.name == "ssthresh"]
        assert [line.colour for line in thresholds] == [
            panel.lines[1].colour,
            panel.lines[3].colour,
        ]  # BBR has none
        assert {(line.dash, line.listed) for line in thresholds} == {("dash", False)}
        assert np.isnan(thresholds[0].values[0])  # infinite before the first loss
        assert "slow start thresholds" in caption

    def test_threshold_of_one_flow_is_among_its_windows(self) -> None:
        built, _ = self.of(made_up.point(duration="2s", cc="cubic"))
        assert "ssthresh" in [line.name for line in self.panel(built, "Windows").lines]

    def test_probe_is_drawn_with_what_it_lost(self) -> None:
        built, caption = self.of(made_up.point(**made_up.MIXED, cc="cubic"))
        panel = self.panel(built, "RTT and delay of the probe")
        probe, lost = panel.lines[-2:]
        assert (probe.name, lost.name) == ("probe, one way", "probe lost")
        assert 20 <= np.nanmin(probe.values) <= np.nanmax(probe.values) < 200
        assert set(lost.texts) == {"1 probe packets lost"}
        assert "one way" in caption

    def test_level_of_the_base_rtt_is_drawn_where_there_is_one(self) -> None:
        for rtt, there in (("40ms", True), ("40ms+80ms", False)):
            built, _ = self.of(made_up.point(**{**made_up.MIXED, "rtt": rtt}, cc="cubic"))
            names = [line.name for line in self.panel(built, "RTT").lines]
            assert ("base 40 ms" in names) == there

    def test_many_probes_are_thinned_by_the_slowest(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(series, "MOST_PROBES", 10)
        rows = [{"kind": "probe", "t_s": n, "delay_s": None if n == 7 else float(n)} for n in range(100)]
        probe = series._probe(rows)
        assert probe is not None
        assert list(probe.delay_s) == [9, 19, 29, 39, 49, 59, 69, 79, 89, 99]
        assert probe.lost.sum() == probe.lost[0] == 1

    def test_several_bottlenecks_are_drawn_by_name(self) -> None:
        point = made_up.point(topology="parking_lot", bottlenecks="6", flows="2", duration="2s")
        built, _ = self.of(point)
        panel = self.panel(built, "Bottleneck queues")
        assert "2 more left out" in panel.title
        backlogs = [line for line in panel.lines if not line.marks and line.dash == "solid"]
        assert [line.name for line in backlogs] == [f"r{n}-eth1" for n in range(1, 5)]
        drops = [line for line in panel.lines if line.marks]
        assert drops[0].texts[0] == "3 packets dropped at r1-eth1"

    def test_rate_that_changes_is_a_line_of_its_own(self) -> None:
        def change(its: Tables) -> None:
            for row in its["queues"]:
                row["rate_bps"] = 100e6 if row["t_s"] < 5 else 50e6

        built, _ = self.of(made_up.point(**made_up.MIXED, cc="cubic"), change)
        (link,) = [line for line in built[0].lines if line.name.startswith("link")]
        assert link.values[0] == pytest.approx(2 * link.values[-1])

    def test_many_flows_are_summed_by_control(self) -> None:
        built, caption = self.of(made_up.point(**{**made_up.MIXED, "flows": "12"}, cc="bbr+cubic"))
        assert [line.name for line in built[0].lines][:2] == ["6 bbr flows", "6 cubic flows"]
        assert "Not all 12 flows are drawn by themselves" in caption

    def test_flows_that_come_and_go_are_summed_first(self) -> None:
        knobs = {**made_up.MIXED, "flows": "2", "reverse": "1", "arrivals": "every:100ms", "sizes": "100KB"}
        built, _ = self.of(made_up.point(**knobs, cc="cubic"))
        names = [line.name for line in built[0].lines]
        assert names[:3] == ["flow 0", "flow 1", "flow 2 reverse"]
        assert names[3].endswith("cubic arrival flows")
        assert "all but reverse flows" in names

    def test_sum_of_flows_counts_only_those_that_are_there(self) -> None:
        point = made_up.point(**made_up.MIXED, cc="cubic", start="0s+5s", stop="end+7s")
        built, _ = self.of(point)
        (whole,) = [line for line in built[0].lines if line.name == "all flows"]
        assert np.nanmax(whole.values) < 1.05 * 95.64


class TestSpread:
    def test_words_say_mean_and_interval(self) -> None:
        scale = columns.scale("utilisation")
        assert spread.of([0.5]).words(scale) == ""
        assert spread.of([0.5, 0.5]).words(scale) == "mean of 2 seeds 50 %, all equal"
        assert spread.of([0.4, 0.5, 0.6]).words(scale).startswith("mean of 3 seeds 50 %, 95 % interval 4")

    def test_caption_warns_of_few(self) -> None:
        assert spread.caption([1, 1]) == ""
        assert "3 repetitions are few" in spread.caption([1, 3, 8])
        assert "few" not in spread.caption([8])


class TestHostileText:
    @pytest.mark.parametrize("kind", scenario.FIGURE_KINDS)
    def test_of_a_knob_and_a_flow_stays_text(self, tmp_path: Path, kind: str) -> None:
        of = [
            made_up.point(seed, **made_up.MIXED, cc="bbr+cubic", queue=queue)
            for queue in ("1bdp", "2bdp")
            for seed in (1, 2)
        ]
        its = [(one, made_up.competing(one)) for one in of]
        for _, one in its:
            for row in (*one["flows"], *one["samples"]):
                row["cc"] = HOSTILE
        told = {
            "curve": {"x": "queue", "by": ["cc"], "y": "jain"},
            "heat": {"x": "queue", "rows": "cc", "by": [], "y": "jain"},
            "box": {"x": "queue", "by": ["cc"], "y": "goodput_bps", "table": "flows"},
            "cdf": {"by": ["cc"], "y": "goodput_bps", "table": "flows"},
            "ellipse": {"x": "queue_delay_s", "by": ["cc"], "y": "jain"},
            "time": {"x": "queue", "by": [], "y": "goodput_bps"},
        }[kind]
        folder = made_up.store(tmp_path / "run", its, figures=[{"title": HOSTILE, "kind": kind, **told}])
        manifest = folder.manifest()
        for planned in manifest["points"]:
            planned["knobs"]["cc"] = HOSTILE
        folder.write_manifest(manifest)
        run = stored_module.read(RunFolder(folder.path))
        (drawn,) = figures.draw(run)
        assert drawn.title == HOSTILE
        assert "<script" not in drawn.figure.to_json().replace("\\u003c", "<")
        assert len(points.parts(run)[0]) == 4
