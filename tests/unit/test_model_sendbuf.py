"""The send buffer: how large it becomes, and what of it is in flight."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import memory
from lab.model import sendbuf
from lab.model.inputs import Setting
from lab.model.path import access_bps, mss_bytes
from lab.qdisc import burst_bytes
from tests.model_settings import L61, L612, MIB, ample, settings, triple

AMPLE_WINDOW = 2**30


def flight(setting: Setting) -> int:
    return sendbuf.flight(setting, AMPLE_WINDOW).mean_bytes


class TestSize:
    def test_follows_cwnd_up_to_the_third_value(self) -> None:
        assert sendbuf.sndbuf_bytes(ample(wmem=memory.DEFAULTS["wmem"])) == 4194304

    @pytest.mark.parametrize(
        ("asked", "wmem_max", "size"),
        [
            (100_000, 212992, 200_000),  # doubled
            (MIB, 212992, 425984),  # cut to wmem_max, then doubled
            (MIB, 4 * MIB, 2 * MIB),
            (1, 212992, 4608),  # SOCK_MIN_SNDBUF
        ],
    )
    def test_that_the_application_sets_is_doubled_and_cut(self, asked: int, wmem_max: int, size: int) -> None:
        assert sendbuf.sndbuf_bytes(ample(sndbuf_bytes=asked, wmem_max_bytes=wmem_max)) == size

    def test_overhead_of_a_segment_grew_once(self) -> None:
        assert sendbuf.overhead_bytes(ample(release=L61)) == 768
        assert sendbuf.overhead_bytes(ample(release=L612)) == 832


class TestSegments:
    """Segments of up to 64 KiB, less in a small window: tcp_xmit_size_goal(), tcp_bound_to_half_wnd()."""

    @pytest.mark.parametrize(
        ("mtu", "window", "size"),
        [
            (1500, 2**30, 45 * 1448),  # 65215 / 1448 = 45.04
            (9000, 2**30, 7 * 8948),
            (1500, 65536, 22 * 1448),  # half of it
            (1500, 1000, 1448),  # one, however small
            (65535, 2**30, 65483),
        ],
    )
    def test_are_whole_numbers_of_packets(self, mtu: int, window: int, size: int) -> None:
        assert sendbuf.skb_bytes(ample(mtu_bytes=mtu), window) == size

    @pytest.mark.parametrize(
        ("rtt_s", "pace", "size"),
        [
            (0.2, 125e6, 65215),  # over 64 KiB a millisecond
            (0.2, 25e6, 25e6 / 1024),
            (0.2, 1e6, 2 * 1448),  # two at least: tcp_min_tso_segs
            (0.001, 1e6, 1e6 / 1024 + (65215 >> 1)),  # more where the RTT is short: tcp_tso_rtt_log
        ],
    )
    def test_leave_in_bursts_of_a_millisecond(self, rtt_s: float, pace: float, size: float) -> None:
        assert sendbuf.tso_bytes(ample(rtt_s=rtt_s), pace) == pytest.approx(size)


class TestFlight:
    @pytest.mark.parametrize(
        "wmem_mib",
        [4, 16, 25, 50, 100],
    )
    def test_of_a_large_buffer_is_two_thirds_and_a_segment(self, wmem_mib: int) -> None:
        size = wmem_mib * MIB
        share = 65160 / (65160 + 832)
        assert flight(ample(wmem=triple(size))) == pytest.approx((size * 2 / 3 + 65160) * share, rel=0.02)

    def test_measured(self) -> None:
        """25 MiB at 1 Gbit/s x 200 ms: 690.3 Mbit/s, docs/theory.md."""
        held = flight(ample(wmem=memory.Triple(25 * MIB, 25 * MIB, 25 * MIB)))
        assert held * 8 / 0.2 == pytest.approx(690.3e6, rel=0.01)

    @given(settings(plain=True))
    def test_is_positive_and_no_more_than_the_buffer_and_what_overshoots_it(self, setting: Setting) -> None:
        found = sendbuf.flight(setting, AMPLE_WINDOW)
        bucket = burst_bytes(access_bps(setting.rate_bps), setting.mtu_bytes, setting.offloads)
        assert 0 < found.mean_bytes <= sendbuf.sndbuf_bytes(setting) + 6 * 65536 + bucket
        assert found.burst_bytes > 0

    @given(settings(), st.integers(1, 2**30))
    def test_of_any_setting_is_a_number(self, setting: Setting, window: int) -> None:
        found = sendbuf.flight(setting, window)
        assert found.mean_bytes >= 0
        assert found.burst_bytes >= 0

    @given(settings(plain=True), st.integers(2 * MIB + 1, memory.LARGEST_BYTES), st.floats(1, 100))
    def test_grows_with_a_large_buffer(self, setting: Setting, size: int, factor: float) -> None:
        larger = min(memory.LARGEST_BYTES, int(size * factor))
        less, more = (flight(replace(setting, wmem=triple(of))) for of in (size, larger))
        assert less <= more

    @given(settings(plain=True))
    def test_is_the_same_each_time(self, setting: Setting) -> None:
        assert sendbuf.flight(setting, AMPLE_WINDOW) == sendbuf.flight(setting, AMPLE_WINDOW)

    def test_segments_end_at_tcp_notsent_lowat(self) -> None:
        less, more = (flight(ample(wmem=triple(4 * MIB), notsent_lowat_bytes=size)) for size in (4096, 2**20))
        assert less < more == flight(ample(wmem=triple(4 * MIB)))

    def test_of_one_flow_is_not_more_where_there_are_several(self) -> None:
        one, four = (flight(ample(wmem=triple(MIB), flows=flows, rate_bps=1e8)) for flows in (1, 4))
        assert four <= one * 1.01


class TestHandComputed:
    def test_buffer_of_less_than_a_segment_sends_one_refill_a_round_trip(self) -> None:
        """4608 bytes are full of one segment, and hold nothing else until it is acknowledged."""
        setting = ample(sndbuf_bytes=1, wmem_max_bytes=4608, rate_bps=1e8, cc="bbr")
        assert mss_bytes(1500) <= flight(setting) <= 3 * 45 * mss_bytes(1500)
