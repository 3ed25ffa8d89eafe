"""Knobs: what of a scenario can be set and swept, how it is written, what it may be.

Grammar of values: `lab.values`, and `lab.losses`, `lab.changes`, `lab.loads` for
what is more than a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lab import changes, loads, losses, memory, queues, routes, units
from lab.errors import UnitError
from lab.values import Knob, choice, count, listed, optional, parts, ranged, show_list, shown, word

RATE_RANGE_BPS = (1e3, 400e9)
LONGEST_DELAY_S = 10.0
LARGEST_QUEUE_BYTES = 2**32 - 1
DEFAULT_HZ = 250
"""Timer frequency of a kernel whose address names none, see `lab.kernels`."""
LEAST_BYTES = 1000
"""Enough to tell a load from an application's greeting, see `lab.metrics`."""
MOST_BYTES = 2**50
MOST_FLOWS = 1000
MOST_PAIRS = 500
TOPOLOGIES = ("path", "dumbbell", "parking_lot", "star", "two_way", "long_haul")
WORKLOADS = ("bulk", "iperf3", "http", "request")


class QueueSize(NamedTuple):
    """A bottleneck queue as it was asked for; `unit` is "bytes", "packets", "s", "bdp" or "auto".

    auto: one BDP; `lab.sweep` adds what a short path needs and cuts what no queue can hold.
    """

    amount: float
    unit: str

    def bfifo_bytes(self, rate_bps: float, rtt_s: float) -> int:
        """Return the limit in bytes; a queue counted in packets has no such number."""
        bdp = rate_bps * rtt_s / 8
        factor = {"bytes": 1.0, "s": rate_bps / 8, "bdp": bdp, "auto": bdp}[self.unit]
        return round(self.amount * factor)


_QUEUE_UNITS = {"p": "packets", "bdp": "bdp"}


def _parse_queue(text: str) -> QueueSize:
    text = text.strip()
    if text == "auto":
        return QueueSize(1, "auto")
    amount, unit = units.split(text, "queue", "256KiB, 1000p, 50ms or 1bdp")
    if unit == "p" and amount != amount.to_integral_value():
        raise UnitError(f"{text!r} is not a whole number of packets; write it such as 1000p")
    if unit in _QUEUE_UNITS:
        queue = QueueSize(float(amount), _QUEUE_UNITS[unit])
    else:
        try:
            queue = QueueSize(units.parse_size(text), "bytes")
        except UnitError:
            try:
                queue = QueueSize(units.parse_time(text), "s")
            except UnitError as neither:
                raise UnitError(
                    f"{text!r} is not a queue; write bytes (256KiB), packets (1000p),"
                    " a time at line rate (50ms) or BDPs (1bdp)"
                ) from neither
    if not 0 < queue.amount < 2**32:
        raise UnitError(f"{text!r} is out of range; a queue holds at least one packet and under 4 GiB")
    return queue


def _show_queue(queue: QueueSize) -> str:
    if queue.unit == "auto":
        return "auto"
    if queue.unit == "bytes":
        return units.format_size(int(queue.amount))
    if queue.unit == "s":
        return units.format_time(queue.amount)
    return f"{queue.amount:.12g}{'p' if queue.unit == 'packets' else 'bdp'}"


def _expanded_cc(text: str) -> tuple[str, ...]:
    """Return the congestion controls of a mix, each as often as it is told: `bbr*2+cubic`."""
    name = word(r"[a-z0-9_]{1,15}", "a congestion control")
    found: list[str] = []
    for part in parts(text, "congestion controls"):
        control, star, times = part.partition("*")
        often = count(1, MOST_FLOWS, "how often")(times) if star else 1
        found += [name(control)] * often
    if len(found) > MOST_FLOWS:
        raise UnitError(f"{text[:40]!r}... names {len(found)} flows; at most {MOST_FLOWS} can run")
    return tuple(found)


def _show_cc(names: tuple[str, ...]) -> str:
    if len(set(names)) == 1:
        return names[0]
    parts: list[tuple[str, int]] = []
    for name in names:
        if parts and parts[-1][0] == name:
            parts[-1] = (name, parts[-1][1] + 1)
        else:
            parts.append((name, 1))
    return "+".join(name if often == 1 else f"{name}*{often}" for name, often in parts)


def _memory(which: str, default: str, meaning: str) -> Knob:
    # the text itself stays the value: `lab.memory` needs to know what was meant, not three numbers
    return Knob(which, default, meaning, lambda text: memory.canonical(text, which), str)


def _size(name: str, low: int, high: int, none: str, meaning: str) -> Knob:
    """Return a later knob that is a number of bytes, or a word for the kernel's own."""
    size = ranged(units.parse_size, low, high, lambda value: units.format_size(int(value)), "a size")
    return Knob(name, none, meaning, optional(size, none), shown(units.format_size, none), later=True)


def _probability(name: str, meaning: str) -> Knob:
    return Knob(name, "0%", meaning, units.parse_probability, units.format_probability)


_time = units.format_time
_KNOBS = (
    Knob(
        "rate",
        "1gbit",
        "rate of the bottleneck, both ways",
        ranged(units.parse_rate, *RATE_RANGE_BPS, units.format_rate, "a rate"),
        units.format_rate,
    ),
    Knob(
        "rtt",
        "200ms",
        "base RTT: two propagation delays; 10ms+100ms gives the pairs of hosts different ones",
        listed(ranged(units.parse_time, 0, 2 * LONGEST_DELAY_S, _time, "an RTT"), "RTTs"),
        show_list(_time),
    ),
    Knob(
        "queue",
        "auto",
        "queue of the bottleneck: 256KiB, 1000p, 50ms, 1bdp, or auto: one BDP, at least 32 packets",
        _parse_queue,
        _show_queue,
    ),
    Knob(
        "loss",
        "0%",
        "loss on the way to the receiver, after the bottleneck: 0.1%, ge:P:R, state:P13:P31:P32:P23:P14"
        " or list:5+17",
        losses.parse,
        losses.show,
    ),
    _probability("duplicate", "packets duplicated on the way to the receiver"),
    _probability("reorder", "packets that overtake the delay line"),
    Knob(
        "jitter",
        "0s",
        "spread of the delay to the receiver; it reorders, as netem's does",
        ranged(units.parse_time, 0, LONGEST_DELAY_S, _time, "a jitter"),
        _time,
    ),
    Knob("mtu", "1500", "MTU of every link, bytes", count(576, 65535, "an MTU"), str),
    Knob("offloads", "off", "segmentation and receive offloads: on or off", choice("on", "off"), str),
    Knob(
        "recipe",
        "separate",
        "separate: rate and delay apart; leaf: netem under htb",
        choice("separate", "leaf"),
        str,
    ),
    Knob(
        "leaf_limit",
        "1000",
        "packets that netem holds in the leaf recipe",
        count(1, 2**31 - 1, "a limit"),
        str,
    ),
    _memory("wmem", "default", "tcp_wmem of the sender: default, SIZE, max=SIZE or MIN:DEFAULT:MAX"),
    _memory("rmem", "default", "tcp_rmem of the receiver: default, SIZE, max=SIZE or MIN:DEFAULT:MAX"),
    Knob(
        "adv_win_scale",
        "default",
        "tcp_adv_win_scale of the receiver; Linux 6.6 and later ignore it",
        optional(count(-31, 31, "tcp_adv_win_scale"), "default"),
        shown(str, "default"),
    ),
    Knob(
        "app_win",
        "default",
        "tcp_app_win of the receiver: one part in 2^n of the first window is kept back; the kernel has 31",
        optional(count(0, 31, "tcp_app_win"), "default"),
        shown(str, "default"),
        later=True,
    ),
    Knob(
        "moderate_rcvbuf",
        "on",
        "tcp_moderate_rcvbuf of the receiver, receive buffer autotuning: on or off",
        choice("on", "off"),
        str,
        later=True,
    ),
    _size(
        "rcvbuf",
        1,
        memory.LARGEST_BYTES,
        "none",
        "SO_RCVBUF that the receiving application sets: doubled, within rmem_max, and no autotuning",
    ),
    _size(
        "sndbuf",
        1,
        memory.LARGEST_BYTES,
        "none",
        "SO_SNDBUF that the sending application sets: doubled, within wmem_max, and no autotuning",
    ),
    _size("rmem_max", 2304, memory.LARGEST_BYTES, "default", "net.core.rmem_max; the kernel has 212992"),
    _size("wmem_max", 4608, memory.LARGEST_BYTES, "default", "net.core.wmem_max; the kernel has 212992"),
    _size(
        "notsent_lowat",
        1,
        memory.LARGEST_BYTES,
        "none",
        "tcp_notsent_lowat of the sender: what may wait unsent in the send buffer",
    ),
    _size(
        "tcp_mem",
        2**21,
        2**42,
        "ample",
        "most memory of all TCP sockets of the kernel; the other values of tcp_mem are 1/2 and 2/3 of it",
    ),
    Knob(
        "cc",
        "cubic",
        "congestion control, by the kernel's name; bbr+cubic or bbr*2+cubic gives the flows different ones",
        _expanded_cc,
        _show_cc,
    ),
    Knob("flows", "1", "parallel flows", count(0, MOST_FLOWS, "the number of flows"), str),
    Knob("workload", "bulk", "bulk, iperf3, http or request", choice(*WORKLOADS), str),
    Knob(
        "duration",
        "12s",
        "how long the load lasts",
        ranged(units.parse_time, 0.01, 3600, _time, "a duration"),
        _time,
    ),
    Knob(
        "bytes",
        "none",
        "bytes a flow, 10MB+1GB in turn; the point ends when they arrived, or after the duration",
        optional(
            listed(ranged(units.parse_size, LEAST_BYTES, MOST_BYTES, units.format_size, "a size"), "sizes"),
            "none",
        ),
        shown(show_list(units.format_size), "none"),
    ),
    Knob(
        "interval",
        "auto",
        "time between samples; auto takes 200 samples",
        optional(ranged(units.parse_time, 1e-4, 3600, _time, "an interval"), "auto"),
        shown(_time, "auto"),
    ),
    Knob(
        "kernel",
        "6.12",
        "kernel of the lab: 6.12, 6.1 or one that you built",
        word(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,47}", "the name of a kernel"),
        lambda name: str(name).removesuffix(f"@{DEFAULT_HZ}"),
    ),
)

_rate = ranged(units.parse_rate, *RATE_RANGE_BPS, units.format_rate, "a rate")
_delay = ranged(units.parse_time, 0, 2 * LONGEST_DELAY_S, _time, "an RTT")
_span = ranged(units.parse_time, 0, 3600, _time, "a time")
_NETWORK = (
    Knob(
        "topology", "path", f"shape of the network: {', '.join(TOPOLOGIES)}", choice(*TOPOLOGIES), str, True
    ),
    Knob(
        "pairs",
        "auto",
        "pairs of hosts; auto: one a flow, up to 100, and of a path one",
        optional(count(1, MOST_PAIRS, "the number of pairs"), "auto"),
        shown(str, "auto"),
        later=True,
    ),
    Knob("bottlenecks", "3", "bottlenecks in a row of the parking lot", count(1, 20, "it"), str, later=True),
    Knob(
        "access",
        "auto",
        "rate of the hosts' own interfaces, 10mbit+1gbit pair by pair; auto: ten times the bottleneck",
        optional(listed(_rate, "rates"), "auto"),
        shown(show_list(units.format_rate), "auto"),
        later=True,
    ),
    Knob(
        "rate_back",
        "same",
        "rate of the way back, where it is another than the way out",
        optional(_rate, "same"),
        shown(units.format_rate, "same"),
        later=True,
    ),
    Knob(
        "route",
        "none",
        "a real route by its name, which sets the RTT: see docs/reference/routes.md",
        lambda text: "none" if text.strip() == "none" else routes.find(text).name,
        str,
        later=True,
    ),
    Knob(
        "qdisc",
        "fifo",
        f"what queues at the bottleneck: fifo (bfifo, or pfifo where its size is in packets),"
        f" {', '.join(queues.LIMIT_UNIT)}; a policer's bucket has the queue's size",
        choice("fifo", *queues.LIMIT_UNIT),
        str,
        later=True,
    ),
    Knob(
        "target",
        "default",
        "delay that codel, fq_codel, pie or cake aims at",
        optional(ranged(units.parse_time, 1e-5, 10, _time, "a target"), "default"),
        shown(_time, "default"),
        later=True,
    ),
    Knob(
        "ecn",
        "off",
        "ECN, at the hosts and at a queue that can mark: on or off",
        choice("on", "off"),
        str,
        True,
    ),
    Knob(
        "ce_threshold",
        "none",
        "codel, fq_codel and fq mark every packet that waited longer than this; needs ecn=on",
        optional(ranged(units.parse_time, 1e-6, 10, _time, "a threshold"), "none"),
        shown(_time, "none"),
        later=True,
    ),
    Knob(
        "jitter_dist",
        "uniform",
        "how jitter is distributed, by netem's tables",
        choice("uniform", "normal", "pareto", "paretonormal"),
        str,
        later=True,
    ),
    Knob(
        "rate_change",
        "none",
        "the bottleneck's rate over time: 5s:50mbit steps, 5s~10s:50mbit ramps, joined by +",
        optional(changes.parser(_rate, "5s:50mbit or 5s~10s:50mbit"), "none"),
        shown(changes.shower(units.format_rate), "none"),
        later=True,
    ),
    Knob(
        "rtt_change",
        "none",
        "the base RTT over time, written as rate_change: 5s:80ms",
        optional(changes.parser(_delay, "5s:80ms or 5s~10s:80ms"), "none"),
        shown(changes.shower(_time), "none"),
        later=True,
    ),
    Knob(
        "loss_change",
        "none",
        "random loss over time, written as rate_change: 5s:1%",
        optional(changes.parser(units.parse_probability, "5s:1% or 5s~10s:1%"), "none"),
        shown(changes.shower(units.format_probability), "none"),
        later=True,
    ),
    Knob(
        "trace",
        "none",
        "file with the bottleneck's rate over time, mahimahi's or CSV: see docs/how-to/traces.md",
        optional(word(r"[^,\s\0]{1,400}", "a file's name (without blanks and commas)"), "none"),
        shown(str, "none"),
        later=True,
    ),
    Knob(
        "trace_step",
        "10ms",
        "how finely a mahimahi trace is followed",
        ranged(units.parse_time, 1e-3, 10, _time, "a step"),
        _time,
        later=True,
    ),
)
_TRAFFIC = (
    Knob(
        "place",
        "turn",
        "pairs that the flows join, 1+1+2 by the numbers of their hosts (0 crosses a whole parking lot);"
        " turn: one after another",
        optional(listed(count(0, MOST_PAIRS, "the number of a pair"), "pairs"), "turn"),
        shown(show_list(str), "turn"),
        later=True,
    ),
    Knob("start", "0s", "when flows begin, 0s+5s in turn", listed(_span, "times"), show_list(_time), True),
    Knob(
        "stop",
        "end",
        "when flows end, 10s+end in turn",
        listed(optional(_span, "end"), "times"),
        show_list(shown(_time, "end")),
        later=True,
    ),
    Knob(
        "spread", "0s", "flows begin up to this much later, by chance from the seed", _span, _time, later=True
    ),
    Knob(
        "arrivals",
        "none",
        "flows that come and go beside the others: poisson:60% of the link, or every:100ms",
        optional(loads.parse_arrivals, "none"),
        shown(loads.show_arrivals, "none"),
        later=True,
    ),
    Knob(
        "sizes",
        "exp:100KB",
        "sizes of the flows that arrive: 64KB, 10KB+1MB, exp:MEAN or pareto:SHAPE:MEAN",
        loads.parse_sizes,
        loads.show_sizes,
        later=True,
    ),
    Knob(
        "on_off",
        "none",
        "flows pause: 1s:2s sends 1 s and is silent 2 s; exp:1s:2s at random with these means",
        optional(loads.parse_on_off, "none"),
        shown(loads.show_on_off, "none"),
        later=True,
    ),
    Knob(
        "reverse",
        "0",
        "flows the other way, beside the others",
        count(0, MOST_FLOWS, "the number of flows"),
        str,
        later=True,
    ),
    Knob(
        "udp",
        "none",
        "a UDP flow of constant rate, IP packets of full size",
        optional(_rate, "none"),
        shown(units.format_rate, "none"),
        later=True,
    ),
    Knob(
        "probe",
        "none",
        "time between the packets of a latency probe beside the flows",
        optional(ranged(units.parse_time, 1e-3, 60, _time, "an interval"), "none"),
        shown(_time, "none"),
        later=True,
    ),
    Knob(
        "request",
        "100B",
        "size of a request (workload=request)",
        ranged(units.parse_size, 1, 2**30, units.format_size, "a request"),
        units.format_size,
        later=True,
    ),
    Knob(
        "response",
        "64KB",
        "size of a response (workload=request)",
        ranged(units.parse_size, 1, 2**40, units.format_size, "a response"),
        units.format_size,
        later=True,
    ),
    Knob(
        "think",
        "0s",
        "pause between a response and the next request (workload=request)",
        _span,
        _time,
        later=True,
    ),
)

PATH_KNOBS: Mapping[str, Knob] = {
    knob.name: knob for knob in (*_KNOBS[:-1], *_NETWORK, *_TRAFFIC, _KNOBS[-1])
}
"""Every knob, by its name."""

INTEGER_KNOBS = frozenset({"mtu", "flows", "leaf_limit", "adv_win_scale", "bottlenecks", "reverse"})
