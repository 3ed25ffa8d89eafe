"""Knobs: one canonical spelling for each value, ranges that name what they refuse, the grammar of a queue."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lab.errors import UnitError
from lab.knobs import INTEGER_KNOBS, LARGEST_QUEUE_BYTES, PATH_KNOBS, TOPOLOGIES, WORKLOADS, QueueSize
from lab.queues import LIMIT_UNIT
from lab.values import Knob

KNOBS = list(PATH_KNOBS.values())
QUEUE = PATH_KNOBS["queue"]

NUMBERS = st.one_of(
    st.decimals(0, 5000, allow_nan=False, places=3),
    st.integers(0, 10**10),
    st.floats(1e-6, 1e9),
    st.sampled_from(
        ["0", "-0", "1", "999.9999999999999", "99.99999999999999", "0.0000000000001234567890123"]
    ),
)
TIMES = st.builds("{}{}".format, NUMBERS, st.sampled_from(["s", "ms", "us", " min", "ns"]))
RATES = st.builds(
    "{}{}".format, NUMBERS, st.sampled_from(["kbit", "mbit", "gbit", "MB/s", "MiB/s", " Mbit/s"])
)
SIZES = st.builds("{}{}".format, NUMBERS, st.sampled_from(["B", "KB", "MiB", "TB"]))
SHARES = NUMBERS.map(lambda number: f"{number}%")
NAMES = st.from_regex(r" ?[a-z0-9_]{1,15}", fullmatch=True)


def joined(texts: st.SearchStrategy[str], by: str = "+", least: int = 1) -> st.SearchStrategy[str]:
    return st.lists(texts, min_size=least, max_size=4).map(by.join)


def changing(texts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return changes in order, steps and ramps."""
    spans = st.lists(st.tuples(st.integers(1, 100), st.booleans(), texts), min_size=1, max_size=4)

    def written(given: list[tuple[int, bool, str]]) -> str:
        at, parts = 0, []
        for gap, ramp, text in given:
            parts.append(f"{at + gap}ms{f'~{at + 2 * gap}ms' if ramp else ''}:{text}")
            at += 3 * gap
        return "+".join(parts)

    return spans.map(written)


TEXTS = {  # by knob: texts that it mostly takes; the tests leave out what it refuses
    "rate": RATES,
    "queue": st.builds(
        "{}{}".format, NUMBERS, st.sampled_from(["B", "KB", "MiB", "p", "bdp", "ms", "us", " s"])
    ),
    "mtu": st.integers(576, 65535).map(str),
    "flows": st.integers(1, 1000).map(lambda count: f" {count:05}"),
    "leaf_limit": st.integers(1, 2**31 - 1).map(str),
    "adv_win_scale": st.integers(-31, 31).map("{:+}".format) | st.just("default"),
    "app_win": st.integers(0, 31).map(str) | st.just("default"),
    **dict.fromkeys(("offloads", "moderate_rcvbuf"), st.sampled_from(["on", "OFF", " On "])),
    "recipe": st.sampled_from(["leaf", "Separate "]),
    "workload": st.sampled_from(["HTTP", *WORKLOADS]),
    "cc": joined(NAMES | st.builds("{}*{}".format, NAMES, st.integers(1, 9))),
    "kernel": st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,47} ?", fullmatch=True),
    **dict.fromkeys(
        ("rcvbuf", "sndbuf", "rmem_max", "wmem_max", "notsent_lowat", "tcp_mem"),
        SIZES | st.sampled_from(["none", "default", "ample"]),
    ),
    "bytes": joined(SIZES) | st.just("none"),
    **dict.fromkeys(
        ("rmem", "wmem"),
        st.builds(
            "{}{}{}".format,
            st.sampled_from(["", "max="]),
            st.integers(3, 2000),
            st.sampled_from(["KiB", "MB"]),
        ),
    ),
    **dict.fromkeys(("jitter", "duration", "interval"), TIMES),
    **dict.fromkeys(("duplicate", "reorder"), SHARES),
    "rtt": joined(TIMES),
    "loss": SHARES
    | joined(SHARES, ":").map("ge:{}".format)
    | joined(SHARES, ":").map("state:{}".format)
    | joined(st.integers(0, 10**9).map(str)).map("list:{}".format),
    "topology": st.sampled_from(TOPOLOGIES),
    "pairs": st.integers(1, 500).map(str) | st.just("auto"),
    "bottlenecks": st.integers(1, 20).map(str),
    "access": joined(RATES) | st.just("auto"),
    "rate_back": RATES | st.just("same"),
    "route": st.from_regex(r"[a-z0-9-]{1,40}", fullmatch=True),
    "qdisc": st.sampled_from(["fifo", *LIMIT_UNIT]),
    **dict.fromkeys(("target", "ce_threshold", "probe"), TIMES | st.sampled_from(["default", "none"])),
    "ecn": st.sampled_from(["on", "OFF"]),
    "jitter_dist": st.sampled_from(["uniform", "Normal", "pareto", "paretonormal"]),
    "rate_change": changing(RATES) | st.just("none"),
    "rtt_change": changing(TIMES) | st.just("none"),
    "loss_change": changing(SHARES) | st.just("none"),
    "trace": st.sampled_from(["none", "traces/a file.csv", "traces/cell.up", "a@12ab34cd"]),
    **dict.fromkeys(("trace_step", "spread", "think"), TIMES),
    "place": joined(st.integers(0, 500).map(str)) | st.just("turn"),
    "start": joined(TIMES),
    "stop": joined(TIMES | st.just("end")),
    "arrivals": SHARES.map("poisson:{}".format) | TIMES.map("every:{}".format) | st.just("none"),
    "sizes": joined(SIZES)
    | SIZES.map("exp:{}".format)
    | st.builds("pareto:{}:{}".format, st.floats(1.01, 10), SIZES),
    "on_off": st.builds("{}{}:{}".format, st.sampled_from(["", "exp:"]), TIMES, TIMES) | st.just("none"),
    "reverse": st.integers(0, 1000).map(str),
    "udp": RATES | st.just("none"),
    **dict.fromkeys(("request", "response"), SIZES),
}

NAMES_OF_FILES = {"☃", "-nan ", "+inf", "1+e400", "٣", "'"}
NO_NONSENSE = {*(("trace", text) for text in NAMES_OF_FILES), ("cc", "1+e400")}
"""What is nonsense for most knobs, and not for these."""


@st.composite
def accepted(draw: st.DrawFn) -> tuple[Knob, str]:
    """Draw a knob and a text that it takes."""
    knob = draw(st.sampled_from(KNOBS))
    text = draw(TEXTS[knob.name])
    try:
        knob.value(text)
    except UnitError:
        text = knob.default
    return knob, text


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: knob.name)
class TestEveryKnob:
    def test_default_is_canonical(self, knob: Knob) -> None:
        assert knob.canonical(knob.default) == knob.default

    def test_says_what_it_is(self, knob: Knob) -> None:
        assert knob.meaning
        assert knob.meaning == knob.meaning.strip()

    @pytest.mark.parametrize(
        "text", ["", " ", "☃", "1 furlong", "-nan ", "+inf", "1+e400", "1\0", "٣", "'", "1,5"]
    )
    def test_refuses_nonsense_and_names_itself(self, knob: Knob, text: str) -> None:
        if (knob.name, text) in NO_NONSENSE:
            knob.canonical(text)
            return
        with pytest.raises(UnitError) as refused:
            knob.canonical(text)
        assert str(refused.value).startswith(f"{knob.name}: ")
        named = {text, *text.split("+")} - {""} if text else {""}
        assert any(
            repr(part.strip()) in str(refused.value) or repr(part) in str(refused.value) for part in named
        )


def same(one: object, other: object) -> bool:
    """Return whether two values are equal to eleven digits; a list of equal values is one of them."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        if len(other) == 1 < len(one):
            return all(same(part, other[0]) for part in one)
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, int | float):
        return bool(other == pytest.approx(one, rel=1e-11))
    return one == other


class TestCanonical:
    @given(accepted())
    @example((PATH_KNOBS["rate"], "999.9999999999999mbit"))
    @example((PATH_KNOBS["jitter"], "0"))
    @example((PATH_KNOBS["loss"], "-0%"))
    @example((PATH_KNOBS["loss"], "99.99999999999999%"))
    @example((PATH_KNOBS["duration"], "999.9999999999999ms"))
    def test_is_idempotent(self, knob_and_text: tuple[Knob, str]) -> None:
        knob, text = knob_and_text
        canonical = knob.canonical(text)
        assert knob.canonical(canonical) == canonical

    @given(accepted())
    def test_means_what_was_written(self, knob_and_text: tuple[Knob, str]) -> None:
        knob, text = knob_and_text
        value, again = knob.value(text), knob.value(knob.canonical(text))
        if isinstance(value, QueueSize):
            assert again.unit == value.unit
            value, again = value.amount, again.amount
        assert same(value, again)

    @pytest.mark.parametrize(
        ("name", "spellings", "canonical"),
        [
            ("rate", ["1gbit", "1000mbit", "1e9bit", "125MB/s", "1 Gbit/s", "0.001tbit"], "1gbit"),
            ("rtt", ["200ms", "0.2s", "200000us"], "200ms"),
            ("rtt", ["0", "0ms", "0s", "-0"], "0s"),
            ("jitter", ["0", "0us"], "0s"),
            ("loss", ["0", "0%", "0.0%", "-0%"], "0%"),
            ("loss", ["0.1%", "1e-1%", "0.100%"], "0.1%"),
            ("offloads", ["on", "ON", " On "], "on"),
            ("mtu", ["1500", " 1500", "+1500", "01500"], "1500"),
            ("rmem", ["max=6MiB", "default"], "default"),
            ("adv_win_scale", ["-2", " -2"], "-2"),
            ("bytes", ["1GiB", "1024MiB", "1073741824B"], "1GiB"),
            ("interval", ["auto", " auto "], "auto"),
            ("interval", ["50ms", "0.05s"], "50ms"),
            ("rtt", ["10ms+100ms", "0.01s + 100ms"], "10ms+100ms"),
            ("rtt", ["10ms+10ms", "10ms+0.01s+10ms", "10ms"], "10ms"),
            ("cc", ["bbr*2+cubic", "bbr+bbr+cubic", "bbr*1 + bbr+cubic*1"], "bbr*2+cubic"),
            ("cc", ["bbr*7", "bbr+bbr", "bbr"], "bbr"),
            ("bytes", ["10MB+1GB", "10000KB+1000MB"], "10MB+1GB"),
            ("stop", ["10s+end", "10000ms+ end"], "10s+end"),
            ("loss", ["ge:1%:10%", "ge:1%:10%:100%", "ge:1.0%:10%:100%:0%"], "ge:1%:10%:100%:0%"),
            ("loss", ["list:17+5+5", "list:5+17"], "list:5+17"),
            ("rate_change", ["5s:50mbit+10s~11s:0.1gbit"], "5s:50mbit+10s~11s:100mbit"),
            ("access", ["auto", " auto"], "auto"),
        ],
    )
    def test_of_equal_spellings(self, name: str, spellings: list[str], canonical: str) -> None:
        assert {PATH_KNOBS[name].canonical(text) for text in spellings} == {canonical}

    def test_integer_knobs_have_integers(self) -> None:
        for name in INTEGER_KNOBS:
            value = PATH_KNOBS[name].value("1500" if name == "mtu" else "2")
            assert type(value) is int


class TestRanges:
    @pytest.mark.parametrize(
        ("name", "text", "message"),
        [
            ("rate", "999bit", "rate: '999bit' is out of range; a rate lies between 1kbit and 400gbit"),
            ("rate", "401gbit", "rate: '401gbit' is out of range; a rate lies between 1kbit and 400gbit"),
            ("rate", "-1gbit", "rate: '-1gbit' is out of range; a rate lies between 1kbit and 400gbit"),
            ("rtt", "20.001s", "rtt: '20.001s' is out of range; an RTT lies between 0s and 20s"),
            ("rtt", "-1ms", "rtt: '-1ms' is out of range; an RTT lies between 0s and 20s"),
            ("jitter", "11s", "jitter: '11s' is out of range; a jitter lies between 0s and 10s"),
            ("mtu", "575", "mtu: '575' is out of range; an MTU lies between 576 and 65535"),
            ("mtu", "65536", "mtu: '65536' is out of range; an MTU lies between 576 and 65535"),
            ("mtu", "1500.0", "mtu: '1500.0' is not a whole number; write it such as 4"),
            ("flows", "1001", "flows: '1001' is out of range; the number of flows lies between 0 and 1000"),
            ("flows", "-1", "flows: '-1' is out of range; the number of flows lies between 0 and 1000"),
            ("pairs", "0", "pairs: '0' is out of range; the number of pairs lies between 1 and 500"),
            ("bottlenecks", "21", "bottlenecks: '21' is out of range; it lies between 1 and 20"),
            ("rtt", "10ms+21s", "rtt: '21s' is out of range; an RTT lies between 0s and 20s"),
            ("rtt", "10ms++1s", "rtt: '10ms++1s' has an empty place; join RTTs by +, such as A+B"),
            ("cc", "bbr*0", "cc: '0' is out of range; how often lies between 1 and 1000"),
            ("cc", "bbr+", "cc: 'bbr+' has an empty place; join congestion controls by +, such as A+B"),
            (
                "cc",
                "bbr*600+cubic*600",
                "cc: 'bbr*600+cubic*600'... names 1200 flows; at most 1000 can run",
            ),
            ("qdisc", "htb", f"qdisc: 'htb' is not one of fifo, {', '.join(LIMIT_UNIT)}"),
            ("trace", "a\0b", "trace: 'a\\x00b' is not a file's name (without blanks and commas)"),
            ("leaf_limit", "0", "leaf_limit: '0' is out of range; a limit lies between 1 and 2147483647"),
            (
                "adv_win_scale",
                "32",
                "adv_win_scale: '32' is out of range; tcp_adv_win_scale lies between -31 and 31",
            ),
            ("duration", "0", "duration: '0' is out of range; a duration lies between 10ms and 3600s"),
            ("duration", "2h", "duration: '2h' is out of range; a duration lies between 10ms and 3600s"),
            (
                "interval",
                "99us",
                "interval: '99us' is out of range; an interval lies between 100us and 3600s",
            ),
            ("loss", "101%", "loss: '101%' is out of range; a probability lies between 0% and 100%"),
            ("offloads", "yes", "offloads: 'yes' is not one of on, off"),
            ("workload", "ftp", "workload: 'ftp' is not one of bulk, iperf3, http, request"),
            ("recipe", "", "recipe: '' is not one of separate, leaf"),
            ("cc", "cubic; reboot", "cc: 'cubic; reboot' is not a congestion control"),
            ("cc", "a" * 16, f"cc: {'a' * 16!r} is not a congestion control"),
            ("kernel", "../6.12", "kernel: '../6.12' is not the name of a kernel"),
            ("bytes", "0", "bytes: '0' is out of range; a size lies between 1KB and 1048576GiB"),
            ("bytes", "-1MB", "bytes: '-1MB' is out of range; a size lies between 1KB and 1048576GiB"),
        ],
    )
    def test_refusal_names_knob_value_and_rule(self, name: str, text: str, message: str) -> None:
        with pytest.raises(UnitError) as refused:
            PATH_KNOBS[name].value(text)
        assert str(refused.value) == message

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            *(("rate", "1kbit"), ("rate", "400gbit"), ("rtt", "0"), ("rtt", "20s"), ("mtu", "576")),
            *(
                ("mtu", "65535"),
                ("flows", "1000"),
                ("flows", "0"),
                ("adv_win_scale", "-31"),
                ("adv_win_scale", "31"),
            ),
            *(
                ("duration", "10ms"),
                ("duration", "1h"),
                ("interval", "100us"),
                ("loss", "100%"),
                ("bytes", "1KB"),
            ),
        ],
    )
    def test_bounds_are_inclusive(self, name: str, text: str) -> None:
        PATH_KNOBS[name].value(text)


class TestQueue:
    def test_largest_is_what_32_bits_hold(self) -> None:
        assert LARGEST_QUEUE_BYTES == 4_294_967_295

    @pytest.mark.parametrize(
        ("text", "queue", "canonical"),
        [
            ("256KiB", (262144, "bytes"), "256KiB"),
            ("262144B", (262144, "bytes"), "256KiB"),
            ("1MB", (10**6, "bytes"), "1MB"),
            ("1000p", (1000, "packets"), "1000p"),
            ("1e3 p", (1000, "packets"), "1000p"),
            ("4294967295p", (2**32 - 1, "packets"), "4294967295p"),
            ("50ms", (0.05, "s"), "50ms"),
            ("0.05s", (0.05, "s"), "50ms"),
            ("1bdp", (1, "bdp"), "1bdp"),
            (".5bdp", (0.5, "bdp"), "0.5bdp"),
            (" auto ", (1, "auto"), "auto"),
        ],
    )
    def test_grammar(self, text: str, queue: tuple[float, str], canonical: str) -> None:
        assert QUEUE.value(text) == queue
        assert QUEUE.canonical(text) == canonical

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("1.5p", "queue: '1.5p' is not a whole number of packets; write it such as 1000p"),
            ("0p", "queue: '0p' is out of range; a queue holds at least one packet and under 4 GiB"),
            ("-1bdp", "queue: '-1bdp' is out of range; a queue holds at least one packet and under 4 GiB"),
            ("0", "queue: '0' is out of range; a queue holds at least one packet and under 4 GiB"),
            ("4GiB", "queue: '4GiB' is out of range; a queue holds at least one packet and under 4 GiB"),
            ("4294967296p", "queue: '4294967296p' is out of range; a queue holds at least one packet"),
            (
                "1000",
                "queue: '1000' is not a queue; write bytes (256KiB), packets (1000p), a time at line rate",
            ),
            ("1mb", "queue: '1mb' is not a queue; write bytes"),
            ("1BDP", "queue: '1BDP' is not a queue; write bytes"),
            ("infp", "queue: 'infp' is not a queue"),
            ("nanp", "queue: 'nanp' is not a queue"),
            ("1e400p", "queue: '1e400p' is out of range"),
            ("1_0p", "queue: '1_0p' is not a queue"),
            ("bdp", "queue: 'bdp' is not a queue"),
        ],
    )
    def test_refusals(self, text: str, message: str) -> None:
        with pytest.raises(UnitError) as refused:
            QUEUE.canonical(text)
        assert str(refused.value).startswith(message)

    @pytest.mark.parametrize(
        ("text", "limit_bytes"),
        [
            ("256KiB", 262144),
            ("50ms", 6_250_000),
            ("1bdp", 25_000_000),
            ("2bdp", 50_000_000),
            ("auto", 25_000_000),
        ],
    )
    def test_bytes_on_a_long_path(self, text: str, limit_bytes: int) -> None:
        assert QUEUE.value(text).bfifo_bytes(1e9, 0.2) == limit_bytes
