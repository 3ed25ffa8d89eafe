"""How a transfer goes, round trip by round trip, on routes of which the numbers are round."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.model import loss
from lab.model.controls import control
from lab.model.cwnd import CUBIC_C
from lab.model.limits import LIMITS, LINK, LOSS, QUEUE, RECEIVE_WINDOW, SLOW_START
from lab.model.route import INITIAL_WINDOW, Route, Step, until
from lab.model.trajectory import steps

SEGMENT_S, RTT_S = 1e-4, 0.1
PIPE = 1000


def route(**changes: Any) -> Route:
    """Return a path that holds a thousand segments, on which nothing binds but the link."""
    usual: dict[str, Any] = {
        **{"segment_s": SEGMENT_S, "rtt_s": RTT_S, "room": math.inf, "window": 4000.0},
        **{"window_limit": RECEIVE_WINDOW, "loss": 0.0, "flows": 1, "mss_bytes": 1448},
        **{"duration_s": 60.0, "offloads": False, "window_burst": 0.0},
    }
    return Route(**{**usual, **changes})


def course(cc: str, **changes: Any) -> list[Step]:
    return steps(route(**changes), control(cc), cc)[0]


def courses(cc: str, **changes: Any) -> list[list[Step]]:
    return steps(route(**changes), control(cc), cc)


def rate(found: list[Step], from_s: float = 0.0) -> float:
    """Return the mean rate after an instant, segments/s."""
    now_s, span_s, segments = 0.0, 0.0, 0.0
    for step in found:
        now_s += step.span_s
        part_s = min(step.span_s, now_s - from_s)
        if part_s > 0:
            span_s += part_s
            segments += step.segments * part_s / step.span_s
    return segments / span_s


def window(step: Step) -> float:
    """Return what was in flight in a step, segments."""
    return step.segments / step.span_s * step.rtt_s


class TestSlowStart:
    @pytest.mark.parametrize("cc", ["cubic", "reno", "bbr", "made_up"])
    def test_doubles_from_ten(self, cc: str) -> None:
        windows = [window(step) for step in course(cc)[:7]]
        assert windows == pytest.approx([INITIAL_WINDOW * 2**n for n in range(7)])
        assert all(step.limit == SLOW_START for step in course(cc)[:6])

    @pytest.mark.parametrize("cc", ["cubic", "reno", "bbr"])
    def test_ends_at_the_link(self, cc: str) -> None:
        found = course(cc, duration_s=9.0)
        assert found[-1].limit == LINK
        assert rate(found, from_s=3) == pytest.approx(1 / SEGMENT_S)

    def test_ends_at_a_window(self) -> None:
        found = course("cubic", window=100.0)
        assert found[-1].limit == RECEIVE_WINDOW
        assert rate(found, from_s=1) == pytest.approx(100 / RTT_S)

    def test_fills_the_queue_that_the_window_allows(self) -> None:
        assert course("cubic")[-1].rtt_s == pytest.approx(4000 * SEGMENT_S)

    def test_of_a_short_transfer_is_all_there_is(self) -> None:
        found = course("cubic", duration_s=0.3)
        assert sum(step.segments for step in found) == pytest.approx(10 + 20 + 40)
        assert {step.limit for step in found} == {SLOW_START}


class TestSawtooth:
    """A queue that holds nothing: a window falls as soon as it has filled the pipe."""

    def test_mean_of_reno_is_three_quarters_of_its_peak(self) -> None:
        found = course("reno", room=20.0, duration_s=2000.0, window=1e6)
        assert rate(found, from_s=1000) == pytest.approx(0.75 / SEGMENT_S, rel=0.04)

    def test_mean_of_cubic_is_higher(self) -> None:
        """It falls to 0.7 only, and stays near its last peak: (3 + beta) / 4 of it, RFC 9438, section 5.1."""
        found = course("cubic", room=20.0, duration_s=600.0, window=1e6)
        assert 0.85 / SEGMENT_S < rate(found, from_s=300) < 0.98 / SEGMENT_S

    def test_a_bdp_of_queue_keeps_reno_s_link_busy(self) -> None:
        found = course("reno", room=1.1 * PIPE, duration_s=2000.0, window=1e6)
        assert rate(found, from_s=1000) == pytest.approx(1 / SEGMENT_S, rel=0.01)
        assert course("reno", room=0.1 * PIPE, duration_s=2000.0, window=1e6)[-1].limit in (QUEUE, LINK)

    def test_a_longer_queue_never_gives_less(self) -> None:
        for cc in ("reno", "cubic"):
            rates = [
                rate(course(cc, room=room, duration_s=600.0, window=1e6), from_s=300)
                for room in (20, 100, 300, 1000)
            ]
            assert all(less <= more * 1.01 for less, more in pairwise(rates))


class TestCubic:
    def test_a_cut_leaves_seven_tenths(self) -> None:
        found = [window(step) for step in course("cubic", room=50.0, window=1e6, duration_s=60.0)]
        ratios = [after / before for before, after in pairwise(found) if after < before]
        beta = control("cubic").beta
        assert ratios
        # a window that fell from above a full queue, and one that slow start overran, stand lower
        assert sum(abs(ratio - beta) < 0.1 for ratio in ratios) >= len(ratios) / 2

    def test_is_back_at_its_last_peak_after_k(self) -> None:
        """K = (W (1 - beta) / C)^(1/3), RFC 9438, section 4.2."""
        found = course("cubic", room=20.0, window=1e6, duration_s=120.0)
        now_s, cuts = 0.0, []
        for before, step in pairwise(found):
            now_s += before.span_s
            if step.limit == QUEUE and window(step) < 0.85 * window(before):
                cuts.append(now_s)
        k_s = (PIPE * (1 - control("cubic").beta) / CUBIC_C) ** (1 / 3)
        # fast convergence: after every other cut it aims at (1 + beta) / 2 of the peak, and is there sooner
        sooner_s = (PIPE * ((1 + control("cubic").beta) / 2 - control("cubic").beta) / CUBIC_C) ** (1 / 3)
        gaps = [later - earlier for earlier, later in pairwise(cuts) if earlier > 15]
        assert len(gaps) > 4
        assert min(gaps) > 0.7 * sooner_s
        assert k_s < max(gaps) < 2 * k_s

    def test_fast_convergence_gives_way(self) -> None:
        """A window cut below its last peak aims lower: RFC 9438, section 4.7."""
        found = course("cubic", room=20.0, window=1e6, duration_s=120.0)
        flat = [window(step) for step in found if step.span_s > 0.3 and step.limit == QUEUE]
        assert min(flat) < 0.9 * PIPE

    def test_on_a_short_path_is_no_worse_than_reno(self) -> None:
        """Its Reno-friendly window grows 8/15 of a segment a round trip, and more is left by a cut."""
        reno, cubic = (
            rate(course(cc, rtt_s=0.002, room=6.0, window=1e6, duration_s=20.0), from_s=10)
            for cc in ("reno", "cubic")
        )
        assert 0.3 / SEGMENT_S < reno <= cubic * 1.01 <= 1.01 / SEGMENT_S


class TestRandomLoss:
    @pytest.mark.parametrize("p", [1e-4, 1e-3])
    def test_mean_of_reno_is_near_mathis(self, p: float) -> None:
        found = courses("reno", loss=p, window=1e6, segment_s=1e-6, duration_s=1200.0)
        mean = sum(rate(one, from_s=100) for one in found) / len(found)
        assert mean * RTT_S == pytest.approx(loss.reno_window_segs(p), rel=0.25)

    @pytest.mark.parametrize("p", [1e-4, 1e-3])
    def test_mean_of_cubic_is_near_rfc_9438(self, p: float) -> None:
        found = courses("cubic", loss=p, window=1e6, segment_s=1e-6, duration_s=1200.0)
        mean = sum(rate(one, from_s=100) for one in found) / len(found)
        assert mean * RTT_S == pytest.approx(loss.cubic_window_segs(p, RTT_S), rel=0.4)

    def test_is_told_from_the_queue(self) -> None:
        for one in courses("cubic", loss=1e-3):
            assert one[-1].limit == LOSS
            assert QUEUE not in {step.limit for step in one}

    def test_has_several_chances_and_the_same_each_time(self) -> None:
        found = courses("cubic", loss=1e-3)
        assert len(found) > 1
        assert len({rate(one) for one in found}) > 1
        assert found == courses("cubic", loss=1e-3)

    def test_nothing_is_left_to_chance_without_it(self) -> None:
        assert len(courses("cubic")) == len(courses("bbr", loss=0.01)) == 1

    def test_timeouts_cost_where_losses_are_many(self) -> None:
        found = courses("reno", loss=0.2, window=1e6)
        assert any(step.segments == 0 for one in found for step in one)

    def test_everything_lost_is_loss_from_the_start(self) -> None:
        for cc in ("cubic", "bbr"):
            for one in courses(cc, loss=1.0):
                assert one[0].limit == LOSS


class TestPaced:
    def test_a_window_under_two_bdps_is_no_limit_of_it(self) -> None:
        assert rate(course("bbr", window=1001.0, duration_s=9.0), from_s=2) == pytest.approx(1 / SEGMENT_S)

    def test_a_window_under_one_is(self) -> None:
        found = course("bbr", window=500.0, duration_s=9.0)
        assert rate(found, from_s=2) == pytest.approx(500 / RTT_S)
        assert found[-1].limit == RECEIVE_WINDOW

    def test_probes_the_rtt_again_and_again(self) -> None:
        found = course("bbr", duration_s=100.0)
        idle = [step for step in found if step.segments == 0]
        assert sum(step.span_s for step in idle) == pytest.approx(100 * (0.2 + RTT_S) / 10, rel=0.05)
        assert len(idle) >= 8


class TestUntil:
    def test_ends_where_the_last_segment_is_delivered(self) -> None:
        found = until(course("cubic"), 50)
        assert sum(step.segments for step in found) == pytest.approx(50)
        assert sum(step.span_s for step in found) == pytest.approx(0.2 + 0.1 * 20 / 40)

    def test_of_more_than_there_is_is_all(self) -> None:
        found = course("cubic", duration_s=1.0)
        assert until(found, 1e9) == found


class TestLaws:
    @given(
        st.sampled_from(["cubic", "reno", "bbr", "scalable", "made_up"]),
        st.floats(1e-8, 1e-2),
        st.floats(1e-6, 20),
        st.floats(0.1, 1e6) | st.just(math.inf),
        st.floats(0.01, 1e6),
        st.sampled_from([0.0, 1e-6, 1e-3, 0.1, 0.9, 1.0]),
        st.floats(0.001, 3600),
        st.booleans(),
    )
    def test_all_the_time_is_spent_and_no_more_than_the_link_is_sent(
        self,
        cc: str,
        segment_s: float,
        rtt_s: float,
        room: float,
        most: float,
        p: float,
        duration_s: float,
        offloads: bool,
    ) -> None:
        made = route(segment_s=segment_s, rtt_s=max(rtt_s, segment_s), room=room, window=most, loss=p)
        made = replace(made, duration_s=duration_s, offloads=offloads)
        for one in steps(made, control(cc), cc):
            assert sum(step.span_s for step in one) == pytest.approx(duration_s)
            for step in one:
                assert step.span_s >= 0
                assert 0 <= step.segments * segment_s <= step.span_s * (1 + 1e-9)
                assert step.rtt_s >= made.rtt_s * (1 - 1e-9)
                assert step.limit in LIMITS
