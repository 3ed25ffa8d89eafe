"""Statistics of a few repetitions: intervals that cover, verdicts that do not see what is not there."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lab import statistics
from lab.statistics import ALL_EQUAL, Estimate, Interval, estimate, tell_apart

numbers = st.floats(min_value=-1e12, max_value=1e12, allow_nan=False).map(lambda x: round(x, 3))
samples = st.lists(numbers, min_size=1, max_size=12)
settings_of_a_run = st.dictionaries(st.integers(1, 8), numbers, min_size=1, max_size=8)
few = settings(max_examples=30)  # a bootstrap takes a millisecond or two


def by_seed(*values: float, first: int = 1) -> dict[int, float]:
    """Return {seed: value}, seeds in a row."""
    return dict(enumerate(values, first))


def say(found: Estimate) -> str:
    width = "" if found.interval is None else f" ± {found.interval.half_width:.2g}"
    return f"{found.value:.4g}{width}"


class TestEstimate:
    def test_of_one_value_has_no_interval(self) -> None:
        assert estimate([5.0]) == Estimate(5.0, 1, None, None)
        assert not estimate([5.0]).constant

    def test_of_equal_values_has_no_width(self) -> None:
        found = estimate([0.1] * 7)
        assert found == Estimate(0.1, 7, 0.0, Interval(0.1, 0.1, ALL_EQUAL))
        assert found.constant

    def test_of_no_value_is_refused(self) -> None:
        with pytest.raises(ValueError, match="at least one"):
            estimate([])

    def test_mean_is_bca_and_median_by_percentiles(self) -> None:
        mean, median = estimate([1, 2, 3, 4, 9]), estimate([1, 2, 3, 4, 9], "median")
        assert (mean.value, median.value) == (3.8, 3.0)
        assert mean.interval is not None
        assert mean.interval.method == "BCa"
        assert median.interval is not None
        assert median.interval.method == "percentile"
        assert mean.spread == pytest.approx(math.sqrt(38.8 / 4))

    def test_skew_moves_the_interval(self) -> None:
        """That is what BCa is for: the long tail is on the right."""
        found = estimate([1, 1.1, 1.2, 1.3, 1.5, 1.8, 2.5, 6])
        assert found.interval is not None
        assert found.interval.high - found.value > 1.5 * (found.value - found.interval.low)

    @given(samples, st.randoms())
    @few
    def test_order_decides_nothing_and_equal_values_give_equal_intervals(
        self, values: list[float], chance: object
    ) -> None:
        other = list(values)
        chance.shuffle(other)  # type: ignore[attr-defined]
        assert estimate(other) == estimate(values)

    @given(samples)
    @few
    def test_mean_and_interval_stay_within_the_values(self, values: list[float]) -> None:
        found = estimate(values)
        assert min(values) <= found.value <= max(values)
        if found.interval is not None:
            slack = 1e-9 * max(map(abs, values))
            assert min(values) - slack <= found.interval.low <= found.interval.high
            assert found.interval.high <= max(values) + slack

    @pytest.mark.parametrize("n", [10, 30])
    def test_interval_covers_the_mean_of_normal_samples(self, n: int) -> None:
        chance = np.random.default_rng(n)
        found = [estimate(chance.normal(7.0, 2.0, n)).interval for _ in range(300)]
        covered = sum(one is not None and one.contains(7.0) for one in found) / len(found)
        assert 0.86 < covered < 0.99  # 0.90 expected for n = 10, 0.93 for 30; binomial error 0.017

    @pytest.mark.parametrize("n", [2, 3, 4])
    def test_interval_of_a_few_covers_as_little_as_the_caution_says(self, n: int) -> None:
        chance = np.random.default_rng(n)
        found = [estimate(chance.normal(0.0, 1.0, n)).interval for _ in range(300)]
        covered = sum(one is not None and one.contains(0.0) for one in found) / len(found)
        assert covered < 1 - 2.0 ** (1 - n) + 0.06  # at most, and two binomial errors
        assert f"at least {100 * 2.0 ** (1 - n):.3g} %" in statistics.caution(n)

    @pytest.mark.parametrize("n", [0, 1, 5, 100])
    def test_no_caution_where_there_is_no_interval_or_enough(self, n: int) -> None:
        assert statistics.caution(n) == ""


class TestTellApart:
    def test_one_repetition_says_nothing(self) -> None:
        for a, b in ((by_seed(1), by_seed(2)), (by_seed(1), by_seed(2, 3)), (by_seed(1, 2), by_seed(3))):
            found = tell_apart(a, b)
            assert (found.apart, found.interval, found.needed_n) == (None, None, None)
        assert tell_apart(by_seed(1), by_seed(3)).difference == 2

    def test_settings_without_chance_are_told_exactly(self) -> None:
        found = tell_apart(by_seed(5, 5), by_seed(7, 7, 7))
        assert (found.difference, found.apart, found.needed_n) == (2, True, None)
        assert found.interval == Interval(2, 2, ALL_EQUAL)
        assert tell_apart(by_seed(5, 5), by_seed(5, 5)).apart is False

    def test_pairing_sees_what_chance_hides(self) -> None:
        """Seeds that differ widely, and a setting that is better with every one of them."""
        a = by_seed(10, 20, 30, 40, 50, 60)
        b = by_seed(11.1, 20.9, 31, 41.2, 50.8, 61)
        paired = tell_apart(a, b)
        assert (paired.paired, paired.apart) == (True, True)
        other = tell_apart(a, {seed + 100: value for seed, value in b.items()})
        assert (other.paired, other.apart) == (False, False)
        assert other.difference == paired.difference
        assert other.needed_n is not None
        assert paired.needed_n is not None
        assert other.needed_n > 100 * paired.needed_n

    def test_counts_that_differ_by_the_same_number_are_no_certainty(self) -> None:
        found = tell_apart(by_seed(3, 5), by_seed(4, 6))
        assert found.paired
        assert found.apart is False
        assert found.interval is not None
        assert found.interval.low < 0 < found.interval.high

    def test_three_seeds_with_one_sign_are_no_proof(self) -> None:
        """A bootstrap alone would say so: none of its means has another sign."""
        found = tell_apart(by_seed(0, 0, 0), by_seed(0.5, 3, 1))
        assert found.apart is False
        assert found.interval is not None
        assert "Student" in found.interval.method

    @pytest.mark.parametrize("paired", [True, False])
    @pytest.mark.parametrize("n", [3, 10])
    def test_equal_settings_are_seldom_told_apart(self, n: int, paired: bool) -> None:
        chance = np.random.default_rng(n)
        first = 1 if paired else 101
        wrong = sum(
            tell_apart(by_seed(*chance.normal(0, 1, n)), by_seed(*chance.normal(0, 1, n), first=first)).apart
            is True
            for _ in range(200)
        )
        assert wrong / 200 <= 0.08  # 0.05 is meant; binomial error 0.015

    @given(settings_of_a_run, settings_of_a_run)
    @few
    def test_exchanging_them_mirrors_the_verdict(self, a: dict[int, float], b: dict[int, float]) -> None:
        one, other = tell_apart(a, b), tell_apart(b, a)
        assert (one.a, one.b, one.paired) == (other.b, other.a, other.paired)
        assert one.difference == -other.difference
        assert one.needed_n == other.needed_n
        if one.interval is None or other.interval is None:
            assert one.interval is other.interval is None
            return
        scale = max(map(abs, (*a.values(), *b.values())))
        assert one.interval.low == pytest.approx(-other.interval.high, rel=1e-6, abs=1e-9 * scale)
        assert one.interval.high == pytest.approx(-other.interval.low, rel=1e-6, abs=1e-9 * scale)

    @given(settings_of_a_run, settings_of_a_run)
    @few
    def test_interval_holds_the_difference(self, a: dict[int, float], b: dict[int, float]) -> None:
        found = tell_apart(a, b)
        assert found == tell_apart(a, b)
        if found.interval is not None:
            slack = 1e-9 * max(map(abs, (*a.values(), *b.values())))
            assert found.interval.low - slack <= found.difference <= found.interval.high + slack


class TestNeededN:
    def test_is_the_formula(self) -> None:
        """(1.96 + 0.84)² = 7.849 for a difference of one standard deviation, paired."""
        assert statistics.needed_n(1.0, 1.0) == 8
        assert statistics.needed_n(1.0, -0.1) == 785
        assert statistics.needed_n(3.1**2 + 4.0**2, 0.4) == math.ceil(7.849 * 25.61 / 0.16)

    def test_of_no_difference_or_no_spread_is_none(self) -> None:
        assert statistics.needed_n(1.0, 0.0) is None
        assert statistics.needed_n(0.0, 1.0) is None

    @given(st.floats(0.01, 100), st.floats(0.01, 100))
    def test_grows_with_the_square(self, spread: float, difference: float) -> None:
        one, other = (
            statistics.needed_n(spread**2, difference),
            statistics.needed_n(spread**2, difference / 2),
        )
        assert one is not None
        assert other is not None
        assert 4 * (one - 1) <= other <= 4 * one

    def test_so_many_do_tell(self) -> None:
        """80 % of all tries with that many find the difference."""
        n = statistics.needed_n(2.0, 0.8)
        assert n == 25
        chance = np.random.default_rng(5)
        found = sum(
            tell_apart(by_seed(*chance.normal(0, 1, n)), by_seed(*chance.normal(0.8, 1, n), first=99)).apart
            is True
            for _ in range(150)
        )
        assert 0.68 < found / 150 < 0.9  # binomial error 0.033

    @given(settings_of_a_run, settings_of_a_run)
    @few
    def test_more_are_needed_than_could_not_tell(self, a: dict[int, float], b: dict[int, float]) -> None:
        found = tell_apart(a, b)
        assume(found.apart is False and found.needed_n is not None)
        assert found.needed_n is not None
        assert found.needed_n > max(len(a), len(b))


class TestWords:
    def test_of_a_difference_within_chance(self) -> None:
        found = tell_apart(by_seed(90.2, 91, 92.5), by_seed(90, 92.4, 90))
        assert statistics.sentence(found, "cc=bbr", "cc=cubic", say) == (
            "3 repetitions cannot tell cc=bbr (91.23 ± 1.1) from cc=cubic (90.8 ± 1.2); about 170 each would."
        )

    def test_of_a_difference_that_is_there(self) -> None:
        found = tell_apart(by_seed(90.2, 91, 92.5), by_seed(50, 52.4, 50, 51))
        assert statistics.sentence(found, "a", "b", say).startswith(
            "3 and 4 repetitions tell a (91.23 ± 1.1)"
        )

    def test_of_one_repetition(self) -> None:
        said = statistics.sentence(tell_apart(by_seed(1), by_seed(2)), "a", "b", say)
        assert said == "One repetition does not say whether a (1) differs from b (2); --repeat gives more."

    def test_of_settings_that_do_the_same(self) -> None:
        said = statistics.sentence(tell_apart(by_seed(1, 1), by_seed(1, 1)), "a", "b", say)
        assert said == "a and b give the same with every seed: 1 ± 0."

    @pytest.mark.parametrize(
        ("needed", "text"),
        [
            (None, "their means are equal"),
            (7, "about 7 each would"),
            (134, "about 140 each would"),
            (9_901, "about 10000 each would"),
            (10_001, "more than 10000 each would be needed"),
        ],
    )
    def test_of_how_many_would_tell(self, needed: int | None, text: str) -> None:
        assert statistics.wanted(needed) == text
