"""Where the ramp ends, on deliveries whose rates are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.metrics import Delivery
from lab.steady import at, steady_from_s

MBIT = 1e6
END_S = 10.0
INTERVAL_S = 0.05
TIMES = np.linspace(0, END_S, 201)


def delivery(rate_bps: Callable[[float], float], times: Any = TIMES) -> Delivery:
    """Return what arrives at a rate that changes with time, summed up in steps of a millisecond."""
    fine = np.arange(0, END_S, 0.001)
    sent = np.concatenate([[0.0], np.cumsum([rate_bps(t_s) * 0.001 / 8 for t_s in fine])])
    return Delivery(np.asarray(times, dtype=float), np.interp(times, np.append(fine, END_S), sent))


def steady(given_delivery: Delivery, rtt_s: float = 0.2) -> tuple[float, float]:
    """Return where the steady part begins and its goodput."""
    from_s = steady_from_s(given_delivery.t_s, given_delivery.delivered, 0.0, END_S, rtt_s)
    return from_s, given_delivery.rate_bps(from_s, END_S)


class TestSteadyPart:
    def test_of_a_ramp_begins_where_a_window_reaches_the_rate(self) -> None:
        ramp_s = 3.0
        from_s, rate = steady(delivery(lambda t_s: 100 * MBIT * min(1.0, t_s / ramp_s)))
        # a window of 0.25 s has a mean of 95 % where its middle is at 2.85 s
        assert from_s == pytest.approx(2.85 + 0.125, abs=INTERVAL_S)
        assert rate == pytest.approx(100 * MBIT, rel=0.005)

    def test_of_a_step_follows_it_by_less_than_a_window(self) -> None:
        from_s, rate = steady(delivery(lambda t_s: 100 * MBIT if t_s >= 2 else 5 * MBIT))
        assert 2.0 < from_s <= 2.25
        assert rate == pytest.approx(100 * MBIT, rel=0.01)

    def test_of_a_constant_rate_begins_after_one_window(self) -> None:
        from_s, rate = steady(delivery(lambda _: 100 * MBIT), rtt_s=0.2)
        assert from_s == pytest.approx(0.25)  # five samples, for they are longer than the RTT
        assert rate == pytest.approx(100 * MBIT)
        assert steady(delivery(lambda _: 100 * MBIT), rtt_s=1.0)[0] == pytest.approx(1.0)

    def test_ramp_never_takes_more_than_half(self) -> None:
        from_s, _rate = steady(delivery(lambda t_s: 10 * MBIT * t_s))
        assert from_s == END_S / 2

    def test_of_a_sawtooth_takes_whole_teeth_in(self) -> None:
        period_s = 1.0

        def tooth(t_s: float) -> float:
            return 100 * MBIT * (0.7 + 0.3 * (t_s % period_s) / period_s)

        from_s, rate = steady(delivery(tooth))
        assert from_s < 2 * period_s
        assert rate == pytest.approx(85 * MBIT, rel=0.02)

    def test_of_a_sawtooth_after_slow_start_leaves_slow_start_out(self) -> None:
        def grows(t_s: float) -> float:
            return (
                min(2 ** (t_s / 0.2), 1000) * 0.1 * MBIT
                if t_s < 2
                else 100 * MBIT * (0.85 + 0.15 * (t_s % 1))
            )

        from_s, rate = steady(delivery(grows))
        assert 1.9 < from_s < 2.3
        assert rate == pytest.approx(92.5 * MBIT, rel=0.02)

    def test_of_a_flow_that_stalls_is_zero_and_not_its_past(self) -> None:
        from_s, rate = steady(delivery(lambda t_s: 100 * MBIT if t_s < 3 else 0.0))
        assert (from_s, rate) == (END_S / 2, 0)

    def test_of_a_flow_that_delivers_nothing(self) -> None:
        assert steady(delivery(lambda _: 0.0)) == (END_S / 2, 0)

    def test_without_samples_in_the_first_half(self) -> None:
        assert steady(Delivery(np.array([0.0, 10.0]), np.array([0.0, 1e6])))[0] == END_S / 2

    def test_window_is_five_samples_where_samples_are_rare(self) -> None:
        rare = delivery(lambda _: 100 * MBIT, times=np.linspace(0, END_S, 41))
        assert steady(rare, rtt_s=0.01)[0] == pytest.approx(1.25)

    @given(
        st.lists(st.floats(0, 1e9), min_size=10, max_size=60),
        st.floats(1e-4, 5),
    )
    def test_lies_within_the_first_half_whatever_was_delivered(
        self, steps: list[float], rtt_s: float
    ) -> None:
        times = np.linspace(0, END_S, len(steps))
        from_s = steady_from_s(times, np.cumsum(steps), 0.0, END_S, rtt_s)
        assert 0 < from_s <= END_S / 2


class TestCurve:
    CURVE = ([0.0, 1.0, 3.0], [10.0, 20.0, 40.0])

    @pytest.mark.parametrize(
        ("instant", "value"), [(-1, 10), (0, 10), (0.5, 15), (1, 20), (2, 30), (3, 40), (9, 40)]
    )
    def test_is_linear_between_samples_and_flat_outside(self, instant: float, value: float) -> None:
        assert at(*self.CURVE, instant) == value

    @given(st.lists(st.floats(0, 1e6), min_size=1, max_size=30, unique=True), st.floats(-1, 2e6))
    def test_is_as_numpy_has_it(self, times: list[float], instant: float) -> None:
        t_s, values = sorted(times), [float(number) for number in range(len(times))]
        assert at(t_s, values, instant) == pytest.approx(float(np.interp(instant, t_s, values)), abs=1e-6)

    def test_of_arrays_is_that_of_lists(self) -> None:
        curve = delivery(lambda t_s: 100 * MBIT * min(1.0, t_s / 3))
        lists = (list(curve.t_s), list(curve.delivered))
        assert steady_from_s(*lists, 0.0, END_S, 0.2) == steady(curve)[0]
