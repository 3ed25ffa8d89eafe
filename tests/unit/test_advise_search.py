"""The search for the least buffer, with made-up answers: what it finds, how soon, and that it always ends."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.advise.search import PRECISION, Search, grid

LEAST, MOST = 4096, 2**31 - 2**20
GRID = 1.004
"""What rounding to the grid may add, as a factor."""

sizes = st.integers(LEAST, MOST)


def run(search: Search, reaches: object, count: int, limit: int = 60) -> int:
    """Run a search to its end; return how many rounds it took."""
    assert callable(reaches)
    for number in range(limit):
        asked = search.propose(count)
        if not asked:
            assert search.done
            return number
        assert asked == sorted(set(asked))
        assert len(asked) <= count
        assert not set(asked) & set(search.told), "no size is asked for twice"
        search.tell({size: reaches(size) for size in asked})
    pytest.fail("the search does not end")


@given(threshold=sizes, guess=st.floats(1, 2**33), count=st.integers(1, 8))
def test_finds_the_threshold(threshold: int, guess: float, count: int) -> None:
    search = Search(guess, LEAST, MOST)
    rounds = run(search, lambda size: size >= threshold, count)
    assert search.result >= threshold
    assert search.result <= max(LEAST, threshold * PRECISION * GRID**2)
    assert search.short is None or search.short < threshold
    assert rounds <= 30


@given(
    threshold=st.integers(2 * LEAST, MOST // 2), off=st.floats(-0.008, 0.008), count=st.sampled_from([2, 4])
)
def test_a_right_guess_takes_one_round(threshold: int, off: float, count: int) -> None:
    search = Search(threshold * (1 + off), LEAST, MOST)
    assert run(search, lambda size: size >= threshold, count) == 1


@pytest.mark.parametrize("wrong", [0.05, 0.3, 0.8, 1.3, 3, 20])
def test_a_wrong_guess_takes_few(wrong: float) -> None:
    threshold = 50_000_000
    search = Search(threshold * wrong, LEAST, MOST)
    assert run(search, lambda size: size >= threshold, 2) <= 9


@given(seed=st.integers(0, 10**6), guess=sizes, count=st.integers(1, 4))
def test_ends_and_reaches_whatever_the_answers(seed: int, guess: int, count: int) -> None:
    chance = random.Random(seed)
    answers: dict[int, bool] = {MOST: True}

    def reaches(size: int) -> bool:
        return answers.setdefault(size, chance.random() < 0.5)

    search = Search(guess, LEAST, MOST)
    run(search, reaches, count)
    assert answers[search.result]
    assert search.short is None or not answers[search.short]
    assert search.short is None or search.short < search.result


def test_even_the_least_size_reaches() -> None:
    search = Search(10**6, LEAST, MOST)
    run(search, lambda _size: True, 2)
    assert (search.result, search.short) == (LEAST, None)


def test_nothing_but_the_most_reaches() -> None:
    search = Search(10**6, LEAST, MOST)
    run(search, lambda size: size >= MOST, 2)
    assert search.result == MOST
    assert search.short is not None
    assert search.short * PRECISION * GRID >= MOST


def test_a_dip_above_does_not_mislead() -> None:
    """An overfull queue costs goodput at some larger sizes; the crossing below them is the answer."""
    threshold = 10_000_000
    search = Search(threshold, LEAST, MOST)
    run(search, lambda size: size >= threshold and not 1.5 < size / threshold < 4, 2)
    assert threshold <= search.result <= threshold * PRECISION * GRID


def test_no_range_is_refused() -> None:
    with pytest.raises(ValueError, match="no range"):
        Search(5, 10, 9)


@given(size=st.floats(1, 2**31))
def test_the_grid_is_fine_and_stays(size: float) -> None:
    on = grid(size)
    assert grid(on) == on
    assert abs(on - size) <= max(0.5, size * 0.003)
