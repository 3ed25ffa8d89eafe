"""What changes while a point runs: steps of its rate, what a link could carry, what `tc` is told when."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import qdisc, varying
from lab.combination import Point
from lab.errors import UserError

MakePoint = Callable[..., Point]

STEPS = st.lists(
    st.tuples(st.integers(1, 5000), st.integers(1, 10**6)), min_size=0, max_size=6
).map(  # (ms since the step before, kbit/s)
    lambda gaps: [
        (0.0, 1e6),
        *zip(
            (at / 1e3 for at in itertools.accumulate(gap for gap, _ in gaps)),
            (rate * 1e3 for _, rate in gaps),
            strict=True,
        ),
    ]
)


class TestSteps:
    def test_of_a_constant_rate_are_one(self, make_point: MakePoint) -> None:
        assert varying.rate_steps(make_point(rate="10mbit")) == ((0.0, 10e6),)

    def test_of_changes_begin_with_the_rate(self, make_point: MakePoint) -> None:
        point = make_point(rate="10mbit", rate_change="5s:5mbit+6s:20mbit")
        assert varying.rate_steps(point) == ((0.0, 10e6), (5.0, 5e6), (6.0, 20e6))

    def test_value_holds_until_the_next(self) -> None:
        steps = [(0.0, 1.0), (5.0, 2.0), (6.0, 3.0)]
        assert [varying.value_at(steps, t_s) for t_s in (0, 4.999, 5, 5.5, 6, 99)] == [1, 1, 2, 2, 3, 3]

    def test_before_the_first_instant_the_first_holds(self) -> None:
        assert varying.value_at([(0.0, 1.0), (5.0, 2.0)], -1) == 1

    def test_of_two_at_one_instant_the_later_holds(self, make_point: MakePoint) -> None:
        steps = varying.rate_steps(make_point(rate="10mbit", rate_change="0s:5mbit"))
        assert steps == ((0.0, 10e6), (0.0, 5e6))
        assert varying.value_at(steps, 0) == 5e6


class TestOffered:
    def test_is_the_rate_by_the_time(self) -> None:
        steps = [(0.0, 8e6), (5.0, 16e6)]
        assert [varying.offered(steps)(t_s) for t_s in (0, 1, 5, 6)] == [0, 1e6, 5e6, 7e6]

    @given(STEPS, st.floats(0, 60), st.floats(0, 60))
    def test_of_a_span_lies_between_that_of_the_least_and_the_largest_rate(
        self, steps: list[tuple[float, float]], one_s: float, other_s: float
    ) -> None:
        from_s, to_s = sorted((one_s, other_s))
        between = varying.offered(steps)(to_s) - varying.offered(steps)(from_s)
        rates = [rate for _, rate in steps]
        assert between >= min(rates) * (to_s - from_s) / 8 * (1 - 1e-9) - 1
        assert between <= max(rates) * (to_s - from_s) / 8 * (1 + 1e-9) + 1

    def test_of_two_rates_at_one_instant_counts_the_later(self) -> None:
        assert varying.offered([(0.0, 80e6), (0.0, 8e6)])(1.0) == 1e6


class TestRateCommands:
    def test_are_none_where_nothing_changes(self, make_point: MakePoint) -> None:
        assert varying.commands(make_point()) == []

    def test_set_the_shaper_at_the_instants(self, make_point: MakePoint) -> None:
        told = varying.commands(make_point(rate="10mbit", rate_change="5s:5mbit+6s:20mbit"))
        assert [(one["at_ns"], one["node"], one["interface"]) for one in told] == [
            (5 * 10**9, "r1", "r1-eth1"),
            (6 * 10**9, "r1", "r1-eth1"),
        ]
        assert [
            f" rate {rate}bit " in one["tc"] for one, rate in zip(told, (5_000_000, 20_000_000), strict=True)
        ]
        assert all(" change dev r1-eth1 " in one["tc"] for one in told)

    def test_of_the_first_instant_are_left_out_where_they_change_nothing(self, make_point: MakePoint) -> None:
        assert varying.commands(make_point(rate="10mbit", rate_change="0s:10mbit")) == []
        (one,) = varying.commands(make_point(rate="10mbit", rate_change="0s:5mbit"))
        assert one["at_ns"] == 0

    def test_change_every_bottleneck_of_the_way_out(self, make_point: MakePoint) -> None:
        told = varying.commands(make_point(topology="parking_lot", flows="4", rate_change="1s:5mbit"))
        assert [one["interface"] for one in told] == ["r1-eth0", "r2-eth1", "r3-eth1"]

    def test_of_a_ramp_come_in_order(self, make_point: MakePoint) -> None:
        told = varying.commands(make_point(rate_change="1s~2s:5mbit", rtt_change="1s~2s:1ms"))
        instants = [one["at_ns"] for one in told]
        assert instants == sorted(instants)
        assert len(told) > 200


class TestDelayCommands:
    def test_of_the_rtt_set_half_of_it_each_way(self, make_point: MakePoint) -> None:
        told = varying.commands(make_point(rtt="20ms", rtt_change="5s:81us"))
        limit = f"netem limit {qdisc.UNLIMITED_PACKETS}"
        assert [(one["at_ns"], one["tc"]) for one in told] == [
            (5 * 10**9, f"qdisc change dev r1-eth0 root handle 20: {limit} delay 40us"),
            (5 * 10**9, f"qdisc change dev r2-eth1 root handle 20: {limit} delay 41us"),
        ]

    def test_of_no_delay_keep_the_line_without_a_limit(self, make_point: MakePoint) -> None:
        """Without a word netem takes its own limit of 1000 packets, and more than that is on its way."""
        told = varying.commands(make_point(rtt="20ms", rtt_change="5s:0s"))
        assert {one["tc"].partition("netem ")[2] for one in told} == {f"limit {qdisc.UNLIMITED_PACKETS}"}

    def test_of_a_star_set_all_of_it_towards_each_client(self, make_point: MakePoint) -> None:
        told = varying.commands(make_point(topology="star", flows="2", rtt="20ms", rtt_change="5s:30ms"))
        assert [one["interface"] for one in told] == ["r2-eth1", "r2-eth2"]
        assert all(one["tc"].endswith("delay 30000us") for one in told)

    def test_of_loss_leave_the_delay_and_the_way_back_s_loss(self, make_point: MakePoint) -> None:
        told = varying.commands(make_point(rtt="20ms", loss_change="5s:1%"))
        by_interface = {one["interface"]: one["tc"] for one in told}
        assert by_interface["r2-eth1"].endswith("delay 10000us loss random 1.000000000%")
        assert by_interface["r1-eth0"].endswith("delay 10000us")

    def test_of_the_rtt_keep_what_else_the_way_does(self, make_point: MakePoint) -> None:
        point = make_point(
            rtt="20ms", rtt_change="5s:30ms", loss="ge:1%:10%", jitter="1ms", jitter_dist="normal"
        )
        words = {one["interface"]: one["tc"] for one in varying.commands(point)}["r2-eth1"]
        assert "delay 15000us 1000us distribution normal loss gemodel 1.000000000% 10.000000000%" in words

    def test_of_rtt_and_loss_have_both_as_they_are_then(self, make_point: MakePoint) -> None:
        point = make_point(rtt="20ms", rtt_change="5s:30ms", loss="1%", loss_change="6s:2%")
        out = [one["tc"] for one in varying.commands(point) if one["interface"] == "r2-eth1"]
        assert out[0].endswith("delay 15000us loss random 1.000000000%")
        assert out[1].endswith("delay 15000us loss random 2.000000000%")


class TestTraceFiles:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        file = tmp_path / "cell.csv"
        file.write_text("time,rate\n0s,5mbit\n1s,10mbit\n")
        return file

    def test_have_the_digest_of_what_they_hold_in_the_point_s_name(self, file: Path) -> None:
        text = varying.with_digest(str(file))
        assert varying.trace_file(text) == file
        assert text.startswith(f"{file}@")
        assert varying.with_digest(text) == text

    def test_that_changed_are_refused_under_their_old_name(self, file: Path) -> None:
        text = varying.with_digest(str(file))
        file.write_text("time,rate\n0s,6mbit\n")
        with pytest.raises(UserError, match=r"names another content than .* has now"):
            varying.with_digest(text)

    def test_may_have_an_at_sign_in_their_name(self, tmp_path: Path) -> None:
        file = tmp_path / "cell@home.csv"
        file.write_text("time,rate\n0s,5mbit\n")
        assert varying.trace_file(varying.with_digest(str(file))) == file

    def test_are_the_steps_of_the_rate(self, make_point: MakePoint, file: Path) -> None:
        point = make_point(trace=varying.with_digest(str(file)), duration="3s", rate="5mbit")
        steps = varying.rate_steps(point)
        assert [varying.value_at(steps, t_s) for t_s in (0.0, 0.5, 1.5)] == [5e6, 5e6, 10e6]
        assert [one["at_ns"] for one in varying.commands(point)] == [10**9]

    def test_that_are_not_there_are_named(self, make_point: MakePoint) -> None:
        with pytest.raises(UserError, match=r"gone\.csv"):
            varying.rate_steps(make_point(trace="gone.csv"))
