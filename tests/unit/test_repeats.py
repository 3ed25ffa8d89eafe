"""Repetitions of a run: which rows belong together, and what their number cannot tell."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import repeats
from lab.errors import UserError
from lab.repeats import indistinct, neighbours, pairs, summarise
from lab.statistics import Interval, estimate
from tests import made_up_run as made_up

Row = dict[str, Any]


def row(goodput_bps: float | None, seed: int = 1, status: str = "done", **knobs: str) -> Row:
    of = made_up.point(seed, **knobs)
    return {**made_up.base_row(of), "status": status, "goodput_bps": goodput_bps}


def rows(*values: float, **knobs: str) -> list[Row]:
    """Return one row a value, seeds from 1."""
    return [row(value, seed, **knobs) for seed, value in enumerate(values, 1)]


class TestSummarise:
    def test_groups_what_differs_in_its_seed_alone(self) -> None:
        found = summarise([*rows(1e6, 2e6, 3e6, cc="bbr"), *rows(4e6, cc="cubic")], ["goodput_bps"])
        assert [(group.label, group.n) for group in found] == [("cc=bbr", 3), ("cc=cubic", 1)]
        assert found[0].values == {"goodput_bps": {1: 1e6, 2: 2e6, 3: 3e6}}
        assert found[0].estimates["goodput_bps"] == estimate([1e6, 2e6, 3e6])
        one = found[1].estimates["goodput_bps"]
        assert one is not None
        assert (one.value, one.interval) == (4e6, None)

    def test_order_is_that_of_the_rows_however_they_are_mixed(self) -> None:
        mixed = [row(1, 1, cc="bbr"), row(2, 1, cc="cubic"), row(3, 2, cc="bbr"), row(4, 2, cc="cubic")]
        assert [group.label for group in summarise(mixed)] == ["cc=bbr", "cc=cubic"]

    def test_failed_repetitions_are_counted_and_left_out(self) -> None:
        (found,) = summarise([*rows(1e6, 2e6), row(None, 3, "failed")], ["goodput_bps"])
        assert (found.n, found.failed, found.label) == (2, 1, "")
        assert found.values["goodput_bps"] == {1: 1e6, 2: 2e6}

    def test_numbers_that_are_none_are_left_out(self) -> None:
        (found,) = summarise([row(1e6), row(None, 2), row(float("inf"), 3)], ["goodput_bps", "loaded_rtt_s"])
        assert found.values["goodput_bps"] == {1: 1e6}
        assert found.estimates["loaded_rtt_s"] is None

    def test_knobs_that_a_run_did_not_know_have_their_default(self) -> None:
        old, new = row(1e6), row(2e6, 2)
        del old["tcp_mem"]
        assert len(summarise([old, new])) == 1

    def test_of_nothing_is_nothing(self) -> None:
        assert summarise([]) == []


class TestNeighbours:
    def test_differ_in_one_knob(self) -> None:
        every = [row(1, cc=cc, rtt=rtt) for cc in ("bbr", "cubic") for rtt in ("10ms", "20ms", "40ms")]
        found = [(knob, a.label, b.label) for knob, a, b in neighbours(summarise(every))]
        assert len(found) == 3 + 2 * 3
        assert ("cc", "rtt=20ms, cc=bbr", "rtt=20ms, cc=cubic") in found
        assert all(a.split(", ")[0] == b.split(", ")[0] or a[-4:] == b[-4:] for _, a, b in found)

    def test_next_values_stand_before_distant_ones(self) -> None:
        groups = summarise([row(1, rtt=rtt) for rtt in ("10ms", "20ms", "40ms")])
        assert [(a.label, b.label) for _, a, b in neighbours(groups)] == [
            ("rtt=10ms", "rtt=20ms"),
            ("rtt=20ms", "rtt=40ms"),
            ("rtt=10ms", "rtt=40ms"),
        ]

    @given(st.lists(st.sampled_from(["10ms", "20ms", "40ms"]), max_size=6, unique=True), st.booleans())
    def test_every_pair_is_there_once(self, rtts: list[str], both: bool) -> None:
        every = [row(1, rtt=rtt, cc=cc) for rtt in rtts for cc in (("bbr", "cubic") if both else ("bbr",))]
        found = [frozenset((a.label, b.label)) for _, a, b in neighbours(summarise(every))]
        n = len(rtts)
        assert len(found) == len(set(found)) == (n * (n - 1) + n if both else n * (n - 1) // 2)


class TestIndistinct:
    def test_is_a_sentence_with_numbers_and_how_many_would_tell(self) -> None:
        groups = summarise([*rows(90.2e6, 91e6, 92.5e6, cc="bbr"), *rows(90e6, 92.4e6, 90e6, cc="cubic")])
        told = indistinct(groups, "goodput_bps")
        assert told[0] == (
            "3 repetitions cannot tell cc=bbr (91.2 ± 1.1 Mbit/s) from cc=cubic (90.8 ± 1.2 Mbit/s);"
            " about 170 each would."
        )
        assert told[1].startswith("3 repetitions are few: ")
        assert len(told) == 2

    def test_says_nothing_of_settings_that_differ(self) -> None:
        groups = summarise([*rows(10e6, 11e6, 12e6, cc="bbr"), *rows(90e6, 92.4e6, 90e6, cc="cubic")])
        assert indistinct(groups, "goodput_bps") == []
        ((pair,), left) = pairs(groups, "goodput_bps")
        assert (pair.knob, pair.verdict.apart, left) == ("cc", True, 0)

    def test_says_nothing_of_single_repetitions(self) -> None:
        assert indistinct(summarise([row(1e6, cc="bbr"), row(2e6, cc="cubic")]), "goodput_bps") == []

    def test_says_what_both_have_in_common(self) -> None:
        every = [
            one
            for rtt, factor in (("10ms", 1.0), ("20ms", 3.0))
            for cc in ("bbr", "cubic")
            for one in rows(*(factor * value for value in (90e6, 91e6, 92e6, 90e6, 91e6)), cc=cc, rtt=rtt)
        ]
        told = indistinct(summarise(every), "goodput_bps")
        assert [sentence.partition(":")[0] for sentence in told] == ["rtt=10ms", "rtt=20ms"]
        assert all(sentence.endswith("; their means are equal.") for sentence in told)

    def test_is_short_and_begins_with_what_looks_most_different(self) -> None:
        chance = random.Random(1)
        every = [
            one
            for rtt in (10, 20, 30, 40, 50, 60)
            for one in rows(*(1e8 * chance.gauss(1, 0.1) for _ in range(5)), rtt=f"{rtt}ms")
        ]
        groups = summarise(every)
        close = [pair for pair in pairs(groups, "goodput_bps")[0] if pair.verdict.apart is False]
        assert len(close) > 11
        told = indistinct(groups, "goodput_bps")
        assert len(told) == repeats.MOST_SENTENCES + 1
        assert told[-1] == f"Not told apart either: {len(close) - repeats.MOST_SENTENCES} more pairs."
        widest = max(close, key=lambda pair: abs(pair.verdict.difference))
        assert f"{widest.knob}={widest.a.knobs['rtt']} " in told[0]

    def test_settings_without_chance_are_counted_apart(self) -> None:
        every = [one for rtt in ("10ms", "20ms", "30ms") for one in rows(9e7, 9e7, rtt=rtt)]
        assert indistinct(summarise(every), "goodput_bps") == [
            "rtt=10ms and rtt=20ms give the same with every seed: 90 Mbit/s.",
            "The same with every seed: 2 more pairs.",
        ]

    def test_a_large_sweep_is_not_looked_at_whole(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(repeats, "MOST_PAIRS", 2)
        every = [one for rtt in ("10ms", "20ms", "30ms") for one in rows(9e7, 9e7, rtt=rtt)]
        assert indistinct(summarise(every), "goodput_bps")[-1] == (
            "Not looked at: 1 more pair, one knob apart."
        )


class TestColumns:
    @pytest.mark.parametrize(
        ("written", "column"),
        [
            ("goodput_bps", "goodput_bps"),
            ("goodput", "goodput_bps"),
            ("loaded_rtt", "loaded_rtt_s"),
            ("queue_max", "queue_max_bytes"),
            ("tcp_efficiency", "tcp_efficiency_percent"),
            ("retransmits", "retransmits"),
        ],
    )
    def test_unit_may_be_left_out(self, written: str, column: str) -> None:
        assert repeats.column(written) == column

    @pytest.mark.parametrize(
        ("written", "hint"),
        [("goodptu_bps", "did you mean 'goodput_bps'"), ("xyz", "docs/reference"), ("cc", "")],
    )
    def test_others_are_refused(self, written: str, hint: str) -> None:
        with pytest.raises(UserError) as refused:
            repeats.column(written)
        assert str(refused.value).startswith(
            f"{written!r} is not a column of numbers of table points; {hint}"
        )

    @pytest.mark.parametrize(
        ("column", "value", "half", "text"),
        [
            ("goodput_bps", 91.23e6, 3.14e6, "91.2 ± 3.1 Mbit/s"),
            ("goodput_bps", 91.23e6, 31.4e6, "91 ± 31 Mbit/s"),
            ("goodput_bps", 1.5e9, 0.0, "1.5 Gbit/s"),
            ("goodput_bps", 0.0, 0.0, "0 bit/s"),
            ("goodput_bps", 91.23e6, 1e-3, "91.23 ± 1e-09 Mbit/s"),
            ("loaded_rtt_s", 0.0412, 0.0001, "41.20 ± 0.10 ms"),
            ("retransmits", 12, 2.5, "12.0 ± 2.5 segments"),
            ("queue_max_bytes", 2**20, 0.0, "1 MiB"),
            ("margin", 2.5, 0.0, "2.5"),
        ],
    )
    def test_quantities_have_their_unit(self, column: str, value: float, half: float, text: str) -> None:
        assert repeats.quantity(column, value, Interval(value - half, value + half, "BCa")) == text
