"""From a point to its network: which shape, how many pairs, what the links do, and who sends to whom."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import layout
from lab.combination import Point
from lab.knobs import PATH_KNOBS, TOPOLOGIES
from lab.plans import SHAPES

MakePoint = Callable[..., Point]


class TestShape:
    @pytest.mark.parametrize("name", TOPOLOGIES)
    def test_is_one_that_has_a_plan(self, make_point: MakePoint, name: str) -> None:
        point = make_point(topology=name, reverse="1", flows="4")
        assert layout.shape(point) in SHAPES
        assert layout.plan(point).shape == layout.shape(point)

    def test_of_a_long_haul_is_a_path(self, make_point: MakePoint) -> None:
        assert layout.shape(make_point(topology="long_haul")) == "path"


class TestPairs:
    @pytest.mark.parametrize(
        ("knobs", "pairs"),
        [
            ({}, 1),
            ({"flows": "9"}, 1),
            ({"topology": "dumbbell"}, 2),
            ({"topology": "dumbbell", "flows": "7"}, 7),
            ({"topology": "dumbbell", "flows": "300"}, layout.MOST_AUTO_PAIRS),
            ({"topology": "dumbbell", "flows": "300", "pairs": "200"}, 200),
            ({"topology": "dumbbell", "flows": "2", "pairs": "1"}, 1),
            ({"topology": "star", "flows": "1"}, 1),
            ({"topology": "star", "flows": "2", "rtt": "1ms+2ms+3ms"}, 3),
            ({"topology": "parking_lot", "bottlenecks": "5"}, 6),
            ({"topology": "two_way", "flows": "3", "reverse": "2"}, 3),
            ({"topology": "two_way", "flows": "0", "reverse": "2"}, 1),
        ],
    )
    def test_are_one_a_flow_unless_told(
        self, make_point: MakePoint, knobs: dict[str, str], pairs: int
    ) -> None:
        point = make_point(**knobs)
        assert layout.pair_count(point) == pairs
        assert len(layout.plan(point).pairs) == pairs

    def test_the_other_way_are_one_a_flow_too(self, make_point: MakePoint) -> None:
        assert len(layout.plan(make_point(topology="two_way", reverse="3")).back_pairs) == 3
        assert len(layout.plan(make_point(topology="two_way")).back_pairs) == 1

    def test_are_joined_in_turn(self, make_point: MakePoint) -> None:
        point = make_point(topology="dumbbell", pairs="2", flows="5", reverse="3")
        assert [layout.pair_of(point, number).sender for number in range(5)] == [
            *("snd1", "snd2", "snd1", "snd2", "snd1"),
        ]
        assert [layout.pair_of(point, number, back=True).sender for number in range(3)] == [
            *("rcv1", "rcv2", "rcv1"),
        ]

    def test_are_joined_as_told_by_the_numbers_of_their_hosts(self, make_point: MakePoint) -> None:
        point = make_point(topology="dumbbell", pairs="3", flows="4", reverse="2", place="3+1")
        assert [layout.pair_of(point, number).sender for number in range(4)] == [
            *("snd3", "snd1", "snd3", "snd1"),
        ]
        assert [layout.pair_of(point, number, back=True).sender for number in range(2)] == ["rcv1", "rcv2"]
        lot = make_point(topology="parking_lot", flows="3", place="0+2")
        assert [layout.pair_of(lot, number).sender for number in range(3)] == ["snd", "snd2", "snd"]

    @pytest.mark.parametrize("place", ["0", "4"])
    def test_that_are_not_there_are_an_error(self, make_point: MakePoint, place: str) -> None:
        with pytest.raises(IndexError):
            layout.pair_of(make_point(topology="dumbbell", pairs="3", place=place), 0)

    def test_have_the_rtts_in_turn(self, make_point: MakePoint) -> None:
        point = make_point(topology="star", flows="3", rtt="10ms+100ms")
        assert [pair.rtt_s for pair in layout.plan(point).pairs] == [0.01, 0.1, 0.01]


class TestLinks:
    @pytest.mark.parametrize("name", TOPOLOGIES)
    def test_are_told_as_json(self, make_point: MakePoint, name: str) -> None:
        params = layout.params(make_point(topology=name, loss="ge:1%:10%", access="1gbit"))
        assert json.loads(json.dumps(params)) == params

    def test_of_hosts_run_at_ten_times_the_bottleneck_unless_told(self, make_point: MakePoint) -> None:
        assert layout.params(make_point(topology="star"))["access_bps"] == 10e9
        chosen = layout.params(make_point(topology="star", access="10mbit+1gbit"))["access_bps"]
        assert chosen == [10e6, 1e9]
        assert layout.params(make_point(access="50mbit"))["access_bps"] == 50e6

    def test_of_a_leaf_recipe_have_a_rate_where_one_is_given(self, make_point: MakePoint) -> None:
        assert layout.params(make_point(recipe="leaf"))["access_bps"] is None

    def test_way_back_has_the_same_rate_and_queue_unless_told(self, make_point: MakePoint) -> None:
        network = layout.plan(make_point(rate="100mbit", queue="1MB"))
        out, back = (network.end(name).egress for name in ("r1-eth1", "r2-eth0"))
        assert out == back
        network = layout.plan(make_point(rate="100mbit", queue="1MB", rate_back="10mbit"))
        assert network.end("r2-eth0").egress["rate_bps"] == 10e6

    def test_policer_polices_the_way_out_alone(self, make_point: MakePoint) -> None:
        network = layout.plan(make_point(qdisc="policer"))
        assert network.end("r1-eth1").egress["queue"]["kind"] == "policer"
        assert network.end("r2-eth0").egress["queue"]["kind"] == "bfifo"

    def test_rate_varies_with_changes_or_a_trace(self, make_point: MakePoint) -> None:
        assert not layout.varies(make_point(rtt_change="1s:1ms", loss_change="1s:1%"))
        assert layout.varies(make_point(rate_change="1s:1mbit"))
        assert layout.varies(make_point(trace="file.csv"))

    @given(
        st.sampled_from(["dumbbell", "star", "two_way", "parking_lot"]),
        st.sampled_from(["10ms", "10ms+15ms", "0s+1us"]),
    )
    def test_way_to_every_receiver_loses_as_told(self, shape: str, rtt: str) -> None:
        chosen = {"topology": shape, "rtt": rtt, "loss": "1%", "flows": "4"}
        point = Point({name: knob.default for name, knob in PATH_KNOBS.items()} | chosen, "virtual", 1)
        network = layout.plan(point)
        lossy = [end for link in network.links for end in link.ends if end.egress.get("loss")]
        receivers = {host for host in network.hosts if host.startswith("rcv")}
        assert {end.egress["loss"] for end in lossy} == {0.01}
        assert len(lossy) == len(receivers)
