"""Quantities: what reads as what, what is refused, and that printing and reading undo each other."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import units
from lab.errors import UnitError, UserError

PARSERS: list[Callable[[str], Any]] = [
    units.parse_rate,
    units.parse_size,
    units.parse_time,
    units.parse_probability,
    units.parse_count,
]


def short(low: int, high: int) -> st.SearchStrategy[float]:
    """Floats of at most 12 significant digits: what a person writes, and what is printed exactly."""
    return st.builds(
        lambda digits, exponent: float(f"{digits}e{exponent}"),
        st.integers(1, 10**12 - 1),
        st.integers(low, high),
    )


class TestRate:
    @pytest.mark.parametrize(
        ("text", "rate_bps"),
        [
            ("1gbit", 1e9),
            ("1Gbit", 1e9),
            ("1.5 Gbit/s", 1.5e9),
            ("100mbit", 1e8),
            ("9600bit", 9600),
            (".5kbit", 500),
            ("1.kbit", 1000),
            ("2e3mbit", 2e9),
            ("0.1tbit/s", 1e11),
            ("125MB/s", 1e9),
            ("1kB/s", 8e3),
            ("1KB/s", 8e3),
            ("1B/s", 8),
            ("100MiB/s", 100 * 2**20 * 8),
            ("1GiB/s", 2**33),
            ("  1gbit\t", 1e9),
        ],
    )
    def test_reads(self, text: str, rate_bps: float) -> None:
        assert units.parse_rate(text) == rate_bps

    def test_bits_and_bytes_differ_by_eight(self) -> None:
        assert units.parse_rate("1MB/s") == 8 * units.parse_rate("1mbit")
        assert units.parse_rate("1MiB/s") == units.parse_rate("1MB/s") * 2**20 / 10**6

    @pytest.mark.parametrize(
        "text", ["1bps", "1kbps", "100Mbps", "1Gbps", "1mb", "1Mb", "1MB", "1m", "1k", "1g"]
    )
    def test_refuses_what_may_mean_two_things(self, text: str) -> None:
        with pytest.raises(UnitError, match=r"100mbit or 12\.5MB/s"):
            units.parse_rate(text)

    def test_says_why_a_unit_is_ambiguous(self) -> None:
        with pytest.raises(UnitError) as refused:
            units.parse_rate("100mbps")
        assert str(refused.value) == (
            "'100mbps' is ambiguous: `mbps` is megabits to some and megabytes per second to tc;"
            " write a rate such as 100mbit or 12.5MB/s"
        )

    def test_refuses_a_bare_number(self) -> None:
        with pytest.raises(UnitError) as refused:
            units.parse_rate("1000000")
        assert str(refused.value) == (
            "'1000000' has no unit; a rate needs one (bit, kbit, mbit, gbit, MB/s, MiB/s),"
            " such as 100mbit or 12.5MB/s"
        )

    @given(short(-3, 14))
    def test_prints_what_it_reads(self, rate_bps: float) -> None:
        assert units.parse_rate(units.format_rate(rate_bps)) == rate_bps

    @pytest.mark.parametrize(
        ("rate_bps", "text"),
        [
            (0, "0bit"),
            (1, "1bit"),
            (1500, "1.5kbit"),
            (1e9, "1gbit"),
            (999_999_999.9999999, "1gbit"),
            (400e9, "400gbit"),
            (123_456_789, "123.456789mbit"),
        ],
    )
    def test_prints(self, rate_bps: float, text: str) -> None:
        assert units.format_rate(rate_bps) == text


class TestSize:
    @pytest.mark.parametrize(
        ("text", "size_bytes"),
        [
            ("0", 0),
            ("0B", 0),
            ("-0", 0),
            ("4096B", 4096),
            ("50MiB", 52_428_800),
            ("50MB", 50_000_000),
            ("64KiB", 65536),
            ("64KB", 64000),
            ("64kB", 64000),
            ("1.5MB", 1_500_000),
            ("0.5KiB", 512),
            ("1GiB", 2**30),
            ("1TB", 10**12),
            ("1TiB", 2**40),
            ("1e3B", 1000),
        ],
    )
    def test_reads(self, text: str, size_bytes: int) -> None:
        size = units.parse_size(text)
        assert size == size_bytes
        assert isinstance(size, int)

    @pytest.mark.parametrize(
        "text", ["1Mb", "1mb", "1m", "1M", "1k", "1K", "1b", "1mib", "1Mib", "1gbit", "1 byte", "5"]
    )
    def test_refuses_other_units(self, text: str) -> None:
        with pytest.raises(UnitError, match="50MiB or 50MB"):
            units.parse_size(text)

    @pytest.mark.parametrize("text", ["0.5B", "1.0001KB", "1e-30B"])
    def test_refuses_parts_of_a_byte(self, text: str) -> None:
        with pytest.raises(UnitError, match="whole number of bytes"):
            units.parse_size(text)

    @given(st.integers(0, 2**53))
    def test_prints_what_it_reads(self, size_bytes: int) -> None:
        assert units.parse_size(units.format_size(size_bytes)) == size_bytes

    @given(st.integers(1, 10**6), st.sampled_from(["B", "KB", "MB", "GB", "KiB", "MiB", "GiB"]))
    def test_equal_sizes_print_alike(self, amount: int, unit: str) -> None:
        size = units.parse_size(f"{amount}{unit}")
        assert units.format_size(size) == units.format_size(units.parse_size(f"{size}B"))

    @pytest.mark.parametrize(
        ("size_bytes", "text"),
        [
            (0, "0B"),
            (1, "1B"),
            (1000, "1KB"),
            (1024, "1KiB"),
            (50_000_000, "50MB"),
            (52_428_800, "50MiB"),
            (2**31 - 1, "2147483647B"),
            (6291456, "6MiB"),
        ],
    )
    def test_prints_the_shortest_unit(self, size_bytes: int, text: str) -> None:
        assert units.format_size(size_bytes) == text


class TestTime:
    @pytest.mark.parametrize(
        ("text", "time_s"),
        [
            ("0", 0),
            ("200ms", 0.2),
            ("1.5s", 1.5),
            ("80us", 80e-6),
            ("80µs", 80e-6),  # micro sign
            ("80μs", 80e-6),  # Greek mu
            ("5ns", 5e-9),
            ("2min", 120),
            ("1h", 3600),
            ("3 sec", 3),
        ],
    )
    def test_reads(self, text: str, time_s: float) -> None:
        assert units.parse_time(text) == time_s

    @pytest.mark.parametrize("text", ["200", "1m", "1M", "1msec", "1S", "1MS", "1.5"])
    def test_refuses_other_units(self, text: str) -> None:
        with pytest.raises(UnitError, match=r"200ms or 1\.5s"):
            units.parse_time(text)

    @given(short(-15, 3))
    def test_prints_what_it_reads(self, time_s: float) -> None:
        assert units.parse_time(units.format_time(time_s)) == time_s

    @pytest.mark.parametrize(
        ("time_s", "text"),
        [
            (0, "0s"),
            (-0.0, "0s"),
            (0.2, "200ms"),
            (1, "1s"),
            (0.001, "1ms"),
            (1e-6, "1us"),
            (5e-9, "5ns"),
            (0.99999999999999, "1s"),
            (3600, "3600s"),
        ],
    )
    def test_prints(self, time_s: float, text: str) -> None:
        assert units.format_time(time_s) == text


class TestProbability:
    @pytest.mark.parametrize(
        ("text", "fraction"), [("0", 0), ("0%", 0), ("0.1%", 0.001), ("100%", 1), ("1e-3%", 1e-5)]
    )
    def test_reads_percent(self, text: str, fraction: float) -> None:
        assert units.parse_probability(text) == fraction

    @pytest.mark.parametrize("text", ["0.1", "1", "1e-3", "1 percent", "%", "5s"])
    def test_refuses_what_may_be_a_fraction(self, text: str) -> None:
        with pytest.raises(UnitError, match=r"0\.1%"):
            units.parse_probability(text)

    @pytest.mark.parametrize(
        ("text", "why"),
        [("0.1", "it may be a fraction or percent"), ("5s", "'s' is not a unit of a probability")],
    )
    def test_says_why(self, text: str, why: str) -> None:
        with pytest.raises(UnitError) as refused:
            units.parse_probability(text)
        assert str(refused.value) == f"{text!r}: {why}; write it in percent, such as 0.1%"

    @pytest.mark.parametrize("text", ["-1%", "100.0000001%", "1000%"])
    def test_refuses_what_is_no_probability(self, text: str) -> None:
        with pytest.raises(UnitError, match="between 0% and 100%"):
            units.parse_probability(text)

    def test_knows_no_negative_zero(self) -> None:
        assert math.copysign(1, units.parse_probability("-0%")) == 1
        assert math.copysign(1, units.parse_time("-0")) == 1

    @given(st.integers(0, 10**12), st.integers(0, 12))
    def test_prints_what_it_reads(self, digits: int, places: int) -> None:
        fraction = float(Decimal(digits) / 10**12 / 10**places)
        assert units.parse_probability(units.format_probability(fraction)) == fraction


class TestCount:
    @pytest.mark.parametrize(("text", "count"), [("4", 4), (" 4 ", 4), ("-2", -2), ("+7", 7), ("007", 7)])
    def test_reads(self, text: str, count: int) -> None:
        assert units.parse_count(text) == count

    @pytest.mark.parametrize("text", ["", "4.0", "1e3", "1_000", "٤", "four", "0x10", "4 4", "9" * 5000])
    def test_refuses_all_else(self, text: str) -> None:
        with pytest.raises(UnitError, match="is not a whole number"):
            units.parse_count(text)


class TestAnyText:
    @pytest.mark.parametrize("parse", PARSERS)
    @pytest.mark.parametrize(
        "text",
        [
            *(
                "",
                " ",
                "nan",
                "inf",
                "-inf",
                "NaN%",
                "infinity",
                "nangbit",
                "infs",
                "gbit",
                "%",
                "-",
                "+s",
                ".",
                ".s",
            ),
            *(
                "1e400",
                "1e400gbit",
                "1e400MiB",
                "1e400s",
                "1e400%",
                "1e-400gbit",
                "1e99999999999gbit",
                "1e9999999s",
            ),
            *("9" * 5000 + "B", "9" * 5000 + "s", "0." + "0" * 5000 + "1%", "1e5000B", "1e-5000s", "1egbit"),
            *(
                "٣gbit",
                "１gbit",
                "३MB",
                "²s",
                "½s",
                "1٬000MB",
                "1_000MB",
                "1,5s",
                "0x1Fs",
                "1gbit\x00",
                "--1s",
                "1 2s",
            ),
        ],
    )
    def test_refusal_is_one_of_ours(self, parse: Callable[[str], Any], text: str) -> None:
        with pytest.raises(UnitError) as refused:
            parse(text)
        assert isinstance(refused.value, UserError)
        assert isinstance(refused.value, ValueError)
        assert repr(text) in str(refused.value)

    @given(st.sampled_from(PARSERS), st.text(max_size=12))
    def test_reads_or_refuses_and_never_breaks(self, parse: Callable[[str], Any], text: str) -> None:
        try:
            value = parse(text)
        except UnitError:
            return
        assert math.isfinite(value)

    @given(
        st.sampled_from(PARSERS),
        st.from_regex(r"[+-]?[0-9]{1,4}(\.[0-9]{0,3})?(e[+-]?[0-9]{1,6})?", fullmatch=True),
        st.sampled_from(["", "gbit", "MiB", "s", "ns", "%", "GB/s", "TiB"]),
    )
    def test_any_number_reads_finite_or_is_refused(
        self, parse: Callable[[str], Any], number: str, unit: str
    ) -> None:
        try:
            value = parse(number + unit)
        except UnitError:
            return
        assert math.isfinite(value)


class TestForReading:
    @pytest.mark.parametrize(
        ("rate_bps", "text"),
        [
            (None, "-"),
            (math.nan, "-"),
            (math.inf, "-"),
            (0, "0 bit/s"),
            (999, "999 bit/s"),
            (956_391_000, "956.4 Mbit/s"),
            (1e9, "1 Gbit/s"),
            (5e15, "5000 Tbit/s"),
        ],
    )
    def test_rate(self, rate_bps: float | None, text: str) -> None:
        assert units.human_rate(rate_bps) == text

    @pytest.mark.parametrize(
        ("size_bytes", "text"),
        [(None, "-"), (math.inf, "-"), (0, "0 B"), (1023, "1023 B"), (25e6, "23.84 MiB")],
    )
    def test_size(self, size_bytes: float | None, text: str) -> None:
        assert units.human_size(size_bytes) == text
