"""Times of transfers: by hand, against Kurose and Ross's closed form, and against the model's own course."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.model import transfers
from tests.model_settings import MIB, ample

RATES = st.floats(1e5, 1e10)
RTTS = st.floats(0, 1)
SIZES = st.integers(1, 10**9)


class TestIdeal:
    def test_is_line_rate_and_the_way_there(self) -> None:
        """10 full packets of 1514 bytes at 1 Mbit/s, half of 100 ms."""
        assert transfers.wire_bytes(14_480) == 15_140
        assert transfers.ideal_s(14_480, 1e6, 0.1) == pytest.approx(0.12112 + 0.05)

    def test_a_last_packet_has_headers_too(self) -> None:
        assert transfers.wire_bytes(14_481) == 15_140 + 67

    def test_of_more_round_trips(self) -> None:
        alone = transfers.ideal_s(14_480, 1e6, 0.1, round_trips=1.5)
        assert alone == pytest.approx(0.12112 + 0.15)


def closed_form_s(packets: int, rate_bps: float, rtt_s: float, first: int) -> float:
    """Return Kurose and Ross's latency with dynamic windows, from the first packet out to the last one in.

    O/R + P (RTT + S/R) - W (2^P - 1) S/R with P stalls, W packets in the first window.
    """
    packet_s = 1514 * 8 / rate_bps
    windows = math.ceil(math.log2(packets / first + 1))
    ever = 1 + math.floor(math.log2((1 + rtt_s / packet_s) / first)) if rtt_s / packet_s + 1 > first else 0
    stalls = max(0, min(ever, windows - 1))
    idle_s = stalls * (rtt_s + packet_s) - first * (2**stalls - 1) * packet_s
    return packets * packet_s + idle_s + rtt_s / 2


class TestAlone:
    @pytest.mark.parametrize(
        ("packets", "rounds"), [(1, 0), (10, 0), (11, 1), (30, 1), (31, 2), (70, 2), (150, 3)]
    )
    def test_doubles_from_ten(self, packets: int, rounds: int) -> None:
        """On a path as fast as this a round is an RTT, and the last window half of one."""
        took_s = transfers.alone_s(packets * 1448, 1e12, 0.1)
        assert took_s == pytest.approx((rounds + 0.5) * 0.1, rel=1e-5)

    @given(st.integers(1, 10**5), RATES, st.floats(1e-4, 1), st.sampled_from([1, 2, 4, 10, 100]))
    def test_is_kurose_and_ross_s_with_that_window(
        self, packets: int, rate_bps: float, rtt_s: float, first: int
    ) -> None:
        took_s = transfers.alone_s(packets * 1448, rate_bps, rtt_s, initial_window=first)
        assert took_s == pytest.approx(closed_form_s(packets, rate_bps, rtt_s, first), rel=1e-9)

    @given(SIZES, RATES, RTTS)
    def test_is_never_under_the_ideal(self, size: int, rate_bps: float, rtt_s: float) -> None:
        assert transfers.alone_s(size, rate_bps, rtt_s) >= transfers.ideal_s(size, rate_bps, rtt_s) * (
            1 - 1e-9
        )

    @given(SIZES, SIZES, RATES, RTTS)
    def test_more_takes_longer(self, one: int, other: int, rate_bps: float, rtt_s: float) -> None:
        less, more = sorted((one, other))
        assert transfers.alone_s(less, rate_bps, rtt_s) <= transfers.alone_s(more, rate_bps, rtt_s) * (
            1 + 1e-9
        )

    @given(SIZES, RATES, RTTS)
    def test_a_window_that_fits_all_is_the_ideal(self, size: int, rate_bps: float, rtt_s: float) -> None:
        took_s = transfers.alone_s(size, rate_bps, rtt_s, initial_window=size)
        assert took_s == pytest.approx(transfers.ideal_s(size, rate_bps, rtt_s))

    def test_without_a_round_trip_is_line_rate(self) -> None:
        assert transfers.alone_s(10**7, 1e8, 0) == pytest.approx(transfers.wire_bytes(10**7) * 8 / 1e8)


class TestPredicted:
    @pytest.mark.parametrize(("rate_bps", "rtt_s"), [(1e9, 0.2), (1e8, 0.05), (1e7, 0.02)])
    @pytest.mark.parametrize("size", [1000, 14_480, 14_481, 10**5, 10**6, 10**7, 10**8])
    def test_agrees_with_slow_start_alone(self, rate_bps: float, rtt_s: float, size: int) -> None:
        course_s = transfers.predicted_s(ample(rate_bps=rate_bps, rtt_s=rtt_s, bytes_each=size))
        packet_s = 1514 * 8 / rate_bps
        away_s = abs(course_s - transfers.alone_s(size, rate_bps, rtt_s))
        assert away_s <= 0.51 * rtt_s + 2 * packet_s

    def test_knows_the_limits(self) -> None:
        """256 KiB of send buffer on 1 Gbit/s x 200 ms: about 9 Mbit/s."""
        small = ample(bytes_each=100 * MIB, sndbuf_bytes=128 * 1024)
        assert transfers.predicted_s(small) > 50 > 10 * transfers.alone_s(100 * MIB, 1e9, 0.2)

    def test_of_several_flows_is_of_each(self) -> None:
        one, four = (transfers.predicted_s(ample(bytes_each=100 * MIB, flows=flows)) for flows in (1, 4))
        assert one < four < 4 * one

    def test_of_nothing_that_arrives_never_ends(self) -> None:
        assert transfers.predicted_s(ample(bytes_each=10**6, loss=1.0)) == math.inf

    def test_needs_a_size(self) -> None:
        with pytest.raises(ValueError, match="bytes_each is None"):
            transfers.predicted_s(ample())
