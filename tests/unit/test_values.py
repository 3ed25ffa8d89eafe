"""Values of knobs: lists, words and fields, and how what is wrong with one is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import units, values
from lab.errors import UnitError
from lab.values import Knob

TIMES = values.listed(units.parse_time, "times")
SHOW = values.show_list(units.format_time)


class TestLists:
    def test_one_value_is_a_list_of_one(self) -> None:
        assert TIMES("10ms") == (0.01,)

    def test_values_are_joined_by_plus_with_blanks_or_without(self) -> None:
        assert TIMES("10ms+ 1s +2s") == (0.01, 1.0, 2.0)

    @pytest.mark.parametrize("text", ["10ms+", "+10ms", "10ms++1s", "10ms+ +1s"])
    def test_empty_place_is_refused(self, text: str) -> None:
        with pytest.raises(UnitError) as refused:
            TIMES(text)
        assert str(refused.value) == f"{text!r} has an empty place; join times by +, such as A+B"

    def test_fault_of_one_value_names_that_value(self) -> None:
        with pytest.raises(UnitError, match=r"^'5' has no unit"):
            TIMES("10ms+5")

    def test_end_somewhere(self) -> None:
        text = "+".join(["1s"] * (values.MOST_LISTED + 1))
        with pytest.raises(
            UnitError, match=r"'1s\+1s.*'\.\.\. joins 1001 values; at most 1000 can be listed"
        ):
            TIMES(text)

    @given(st.lists(st.integers(0, 10**6).map(lambda us: us / 1e6), min_size=1, max_size=9))
    def test_what_is_printed_reads_back(self, times: list[float]) -> None:
        again = TIMES(SHOW(tuple(times)))
        assert len(again) in (len(times), 1)
        assert all(one == pytest.approx(again[at % len(again)]) for at, one in enumerate(times))

    def test_equal_values_are_printed_once(self) -> None:
        assert SHOW((1.0, 1.0, 1.0)) == "1s"
        assert SHOW((1.0, 2.0, 1.0)) == "1s+2s+1s"


class TestParsers:
    def test_choice_takes_its_words_in_any_case(self) -> None:
        assert values.choice("on", "off")(" ON ") == "on"
        with pytest.raises(UnitError, match="'yes' is not one of on, off"):
            values.choice("on", "off")("yes")

    def test_count_is_whole_and_in_its_range(self) -> None:
        assert values.count(1, 5, "it")(" 05") == 5
        with pytest.raises(UnitError, match="'6' is out of range; it lies between 1 and 5"):
            values.count(1, 5, "it")("6")

    def test_ranged_prints_its_bounds_as_they_are_written(self) -> None:
        parse = values.ranged(units.parse_time, 0, 2, units.format_time, "a time")
        assert parse("2s") == 2
        with pytest.raises(UnitError, match="'3s' is out of range; a time lies between 0s and 2s"):
            parse("3s")

    def test_word_fits_its_pattern_as_a_whole(self) -> None:
        assert values.word(r"[a-z]+", "a name")(" abc ") == "abc"
        with pytest.raises(UnitError, match="'abc1' is not a name"):
            values.word(r"[a-z]+", "a name")("abc1")

    def test_optional_reads_a_word_as_none_and_prints_it_again(self) -> None:
        parse = values.optional(units.parse_time, "none")
        show = values.shown(units.format_time, "none")
        assert [parse(text) for text in (" none ", "1s")] == [None, 1.0]
        assert [show(value) for value in (None, 1.0)] == ["none", "1s"]

    def test_fields_are_as_many_as_can_be(self) -> None:
        assert values.fields("a: b:c", "A:B", 2, 3) == ["a", "b", "c"]
        for text in ("a", "a:b:c:d", "a::c", ":"):
            with pytest.raises(UnitError, match="has not the form that is wanted here; write it such as A:B"):
                values.fields(text, "A:B", 2, 3)


class TestKnob:
    KNOB = Knob("rtt", "1s", "a time", units.parse_time, units.format_time)

    def test_fault_names_the_knob(self) -> None:
        with pytest.raises(UnitError, match=r"^rtt: '5' has no unit"):
            self.KNOB.value("5")

    def test_has_one_spelling_for_each_value(self) -> None:
        assert {self.KNOB.canonical(text) for text in ("1s", "1000ms", " 1 s")} == {"1s"}
