"""Steps and ramps: how they are written, that they follow one another, and what a ramp is cut into."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import changes, units
from lab.changes import Change
from lab.errors import UnitError

EXAMPLE = "5s:50mbit or 5s~10s:50mbit"
parse = changes.parser(units.parse_rate, EXAMPLE)
show = changes.shower(units.format_rate)

GAPS = st.lists(
    st.tuples(st.integers(1, 10_000), st.integers(0, 10_000), st.integers(1, 10**6)), min_size=1, max_size=6
)


def planned(gaps: list[tuple[int, int, int]]) -> tuple[Change, ...]:
    """Return changes after one another: ms before each, ms that its ramp takes, and its value in kbit/s."""
    found, at_ms = [], 0
    for gap, ramp, value in gaps:
        at_ms += gap
        found.append(Change(at_ms / 1e3, (at_ms + ramp) / 1e3, value * 1e3))
        at_ms += ramp
    return tuple(found)


class TestGrammar:
    @pytest.mark.parametrize(
        ("text", "found", "canonical"),
        [
            ("5s:50mbit", (Change(5, 5, 5e7),), "5s:50mbit"),
            ("0s:1mbit", (Change(0, 0, 1e6),), "0s:1mbit"),
            ("5000ms~10s:0.05gbit", (Change(5, 10, 5e7),), "5s~10s:50mbit"),
            ("5s:50mbit + 10s:100mbit", (Change(5, 5, 5e7), Change(10, 10, 1e8)), "5s:50mbit+10s:100mbit"),
            (
                "1s~2s:1mbit+2001ms:2mbit",
                (Change(1, 2, 1e6), Change(2.001, 2.001, 2e6)),
                "1s~2s:1mbit+2.001s:2mbit",
            ),
        ],
    )
    def test_reads_and_prints(self, text: str, found: tuple[Change, ...], canonical: str | None) -> None:
        assert parse(text) == found
        assert show(found) == (canonical or text)

    @given(GAPS)
    def test_what_is_printed_reads_back(self, gaps: list[tuple[int, int, int]]) -> None:
        text = show(planned(gaps))
        assert show(parse(text)) == text
        assert [one.value for one in parse(text)] == pytest.approx([one.value for one in planned(gaps)])

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("50mbit", f"'50mbit' has not the form that is wanted here; write it such as {EXAMPLE}"),
            ("5s:", "'5s:' has not the form that is wanted here"),
            ("5s:50mbit+", "'5s:50mbit+' has an empty place; join changes by +, such as A+B"),
            (
                "10s~5s:1mbit",
                "'10s~5s:1mbit': a ramp goes from an earlier instant to a later; write 5s:50mbit",
            ),
            ("5s~5s:1mbit", "'5s~5s:1mbit': a ramp goes from an earlier instant to a later"),
            ("-1s:1mbit", "'-1s:1mbit': a ramp goes from an earlier instant to a later"),
            (
                "5s:1mbit+5s:2mbit",
                "'5s:2mbit' begins before the change before it is over; changes follow one another",
            ),
            ("5s~9s:1mbit+8s:2mbit", "'8s:2mbit' begins before the change before it is over"),
            ("5s:1mb", "'1mb' is ambiguous"),
            ("5:1mbit", "'5' has no unit"),
        ],
    )
    def test_refuses_and_says_why(self, text: str, message: str) -> None:
        with pytest.raises(UnitError) as refused:
            parse(text)
        assert str(refused.value).startswith(message)

    def test_refuses_more_than_a_trace_is_better_for(self) -> None:
        text = "+".join(f"{at}s:1mbit" for at in range(changes.MOST_CHANGES + 1))
        with pytest.raises(UnitError, match="1001 changes; take a trace for more than 1000"):
            parse(text)


class TestSteps:
    def test_of_nothing_are_the_first_value(self) -> None:
        assert changes.steps(1e6, ()) == [(0.0, 1e6)]

    def test_of_steps_are_these(self) -> None:
        assert changes.steps(1e6, parse("5s:50mbit+10s:100mbit")) == [(0.0, 1e6), (5.0, 5e7), (10.0, 1e8)]

    def test_of_a_ramp_are_a_hundred_at_their_middles(self) -> None:
        found = changes.steps(0.0, parse("10s~20s:100mbit"))
        assert len(found) == 1 + changes.RAMP_STEPS + 1
        assert found[1] == (10.0, pytest.approx(0.5e6))
        assert found[-2] == (pytest.approx(19.9), pytest.approx(99.5e6))
        assert found[-1] == (20.0, 1e8)

    def test_of_a_short_ramp_are_no_shorter_than_a_millisecond(self) -> None:
        found = changes.steps(0.0, parse("1s~1004ms:4mbit"))
        assert [t_s for t_s, _ in found] == pytest.approx([0, 1, 1.001, 1.002, 1.003, 1.004])

    @given(GAPS, st.floats(1e3, 1e9))
    def test_rise_in_time_and_end_at_the_last_value(
        self, gaps: list[tuple[int, int, int]], first: float
    ) -> None:
        made = planned(gaps)
        found = changes.steps(first, made)
        instants = [t_s for t_s, _ in found]
        assert instants == sorted(set(instants))
        assert found[0] == (0.0, first)
        assert found[-1] == (changes.last_s(made), made[-1].value)

    @given(st.integers(1, 10_000), st.floats(1e3, 1e9), st.floats(1e3, 1e9))
    def test_of_a_ramp_have_its_mean(self, span_ms: int, first: float, last: float) -> None:
        """What a link could carry in a ramp is what a straight line would let it."""
        found = changes.steps(first, (Change(1.0, 1.0 + span_ms / 1e3, last),))[1:]
        spans = [after[0] - before[0] for before, after in itertools.pairwise(found)]
        carried = sum(value * span for (_, value), span in zip(found, spans, strict=False))
        assert carried == pytest.approx((first + last) / 2 * span_ms / 1e3, rel=1e-4)
