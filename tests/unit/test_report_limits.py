"""What limited a point, in the report: the band over time, the side by side of prediction and verdict."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.model.limits import LIMITS
from lab.report import band, limits, observed, page, panels, points, series, stack, style, tables, why
from lab.report import stored as stored_module
from lab.report.stored import Entry, Stored
from tests import made_up_run as made_up
from tests.unit.test_report import HOSTILE, Page


def interval(t_s: float, span_s: float, flow: int = 0, **seconds: float) -> dict[str, Any]:
    """Return a row of table limits; what is not named is 0."""
    return {
        "flow": flow,
        "t_s": t_s,
        "span_s": span_s,
        **{f"{limit}_s": seconds.get(limit, 0.0) for limit in LIMITS},
    }


def entry(point: made_up.Point, **changes: Any) -> Entry:
    return Entry(point.id, point.seed, point.knobs, made_up.done(point, **changes)["points"][0])


def run_of(path: Path, *of: made_up.Point, **changes: Any) -> Stored:
    """Return a run of points that went as predicted; `changes` are to their rows."""
    folder = made_up.store(path / "run", [(one, made_up.done(one, **changes)) for one in of])
    return stored_module.read(folder)


class TestBand:
    def test_of_one_flow_is_each_interval(self) -> None:
        rows = [
            interval(1.0, 1.0, slow_start=1.0),
            interval(2.0, 1.0, slow_start=0.25, receive_window=0.75),
        ]
        found = band.read(rows)
        assert found.edges_s.tolist() == [0, 1, 2]
        assert {name: values.tolist() for name, values in found.shares.items()} == {
            "receive_window": [0, 0.75],
            "slow_start": [1, 0.25],
        }
        assert found.flows == 1
        assert band.words(found, 1) == "receive window 75 %, slow start 25 %"

    def test_of_several_flows_is_their_mean(self) -> None:
        rows = [interval(1.0, 1.0, 0, link=1.0), interval(1.0, 1.0, 1, link=0.5, loss=0.5)]
        found = band.read(rows)
        assert found.shares["link"].tolist() == [0.75]
        assert found.shares["loss"].tolist() == [0.25]

    def test_flow_that_has_ended_counts_no_more(self) -> None:
        rows = [
            interval(1.0, 1.0, 0, link=1.0),
            interval(2.0, 1.0, 0, link=1.0),
            interval(1.0, 1.0, 1, loss=1.0),
        ]
        assert band.read(rows).shares["link"].tolist() == [0.5, 1.0]

    def test_flows_sampled_at_different_instants(self) -> None:
        rows = [interval(2.0, 2.0, 0, link=2.0), interval(1.0, 1.0, 1, loss=1.0)]
        found = band.read(rows)
        assert found.edges_s.tolist() == [0, 1, 2]
        assert found.shares["link"].tolist() == [0.5, 1.0]

    def test_gap_is_empty(self) -> None:
        found = band.read([interval(1.0, 1.0, link=1.0), interval(3.0, 1.0, link=1.0)])
        assert found.shares["link"].tolist() == [1, 0, 1]
        assert band.words(found, 1) == ""

    def test_without_rows_is_nothing(self) -> None:
        found = band.read([])
        assert (found.shares, found.flows) == ({}, 0)

    @given(
        st.lists(
            st.tuples(*[st.floats(0, 1) for _ in LIMITS]).filter(lambda parts: sum(parts) > 0.01),
            min_size=1,
            max_size=60,
        ),
        st.integers(1, 9),
    )
    def test_thinned_loses_no_second(self, intervals: list[tuple[float, ...]], most: int) -> None:
        """Added up over time, the shares are the seconds that went in, whatever the thinning."""
        ends = itertools.accumulate(sum(parts) for parts in intervals)
        rows = [
            interval(end, sum(parts), **dict(zip(LIMITS, parts, strict=True)))
            for end, parts in zip(ends, intervals, strict=True)
        ]
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(band, "MOST_SAMPLES", most)
            found = band.read(rows)
        assert len(found.edges_s) <= most + 1
        spans = np.diff(found.edges_s)
        for number, limit in enumerate(LIMITS):
            spent = sum(parts[number] for parts in intervals)
            shown = float((found.shares.get(limit, np.zeros(len(spans))) * spans).sum())
            assert shown == pytest.approx(spent, abs=1e-6 * len(intervals))

    def test_many_intervals_are_few(self) -> None:
        rows = [interval(0.001 * n, 0.001, link=0.0005, loss=0.0005) for n in range(1, 20_001)]
        found = band.read(rows)
        assert len(found.edges_s) <= series.MOST_SAMPLES + 1
        assert found.shares["link"] == pytest.approx(0.5)


class TestBandPanel:
    @staticmethod
    def last(point: made_up.Point) -> tuple[list[panels.Panel], str]:
        its = made_up.done(point)
        whole, limited = series.read(its["samples"], its["queues"]), band.read(its["limits"])
        one = Entry(point.id, point.seed, point.knobs, its["points"][0])
        return panels.build(one, whole, limited), panels.caption(one, whole, limited)

    def test_is_the_last_and_names_the_limits_that_bound(self) -> None:
        built, caption = self.last(made_up.point(rmem="1MiB"))
        panel = built[-1]
        assert panel.title == "What limited the flow"
        assert panel.range == (0, 100)
        named = [line.name for line in panel.lines if line.name]
        assert named == ["receive window", "slow start", "application"]
        assert sum(line.values for line in panel.lines if line.fill) == pytest.approx(100)
        assert "band of limits" in caption

    def test_says_that_it_is_a_mean(self) -> None:
        built, caption = self.last(made_up.point(flows="3"))
        assert built[-1].title == "What limited the flows, their mean"
        assert "mean of 3 flows" in caption

    def test_is_not_there_without_rows(self) -> None:
        point = made_up.point()
        its = made_up.done(point)
        whole = series.read(its["samples"], its["queues"])
        built = panels.build(entry(point), whole, band.read([]))
        assert built[-1].title.startswith("Bottleneck queue")

    def test_is_drawn_stacked_on_the_shared_time_axis(self) -> None:
        built, _ = self.last(made_up.point(rmem="1MiB"))
        drawn, _ = stack.draw(built)
        steps = [trace for trace in drawn.data if trace.stackgroup]
        assert [trace.name for trace in steps] == ["receive window", "slow start", "application"]
        assert {trace.line.shape for trace in steps} == {"hv"}
        assert {trace.fillcolor for trace in steps[:2]} == {style.VERMILLION, style.GREEN}
        assert steps[2].fillpattern.shape == "/"
        (told,) = [trace for trace in drawn.data if trace.showlegend is False]
        assert told.text[-1] == "receive window 90 %, application 10 %"

    def test_size_of_a_point_counts_what_pointing_says(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (part,), _ = points.parts(run_of(tmp_path, made_up.point()))
        size = points._size(part)
        monkeypatch.setattr(band, "words", lambda *_: "x" * 1000)
        (longer,), _ = points.parts(run_of(tmp_path, made_up.point()))
        assert points._size(longer) > size + 30_000


MACHADO = {  # Machado, Oliveira and Fernandes 2009, severity 1: what a colour becomes, linear RGB
    "protan": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deutan": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritan": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
    "none": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour: str) -> np.ndarray:
    """Return a colour such as #0072B2 as linear RGB."""
    values = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def cielab(rgb: np.ndarray) -> np.ndarray:
    xyz = TO_XYZ @ np.clip(rgb, 0, 1) / np.array([0.9505, 1, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours as WCAG 2 defines it."""
    low, high = sorted(float(TO_XYZ[1] @ linear(colour)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


class TestLooks:
    def test_every_limit_has_its_own(self) -> None:
        assert list(limits.LOOKS) == list(LIMITS)
        assert len({look.colour for look in limits.LOOKS.values()}) == len(LIMITS)
        assert len({look.symbol for look in limits.LOOKS.values()}) == len(LIMITS)

    @pytest.mark.parametrize("eyes", MACHADO)
    def test_are_told_apart_whatever_the_eyes(self, eyes: str) -> None:
        """By colour, 15 apart in CIELAB, or by a pattern that only one of the two has."""
        for one, other in itertools.combinations(limits.LOOKS.values(), 2):
            if one.pattern != other.pattern:
                continue
            seen = [cielab(np.array(MACHADO[eyes]) @ linear(look.colour)) for look in (one, other)]
            assert math.dist(*seen) > 15, (one, other)

    @pytest.mark.parametrize("limit", LIMITS)
    def test_text_reads_on_it(self, limit: str) -> None:
        look = limits.look(limit)
        assert contrast(look.colour, look.text) > 4.5

    def test_pattern_is_for_what_only_colour_would_tell(self) -> None:
        assert {limit for limit, look in limits.LOOKS.items() if look.pattern} == {
            "pacing",
            "application",
            "machine",
        }

    def test_unknown_limit_has_a_class_of_ours(self) -> None:
        assert limits.css_class(HOSTILE) == "limit-unknown"
        assert limits.look(HOSTILE) == limits.UNKNOWN
        for limit in LIMITS:
            assert f".{limits.css_class(limit)} " in limits.css()
        assert "url(" not in limits.css()

    @pytest.mark.parametrize(
        ("share", "text"),
        [
            (None, "–"),
            (0.0, "0 %"),
            (0.0004, "0 %"),
            (0.005, "0.5 %"),
            (0.0996, "10 %"),
            (0.93, "93 %"),
            (0.997, "99.7 %"),
            (0.9996, "100 %"),
            (1.0, "100 %"),
        ],
    )
    def test_shares_read_well(self, share: float | None, text: str) -> None:
        assert limits.percent(share) == text

    def test_order_is_that_of_the_model_and_strangers_last(self) -> None:
        assert limits.ordered({"zeal": 1, "slow_start": 1, "link": 1}) == ["link", "slow_start", "zeal"]
        assert limits.present({"link": 0.0001, "loss": 0.5}, {"queue": 0.2}) == ["loss", "queue"]


class TestObserved:
    @staticmethod
    def of(point: made_up.Point) -> observed.Observed:
        its = made_up.done(point)
        return observed.observe(entry(point), its["samples"], its["queues"], 0.0)

    def test_takes_every_sample(self) -> None:
        seen = self.of(made_up.point())
        assert seen.window_bytes == 65536 * made_up.SAMPLES
        assert seen.inflight_bytes == 8 * made_up.MSS
        assert (seen.queued_bytes, seen.sndbuf_bytes) == (30000, 87040)
        steady = range(round(made_up.STEADY_S / made_up.SPACING_S), made_up.SAMPLES)
        assert seen.backlog_bytes == pytest.approx(1514 * sum(steady) / len(steady))

    def test_in_flight_is_of_all_flows_and_the_window_of_one(self) -> None:
        seen = self.of(made_up.point(flows="3"))
        assert seen.inflight_bytes == 3 * 8 * made_up.MSS
        assert seen.flow_inflight_bytes == 8 * made_up.MSS
        assert seen.window_bytes == 65536 * made_up.SAMPLES

    def test_without_samples_is_unknown(self) -> None:
        assert observed.observe(entry(made_up.point()), [], [], 0.0) == observed.Observed()


class TestWhy:
    @staticmethod
    def rows(point: made_up.Point, **changes: Any) -> dict[str, why.Row]:
        its = made_up.done(point, **changes)
        seen = observed.observe(entry(point, **changes), its["samples"], its["queues"], 0.0)
        return {row.name: row for row in why.build(entry(point, **changes), seen).rows}

    def test_sets_numbers_side_by_side(self) -> None:
        rows = self.rows(made_up.point(rmem="1MiB", rate="100mbit", rtt="100ms"), queue_max_bytes=4096)
        assert rows["steady goodput"].difference == "−1.0 %"
        assert rows["limit"][1:3] == ("receive window", "receive window")
        assert rows["slow start"].limit == "limit-slow_start"
        assert rows["window of a flow"].measured == "2.5 MiB"
        assert rows["send buffer of a flow"].measured == "29.3 KiB of 85 KiB in use"
        assert rows["in flight, all flows"].measured == "11.31 KiB"
        assert rows["BDP"].predicted == "1.192 MiB"
        assert rows["queue, longest"].measured == "4 KiB of 1.192 MiB, 5 drops"
        assert "times the goodput" in rows["next limit"].predicted
        assert rows["next limit"].measured == ""

    def test_shares_are_those_that_either_has(self) -> None:
        rows = self.rows(
            made_up.point(),
            predicted_shares={"link": 0.75, "slow_start": 0.25},
            limit_shares={"link": 0.5, "queue": 0.5},
        )
        assert rows["link"][1:3] == ("75 %", "50 %")
        assert rows["slow start"][1:3] == ("25 %", "0 %")
        assert rows["queue"][1:3] == ("0 %", "50 %")
        assert "loss" not in rows

    def test_bars_add_up_and_name_what_has_room(self) -> None:
        told = why.build(
            entry(made_up.point(), limit_shares={"link": 0.9, "slow_start": 0.1}), observed.Observed()
        )
        measured = told.bars[1]
        assert measured.name == "measured"
        assert [piece.text for piece in measured.pieces] == ["link 90 %", ""]
        assert sum(piece.share for piece in measured.pieces) == pytest.approx(1)
        assert measured.words == "link 90 %, slow start 10 %"

    @pytest.mark.parametrize("margin", [None, math.inf, math.nan])
    def test_limit_that_nothing_comes_near(self, margin: float | None) -> None:
        row = self.rows(made_up.point(), next_limit="link", margin=margin)["next limit"]
        assert row.predicted == "link"

    def test_row_of_an_older_version_has_dashes(self) -> None:
        point = made_up.point()
        bare = {"point": point.id, "status": "done", "steady_goodput_bps": 1e6}
        told = why.build(Entry(point.id, 1, point.knobs, bare), observed.Observed())
        assert told.bars == []
        assert (told.prediction, told.verdict) == ("", "")
        assert not told.predicted
        assert [row[:3] for row in told.rows] == [("steady goodput", "–", "1 Mbit/s")]

    def test_every_point_has_its_part_and_its_address(self, tmp_path: Path) -> None:
        run = run_of(tmp_path, *(made_up.point(rmem=rmem) for rmem in ("1MiB", "2MiB", "3MiB")))
        made = Page(page.render(run))
        articles = made.named("article")
        assert [one["id"] for one in articles] == [f"why-{one.id}" for one in run.done]
        assert ["hidden" in one for one in articles] == [False, True, True]
        for one in run.done:
            assert str(one.text("prediction")) in made.text
        assert made.text.count("bound for the most part. Raise it, or leave it.") == 3

    def test_what_a_run_says_stays_text(self, tmp_path: Path) -> None:
        texts = dict.fromkeys(
            ("prediction", "verdict", "limit_predicted", "limit_measured", "next_limit"), HOSTILE
        )
        shares = {HOSTILE: 1.0}
        of = [made_up.point(rmem=rmem) for rmem in ("1MiB", "2MiB")]
        run = run_of(tmp_path, *of, **texts, limit_shares=shares, predicted_shares=shares)
        made = Page(page.render(run))
        assert len(made.scripts) == 4
        assert not made.named("img")
        assert {"limit-unknown"} == {
            str(attrs.get("class"))
            for attrs in made.named("div")
            if str(attrs.get("class")).startswith("limit-")
        }


class TestTables:
    def test_limits_stand_side_by_side(self, tmp_path: Path) -> None:
        table = tables.points(run_of(tmp_path, made_up.point(rmem="1MiB")))
        heads = [column.head for column in table.columns]
        at = heads.index("limit<br>predicted")
        assert heads[at + 1] == "limit<br>measured"
        ((_, cells),) = table.rows
        assert cells[at - 1].text == "receive window"
        assert cells[at].text == "receive window 79 %"

    def test_of_an_older_version_are_dashes(self, tmp_path: Path) -> None:
        nothing = dict.fromkeys(("limit_predicted", "limit_measured", "limit_shares"))
        ((_, cells),) = tables.points(run_of(tmp_path, made_up.point(), **nothing)).rows
        assert [cell.text for cell in cells[4:6]] == ["–", "–"]


def test_share_column_is_read_whatever_it_holds() -> None:
    point = made_up.point()
    for held in (None, {}, {"link": None}):
        assert Entry(point.id, 1, point.knobs, {"limit_shares": held}).shares("limit_shares") == {}
    assert Entry(point.id, 1, point.knobs, None).shares("limit_shares") == {}
    held = {"loss": 0.2, "link": 0.8}
    assert list(Entry(point.id, 1, point.knobs, {"limit_shares": held}).shares("limit_shares")) == [
        "link",
        "loss",
    ]
