"""The verdict in words: what bound, and the one thing that gives more."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import explain, memory
from lab.explain import Measured, sentence
from lab.model.inputs import Release, Setting
from lab.model.limits import (
    APPLICATION,
    HYSTART,
    LIMITS,
    LINK,
    LOSS,
    MACHINE,
    PACING,
    QUEUE,
    RECEIVE_WINDOW,
    SEND_BUFFER,
    SLOW_START,
)
from lab.model.predict import predict
from tests.model_settings import L61, L612, MIB, ample, settings, triple

UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def measured(limit: str, **changes: Any) -> Measured:
    usual = Measured(
        limit=limit, share=0.93, steady_bps=100e6, rtt_s=0.2, load_s=12.0, retransmits=120, queue_drops=33
    )
    return replace(usual, **changes)


def said(limit: str, setting: Setting | None = None, **changes: Any) -> str:
    return sentence(setting or ample(), measured(limit, **changes))


def advised(text: str, knob: str) -> int:
    """Return the size that a sentence asks for, bytes."""
    found = re.search(re.escape(knob) + r"[^.]*? at least ([\d.]+) (KiB|MiB|GiB)", text)
    assert found, text
    return int(float(found[1]) * UNITS[found[2]])


class TestEveryLimit:
    @pytest.mark.parametrize("limit", LIMITS)
    def test_has_a_sentence_with_its_share(self, limit: str) -> None:
        text = said(limit)
        assert "bound 93 % of the transfer" in text
        assert text.endswith(".")
        assert text[0].isupper()

    @pytest.mark.parametrize(
        ("limit", "words"),
        [
            (LINK, "100 Mbit/s of payload at 1 Gbit/s. Nothing at the hosts gives more."),
            (RECEIVE_WINDOW, "2.384 MiB in flight of a BDP of 23.84 MiB. Raise tcp_rmem[2] on the receiver"),
            (SEND_BUFFER, "2.384 MiB in flight of a BDP of 23.84 MiB. Raise tcp_wmem[2] on the sender"),
            (LOSS, "120 segments sent again"),
            (QUEUE, "33 drops"),
            (HYSTART, "A transfer longer than 12 s gets further"),
            (SLOW_START, "buffers do not shorten it"),
            (PACING, "drains the path to measure the RTT"),
            (APPLICATION, "it gave the socket nothing to send"),
            (MACHINE, "its own limit, not the network's"),
        ],
    )
    def test_says_the_numbers_that_belong_to_it(self, limit: str, words: str) -> None:
        assert words in said(limit)

    @given(settings(), st.sampled_from(LIMITS), st.floats(0, 1), st.floats(0, 400e9), st.integers(0, 10**6))
    def test_speaks_of_any_point(
        self, setting: Setting, limit: str, share: float, steady_bps: float, count: int
    ) -> None:
        text = sentence(
            setting,
            measured(limit, share=share, steady_bps=steady_bps, retransmits=count, queue_drops=count),
        )
        assert text.endswith(".")
        assert "nan" not in text
        assert " inf" not in text
        assert "None" not in text


class TestReceiveWindow:
    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"release": L61}, "6.1: tcp_adv_win_scale 1 makes half of it window"),
            ({"release": L61, "adv_win_scale": 2}, "tcp_adv_win_scale 2 makes three quarters of it window"),
            ({"release": L61, "adv_win_scale": -2}, "tcp_adv_win_scale -2 makes a quarter of it window"),
            ({"release": L61, "adv_win_scale": 0}, "tcp_adv_win_scale 0 makes all of it window"),
            ({"release": L61, "adv_win_scale": 3}, "tcp_adv_win_scale 3 makes 0.875 of it window"),
            ({"release": Release(6, 5)}, "6.5: tcp_adv_win_scale 1 makes half of it window"),
            ({"release": Release(6, 6)}, "6.6: the window is what segments leave of the buffer beside their"),
            ({"release": L612, "adv_win_scale": -2}, "6.12: the window is what segments leave of the buffer"),
        ],
    )
    def test_names_the_kernel_s_rule(self, changes: dict[str, Any], words: str) -> None:
        assert words in said(RECEIVE_WINDOW, ample(rmem=triple(4 * MIB), **changes))

    @pytest.mark.parametrize("release", [L61, L612])
    @pytest.mark.parametrize("rtt_s", [0.2, 0.01])
    def test_what_it_asks_for_fills_the_link(self, release: Release, rtt_s: float) -> None:
        bound = ample(release=release, rtt_s=rtt_s, rmem=triple(MIB))
        size = advised(said(RECEIVE_WINDOW, bound), "tcp_rmem[2]")
        assert predict(bound).steady_limit == RECEIVE_WINDOW
        assert predict(replace(bound, rmem=triple(size))).predicted_goodput_bps > 0.995 * 956.4e6

    def test_that_the_application_set_is_to_be_left_alone(self) -> None:
        text = said(RECEIVE_WINDOW, ample(rcvbuf_bytes=4 * MIB))
        assert "The application sets SO_RCVBUF to 4096 KiB" in text
        assert "net.core.rmem_max lets 208 KiB through" in text
        assert "turns autotuning off" in text

    def test_without_autotuning_is_to_be_tuned(self) -> None:
        text = said(RECEIVE_WINDOW, ample(moderate_rcvbuf=False))
        assert "Turn tcp_moderate_rcvbuf on: without it the buffer stays at tcp_rmem[1], 128 KiB." in text

    def test_without_autotuning_and_too_small_even_with_it(self) -> None:
        text = said(RECEIVE_WINDOW, ample(moderate_rcvbuf=False, rmem=triple(MIB)))
        assert "Raise tcp_rmem[2]" in text

    def test_beyond_a_gibibyte_takes_several_flows(self) -> None:
        text = said(RECEIVE_WINDOW, ample(rate_bps=400e9))
        assert "No tcp_rmem gives a window of 8.9" in text
        assert "TCP's ends at 1 GiB. 9 flows would do." in text

    def test_beyond_a_gibibyte_with_several_flows(self) -> None:
        """Each of 4 flows would need 2.2 GiB, which is 3 windows: 12."""
        assert "12 flows would do" in said(RECEIVE_WINDOW, ample(rate_bps=400e9, flows=4))


class TestSendBuffer:
    def test_what_it_asks_for_fills_the_link(self) -> None:
        bound = ample(wmem=triple(4 * MIB))
        size = advised(said(SEND_BUFFER, bound), "tcp_wmem[2]")
        assert predict(bound).steady_limit == SEND_BUFFER
        assert predict(replace(bound, wmem=triple(size))).predicted_goodput_bps > 0.99 * 956.4e6

    def test_that_the_application_set_is_to_be_left_alone(self) -> None:
        text = said(SEND_BUFFER, ample(sndbuf_bytes=MIB))
        assert "The application sets SO_SNDBUF to 1024 KiB, of which net.core.wmem_max lets 208 KiB" in text

    def test_where_memory_is_short_it_says_so(self) -> None:
        assert "and tcp_mem with it" in said(SEND_BUFFER, ample(wmem=triple(4 * MIB), tcp_mem_bytes=2**30))

    def test_beyond_two_gibibytes_takes_several_flows(self) -> None:
        assert "Several flows would do." in said(SEND_BUFFER, ample(rate_bps=400e9))


class TestLoss:
    def test_recommends_what_loss_does_not_hold(self) -> None:
        text = said(LOSS, ample(loss=0.001))
        assert "No buffer helps; mend the loss, or use bbr, which the model gives 9" in text

    def test_recommends_nothing_that_is_no_better(self) -> None:
        assert said(LOSS, ample(loss=0.001, cc="bbr")).endswith("No buffer helps; mend the loss.")
        assert said(LOSS, ample(loss=1.0)).endswith("No buffer helps; mend the loss.")


class TestQueue:
    def test_asks_for_what_the_control_needs(self) -> None:
        text = said(QUEUE, ample(cc="reno", queue_bytes=2.5e6))
        assert "reno needs about 24 MiB, 1 BDP, to keep the link busy after a drop." in text

    def test_that_is_long_enough_says_what_happened(self) -> None:
        text = said(QUEUE, ample(cc="cubic", queue_bytes=50e6))
        assert "would do for cubic in the long run" in text

    def test_of_packets_that_nobody_counted(self) -> None:
        assert "33 drops" in said(QUEUE, ample(queue_bytes=None))


class TestSize:
    @given(st.integers(4608, 2**31 - 2**20))
    def test_is_rounded_up_hardly_and_can_be_typed(self, size: int) -> None:
        text = explain._size(size)
        number, unit = text.split()
        shown = int(number) * UNITS[unit]
        assert size <= shown <= max(size * 1.07, size + 1024)
        assert memory.parse(text.replace(" ", ""), "wmem").maximum == shown


class TestWithoutAModel:
    @pytest.mark.parametrize("limit", LIMITS)
    def test_says_what_bound_and_gives_no_advice(self, limit: str) -> None:
        text = explain.plain(100e6, 0.2, measured(limit))
        assert " bound 93 % of the transfer: 100 Mbit/s of payload at 100 Mbit/s" in text
        assert text.endswith("33 drops at the bottleneck, 120 segments sent again.")
        assert text[0].isupper()
        assert "aise" not in text


@pytest.mark.parametrize("limit", LIMITS)
def test_path_without_a_delay_has_a_sentence_too(limit: str) -> None:
    assert "bound 93 % of the transfer" in said(limit, replace(ample(), rtt_s=0.0))
