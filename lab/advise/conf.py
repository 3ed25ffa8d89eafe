"""The sysctl.d files of the advice: every line with its reason above it. Text only, from rows alone."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lab import memory
from lab.advise import cost
from lab.advise.ask import MIB, Ask, percent
from lab.advise.choose import Choice, Proof, bounds, needed_bytes, whole
from lab.advise.find import Finding, Row, goodput_bps
from lab.model.windows import ignores_adv_win_scale
from lab.units import format_time, human_rate, human_size

WIDTH = 100
SENDER_FILE, RECEIVER_FILE = "sender.conf", "receiver.conf"


@dataclass(frozen=True)
class Told:
    """What the files are written from. command: as it was typed; cc_asked: congestion controls were named."""

    ask: Ask
    findings: Sequence[Finding]
    choice: Choice
    command: str
    cc_asked: bool


def sender(told: Told) -> str:
    """Return the sender's file."""
    size = told.choice.sizes["wmem"]
    half = _core_max(told, "wmem")
    parts = [
        _head(told, "Sender", "send buffers that keep the path full", SENDER_FILE),
        _line(
            "net.ipv4.tcp_wmem",
            _triple("wmem", size),
            [
                _size_reason(told, "wmem"),
                "The kernel opens the buffer of a connection up to the third number as its congestion window"
                " grows; least and first are the kernel's own. About two thirds of a send buffer are in"
                " flight, because a writer that filled it is woken when a third is free: so it has to be"
                " larger than the window.",
                *_memory_reasons(told, "wmem", "what is written and not yet acknowledged"),
                *_delay_reasons(told),
            ],
        ),
        _line(
            "net.core.wmem_max",
            str(half),
            [
                "For applications that set SO_SNDBUF: the kernel cuts what they ask for to this and doubles"
                f" it, so half of the buffer is enough: 2 x {half} bytes. Such a buffer is fixed, the kernel"
                " tunes it no more. Without SO_SNDBUF this line does nothing.",
            ],
        ),
        _scaling(),
        *_control(told),
        *_many(told, "wmem"),
    ]
    return "\n".join(parts)


def receiver(told: Told) -> str:
    """Return the receiver's file."""
    size = told.choice.sizes["rmem"]
    half = _core_max(told, "rmem")
    parts = [
        _head(told, "Receiver", "receive buffers whose window lets a sender fill the path", RECEIVER_FILE),
        _line(
            "net.ipv4.tcp_rmem",
            _triple("rmem", size),
            [
                _size_reason(told, "rmem"),
                *_merged_reason(told),
                "The kernel opens the buffer of a connection up to the third number as data arrives; least"
                " and first are the kernel's own.",
                *_memory_reasons(
                    told, "rmem", "what has come and was not read, or came out of order after a loss"
                ),
                *_delay_reasons(told),
            ],
        ),
        _line(
            "net.core.rmem_max",
            str(half),
            [
                "For applications that set SO_RCVBUF: the kernel cuts what they ask for to this and doubles"
                f" it, so half of the buffer is enough: 2 x {half} bytes. Such a buffer is fixed, the kernel"
                " tunes it no more. Without SO_RCVBUF this line does nothing.",
            ],
        ),
        _line(
            "net.ipv4.tcp_moderate_rcvbuf",
            "1",
            [
                "Receive buffer autotuning, on by default: without it the buffer stays at the second number"
                " of tcp_rmem."
            ],
        ),
        _scaling(),
        *_win_scale(told),
        *_many(told, "rmem"),
    ]
    return "\n".join(parts)


def _comment(sentences: Iterable[str]) -> list[str]:
    return [
        line
        for text in sentences
        for line in textwrap.wrap(text, WIDTH, initial_indent="# ", subsequent_indent="# ")
    ]


def _line(key: str, value: str, reasons: Sequence[str]) -> str:
    return "\n".join([*_comment(reasons), f"{key} = {value}", ""])


def _triple(which: str, size: int) -> str:
    usual = memory.DEFAULTS[which]
    return f"{min(usual.minimum, size)} {min(usual.default, size)} {size}"


def _share(ask: Ask, rate_bps: float) -> str:
    return f"{human_rate(rate_bps)} ({percent(rate_bps / ask.capacity_bps)})"


def _head(told: Told, end: str, what: str, file: str) -> str:
    ask, choice = told.ask, told.choice
    lines = [
        f"{end} of {ask.words}: {what}.",
        f"Made by: {told.command}",
        f"Use: copy it to /etc/sysctl.d/90-wan-{file} and run `sysctl --system`; connections opened"
        " afterwards have it.",
    ]
    facts = [
        f"The path holds {human_size(ask.bdp_bytes)} when it is full (BDP = rate x RTT) and carries at most"
        f" {human_rate(ask.capacity_bps)} of payload; percentages are of that. The target is"
        f" {percent(ask.target)}" + (f", with {ask.flows} flows together." if ask.flows > 1 else "."),
        "Measured with real Linux TCP in virtual time, both files applied; goodput of the steady part:",
    ]
    proofs = [sentence for proof in choice.proofs for sentence in _proof(told, proof)]
    return "\n".join(
        [*_comment(lines), "#", *_comment(facts), *_comment(proofs), "#", *_comment(_not_mended(told)), ""]
    )


def _proof(told: Told, proof: Proof) -> list[str]:
    ask = told.ask
    default = next(finding.default for finding in told.findings if finding.case == proof.case)

    def gave(row: Row) -> str:
        return _share(ask, goodput_bps(row))

    fails = "" if proof.reached else f", which falls short of {human_rate(proof.goal_bps)}"
    return [
        f"  {proof.case.name}: {gave(proof.both)}{fails}; half of this tcp_rmem {gave(proof.half['rmem'])};"
        f" half of this tcp_wmem {gave(proof.half['wmem'])}; the kernel's own defaults {gave(default)}."
    ]


def _not_mended(told: Told) -> list[str]:
    """Return what no buffer mends, with the numbers of this path."""
    ask = told.ask
    said = []
    for finding in told.findings:
        if not finding.attainable:
            said.append(
                f"The target cannot be had with {finding.case.name}: buffers of any size give"
                f" {_share(ask, goodput_bps(finding.ample))}. These are for {percent(ask.target)} of that."
            )
        if finding.bound is not None:
            said.append(
                f"{finding.case.name} reaches the target only while tcp_{finding.bound} keeps the window from"
                " overflowing the bottleneck's queue: more of it is worse. That holds for this path and this"
                " number of flows, not for another."
            )
    said.append(
        "What this does not mend: random loss"
        + (f" (here {percent(ask.loss)})" if ask.loss else "")
        + ", which congestion control answers and no buffer; a short queue at the bottleneck (under half a"
        f" BDP, {human_size(ask.bdp_bytes / 2)}, cubic gives way too far after each drop); other traffic; and"
        " what real CPUs and network cards cannot do."
    )
    return said


def _size_reason(told: Told, which: str) -> str:
    ask, choice = told.ask, told.choice
    found = "; ".join(
        f"{finding.case.name}: {human_size(finding.knees[which].found_bytes)}"
        + (
            f" ({human_size(short)} fell short)"
            if (short := finding.knees[which].short_bytes) is not None
            else " (the least there is)"
        )
        for finding in told.findings
    )
    size = choice.sizes[which]
    if which in choice.kept:
        return (
            f"Least, first and largest buffer of a connection, bytes. Least that reached, by search: {found}."
            f" The kernel's own {human_size(size)} is more and stays."
        )
    of = "" if all(finding.attainable for finding in told.findings) else " of what can be had"
    reached = (
        "Least, first and largest buffer of a connection, bytes. Least that reached"
        f" {percent(ask.target)}{of}, by search: {found}."
    )
    if which in bounds(told.findings):
        return f"{reached} Without headroom, since more would overflow the bottleneck's queue."
    merged = ""
    if _factor(told) > 1 and which == "rmem":
        merged = (
            f"{human_size(needed_bytes(told.findings, which))} where segments arrive singly (see below), "
        )
    room = f"{percent(choice.headroom - 1)} headroom, in whole {'MiB' if size >= MIB else 'KiB'}"
    return f"{reached} With {merged}{room}: {human_size(size)}."


def _factor(told: Told) -> float:
    return max(finding.factor for finding in told.findings)


def _merged_reason(told: Told) -> list[str]:
    said = []
    if _factor(told) > 1:
        said.append(
            "The search ran with segmentation offloads, which merge segments on their way; since Linux 6.6"
            " the window is the share of the buffer that arriving segments turn into payload. Where they"
            f" arrive singly it takes {_factor(told):.3g} times as much, which is"
            + (" not in the number." if "rmem" in bounds(told.findings) else " in the number.")
        )
    if any(ignores_adv_win_scale(finding.case.release) for finding in told.findings):
        said.append(
            "On a real network card that share depends on the driver: compare rcv_ssthresh with rb in `ss"
            " -tim`, and raise this where it is less than a half."
        )
    return said


def _memory_reasons(told: Told, which: str, holds: str) -> list[str]:
    size = told.choice.sizes[which]
    return [
        f"Memory: a connection takes at most {human_size(size)}, for {holds}; {cost.MANY} of them at most"
        f" {human_size(cost.MANY * size)}. Connections that share this path hold its"
        f" {human_size(told.ask.bdp_bytes)} and the queue together, not each."
    ]


def _delay_reasons(told: Told) -> list[str]:
    sizes = told.choice.sizes
    delays = [cost.delay(told.ask, finding.case, sizes["rmem"], sizes["wmem"]) for finding in told.findings]
    standing, full = max(d.standing_s for d in delays), delays[0].full_queue_s
    return [
        f"Delay: what a window exceeds the path by can stand in the bottleneck's queue: up to {_ms(standing)}"
        f" on top of {told.ask.path['rtt']} with these buffers (bufferbloat). The whole queue, as it was"
        f" taken here ({told.ask.path['queue']}), is {_ms(full)}."
    ]


def _ms(time_s: float) -> str:
    return format_time(float(f"{time_s:.2g}"))


def _core_max(told: Told, which: str) -> int:
    """Return the least net.core maximum that gives such a buffer, never under the kernel's own."""
    size = told.choice.sizes[which]
    if which in told.choice.kept:
        size = whole(needed_bytes(told.findings, which) * told.choice.headroom)
    return max(memory.CORE_MAX_BYTES, -(-size // 2))


def _scaling() -> str:
    return _line(
        "net.ipv4.tcp_window_scaling",
        "1",
        ["On by default, and needed at both ends: without it no window is above 64 KiB (RFC 7323)."],
    )


def _control(told: Told) -> list[str]:
    names = list(dict.fromkeys(finding.case.cc for finding in told.findings))
    if not told.cc_asked:
        return []
    if len(names) > 1:
        best = max(told.choice.proofs, key=lambda proof: goodput_bps(proof.both))
        text = (
            f"These buffers are enough for {', '.join(names)}; most was had with {best.case.name}:"
            f" {_share(told.ask, goodput_bps(best.both))}. Uncomment to choose it:"
        )
        return ["\n".join([*_comment([text]), f"#net.ipv4.tcp_congestion_control = {best.case.cc}", ""])]
    (cc,) = names
    lines = [
        _line(
            "net.ipv4.tcp_congestion_control",
            cc,
            [f"As asked for (--cc {cc}). The sender's counts; the kernel has to have it (module tcp_{cc})."],
        )
    ]
    if cc == "bbr":
        lines.append(
            _line(
                "-net.core.default_qdisc",
                "fq",
                [
                    "bbr paces. Since Linux 4.13 TCP does that itself; fq does it with less work for the CPU"
                    " and keeps flows apart. It is for interfaces that come up later, and may be missing (so"
                    " the '-'). Not tried here: the lab's hosts have a queue of their own.",
                ],
            )
        )
    return lines


def _win_scale(told: Told) -> list[str]:
    older = [
        finding.case.kernel for finding in told.findings if not ignores_adv_win_scale(finding.case.release)
    ]
    if not older:
        return []
    kernels = ", ".join(dict.fromkeys(older))
    return [
        _line(
            "net.ipv4.tcp_adv_win_scale",
            "1",
            [
                f"Before Linux 6.6 (here {kernels}) this is the share of the buffer that is window: half at"
                " 1, the kernel's default, on which the size above counts. Later kernels ignore it.",
            ],
        )
    ]


def _many(told: Told, which: str) -> list[str]:
    size = told.choice.sizes[which]
    pages = " ".join(map(str, cost.tcp_mem_pages(size)))
    text = (
        f"{cost.MANY} connections with their whole buffers would need {human_size(cost.MANY * size)} of TCP"
        " memory; by itself the kernel grants 9.4 % of the host's, so a host of"
        f" {human_size(cost.host_memory_bytes(size))}. On a smaller one that really has so many at once, and"
        " has the memory, in pages of 4 KiB:"
    )
    return ["\n".join([*_comment([text]), f"#net.ipv4.tcp_mem = {pages}", ""])]
