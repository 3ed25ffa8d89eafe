"""What flows that share should get: the papers' own numbers, and where their models end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.model.competition import Band, bbr_share, cubic_own_from_segs, rtt_ratio
from lab.model.loss import cubic_own_window_segs, reno_window_segs

SLOW = {"rate_bps": 10e6, "rtt_s": 0.04}
"""The path of Ware and others, figure 8a: 10 Mbit/s x 40 ms, so a BDP of 50 000 bytes."""
BDP = 50_000.0
RATES, RTTS = st.floats(1e5, 1e10), st.floats(1e-3, 1)


class TestBbrShare:
    @pytest.mark.parametrize(
        ("bdps", "flows", "share"),
        [
            # p = max(0, 1/2 - 1/2X - 4N/q), q = 33.03 X packets of 1514 bytes; pauses (0.04 X + 0.24) / 10
            (1, 1, 1.0 * (1 - 0.028)),
            (4, 1, (1 - 0.34472) * (1 - 0.040)),
            (16, 1, (1 - 0.46118) * (1 - 0.088)),
            (32, 1, (1 - 0.480590) * (1 - 0.152)),
            (64, 1, (1 - 0.490295) * (1 - 0.280)),
            (4, 8, (1 - 0.13276) * (1 - 0.040)),
            (64, 32, (1 - 0.431635) * (1 - 0.280)),
        ],
    )
    def test_by_hand(self, bdps: int, flows: int, share: float) -> None:
        found = bbr_share(flows, 1, **SLOW, queue_bytes=bdps * BDP)
        assert found == pytest.approx(share, rel=1e-4)

    def test_one_flow_takes_about_two_fifths_of_a_long_queue(self) -> None:
        """Beside one flow or 16, as Ware and others, IMC 2019, report."""
        shares = [bbr_share(1, others, **SLOW, queue_bytes=32 * BDP) for others in (1, 2, 16, 1000)]
        assert len(set(shares)) == 1
        assert shares[0] == pytest.approx(0.4, abs=0.05)

    def test_without_pauses_it_would_be_at_least_half(self) -> None:
        """The simple model: 2 p (1 - p) q = (1 - p) q, so p = 1/2 of a queue that is all there is."""
        share = bbr_share(1, 1, rate_bps=1e12, rtt_s=1e-3, queue_bytes=1e12 * 1e-3 / 8 * 10_000)
        pause_s = 10.0 + 0.2 + 1e-3
        assert pause_s > 10
        assert share == 0  # it would never send
        share = bbr_share(1, 1, rate_bps=1e12, rtt_s=1e-6, queue_bytes=1e12 * 1e-6 / 8 * 1000)
        assert share == pytest.approx(0.5 * (1 - 0.0201), rel=2e-3)

    @pytest.mark.parametrize("bdps", [0.0, 0.1, 0.99])
    def test_says_nothing_of_a_short_queue(self, bdps: float) -> None:
        assert bbr_share(1, 1, **SLOW, queue_bytes=bdps * BDP) is None

    def test_says_nothing_without_a_bdp(self) -> None:
        assert bbr_share(1, 1, rate_bps=1e9, rtt_s=0.0, queue_bytes=1e6) is None

    def test_among_their_own_they_have_all_or_none(self) -> None:
        assert bbr_share(3, 0, **SLOW, queue_bytes=BDP) == 1
        assert bbr_share(0, 3, **SLOW, queue_bytes=BDP) == 0

    @given(st.integers(1, 100), st.integers(1, 100), RATES, RTTS, st.floats(1, 1000))
    def test_is_a_share(self, bbr: int, others: int, rate_bps: float, rtt_s: float, bdps: float) -> None:
        queue = bdps * rate_bps * rtt_s / 8 * (1 + 1e-9)
        share = bbr_share(bbr, others, rate_bps=rate_bps, rtt_s=rtt_s, queue_bytes=queue)
        assert share is not None
        assert 0 <= share <= 1

    @given(st.integers(1, 50), st.floats(1, 64), st.floats(1, 4))
    def test_more_of_them_take_more_and_a_longer_queue_leaves_less(
        self, flows: int, bdps: float, longer: float
    ) -> None:
        share = bbr_share(flows, 1, **SLOW, queue_bytes=bdps * BDP)
        more = bbr_share(flows + 1, 1, **SLOW, queue_bytes=bdps * BDP)
        less = bbr_share(flows, 1, **SLOW, queue_bytes=bdps * longer * BDP)
        assert share is not None
        assert more is not None
        assert less is not None
        assert less <= share * (1 + 1e-9)
        assert share <= more


class TestRttRatio:
    def test_of_reno_is_from_the_ratio_to_its_square(self) -> None:
        assert rtt_ratio("reno", (0.1, 0.01)) == (pytest.approx(10), pytest.approx(100))

    def test_of_cubic_in_its_own_region(self) -> None:
        assert rtt_ratio("cubic", (0.01, 0.16)) == (pytest.approx(2), pytest.approx(16))

    def test_of_cubic_in_small_windows_is_reno_s(self) -> None:
        rtts, small, large = (0.02, 0.1), 100, 1000
        assert rtt_ratio("cubic", rtts, window_segs=small) == rtt_ratio("reno", rtts)
        assert rtt_ratio("cubic", rtts, window_segs=large) == rtt_ratio("cubic", rtts)

    def test_a_queue_makes_them_more_alike(self) -> None:
        """10 and 100 ms with 90 ms of queue: 190 / 100."""
        assert rtt_ratio("reno", (0.01, 0.1), queue_delay_s=0.09) == (pytest.approx(1.9), pytest.approx(3.61))

    def test_bbr_favours_the_longest(self) -> None:
        assert rtt_ratio("bbr", (0.01, 0.1), queue_s=0.1) == Band(0.0, 1.0)

    def test_of_bbr_on_a_short_queue_says_nothing(self) -> None:
        assert rtt_ratio("bbr", (0.01, 0.1), queue_s=0.08) is None
        assert rtt_ratio("bbr", (0.01, 0.1)) is None

    @pytest.mark.parametrize("cc", ["vegas", "dctcp", "made_up"])
    def test_of_others_says_nothing(self, cc: str) -> None:
        assert rtt_ratio(cc, (0.01, 0.1)) is None

    def test_without_any_round_trip_says_nothing(self) -> None:
        assert rtt_ratio("reno", (0.0, 0.1)) is None

    @given(st.sampled_from(["reno", "cubic"]), st.lists(RTTS, min_size=1), st.floats(0, 1))
    def test_is_a_band_from_one(self, cc: str, rtts: list[float], queue_s: float) -> None:
        band = rtt_ratio(cc, rtts, queue_delay_s=queue_s)
        assert band is not None
        assert 1 <= band.low <= band.high


class TestCubicsOwnRegion:
    @pytest.mark.parametrize(("rtt_s", "segs"), [(0.1, 52.3), (0.02, 584.9), (0.2, 18.5)])
    def test_begins_where_its_windows_meet_reno_s(self, rtt_s: float, segs: float) -> None:
        assert cubic_own_from_segs(rtt_s) == pytest.approx(segs, rel=0.002)
        loss = 1.5 / cubic_own_from_segs(rtt_s) ** 2
        assert reno_window_segs(loss) == pytest.approx(cubic_own_window_segs(loss, rtt_s))


PATH = {"rate_bps": 100e6, "rtt_s": 0.05, "queue_bytes": 1_250_000.0}
"""100 Mbit/s x 50 ms with a queue of 100 ms."""
