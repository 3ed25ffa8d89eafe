"""Plans of networks: names and addresses each once, routes that lead everywhere, delays that add up."""

from __future__ import annotations

import ipaddress
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import plans
from lab.plans.egress import each, halves, queue_of
from lab.plans.plan import End, Pair, Plan

MOST_NAME_BYTES = 15
"""IFNAMSIZ less the zero at its end, include/uapi/linux/if.h."""
QUEUE = {"kind": "bfifo", "limit": 250_000}
RTTS_US = st.lists(st.integers(0, 1_000_000), min_size=1, max_size=5)


def made(shape: str, pairs: int, rtts_us: list[int]) -> Plan:
    """Return a network of a size with these RTTs in turn."""
    network: dict[str, Any] = {"rate_bps": 1e8, "queue": QUEUE, "rtt_s": [us / 1e6 for us in rtts_us]}
    if shape == "path":
        out_s, back_s = halves(network.pop("rtt_s")[0])
        return plans.make(shape, {**network, "delay_out_s": out_s, "delay_back_s": back_s})
    size = {
        "dumbbell": {"pairs": pairs},
        "star": {"pairs": pairs},
        "two_way": {"pairs": pairs, "back_pairs": 2},
        "parking_lot": {"bottlenecks": pairs},
    }
    return plans.make(shape, {**network, **size[shape]})


PLANS = st.builds(made, st.sampled_from(sorted(plans.SHAPES)), st.integers(1, 12), RTTS_US)
LARGE = [("dumbbell", 500), ("star", 500), ("two_way", 498), ("parking_lot", 20)]


def ends(plan: Plan) -> list[End]:
    return [end for link in plan.links for end in link.ends]


def walk(plan: Plan, sender: str, receiver: str) -> list[End]:
    """Return the interfaces that a packet leaves by, from host to host, by each node's own routes."""
    by_address = {end.address: end for end in ends(plan)}
    beside = {link.left.interface: link.right for link in plan.links}
    beside |= {link.right.interface: link.left for link in plan.links}
    routes, target = plan.routes(), plan.address(receiver)
    left_by, node = [], sender
    while node != receiver:
        assert len(left_by) <= len(plan.nodes), f"{sender} to {receiver} goes round in circles"
        here = [end for end in ends(plan) if end.node == node]
        on_link = [end for end in here if beside[end.interface].address == target]
        matching = [
            (ipaddress.ip_network(prefix).prefixlen, gateway)
            for prefix, gateway in routes[node]
            if ipaddress.ip_address(target) in ipaddress.ip_network(prefix)
        ]
        gateway = target if on_link else max(matching)[1]
        out = next(end for end in here if beside[end.interface].address == gateway)
        left_by.append(out)
        node = by_address[gateway].node
    return left_by


def both_ways(plan: Plan, pair: Pair) -> tuple[list[End], list[End]]:
    return walk(plan, pair.sender, pair.receiver), walk(plan, pair.receiver, pair.sender)


class TestEveryShape:
    @given(PLANS)
    def test_addresses_and_names_are_each_once(self, plan: Plan) -> None:
        assert set(Counter(end.address for end in ends(plan)).values()) == {1}
        assert set(Counter(end.interface for end in ends(plan)).values()) == {1}
        assert set(Counter(plan.nodes).values()) == {1}
        assert {end.node for end in ends(plan)} == set(plan.nodes)

    @given(PLANS)
    def test_links_have_networks_of_their_own(self, plan: Plan) -> None:
        nets = [ipaddress.ip_network(f"{link.left.address}/24", strict=False) for link in plan.links]
        assert len(set(nets)) == len(nets)
        for link, net in zip(plan.links, nets, strict=True):
            assert ipaddress.ip_address(link.right.address) in net
            assert net.subnet_of(ipaddress.ip_network("10.0.0.0/8"))

    @given(PLANS)
    def test_interfaces_are_named_as_mininet_names_them(self, plan: Plan) -> None:
        """Node.newIntf: the node's name, -eth, and how many interfaces it has so far."""
        for node in plan.nodes:
            own = [end.interface for end in ends(plan) if end.node == node]
            assert own == [f"{node}-eth{number}" for number in range(len(own))]

    @given(PLANS)
    def test_hosts_have_one_link(self, plan: Plan) -> None:
        links = Counter(end.node for end in ends(plan))
        assert {links[host] for host in plan.hosts} == {1}

    @given(PLANS)
    def test_routes_lead_from_every_host_to_every_other(self, plan: Plan) -> None:
        for sender in plan.hosts:
            for receiver in plan.hosts:
                assert len(walk(plan, sender, receiver)) <= len(plan.routers) + 1

    @given(PLANS)
    def test_data_cross_the_bottlenecks_of_their_pair_in_order(self, plan: Plan) -> None:
        for pair in (*plan.pairs, *plan.back_pairs):
            crossed = [end.interface for end in walk(plan, pair.sender, pair.receiver)]
            assert [name for name in crossed if name in pair.bottlenecks] == list(pair.bottlenecks)
            assert all(plan.end(name).egress["queue"] == QUEUE for name in pair.bottlenecks)

    @given(PLANS)
    def test_delays_of_a_pair_add_up_to_its_rtt(self, plan: Plan) -> None:
        for pair in (*plan.pairs, *plan.back_pairs):
            out, back = both_ways(plan, pair)
            delays_us = [round(end.egress.get("delay_s", 0) * 1e6) for end in (*out, *back)]
            assert sum(delays_us) == round(pair.rtt_s * 1e6)

    @given(PLANS)
    def test_no_delay_line_stands_before_a_bottleneck_or_at_a_host(self, plan: Plan) -> None:
        delayed = {end.interface for end in ends(plan) if "delay_s" in end.egress}
        assert not delayed & set(plan.bottlenecks)
        assert not delayed & {f"{host}-eth0" for host in plan.hosts}

    @given(PLANS)
    def test_drawing_has_every_node_once(self, plan: Plan) -> None:
        assert sorted(node for column in plan.columns for node in column) == sorted(plan.nodes)

    @pytest.mark.parametrize(("shape", "pairs"), LARGE)
    def test_large_ones_fit_names_and_addresses(self, shape: str, pairs: int) -> None:
        plan = made(shape, pairs, [10_000])
        assert len({end.address for end in ends(plan)}) == 2 * len(plan.links)
        assert max(len(end.interface.encode()) for end in ends(plan)) <= MOST_NAME_BYTES
        far = plan.pairs[-1]
        assert walk(plan, far.sender, far.receiver)[-1].node in plan.routers

    def test_two_hundred_hosts(self) -> None:
        plan = plans.make("dumbbell", {"pairs": 100})
        assert (len(plan.hosts), len(plan.links)) == (200, 201)
        assert plan.address("rcv100") != plan.address("snd100")

    def test_longest_name_there_can_be(self) -> None:
        plan = plans.make("dumbbell", {"pairs": 500})
        assert plan.end("snd500-eth0").node == "snd500"
        assert plan.end("r1-eth500").node == "r1"


class TestShapes:
    def test_path_is_a_chain_of_four(self) -> None:
        plan = plans.make("path", {"delay_out_s": 0.1, "delay_back_s": 0.1})
        assert plan.nodes == ("r1", "r2", "snd", "rcv")
        assert plan.pairs == (Pair("snd", "rcv", 0.2, ("r1-eth1",)),)
        assert plan.back_pairs == (Pair("rcv", "snd", 0.2, ("r2-eth0",)),)
        assert [link.left.address for link in plan.links] == ["10.0.1.1", "10.0.2.1", "10.0.3.1"]

    def test_leaf_recipe_has_its_only_queue_at_the_sender_and_no_way_back(self) -> None:
        plan = plans.make(
            "path", {"recipe": "leaf", "rate_bps": 1e9, "delay_out_s": 0.1, "delay_back_s": 0.1}
        )
        assert plan.pairs[0].bottlenecks == ("snd-eth0",)
        assert plan.back_pairs == ()
        shaped = {end.interface: end.egress for end in ends(plan) if end.egress}
        assert list(shaped) == ["snd-eth0"]
        assert (shaped["snd-eth0"]["delay_s"], shaped["snd-eth0"]["limit_packets"]) == (0.2, 1000)

    def test_dumbbell_gives_each_pair_its_rtt_and_rate(self) -> None:
        plan = plans.make("dumbbell", {"pairs": 3, "rtt_s": [0.01, 0.1], "access_bps": [1e7, 1e9]})
        assert [pair.rtt_s for pair in plan.pairs] == [0.01, 0.1, 0.01]
        assert [plan.end(f"snd{n}-eth0").egress["rate_bps"] for n in (1, 2, 3)] == [1e7, 1e9, 1e7]
        assert plan.bottlenecks == ("r1-eth0", "r2-eth0")

    def test_parking_lot_has_one_pair_across_all_and_one_across_each(self) -> None:
        plan = plans.make("parking_lot", {"bottlenecks": 2, "rate_bps": 1e8})
        assert [(pair.sender, pair.bottlenecks) for pair in plan.pairs] == [
            ("snd", ("r1-eth0", "r2-eth1")),
            ("snd1", ("r1-eth0",)),
            ("snd2", ("r2-eth1",)),
        ]
        assert plan.back_pairs[0].bottlenecks == ("r3-eth0", "r2-eth0")

    def test_star_has_one_server_that_sends_as_fast_as_the_fastest_client(self) -> None:
        plan = plans.make("star", {"pairs": 2, "access_bps": [1e7, 1e9], "rtt_s": 0.05})
        assert plan.hosts == ("snd", "rcv1", "rcv2")
        assert plan.end("snd-eth0").egress["rate_bps"] == 1e9
        assert plan.end("r2-eth1").egress["delay_s"] == 0.05

    def test_two_way_gives_each_way_hosts_of_its_own(self) -> None:
        plan = plans.make("two_way", {"pairs": 2, "back_pairs": 1, "rate_bps": 1e8, "back_bps": 1e7})
        assert [pair.sender for pair in plan.pairs] == ["snd1", "snd2"]
        assert [(pair.sender, pair.receiver) for pair in plan.back_pairs] == [("rcv3", "snd3")]
        assert [plan.end(name).egress["rate_bps"] for name in plan.bottlenecks] == [1e8, 1e7]

    def test_way_to_the_receivers_does_what_it_is_told(self) -> None:
        way = {"jitter_s": 0.001, "loss": 0.01, "duplicate": 0.0, "reorder": 0.0}
        for shape in ("dumbbell", "star", "parking_lot", "two_way"):
            plan = plans.make(shape, {"way": way, "rtt_s": 0.01})
            assert sum("loss" in end.egress for end in ends(plan)) == len(
                {host for host in plan.hosts if host.startswith("rcv")}
            )

    def test_plans_of_equal_parameters_are_equal_after_json(self) -> None:
        """So that what the agent builds is what was planned."""
        params = {"pairs": 2, "rate_bps": 1e8, "queue": QUEUE, "rtt_s": [0.01, 0.02]}
        assert plans.make("star", json.loads(json.dumps(params))) == plans.make("star", params)


class TestLookups:
    PLAN = plans.make("path", {})

    @pytest.mark.parametrize("find", [PLAN.end, PLAN.address])
    def test_of_what_is_not_there(self, find: Callable[[str], object]) -> None:
        with pytest.raises(KeyError):
            find("nobody")

    def test_routers_come_first_so_that_they_forward_before_a_host_asks(self) -> None:
        assert self.PLAN.nodes[:2] == self.PLAN.routers


class TestParameters:
    @pytest.mark.parametrize(
        ("value", "every"),
        [
            (None, [None, None, None]),
            (5.0, [5.0, 5.0, 5.0]),
            ([1.0, 2.0], [1.0, 2.0, 1.0]),
            ("0.01+0.1", [0.01, 0.1, 0.01]),
            ("1e9", [1e9, 1e9, 1e9]),
        ],
    )
    def test_lists_are_gone_through_again_and_again(self, value: Any, every: list[float | None]) -> None:
        assert each(value, 3) == every

    @pytest.mark.parametrize(
        ("queue", "meant"),
        [
            (None, None),
            ("bfifo:250000", QUEUE),
            ("pfifo:1e3", {"kind": "pfifo", "limit": 1000}),
            (QUEUE, QUEUE),
        ],
    )
    def test_mininet_writes_a_queue_in_a_word(self, queue: Any, meant: Any) -> None:
        assert queue_of(queue) == meant

    @given(st.integers(0, 20_000_000))
    def test_halves_are_whole_microseconds_and_add_up(self, rtt_us: int) -> None:
        out_us, back_us = (round(part * 1e6, 6) for part in halves(rtt_us / 1e6))
        assert out_us + back_us == rtt_us
        assert out_us - back_us in (0, 1)
