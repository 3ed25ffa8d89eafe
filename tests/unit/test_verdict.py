"""The verdict on made-up records: each limit by itself, several at once, and records with gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.model.limits import (
    APPLICATION,
    HYSTART,
    LIMITS,
    LINK,
    LOSS,
    PACING,
    QUEUE,
    RECEIVE_WINDOW,
    SEND_BUFFER,
    SLOW_START,
)
from lab.verdict import Load, Verdict, Way, judge

Row = dict[str, Any]

RATE_BPS, RTT_S, END_S, INTERVAL_S = 100e6, 0.1, 10.0, 0.1
MSS = 1448
COUNT = 101
FULL_BYTES = RATE_BPS / 8 * INTERVAL_S
"""What a busy bottleneck sends between two samples."""
LOAD = Load(rate_bps=RATE_BPS, rtt_s=RTT_S, packet_bytes=1514, begin_s=0.0, steady_s=1.0, end_s=END_S)


def sender(at: int, *, flow: int = 0, **values: Any) -> Row:
    """Return a sample of a sender that is busy all the time, whose cwnd is full and was never cut."""
    return {
        **{"flow": flow, "end": "sender", "t_s": at * INTERVAL_S, "cc": "cubic"},
        **{"tcpi_busy_time": round(at * INTERVAL_S * 1e6), "tcpi_rwnd_limited": 0, "tcpi_sndbuf_limited": 0},
        **{"tcpi_total_retrans": 0, "tcpi_lost": 0, "tcpi_sacked": 0, "tcpi_retrans": 0, "tcpi_ca_state": 0},
        **{"tcpi_snd_cwnd": 100, "tcpi_snd_ssthresh": 50, "tcpi_unacked": 100, "tcpi_snd_mss": MSS},
        **{"tcpi_snd_wnd": 1000 * MSS, "skmem_wmem_queued": 200_000, "skmem_sndbuf": 2_000_000},
        **values,
    }


def senders(count: int = COUNT, *, flow: int = 0, **values: Any) -> list[Row]:
    """Return samples of a sender; what is callable is asked for its value at each."""
    return [
        sender(
            at, flow=flow, **{name: value(at) if callable(value) else value for name, value in values.items()}
        )
        for at in range(count)
    ]


def growing(share: float) -> Any:
    """Return a counter of microseconds that grows by a share of the time."""
    return lambda at: round(share * at * INTERVAL_S * 1e6)


def queue(busy: Sequence[float] = (0.5,) * 100, drops: Sequence[int] = (0,) * 101) -> list[Row]:
    """Return samples of the bottleneck. busy: share of the rate in each interval; drops: counted so far."""
    sent = [0.0]
    for share in busy:
        sent.append(sent[-1] + share * FULL_BYTES)
    return [
        {"t_s": at * INTERVAL_S, "bytes": int(so_far), "drops": dropped}
        for at, (so_far, dropped) in enumerate(zip(sent, drops, strict=False))
    ]


def whole(limit: str) -> dict[str, Any]:
    return {limit: pytest.approx(1.0)}


class TestWays:
    """Flows of one point that cross different bottlenecks, or have different RTTs."""

    LOAD = replace(LOAD, ways={0: Way(RTT_S, ("a",)), 1: Way(RTT_S, ("b",)), 2: Way(RTT_S, ("a", "b"))})

    def queues(self) -> list[Row]:
        busy, idle = queue(busy=(1.0,) * 100), queue()
        return [{**row, "interface": "a"} for row in busy] + [{**row, "interface": "b"} for row in idle]

    def test_link_of_a_flow_is_one_that_its_data_cross(self) -> None:
        rows = [row for flow in range(3) for row in senders(flow=flow, tcpi_rwnd_limited=growing(1.0))]
        found = judge(rows, self.queues(), self.LOAD)
        by_flow = {
            flow: {
                limit
                for one in found.intervals
                if one["flow"] == flow
                for limit in LIMITS
                if one[f"{limit}_s"]
            }
            for flow in range(3)
        }
        assert by_flow == {0: {LINK}, 1: {RECEIVE_WINDOW}, 2: {LINK}}

    def test_stretch_of_a_flow_is_its_own_rtt(self) -> None:
        """A bottleneck that is busy every other round trip of one flow is not busy for a longer one."""
        queues = [{**row, "interface": "a"} for row in queue(busy=(1.0, 0.0) * 50)]
        ways = {0: Way(0.05, ("a",)), 1: Way(1.0, ("a",))}
        rows = [row for flow in range(2) for row in senders(flow=flow, tcpi_rwnd_limited=growing(1.0))]
        found = judge(rows, queues, replace(LOAD, ways=ways))
        links = [sum(one["link_s"] for one in found.intervals if one["flow"] == flow) for flow in range(2)]
        assert links[0] == pytest.approx(5.0)
        assert links[1] == 0

    def test_busy_is_measured_against_the_rate_of_the_moment(self) -> None:
        """Half of the rate is a busy link while the link has half of its rate."""
        rows = senders(tcpi_rwnd_limited=growing(1.0))
        halved = replace(LOAD, offered_bytes=lambda t_s: t_s * RATE_BPS / 16)
        assert judge(rows, queue(busy=(0.5,) * 100), halved).limit == LINK
        assert judge(rows, queue(busy=(0.5,) * 100), LOAD).limit == RECEIVE_WINDOW

    def test_instants_in_which_nothing_was_offered_are_not_busy(self) -> None:
        nothing = replace(LOAD, offered_bytes=lambda t_s: t_s * 0)
        found = judge(senders(tcpi_rwnd_limited=growing(1.0)), queue(busy=(0.0,) * 100), nothing)
        assert found.limit == RECEIVE_WINDOW


class TestOneLimit:
    def test_receive_window_that_the_kernel_counts(self) -> None:
        found = judge(senders(tcpi_rwnd_limited=growing(0.9)), queue(), LOAD)
        assert (found.limit, found.steady_limit) == (RECEIVE_WINDOW, RECEIVE_WINDOW)
        assert found.shares == whole(RECEIVE_WINDOW)

    def test_send_buffer_that_the_kernel_counts(self) -> None:
        found = judge(senders(tcpi_sndbuf_limited=growing(0.7)), queue(), LOAD)
        assert found.shares == whole(SEND_BUFFER)

    def test_counter_under_half_of_the_time_is_taken_at_its_word_and_no_more(self) -> None:
        found = judge(senders(tcpi_rwnd_limited=growing(0.3), tcpi_total_retrans=1), queue(), LOAD)
        assert found.shares == {
            RECEIVE_WINDOW: pytest.approx(0.3, abs=1e-3),
            LOSS: pytest.approx(0.7, abs=1e-3),
        }
        assert found.limit == LOSS

    def test_both_windows_in_turn(self) -> None:
        rows = senders(
            tcpi_rwnd_limited=lambda at: min(at, 30) * 100_000,
            tcpi_sndbuf_limited=lambda at: max(0, at - 30) * 100_000,
        )
        found = judge(rows, queue(), LOAD)
        assert found.limit == SEND_BUFFER
        assert found.shares == {
            RECEIVE_WINDOW: pytest.approx(0.3, abs=0.02),
            SEND_BUFFER: pytest.approx(0.7, abs=0.02),
        }

    @pytest.mark.parametrize("counter", ["tcpi_rwnd_limited", "tcpi_sndbuf_limited"])
    def test_busy_link_overrules_every_window(self, counter: str) -> None:
        found = judge(senders(**{counter: growing(1.0)}), queue(busy=(1.0,) * 100), LOAD)
        assert found.shares == whole(LINK)

    def test_busy_link_overrules_losses_and_slow_start(self) -> None:
        rows = senders(tcpi_total_retrans=lambda at: at, tcpi_snd_ssthresh=None)
        assert judge(rows, queue(busy=(0.99,) * 100), LOAD).shares == whole(LINK)

    def test_link_that_is_nearly_busy_is_not(self) -> None:
        assert judge(senders(), queue(busy=(0.97,) * 100), LOAD).limit != LINK

    def test_link_that_is_busy_on_average_over_a_round_trip(self) -> None:
        load = Load(**{**vars(LOAD), "rtt_s": 4 * INTERVAL_S})
        found = judge(senders(tcpi_rwnd_limited=growing(0.9)), queue(busy=(1.98, 0, 1.98, 0) * 25), load)
        assert found.limit == LINK

    @pytest.mark.parametrize("ssthresh", [None, 200])
    def test_slow_start_is_cwnd_under_its_threshold(self, ssthresh: int | None) -> None:
        found = judge(senders(tcpi_snd_ssthresh=ssthresh), queue(), LOAD)
        assert found.shares == whole(SLOW_START)

    def test_hystart_is_out_of_slow_start_without_a_loss(self) -> None:
        assert judge(senders(), queue(), LOAD).shares == whole(HYSTART)

    def test_loss_is_a_cut_without_a_drop_of_the_queue(self) -> None:
        found = judge(senders(tcpi_total_retrans=lambda at: at // 10), queue(), LOAD)
        assert found.limit == LOSS
        assert found.shares[LOSS] == pytest.approx(0.9, abs=0.02)
        assert found.shares[HYSTART] == pytest.approx(0.1, abs=0.02)

    def test_queue_is_a_cut_with_a_drop_just_before(self) -> None:
        drops = [at // 10 * 3 for at in range(101)]
        found = judge(senders(tcpi_total_retrans=lambda at: at // 10 * 3), queue(drops=drops), LOAD)
        assert found.limit == QUEUE
        assert found.shares[QUEUE] == pytest.approx(0.9, abs=0.02)

    def test_drop_long_before_a_cut_is_not_its_cause(self) -> None:
        rows = senders(tcpi_total_retrans=lambda at: int(at >= 50))
        found = judge(rows, queue(drops=[int(at >= 20) for at in range(101)]), LOAD)
        assert QUEUE not in found.shares
        assert found.shares[LOSS] == pytest.approx(0.5, abs=0.02)

    def test_losses_found_in_the_recovery_from_a_drop_are_still_the_queue_s(self) -> None:
        rows = senders(
            tcpi_total_retrans=lambda at: max(0, min(at, 60) - 20),
            tcpi_ca_state=lambda at: 3 if 20 <= at <= 60 else 0,
        )
        found = judge(rows, queue(drops=[3 * int(at >= 20) for at in range(101)]), LOAD)
        assert LOSS not in found.shares
        assert found.shares[QUEUE] == pytest.approx(0.8, abs=0.02)

    def test_segments_held_for_lost_count_before_they_are_sent_again(self) -> None:
        found = judge(senders(tcpi_lost=lambda at: int(at >= 50)), queue(), LOAD)
        assert found.shares[LOSS] == pytest.approx(0.5, abs=0.02)

    def test_application_is_the_time_with_nothing_under_way(self) -> None:
        found = judge(senders(tcpi_busy_time=growing(0.4)), queue(), LOAD)
        assert found.limit == APPLICATION
        assert found.shares[APPLICATION] == pytest.approx(0.6, abs=0.002)

    @pytest.mark.parametrize("hz", [100, 250, 1000])
    def test_ticks_of_the_kernel_s_clock_are_not_idleness(self, hz: int) -> None:
        """The kernel counts busy time in ticks: 28 ms, then 32 ms, where a sample comes every 30 ms."""
        tick_us = 1_000_000 // hz
        rows = [
            {**row, "t_s": at * 0.03, "tcpi_busy_time": at * 30_000 // tick_us * tick_us}
            for at, row in enumerate(senders())
        ]
        load = Load(**{**vars(LOAD), "end_s": 3.0, "steady_s": 0.3})
        assert judge(rows, queue(), load).shares == whole(HYSTART)

    def test_application_that_pauses_once(self) -> None:
        rows = senders(tcpi_busy_time=lambda at: (min(at, 40) + max(0, at - 60)) * 100_000)
        found = judge(rows, queue(), LOAD)
        assert found.shares[APPLICATION] == pytest.approx(0.2, abs=0.002)
        idle = [one["t_s"] for one in found.intervals if one["application_s"] > 0.05]
        assert (min(idle), max(idle)) == (pytest.approx(4.1), pytest.approx(6.0))

    def test_application_that_was_idle_before_the_load(self) -> None:
        """A greeting of 200 ms long before the load, as iperf3's, is no time under way in it."""
        rows = senders(tcpi_busy_time=lambda at: 200_000 * (at > 1) + max(0, at - 50) * 100_000)
        found = judge(rows, queue(), Load(**{**vars(LOAD), "begin_s": 5.0, "steady_s": 5.5}))
        assert found.shares == whole(HYSTART)

    def test_sender_that_has_finished_is_not_idle_in_the_load(self) -> None:
        rows = senders(tcpi_busy_time=lambda at: round(min(at * INTERVAL_S, 9.35) * 1e6))
        found = judge(rows, queue(), Load(**{**vars(LOAD), "end_s": 9.35}))
        assert found.shares == whole(HYSTART)


class TestWindowsThatTheKernelDoesNotName:
    def test_receive_window_that_is_full(self) -> None:
        rows = senders(tcpi_snd_cwnd=300, tcpi_unacked=100, tcpi_snd_wnd=100 * MSS)
        assert judge(rows, queue(), LOAD).shares == whole(RECEIVE_WINDOW)

    def test_send_buffer_that_is_full(self) -> None:
        rows = senders(tcpi_snd_cwnd=300, skmem_wmem_queued=1_500_000)
        assert judge(rows, queue(), LOAD).shares == whole(SEND_BUFFER)

    def test_neither_is_full_and_cwnd_has_room(self) -> None:
        assert judge(senders(tcpi_snd_cwnd=300), queue(), LOAD).limit == HYSTART

    def test_full_window_does_not_count_where_cwnd_is_full_as_well(self) -> None:
        assert judge(senders(tcpi_snd_wnd=100 * MSS), queue(), LOAD).limit == HYSTART

    def test_what_was_lost_and_acknowledged_selectively_is_not_under_way(self) -> None:
        rows = senders(
            tcpi_unacked=140,
            tcpi_sacked=40,
            tcpi_lost=10,
            tcpi_retrans=10,
            tcpi_snd_cwnd=300,
            tcpi_snd_wnd=150 * MSS,
        )
        assert RECEIVE_WINDOW not in judge(rows, queue(), LOAD).shares


class TestPaced:
    def test_startup_of_bbr_is_slow_start(self) -> None:
        rows = senders(cc="bbr", bbr_pacing_gain=739)
        assert judge(rows, queue(), LOAD).shares == whole(SLOW_START)

    @pytest.mark.parametrize("gain", [88, 192, 256, 320])
    def test_with_room_everywhere_pacing_binds(self, gain: int) -> None:
        rows = senders(cc="bbr", bbr_pacing_gain=gain, tcpi_snd_cwnd=300)
        assert judge(rows, queue(), LOAD).shares == whole(PACING)

    def test_window_that_binds_now_and_then_sets_the_pace(self) -> None:
        rows = senders(cc="bbr", bbr_pacing_gain=256, tcpi_sndbuf_limited=growing(0.2))
        assert judge(rows, queue(), LOAD).shares == whole(SEND_BUFFER)

    def test_few_losses_do_not_hold_it(self) -> None:
        sent = {"tcpi_bytes_sent": lambda at: at * 10_000, "tcpi_bytes_retrans": lambda at: at * 500}
        rows = senders(cc="bbr", bbr_pacing_gain=256, tcpi_total_retrans=lambda at: at, **sent)
        assert judge(rows, queue(), LOAD).limit == PACING

    def test_many_do(self) -> None:
        sent = {"tcpi_bytes_sent": lambda at: at * 10_000, "tcpi_bytes_retrans": lambda at: at * 2500}
        rows = senders(cc="bbr", bbr_pacing_gain=256, tcpi_total_retrans=lambda at: at, **sent)
        assert judge(rows, queue(), LOAD).limit == LOSS


class TestIntervals:
    def test_have_the_columns_of_the_table(self) -> None:
        found = judge(senders(), queue(), LOAD)
        assert len(found.intervals) == 100
        assert set(found.intervals[0]) == {"flow", "t_s", "span_s", *(f"{limit}_s" for limit in LIMITS)}

    def test_are_cut_to_the_load(self) -> None:
        load = Load(**{**vars(LOAD), "begin_s": 0.25, "end_s": 9.35})
        found = judge(senders(tcpi_rwnd_limited=growing(1.0)), queue(), load)
        spans = [one["span_s"] for one in found.intervals]
        assert sum(spans) == pytest.approx(9.1)
        assert (spans[0], spans[-1]) == (pytest.approx(0.05), pytest.approx(0.05))
        assert max(one["t_s"] for one in found.intervals) == 9.35
        assert found.shares == whole(RECEIVE_WINDOW)

    def test_time_before_the_first_data_is_no_limit(self) -> None:
        """The load begins within an interval, whose busy time reaches back to its begin only."""
        load = Load(**{**vars(LOAD), "begin_s": 0.55})
        rows = senders(tcpi_busy_time=lambda at: max(0, round((at * INTERVAL_S - 0.55) * 1e6)))
        assert APPLICATION not in judge(rows, queue(), load).shares

    def test_steady_limit_is_of_the_steady_part(self) -> None:
        rows = senders(
            tcpi_snd_ssthresh=lambda at: None if at <= 60 else 50,
            tcpi_rwnd_limited=lambda at: max(0, at - 60) * 100_000,
        )
        found = judge(rows, queue(), Load(**{**vars(LOAD), "steady_s": 6.0}))
        assert (found.limit, found.steady_limit) == (SLOW_START, RECEIVE_WINDOW)

    def test_of_two_flows_are_told_apart(self) -> None:
        rows = senders(tcpi_rwnd_limited=growing(1.0)) + senders(flow=1, tcpi_snd_ssthresh=None)
        found = judge(rows, queue(), LOAD)
        assert found.shares == {
            RECEIVE_WINDOW: pytest.approx(0.5, abs=1e-3),
            SLOW_START: pytest.approx(0.5, abs=1e-3),
        }
        assert {one["flow"]: one["receive_window_s"] > 0 for one in found.intervals} == {0: True, 1: False}

    def test_order_of_the_rows_of_several_flows_is_nothing(self) -> None:
        rows = senders(tcpi_rwnd_limited=growing(0.6)) + senders(flow=1, tcpi_snd_ssthresh=None)
        mixed = sorted(rows, key=lambda row: (row["t_s"], -row["flow"]))
        assert judge(mixed, queue(), LOAD) == judge(rows, queue(), LOAD)

    def test_receivers_are_not_judged(self) -> None:
        rows = senders(tcpi_rwnd_limited=growing(1.0))
        receivers = [{**sender(at), "end": "receiver"} for at in range(COUNT)]
        assert judge([*rows, *receivers], queue(), LOAD) == judge(rows, queue(), LOAD)


class TestGaps:
    @pytest.mark.parametrize("rows", [[], senders(1), [{"flow": 0, "end": "sender", "t_s": 0.0, "cc": ""}]])
    @pytest.mark.parametrize("queues", [[], queue()[:1], queue()])
    def test_nothing_to_judge(self, rows: list[Row], queues: list[Row]) -> None:
        found = judge(rows, queues, LOAD)
        assert (found.shares, found.intervals) == ({}, [])
        assert found.limit in LIMITS

    @pytest.mark.parametrize("queues", [[], queue()[:1]])
    def test_without_a_queue_the_sockets_are_judged(self, queues: list[Row]) -> None:
        assert judge(senders(tcpi_rwnd_limited=growing(1.0)), queues, LOAD).shares == whole(RECEIVE_WINDOW)
        lossy = senders(tcpi_total_retrans=lambda at: at)
        assert judge(lossy, queues, LOAD).limit == LOSS

    def test_samples_outside_the_load(self) -> None:
        load = Load(**{**vars(LOAD), "begin_s": 20.0, "steady_s": 21.0, "end_s": 30.0})
        assert judge(senders(), queue(), load).shares == {}

    @pytest.mark.parametrize(
        "name",
        ["tcpi_snd_ssthresh", "tcpi_lost", "tcpi_sacked", "tcpi_retrans", "tcpi_snd_wnd", "tcpi_ca_state"],
    )
    def test_field_that_a_kernel_does_not_have(self, name: str) -> None:
        rows = senders(tcpi_total_retrans=lambda at: at // 10)
        missing = [{key: value for key, value in row.items() if key != name} for row in rows]
        null = [{**row, name: None} for row in rows]
        assert sum(judge(missing, queue(), LOAD).shares.values()) == pytest.approx(1)
        if name != "tcpi_ca_state":  # never null: a byte of every struct tcp_info
            assert judge(null, queue(), LOAD) == judge(missing, queue(), LOAD)

    def test_queue_that_counts_nothing(self) -> None:
        rows = [{**row, "bytes": None, "drops": None} for row in queue()]
        assert judge(senders(), rows, LOAD).limit == HYSTART


@st.composite
def records(draw: st.DrawFn) -> tuple[list[Row], list[Row], Load]:
    """Draw records of any course: counters never fall, and all else is anything."""
    count = draw(st.integers(2, 12))
    steps = st.lists(st.floats(0.001, 1.0), min_size=count, max_size=count)
    rows: list[Row] = []
    for flow in range(draw(st.integers(1, 2))):
        t_s, busy, window, buffer, again = 0.0, 0, 0, 0, 0
        for step_s in draw(steps):
            t_s += step_s
            parts = draw(st.tuples(*(st.floats(0, 1),) * 3))
            busy += int(step_s * parts[0] * 1e6)
            window += int(step_s * parts[0] * parts[1] * 1e6)
            buffer += int(step_s * parts[0] * (1 - parts[1]) * parts[2] * 1e6)
            again += draw(st.integers(0, 2))
            rows.append(
                sender(
                    0,
                    flow=flow,
                    t_s=t_s,
                    tcpi_busy_time=busy,
                    tcpi_rwnd_limited=window,
                    tcpi_sndbuf_limited=buffer,
                    tcpi_total_retrans=again,
                    tcpi_snd_ssthresh=draw(st.none() | st.integers(2, 1000)),
                    tcpi_snd_cwnd=draw(st.integers(1, 1000)),
                    tcpi_unacked=draw(st.integers(0, 1000)),
                    bbr_pacing_gain=draw(st.none() | st.integers(1, 739)),
                )
            )
    begin_s = draw(st.floats(0, 2))
    end_s = begin_s + draw(st.floats(0.01, 10))
    load = Load(**{**vars(LOAD), "begin_s": begin_s, "steady_s": (begin_s + end_s) / 2, "end_s": end_s})
    return rows, queue(busy=draw(st.lists(st.floats(0, 1), max_size=100))), load


class TestLaws:
    @given(records())
    def test_seconds_of_an_interval_add_up_to_it(
        self, given_records: tuple[list[Row], list[Row], Load]
    ) -> None:
        found: Verdict = judge(*given_records)
        for one in found.intervals:
            seconds = [one[f"{limit}_s"] for limit in LIMITS]
            assert all(spent >= 0 for spent in seconds)
            assert sum(seconds) == pytest.approx(one["span_s"])

    @given(records())
    def test_shares_are_of_the_transfer(self, given_records: tuple[list[Row], list[Row], Load]) -> None:
        rows, queues, load = given_records
        found = judge(rows, queues, load)
        assert all(0 < share <= 1 + 1e-9 for share in found.shares.values())
        assert list(found.shares) == [limit for limit in LIMITS if limit in found.shares]
        if found.shares:
            assert sum(found.shares.values()) == pytest.approx(1)
            assert found.shares[found.limit] == max(found.shares.values())
        spans = {flow: 0.0 for flow in {one["flow"] for one in found.intervals}}
        for one in found.intervals:
            spans[one["flow"]] += one["span_s"]
        assert all(span_s <= load.end_s - load.begin_s + 1e-9 for span_s in spans.values())
