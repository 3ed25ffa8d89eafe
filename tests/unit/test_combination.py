"""A point's own numbers: what its lists stand for, and the queue that its knobs come to."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lab import queues
from lab.combination import AUTO_AQM_PACKETS, Point

MakePoint = Callable[..., Point]


class TestLists:
    def test_rtt_that_sizes_buffers_is_the_mean(self, make_point: MakePoint) -> None:
        point = make_point(rtt="10ms+100ms+40ms")
        assert point.rtts_s == (0.01, 0.1, 0.04)
        assert point.rtt_s == pytest.approx(0.05)
        assert make_point(rtt="10ms").rtts_s == (0.01,)

    def test_controls_are_as_often_as_told(self, make_point: MakePoint) -> None:
        assert make_point(cc="bbr*2+cubic").controls == ("bbr", "bbr", "cubic")
        assert make_point().controls == ("cubic",)

    def test_what_is_not_given_is_none_or_empty(self, make_point: MakePoint) -> None:
        point = make_point()
        assert (point.sizes_each, point.changes("rate_change"), point.loss.share) == (None, (), 0)
        assert make_point(bytes="1MB+2MB").sizes_each == (10**6, 2 * 10**6)


class TestQueue:
    @pytest.mark.parametrize(
        ("knobs", "queue"),
        [
            ({}, {"kind": "bfifo", "limit": 25_000_000}),
            ({"queue": "1000p"}, {"kind": "pfifo", "limit": 1000}),
            ({"qdisc": "pfifo", "queue": "1MB"}, {"kind": "pfifo", "limit": 661}),
            ({"qdisc": "bfifo", "queue": "1000p"}, {"kind": "bfifo", "limit": 1_514_000}),
        ],
    )
    def test_of_a_fifo_counts_what_it_is_told_in(
        self, make_point: MakePoint, knobs: dict[str, str], queue: dict[str, object]
    ) -> None:
        assert make_point(**knobs).queue == queue

    @pytest.mark.parametrize("kind", queues.LIMIT_UNIT)
    def test_of_any_kind_has_a_limit_in_its_own_unit(self, make_point: MakePoint, kind: str) -> None:
        point = make_point(qdisc=kind, queue="151400B", rate="100mbit")
        assert point.queue["limit"] == (151_400 if queues.LIMIT_UNIT[kind] == "bytes" else 100)

    def test_packets_are_as_large_as_the_queue_meets_them(self, make_point: MakePoint) -> None:
        assert make_point(qdisc="red", queue="100p", offloads="on").queue["limit"] == 100 * 65550

    @pytest.mark.parametrize("kind", sorted(queues.TARGETED))
    def test_auto_leaves_an_aqm_room_to_keep_its_queue_short_by_itself(
        self, make_point: MakePoint, kind: str
    ) -> None:
        packets = AUTO_AQM_PACKETS * (1514 if queues.LIMIT_UNIT[kind] == "bytes" else 1)
        assert make_point(qdisc=kind, rate="10mbit", rtt="1ms").queue["limit"] == packets

    def test_auto_is_cut_to_what_sfq_can_hold(self, make_point: MakePoint) -> None:
        assert make_point(qdisc="sfq").queue["limit"] == queues.SFQ_MOST_LIMIT

    def test_only_those_that_have_them_are_told_targets_and_thresholds(self, make_point: MakePoint) -> None:
        told = {
            kind: make_point(qdisc=kind, target="20ms", ce_threshold="1ms", ecn="on").queue
            for kind in queues.LIMIT_UNIT
        }
        assert {kind for kind, queue in told.items() if queue.get("target_s") == 0.02} == queues.TARGETED
        assert {
            kind for kind, queue in told.items() if queue.get("ce_threshold_s") == 0.001
        } == queues.STEPPED
        assert {kind for kind, queue in told.items() if queue.get("ecn")} >= queues.AQM | queues.STEPPED
