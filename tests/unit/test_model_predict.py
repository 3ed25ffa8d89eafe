"""The whole model: laws that hold for any setting, and what was measured."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import settings as options
from hypothesis import strategies as st

from lab import memory
from lab.model import limits, path, windows
from lab.model.inputs import Release, Setting
from lab.model.limits import (
    HYSTART,
    LIMITS,
    LINK,
    LOSS,
    MEANINGS,
    QUEUE,
    RECEIVE_WINDOW,
    SEND_BUFFER,
    SLOW_START,
)
from lab.model.predict import Prediction, predict, round_trip_s
from tests.model_settings import BUFFERS, L61, L612, MIB, ample, settings, triple

STEPPED_SHARE = 0.5
"""A send buffer of up to 2 MiB holds whole refills, one or two or three of them, so that what it keeps in
flight jumps where one more fits. Seen at most: 6 % less with a larger buffer, 70 % less on a shorter path."""
SCALES = st.integers(-8, 8)
FACTORS = st.sampled_from([1.01, 1.3, 2, 10])


def in_sight(one: Prediction, other: Prediction) -> float:
    """Return what a law leaves to rounding, and to the steps of a small send buffer."""
    return STEPPED_SHARE if SEND_BUFFER in (one.steady_limit, other.steady_limit) else 0.99


class TestLaws:
    @options(max_examples=150)
    @given(settings())
    def test_goodput_is_a_number_and_never_more_than_the_link_s_payload(self, setting: Setting) -> None:
        made = predict(setting)
        link_bps = setting.rate_bps * path.payload_share(setting.mtu_bytes)
        for goodput_bps in (made.predicted_goodput_bps, made.mean_goodput_bps):
            assert 0 <= goodput_bps <= link_bps * (1 + 1e-9)
        assert all(0 <= bound < math.inf for bound in made.bounds_bps.values())
        assert {LINK, RECEIVE_WINDOW, SEND_BUFFER} <= made.bounds_bps.keys()
        assert setting.rtt_s * (1 - 1e-9) <= made.rtt_s < math.inf
        assert 0 <= made.ramp_s < math.inf

    @options(max_examples=150)
    @given(settings())
    def test_limits_have_names_and_shares_that_add_up(self, setting: Setting) -> None:
        made = predict(setting)
        assert {made.limit, made.steady_limit} <= set(made.shares)
        assert {*made.shares, made.next_limit} <= set(MEANINGS)
        assert sum(made.shares.values()) == pytest.approx(1)
        assert all(share >= 0 for share in made.shares.values())
        assert made.limit == limits.dominant(made.shares)

    @options(max_examples=150)
    @given(settings(lossless=True))
    def test_without_its_limit_a_flow_has_no_less(self, setting: Setting) -> None:
        """On a queue that never drops; a shorter one may be overrun by what the limit held back.

        A receive window counts whole segments and a send buffer bytes, which shows in windows of a few.
        """
        made = predict(replace(setting, queue_bytes=None, duration_s=math.inf))
        segments = made.window_bytes / path.mss_bytes(setting.mtu_bytes)
        assert made.margin >= min(0.99, 1 - 1 / max(segments, 1))

    @given(settings())
    def test_sentence_ends(self, setting: Setting) -> None:
        sentence = predict(setting).sentence
        assert sentence.endswith(".")
        assert "inf" not in sentence
        assert "nan" not in sentence

    @given(settings(plain=True), FACTORS, st.sampled_from(["rmem", "wmem"]))
    def test_more_buffer_never_gives_less(self, setting: Setting, factor: float, which: str) -> None:
        larger = min(memory.LARGEST_BYTES, int(getattr(setting, which).maximum * factor))
        less, more = predict(setting), predict(replace(setting, **{which: triple(larger)}))
        assert more.predicted_goodput_bps >= less.predicted_goodput_bps * in_sight(less, more)

    @given(settings(plain=True), FACTORS)
    def test_more_rate_never_gives_less(self, setting: Setting, factor: float) -> None:
        less = predict(setting)
        assume(less.steady_limit in (LINK, RECEIVE_WINDOW, SEND_BUFFER))
        more = predict(replace(setting, rate_bps=setting.rate_bps * factor))
        assert more.predicted_goodput_bps >= less.predicted_goodput_bps * in_sight(less, more)

    @given(settings(plain=True), FACTORS)
    def test_longer_path_never_gives_more(self, setting: Setting, factor: float) -> None:
        short, long = predict(setting), predict(replace(setting, rtt_s=setting.rtt_s * factor))
        assume(SEND_BUFFER not in (short.steady_limit, long.steady_limit))
        assert short.predicted_goodput_bps >= long.predicted_goodput_bps * (1 - 1e-2)

    @given(settings(plain=True))
    def test_more_loss_never_gives_more_in_the_long_run(self, setting: Setting) -> None:
        rates = [
            predict(replace(setting, loss=loss)).predicted_goodput_bps for loss in (0.0, 1e-4, 0.05, 0.6)
        ]
        for more, less in pairwise(rates):
            assert less <= more * 1.02

    @given(settings(), SCALES, SCALES)
    def test_ignored_sysctl_changes_nothing(self, setting: Setting, one: int, other: int) -> None:
        since = replace(setting, release=L612)
        assert predict(replace(since, adv_win_scale=one)) == predict(replace(since, adv_win_scale=other))

    @given(settings())
    def test_same_setting_same_prediction(self, setting: Setting) -> None:
        assert predict.__wrapped__(setting) == predict.__wrapped__(setting)

    @given(BUFFERS)
    def test_what_the_application_asks_for_is_all_that_counts_of_a_receive_buffer(self, size: int) -> None:
        asked = ample(rcvbuf_bytes=100_000, release=L61, rmem_max_bytes=4 * MIB)
        small, large = replace(asked, rmem=triple(4 * MIB)), replace(asked, rmem=triple(max(size, 4 * MIB)))
        assert predict(small).window_bytes == predict(large).window_bytes

    def test_no_path_is_too_short(self) -> None:
        assert predict(Setting(rate_bps=1e9, rtt_s=0.0, release=L612)).limit == LINK


class TestMeasured:
    """Steady goodput of one CUBIC flow, 10 s, 1 Gbit/s x 200 ms, queue 2 BDP, no offloads, virtual time."""

    @pytest.mark.parametrize(
        ("release", "rmem", "wmem", "adv_win_scale", "measured_mbps", "limit"),
        [
            (L61, None, 100 * MIB, 1, 125.0, RECEIVE_WINDOW),
            (L612, None, 100 * MIB, 1, 158.2, RECEIVE_WINDOW),
            (L61, 25 * MIB, 100 * MIB, 1, 524.7, RECEIVE_WINDOW),
            (L612, 25 * MIB, 100 * MIB, 1, 663.0, RECEIVE_WINDOW),
            (L61, 25 * MIB, 100 * MIB, 2, 785.1, RECEIVE_WINDOW),
            (L61, 25 * MIB, 100 * MIB, -2, 261.0, RECEIVE_WINDOW),
            (L61, 50 * MIB, 100 * MIB, -2, 524.7, RECEIVE_WINDOW),
            (L612, 100 * MIB, 25 * MIB, 1, 692.0, SEND_BUFFER),
            (L612, 100 * MIB, None, 1, 113.9, SEND_BUFFER),
            (L61, None, None, 1, 113.9, SEND_BUFFER),
            (L61, 50 * MIB, 100 * MIB, 1, 956.4, LINK),
            (L61, 100 * MIB, 100 * MIB, 1, 956.4, LINK),
            (L612, 50 * MIB, 100 * MIB, 1, 956.4, LINK),
            (L612, 100 * MIB, 50 * MIB, 1, 956.4, LINK),
        ],
    )
    def test_prediction_is_within_five_percent(
        self,
        release: Release,
        rmem: int | None,
        wmem: int | None,
        adv_win_scale: int,
        measured_mbps: float,
        limit: str,
    ) -> None:
        setting = Setting(
            rate_bps=1e9,
            rtt_s=0.2,
            release=release,
            rmem=memory.DEFAULTS["rmem"] if rmem is None else memory.Triple(rmem, rmem, rmem),
            wmem=memory.DEFAULTS["wmem"] if wmem is None else memory.Triple(wmem, wmem, wmem),
            adv_win_scale=adv_win_scale,
            queue_bytes=50e6,
        )
        for duration_s in (10.0, math.inf):
            made = predict(replace(setting, duration_s=duration_s))
            assert made.limit == limit
            assert made.bdp_bytes == 25e6
            assert made.predicted_goodput_bps == pytest.approx(measured_mbps * 1e6, rel=0.05)


class TestLimits:
    """One setting for each limit, and what then is next."""

    @pytest.mark.parametrize(
        ("changes", "limit", "next_limit"),
        [
            ({}, LINK, RECEIVE_WINDOW),
            ({"rmem": triple(4 * MIB)}, RECEIVE_WINDOW, LINK),
            ({"rmem": triple(4 * MIB), "wmem": triple(16 * MIB)}, RECEIVE_WINDOW, SEND_BUFFER),
            ({"wmem": triple(4 * MIB)}, SEND_BUFFER, LINK),
            ({"wmem": triple(4 * MIB), "rmem": triple(16 * MIB)}, SEND_BUFFER, RECEIVE_WINDOW),
            ({"loss": 0.001}, LOSS, LINK),
            ({"cc": "bbr", "loss": 0.4, "rmem": triple(2**30), "rtt_s": 0.02}, LOSS, LINK),
            ({"cc": "reno", "queue_bytes": 25e5}, QUEUE, LINK),
            ({"duration_s": 1.0}, SLOW_START, LINK),
            ({"cc": "bbr", "duration_s": 1.0}, SLOW_START, LINK),
            ({"rate_bps": 5e7, "wmem": triple(512 * MIB), "offloads": True}, LINK, RECEIVE_WINDOW),
        ],
    )
    def test_binds(self, changes: dict[str, Any], limit: str, next_limit: str) -> None:
        made = predict(ample(**changes))
        assert (made.steady_limit, made.limit, made.next_limit) == (limit, limit, next_limit)
        assert made.shares[limit] > 0.5
        assert made.bounds_bps[limit] >= made.predicted_goodput_bps * (1 - 1e-9)

    def test_hystart_leaves_a_long_path_half_empty_for_a_while(self) -> None:
        made = predict(ample(rate_bps=1e8, rtt_s=0.02, offloads=True, duration_s=0.3, queue_bytes=25e5))
        assert sum(made.shares.get(limit, 0.0) for limit in (SLOW_START, HYSTART, LINK)) == pytest.approx(1)

    def test_margin_is_what_lifting_the_limit_gives(self) -> None:
        bound = ample(rmem=triple(8 * MIB), wmem=triple(16 * MIB))
        made = predict(bound)
        lifted = predict(replace(bound, rmem=triple(256 * MIB)))
        assert (made.next_limit, lifted.steady_limit) == (SEND_BUFFER, SEND_BUFFER)
        assert made.predicted_goodput_bps * made.margin == pytest.approx(
            lifted.predicted_goodput_bps, rel=0.01
        )

    def test_flows_share_the_link_and_add_up_their_windows(self) -> None:
        one, ten = (predict(ample(rmem=triple(MIB), flows=flows)) for flows in (1, 10))
        assert ten.predicted_goodput_bps == pytest.approx(10 * one.predicted_goodput_bps, rel=0.01)
        full = predict(ample(flows=10))
        assert full.predicted_goodput_bps == pytest.approx(1e9 * path.payload_share(1500))

    def test_mean_has_the_ramp_in_it(self) -> None:
        short, long = (predict(ample(duration_s=duration_s)) for duration_s in (6.0, 60.0))
        assert short.mean_goodput_bps < short.predicted_goodput_bps
        assert short.mean_goodput_bps < long.mean_goodput_bps < long.predicted_goodput_bps
        assert 1.8 < short.ramp_s < 3
        assert short.predicted_goodput_bps == pytest.approx(long.predicted_goodput_bps, rel=0.001)

    def test_ramp_of_the_long_run_is_that_of_a_short_one(self) -> None:
        short, long = (predict(ample(duration_s=duration_s)) for duration_s in (6.0, math.inf))
        assert long.ramp_s == pytest.approx(short.ramp_s, rel=0.2)

    def test_rtt_under_load_has_the_queue_in_it(self) -> None:
        empty = predict(ample(rmem=triple(4 * MIB)))
        assert empty.rtt_s == pytest.approx(0.2, rel=0.01)
        full = predict(ample(queue_bytes=25e6, cc="cubic"))
        assert 0.25 < full.rtt_s <= 0.4

    def test_rtt_under_load_is_the_window_s_where_nothing_drops(self) -> None:
        made = predict(ample(rate_bps=1e8, rtt_s=0.01, rmem=triple(4 * MIB)))
        assert made.steady_limit == LINK
        assert made.rtt_s == pytest.approx(made.window_bytes * 8 / 1e8 / path.payload_share(1500), rel=0.05)

    @pytest.mark.parametrize("cc", ["cubic", "reno", "bbr", "vegas"])
    @pytest.mark.parametrize("duration_s", [1.0, math.inf])
    def test_where_all_is_lost_loss_binds_and_nothing_else(self, cc: str, duration_s: float) -> None:
        made = predict(ample(loss=1.0, cc=cc, duration_s=duration_s, rmem=triple(MIB)))
        assert (made.limit, made.steady_limit) == (LOSS, LOSS)
        assert (made.predicted_goodput_bps, made.mean_goodput_bps) == (0, 0)
        assert made.sentence == "Loss binds: every packet is lost, so nothing arrives."

    @pytest.mark.parametrize("rtt_s", [0.2, 1.0, 4.0, 8.0, 20.0])
    def test_bbr_measures_the_rtt_and_sends_for_the_rest(self, rtt_s: float) -> None:
        """In PROBE_RTT it drains the path for 200 ms or a round trip, and fills it again, every 10 s."""
        made = predict(ample(rate_bps=1e7, rtt_s=rtt_s, cc="bbr"))
        rest = 1 - min(0.5, (max(0.2, rtt_s) + rtt_s) / 10)
        assert made.predicted_goodput_bps == pytest.approx(rest * 1e7 * path.payload_share(1500), rel=0.02)

    def test_bbr_does_not_measure_it_in_a_short_load(self) -> None:
        made = predict(ample(rate_bps=1e7, rtt_s=0.1, cc="bbr", duration_s=8.0))
        assert made.predicted_goodput_bps == pytest.approx(1e7 * path.payload_share(1500), rel=0.001)

    def test_a_control_that_has_no_model_is_said_to_have_none(self) -> None:
        assert "vegas is taken as Reno" in predict(ample(cc="vegas")).sentence
        assert "taken as" not in predict(ample(cc="bbr")).sentence


class TestRepairs:
    def test_a_lossy_path_holds_a_window_for_longer(self) -> None:
        """BBR bound by a window: what was lost is sent again, and the window waits for it."""
        clean = predict(ample(cc="bbr", rmem=triple(4 * MIB)))
        lossy = predict(ample(cc="bbr", rmem=triple(4 * MIB), loss=0.01))
        assert lossy.steady_limit == RECEIVE_WINDOW
        assert lossy.predicted_goodput_bps < 0.6 * clean.predicted_goodput_bps


class TestRoundTrip:
    def test_of_a_window_within_the_token_bucket_is_the_rtt(self) -> None:
        assert round_trip_s(ample(rate_bps=1e10), 1448) == 0.2

    @given(settings(lossless=True), st.integers(1, 2**30))
    def test_has_at_most_a_burst_more(self, setting: Setting, window_bytes: int) -> None:
        most_s = 65535 * 8 / setting.rate_bps / path.payload_share(setting.mtu_bytes)
        most_s += 2 * path.packet_bytes(setting.mtu_bytes) * 8 / setting.rate_bps
        assert setting.rtt_s <= round_trip_s(setting, window_bytes) <= setting.rtt_s + most_s

    def test_has_a_burst_more(self) -> None:
        # a whole one, as the rate is high, but for the two packets that find tokens
        burst_s = (65215 / 1448 - 2) * 1514 * 8 / 1e9
        assert round_trip_s(ample(), 8 * MIB) == pytest.approx(0.2 + burst_s, rel=1e-6)


class TestSentence:
    @pytest.mark.parametrize(
        ("changes", "begins"),
        [
            ({}, "The link binds: 956.4 Mbit/s of payload is what its rate leaves; next is the"),
            (
                {"rmem": triple(25 * MIB), "release": L61},
                "The receive window binds: 12.5 MiB of a BDP of 23.84 MiB give 52",
            ),
            ({"wmem": memory.DEFAULTS["wmem"]}, "The send buffer binds: it keeps 2.6"),
            ({"loss": 0.001}, "Loss binds: the congestion window that cubic holds against 0.1 % gives "),
            (
                {"cc": "reno", "queue_bytes": 2.5e6},
                "The queue binds: 2.384 MiB are too short for reno, whose window falls under the BDP of 23",
            ),
            (
                {"duration_s": 1.0},
                "Slow start binds: the transfer ends before the congestion window has grown",
            ),
        ],
    )
    def test_says_the_numbers(self, changes: dict[str, Any], begins: str) -> None:
        assert predict(ample(**changes)).sentence.startswith(begins)

    def test_says_what_is_next(self) -> None:
        sentence = predict(ample(rmem=triple(8 * MIB))).sentence
        assert "; next is the link, at " in sentence
        assert sentence.endswith(" times that.")


class TestControls:
    @pytest.mark.parametrize("limit", LIMITS)
    def test_every_limit_has_a_meaning_and_words(self, limit: str) -> None:
        assert MEANINGS[limit]
        assert "_" not in limits.words(limit)

    def test_of_equal_shares_the_first_in_the_tables_counts(self) -> None:
        assert limits.dominant({LOSS: 0.5, RECEIVE_WINDOW: 0.5}) == RECEIVE_WINDOW
        assert limits.dominant({}) == LINK

    @pytest.mark.parametrize("release", [L61, L612])
    def test_window_of_nothing_is_no_crash(self, release: Release) -> None:
        setting = ample(release=release, adv_win_scale=-31)
        assert predict(setting).predicted_goodput_bps >= 0
        if release == L61:
            assert windows.receive_window_bytes(setting) == 0
