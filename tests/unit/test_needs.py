"""Which buffers a path needs: the least that the model's own rules allow."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from lab import memory
from lab.model import needs, path, sendbuf, windows
from lab.model.inputs import Setting
from lab.model.limits import LINK
from lab.model.predict import predict
from tests.model_settings import L61, L612, MIB, ample, settings, triple


class TestPayload:
    def test_is_the_bdp_without_headers_shared_by_the_flows(self) -> None:
        assert needs.payload_bdp_bytes(ample()) == pytest.approx(25e6 * 1448 / 1514)
        assert needs.payload_bdp_bytes(ample(flows=5)) == pytest.approx(5e6 * 1448 / 1514)

    def test_window_has_room_for_a_burst_besides(self) -> None:
        """1 Gbit/s x 10 ms with no room for it gave 95 % of the link."""
        short = ample(rtt_s=0.01)
        assert needs.window_bytes(short) / needs.payload_bdp_bytes(short) == pytest.approx(1.054, abs=0.01)
        assert needs.window_bytes(ample()) / needs.payload_bdp_bytes(ample()) == pytest.approx(1, abs=0.004)


class TestReceiveBuffer:
    @pytest.mark.parametrize(
        ("changes", "share"),
        [
            ({"release": L61}, 0.5),
            ({"release": L61, "adv_win_scale": 2}, 0.75),
            ({"release": L61, "adv_win_scale": -2}, 0.25),
            ({"release": L612}, 162 / 256),
            ({"release": L612, "mtu_bytes": 9000}, 234 / 256),
        ],
    )
    def test_is_the_window_by_the_kernel_s_share(self, changes: dict[str, object], share: float) -> None:
        assert needs.rmem_bytes(ample(**changes), 24e6) == pytest.approx(24e6 / share, rel=2e-3)

    def test_counts_no_buffer_that_is_set_now(self) -> None:
        """What the application locks, or autotuning off, is not what is needed."""
        plain = needs.rmem_bytes(ample(), 24e6)
        assert needs.rmem_bytes(ample(rcvbuf_bytes=4096, moderate_rcvbuf=False), 24e6) == plain
        assert needs.rmem_bytes(ample(rmem=triple(MIB)), 24e6) == plain

    def test_no_buffer_has_a_window_over_a_gibibyte(self) -> None:
        assert needs.rmem_bytes(ample(), 2**30) is None
        assert needs.rmem_bytes(ample(), 2**30 - 2**20) is not None

    def test_none_does_where_the_kernel_makes_no_window_of_it(self) -> None:
        assert needs.rmem_bytes(ample(release=L61, adv_win_scale=-31), 1e6) is None

    @given(settings(plain=True))
    def test_is_enough_and_hardly_more(self, setting: Setting) -> None:
        wanted = min(needs.payload_bdp_bytes(setting), 2**28)
        least = needs.rmem_bytes(setting, wanted)
        if least is None:
            return

        def window(size: int) -> int:
            default = min(setting.rmem.default, size)
            rmem = memory.Triple(min(setting.rmem.minimum, size), default, size)
            return windows.receive_window_bytes(replace(setting, rmem=rmem))

        assert window(least) >= wanted
        if least > 2**17:
            assert window(int(least * 0.99)) < wanted + (1 << 14)


class TestSendBuffer:
    def test_is_half_as_much_again(self) -> None:
        """Two thirds of it stay in flight, and a segment."""
        assert needs.wmem_bytes(ample(), 24e6) == pytest.approx(1.5 * 24e6, rel=0.02)

    def test_none_does_beyond_two_gibibytes(self) -> None:
        assert needs.wmem_bytes(ample(), 1.5 * 2**30) is None

    def test_counts_no_buffer_that_is_set_now(self) -> None:
        assert needs.wmem_bytes(ample(sndbuf_bytes=4096), 24e6) == needs.wmem_bytes(ample(), 24e6)

    @given(settings(plain=True))
    def test_is_enough(self, setting: Setting) -> None:
        wanted = min(needs.payload_bdp_bytes(setting), 2**28)
        least = needs.wmem_bytes(setting, wanted)
        assert least is not None
        assert sendbuf.flight(replace(setting, wmem=triple(least)), 2**30).mean_bytes >= wanted


@pytest.mark.parametrize("release", [L61, L612])
@pytest.mark.parametrize(
    "changes", [{}, {"flows": 4}, {"mtu_bytes": 9000}, {"rate_bps": 1e8, "rtt_s": 0.05}, {"rtt_s": 0.01}]
)
def test_what_is_needed_fills_the_path(release: object, changes: dict[str, object]) -> None:
    wanted = ample(release=release, **changes)
    rmem = needs.rmem_bytes(wanted, needs.window_bytes(wanted))
    wmem = needs.wmem_bytes(wanted, needs.payload_bdp_bytes(wanted))
    assert rmem is not None
    assert wmem is not None
    given_setting = replace(wanted, rmem=triple(int(rmem * 1.01)), wmem=triple(int(wmem * 1.01)))
    made = predict(given_setting)
    link_bps = given_setting.rate_bps * path.payload_share(given_setting.mtu_bytes)
    assert made.steady_limit == LINK
    assert made.predicted_goodput_bps == pytest.approx(link_bps, rel=0.01)
    half = predict(replace(given_setting, rmem=triple(rmem // 2), wmem=triple(wmem // 2)))
    assert half.predicted_goodput_bps < 0.6 * link_bps
