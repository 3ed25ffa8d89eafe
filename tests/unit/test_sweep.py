"""Points: the product of what is swept, each combination once, under names that stay."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import sweep
from lab.errors import SpecError
from lab.knobs import LARGEST_QUEUE_BYTES, PATH_KNOBS
from lab.scenario import Scenario
from lab.sweep import Point

MakePoint = Callable[..., Point]


def study(**fields: Any) -> Scenario:
    return Scenario(**{"name": "study", "question": "q", "why": "w", **fields})


def points(
    scenario: Scenario, overrides: Mapping[str, Sequence[str]] | None = None, seeds: Sequence[int] = (1,)
) -> list[Point]:
    return sweep.points(scenario, overrides or {}, engine="virtual", seeds=seeds)


def chosen(found: Sequence[Point], *names: str) -> list[tuple[str, ...]]:
    return [tuple(point.knobs[name] for name in names) for point in found]


class TestProduct:
    def test_no_sweep_is_one_point_of_defaults(self) -> None:
        (point,) = points(study())
        assert dict(point.knobs) == {name: knob.default for name, knob in PATH_KNOBS.items()}
        assert (point.engine, point.seed) == ("virtual", 1)

    def test_of_one_block_last_knob_fastest(self) -> None:
        found = points(study(sweep=({"rtt": ["1ms", "2ms"], "wmem": ["1MiB", "2MiB"], "loss": ["0%"]},)))
        assert chosen(found, "rtt", "wmem") == [
            ("1ms", "1MiB"),
            ("1ms", "2MiB"),
            ("2ms", "1MiB"),
            ("2ms", "2MiB"),
        ]

    def test_blocks_follow_each_other_and_share_nothing(self) -> None:
        found = points(study(sweep=({"wmem": ["1MiB"]}, {"rmem": ["1MiB"]}), defaults={"rtt": "9ms"}))
        assert chosen(found, "rtt", "wmem", "rmem") == [
            ("9ms", "1MiB", "default"),
            ("9ms", "default", "1MiB"),
        ]

    def test_block_overrides_a_default(self) -> None:
        found = points(study(sweep=({"rtt": ["2ms"]}, {}), defaults={"rtt": ["5ms", "6ms"]}))
        assert chosen(found, "rtt") == [("2ms",), ("5ms",), ("6ms",)]

    def test_every_seed_of_a_combination_is_a_point(self) -> None:
        found = points(study(sweep=({"rtt": ["1ms", "2ms"]},)), seeds=range(3, 6))
        assert [(point.knobs["rtt"], point.seed) for point in found] == [
            *(("1ms", 3), ("1ms", 4), ("1ms", 5)),
            *(("2ms", 3), ("2ms", 4), ("2ms", 5)),
        ]

    def test_equal_combinations_are_one_point(self) -> None:
        found = points(
            study(
                sweep=(
                    {"rate": ["1gbit", "1000mbit", "125MB/s"], "rmem": ["default", "max=6MiB"]},
                    {"rate": ["1Gbit"], "rmem": ["4KiB:128KiB:6MiB", "6MiB"]},
                )
            )
        )
        assert chosen(found, "rate", "rmem") == [("1gbit", "default"), ("1gbit", "6MiB")]

    def test_single_values_and_numbers_need_no_list(self) -> None:
        found = points(study(sweep=({"mtu": 9000, "adv_win_scale": [-2, 2], "flows": (1, 4)},)))
        assert chosen(found, "mtu", "adv_win_scale", "flows") == [
            *(("9000", "-2", "1"), ("9000", "-2", "4")),
            *(("9000", "2", "1"), ("9000", "2", "4")),
        ]


class TestOverrides:
    SWEPT = study(
        sweep=({"rmem": ["1MiB", "2MiB"]}, {"wmem": ["1MiB"], "cc": ["bbr"]}), defaults={"rtt": "9ms"}
    )

    def test_replace_values_in_every_block(self) -> None:
        found = points(self.SWEPT, {"rmem": ["3MiB"], "rtt": ["1ms"]})
        assert chosen(found, "rtt", "rmem", "wmem", "cc") == [
            ("1ms", "3MiB", "default", "cubic"),
            ("1ms", "3MiB", "1MiB", "bbr"),
        ]

    def test_of_several_values_sweep(self) -> None:
        found = points(self.SWEPT, {"rtt": ["1ms", "1000us", "2ms"], "rmem": ["default"]})
        assert chosen(found, "rtt", "wmem") == [
            *(("1ms", "default"), ("2ms", "default")),
            *(("1ms", "1MiB"), ("2ms", "1MiB")),
        ]

    def test_faults_are_all_listed(self) -> None:
        with pytest.raises(SpecError) as refused:
            points(self.SWEPT, {"rmen": ["1MiB"], "rtt": ["1m", "2ms", "3"], "mtu": ["9"]})
        assert refused.value.faults == [
            "'rmen' is not a knob of study; did you mean 'rmem'?",
            "rtt: '1m' is ambiguous: `m` may be mega, mebi, milli or minutes;"
            " write a time such as 200ms or 1.5s",
            "rtt: '3' has no unit; a time needs one (s, ms, us, ns, min), such as 200ms or 1.5s",
            "mtu: '9' is out of range; an MTU lies between 576 and 65535",
        ]


class TestIdentity:
    @pytest.mark.parametrize(
        ("point", "identity"),
        [
            (Point({}, "virtual", 1), "0989f78b1c"),
            (Point({"rate": "1gbit", "rtt": "200ms"}, "virtual", 1), "808febc69b"),
            (Point({"rate": "1gbit", "rtt": "200ms"}, "realtime", 7), "9c00a4c679"),
        ],
    )
    def test_stays(self, point: Point, identity: str) -> None:
        """Whoever changes these raises IDENTITY_VERSION and says so: stored runs lose their points."""
        assert point.id == identity

    def test_does_not_depend_on_order(self) -> None:
        one = Point({"rate": "1gbit", "rtt": "200ms"}, "virtual", 1)
        other = Point({"rtt": "200ms", "rate": "1gbit"}, "virtual", 1)
        assert one.id == other.id

    def test_does_not_depend_on_the_scenario_around_it(self) -> None:
        alone = points(study(defaults={"rtt": "9ms"}))
        among = points(study(name="other", sweep=({"rtt": ["8ms", "9000us"]}, {"cc": ["bbr"]})))
        assert alone[0].id in {point.id for point in among}

    def test_depends_on_all_that_decides(self, make_point: MakePoint) -> None:
        base = make_point()
        others = [
            make_point(seed=2),
            Point(base.knobs, "realtime", 1),
            *(make_point(**{name: value}) for name, value in OTHER_VALUES.items()),
        ]
        assert set(OTHER_VALUES) == set(PATH_KNOBS)
        assert len({point.id for point in [base, *others]}) == 1 + len(others)

    @given(st.dictionaries(st.sampled_from(list(PATH_KNOBS)), st.text(max_size=5)), st.integers(0, 2**63 - 1))
    def test_is_ten_hexadecimal_digits(self, knobs: dict[str, str], seed: int) -> None:
        assert re.fullmatch("[0-9a-f]{10}", Point(knobs, "virtual", seed).id)

    def test_order_of_points_stays(self) -> None:
        scenario = study(sweep=({"rtt": ["3ms", "1ms", "2ms"], "cc": ["reno", "bbr"]},))
        assert [point.id for point in points(scenario)] == [point.id for point in points(scenario)]
        assert chosen(points(scenario), "rtt")[::2] == [("3ms",), ("1ms",), ("2ms",)]


OTHER_VALUES = {
    "rate": "2gbit",
    "rtt": "100ms",
    "queue": "2bdp",
    "loss": "1%",
    "duplicate": "1%",
    "reorder": "1%",
    "jitter": "1ms",
    "mtu": "9000",
    "offloads": "on",
    "recipe": "leaf",
    "leaf_limit": "2000",
    "wmem": "1MiB",
    "rmem": "1MiB",
    "adv_win_scale": "2",
    "app_win": "2",
    "moderate_rcvbuf": "off",
    "rcvbuf": "1MiB",
    "sndbuf": "1MiB",
    "rmem_max": "1MiB",
    "wmem_max": "1MiB",
    "notsent_lowat": "1MiB",
    "tcp_mem": "1GiB",
    "cc": "bbr",
    "flows": "2",
    "workload": "http",
    "duration": "13s",
    "bytes": "1GiB",
    "interval": "1ms",
    "topology": "dumbbell",
    "pairs": "3",
    "bottlenecks": "2",
    "access": "1gbit",
    "rate_back": "10mbit",
    "route": "london-newyork",
    "qdisc": "codel",
    "target": "20ms",
    "ecn": "on",
    "ce_threshold": "1ms",
    "jitter_dist": "normal",
    "rate_change": "1s:1mbit",
    "rtt_change": "1s:1ms",
    "loss_change": "1s:1%",
    "trace": "file.csv",
    "trace_step": "20ms",
    "place": "1",
    "start": "1s",
    "stop": "1s",
    "spread": "1s",
    "arrivals": "every:1s",
    "sizes": "1MB",
    "on_off": "1s:1s",
    "reverse": "1",
    "udp": "1mbit",
    "probe": "10ms",
    "request": "1KB",
    "response": "1KB",
    "think": "1s",
    "kernel": "6.1",
}


class TestFaultsOfCombinations:
    @pytest.mark.parametrize(
        ("knobs", "faults"),
        [
            (
                {"rate": "1mbit", "rtt": "1ms", "queue": "1bdp"},
                [
                    "queue: '1bdp' is 125 bytes at rate=1mbit rtt=1ms, under one packet of 1514 bytes"
                    " (mtu=1500, offloads=off); take a larger queue"
                ],
            ),
            (
                {"queue": "64KiB", "offloads": "on"},
                [
                    "queue: '64KiB' is 65536 bytes at rate=1gbit rtt=200ms, under one packet of 65550 bytes"
                    " (mtu=1500, offloads=on); take a larger queue"
                ],
            ),
            (
                {"rate": "400gbit", "rtt": "1s", "queue": "1bdp"},
                [
                    "queue: '1bdp' is 50000000000 bytes at rate=400gbit rtt=1s,"
                    " over the 4 GiB that a queue can hold; take a smaller queue"
                ],
            ),
            (
                {"jitter": "101ms"},
                [
                    "jitter: '101ms' is more than the delay of 0.1 s;"
                    " a packet cannot arrive before it was sent; take less"
                ],
            ),
            (
                {"reorder": "1%", "rtt": "0", "queue": "1MB"},
                ["reorder: a path without delay cannot reorder; give an rtt"],
            ),
            (
                {"interval": "100us", "duration": "11s"},
                ["interval: '100us' gives over 100000 samples in 11s; take a longer one"],
            ),
        ],
    )
    def test_are_told(self, make_point: MakePoint, knobs: dict[str, str], faults: list[str]) -> None:
        assert sweep.check_point(make_point(**knobs)) == faults

    @pytest.mark.parametrize(
        "knobs",
        [
            {"queue": "1514B"},
            {"queue": "65550B", "offloads": "on"},
            {"rate": "1mbit", "rtt": "1ms", "queue": "1p"},
            {"queue": f"{LARGEST_QUEUE_BYTES}B"},
            {"jitter": "100ms"},
            {"jitter": "200ms", "recipe": "leaf"},
            {"interval": "100us", "duration": "10s"},
            {"rtt": "0"},
        ],
    )
    def test_bounds_are_inclusive(self, make_point: MakePoint, knobs: dict[str, str]) -> None:
        assert sweep.check_point(make_point(**knobs)) == []

    @pytest.mark.parametrize("name", ["rtt", "jitter"])
    @pytest.mark.parametrize(
        ("text", "whole"), [("1us", True), ("1.5us", False), ("1ns", False), ("3333us", True)]
    )
    def test_times_are_whole_microseconds(
        self, make_point: MakePoint, name: str, text: str, whole: bool
    ) -> None:
        faults = [fault for fault in sweep.check_point(make_point(**{name: text})) if "microseconds" in fault]
        assert bool(faults) is not whole

    def test_of_a_sweep_are_each_listed_once(self) -> None:
        swept = study(sweep=({"queue": ["100B", "1MB"], "cc": ["cubic", "bbr"], "jitter": ["0s", "1s"]},))
        with pytest.raises(SpecError) as refused:
            points(swept, seeds=(1, 2))
        assert [fault.split(":")[0] for fault in refused.value.faults] == ["queue", "jitter"]


class TestTooManyPoints:
    @pytest.mark.parametrize(
        ("sweep_blocks", "seeds"),
        [
            (({"flows": range(1, 501), "mtu": range(576, 777)},), (1,)),
            (({"rtt": ["1ms"]}, {"flows": range(1, 501), "mtu": range(576, 776)}), (1,)),
            (({},), range(100_001)),
        ],
    )
    def test_is_refused_before_they_are_made(self, sweep_blocks: Any, seeds: Sequence[int]) -> None:
        listed = tuple({name: list(values) for name, values in block.items()} for block in sweep_blocks)
        with pytest.raises(SpecError) as refused:
            points(study(sweep=listed), seeds=seeds)
        assert str(refused.value) == "sweep: over 100000 points in one run; sweep fewer values"

    def test_bound_is_inclusive_and_counts_seeds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        swept = study(sweep=({"rtt": ["1ms"]}, {"flows": ["1", "2"]}))
        monkeypatch.setattr(sweep, "MOST_POINTS", 6)
        assert len(points(swept, seeds=(1, 2))) == 6
        monkeypatch.setattr(sweep, "MOST_POINTS", 5)
        with pytest.raises(SpecError, match="over 5 points"):
            points(swept, seeds=(1, 2))

    def test_counts_equal_values_once(self) -> None:
        assert len(points(study(sweep=({"flows": ["1"] * 400, "mtu": ["1500"] * 400},)))) == 1


class TestQueue:
    @pytest.mark.parametrize(
        ("knobs", "queue"),
        [
            ({"queue": "1bdp"}, {"kind": "bfifo", "limit": 25_000_000}),
            ({"queue": "10ms"}, {"kind": "bfifo", "limit": 1_250_000}),
            ({"queue": "1MiB"}, {"kind": "bfifo", "limit": 2**20}),
            ({"queue": "1000p"}, {"kind": "pfifo", "limit": 1000}),
            ({"queue": "auto"}, {"kind": "bfifo", "limit": 25_000_000}),
            (
                {"queue": "auto", "rate": "400gbit", "rtt": "20s"},
                {"kind": "bfifo", "limit": LARGEST_QUEUE_BYTES},
            ),
            ({"queue": "auto", "rate": "1mbit", "rtt": "1ms"}, {"kind": "bfifo", "limit": 32 * 1514}),
        ],
    )
    def test_of_a_point(self, make_point: MakePoint, knobs: dict[str, str], queue: dict[str, Any]) -> None:
        assert make_point(**knobs).queue == queue

    @pytest.mark.parametrize("rate", ["1kbit", "1mbit", "1gbit", "400gbit"])
    @pytest.mark.parametrize("rtt", ["0", "1us", "1ms", "20s"])
    @pytest.mark.parametrize("offloads", ["on", "off"])
    @pytest.mark.parametrize("mtu", ["576", "1500", "65535"])
    def test_auto_can_always_be_built(
        self, make_point: MakePoint, rate: str, rtt: str, offloads: str, mtu: str
    ) -> None:
        point = make_point(rate=rate, rtt=rtt, offloads=offloads, mtu=mtu, queue="auto")
        assert sweep.check_point(point) == []
        assert int(point.queue["limit"]) >= min(2 * point.packet_bytes, LARGEST_QUEUE_BYTES)


class TestSendBuffer:
    def test_that_overflows_the_kernel_s_count_is_refused(self) -> None:
        with pytest.raises(SpecError, match="overflows the int in which Linux counts them"):
            points(study(), {"wmem": ["2147483647B"]})

    def test_that_is_tuned_up_to_there_is_not(self) -> None:
        assert points(study(), {"wmem": ["max=2147483647B"]})


def test_a_route_and_an_rtt_are_one_too_many() -> None:
    with pytest.raises(SpecError, match="both set the RTT; give one of them"):
        points(study(), {"route": ["london-newyork"], "rtt": ["10ms"]})
