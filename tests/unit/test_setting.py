"""What the model is told of a point: knobs in their own units, and the kernel's own where none is set."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lab import memory
from lab.model.inputs import Release
from lab.setting import model_faults, queue_bytes, setting, unpredicted
from lab.sweep import Point

MakePoint = Callable[..., Point]
MIB = 2**20
L61 = Release(6, 1)

UNPREDICTED: list[tuple[dict[str, str], str]] = [
    ({"topology": "parking_lot", "flows": "4"}, "the model knows one bottleneck, and data one way"),
    ({"topology": "dumbbell", "rtt": "10ms+20ms"}, "the model knows one RTT at a time"),
    ({"cc": "bbr+cubic"}, "the model knows one congestion control at a time"),
    ({"qdisc": "codel"}, "the model knows queues that drop when they are full, not codel"),
    ({"loss": "ge:1%:10%"}, "the model knows random loss alone"),
    ({"bytes": "1MB+2MB"}, "the flows have different sizes"),
    ({"workload": "request"}, "requests wait for responses"),
    ({"rate_back": "10mbit"}, "the model takes the way back for as fast as the way out"),
    ({"ecn": "on"}, "the model knows no marks"),
    ({"rate_change": "1s:1mbit"}, "the rate changes"),
    ({"rtt_change": "1s:1ms"}, "the RTT changes"),
    ({"loss_change": "1s:1%"}, "the loss changes"),
    ({"trace": "file.csv"}, "the rate follows a trace"),
    ({"start": "1s"}, "flows come later"),
    ({"stop": "1s"}, "flows end early"),
    ({"spread": "1s"}, "flows come at different times"),
    ({"arrivals": "every:1s"}, "flows come and go"),
    ({"on_off": "1s:2s"}, "flows pause"),
    ({"reverse": "1"}, "traffic goes both ways"),
    ({"udp": "1mbit"}, "a UDP flow takes its part"),
    ({"access": "1gbit"}, "the model takes hosts for ten times as fast as the bottleneck"),
]


def test_model_is_told_what_the_agent_is(make_point: MakePoint) -> None:
    point = make_point(
        **{"rate": "10mbit", "rtt": "30ms", "rmem": "25MiB", "wmem": "max=50MiB", "adv_win_scale": "2"},
        **{"mtu": "9000", "offloads": "on", "cc": "bbr", "loss": "0.1%", "flows": "3"},
    )
    given_setting = setting(point, Release(6, 1))
    assert (given_setting.rate_bps, given_setting.rtt_s, given_setting.loss) == (10e6, 0.03, 0.001)
    assert (given_setting.rmem.maximum, given_setting.wmem) == (25 * MIB, (4096, 16384, 50 * MIB))
    assert (given_setting.adv_win_scale, given_setting.mtu_bytes, given_setting.offloads) == (2, 9000, True)
    assert (given_setting.cc, given_setting.flows, given_setting.release) == ("bbr", 3, (6, 1))
    assert given_setting.queue_bytes == point.queue["limit"]
    assert given_setting.duration_s == 12


def test_application_and_whole_kernel(make_point: MakePoint) -> None:
    found = setting(
        make_point(
            **{"rcvbuf": "1MiB", "sndbuf": "2MiB", "rmem_max": "3MiB", "wmem_max": "4MiB", "app_win": "2"},
            **{"moderate_rcvbuf": "off", "notsent_lowat": "16KiB", "tcp_mem": "64MiB", "bytes": "1MB"},
        ),
        L61,
    )
    assert (found.rcvbuf_bytes, found.sndbuf_bytes) == (MIB, 2 * MIB)
    assert (found.rmem_max_bytes, found.wmem_max_bytes) == (3 * MIB, 4 * MIB)
    assert (found.app_win, found.moderate_rcvbuf, found.notsent_lowat_bytes) == (2, False, 16384)
    assert (found.tcp_mem_bytes, found.bytes_each) == (64 * MIB, 10**6)


def test_what_is_not_set_is_the_kernel_s_own(make_point: MakePoint) -> None:
    found = setting(make_point(), L61)
    assert (found.adv_win_scale, found.app_win, found.moderate_rcvbuf) == (1, 31, True)
    assert (found.rcvbuf_bytes, found.sndbuf_bytes, found.notsent_lowat_bytes) == (None, None, None)
    assert found.rmem_max_bytes == found.wmem_max_bytes == memory.CORE_MAX_BYTES == 212992
    assert (found.tcp_mem_bytes, found.bytes_each) == (None, None)
    assert (found.rmem, found.wmem) == (memory.DEFAULTS["rmem"], memory.DEFAULTS["wmem"])


class TestUnpredicted:
    @pytest.mark.parametrize(("knobs", "why"), UNPREDICTED)
    def test_says_why(self, make_point: MakePoint, knobs: dict[str, str], why: str) -> None:
        assert unpredicted(make_point(**knobs)) == why

    @pytest.mark.parametrize(
        "knobs",
        [
            {},
            {"topology": "long_haul", "route": "geo-satellite"},
            {"qdisc": "pfifo"},
            {"qdisc": "bfifo", "queue": "1000p"},
            {"cc": "bbr+bbr", "flows": "4", "bytes": "1MB", "loss": "1%"},
            {"probe": "10ms"},
            {"workload": "http"},
        ],
    )
    def test_is_none_where_the_model_knows_enough(self, make_point: MakePoint, knobs: dict[str, str]) -> None:
        assert unpredicted(make_point(**knobs)) is None


class TestModelFaults:
    @pytest.mark.parametrize(
        ("knobs", "faults"),
        [
            ({}, []),
            ({"rtt": "10ms", "cc": "bbr", "loss": "1%", "flows": "2", "bytes": "1MB"}, []),
            ({"flows": "0"}, ["flows: '0' leaves nothing to predict; give at least 1"]),
            (
                {"rtt": "10ms+20ms"},
                ["rtt: '10ms+20ms' lists 2 RTTs, and the model takes one; give one, such as 10ms"],
            ),
            (
                {"cc": "bbr*2+cubic", "bytes": "1MB+2MB"},
                [
                    "cc: 'bbr*2+cubic' lists 3 congestion controls, and the model takes one; give one,"
                    " such as bbr",
                    "bytes: '1MB+2MB' lists 2 sizes, and the model takes one; give one, such as 1MB",
                ],
            ),
            (
                {"loss": "list:5+17"},
                [
                    "loss: 'list:5+17' is no probability, and the model knows random loss alone;"
                    " give one, such as 0.1%"
                ],
            ),
        ],
    )
    def test_name_value_rule_and_mend(self, knobs: dict[str, str], faults: list[str]) -> None:
        assert model_faults(knobs) == faults


class TestQueue:
    @pytest.mark.parametrize(
        ("queue", "size"),
        [("1MiB", MIB), ("1000p", 1_514_000), ("50ms", 6_250_000), ("0.5bdp", 12_500_000), ("auto", 25e6)],
    )
    def test_in_bytes(self, make_point: MakePoint, queue: str, size: float) -> None:
        assert queue_bytes(make_point(queue=queue)) == size

    def test_of_the_leaf_recipe_is_what_the_delay_line_has_left(self, make_point: MakePoint) -> None:
        leaf = {"recipe": "leaf", "rate": "100mbit", "rtt": "10ms"}
        assert queue_bytes(make_point(**leaf, leaf_limit="1000")) == 1_514_000 - 125_000
        assert queue_bytes(make_point(**leaf, leaf_limit="10")) == 0
