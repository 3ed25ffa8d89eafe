"""A verdict in words: what bound, for how long, with the numbers, and what would give more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lab.model import needs, path, queueing
from lab.model.inputs import Setting
from lab.model.limits import (
    APPLICATION,
    HYSTART,
    LINK,
    LOSS,
    MACHINE,
    PACING,
    QUEUE,
    RECEIVE_WINDOW,
    SEND_BUFFER,
    SLOW_START,
)
from lab.model.limits import words as limit_words
from lab.model.predict import predict
from lab.model.windows import ignores_adv_win_scale
from lab.units import human_rate, human_size

_MIB = 2**20


@dataclass(frozen=True)
class Measured:
    """What a sentence needs of a point. Rates bit/s, times s."""

    limit: str
    share: float
    steady_bps: float
    rtt_s: float
    load_s: float
    retransmits: int
    queue_drops: int


def sentence(setting: Setting, measured: Measured) -> str:
    """Return the verdict on a point and the mend."""
    bound = f"bound {100 * measured.share:.0f} % of the transfer"
    flying = measured.steady_bps * setting.rtt_s / 8
    bdp = path.bdp_bytes(setting.rate_bps, setting.rtt_s)
    held = f"{human_size(flying)} in flight of a BDP of {human_size(bdp)}"
    goodput = human_rate(measured.steady_bps)
    said: Mapping[str, str] = {
        LINK: f"Link {bound}: {goodput} of payload at {human_rate(setting.rate_bps)}."
        " Nothing at the hosts gives more.",
        RECEIVE_WINDOW: f"Receive window {bound}: {held}. {_more_window(setting)}",
        SEND_BUFFER: f"Send buffer {bound}: {held}. {_more_sndbuf(setting)}",
        LOSS: f"Loss {bound}: {measured.retransmits} segments sent again, {held}. {_against_loss(setting)}",
        QUEUE: f"Bottleneck queue {bound}: {measured.queue_drops} drops, {held}. {_more_queue(setting)}",
        HYSTART: f"HyStart {bound}: slow start was left before the path was full, and the congestion window"
        f" grew slowly from there: {held}. A transfer longer than {measured.load_s:.3g} s gets further.",
        SLOW_START: f"Slow start {bound}: {held}. A transfer longer than {measured.load_s:.3g} s gets"
        " further; buffers do not shorten it.",
        PACING: f"Pacing {bound}: {setting.cc} sends at the rate that it has measured, and drains the path to"
        f" measure the RTT: {held}.",
        APPLICATION: f"Application {bound}: it gave the socket nothing to send, {goodput}.",
        MACHINE: f"Machine {bound}: what was measured is its own limit, not the network's.",
    }
    return said[measured.limit]


def plain(rate_bps: float, rtt_s: float, measured: Measured) -> str:
    """Return the verdict on a point that the model does not know: what bound, and no mend."""
    flying = human_size(measured.steady_bps * rtt_s / 8)
    named = limit_words(measured.limit)
    return (
        f"{named[:1].upper()}{named[1:]} bound {100 * measured.share:.0f} % of the transfer:"
        f" {human_rate(measured.steady_bps)} of payload at {human_rate(rate_bps)}, {flying} in flight;"
        f" {measured.queue_drops} drops at the bottleneck, {measured.retransmits} segments sent again."
    )


def _size(size_bytes: float) -> str:
    """Return a size to be set: rounded up to whole MiB from 16 MiB on, else to whole KiB."""
    unit, name = (_MIB, "MiB") if size_bytes >= 16 * _MIB else (1024, "KiB")
    return f"{int(-(-size_bytes // unit))} {name}"


def _more_window(setting: Setting) -> str:
    wanted = needs.window_bytes(setting)
    least = needs.rmem_bytes(setting, wanted)
    if least is None:
        flows = int(-(-wanted // (2**30 * 0.99)))
        return (
            f"No tcp_rmem gives a window of {human_size(wanted)}: TCP's ends at 1 GiB."
            f" {flows * setting.flows} flows would do."
        )
    share = _window_share(setting)
    if setting.rcvbuf_bytes is not None:
        passed = min(setting.rcvbuf_bytes, setting.rmem_max_bytes)
        return (
            f"The application sets SO_RCVBUF to {_size(setting.rcvbuf_bytes)}, of which net.core.rmem_max"
            f" lets {_size(passed)} through, and that turns autotuning off: let it leave SO_RCVBUF alone,"
            f" with tcp_rmem[2] on the receiver at least {_size(least)} ({share}), or ask for"
            f" {_size(least / 2)} with net.core.rmem_max as large."
        )
    if not setting.moderate_rcvbuf and setting.rmem.maximum >= least:
        return (
            "Turn tcp_moderate_rcvbuf on: without it the buffer stays at tcp_rmem[1],"
            f" {_size(setting.rmem.default)}."
        )
    return f"Raise tcp_rmem[2] on the receiver to at least {_size(least)} ({share})."


def _window_share(setting: Setting) -> str:
    if ignores_adv_win_scale(setting.release):
        return f"{setting.release}: the window is what segments leave of the buffer beside their overhead"
    scale = setting.adv_win_scale
    kept = 1 - 0.5**scale if scale > 0 else 0.5**-scale
    words = {0.5: "half", 0.25: "a quarter", 0.75: "three quarters", 1.0: "all"}
    return f"{setting.release}: tcp_adv_win_scale {scale} makes {words.get(kept, f'{kept:.3g}')} of it window"


def _more_sndbuf(setting: Setting) -> str:
    least = needs.wmem_bytes(setting, needs.payload_bdp_bytes(setting))
    if least is None:
        return "No tcp_wmem keeps a BDP in flight: a send buffer ends at 2 GiB. Several flows would do."
    if setting.sndbuf_bytes is not None:
        passed = min(setting.sndbuf_bytes, setting.wmem_max_bytes)
        return (
            f"The application sets SO_SNDBUF to {_size(setting.sndbuf_bytes)}, of which net.core.wmem_max"
            f" lets {_size(passed)} through: let it leave SO_SNDBUF alone, with tcp_wmem[2] on the sender"
            f" at least {_size(least)}."
        )
    if setting.tcp_mem_bytes is not None:
        return f"Raise tcp_wmem[2] on the sender to at least {_size(least)}, and tcp_mem with it."
    return f"Raise tcp_wmem[2] on the sender to at least {_size(least)} (two thirds of it stay in flight)."


def _against_loss(setting: Setting) -> str:
    other = "bbr" if setting.cc != "bbr" else "cubic"
    there = predict(replace(setting, cc=other))
    here = predict(setting)
    words = "No buffer helps; mend the loss"
    if there.predicted_goodput_bps > 1.2 * here.predicted_goodput_bps:
        words += f", or use {other}, which the model gives {human_rate(there.predicted_goodput_bps)}"
    return f"{words}."


def _more_queue(setting: Setting) -> str:
    least = queueing.least_queue_bytes(setting.cc, setting.rate_bps, setting.rtt_s, setting.flows)
    bdp = path.bdp_bytes(setting.rate_bps, setting.rtt_s)
    bdps = f", {least / bdp:.2g} BDP," if bdp else ""
    have = setting.queue_bytes or 0.0
    if have >= least:
        return (
            f"Its {human_size(have)} would do for {setting.cc} in the long run; here the burst of slow start"
            " or of a refilled send buffer overran it, and the window is still coming back."
        )
    return (
        f"Its {human_size(have)} are short: {setting.cc} needs about {_size(least)}{bdps}"
        " to keep the link busy after a drop."
    )
