"""Queueing disciplines: the words for `tc`, RED within what the kernel takes, limits as they read back."""

from __future__ import annotations

import math
import re
import struct
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lab import queues

PACKET = 1514
LIMITS = st.integers(1, 2**32 - 1)


def queue(kind: str, limit: int, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "limit": limit, "packet_bytes": PACKET, **more}


class TestWords:
    @pytest.mark.parametrize(
        ("one", "words"),
        [
            (queue("bfifo", 250_000), "bfifo limit 250000b"),
            (queue("pfifo", 1000), "pfifo limit 1000"),
            (queue("sfq", 1000), "sfq limit 1000"),
            (queue("codel", 1000), "codel limit 1000 noecn"),
            (
                queue("codel", 1000, target_s=0.02, ecn=True, ce_threshold_s=0.001),
                "codel limit 1000 target 20000us ecn ce_threshold 1000us",
            ),
            (queue("fq_codel", 1000), "fq_codel limit 1000 memory_limit 33554432b noecn"),
            (
                queue("fq_codel", 10_000, target_s=0.005, ecn=True),
                "fq_codel limit 10000 memory_limit 60560000b target 5000us ecn",
            ),
            (queue("pie", 1000, target_s=0.015, ecn=True), "pie limit 1000 target 15000us ecn"),
            (queue("cake", 10**6), "cake unlimited besteffort memlimit 1000000b"),
            (
                queue("cake", 10**6, target_s=0.005),
                "cake unlimited besteffort rtt 100000us memlimit 1000000b",
            ),
            (queue("fq", 1000), "fq limit 1000 flow_limit 1000"),
            (queue("fq", 1000, ce_threshold_s=0.001), "fq limit 1000 flow_limit 1000 ce_threshold 1000us"),
            (
                queue("red", 300 * PACKET, rate_bps=10**8, ecn=True),
                "red limit 454200b min 75700b max 227100b avpkt 1514 burst 84 probability 0.1"
                " bandwidth 100000000bit adaptive ecn",
            ),
        ],
        ids=lambda value: value if isinstance(value, str) else value["kind"],
    )
    def test_are_what_tc_is_told(self, one: dict[str, Any], words: str) -> None:
        assert queues.words(one) == words

    @pytest.mark.parametrize("kind", [kind for kind in queues.LIMIT_UNIT if kind != "policer"])
    @given(LIMITS)
    def test_name_their_kind_and_their_limit(self, kind: str, limit: int) -> None:
        words = queues.words(queue(kind, limit, rate_bps=1e9))
        assert words.split()[0] == kind
        assert re.search(rf"\b(mem)?limit {limit}(b| |$)", words)

    @given(LIMITS)
    def test_memory_of_fq_codel_never_binds_before_its_packets(self, limit: int) -> None:
        memory = int(re.findall(r"memory_limit (\d+)b", queues.words(queue("fq_codel", limit)))[0])
        assert memory >= min(limit * PACKET, 2**32 - 1)
        assert memory < 2**32


def red(limit: int, packet: int, rate_bps: float = 1e9) -> dict[str, int]:
    words = queues.words(
        {"kind": "red", "limit": limit, "packet_bytes": packet, "rate_bps": rate_bps, "ecn": False}
    )
    return {name: int(number) for name, number in re.findall(r"(\w+) (\d+)(?:b|bit)?\b", words)}


def tc_wlog(least: int, burst: int, packet: int) -> int:
    """As tc_red_eval_ewma() of iproute2, tc/tc_red.c."""
    a = burst + 1 - least / packet
    if a < 1:
        return -1
    return next((wlog for wlog in range(1, 32) if a <= (1 - (1 - 0.5**wlog) ** burst) / 0.5**wlog), -1)


def tc_plog(least: int, most: int, probability: float) -> int:
    """As tc_red_eval_P() of iproute2, tc/tc_red.c."""
    share = probability / (most - least)
    return next((times for times in range(32) if share * 2**times > 1), -1)


class TestRed:
    """What neither `tc` nor the kernel refuses or warns of: such a point would fail when it runs."""

    @given(LIMITS, st.sampled_from([590, PACKET, 9014, 65550]))
    @example(25_000_000, PACKET)
    @example(1, PACKET)
    @example(9000, PACKET)
    @example(2**32 - 1, 590)
    def test_is_taken_at_any_size(self, limit: int, packet: int) -> None:
        told = red(limit, packet)
        assert packet <= told["min"] < told["max"]
        wlog = tc_wlog(told["min"], told["burst"], packet)
        assert 1 <= wlog < 10  # from there on tc warns
        assert told["max"].bit_length() + wlog < 32  # red_check_params(), include/net/red.h
        assert tc_plog(told["min"], told["max"], 0.1) >= 0

    @given(st.integers(100 * PACKET, 2**28))
    def test_has_thresholds_as_floyd_recommends_them(self, limit: int) -> None:
        told = red(limit, PACKET)
        assert told["max"] == limit // 2
        assert told["max"] / told["min"] == pytest.approx(3, abs=3 * PACKET / told["min"])

    @given(st.integers(100 * PACKET, 2**28))
    def test_burst_is_what_tc_recommends_or_less_where_the_kernel_refuses_that(self, limit: int) -> None:
        told = red(limit, PACKET)
        recommended = (2 * told["min"] + told["max"]) // (3 * PACKET) + 1
        most_wlog = min(9, 31 - told["max"].bit_length())
        taken = 1 <= tc_wlog(told["min"], recommended, PACKET) <= most_wlog
        assert told["burst"] == recommended if taken else told["burst"] < recommended

    @pytest.mark.parametrize("rate_bps", [1e3, 1e9, 100e9, 400e9])
    def test_rate_fits_the_32_bits_of_tc(self, rate_bps: float) -> None:
        bytes_per_s = red(10**6, PACKET, rate_bps)["bandwidth"] / 8
        assert bytes_per_s == min(rate_bps / 8, 2**32 - 1)
        assert math.floor(bytes_per_s) < 2**32


def attribute(kind: int, payload: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(payload), kind) + payload + bytes(-len(payload) % 4)


OPTIONS = {
    "pfifo": struct.pack("=I", 1000),
    "bfifo": struct.pack("=I", 1000),
    "sfq": struct.pack("=IiI", 1514, 0, 1000) + bytes(60),
    "red": attribute(1, struct.pack("=IIIBBBB", 1000, 10, 30, 1, 2, 3, 0)),
    "codel": attribute(1, struct.pack("=I", 5000)) + attribute(2, struct.pack("=I", 1000)),
    "fq_codel": attribute(1, struct.pack("=I", 5000)) + attribute(2, struct.pack("=I", 1000)),
    "pie": attribute(1, struct.pack("=I", 15000)) + attribute(2, struct.pack("=I", 1000)),
    "cake": attribute(10, struct.pack("=I", 1000)),
    "fq": attribute(1, struct.pack("=I", 1000)) + attribute(2, struct.pack("=I", 100)),
}


class TestReadBack:
    def test_every_kind_is_here(self) -> None:
        assert {*OPTIONS, "policer"} == set(queues.LIMIT_UNIT)

    @pytest.mark.parametrize("kind", OPTIONS)
    def test_limit_is_what_the_kernel_tells(self, kind: str) -> None:
        assert queues.limit_of(kind, OPTIONS[kind]) == 1000

    @pytest.mark.parametrize("kind", ["red", "codel", "fq_codel", "pie", "cake", "fq"])
    def test_limit_that_is_not_told_is_none(self, kind: str) -> None:
        assert queues.limit_of(kind, b"") is None

    @pytest.mark.parametrize("kind", ["pfifo", "bfifo", "sfq"])
    def test_torn_options_are_refused(self, kind: str) -> None:
        with pytest.raises(ValueError, match=f"{kind}: options of 2 bytes are torn"):
            queues.limit_of(kind, b"\0\0")

    def test_attributes_are_those_of_the_kernel_s_header(self, assert_in_c: Any) -> None:
        assert_in_c(
            ["linux/pkt_sched.h"],
            {
                **{"TCA_RED_PARMS": 1, "TCA_CODEL_LIMIT": 2, "TCA_FQ_CODEL_LIMIT": 2, "TCA_PIE_LIMIT": 2},
                **{"TCA_CAKE_MEMORY": 10, "TCA_FQ_PLIMIT": 1},
                "offsetof(struct tc_red_qopt, limit)": 0,
                "offsetof(struct tc_sfq_qopt, limit)": 8,
                "offsetof(struct tc_fifo_qopt, limit)": 0,
            },
        )


class TestSets:
    def test_are_of_kinds_there_are(self) -> None:
        for kinds in (queues.AQM, queues.TARGETED, queues.STEPPED):
            assert kinds <= set(queues.LIMIT_UNIT)
