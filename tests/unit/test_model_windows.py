"""The receive window: the kernels' rules by example, computed by hand, and laws that any window keeps."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import memory
from lab.model import windows
from lab.model.inputs import Release, Setting
from lab.model.path import mss_bytes
from tests.model_settings import L61, L612, MIB, RELEASES, ample, settings, triple

DEFAULT = memory.DEFAULTS["rmem"]


def window(**changes: object) -> int:
    return windows.receive_window_bytes(ample(**{"rmem": DEFAULT, **changes}))


def held_back(mtu: int, ratio: int) -> int:
    """Return what a segment that just came takes of the window, since Linux 6.6."""
    return (mss_bytes(mtu) + 832) * ratio // 256


class TestShare:
    def test_overhead_of_a_segment_on_a_veth(self) -> None:
        """struct sk_buff, its head with the headers, struct skb_shared_info."""
        assert windows.SKB_OVERHEAD_BYTES == 256 + 256 + 320

    @pytest.mark.parametrize(
        ("adv_win_scale", "space"),
        [(1, 3145728), (2, 4718592), (3, 5505024), (0, 6291456), (-1, 3145728), (-2, 1572864), (-31, 0)],
    )
    @pytest.mark.parametrize("release", [Release(4, 18), L61, Release(6, 5)])
    def test_before_6_6_is_the_sysctl(self, release: Release, adv_win_scale: int, space: int) -> None:
        setting = ample(release=release, adv_win_scale=adv_win_scale)
        assert windows.window_from_space(6291456, setting) == space

    @pytest.mark.parametrize(
        ("mtu", "offloads", "rtt_s", "ratio"),
        [
            (1500, False, 0.2, 162),  # 1448 x 256 / 2280
            (9000, False, 0.2, 234),  # 8948 x 256 / 9780
            (1280, False, 0.2, 152),  # 1228 x 256 / 2060
            (1500, True, 0.2, 198),  # 2896 x 256 / 3728
            (1500, True, 0.001, 214),  # 4344 x 256 / 5176: three segments where the initial window goes fast
        ],
    )
    @pytest.mark.parametrize("release", [Release(6, 6), L612, Release(7, 1)])
    def test_since_6_6_is_the_payload_of_the_first_segments(
        self, release: Release, mtu: int, offloads: bool, rtt_s: float, ratio: int
    ) -> None:
        assert windows.scaling_ratio(mss_bytes(mtu), offloads, rtt_s) == ratio
        setting = ample(release=release, mtu_bytes=mtu, offloads=offloads, rtt_s=rtt_s)
        assert windows.window_from_space(6291456, setting) == 6291456 * ratio // 256

    @pytest.mark.parametrize(
        ("release", "ignored"),
        [
            *(("5.10", False), ("6.1.90", False), ("6.5.13", False)),
            *(("6.6", True), ("6.12.117", True), ("7.0", True)),
        ],
    )
    def test_sysctl_is_ignored_since_6_6(self, release: str, ignored: bool) -> None:
        assert windows.ignores_adv_win_scale(Release.parse(release)) is ignored


class TestBuffer:
    def test_opens_to_the_third_value(self) -> None:
        assert windows.rcvbuf_bytes(ample(rmem=DEFAULT)) == 6291456

    def test_stays_at_the_second_without_autotuning(self) -> None:
        assert windows.rcvbuf_bytes(ample(rmem=DEFAULT, moderate_rcvbuf=False)) == 131072

    @pytest.mark.parametrize(
        ("asked", "rmem_max", "size"),
        [
            (100_000, 212992, 200_000),  # doubled
            (212992, 212992, 425984),
            (MIB, 212992, 425984),  # cut to rmem_max, then doubled
            (MIB, 4 * MIB, 2 * MIB),
            (1, 212992, 2304),  # SOCK_MIN_RCVBUF
        ],
    )
    def test_that_the_application_sets_is_doubled_and_cut(self, asked: int, rmem_max: int, size: int) -> None:
        for moderate in (True, False):  # a locked buffer is not tuned
            setting = ample(rcvbuf_bytes=asked, rmem_max_bytes=rmem_max, moderate_rcvbuf=moderate)
            assert windows.rcvbuf_bytes(setting) == size


class TestScale:
    @pytest.mark.parametrize(
        ("rmem", "scale"),
        [
            *((65536, 2), (131072, 2), (262143, 2), (262144, 3), (6291455, 7), (6291456, 7), (2**23, 8)),
            *((2**29 - 1, 13), (2**29, 14), (2**30, 14), (2**31 - 1, 14)),
        ],
    )
    def test_holds_the_larger_of_tcp_rmem_and_rmem_max_in_sixteen_bits(self, rmem: int, scale: int) -> None:
        assert windows.window_scale(ample(rmem=triple(rmem))) == scale

    def test_of_small_buffers_follows_rmem_max(self) -> None:
        small = ample(rmem=triple(65536))
        assert windows.window_scale(replace(small, rmem_max_bytes=2304)) == 1
        assert windows.window_scale(replace(small, rmem_max_bytes=32 * MIB)) == 10

    @pytest.mark.parametrize(("release", "scale"), [(L612, 2), (L61, 2)])
    def test_of_a_buffer_that_the_application_set_is_its_window_s(self, release: Release, scale: int) -> None:
        """Both take half of 400 000 bytes before any segment came: 128/256, and tcp_adv_win_scale 1."""
        setting = ample(release=release, rcvbuf_bytes=200_000)
        assert windows.window_scale(setting) == scale

    def test_is_fourteen_at_most(self) -> None:
        assert windows.window_scale(ample(rmem=triple(memory.LARGEST_BYTES))) == 14


class TestWindow:
    @pytest.mark.parametrize(
        ("adv_win_scale", "size"), [(1, 3145728), (2, 4718592), (0, 6291456), (-2, 1572864)]
    )
    def test_on_6_1(self, adv_win_scale: int, size: int) -> None:
        assert window(release=L61, adv_win_scale=adv_win_scale) == size

    @pytest.mark.parametrize(("mtu", "ratio"), [(1500, 162), (9000, 234)])
    def test_on_6_12(self, mtu: int, ratio: int) -> None:
        free = 6291456 * ratio // 256 - held_back(mtu, ratio)
        assert window(mtu_bytes=mtu) == -(-free // 128) * 128  # scale 7

    def test_measured_on_6_12(self) -> None:
        """Greatest tcpi_snd_wnd at 25 MiB, docs/theory.md."""
        fixed = memory.Triple(25 * MIB, 25 * MIB, 25 * MIB)
        assert window(rmem=fixed) == pytest.approx(16_587_776, abs=1024)
        assert window(rmem=fixed, mtu_bytes=9000) == pytest.approx(23_953_920, abs=1024)

    @pytest.mark.parametrize(
        ("app_win", "size"),
        # of a window of 65536: the part that tcp_app_win keeps back, and at least one segment
        [(31, 65536 - 1448), (1, 32768), (2, 49152), (4, 61440), (0, 65536)],
    )
    def test_that_is_never_opened_keeps_a_part_back_before_6_6(self, app_win: int, size: int) -> None:
        found = window(release=L61, moderate_rcvbuf=False, app_win=app_win)
        assert found == -(-size // 128) * 128

    @pytest.mark.parametrize("app_win", [0, 1, 4, 31])
    def test_that_is_opened_does_not(self, app_win: int) -> None:
        assert window(release=L61, app_win=app_win) == 3145728
        assert window(app_win=app_win) == window()

    def test_ends_just_under_a_gibibyte(self) -> None:
        assert window(release=L61, adv_win_scale=0, rmem=triple(2**31 - 1)) == 65535 << 14
        assert window(mtu_bytes=9000, rmem=triple(2**31 - 1)) == 65535 << 14

    @given(settings())
    def test_is_what_the_header_can_say(self, setting: Setting) -> None:
        size, shift = windows.receive_window_bytes(setting), windows.window_scale(setting)
        assert 0 <= size <= 65535 << 14 <= 2**30
        assert size >> shift <= 65535
        assert size >> shift << shift == size
        assert size < windows.rcvbuf_bytes(setting) + (1 << shift)

    @given(settings(), st.integers(2304, memory.LARGEST_BYTES))
    def test_grows_with_the_buffer_but_for_its_rounding(self, setting: Setting, other: int) -> None:
        plain = replace(setting, rcvbuf_bytes=None, moderate_rcvbuf=True, rmem_max_bytes=memory.LARGEST_BYTES)
        small, large = sorted((plain.rmem.maximum, other))
        less, more = (
            windows.receive_window_bytes(replace(plain, rmem=memory.Triple(1, 1, size)))
            for size in (small, large)
        )
        assert less <= more


class TestRelease:
    @pytest.mark.parametrize(
        ("text", "release"),
        [
            *(("6.12", (6, 12)), ("6.12.117", (6, 12)), ("6.12@1000", (6, 12)), ("6.1.0-rc1", (6, 1))),
            *(("6.16-rc3+", (6, 16)), ("10.0.1-debug", (10, 0))),
        ],
    )
    def test_by_its_name(self, text: str, release: tuple[int, int]) -> None:
        assert Release.parse(text) == release

    @pytest.mark.parametrize("text", ["mine", "", "6", "six.one"])
    def test_name_that_says_none(self, text: str) -> None:
        with pytest.raises((ValueError, IndexError)):
            Release.parse(text)

    @given(RELEASES)
    def test_is_written_as_it_is_read(self, release: Release) -> None:
        assert Release.parse(str(release)) == release
