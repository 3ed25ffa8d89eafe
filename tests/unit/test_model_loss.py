"""Loss in closed form, against the values that were published."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.model import loss
from lab.model.controls import CONTROLS, control
from lab.model.paced import delivered_share

PROBABILITIES = st.floats(1e-9, 1)


class TestReno:
    def test_window_is_that_of_mathis(self) -> None:
        """Mathis and others 1997, equation 3: C = sqrt(3/2) = 1.22 with an acknowledgement a segment."""
        assert loss.reno_window_segs(0.0015) == pytest.approx(math.sqrt(1000))
        assert loss.reno_window_segs(1) == pytest.approx(1.2247, rel=1e-4)

    @pytest.mark.parametrize(
        ("p", "window"),
        # RFC 9438, section 5.1, table 1, column "Reno Average Window Size"
        [(1e-2, 12), (1e-3, 38), (1e-4, 120), (1e-5, 379), (1e-6, 1200), (1e-7, 3795), (1e-8, 12000)],
    )
    def test_window_is_that_of_the_table(self, p: float, window: int) -> None:
        assert loss.reno_window_segs(p) == pytest.approx(window * 1.02, rel=0.03)


class TestPadhye:
    @pytest.mark.parametrize("rtt_s", [0.001, 0.1, 1.0])
    def test_without_timeouts_is_mathis(self, rtt_s: float) -> None:
        p = 1e-9
        rate = loss.padhye_rate_segs_s(p, rtt_s)
        assert rate * rtt_s == pytest.approx(math.sqrt(3 / (2 * p)), rel=0.01)

    def test_window_bounds_it(self) -> None:
        assert loss.padhye_rate_segs_s(1e-9, 0.1, most_window=50) == 500
        assert loss.padhye_rate_segs_s(0.0, 0.1, most_window=50) == 500

    def test_by_hand(self) -> None:
        """p = 2 %, RTT 200 ms, first timeout 400 ms, an acknowledgement a segment.

        RTT sqrt(2p/3) = 0.0231; 0.4 x 3 sqrt(3p/8) x p (1 + 32 p^2) = 0.00210.
        """
        assert loss.padhye_rate_segs_s(0.02, 0.2) == pytest.approx(1 / (0.023094 + 0.0021048), rel=1e-3)

    @given(PROBABILITIES, PROBABILITIES, st.floats(1e-4, 20))
    def test_more_loss_never_gives_more(self, one: float, other: float, rtt_s: float) -> None:
        low, high = sorted((one, other))
        assert loss.padhye_rate_segs_s(high, rtt_s) <= loss.padhye_rate_segs_s(low, rtt_s)

    @given(PROBABILITIES, st.floats(1e-4, 20))
    def test_is_never_more_than_mathis(self, p: float, rtt_s: float) -> None:
        assert loss.padhye_rate_segs_s(p, rtt_s) * rtt_s <= loss.reno_window_segs(p)


class TestCubic:
    @pytest.mark.parametrize(
        ("rtt_s", "p", "window"),
        # RFC 9438, section 5.1, tables 1 (0.1 s) and 2 (0.01 s), column "CUBIC (C=0.4)"
        [
            *((0.1, 1e-2, 12), (0.1, 1e-3, 38), (0.1, 1e-4, 187), (0.1, 1e-5, 1054), (0.1, 1e-6, 5926)),
            *((0.1, 1e-7, 33325), (0.1, 1e-8, 187400)),
            *((0.01, 1e-2, 12), (0.01, 1e-3, 38), (0.01, 1e-4, 120), (0.01, 1e-5, 379)),
            *((0.01, 1e-6, 1200), (0.01, 1e-7, 5926), (0.01, 1e-8, 33325)),
        ],
    )
    def test_window_is_that_of_the_tables(self, rtt_s: float, p: float, window: int) -> None:
        assert loss.cubic_window_segs(p, rtt_s) == pytest.approx(window, rel=0.025)

    def test_in_its_own_region_is_equation_6(self) -> None:
        """1.054 x (RTT / p)^(3/4) with C = 0.4."""
        assert loss.cubic_own_window_segs(1e-4, 0.1) == pytest.approx(1.054 * 1000**0.75, rel=1e-3)

    def test_on_a_short_path_is_as_reno(self) -> None:
        assert loss.cubic_window_segs(1e-3, 0.001) == loss.reno_window_segs(1e-3)


class TestBbr:
    @pytest.mark.parametrize("p", [0.0, 1e-4, 0.01, 0.1, 0.14])
    def test_delivers_what_is_not_lost(self, p: float) -> None:
        assert delivered_share(p) == pytest.approx(1 - p)

    @pytest.mark.parametrize("p", [0.2, 0.4, 0.8, 1.0])
    def test_falls_where_its_probes_find_no_more_than_it_sends(self, p: float) -> None:
        assert delivered_share(p) <= 0.5 * (1 - p)

    def test_has_the_whole_link_to_lose_from(self) -> None:
        assert loss.rate_bound_bps("bbr", 0.01, 0.1, 1448, 1e9) == pytest.approx(0.99e9)


class TestBound:
    @given(st.sampled_from(["cubic", "reno", "bbr"]), PROBABILITIES, PROBABILITIES)
    def test_more_loss_never_gives_more(self, cc: str, one: float, other: float) -> None:
        low, high = sorted((one, other))
        more = loss.rate_bound_bps(cc, low, 0.1, 1448, 1e9)
        assert 0 <= loss.rate_bound_bps(cc, high, 0.1, 1448, 1e9) <= more

    @pytest.mark.parametrize(
        ("cc", "p", "rtt_s"), [("cubic", 0.0, 0.1), ("cubic", 0.1, 0.0), ("vegas", 0.1, 0.1)]
    )
    def test_where_none_is_known_is_infinite(self, cc: str, p: float, rtt_s: float) -> None:
        assert loss.rate_bound_bps(cc, p, rtt_s, 1448, 1e9) == math.inf

    def test_is_the_window_a_round_trip(self) -> None:
        assert loss.rate_bound_bps("reno", 0.015, 0.1, 1000, 1e9) == pytest.approx(10 * 8000 / 0.1)


class TestRepairs:
    def test_nothing_lost_nothing_repaired(self) -> None:
        assert loss.repair_round_trips(0.0, 1e6) == 1

    def test_of_one_packet_is_a_geometric_series(self) -> None:
        assert loss.repair_round_trips(0.25, 1) == pytest.approx(1 / (1 - 0.25), rel=1e-5)

    def test_of_two_packets_by_hand(self) -> None:
        """1 + sum of 1 - (1 - p^k)^2, p = 1/2: 2 x 1 - 1/3 more than one."""
        assert loss.repair_round_trips(0.5, 2) == pytest.approx(1 + 2 - 1 / 3, rel=1e-5)

    @given(st.floats(0, 0.9), st.floats(1, 1e6), st.floats(1, 10))
    def test_a_larger_window_is_held_for_longer(self, p: float, packets: float, factor: float) -> None:
        assert 1 <= loss.repair_round_trips(p, packets) <= loss.repair_round_trips(p, packets * factor) + 1e-9

    @given(PROBABILITIES, st.floats(0, 1e9))
    def test_is_a_number(self, p: float, packets: float) -> None:
        assert math.isfinite(loss.repair_round_trips(p, packets))


class TestControls:
    @pytest.mark.parametrize("name", CONTROLS)
    def test_back_off_is_a_share_with_a_source(self, name: str) -> None:
        assert 0 < control(name).beta <= 1
        assert control(name).source

    def test_of_cubic_and_reno_is_the_kernel_s(self) -> None:
        assert (control("cubic").beta, control("reno").beta) == (717 / 1024, 0.5)

    def test_unknown_one_is_taken_as_reno(self) -> None:
        assert (control("made_up").beta, control("made_up").increase) == (0.5, 1.0)
        assert not control("made_up").known
