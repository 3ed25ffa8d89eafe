"""The rules that name a likely cause: each by the two numbers that say so, and none where nothing does."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import causes, schema
from lab.causes import rules
from lab.causes.likely import GOODPUTS, LOSSES, RTTS, TIMES
from lab.causes.sides import Side

Row = dict[str, Any]
PLAIN: Row = {
    "goodput_bps": 90e6,
    "steady_goodput_bps": 92e6,
    "measured_rate_bps": 100e6,
    "rate_bps": 100e6,
    "rtt_s": 0.02,
    "loaded_rtt_s": 0.03,
    "mtu": 1500,
    "load_s": 10.0,
    "delivered_bytes": 112_500_000,
    "retransmits": 40,
    "retransmit_share": 1e-4,
    "queue_drops": 40,
    "limit_shares": {"link": 1.0},
    "kernel_release": "6.12.117",
    "kernel_hz": 250,
    "offloads": "off",
    "engine": "virtual",
}
SEEN = {"window_bytes": 3 * 2**20, "sndbuf_bytes": 4 * 2**20, "peak_rtt_s": 0.04, "reordered": 0.0}


def side(name: str = "twin", seen: Mapping[str, float] | None = None, **changes: Any) -> Side:
    return Side(name, {**PLAIN, **changes}, {**SEEN, **(seen or {})})


REAL = side("real")


def first(column: str, b: Side, a: Side = REAL) -> tuple[str, str]:
    """Return the rule and the sentence of the likeliest cause."""
    found = causes.likely(column, a, b)
    assert found, f"no cause of {column}"
    assert [one.share for one in found] == sorted((one.share for one in found), reverse=True)
    return found[0].rule, found[0].sentence


def limits(**shares: float) -> dict[str, Any]:
    return {"limit_shares": shares}


class TestGoodput:
    def test_a_slower_link(self) -> None:
        twin = side(measured_rate_bps=80e6, goodput_bps=72e6)
        assert first("goodput_bps", twin) == (
            "rate",
            "the rate is 80 Mbit/s in twin and 100 Mbit/s in real: a slower link",
        )

    def test_the_rate_that_was_set_where_none_was_measured(self) -> None:
        twin = side(measured_rate_bps=None, rate_bps=80e6, goodput_bps=72e6)
        assert first("goodput_bps", twin)[0] == "rate"

    def test_a_longer_path_where_a_window_was_the_limit(self) -> None:
        held = limits(receive_window=1.0)
        real = side("real", **held)
        twin = side(rtt_s=0.04, loaded_rtt_s=0.06, goodput_bps=45e6, **held)
        assert first("goodput_bps", twin, real) == (
            "base_rtt",
            "the base RTT is 40 ms in twin and 20 ms in real: a longer path",
        )

    def test_a_longer_path_is_no_cause_where_the_link_was_full(self) -> None:
        twin = side(rtt_s=0.04, loaded_rtt_s=0.06, goodput_bps=45e6)
        assert "base_rtt" not in {one.rule for one in causes.likely("goodput_bps", REAL, twin)}

    def test_a_longer_queue(self) -> None:
        held = limits(receive_window=1.0)
        real, twin = (
            side("real", loaded_rtt_s=0.02, **held),
            side(loaded_rtt_s=0.031, goodput_bps=60e6, **held),
        )
        assert first("goodput_bps", twin, real) == (
            "queue",
            "the RTT under load is 31 ms in twin and 20 ms in real: a longer queue",
        )

    def test_a_smaller_window_with_the_kernels_that_size_it(self) -> None:
        held = limits(receive_window=1.0)
        twin = side(seen={"window_bytes": 2 * 2**20}, goodput_bps=60e6, kernel_release="6.1.192", **held)
        assert first("goodput_bps", twin, side("real", **held)) == (
            "receive_window",
            "the largest receive window is 2 MiB in twin and 3 MiB in real:"
            " a smaller window (Linux 6.1.192 and 6.12.117)",
        )

    def test_a_smaller_send_buffer(self) -> None:
        held = limits(send_buffer=1.0)
        twin = side(seen={"sndbuf_bytes": 2**20}, goodput_bps=25e6, **held)
        assert first("goodput_bps", twin, side("real", **held))[0] == "send_buffer"

    def test_a_window_that_nobody_waited_for_is_no_cause(self) -> None:
        twin = side(seen={"window_bytes": 2**20}, goodput_bps=60e6)
        assert causes.likely("goodput_bps", REAL, twin) == []

    def test_four_times_the_loss_halves_goodput(self) -> None:
        held = limits(loss=1.0)
        twin = side(retransmit_share=4e-4, goodput_bps=45e6, **held)
        (cause, *_) = causes.likely("goodput_bps", side("real", **held), twin)
        assert (cause.rule, cause.share) == ("loss", pytest.approx(1.0))
        assert cause.sentence == (
            "the share of bytes sent again is 0.04 % in twin and 0.01 % in real: more loss"
        )

    def test_no_loss_at_all_is_a_number_too(self) -> None:
        real, twin = (
            side("real", retransmit_share=0.0, **limits(link=1.0)),
            side(retransmit_share=1e-2, goodput_bps=9e6, **limits(loss=1.0)),
        )
        assert first("goodput_bps", twin, real)[0] == "loss"

    @pytest.mark.parametrize(
        ("limit", "rule"),
        [
            ("slow_start", "slow_start"),
            ("hystart", "hystart"),
            ("queue", "short_queue"),
            ("application", "application"),
        ],
    )
    def test_a_limit_that_held_one_of_them_for_longer(self, limit: str, rule: str) -> None:
        twin = side(goodput_bps=75e6, **limits(link=0.6, **{limit: 0.4}))
        name, sentence = first("goodput_bps", twin)
        assert name == rule
        assert "40 % of the transfer in twin and 0 % in real" in sentence

    def test_the_start_is_no_cause_of_the_steady_part(self) -> None:
        twin = side(steady_goodput_bps=60e6, load_s=2.0, **limits(link=0.6, slow_start=0.4))
        assert not {"slow_start", "load"} & {
            one.rule for one in causes.likely("steady_goodput_bps", REAL, twin)
        }
        assert "load" in {
            one.rule for one in causes.likely("goodput_bps", REAL, side(goodput_bps=60e6, load_s=2.0))
        }

    def test_jumbo_frames(self) -> None:
        twin = side(mtu=9000, goodput_bps=90e6 * 8948 / 9014 / (1448 / 1514))
        assert first("goodput_bps", twin)[0] == "packets"

    def test_a_machine_that_had_its_hands_full(self) -> None:
        real = side("real", cpu_busy=0.93, cpu_softirq=0.6, goodput_bps=50e6, engine="realtime")
        assert first("goodput_bps", side(), real) == (
            "machine",
            "the busiest CPU of real worked 93 % of the time, 60 % with packets; twin ran in virtual time:"
            " the machine, not the network",
        )
        idle = side("real", cpu_busy=0.4, goodput_bps=50e6)
        assert causes.likely("goodput_bps", idle, side()) == []

    def test_reordering(self) -> None:
        twin = side(seen={"reordered": 5000.0}, goodput_bps=40e6)
        assert first("goodput_bps", twin)[1] == (
            "the number of segments that overtook others is 5000 in twin and 0 in real: more reordering"
        )

    def test_times_fall_where_goodput_rises(self) -> None:
        real, twin = side("real", fct_s=1.0), side(fct_s=1.25, measured_rate_bps=80e6)
        assert first("fct_s", twin, real)[0] == "rate"
        assert causes.likely("fct_s", real, side(fct_s=0.8, measured_rate_bps=80e6)) == []

    def test_a_machine_beside_one_that_nobody_watched(self) -> None:
        real = side("real", cpu_busy=0.93, goodput_bps=50e6, engine="realtime")
        assert first("goodput_bps", side(engine="remote"), real)[1] == (
            "the busiest CPU of real worked 93 % of the time: the machine, not the network"
        )


class TestRtt:
    def test_a_longer_queue_by_the_longest_wait(self) -> None:
        twin = side(loaded_rtt_s=0.05, seen={"peak_rtt_s": 0.06})
        assert first("loaded_rtt_s", twin) == (
            "queue",
            "the longest wait on the way is 40 ms in twin and 20 ms in real: a longer queue",
        )

    def test_a_longer_path(self) -> None:
        twin = side(rtt_s=0.03, loaded_rtt_s=0.04, seen={"peak_rtt_s": 0.05})
        assert first("loaded_rtt_s", twin) == (
            "base_rtt",
            "the base RTT is 30 ms in twin and 20 ms in real: a longer path",
        )

    def test_a_slower_drain(self) -> None:
        twin = side(measured_rate_bps=50e6, loaded_rtt_s=0.04)
        assert first("loaded_rtt_s", twin)[0] == "rate"

    def test_a_link_that_was_not_full(self) -> None:
        twin = side(loaded_rtt_s=0.021, **limits(link=0.2, loss=0.8))
        assert first("loaded_rtt_s", twin)[0] == "link"

    def test_timers_that_were_late(self) -> None:
        real = side("real", loaded_rtt_s=0.032, timer_late_s=0.002)
        assert first("loaded_rtt_s", side(), real) == (
            "timers",
            "one timer in a hundred was 2 ms late in real: the machine, not the network",
        )


class TestLosses:
    def test_drops_of_the_queue(self) -> None:
        twin = side(retransmits=400, queue_drops=400)
        assert first("retransmits", twin) == (
            "drops",
            "the number of packets that the queue dropped is 400 in twin and 40 in real:"
            " more congestion loss",
        )

    def test_a_shorter_queue_where_drops_were_not_recorded(self) -> None:
        real, twin = (
            side("real", queue_drops=None),
            side(retransmits=90, queue_drops=None, seen={"peak_rtt_s": 0.025}),
        )
        assert first("retransmits", twin, real)[0] == "queue"

    def test_from_none_at_all(self) -> None:
        real, twin = side("real", retransmits=0, queue_drops=0), side()
        assert first("retransmits", twin, real)[0] == "drops"


class TestNothing:
    def test_equal_sides_have_no_cause(self) -> None:
        for column in (*GOODPUTS, *RTTS, *LOSSES, *TIMES, "jain"):
            assert causes.likely(column, REAL, side()) == []

    def test_it_is_said_and_nothing_is_guessed(self) -> None:
        twin = side(goodput_bps=45e6)
        assert causes.likely("goodput_bps", REAL, twin) == []
        assert causes.said([], REAL, twin) == "No cause found in what was recorded."

    def test_what_else_differs_is_no_cause_but_is_said(self) -> None:
        real = side("real", kernel_release="5.15.0", kernel_hz=1000, engine="remote")
        twin = side(goodput_bps=45e6)
        assert causes.said(causes.likely("goodput_bps", real, twin), real, twin) == (
            "No cause found in what was recorded; what else differs: Linux 5.15.0 and 6.12.117,"
            " HZ 1000 and 250, engine remote and virtual."
        )

    def test_a_difference_the_other_way_is_no_cause(self) -> None:
        """A slower link, and more goodput."""
        twin = side(measured_rate_bps=80e6, goodput_bps=95e6)
        assert "rate" not in {one.rule for one in causes.likely("goodput_bps", REAL, twin)}

    def test_a_rule_that_would_explain_far_more_is_none(self) -> None:
        """A link of a tenth of the rate does not cost a percent."""
        twin = side(measured_rate_bps=10e6, goodput_bps=89e6)
        assert "rate" not in {one.rule for one in causes.likely("goodput_bps", REAL, twin)}

    def test_columns_that_no_rule_is_about(self) -> None:
        assert causes.likely("jain", side("real", jain=1.0), side(jain=0.5)) == []

    @pytest.mark.parametrize("missing", [*PLAIN, "all"])
    def test_what_was_not_recorded_is_borne(self, missing: str) -> None:
        empty = Side("real", {} if missing == "all" else {**PLAIN, missing: None}, {})
        for column in (*GOODPUTS, *RTTS, *LOSSES, *TIMES):
            for a, b in ((empty, side(goodput_bps=1e6)), (side(goodput_bps=1e6), empty)):
                found = causes.likely(column, a, b)
                assert causes.said(found, a, b)


numbers = st.one_of(st.none(), st.floats(0, 1e12), st.integers(0, 10**9))


@given(
    st.sampled_from(sorted(GOODPUTS | RTTS | LOSSES | TIMES)),
    *[
        st.fixed_dictionaries(
            {
                **dict.fromkeys([name for name, value in PLAIN.items() if isinstance(value, float)], numbers),
                "retransmits": numbers,
                "limit_shares": st.dictionaries(st.sampled_from(["link", "loss", "queue"]), st.floats(0, 1)),
                "cpu_busy": st.one_of(st.none(), st.floats(0, 1)),
            }
        )
        for _ in range(2)
    ],
)
def test_any_two_rows_have_causes_that_add_sense(column: str, a: Row, b: Row) -> None:
    sides = [Side(name, {**PLAIN, **row}, SEEN) for name, row in (("a", a), ("b", b))]
    found = causes.likely(column, *sides)
    assert all(0.1 <= one.share <= 1 for one in found)
    assert causes.said(found, *sides).endswith(".")
    back = causes.likely(column, *reversed(sides))
    assert {one.rule for one in back} == {one.rule for one in found}


def test_columns_and_rules_are_those_there_are() -> None:
    known = {column.name for column in schema.POINT_COLUMNS}
    assert known >= GOODPUTS | RTTS | LOSSES | TIMES
    assert set(causes.SAMPLES) <= {column.name for column in schema.SAMPLE_COLUMNS}
    for every in (rules.OF_GOODPUT, rules.OF_RTT, rules.OF_LOSSES):
        names = [name for name, _ in every]
        assert len(set(names)) == len(names)


class TestSides:
    def test_repetitions_become_one_row(self) -> None:
        rows = [
            {
                "goodput_bps": 1.0,
                "cc": "bbr",
                "limit_shares": {"link": 1.0},
                "fct_s": None,
                "queue_drops": None,
            },
            {
                "goodput_bps": 9.0,
                "cc": "bbr",
                "limit_shares": {"loss": 1.0},
                "fct_s": 3.0,
                "queue_drops": None,
            },
            {
                "goodput_bps": 2.0,
                "cc": "bbr",
                "limit_shares": {"link": 1.0},
                "fct_s": None,
                "queue_drops": None,
            },
        ]
        assert causes.typical(rows) == {
            "goodput_bps": 2.0,
            "cc": "bbr",
            "limit_shares": {"link": pytest.approx(2 / 3), "loss": pytest.approx(1 / 3)},
            "fct_s": 3.0,
            "queue_drops": None,
        }

    def test_samples_become_what_rules_look_at(self) -> None:
        common = {"end": "sender", "t_s": 0.0, "skmem_sndbuf": 100}
        samples = [
            {**common, "flow": 0, "tcpi_rtt": 20_000, "tcpi_snd_wnd": 5000, "tcpi_reord_seen": 2},
            {**common, "flow": 0, "tcpi_rtt": 50_000, "tcpi_snd_wnd": None, "tcpi_reord_seen": 4},
            {**common, "flow": 1, "tcpi_rtt": None, "tcpi_snd_wnd": 9000, "tcpi_reord_seen": 1},
            {"end": "receiver", "flow": 0, "t_s": 0.0, "tcpi_rtt": 9 * 10**6, "tcpi_snd_wnd": 10**9},
        ]
        seen = causes.observe(samples)
        assert seen == {
            "sndbuf_bytes": 100.0,
            "window_bytes": 9000.0,
            "peak_rtt_s": pytest.approx(0.05),
            "reordered": 5.0,
        }
        assert causes.observe([]) == {}

    def test_numbers_that_are_none(self) -> None:
        odd = Side("a", {"x": math.nan, "y": "text", "z": None, "w": True})
        assert [odd.number(name) for name in ("x", "y", "z", "none")] == [None] * 4
        assert odd.text("none") == "unknown"
