"""The model: laws that hold for any path, rules of the kernels by example, and what was measured."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import memory
from lab.model import loss, path, windows
from lab.model.predict import LINK, LOSS, RECEIVE_WINDOW, SEND_BUFFER, Setting, bbr_duty, predict
from lab.model.windows import Release

MIB = 2**20
L61, L612 = Release(6, 1), Release(6, 12)

RELEASES = st.sampled_from([Release(5, 10), L61, Release(6, 5), Release(6, 6), L612, Release(7, 0)])
BUFFERS = st.integers(4608, memory.LARGEST_BYTES)
SCALES = st.integers(-8, 8)


def triple(maximum: int) -> memory.Triple:
    return memory.Triple(min(4096, maximum), min(131072, maximum), maximum)


@st.composite
def settings(draw: st.DrawFn) -> Setting:
    """Draw any setting that a point can have."""
    return Setting(
        rate_bps=draw(st.floats(1e3, 400e9)),
        rtt_s=draw(st.floats(1e-6, 20)),
        release=draw(RELEASES),
        rmem=triple(draw(BUFFERS)),
        wmem=triple(draw(BUFFERS)),
        adv_win_scale=draw(SCALES),
        mtu_bytes=draw(st.integers(576, 65535)),
        offloads=draw(st.booleans()),
        cc=draw(st.sampled_from(["cubic", "reno", "bbr", "vegas"])),
        loss=draw(st.sampled_from([0.0, 1e-6, 1e-3, 0.1, 1.0])),
        flows=draw(st.integers(1, 1000)),
    )


class TestLaws:
    @given(settings())
    def test_goodput_never_exceeds_what_the_link_leaves_for_payload(self, setting: Setting) -> None:
        share = path.payload_share(setting.mtu_bytes)
        assert 0 < share < 1
        assert 0 <= predict(setting).predicted_goodput_bps <= setting.rate_bps * share

    @given(settings())
    def test_least_bound_is_the_limit(self, setting: Setting) -> None:
        prediction = predict(setting)
        assert prediction.bounds_bps[prediction.limit] == min(prediction.bounds_bps.values())
        assert {LINK, RECEIVE_WINDOW, SEND_BUFFER} <= prediction.bounds_bps.keys()
        assert all(math.isfinite(bound) for bound in prediction.bounds_bps.values())
        assert prediction.sentence.endswith(".")

    @given(settings(), BUFFERS, st.sampled_from(["rmem", "wmem"]))
    def test_more_buffer_never_gives_less(self, setting: Setting, other: int, which: str) -> None:
        small, large = sorted((getattr(setting, which).maximum, other))
        less = predict(replace(setting, **{which: triple(small)}))
        more = predict(replace(setting, **{which: triple(large)}))
        assert more.predicted_goodput_bps >= less.predicted_goodput_bps

    @given(settings(), st.floats(1e3, 400e9))
    def test_more_rate_never_gives_less(self, setting: Setting, other_bps: float) -> None:
        slow, fast = sorted((setting.rate_bps, other_bps))
        less = predict(replace(setting, rate_bps=slow)).predicted_goodput_bps
        assert predict(replace(setting, rate_bps=fast)).predicted_goodput_bps >= less * (1 - 1e-12)

    @given(settings(), st.floats(0, 20))
    def test_longer_path_never_gives_more(self, setting: Setting, other_s: float) -> None:
        setting = replace(setting, cc="vegas")  # the window that CUBIC holds against loss grows with the RTT
        short, long = sorted((setting.rtt_s, other_s))
        more = predict(replace(setting, rtt_s=short)).predicted_goodput_bps
        assert predict(replace(setting, rtt_s=long)).predicted_goodput_bps <= more * (1 + 1e-12)

    @given(settings())
    def test_more_flows_never_give_less(self, setting: Setting) -> None:
        one = predict(replace(setting, flows=1)).predicted_goodput_bps
        assert predict(setting).predicted_goodput_bps >= one * (1 - 1e-12)

    @given(settings(), SCALES, SCALES)
    def test_ignored_sysctl_changes_nothing(self, setting: Setting, one: int, other: int) -> None:
        since = replace(setting, release=L612)
        assert predict(replace(since, adv_win_scale=one)) == predict(replace(since, adv_win_scale=other))

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
        prediction = predict(
            Setting(
                rate_bps=1e9,
                rtt_s=0.2,
                release=release,
                rmem=memory.DEFAULTS["rmem"] if rmem is None else memory.Triple(rmem, rmem, rmem),
                wmem=memory.DEFAULTS["wmem"] if wmem is None else memory.Triple(wmem, wmem, wmem),
                adv_win_scale=adv_win_scale,
            )
        )
        assert prediction.limit == limit
        assert prediction.bdp_bytes == 25e6
        assert prediction.predicted_goodput_bps == pytest.approx(measured_mbps * 1e6, rel=0.05)


class TestSentence:
    @pytest.mark.parametrize(
        ("changes", "sentence"),
        [
            ({}, "The link binds: 956.4 Mbit/s of payload is what its rate leaves."),
            (
                {"rmem": triple(25 * MIB), "release": L61},
                "The receive window binds: 13107200 bytes of a BDP of 25000000 bytes give 524.3 Mbit/s.",
            ),
            (
                {"wmem": memory.DEFAULTS["wmem"]},
                "The send buffer binds: it keeps 2825287 bytes in flight of a BDP of 25000000 bytes,"
                " which gives 113 Mbit/s.",
            ),
        ],
    )
    def test_says_the_numbers(self, changes: dict[str, Any], sentence: str) -> None:
        wide = Setting(rate_bps=1e9, rtt_s=0.2, release=L612, rmem=triple(100 * MIB), wmem=triple(100 * MIB))
        assert predict(replace(wide, **changes)).sentence == sentence


class TestWindowRule:
    def test_overhead_of_a_segment_on_a_veth(self) -> None:
        """struct sk_buff, its head with the headers, struct skb_shared_info."""
        assert windows.SKB_OVERHEAD_BYTES == 256 + 256 + 320

    @pytest.mark.parametrize(
        ("adv_win_scale", "window"),
        [(1, 3145728), (2, 4718592), (3, 5505024), (0, 6291456), (-1, 3145728), (-2, 1572864), (-31, 0)],
    )
    def test_before_6_6_is_the_sysctl(self, adv_win_scale: int, window: int) -> None:
        for release in (Release(4, 18), L61, Release(6, 5)):
            assert windows.window_from_space(6291456, release, adv_win_scale, 1448, offloads=False) == window

    @pytest.mark.parametrize(
        ("mss_bytes", "offloads", "ratio"),
        [(1448, False, 162), (1448, True, 198), (8948, False, 234), (524, False, 98), (1228, False, 152)],
    )
    def test_since_6_6_is_the_share_of_payload(self, mss_bytes: int, offloads: bool, ratio: int) -> None:
        assert windows.scaling_ratio(mss_bytes, offloads) == ratio / 256
        for release in (Release(6, 6), L612, Release(7, 1)):
            window = windows.window_from_space(6291456, release, 1, mss_bytes, offloads)
            assert window == 6291456 * ratio // 256

    @pytest.mark.parametrize(
        ("release", "ignored"),
        [
            ("5.10", False),
            ("6.1.90", False),
            ("6.5.13", False),
            ("6.6", True),
            ("6.12.117", True),
            ("7.0", True),
        ],
    )
    def test_sysctl_is_ignored_since_6_6(self, release: str, ignored: bool) -> None:
        assert windows.ignores_adv_win_scale(Release.parse(release)) is ignored

    @pytest.mark.parametrize(
        ("text", "release"),
        [
            *(("6.12", (6, 12)), ("6.12.117", (6, 12)), ("6.12@1000", (6, 12)), ("6.1.0-rc1", (6, 1))),
            *(("6.16-rc3+", (6, 16)), ("10.0.1-debug", (10, 0))),
        ],
    )
    def test_release_by_its_name(self, text: str, release: tuple[int, int]) -> None:
        assert Release.parse(text) == release

    @pytest.mark.parametrize("text", ["mine", "", "6", "six.one"])
    def test_name_that_says_no_release(self, text: str) -> None:
        with pytest.raises((ValueError, IndexError)):
            Release.parse(text)


class TestWindowScale:
    @pytest.mark.parametrize(
        ("rcvbuf_bytes", "scale"),
        [
            *((2304, 0), (65535, 0), (65536, 1), (131071, 1), (131072, 2), (6291455, 7), (6291456, 7)),
            *((2**29 - 1, 13), (2**29, 14), (2**30, 14), (2**31 - 1, 14)),
        ],
    )
    def test_holds_the_buffer_in_sixteen_bits(self, rcvbuf_bytes: int, scale: int) -> None:
        assert windows.window_scale(rcvbuf_bytes) == scale

    @given(BUFFERS, RELEASES, SCALES, st.integers(524, 65483), st.booleans())
    def test_window_is_what_the_header_can_say(
        self, rcvbuf: int, release: Release, scale: int, mss: int, offloads: bool
    ) -> None:
        window = windows.receive_window_bytes(rcvbuf, release, scale, mss, offloads)
        shift = windows.window_scale(rcvbuf)
        assert 0 <= window <= 65535 << 14 <= 2**30
        assert window <= rcvbuf
        assert window >> shift <= 65535
        assert window >> shift << shift == window
        space = windows.window_from_space(rcvbuf, release, scale, mss, offloads)
        assert 0 <= min(space, 65535 << shift) - window < 1 << shift

    def test_default_buffer(self) -> None:
        assert windows.receive_window_bytes(6291456, L61, 1, 1448, offloads=False) == 3145728
        assert windows.receive_window_bytes(6291456, L612, 1, 1448, offloads=False) == 3981312

    def test_largest_buffer(self) -> None:
        assert windows.receive_window_bytes(2**31 - 1, L61, 0, 1448, offloads=False) == 65535 << 14


class TestSendBuffer:
    @given(BUFFERS, BUFFERS, st.integers(524, 65483))
    def test_grows_and_stays_near_two_thirds(self, one: int, other: int, mss: int) -> None:
        small, large = sorted((one, other))
        window = windows.send_window_bytes(small, mss)
        assert 0 < window <= windows.send_window_bytes(large, mss)
        assert window <= small * 2 / 3 + 65536

    def test_default(self) -> None:
        assert windows.send_window_bytes(4194304, 1448) == pytest.approx(4194304 * 2 / 3, rel=0.02)


class TestPath:
    def test_bdp(self) -> None:
        assert path.bdp_bytes(1e9, 0.2) == 25e6

    @pytest.mark.parametrize(("mtu", "mss"), [(1500, 1448), (9000, 8948), (576, 524)])
    def test_segment_with_timestamps(self, mtu: int, mss: int) -> None:
        assert path.mss_bytes(mtu) == mss
        assert path.payload_share(mtu) == mss / (mtu + 14)

    def test_full_queue(self) -> None:
        assert path.queue_delay_s(25_000_000, 1e9) == pytest.approx(0.2)


class TestLoss:
    def test_reno_window_is_that_of_mathis(self) -> None:
        assert loss.reno_window_segs(0.0015) == pytest.approx(math.sqrt(1000))

    @pytest.mark.parametrize(
        ("p", "window"),
        # at an RTT of 0.1 s: 1.054 (RTT / p)^(3/4), and the window of Reno where that is larger
        [(1e-2, 12), (1e-3, 38), (1e-4, 187), (1e-5, 1054), (1e-6, 5926), (1e-7, 33_325), (1e-8, 187_400)],
    )
    def test_cubic_window_is_the_larger_of_its_two_regions(self, p: float, window: int) -> None:
        assert loss.cubic_window_segs(p, 0.1) == pytest.approx(window, rel=0.025)

    def test_cubic_on_a_short_path_is_as_reno(self) -> None:
        assert loss.cubic_window_segs(1e-3, 0.001) == loss.reno_window_segs(1e-3)

    @given(st.sampled_from(["cubic", "reno", "bbr"]), st.floats(1e-9, 1), st.floats(1e-9, 1))
    def test_more_loss_never_gives_more(self, cc: str, one: float, other: float) -> None:
        low, high = sorted((one, other))
        more = loss.rate_bound_bps(cc, low, 0.1, 1448, 1e9)
        assert 0 <= loss.rate_bound_bps(cc, high, 0.1, 1448, 1e9) <= more

    @pytest.mark.parametrize(
        ("cc", "p", "rtt_s"), [("cubic", 0.0, 0.1), ("cubic", 0.1, 0.0), ("vegas", 0.1, 0.1)]
    )
    def test_no_bound_is_infinite_and_left_out(self, cc: str, p: float, rtt_s: float) -> None:
        assert loss.rate_bound_bps(cc, p, rtt_s, 1448, 1e9) == math.inf
        prediction = predict(Setting(rate_bps=1e9, rtt_s=rtt_s, release=L612, cc=cc, loss=p))
        assert LOSS not in prediction.bounds_bps

    @pytest.mark.parametrize("flows", [1, 4])
    def test_of_bbr_leaves_all_flows_together_what_was_not_lost(self, flows: int) -> None:
        setting = Setting(rate_bps=1e8, rtt_s=0.01, release=L612, loss=0.1, cc="bbr", flows=flows)
        link = 1e8 * path.payload_share(1500)
        assert predict(setting).bounds_bps[LOSS] == pytest.approx(0.9 * link)

    def test_binds_a_lossy_path(self) -> None:
        prediction = predict(
            Setting(
                rate_bps=1e9,
                rtt_s=0.2,
                release=L612,
                loss=1e-3,
                rmem=triple(100 * MIB),
                wmem=triple(100 * MIB),
            )
        )
        assert prediction.limit == LOSS
        assert prediction.sentence == "Loss binds: the congestion window that it leaves gives 3.246 Mbit/s."


class TestBbr:
    @pytest.mark.parametrize(("rtt_s", "share"), [(0.0, 0.98), (0.2, 0.96), (1.0, 0.8), (20.0, 0.5)])
    def test_share_of_the_time_that_it_sends(self, rtt_s: float, share: float) -> None:
        assert bbr_duty(rtt_s) == pytest.approx(share)
