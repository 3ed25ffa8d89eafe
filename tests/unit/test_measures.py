"""Measures of queues, competition and transfers: by hand, at their edges, and as laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import measures
from lab.knobs import PATH_KNOBS
from lab.measures import Harm, jain

RATES = st.lists(st.floats(0, 1e12), min_size=1, max_size=20)
POSITIVE = st.floats(1e-6, 1e12)


def array(*values: float) -> measures.Floats:
    return np.array(values, dtype=np.float64)


class TestUtilisation:
    def test_is_what_was_sent_of_what_could_be(self) -> None:
        assert measures.utilisation(12.5e6, 100e6, 2.0) == 0.5
        assert measures.utilisation_of(9e6, 12e6) == 0.75

    def test_of_no_link_is_null(self) -> None:
        assert measures.utilisation(0, 0, 1) is None
        assert measures.utilisation(0, 1e6, 0) is None
        assert measures.utilisation_of(1, 0) is None

    @given(POSITIVE, POSITIVE, POSITIVE)
    def test_does_not_depend_on_units(self, sent: float, rate: float, span: float) -> None:
        one, other = (measures.utilisation(sent * by, rate * by, span) for by in (1, 1000))
        assert one == pytest.approx(other)


class TestQuantiles:
    def test_of_values_that_count_alike(self) -> None:
        assert measures.quantiles([3.0, 1.0, 2.0, 4.0], (0, 0.5, 1)) == (1, 2.5, 4)

    def test_leaves_out_what_is_not_known(self) -> None:
        assert measures.quantiles([None, 2.0, float("nan"), None], (0.5, 0.99)) == (2, 2)

    def test_of_nothing_is_null(self) -> None:
        assert measures.quantiles([None]) == (None, None, None)
        assert measures.time_quantiles(array(), array()) == (None, None, None)

    def test_over_time_weighs_by_how_long(self) -> None:
        """1 for a second, 5 for nine, 2 for ninety."""
        t_s, values = array(0, 1, 10), array(1, 5, 2)
        assert measures.time_quantiles(t_s, values, (0.005, 0.5, 0.9, 0.95), end_s=100) == (1, 2, 2, 5)

    def test_the_last_sample_counts_only_to_an_end(self) -> None:
        t_s, values = array(0, 1), array(1, 9)
        assert measures.time_quantiles(t_s, values, (1.0,)) == (1,)
        assert measures.time_quantiles(t_s, values, (1.0,), end_s=1.5) == (9,)

    def test_of_one_sample_is_it(self) -> None:
        assert measures.time_quantiles(array(3), array(7)) == (7, 7, 7)

    def test_what_is_not_known_has_no_weight(self) -> None:
        t_s, values = array(0, 1, 99), array(1, np.nan, 3)
        assert measures.time_quantiles(t_s, values, (0.4, 0.6), end_s=100) == (1, 3)

    @given(st.lists(st.tuples(st.floats(1e-3, 10), st.floats(-1e6, 1e6)), min_size=1, max_size=50))
    def test_rise_with_the_share_and_are_values_that_were(self, samples: list[tuple[float, float]]) -> None:
        t_s = np.cumsum([span for span, _ in samples])
        values = array(*(value for _, value in samples))
        found = measures.time_quantiles(t_s, values, (0.0, 0.1, 0.5, 0.95, 0.99, 1.0))
        assert list(found) == sorted(found)  # type: ignore[type-var]
        assert set(found) <= set(values.tolist())

    @given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
    def test_of_even_samples_is_that_without_time(self, values: list[float]) -> None:
        even = measures.time_quantiles(np.arange(len(values) * 1.0), array(*values), end_s=len(values))
        usual = np.quantile(values, measures.QUANTILES, method="inverted_cdf")
        assert list(even) == list(usual)


class TestQueueDelay:
    def test_is_the_time_that_what_waits_needs(self) -> None:
        """125 kB at 10 Mbit/s are 100 ms, for nine tenths of the time."""
        found = measures.queue_delays_s(array(0, 1), array(0, 125e3), 10e6, end_s=10)
        assert found == (pytest.approx(0.1), pytest.approx(0.1), pytest.approx(0.1))
        found = measures.queue_delays_s(array(0, 9), array(0, 125e3), 10e6, end_s=10)
        assert found == (0, pytest.approx(0.1), pytest.approx(0.1))

    def test_follows_the_rate(self) -> None:
        rates = array(10e6, 100e6)
        found = measures.queue_delays_s(array(0, 1), array(125e3, 125e3), rates, end_s=11)
        assert found == (pytest.approx(0.01), pytest.approx(0.1), pytest.approx(0.1))

    def test_of_a_link_that_is_off_is_left_out(self) -> None:
        assert measures.queue_delays_s(array(0, 1, 2), array(0, 1e6, 0), array(1e6, 0, 1e6), 3) == (0, 0, 0)
        assert measures.queue_delays_s(array(0), array(0), 0.0) == (None, None, None)

    @given(st.lists(st.floats(0, 1e9), min_size=1, max_size=30), st.floats(1e3, 1e11))
    def test_is_no_longer_than_the_fullest_queue_s(self, backlog: list[float], rate: float) -> None:
        found = measures.queue_delays_s(np.arange(len(backlog) * 1.0), array(*backlog), rate)
        for delay in found:
            assert delay is not None
            assert 0 <= delay <= max(backlog) * 8 / rate * (1 + 1e-9)


def test_retransmit_share() -> None:
    assert measures.retransmit_share(2000, 100_000) == 0.02
    assert measures.retransmit_share(0, 0) is None


class TestJain:
    def test_of_equals_is_one_and_of_one_that_has_all_the_least(self) -> None:
        assert jain([5, 5, 5, 5]) == 1
        assert jain([5, 0, 0, 0]) == 0.25
        assert jain([1]) == 1

    def test_is_the_share_of_those_who_have_all_alike(self) -> None:
        """Jain, Chiu, Hawe 1984: if 20 of 100 users share all alike the index is 0.2."""
        assert jain([1.0] * 20 + [0.0] * 80) == pytest.approx(0.2)

    def test_of_nothing_is_null(self) -> None:
        assert jain([]) is None
        assert jain([0.0, 0.0]) is None

    @given(RATES)
    def test_lies_between_one_nth_and_one(self, rates: list[float]) -> None:
        index = jain(rates)
        if max(rates) > 0:
            assert index is not None
            assert 1 / len(rates) * (1 - 1e-9) <= index <= 1 + 1e-9

    @given(RATES.filter(lambda rates: max(rates) > 1e-100), POSITIVE)
    def test_has_no_unit(self, rates: list[float], factor: float) -> None:
        assert jain([rate * factor for rate in rates]) == pytest.approx(jain(rates), rel=1e-6)

    @given(RATES.filter(lambda rates: max(rates) > 0))
    def test_does_not_care_for_the_order(self, rates: list[float]) -> None:
        assert jain(rates[::-1]) == pytest.approx(jain(rates))


class TestJainOverTime:
    T_S = np.arange(11.0)

    def test_of_each_window(self) -> None:
        """Two flows alike for five seconds, then one alone has all."""
        delivered = np.array([self.T_S, np.minimum(self.T_S, 5)])
        found = measures.jain_over_time(self.T_S, delivered, 2.5, np.ones((2, 11), dtype=np.bool_))
        assert found.t_s.tolist() == [2.5, 5, 7.5, 10]
        assert found.values.tolist() == [1, 1, 0.5, 0.5]

    def test_counts_only_who_is_on_throughout(self) -> None:
        delivered = np.array([self.T_S, np.maximum(0, self.T_S - 5)])
        alive = np.array([self.T_S >= 0, self.T_S >= 5])
        found = measures.jain_over_time(self.T_S, delivered, 2.5, alive)
        assert np.isnan(found.values[:2]).all()
        assert found.values[2:].tolist() == [1, 1]

    def test_leaves_out_the_rest_of_the_time(self) -> None:
        delivered = np.array([self.T_S, self.T_S])
        alive = np.ones((2, 11), dtype=np.bool_)
        assert measures.jain_over_time(self.T_S, delivered, 4.0, alive).t_s.tolist() == [4, 8]
        assert not len(measures.jain_over_time(self.T_S, delivered, 40.0, alive).t_s)
        assert not len(measures.jain_over_time(array(), np.empty((2, 0)), 1.0, np.empty((2, 0), bool)).t_s)

    def test_of_a_window_in_which_nothing_came_is_not_a_number(self) -> None:
        found = measures.jain_over_time(self.T_S, np.zeros((2, 11)), 5.0, np.ones((2, 11), dtype=np.bool_))
        assert np.isnan(found.values).all()


def curve(*pieces: tuple[float, float], step_s: float = 0.1) -> tuple[measures.Floats, measures.Floats]:
    """Return instants and bytes of a flow that sends at rates (bit/s) for so long (s), one after another."""
    ends = np.cumsum([span for _, span in pieces])
    t_s = np.arange(0, ends[-1] + step_s / 2, step_s)
    corners = np.concatenate([[0.0], np.cumsum([rate * span / 8 for rate, span in pieces])])
    return t_s, np.interp(t_s, np.concatenate([[0.0], ends]), corners)


class TestConvergence:
    FAIR = 50e6

    def test_is_when_the_rate_is_fair_and_stays(self) -> None:
        t_s, delivered = curve((5e6, 10), (48e6, 20))
        found = measures.convergence_s(t_s, delivered, 0.0, self.FAIR)
        # a window that begins just before is still within the tolerance
        assert found == pytest.approx(10, abs=0.31)
        assert found is not None
        assert found < 10

    def test_is_from_when_it_joined(self) -> None:
        t_s, delivered = curve((0, 7), (5e6, 10), (48e6, 20))
        assert measures.convergence_s(t_s, delivered, 7.0, self.FAIR) == pytest.approx(10, abs=0.31)

    def test_at_once_is_nothing(self) -> None:
        t_s, delivered = curve((45e6, 20))
        assert measures.convergence_s(t_s, delivered, 3.0, self.FAIR) == 0

    def test_passing_by_does_not_count(self) -> None:
        t_s, delivered = curve((5e6, 5), (50e6, 4), (95e6, 20))
        assert measures.convergence_s(t_s, delivered, 0.0, self.FAIR) is None

    def test_what_is_not_held_before_the_end_does_not_count(self) -> None:
        t_s, delivered = curve((5e6, 10), (50e6, 20))
        assert measures.convergence_s(t_s, delivered, 0.0, self.FAIR, end_s=12.0) is None
        assert measures.convergence_s(t_s, delivered, 0.0, self.FAIR, end_s=15.0) is not None

    def test_a_long_round_trip_needs_longer_windows(self) -> None:
        """Eight of 500 ms, five times: 20 s."""
        t_s, delivered = curve((50e6, 19))
        assert measures.convergence_s(t_s, delivered, 0.0, self.FAIR, rtt_s=0.5) is None
        assert measures.convergence_s(t_s, delivered, 0.0, self.FAIR, rtt_s=0.1) == 0

    def test_the_tolerance_can_be_chosen(self) -> None:
        t_s, delivered = curve((41e6, 20))
        assert measures.convergence_s(t_s, delivered, 0.0, self.FAIR) == 0
        assert measures.convergence_s(t_s, delivered, 0.0, self.FAIR, tolerance=0.1) is None

    def test_without_a_share_or_samples_is_null(self) -> None:
        t_s, delivered = curve((50e6, 20))
        assert measures.convergence_s(t_s, delivered, 0.0, 0.0) is None
        assert measures.convergence_s(t_s, delivered, 19.0, self.FAIR) is None

    @given(st.floats(0, 1e8), st.floats(0, 1e8), st.floats(1, 20))
    def test_is_after_it_joined(self, early: float, late: float, change_s: float) -> None:
        t_s, delivered = curve((early, change_s), (late, 20))
        found = measures.convergence_s(t_s, delivered, 1.0, self.FAIR)
        assert found is None or 0 <= found <= t_s[-1] - 1.0 - 5


class TestRttUnfairness:
    def test_of_equal_windows(self) -> None:
        """Rates as 1 / RTT."""
        ratio, exponent = measures.rtt_unfairness([100.0, 10.0, 1.0], [0.001, 0.01, 0.1]) or (0, 0)
        assert ratio == pytest.approx(100)
        assert exponent == pytest.approx(1)

    def test_of_long_ones_that_win_is_negative(self) -> None:
        found = measures.rtt_unfairness([1.0, 4.0], [0.01, 0.1])
        assert found is not None
        assert found.ratio == 0.25
        assert found.exponent == pytest.approx(-np.log10(4))

    def test_takes_the_mean_of_flows_with_one_rtt(self) -> None:
        found = measures.rtt_unfairness([3.0, 5.0, 1.0, 3.0], [0.01, 0.01, 0.1, 0.1])
        assert found is not None
        assert found.ratio == 2

    @pytest.mark.parametrize(
        ("rates", "rtts"),
        [([1.0, 2.0], [0.1, 0.1]), ([], []), ([1.0], [0.1]), ([0.0, 1.0], [0.1, 0.2]), ([1, 1], [0, 1])],
    )
    def test_without_two_rtts_and_rates_is_null(self, rates: list[float], rtts: list[float]) -> None:
        assert measures.rtt_unfairness(rates, rtts) is None

    @given(st.floats(0.1, 2.5), st.lists(st.floats(1e-3, 1), min_size=2, max_size=6, unique=True))
    def test_finds_the_power_that_was_put_in(self, power: float, rtts: list[float]) -> None:
        if max(rtts) / min(rtts) < 1.01:
            return
        found = measures.rtt_unfairness([1e6 * rtt**-power for rtt in rtts], rtts)
        assert found is not None
        assert found.exponent == pytest.approx(power, rel=1e-3)
        assert found.ratio == pytest.approx((max(rtts) / min(rtts)) ** power)


class TestShareByControl:
    def test_sums_each(self) -> None:
        found = measures.share_by_control([4.0, 1.0, 2.0, 1.0], ["bbr", "cubic", "bbr", "cubic"])
        assert found == {"bbr": 0.75, "cubic": 0.25}

    def test_of_nothing_is_empty(self) -> None:
        assert measures.share_by_control([0.0, 0.0], ["bbr", "cubic"]) == {}
        assert measures.share_by_control([], []) == {}

    @given(st.lists(st.tuples(POSITIVE, st.sampled_from(["bbr", "cubic", "reno"])), min_size=1))
    def test_adds_up_to_one(self, flows: list[tuple[float, str]]) -> None:
        found = measures.share_by_control([rate for rate, _ in flows], [cc for _, cc in flows])
        assert sum(found.values()) == pytest.approx(1)


class TestSlowdown:
    def test_of_line_rate_is_one(self) -> None:
        """10 full packets at 1 Mbit/s and half of 100 ms: 171 ms."""
        assert measures.slowdown(0.17112, 14_480, 1e6, 0.1) == pytest.approx(1)
        assert measures.slowdown(0.34224, 14_480, 1e6, 0.1) == pytest.approx(2)

    def test_with_a_handshake_before(self) -> None:
        assert measures.slowdown(0.27112, 14_480, 1e6, 0.1, round_trips=1.5) == pytest.approx(1)

    def test_without_an_ideal_is_null(self) -> None:
        assert measures.slowdown(1.0, 0, 1e6, 0.0) is None


class TestHarm:
    @pytest.mark.parametrize(
        ("solo", "beside", "share"), [(10, 10, 0), (10, 5, 0.5), (10, 0, 1), (10, 15, -0.5)]
    )
    def test_of_goodput(self, solo: float, beside: float, share: float) -> None:
        assert measures.harm(solo, beside) == share

    @pytest.mark.parametrize(
        ("solo", "beside", "share"), [(10, 10, 0), (10, 20, 0.5), (0, 20, 1), (15, 10, -0.5)]
    )
    def test_of_delay(self, solo: float, beside: float, share: float) -> None:
        assert measures.harm(solo, beside, more_is_better=False) == share

    def test_of_what_is_not_known_is_null(self) -> None:
        assert measures.harm(None, 1) is None
        assert measures.harm(1, None) is None
        assert measures.harm(0, 1) is None
        assert measures.harm(1, 0, more_is_better=False) is None

    @given(POSITIVE, POSITIVE, st.booleans())
    def test_is_at_most_one_and_null_only_for_nothing(self, solo: float, beside: float, more: bool) -> None:
        found = measures.harm(solo, beside, more)
        assert found is not None
        assert found <= 1
        assert (found > 0) == ((beside < solo) if more else (beside > solo))


def point(name: str, cc: str, **values: Any) -> dict[str, Any]:
    knobs = {knob.name: knob.default for knob in PATH_KNOBS.values()}
    usual: dict[str, Any] = {"point": name, "status": "done", "engine": "virtual", "seed": 1, "flows": 4}
    usual |= {"goodput_bps": 80e6, "loaded_rtt_s": 0.1, "cc_shares": {cc: 1.0}}
    return {**knobs, **usual, "cc": cc, **values}


class TestHarms:
    MIX = point("mix", "bbr+cubic", goodput_bps=80e6, loaded_rtt_s=0.2, cc_shares={"bbr": 0.7, "cubic": 0.3})

    def test_is_against_the_victim_s_own_kind(self) -> None:
        """Two CUBIC flows of four have 12 Mbit/s each beside BBR, 20 among themselves; the RTT doubles."""
        rows = [self.MIX, point("own", "cubic"), point("own2", "bbr", loaded_rtt_s=0.2)]
        bbr, cubic = measures.harms(rows)
        assert cubic == Harm("mix", "cubic", "bbr", pytest.approx(0.4), pytest.approx(0.5))
        assert bbr == Harm("mix", "bbr", "cubic", pytest.approx(-0.4), 0)

    def test_counts_how_often_each_is_dealt(self) -> None:
        """Of five flows dealt b b c b b one is CUBIC's."""
        mix = {**self.MIX, "cc": "bbr*2+cubic", "flows": 5, "cc_shares": {"bbr": 0.9, "cubic": 0.1}}
        rows = [mix, point("own", "cubic", flows=5)]
        found = {one.victim: one for one in measures.harms(rows)}
        assert found["cubic"].goodput == pytest.approx(0.5)

    @pytest.mark.parametrize(
        "changed",
        [{"seed": 2}, {"queue": "4bdp"}, {"engine": "realtime"}, {"flows": 2}, {"status": "failed"}],
    )
    def test_without_a_point_like_it_is_null(self, changed: dict[str, Any]) -> None:
        rows = [self.MIX, point("own", "cubic", **changed)]
        assert {(one.goodput, one.delay) for one in measures.harms(rows)} == {(None, None)}

    def test_what_a_column_lacks_is_null(self) -> None:
        rows = [{**self.MIX, "cc_shares": None, "loaded_rtt_s": None}, point("own", "cubic")]
        assert {(one.goodput, one.delay) for one in measures.harms(rows)} == {(None, None)}

    def test_of_points_with_one_control_there_is_none(self) -> None:
        assert measures.harms([point("own", "cubic"), point("own2", "bbr")]) == []

    def test_of_a_mix_that_failed_there_is_none(self) -> None:
        assert measures.harms([{**self.MIX, "status": "failed"}, point("own", "cubic")]) == []

    def test_of_three_names_the_others(self) -> None:
        mix = {**self.MIX, "cc": "bbr+cubic+reno", "flows": 3}
        assert [(one.victim, one.others) for one in measures.harms([mix])] == [
            ("bbr", "cubic+reno"),
            ("cubic", "bbr+reno"),
            ("reno", "bbr+cubic"),
        ]
