"""What flows do over time: arrivals, sizes and pauses, as they are written and as they are drawn."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import loads
from lab.errors import UnitError
from lab.loads import Arrivals, OnOff, Sizes

DRAWN = 100_000


class TestGrammar:
    @pytest.mark.parametrize(
        ("parse", "show", "text", "value", "canonical"),
        [
            (loads.parse_arrivals, loads.show_arrivals, "poisson:60%", Arrivals("poisson", 0.6), None),
            (loads.parse_arrivals, loads.show_arrivals, "poisson:500%", Arrivals("poisson", 5.0), None),
            (
                loads.parse_arrivals,
                loads.show_arrivals,
                "every:0.1s",
                Arrivals("every", 0.1),
                "every:100ms",
            ),
            (loads.parse_sizes, loads.show_sizes, "64KB", Sizes("list", (64_000,)), None),
            (
                loads.parse_sizes,
                loads.show_sizes,
                "10KB+ 1MB",
                Sizes("list", (10_000, 10**6)),
                "10KB+1MB",
            ),
            (loads.parse_sizes, loads.show_sizes, "10KB+10KB", Sizes("list", (10_000, 10_000)), None),
            (loads.parse_sizes, loads.show_sizes, "exp:100KB", Sizes("exp", (100_000,)), None),
            (
                loads.parse_sizes,
                loads.show_sizes,
                "pareto:1.20:0.1MB",
                Sizes("pareto", (1.2, 100_000)),
                "pareto:1.2:100KB",
            ),
            (loads.parse_on_off, loads.show_on_off, "1s:2s", OnOff("fixed", 1, 2), None),
            (loads.parse_on_off, loads.show_on_off, "fixed:1s:2s", OnOff("fixed", 1, 2), "1s:2s"),
            (loads.parse_on_off, loads.show_on_off, "exp:1s:2000ms", OnOff("exp", 1, 2), "exp:1s:2s"),
        ],
    )
    def test_reads_and_prints(
        self,
        parse: Callable[[str], Any],
        show: Callable[[Any], str],
        text: str,
        value: object,
        canonical: str | None,
    ) -> None:
        assert parse(text) == value
        assert show(value) == (canonical or text)
        assert parse(show(value)) == value

    @pytest.mark.parametrize(
        ("parse", "text", "message"),
        [
            (loads.parse_arrivals, "60%", "'60%' has not the form that is wanted here; write it such as"),
            (
                loads.parse_arrivals,
                "poisson:0%",
                "'poisson:0%': a load is a share of the link over 0% and up to",
            ),
            (loads.parse_arrivals, "poisson:501%", "'poisson:501%': a load is a share of the link"),
            (loads.parse_arrivals, "poisson:0.6", "'poisson:0.6': a load is a share of the link"),
            (loads.parse_arrivals, "every:99us", "'every:99us': at least 100us lie between two flows"),
            (loads.parse_arrivals, "often:1s", "'often:1s': arrivals are poisson:LOAD or every:TIME"),
            (loads.parse_sizes, "99B", "'99B' is out of range; a flow has between 100B and 1TiB"),
            (loads.parse_sizes, "exp:2TiB", "'2TiB' is out of range"),
            (loads.parse_sizes, "10KB+", "'10KB+' has an empty place; join sizes by +, such as A+B"),
            (
                loads.parse_sizes,
                "pareto:1:100KB",
                "'pareto:1:100KB': a shape is a number over 1, or there is no",
            ),
            (loads.parse_sizes, "pareto:1.2", "'1.2' has not the form that is wanted here"),
            (loads.parse_sizes, "normal:100KB", "'normal:100KB': sizes are 64KB, 10KB+1MB, exp:MEAN or"),
            (loads.parse_on_off, "1s", "'1s' has not the form that is wanted here"),
            (loads.parse_on_off, "1s:0s", "'1s:0s': sending and silence each last at least 1ms"),
            (loads.parse_on_off, "even:1s:2s", "'even:1s:2s': 'even' is not a distribution; write 1s:2s or"),
        ],
    )
    def test_refuses_and_says_why(self, parse: Callable[[str], object], text: str, message: str) -> None:
        with pytest.raises(UnitError) as refused:
            parse(text)
        assert str(refused.value).startswith(message)


class TestSizes:
    def draw(self, text: str, count: int = DRAWN, seed: str = "sizes") -> list[int]:
        return list(itertools.islice(loads.parse_sizes(text).draw(random.Random(seed)), count))

    def test_of_a_list_come_in_turn(self) -> None:
        assert self.draw("10KB+1MB", 5) == [10_000, 10**6, 10_000, 10**6, 10_000]

    @pytest.mark.parametrize("text", ["64KB", "10KB+1MB", "exp:100KB", "pareto:3:100KB"])
    def test_have_the_mean_that_was_asked_for(self, text: str) -> None:
        sizes = self.draw(text)
        assert sum(sizes) / len(sizes) == pytest.approx(loads.parse_sizes(text).mean_bytes, rel=0.02)

    def test_of_a_pareto_load_few_carry_most(self) -> None:
        sizes = sorted(self.draw("pareto:1.2:100KB"), reverse=True)
        assert min(sizes) == round(100_000 * 0.2 / 1.2)
        assert sum(sizes[: DRAWN // 10]) > 0.5 * sum(sizes)

    @given(st.sampled_from(["100B", "exp:100B", "exp:1TiB", "pareto:1.01:1TiB"]), st.integers(0, 99))
    def test_stay_in_bounds(self, text: str, seed: int) -> None:
        sizes = self.draw(text, 100, str(seed))
        assert min(sizes) >= loads.LEAST_FLOW_BYTES
        assert max(sizes) <= loads.MOST_FLOW_BYTES

    def test_of_an_equal_seed_are_equal(self) -> None:
        assert self.draw("exp:1MB", 9) == self.draw("exp:1MB", 9)
        assert self.draw("exp:1MB", 9) != self.draw("exp:1MB", 9, "another")


class TestSpells:
    def test_of_fixed_lengths_come_again_and_again(self) -> None:
        spells = OnOff("fixed", 1, 2).spells(random.Random("1"), 7.5)
        assert spells == [(0, 1), (3, 4), (6, 7)]

    def test_end_with_the_load(self) -> None:
        assert OnOff("fixed", 1, 2).spells(random.Random("1"), 3.25) == [(0, 1), (3, 3.25)]

    def test_at_random_have_their_means(self) -> None:
        spells = OnOff("exp", 0.1, 0.3).spells(random.Random("1"), 10_000)
        sending = sum(until - start for start, until in spells)
        assert sending / 10_000 == pytest.approx(0.25, rel=0.05)
        assert 10_000 / len(spells) == pytest.approx(0.4, rel=0.05)

    @given(st.sampled_from(["fixed", "exp"]), st.floats(1e-3, 5), st.floats(1e-3, 5), st.integers(0, 99))
    def test_follow_one_another_within_the_load(
        self, kind: str, on_s: float, off_s: float, seed: int
    ) -> None:
        spells = OnOff(kind, on_s, off_s).spells(random.Random(str(seed)), 2.0)
        edges = [edge for spell in spells for edge in spell]
        assert edges == sorted(edges)
        assert edges[0] == 0
        assert edges[-1] <= 2.0
