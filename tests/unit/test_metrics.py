"""Goodput, from samples whose rates are known."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lab import metrics, tcpinfo, traffic
from lab.errors import MeasurementError
from lab.metrics import Delivery


class TestDelivery:
    def test_rate_is_bytes_by_time_in_bits(self) -> None:
        even = Delivery(np.array([0.0, 10.0]), np.array([0.0, 1.25e9]))
        assert even.rate_bps(2, 4) == pytest.approx(1e9)
        assert even.at(5) == pytest.approx(0.625e9)

    def test_is_flat_outside_its_samples(self) -> None:
        even = Delivery(np.array([1.0, 2.0]), np.array([10.0, 20.0]))
        assert (even.at(0), even.at(9)) == (10, 20)


def sample(flow: int, end: str, t_s: float, **values: Any) -> dict[str, Any]:
    usual = {"tcpi_bytes_sent": 0, "tcpi_busy_time": 0, "tcpi_bytes_received": 0, "idiag_rqueue": 0}
    usual |= {"tcpi_total_retrans": 0, "tcpi_min_rtt": None}
    return {"flow": flow, "end": end, "t_s": t_s, "cc": "cubic", **usual, **values}


def outcome(*finished_ns: int | None, tcp_info: bytes | None = None) -> dict[str, Any]:
    info = None if tcp_info is None else tcp_info.hex()
    flows = [
        {"flow": number, "port": 40000 + number, "finished_ns": end, "tcp_info": info}
        for number, end in enumerate(finished_ns)
    ]
    return {"start_ns": 5 * 10**9, "workload": {"flows": flows}}


def planned(*sizes: int | None, start_s: float = 0.0, stop_s: float | None = None) -> list[traffic.Flow]:
    usual = {"kind": traffic.LASTING, "cc": "cubic", "src": "snd", "dst": "rcv", "rtt_s": 0.2}
    return [
        traffic.Flow(
            number=number,
            bottlenecks=("r1-eth1",),
            start_s=start_s,
            stop_s=stop_s,
            size_bytes=size,
            **usual,  # type: ignore[arg-type]
        )
        for number, size in enumerate(sizes)
    ]


ONE = planned(None)


def even_flow(flow: int, rate_bps: float, begin_s: float = 0.0, seconds: int = 10) -> list[dict[str, Any]]:
    rows = []
    for t_s in range(seconds + 1):
        busy_s = max(0.0, t_s - begin_s)
        read = int(busy_s * rate_bps / 8)
        rows.append(
            sample(
                flow,
                "sender",
                t_s,
                tcpi_bytes_sent=read,
                tcpi_busy_time=int(busy_s * 1e6),
                tcpi_min_rtt=200_000,
            )
        )
        rows.append(sample(flow, "receiver", t_s, tcpi_bytes_received=read))
    return rows


class TestFlows:
    def test_reads_a_flow(self) -> None:
        rows = even_flow(0, 8e6, begin_s=0.25)
        rows[-2] |= {"cc": "bbr", "tcpi_total_retrans": 7, "tcpi_min_rtt": 199_000}
        (flow,) = metrics.flows(rows, outcome(None), ONE)
        assert (flow.number, flow.cc, flow.retransmits, flow.min_rtt_s) == (0, "bbr", 7, 0.199)
        assert flow.first_data_s == pytest.approx(0.25)
        assert flow.finished_s is None
        assert flow.delivery.rate_bps(2, 10) == pytest.approx(8e6)

    def test_counts_what_the_application_has_read(self) -> None:
        rows = even_flow(0, 8e6)
        for row in rows:
            row["idiag_rqueue"] = 300 if row["tcpi_bytes_received"] else 0
        (flow,) = metrics.flows(rows, outcome(None), ONE)
        assert flow.delivery.at(10) == 10e6 - 300

    def test_greeting_before_the_load_is_neither_counted_nor_its_begin(self) -> None:
        """iperf3 sends a cookie of 37 bytes on every connection before it starts."""
        rows = even_flow(0, 8e6, begin_s=2.5)
        for row in rows:
            if row["end"] == "receiver":
                row["tcpi_bytes_received"] += 37
            else:
                row["tcpi_bytes_sent"] += 37
                row["tcpi_busy_time"] += 200_000
        (flow,) = metrics.flows(rows, outcome(None), ONE)
        assert flow.first_data_s == pytest.approx(2.5)
        assert flow.delivery.at(2.5) == 0
        assert flow.delivery.at(10) == 7.5e6

    def test_greeting_alone_is_no_data(self) -> None:
        rows = [row | ({"tcpi_bytes_sent": 37} if row["end"] == "sender" else {}) for row in even_flow(0, 0)]
        with pytest.raises(MeasurementError, match="flow 0 sent no data"):
            metrics.flows(rows, outcome(None), ONE)

    def test_two_flows_are_told_apart_and_summed(self) -> None:
        rows = even_flow(0, 8e6) + even_flow(1, 2e6, begin_s=4.0)
        one, other = metrics.flows(rows, outcome(None, None), planned(None, None))
        assert (one.delivery.at(10), other.delivery.at(10)) == (10e6, 1.5e6)
        assert other.first_data_s == pytest.approx(4.0)
        whole = metrics.total([one, other])
        assert whole.at(10) == 11.5e6
        assert whole.rate_bps(0, 4) == pytest.approx(8e6)
        assert whole.rate_bps(4, 10) == pytest.approx(10e6)

    def test_total_takes_samples_at_different_instants(self) -> None:
        one, other = metrics.flows(
            even_flow(0, 8e6, seconds=4) + even_flow(1, 8e6, seconds=4),
            outcome(None, None),
            planned(None, None),
        )
        one = replace(one, delivery=Delivery(np.array([0.0, 2, 4]), np.array([0.0, 20, 40])))
        other = replace(other, delivery=Delivery(np.array([1.0, 3]), np.array([0.0, 20])))
        whole = metrics.total([one, other])
        assert list(whole.t_s) == [0, 1, 2, 3, 4]
        assert list(whole.delivered) == [0, 10, 30, 50, 60]

    def test_of_a_given_size_ends_when_its_last_byte_was_read(self) -> None:
        rows = even_flow(0, 8e6)
        size = 4_500_000
        for row in rows:
            row["tcpi_bytes_received"] = min(row["tcpi_bytes_received"], size)
        (flow,) = metrics.flows(rows, outcome(9_500_000_000), planned(size))
        assert flow.finished_s == pytest.approx(4.5)
        assert flow.delivery.at(4.5) == size
        assert float(flow.delivery.t_s[-1]) == 4.5
        assert flow.delivery.rate_bps(0, 4.5) == pytest.approx(8e6)

    def test_of_a_given_size_that_did_not_finish_keeps_its_samples(self) -> None:
        (flow,) = metrics.flows(even_flow(0, 8e6), outcome(None), planned(10**9))
        assert flow.finished_s is None
        assert flow.delivery.at(10) == 10e6

    def test_headers_do_not_count_over_the_size(self) -> None:
        rows = even_flow(0, 8e6)
        (flow,) = metrics.flows(rows, outcome(14_000_000_000), planned(8_999_700))
        assert flow.delivery.at(9) == 8_999_700

    def test_socket_that_is_still_connecting_is_left_out(self) -> None:
        rows = even_flow(0, 8e6)
        young = {"flow": 0, "end": "sender", "t_s": 0.0, "cc": "", "idiag_rqueue": 0, "idiag_wqueue": 0}
        (flow,) = metrics.flows([young, *rows], outcome(None), ONE)
        assert flow.delivery.at(10) == 10e6

    @pytest.mark.parametrize(
        ("keep", "message"),
        [
            (lambda row: row["end"] == "receiver", "flow 0 left no samples at one of its ends"),
            (lambda row: row["end"] == "sender", "flow 0 left no samples at one of its ends"),
            (lambda row: row["t_s"] == 0, "flow 0 sent no data"),
            (lambda _: False, "flow 0 left no samples at one of its ends"),
        ],
    )
    def test_without_samples_is_an_error_and_not_a_zero(
        self, keep: Callable[[dict[str, Any]], bool], message: str
    ) -> None:
        rows = [row for row in even_flow(0, 8e6) if keep(row)]
        with pytest.raises(MeasurementError) as refused:
            metrics.flows(rows, outcome(None), ONE)
        assert str(refused.value) == message

    def test_unknown_least_rtt_is_null(self) -> None:
        rows = [{**row, "tcpi_min_rtt": None} for row in even_flow(0, 8e6)]
        (flow,) = metrics.flows(rows, outcome(None), ONE)
        assert flow.min_rtt_s is None


VALUES = {
    **{"tcpi_total_retrans": 3, "tcpi_bytes_sent": 5000, "tcpi_bytes_retrans": 1000},
    **{"tcpi_min_rtt": 201_000, "tcpi_rtt": 250_000, "tcpi_delivered_ce": 2},
}
INFO = struct.pack(
    "@" + "".join(field.code for field in tcpinfo.TCP_INFO),
    *(VALUES.get(field.name, 0) for field in tcpinfo.TCP_INFO),
)


class TestFleeting:
    """A flow that came and went between two samples has no socket in any of them."""

    def test_is_known_by_the_workload_s_own_account(self) -> None:
        later = planned(4000, start_s=2.0)
        (flow,) = metrics.flows([], outcome(7_500_000_000, tcp_info=INFO), later)
        assert (flow.first_data_s, flow.finished_s, flow.ended_s) == (2.0, 2.5, 2.5)
        assert (flow.delivery.at(2.0), flow.delivery.at(2.5)) == (0, 4000)
        assert (flow.retransmits, flow.bytes_sent, flow.bytes_retrans, flow.ecn_marks) == (3, 5000, 1000, 2)
        assert (flow.cc, flow.min_rtt_s, flow.rtt_s) == ("cubic", 0.201, 0.25)

    def test_may_have_been_there_from_the_start(self) -> None:
        """Its first sample is taken before it has sent anything, and at the second it is gone."""
        rows = [sample(0, end, 0.0) for end in ("sender", "receiver")]
        (flow,) = metrics.flows(rows, outcome(5_000_500_000), planned(2000))
        assert flow.finished_s == pytest.approx(0.0005)
        assert flow.delivery.at(1) == 2000

    def test_that_never_finished_delivered_nothing(self) -> None:
        (flow,) = metrics.flows([], outcome(None), planned(4000, start_s=2.0))
        assert flow.delivery.at(10) == 0
        assert (flow.finished_s, flow.rtt_s, flow.bytes_sent) == (None, None, 0)

    def test_what_it_said_last_is_more_than_its_last_sample(self) -> None:
        rows = even_flow(0, 8e6)
        (flow,) = metrics.flows(rows, outcome(15_000_000_000, tcp_info=INFO), planned(10_000_000))
        assert (flow.retransmits, flow.bytes_retrans) == (3, 1000)

    def test_own_time_ends_with_its_stop(self) -> None:
        (flow,) = metrics.flows(even_flow(0, 8e6), outcome(None), planned(None, stop_s=4.0))
        assert flow.ended_s == 4.0


class TestLoadedRtt:
    def test_is_the_median_of_the_senders_between_two_instants(self) -> None:
        rows = [sample(0, "sender", t_s, tcpi_rtt=1000 * t_s) for t_s in range(11)]
        rows += [sample(0, "receiver", t_s, tcpi_rtt=999_000) for t_s in range(11)]
        assert metrics.loaded_rtt_s(rows, 4, 10) == pytest.approx(0.007)

    @pytest.mark.parametrize("rtt", [None, 0])
    def test_is_null_where_nothing_was_seen(self, rtt: int | None) -> None:
        assert metrics.loaded_rtt_s([sample(0, "sender", 1.0, tcpi_rtt=rtt)], 0, 10) is None
        assert metrics.loaded_rtt_s([sample(0, "sender", 1.0)], 0, 10) is None
        assert metrics.loaded_rtt_s([], 0, 10) is None
