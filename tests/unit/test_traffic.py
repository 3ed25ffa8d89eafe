"""From a point to its flows: who sends when, what, with which control; equal seeds, equal flows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import traffic
from lab.combination import Point
from lab.knobs import PATH_KNOBS
from lab.model.path import payload_share

MakePoint = Callable[..., Point]


def flows(point: Point, *names: str) -> list[object]:
    found = [tuple(getattr(flow, name) for name in names) for flow in traffic.flows(point)]
    return [one[0] for one in found] if len(names) == 1 else list(found)


class TestLasting:
    def test_are_there_from_the_start_and_last(self, make_point: MakePoint) -> None:
        (flow,) = traffic.flows(make_point())
        assert flow == traffic.Flow(0, traffic.LASTING, "cubic", "snd", "rcv", 0.2, ("r1-eth1",))

    def test_have_mixed_controls_in_turn(self, make_point: MakePoint) -> None:
        point = make_point(flows="5", cc="bbr*2+cubic")
        assert flows(point, "cc") == ["bbr", "bbr", "cubic", "bbr", "bbr"]

    def test_have_starts_stops_and_sizes_in_turn(self, make_point: MakePoint) -> None:
        point = make_point(flows="4", start="0s+2s", stop="end+5s+6s", bytes="1MB+2MB")
        assert flows(point, "start_s", "stop_s", "size_bytes") == [
            (0, None, 10**6),
            (2, 5, 2 * 10**6),
            (0, 6, 10**6),
            (2, None, 2 * 10**6),
        ]

    def test_have_hosts_and_rtts_in_turn(self, make_point: MakePoint) -> None:
        point = make_point(topology="dumbbell", flows="3", pairs="2", rtt="10ms+20ms")
        assert flows(point, "src", "dst", "rtt_s") == [
            ("snd1", "rcv1", 0.01),
            ("snd2", "rcv2", 0.02),
            ("snd1", "rcv1", 0.01),
        ]

    def test_spread_begins_them_at_random_within_it(self, make_point: MakePoint) -> None:
        starts = traffic.starts_s(make_point(flows="200", spread="2s", start="1s"))
        assert len(set(starts)) == 200
        assert 1 <= min(starts) < 1.1
        assert 2.9 < max(starts) <= 3

    def test_pauses_are_each_flow_s_own_and_end_with_the_load(self, make_point: MakePoint) -> None:
        one, other = traffic.flows(make_point(flows="2", on_off="exp:100ms:200ms", start="0s+5s"))
        assert one.spells is not None
        assert other.spells is not None
        assert one.spells != other.spells
        assert one.spells[-1][1] <= 12
        assert other.spells[-1][1] <= 7

    def test_of_requests_are_called_so(self, make_point: MakePoint) -> None:
        assert flows(make_point(workload="request", flows="2"), "kind") == [traffic.REQUEST] * 2


class TestReverse:
    def test_go_the_other_way_and_have_the_next_numbers(self, make_point: MakePoint) -> None:
        point = make_point(flows="2", reverse="2", cc="bbr+cubic", bytes="1MB", start="1s")
        assert flows(point, "number", "kind", "src", "dst", "cc", "bottlenecks")[2:] == [
            (2, traffic.REVERSE, "rcv", "snd", "bbr", ("r2-eth0",)),
            (3, traffic.REVERSE, "rcv", "snd", "cubic", ("r2-eth0",)),
        ]
        assert flows(point, "start_s", "size_bytes")[2:] == [(0, None), (0, None)]

    def test_have_hosts_of_their_own_where_the_shape_has(self, make_point: MakePoint) -> None:
        point = make_point(topology="two_way", flows="1", reverse="2")
        assert flows(point, "src", "dst") == [("snd1", "rcv1"), ("rcv2", "snd2"), ("rcv3", "snd3")]


class TestArrivals:
    def test_at_every_instant_come_then(self, make_point: MakePoint) -> None:
        point = make_point(duration="1s", arrivals="every:300ms", sizes="10KB+20KB", flows="1", reverse="1")
        assert flows(point, "number", "kind", "start_s", "size_bytes")[2:] == [
            (2, traffic.ARRIVAL, 0.3, 10_000),
            (3, traffic.ARRIVAL, 0.6, 20_000),
            (4, traffic.ARRIVAL, 0.9, 10_000),
        ]

    @pytest.mark.parametrize("sizes", ["64KB", "exp:100KB", "10KB+100KB"])
    @pytest.mark.parametrize("load", [20, 60, 150])
    def test_offer_the_share_of_the_link_that_was_asked_for(
        self, make_point: MakePoint, load: int, sizes: str
    ) -> None:
        """Payload by what of it the link carries; a mean over some thousand flows."""
        point = make_point(
            rate="100mbit", duration="60s", arrivals=f"poisson:{load}%", sizes=sizes, flows="0"
        )
        offered = sum(flow.size_bytes or 0 for flow in traffic.flows(point)) * 8 / 60
        assert offered / (100e6 * payload_share(1500)) == pytest.approx(load / 100, rel=0.08)

    def test_are_as_many_as_expected_and_as_far_apart_as_chance_has_them(self, make_point: MakePoint) -> None:
        """Gaps of a Poisson process are exponential: mean and standard deviation are equal."""
        point = make_point(rate="100mbit", duration="60s", arrivals="poisson:50%", sizes="64KB", flows="0")
        starts = [flow.start_s for flow in traffic.flows(point)]
        assert len(starts) == pytest.approx(traffic.arrival_count(point), rel=0.05)
        gaps = [after - before for before, after in pairwise(starts)]
        mean = sum(gaps) / len(gaps)
        spread = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
        assert spread == pytest.approx(mean, rel=0.05)

    def test_follow_the_rate_of_the_link(self, make_point: MakePoint) -> None:
        slow, fast = (make_point(rate=rate, arrivals="poisson:50%") for rate in ("100mbit", "200mbit"))
        assert traffic.arrival_count(fast) == pytest.approx(2 * traffic.arrival_count(slow))

    def test_are_none_where_none_were_asked_for(self, make_point: MakePoint) -> None:
        assert traffic.arrival_count(make_point()) == 0
        assert traffic.flows(make_point(flows="0", udp="1mbit")) == ()

    def test_go_over_the_pairs_in_turn(self, make_point: MakePoint) -> None:
        point = make_point(topology="star", pairs="2", flows="0", arrivals="every:4s", duration="10s")
        assert flows(point, "dst") == ["rcv1", "rcv2"]


CHANCE = {"spread": "1s", "on_off": "exp:1s:1s", "arrivals": "poisson:10%", "flows": "3", "rate": "10mbit"}


class TestSeeds:
    @given(st.integers(0, 2**63 - 1))
    def test_equal_ones_give_equal_flows_and_others_others(self, seed: int) -> None:
        knobs = {name: knob.default for name, knob in PATH_KNOBS.items()} | CHANCE
        one, again, other = (traffic.flows(Point(knobs, "virtual", s)) for s in (seed, seed, seed + 1))
        assert one == again
        assert [flow.start_s for flow in one[:3]] != [flow.start_s for flow in other[:3]]
        assert [flow.spells for flow in one[:3]] != [flow.spells for flow in other[:3]]
        assert [flow.start_s for flow in one[3:]] != [flow.start_s for flow in other[3:]]

    def test_chance_of_one_kind_leaves_the_others_alone(self, make_point: MakePoint) -> None:
        """So that a figure over one of them compares equal loads."""
        with_pauses, without = (make_point(**{**CHANCE, "on_off": text}) for text in ("exp:1s:1s", "none"))
        assert flows(with_pauses, "start_s") == flows(without, "start_s")

    def test_stay(self, make_point: MakePoint) -> None:
        """Whoever changes these changes the load of stored points under their names."""
        point = make_point(flows="2", spread="1s", arrivals="poisson:60%", rate="1mbit", duration="3s")
        assert flows(point, "start_s", "size_bytes") == STORED


STORED = [
    (0.508493, None),
    (0.925951, None),
    (1.134151, 115291),
    (2.850907, 47485),
]


class TestCounts:
    @pytest.mark.parametrize(
        ("knobs", "least", "most"),
        [
            ({}, 1, 1),
            ({"flows": "7", "reverse": "2"}, 9, 9),
            ({"arrivals": "every:100ms", "duration": "1s"}, 11, 11),
            ({"arrivals": "poisson:60%"}, 50, 5000),
        ],
    )
    def test_most_at_once_has_room_for_arrivals(
        self, make_point: MakePoint, knobs: dict[str, str], least: int, most: int
    ) -> None:
        assert least <= traffic.most_at_once(make_point(**knobs)) <= most

    def test_udp_packets_are_as_far_apart_as_the_link_counts_them(self, make_point: MakePoint) -> None:
        assert traffic.udp_gap_s(make_point()) is None
        assert traffic.udp_gap_s(make_point(udp="12.112mbit")) == pytest.approx(0.001)

    def test_bottlenecks_are_those_that_data_cross(self, make_point: MakePoint) -> None:
        assert traffic.bottlenecks(make_point()) == ("r1-eth1",)
        assert traffic.bottlenecks(make_point(reverse="1")) == ("r1-eth1", "r2-eth0")
        assert traffic.bottlenecks(make_point(flows="0", udp="1mbit")) == ("r1-eth1",)
        lot = make_point(topology="parking_lot", bottlenecks="2", flows="3")
        assert traffic.bottlenecks(lot) == ("r1-eth0", "r2-eth1")
