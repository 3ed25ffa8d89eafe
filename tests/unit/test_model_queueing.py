"""Queues, the path and the metrics of RFC 6349, by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.model import path, pressure, queueing, rfc6349
from tests.model_settings import MIB, ample

BDP = 25e6
PATH = (1e9, 0.2)
LOSS_BASED = st.sampled_from(["cubic", "reno", "scalable", "made_up"])


class TestPath:
    def test_bdp(self) -> None:
        assert path.bdp_bytes(*PATH) == BDP

    @pytest.mark.parametrize(("mtu", "mss"), [(1500, 1448), (9000, 8948), (576, 524)])
    def test_segment_with_timestamps(self, mtu: int, mss: int) -> None:
        assert path.mss_bytes(mtu) == mss
        assert path.packet_bytes(mtu) == mtu + 14
        assert path.payload_share(mtu) == mss / (mtu + 14)

    def test_a_real_ethernet_adds_24_bytes(self) -> None:
        assert path.payload_share(1500, path.ETHERNET_EXTRA_BYTES) == 1448 / 1538

    def test_full_queue(self) -> None:
        assert path.queue_delay_s(BDP, 1e9) == pytest.approx(0.2)
        assert path.rtt_range(*PATH, BDP) == (0.2, pytest.approx(0.4))


class TestLeastQueue:
    @pytest.mark.parametrize(
        ("cc", "bdps"), [("reno", 1.0), ("cubic", 307 / 717), ("bbr", 0.25), ("scalable", 1 / 7)]
    )
    def test_of_one_flow(self, cc: str, bdps: float) -> None:
        assert queueing.least_queue_bytes(cc, *PATH) == pytest.approx(bdps * BDP)

    def test_of_many_falls_with_the_root_of_their_number(self) -> None:
        assert queueing.least_queue_bytes("reno", *PATH, flows=100) == pytest.approx(BDP / 10)

    @given(LOSS_BASED, st.integers(1, 1000))
    def test_leaves_a_full_pipe_after_a_drop(self, cc: str, flows: int) -> None:
        queue = queueing.least_queue_bytes(cc, *PATH, flows=flows)
        standing = queueing.standing_queue_bytes(cc, *PATH, queue, flows)
        # it empties just when a drop comes: the mean is half of it
        assert standing == pytest.approx(queue / 2, rel=0.01)


class TestStandingQueue:
    def test_of_reno_in_two_bdps(self) -> None:
        """It falls from 3 BDP to 1.5: between 0.5 and 2 stand."""
        assert queueing.standing_queue_bytes("reno", *PATH, 2 * BDP) == pytest.approx(1.25 * BDP)

    def test_of_bbr(self) -> None:
        assert queueing.standing_queue_bytes("bbr", *PATH, 4 * BDP) == 0
        assert queueing.standing_queue_bytes("bbr", *PATH, 4 * BDP, flows=2) == BDP
        assert queueing.standing_queue_bytes("bbr", *PATH, 0.5 * BDP, flows=2) == 0.5 * BDP

    @given(st.sampled_from(["cubic", "reno", "bbr", "made_up"]), st.floats(0, 1e9), st.integers(1, 1000))
    def test_is_within_the_queue(self, cc: str, queue: float, flows: int) -> None:
        assert 0 <= queueing.standing_queue_bytes(cc, *PATH, queue, flows) <= queue


class TestRfc6349:
    def test_ideal(self) -> None:
        assert rfc6349.ideal_throughput_bps(1e9, 1500) == pytest.approx(956.4e6, rel=1e-3)
        assert path.bdp_bytes(*PATH) == BDP

    def test_transfer_time_ratio(self) -> None:
        assert rfc6349.transfer_time_ratio(12.0, 1.25e9, 1e9) == pytest.approx(1.2)

    def test_efficiency(self) -> None:
        """Section 4.2: 102 000 bytes sent, 2000 of them again, are 98.04 %."""
        assert rfc6349.efficiency_percent(102_000, 2000) == pytest.approx(98.04, abs=0.005)

    def test_buffer_delay(self) -> None:
        """Section 4.3: 25 ms, 32 ms in the transfer: 28 %."""
        assert rfc6349.buffer_delay_percent(0.032, 0.025) == pytest.approx(28)


class TestPressure:
    def test_thresholds_are_as_the_kernel_s_own_stand_to_each_other(self) -> None:
        assert pressure.thresholds_bytes(6_000_000) == (3_000_000, 4_000_000, 6_000_000)

    def test_ample_memory_leaves_the_send_buffers(self) -> None:
        assert pressure.send_window_bytes(ample(), 123_456) == 123_456
        assert pressure.send_window_bytes(ample(tcp_mem_bytes=2**40), 123_456) == 123_456

    @given(st.integers(2**16, 2**42), st.floats(1, 100), st.integers(1, 1000))
    def test_more_memory_never_leaves_less(self, size: int, factor: float, flows: int) -> None:
        less, more = (
            pressure.send_window_bytes(ample(tcp_mem_bytes=int(of), flows=flows), 10 * MIB)
            for of in (size, size * factor)
        )
        assert 0 <= less <= more <= 10 * MIB

    def test_the_flows_share_what_is_left(self) -> None:
        one, ten = (
            pressure.send_window_bytes(ample(tcp_mem_bytes=8 * MIB, flows=flows), 2**30) for flows in (1, 10)
        )
        assert one < 8 * MIB
        assert ten == pytest.approx(one / 10, rel=0.001)

    def test_memory_of_both_ends(self) -> None:
        """A whole segment of 45 packets and its 832 bytes here, 45 packets with 832 each there."""
        held = pressure.memory_bytes(ample(), 45 * 1448, flows=2)
        assert held == pytest.approx(2 * (45 * 1448 + 832 + 45 * (1448 + 832)))
        assert math.isclose(pressure.memory_bytes(ample(), 0, 5), 0)
