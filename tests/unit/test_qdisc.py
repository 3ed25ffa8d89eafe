"""Egress descriptions: the words that build them, and every setting that reads back otherwise.

The expected words are in tests/golden/NAME.txt; the kernel's answers are made here, byte by byte.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lab import qdisc

GOLDEN = Path(__file__).resolve().parents[1] / "golden"

GBIT = {"rate_bps": 1e9, "burst_bytes": 3028, "mtu_bytes": 1500}
WAN = {"delay_s": 0.1, "jitter_s": 0.0, "loss": 0.0, "duplicate": 0.0, "reorder": 0.0}
EGRESS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "rate_alone": GBIT,
    "rate_and_bytes": {**GBIT, "queue": {"kind": "bfifo", "limit": 25_000_000}},
    "rate_and_packets": {**GBIT, "queue": {"kind": "pfifo", "limit": 1000}},
    "fast_with_jumbo_frames": {
        "rate_bps": 400e9,
        "burst_bytes": qdisc.burst_bytes(400e9, 9000, offloads=True),
        "mtu_bytes": 9000,
        "queue": {"kind": "bfifo", "limit": 2**32 - 1},
    },
    "slow_with_small_frames": {"rate_bps": 1e3, "burst_bytes": 1180, "mtu_bytes": 576},
    "queue_alone": {"queue": {"kind": "pfifo", "limit": 50}},
    "delay_alone": WAN,
    "delay_of_one_microsecond": {"delay_s": 1e-6},
    "longest_delay": {"delay_s": 10.0, "jitter_s": 10.0},
    "chance_without_delay": {"delay_s": 0.0, "loss": 0.0005, "duplicate": 1e-9},
    "everything_that_a_path_can_do": {
        **{"delay_s": 0.1, "jitter_s": 0.005, "loss": 0.001, "duplicate": 0.0001, "reorder": 0.02},
    },
    "leaf_recipe": {**GBIT, **WAN, "delay_s": 0.2, "limit_packets": 1000},
}


class TestCommands:
    @pytest.mark.parametrize("name", EGRESS)
    def test_are_the_golden_ones(self, name: str) -> None:
        commands = qdisc.egress_commands("r1-eth1", EGRESS[name])
        assert "".join(f"{command}\n" for command in commands) == (GOLDEN / f"{name}.txt").read_text()

    def test_golden_ones_are_all_looked_at(self) -> None:
        assert {file.stem for file in GOLDEN.glob("*.txt")} == set(EGRESS)

    @given(st.sampled_from(sorted(EGRESS)), st.floats(1e3, 400e9))
    def test_say_bit_and_never_bps(self, name: str, rate_bps: float) -> None:
        """`tc` reads bps as bytes per second."""
        egress = EGRESS[name]
        if "rate_bps" in egress:
            egress = {**egress, "rate_bps": rate_bps}
        text = " ".join(qdisc.egress_commands("eth0", egress))
        assert "bps" not in text
        if "rate_bps" in egress:
            assert f" rate {int(rate_bps)}bit ceil {int(rate_bps)}bit " in text

    def test_delay_line_can_never_drop_unless_told(self) -> None:
        assert qdisc.netem_words({"delay_s": 0.1}) == "limit 2147483647 delay 100000us"
        assert qdisc.netem_words({"delay_s": 0.1, "limit_packets": None}).startswith("limit 2147483647 ")
        assert qdisc.netem_words({"delay_s": 0.1, "limit_packets": 1000}).startswith("limit 1000 ")

    @pytest.mark.parametrize("egress", [{}, WAN | {"delay_s": 0.0}, {"limit_packets": 1000}, GBIT])
    def test_no_netem_where_nothing_needs_it(self, egress: dict[str, Any]) -> None:
        assert qdisc.netem_words(egress) == ""


class TestLoss:
    @pytest.mark.parametrize(
        ("loss", "words"),
        [
            (None, ""),
            (0.0, ""),
            (0.001, "loss random 0.100000000%"),
            (
                {"kind": "ge", "numbers": [0.01, 0.1, 1.0, 0.0]},
                "loss gemodel 1.000000000% 10.000000000% 100.000000000% 0.000000000%",
            ),
            (
                {"kind": "state", "numbers": [0.01, 0.1, 0.2, 0.5, 0.001]},
                "loss state 1.000000000% 10.000000000% 20.000000000% 50.000000000% 0.100000000%",
            ),
            ({"kind": "list", "numbers": [5, 17]}, ""),
        ],
    )
    def test_is_written_as_netem_has_it(self, loss: Any, words: str) -> None:
        assert qdisc.loss_words(loss) == words

    @pytest.mark.parametrize("distribution", ["uniform", "normal", "pareto", "paretonormal"])
    def test_jitter_has_its_distribution_unless_it_is_uniform(self, distribution: str) -> None:
        words = qdisc.netem_words(
            {"delay_s": 0.1, "jitter_s": 0.005, "jitter_distribution": distribution, "loss": 0.01}
        )
        named = "" if distribution == "uniform" else f" distribution {distribution}"
        assert words == f"limit 2147483647 delay 100000us 5000us{named} loss random 1.000000000%"


class TestPolicer:
    POLICER: ClassVar[dict[str, Any]] = {**GBIT, "queue": {"kind": "policer", "limit": 500_000}}

    def test_has_a_bucket_of_the_queue_s_size_and_room_for_one_packet(self) -> None:
        assert qdisc.egress_commands("eth0", self.POLICER) == [
            "qdisc add dev eth0 root handle 10: tbf rate 1000000000bit burst 500000b limit 1514b"
        ]

    @pytest.mark.parametrize("mtu_bytes", [576, 1500, 9000])
    def test_has_room_for_a_packet_that_stands_for_many_with_all_their_headers(self, mtu_bytes: int) -> None:
        words = qdisc.policer_words({**self.POLICER, "mtu_bytes": mtu_bytes, "offloads": True})
        room = int(words.rpartition(" ")[2].removesuffix("b"))
        payload = mtu_bytes - 52
        segments = 65536 // payload
        assert segments * (mtu_bytes + 14) <= room < 1.4 * 65536

    @staticmethod
    def tbf(rate_bps: float, limit: int = 1514) -> bytes:
        """Return what tbf answers: struct tc_tbf_qopt, and the rate that 32 bits cannot hold."""
        rate = int(rate_bps) // 8
        spec = struct.pack("=BBHhHI", 0, 1, 0, 0, 0, min(rate, 2**32 - 1))
        options = attribute(1, spec + bytes(12) + struct.pack("=III", limit, 0, 0))
        return options + (attribute(4, struct.pack("=Q", rate)) if rate >= 2**32 else b"")

    @pytest.mark.parametrize("rate_bps", [1e6, 1e9, 400e9])
    def test_reads_back(self, rate_bps: float) -> None:
        told = {**self.POLICER, "rate_bps": rate_bps}
        there = qdisc.parse_dump(message("tbf", qdisc.QUEUE_HANDLE, self.tbf(rate_bps)))
        assert qdisc.differences(told, there, []) == []
        assert qdisc.tbf_settings(there[0]["options"]) == {"rate": int(rate_bps) // 8, "limit": 1514}

    def test_of_another_rate_is_told(self) -> None:
        there = qdisc.parse_dump(message("tbf", qdisc.QUEUE_HANDLE, self.tbf(5e8)))
        assert qdisc.differences(self.POLICER, there, []) == [
            "tbf rate (bytes/s): wanted 125000000, the kernel has 62500000"
        ]
        assert qdisc.differences(self.POLICER, [], []) == ["tbf: not there"]


class TestHandles:
    def test_are_those_of_the_commands(self) -> None:
        """A handle is major:minor, both hexadecimal, 16 bits each."""
        assert (qdisc.HTB_HANDLE, qdisc.HTB_CLASS) == (0x1_0000, 0x1_0001)
        assert (qdisc.QUEUE_HANDLE, qdisc.NETEM_HANDLE) == (0x10_0000, 0x20_0000)
        words = " ".join(qdisc.egress_commands("eth0", EGRESS["rate_and_bytes"])).split()
        assert {"1:", "1:1", "10:"} <= set(words)
        assert "20:" in qdisc.egress_commands("eth0", EGRESS["delay_alone"])[0].split()


class TestBurst:
    @pytest.mark.parametrize(
        ("rate_bps", "mtu_bytes", "offloads", "burst"),
        [
            (1e3, 1500, False, 2 * 1514),
            (1e9, 1500, False, 2 * 1514),  # 20 us of it are 2500 bytes
            (10e9, 1500, False, 25_000),
            (100e9, 1500, False, 250_000),
            (1e9, 9000, False, 2 * 9014),
            (1e9, 1500, True, 2 * 65550),
            (100e9, 1500, True, 250_000),
        ],
    )
    def test_is_twenty_microseconds_or_two_packets(
        self, rate_bps: float, mtu_bytes: int, offloads: bool, burst: int
    ) -> None:
        assert qdisc.burst_bytes(rate_bps, mtu_bytes, offloads) == burst

    @given(st.floats(1e3, 400e9), st.floats(1e3, 400e9), st.integers(576, 65535), st.booleans())
    def test_holds_two_packets_and_grows_with_the_rate(
        self, one_bps: float, other_bps: float, mtu_bytes: int, offloads: bool
    ) -> None:
        slow, fast = sorted((one_bps, other_bps))
        burst = qdisc.burst_bytes(slow, mtu_bytes, offloads)
        assert burst >= 2 * (mtu_bytes + 14)
        assert burst >= 2 * (65536 + 14) or not offloads
        assert qdisc.burst_bytes(fast, mtu_bytes, offloads) >= burst
        assert qdisc.burst_bytes(400e9, mtu_bytes, offloads) == 1_000_000


# --- the kernel's answers -----------------------------------------------------------------------------

TCA_KIND, TCA_OPTIONS, TCA_STATS2 = 1, 2, 7
STATS_BASIC, STATS_QUEUE, STATS_PKT64 = 1, 3, 8
ROOT = 0xFFFFFFFF


def attribute(kind: int, payload: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(payload), kind) + payload + b"\0" * (-len(payload) % 4)


def message(  # one RTM_NEWQDISC or RTM_NEWTCLASS
    name: str, handle: int, options: bytes, parent: int = ROOT, ifindex: int = 3, stats: bytes = b""
) -> bytes:
    body = struct.pack("=BxxxiIII", 0, ifindex, handle, parent, 2)
    body += attribute(TCA_KIND, name.encode() + b"\0") + attribute(TCA_OPTIONS, options)
    if stats:
        body += attribute(TCA_STATS2, stats)
    return struct.pack("=IHHII", 16 + len(body), 36, 2, 1, 4711) + body


def counters(
    sent: int = 0,
    packets: int = 0,
    queue: tuple[int, int, int, int, int] = (0,) * 5,
    packets64: int | None = None,
) -> bytes:
    data = attribute(STATS_BASIC, struct.pack("=QIxxxx", sent, packets))
    data += attribute(STATS_QUEUE, struct.pack("=IIIII", *queue))
    return data if packets64 is None else data + attribute(STATS_PKT64, struct.pack("=Q", packets64))


def htb_class(rate_bps: float, burst_bytes: int, *, ceil_bps: float | None = None) -> bytes:
    """Return what htb answers: struct tc_htb_opt and, for what 32 bits cannot hold, the 64-bit rates."""
    rate, ceil = int(rate_bps) // 8, int(ceil_bps or rate_bps) // 8
    microseconds = int(1e6 * (burst_bytes / rate))  # tc cuts it to whole ones, and these to whole ticks
    ticks = int(microseconds * 15.625)
    spec = [struct.pack("=BBHhHI", 0, 1, 0, 0, 0, min(speed, 2**32 - 1)) for speed in (rate, ceil)]
    options = attribute(1, b"".join(spec) + struct.pack("=5I", ticks, ticks, 1514, 0, 0))
    for kind, speed in ((6, rate), (7, ceil)):
        if speed >= 2**32:
            options += attribute(kind, struct.pack("=Q", speed))
    return options


def netem(egress: dict[str, Any], **changes: Any) -> bytes:
    """Return what netem answers: struct tc_netem_qopt, correlation, reorder, and the 64-bit times."""
    now = {"limit_packets": qdisc.UNLIMITED_PACKETS, **egress, **changes}
    delay_ns, jitter_ns = (round((now.get(key) or 0) * 1e9) for key in ("delay_s", "jitter_s"))
    loss, duplicate, reorder = (
        round((now.get(key) or 0) * 0xFFFFFFFF) for key in ("loss", "duplicate", "reorder")
    )
    head = struct.pack("=6I", delay_ns // 64, now["limit_packets"], loss, 0, duplicate, jitter_ns // 64)
    return (
        head
        + attribute(1, bytes(12))
        + attribute(3, struct.pack("=II", reorder, 0))
        + attribute(10, struct.pack("=q", delay_ns))
        + attribute(11, struct.pack("=q", jitter_ns))
    )


def answers(egress: dict[str, Any], **changes: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the qdiscs and classes of a kernel that was told `egress`, but for `changes`."""
    told = {**egress, **changes}
    parent, qdiscs, classes = ROOT, b"", b""
    if "rate_bps" in egress:
        qdiscs += message("htb", qdisc.HTB_HANDLE, attribute(2, bytes(20)))
        shaper = htb_class(told["rate_bps"], told["burst_bytes"], ceil_bps=told.get("ceil_bps"))
        classes += message("htb", qdisc.HTB_CLASS, shaper)
        parent = qdisc.HTB_CLASS
    if qdisc.netem_words(egress):
        qdiscs += message("netem", qdisc.NETEM_HANDLE, netem(told), parent)
    elif "queue" in egress:
        queue = told["queue"]
        qdiscs += message(queue["kind"], qdisc.QUEUE_HANDLE, struct.pack("=I", queue["limit"]), parent)
    return qdisc.parse_dump(qdiscs), qdisc.parse_dump(classes)


class TestParseDump:
    def test_reads_names_and_numbers(self) -> None:
        stats = counters(123_456_789_012, 81_000_000, (3, 4542, 7, 1, 900))
        data = message(
            "bfifo", 0x100000, struct.pack("=I", 25_000_000), parent=0x10001, ifindex=42, stats=stats
        )
        assert qdisc.parse_dump(data) == [
            {
                **{"ifindex": 42, "handle": 0x100000, "parent": 0x10001, "kind": "bfifo"},
                "options": struct.pack("=I", 25_000_000),
                **{"bytes": 123_456_789_012, "packets": 81_000_000, "qlen_packets": 3, "backlog_bytes": 4542},
                **{"drops": 7, "requeues": 1, "overlimits": 900},
            }
        ]

    def test_prefers_the_packet_counter_that_does_not_wrap(self) -> None:
        (entry,) = qdisc.parse_dump(message("htb", 1, b"", stats=counters(0, 5, packets64=2**32 + 5)))
        assert entry["packets"] == 2**32 + 5

    def test_has_no_counters_where_the_kernel_gave_none(self) -> None:
        (entry,) = qdisc.parse_dump(message("noqueue", 0, b""))
        assert entry.keys() == {"ifindex", "handle", "parent", "kind", "options"}

    def test_leaves_out_the_end_of_the_dump(self) -> None:
        done = struct.pack("=IHHIIi", 20, 3, 2, 1, 0, 0)
        assert len(qdisc.parse_dump(message("htb", 1, b"") + message("bfifo", 2, b"") + done)) == 2

    WHOLE = b"".join(message("netem", handle, netem({}), stats=counters(1, 2)) for handle in (1, 2))

    @given(st.integers(0, len(WHOLE)))
    def test_cut_dump_is_refused_or_ends_with_a_whole_one(self, cut: int) -> None:
        each = len(self.WHOLE) // 2
        try:
            handles = [entry["handle"] for entry in qdisc.parse_dump(self.WHOLE[:cut])]
        except ValueError:
            assert cut % each
        else:
            assert handles == [1, 2][: cut // each]
            assert cut % each == 0

    @given(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=8))
    def test_damaged_dump_breaks_in_no_other_way(self, at: int, noise: bytes) -> None:
        try:
            qdisc.parse_dump(self.WHOLE[:at] + noise + self.WHOLE[at + len(noise) :])
        except ValueError:
            return

    @pytest.mark.parametrize("size", [0, 4, 19])
    def test_body_that_is_too_short(self, size: int) -> None:
        with pytest.raises(ValueError, match=f"a qdisc or class of {size} bytes is torn"):
            qdisc.parse_dump(struct.pack("=IHHII", 16 + size, 36, 2, 1, 0) + bytes(size))

    def test_counters_that_are_too_short(self) -> None:
        with pytest.raises(ValueError, match="is torn"):
            qdisc.parse_dump(message("bfifo", 1, b"", stats=attribute(STATS_QUEUE, bytes(8))))


class TestDifferences:
    @pytest.mark.parametrize("name", EGRESS)
    def test_none_where_the_kernel_did_as_told(self, name: str) -> None:
        assert qdisc.differences(EGRESS[name], *answers(EGRESS[name])) == []

    @given(st.floats(1e5, 400e9), st.integers(576, 9000), st.booleans())
    @example(18_568_142_557.0, 576, False)  # tc cuts nearly a whole microsecond off
    @example(1_441_271.0, 1500, True)  # and a part of a byte a second
    def test_none_at_any_rate(self, rate_bps: float, mtu_bytes: int, offloads: bool) -> None:
        burst = qdisc.burst_bytes(rate_bps, mtu_bytes, offloads)
        egress = {"rate_bps": int(rate_bps), "burst_bytes": burst, "mtu_bytes": mtu_bytes}
        assert qdisc.differences(egress, *answers(egress)) == []

    FULL = EGRESS["everything_that_a_path_can_do"]
    QUEUED = EGRESS["rate_and_bytes"]

    @pytest.mark.parametrize(
        ("egress", "changes", "sentences"),
        [
            (
                QUEUED,
                {"rate_bps": 125e6, "burst_bytes": 379},  # what `rate 1gbps` would not do, and 1/8 would
                [
                    "htb rate (bytes/s): wanted 125000000, the kernel has 15625000",
                    "htb ceil (bytes/s): wanted 125000000, the kernel has 15625000",
                ],
            ),
            (
                QUEUED,
                {"ceil_bps": 2e9},
                ["htb ceil (bytes/s): wanted 125000000, the kernel has 250000000"],
            ),
            (
                QUEUED,
                {"burst_bytes": 15_000},
                [
                    "htb burst (ticks of 64 ns): wanted 378, the kernel has 1875",
                    "htb cburst (ticks of 64 ns): wanted 378, the kernel has 1875",
                ],
            ),
            (
                QUEUED,
                {"queue": {"kind": "bfifo", "limit": 25_000_001}},
                ["bfifo limit: wanted 25000000, the kernel has 25000001"],
            ),
            (QUEUED, {"queue": {"kind": "pfifo", "limit": 25_000_000}}, ["bfifo: not there"]),
            (FULL, {"delay_s": 0.101}, ["netem delay (ns): wanted 100000000, the kernel has 101000000"]),
            (FULL, {"jitter_s": 0}, ["netem jitter (ns): wanted 5000000, the kernel has 0"]),
            (
                FULL,
                {"limit_packets": 1000},
                ["netem limit (packets): wanted 2147483647, the kernel has 1000"],
            ),
            (FULL, {"loss": 0.01}, ["netem loss (2^-32): wanted 4294967, the kernel has 42949673"]),
            (FULL, {"duplicate": 0}, ["netem duplicate (2^-32): wanted 429497, the kernel has 0"]),
            (FULL, {"reorder": 0}, ["netem reorder (2^-32): wanted 85899346, the kernel has 0"]),
            (
                EGRESS["leaf_recipe"],
                {"limit_packets": 100, "delay_s": 0.1},
                [
                    "netem delay (ns): wanted 200000000, the kernel has 100000000",
                    "netem limit (packets): wanted 1000, the kernel has 100",
                ],
            ),
        ],
    )
    def test_says_each_setting_that_is_otherwise(
        self, egress: dict[str, Any], changes: dict[str, Any], sentences: list[str]
    ) -> None:
        assert qdisc.differences(egress, *answers(egress, **changes)) == sentences

    @pytest.mark.parametrize(
        ("name", "sentences"),
        [
            ("rate_and_bytes", ["htb: not there", "bfifo: not there"]),
            ("leaf_recipe", ["htb: not there", "netem: not there"]),
            ("delay_alone", ["netem: not there"]),
            ("nothing", []),
        ],
    )
    def test_of_a_device_that_was_never_shaped(self, name: str, sentences: list[str]) -> None:
        (bare,) = qdisc.parse_dump(message("noqueue", 0, b""))
        assert qdisc.differences(EGRESS[name], [bare], []) == sentences

    def test_of_a_class_that_is_missing(self) -> None:
        qdiscs, _classes = answers(EGRESS["rate_alone"])
        assert qdisc.differences(EGRESS["rate_alone"], qdiscs, []) == ["htb: not there"]

    def test_reads_rates_that_32_bits_cannot_hold(self) -> None:
        options = htb_class(400e9, 10**6)
        assert qdisc.htb_rate_bytes_per_s(options) == (50_000_000_000, 50_000_000_000)

        options = htb_class(200e9, 10**6, ceil_bps=400e9)
        assert qdisc.htb_rate_bytes_per_s(options) == (25_000_000_000, 50_000_000_000)

    def test_reads_delays_to_the_nanosecond(self) -> None:
        """The older field counts in 64 ns, which a microsecond is no multiple of."""
        settings = qdisc.netem_settings(netem({"delay_s": 1e-6, "jitter_s": 3e-6}))
        assert (settings["delay_ns"], settings["jitter_ns"]) == (1000, 3000)

    def test_reads_delays_of_a_kernel_without_64_bit_times(self) -> None:
        settings = qdisc.netem_settings(netem({"delay_s": 0.1, "jitter_s": 0.001})[:24])
        assert (settings["delay_ns"], settings["jitter_ns"], settings["reorder"]) == (
            100_000_000,
            1_000_000,
            0,
        )


class TestAgainstTheKernelsHeaders:
    def test_layouts(self, assert_in_c: Callable[[list[str], dict[str, int]], None]) -> None:
        facts = {
            **{"offsetof(struct tc_htb_opt, rate.rate)": 8, "offsetof(struct tc_htb_opt, ceil.rate)": 20},
            **{"offsetof(struct tc_htb_opt, buffer)": 24, "offsetof(struct tc_htb_opt, cbuffer)": 28},
            **{"TCA_HTB_PARMS": 1, "TCA_HTB_RATE64": 6, "TCA_HTB_CEIL64": 7},
            **{"sizeof(struct tc_netem_qopt)": 24, "offsetof(struct tc_netem_qopt, limit)": 4},
            **{"offsetof(struct tc_netem_qopt, loss)": 8, "offsetof(struct tc_netem_qopt, duplicate)": 16},
            **{"offsetof(struct tc_netem_qopt, jitter)": 20, "TCA_NETEM_REORDER": 3},
            **{"TCA_NETEM_LATENCY64": 10, "TCA_NETEM_JITTER64": 11, "sizeof(struct tc_fifo_qopt)": 4},
        }
        assert_in_c(["linux/pkt_sched.h"], facts)
        facts = {
            **{
                "TCA_STATS_BASIC": STATS_BASIC,
                "TCA_STATS_QUEUE": STATS_QUEUE,
                "TCA_STATS_PKT64": STATS_PKT64,
            },
            **{
                "offsetof(struct gnet_stats_basic, packets)": 8,
                "offsetof(struct gnet_stats_queue, drops)": 8,
            },
            **{"offsetof(struct gnet_stats_queue, overlimits)": 16},
        }
        assert_in_c(["linux/gen_stats.h"], facts)
        facts = {"TCA_KIND": TCA_KIND, "TCA_OPTIONS": TCA_OPTIONS, "TCA_STATS2": TCA_STATS2}
        assert_in_c(["linux/rtnetlink.h"], {**facts, "offsetof(struct tcmsg, tcm_handle)": 8})
