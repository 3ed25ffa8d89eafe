"""From a point's records to its measures: each flow over its own time, each measure of what it is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from lab import measured, metrics, traffic
from lab.combination import Point
from lab.measured import Span
from lab.metrics import Delivery
from lab.model.path import payload_share
from lab.model.transfers import ideal_s
from lab.records import Records

MakePoint = Callable[..., Point]
SPAN = Span(0.0, 2.0, 10.0)
INSTANTS = np.linspace(0, 10, 201)


def flow(
    planned: traffic.Flow, rate_bps: float, finished_s: float | None = None, **more: Any
) -> metrics.Flow:
    """Return a flow that delivered at an even rate from its start to its end."""
    until_s = min(finished_s or 10.0, planned.stop_s or 10.0)
    delivered = np.clip(INSTANTS - planned.start_s, 0, until_s - planned.start_s) * rate_bps / 8
    usual = {"retransmits": 0, "bytes_sent": 1000, "bytes_retrans": 0, "ecn_marks": 0}
    return metrics.Flow(
        **{
            **{"planned": planned, "cc": planned.cc, "delivery": Delivery(INSTANTS, delivered)},
            **{"first_data_s": planned.start_s, "finished_s": finished_s, "min_rtt_s": 0.02, "rtt_s": 0.025},
            **usual,
            **more,
        }
    )


def flows_of(point: Point, *rates_bps: float, **more: Any) -> list[metrics.Flow]:
    planned = traffic.flows(point)
    assert len(planned) == len(rates_bps)
    return [flow(one, rate, **more) for one, rate in zip(planned, rates_bps, strict=True)]


def queue_rows(
    interface: str, sent_bps: float, backlog: float, rate_bps: float = 100e6
) -> list[dict[str, Any]]:
    return [
        {
            **{"t_s": float(t_s), "interface": interface, "rate_bps": rate_bps, "bottleneck": True},
            **{"bytes": int(sent_bps * t_s / 8), "backlog_bytes": backlog, "drops": 0},
        }
        for t_s in INSTANTS
    ]


def row(
    point: Point,
    flows: Sequence[metrics.Flow],
    queues: Sequence[dict[str, Any]] = (),
    delays: Sequence[dict[str, Any]] = (),
    span: Span = SPAN,
) -> dict[str, Any]:
    return measured.row(point, flows, Records([], list(queues), list(delays)), span)


@pytest.fixture
def link(make_point: MakePoint) -> Callable[..., Point]:
    """Return a maker of points of 100 Mbit/s and 20 ms that last 10 s."""
    return lambda **knobs: make_point(**{"rate": "100mbit", "rtt": "20ms", "duration": "10s", **knobs})


class TestOwnTime:
    @pytest.mark.parametrize(
        ("knobs", "finished_s", "own"),
        [
            ({}, None, (0.5, 10)),
            ({"start": "3s"}, None, (3, 10)),
            ({"start": "3s", "stop": "6s"}, None, (3, 6)),
            ({"bytes": "1MB"}, 4.0, (0.5, 4)),
            ({"bytes": "1MB", "stop": "6s"}, 4.0, (0.5, 4)),
            ({"bytes": "1GB", "stop": "6s"}, None, (0.5, 6)),
        ],
    )
    def test_begins_with_the_flow_or_the_load_and_ends_with_the_first_to_end(
        self,
        link: MakePoint,
        knobs: dict[str, str],
        finished_s: float | None,
        own: tuple[float, float],
    ) -> None:
        (one,) = flows_of(link(**knobs), 1e6, finished_s=finished_s)
        assert Span(0.5, 2.0, 10.0).own(one) == own


class TestFlowRows:
    def test_goodput_is_over_the_flow_s_own_time(self, link: MakePoint) -> None:
        point = link(start="4s", stop="8s")
        (one,) = flows_of(point, 5e6)
        told = measured.flow_row(point, one, SPAN)
        assert told["goodput_bps"] == pytest.approx(5e6)
        assert told["steady_goodput_bps"] == pytest.approx(5e6 * 4 / 8)
        assert told["delivered_bytes"] == 4 * 5e6 / 8
        assert (told["start_s"], told["stop_s"], told["fct_s"], told["slowdown"]) == (4, 8, None, None)

    def test_completion_time_counts_from_the_start_and_over_an_empty_path(self, link: MakePoint) -> None:
        point = link(bytes="1MB")
        (one,) = flows_of(point, 8e6, finished_s=1.0)
        told = measured.flow_row(point, one, SPAN)
        assert told["fct_s"] == 1.0
        assert told["slowdown"] == pytest.approx(1.0 / ideal_s(1e6, 100e6, 0.02, 1500, 0.5))

    def test_flow_that_comes_later_has_its_handshake_in_the_ideal(self, link: MakePoint) -> None:
        point = link(bytes="1MB", start="2s")
        (one,) = flows_of(point, 8e6, finished_s=3.0)
        told = measured.flow_row(point, one, SPAN)
        assert told["fct_s"] == pytest.approx(1.0)
        assert told["slowdown"] == pytest.approx(1.0 / ideal_s(1e6, 100e6, 0.02, 1500, 1.5))

    def test_way_to_a_star_s_client_is_the_whole_rtt(self, link: MakePoint) -> None:
        point = link(bytes="1MB", topology="star", flows="1")
        (one,) = flows_of(point, 8e6, finished_s=1.0)
        assert measured.flow_row(point, one, SPAN)["slowdown"] == pytest.approx(
            1.0 / ideal_s(1e6, 100e6, 0.02, 1500, 1.0)
        )

    def test_names_hosts_rtt_and_size_as_planned(self, link: MakePoint) -> None:
        point = link(topology="dumbbell", flows="2", rtt="10ms+20ms", bytes="1MB+2MB", cc="bbr+cubic")
        told = [measured.flow_row(point, one, SPAN) for one in flows_of(point, 8e6, 8e6)]
        names = ("src", "dst", "rtt_base_s", "size_bytes", "cc", "kind")
        assert [tuple(one[name] for name in names) for one in told] == [
            ("snd1", "rcv1", 0.01, 10**6, "bbr", "lasting"),
            ("snd2", "rcv2", 0.02, 2 * 10**6, "cubic", "lasting"),
        ]


class TestBottleneck:
    def test_utilisation_is_what_it_sent_of_what_it_could(self, link: MakePoint) -> None:
        point = link()
        told = row(point, flows_of(point, 5e6), queue_rows("r1-eth1", 60e6, 0))
        assert told["utilisation"] == pytest.approx(0.6)

    def test_utilisation_follows_a_rate_that_changes(self, link: MakePoint) -> None:
        point = link(rate_change="5s:50mbit")
        told = row(point, flows_of(point, 5e6), queue_rows("r1-eth1", 60e6, 0))
        assert told["utilisation"] == pytest.approx(0.6 / 0.75)

    def test_several_have_their_mean_and_the_longest_wait(self, link: MakePoint) -> None:
        point = link(topology="parking_lot", bottlenecks="2", flows="3")
        queues = queue_rows("r1-eth0", 100e6, 12_500) + queue_rows("r2-eth1", 50e6, 125_000)
        told = row(point, flows_of(point, 1e6, 1e6, 1e6), queues)
        assert told["utilisation"] == pytest.approx(0.75)
        assert told["queue_delay_s"] == pytest.approx(0.01)
        assert told["queue_delay_p99_s"] == pytest.approx(0.01)

    def test_of_the_way_back_does_not_count(self, link: MakePoint) -> None:
        point = link(reverse="1")
        queues = queue_rows("r1-eth1", 60e6, 0) + queue_rows("r2-eth0", 90e6, 10**6)
        told = row(point, flows_of(point, 1e6, 1e6), queues)
        assert (told["utilisation"], told["queue_delay_s"]) == (pytest.approx(0.6), 0)

    def test_without_rows_there_is_none(self, link: MakePoint) -> None:
        point = link()
        told = row(point, flows_of(point, 1e6))
        assert (told["utilisation"], told["queue_delay_s"]) == (None, None)


class TestFairness:
    def test_is_among_flows_of_one_direction(self, link: MakePoint) -> None:
        point = link(flows="2", reverse="1", cc="bbr+cubic")
        told = row(point, flows_of(point, 5e6, 5e6, 50e6))
        assert told["jain"] == pytest.approx(1)
        assert told["cc_shares"] == {"bbr": pytest.approx(0.5), "cubic": pytest.approx(0.5)}

    def test_of_equal_flows_is_one_and_of_one_alone_none(self, link: MakePoint) -> None:
        point = link(flows="2")
        assert row(point, flows_of(point, 5e6, 5e6))["jain"] == pytest.approx(1)
        assert row(point, flows_of(point, 5e6, 0))["jain"] == pytest.approx(0.5)
        point = link()
        assert row(point, flows_of(point, 5e6))["jain"] is None

    def test_takes_each_flow_over_its_own_time(self, link: MakePoint) -> None:
        point = link(flows="2", start="0s+5s")
        assert row(point, flows_of(point, 5e6, 5e6))["jain"] == pytest.approx(1)

    def test_leaves_out_a_flow_that_hardly_was_there(self, link: MakePoint) -> None:
        point = link(flows="3", start="0s+0s+9.9s")
        assert row(point, flows_of(point, 5e6, 5e6, 0))["jain"] == pytest.approx(1)

    def test_leaves_out_flows_of_a_size(self, link: MakePoint) -> None:
        point = link(flows="2", bytes="1MB")
        assert row(point, flows_of(point, 5e6, 1e6))["jain"] is None

    def test_shares_are_by_control_and_add_up(self, link: MakePoint) -> None:
        point = link(flows="3", cc="bbr*2+cubic")
        shares = row(point, flows_of(point, 2e6, 4e6, 2e6))["cc_shares"]
        assert shares == {"bbr": pytest.approx(0.75), "cubic": pytest.approx(0.25)}

    def test_of_different_rtts_says_who_wins(self, link: MakePoint) -> None:
        point = link(topology="dumbbell", flows="2", rtt="10ms+100ms")
        assert row(point, flows_of(point, 6e6, 2e6))["rtt_unfairness"] == pytest.approx(3)
        assert row(link(flows="2"), flows_of(link(flows="2"), 6e6, 2e6))["rtt_unfairness"] is None


class TestConvergence:
    FAIR = 100e6 * payload_share(1500)

    def test_is_from_the_last_start_until_its_rate_is_fair(self, link: MakePoint) -> None:
        point = link(flows="2", start="0s+3s")
        told = row(point, flows_of(point, self.FAIR / 2, self.FAIR / 2))
        assert told["convergence_s"] == pytest.approx(0, abs=0.1)

    def test_is_none_where_it_never_is_or_nobody_joins(self, link: MakePoint) -> None:
        point = link(flows="2", start="0s+3s")
        assert row(point, flows_of(point, self.FAIR * 0.8, self.FAIR * 0.2))["convergence_s"] is None
        point = link(flows="2")
        assert row(point, flows_of(point, self.FAIR / 2, self.FAIR / 2))["convergence_s"] is None

    def test_share_is_among_those_that_share_the_bottleneck(self, link: MakePoint) -> None:
        """Traffic the other way has a link of its own."""
        point = link(flows="2", start="0s+3s", reverse="2")
        told = row(point, flows_of(point, self.FAIR / 2, self.FAIR / 2, self.FAIR, self.FAIR))
        assert told["convergence_s"] == pytest.approx(0, abs=0.1)


class TestTransfers:
    def test_counts_those_that_finished(self, link: MakePoint) -> None:
        point = link(flows="0", arrivals="every:2s", sizes="1MB")
        every = [
            flow(one, 8e6, finished_s=None if one.number == 3 else one.start_s + 1.0)
            for one in traffic.flows(point)
        ]
        told = row(point, every)
        assert told["flows_finished"] == 3
        assert (told["fct_s"], told["fct_p99_s"]) == (pytest.approx(1.0), pytest.approx(1.0))
        assert told["slowdown"] > 1

    def test_without_a_size_there_are_none(self, link: MakePoint) -> None:
        point = link()
        told = row(point, flows_of(point, 1e6))
        assert (told["flows_finished"], told["fct_s"], told["slowdown"]) == (None, None, None)

    def test_sent_again_is_a_share_of_all_that_was_sent(self, link: MakePoint) -> None:
        point = link(flows="2")
        told = row(point, flows_of(point, 1e6, 1e6, bytes_retrans=10, ecn_marks=4))
        assert (told["retransmit_share"], told["ecn_marks"]) == (0.01, 8)


def sent(kind: str, *taken: tuple[float, float | None]) -> list[dict[str, Any]]:
    return [{"kind": kind, "flow": None, "t_s": t_s, "delay_s": delay_s} for t_s, delay_s in taken]


class TestStreams:
    def test_probe_tells_what_is_beside_the_base_delay(self, link: MakePoint) -> None:
        point = link()
        delays = sent("probe", (1.0, 0.010), (2.0, 0.012), (3.0, 0.030))
        told = row(point, flows_of(point, 1e6), delays=delays)
        assert told["probe_delay_s"] == pytest.approx(0.002)
        assert told["probe_loss"] == 0

    def test_probe_of_a_star_has_the_whole_rtt_before_it(self, link: MakePoint) -> None:
        point = link(topology="star", flows="1")
        told = row(point, flows_of(point, 1e6), delays=sent("probe", (1.0, 0.021)))
        assert told["probe_delay_s"] == pytest.approx(0.001)

    def test_probe_is_never_faster_than_the_path(self, link: MakePoint) -> None:
        point = link()
        assert row(point, flows_of(point, 1e6), delays=sent("probe", (1.0, 0.0099)))["probe_delay_s"] == 0

    def test_lost_are_those_that_others_overtook(self, link: MakePoint) -> None:
        """The end came before the last ones could arrive; that is no loss."""
        point = link()
        delays = sent("probe", (1.0, 0.01), (2.0, None), (3.0, 0.01), (4.0, 0.01), (9.99, None))
        assert row(point, flows_of(point, 1e6), delays=delays)["probe_loss"] == 0.25

    def test_where_none_arrived_all_are_lost(self, link: MakePoint) -> None:
        point = link(udp="1mbit")
        delays = sent("probe", (1.0, None), (2.0, None)) + sent("udp", (1.0, None), (2.0, None))
        told = row(point, flows_of(point, 1e6), delays=delays)
        assert (told["probe_loss"], told["udp_loss"], told["udp_goodput_bps"]) == (1, 1, 0)

    def test_udp_goodput_is_the_payload_that_arrived(self, link: MakePoint) -> None:
        point = link(udp="1mbit")
        delays = sent("udp", *((at / 10, None if at % 10 == 5 else 0.01) for at in range(100)))
        told = row(point, flows_of(point, 1e6), delays=delays)
        assert told["udp_goodput_bps"] == pytest.approx(90 * 1472 * 8 / 10)
        assert told["udp_loss"] == pytest.approx(0.1)

    def test_requests_have_their_whole_time(self, link: MakePoint) -> None:
        point = link(workload="request")
        delays = sent("request", (1.0, 0.05), (2.0, 0.07), (3.0, 0.06))
        told = row(point, flows_of(point, 1e6), delays=delays)
        assert told["request_s"] == pytest.approx(0.06)
        assert told["request_p99_s"] == pytest.approx(0.07, rel=0.01)

    def test_what_was_sent_outside_the_load_does_not_count(self, link: MakePoint) -> None:
        point = link()
        delays = sent("probe", (0.5, 9.0), (2.0, 0.011), (9.5, 9.0))
        told = row(point, flows_of(point, 1e6), delays=delays, span=Span(1.0, 2.0, 9.0))
        assert told["probe_delay_p99_s"] == pytest.approx(0.001)

    def test_without_streams_there_are_none(self, link: MakePoint) -> None:
        point = link()
        told = row(point, flows_of(point, 1e6))
        names = ("probe_delay_s", "probe_loss", "udp_goodput_bps", "udp_loss", "request_s")
        assert [told[name] for name in names] == [None] * len(names)
