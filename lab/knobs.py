"""Knobs: what of a scenario can be set and swept, how it is written, what it may be.

A knob's value travels as its one canonical spelling (`1gbit`, `200ms`,
`max=50MiB`): that is what tables show and digests hold. `Knob.value` turns it
into the number that the code works with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from lab import memory, units
from lab.errors import UnitError

RATE_RANGE_BPS = (1e3, 400e9)
LONGEST_DELAY_S = 10.0
LARGEST_QUEUE_BYTES = 2**32 - 1
DEFAULT_HZ = 250
"""Timer frequency of a kernel whose address names none, see `lab.kernels`."""
LEAST_BYTES = 1000
"""Enough to tell a load from an application's greeting, see `lab.metrics`."""
MOST_BYTES = 2**50


@dataclass(frozen=True)
class Knob:
    """One knob.

    parse: text to value, raising UnitError; show: value to canonical text.
    later: at its default it is no part of a point's identity, so that points
    keep the names that they had before there was this knob.
    """

    name: str
    default: str
    meaning: str
    parse: Callable[[str], Any]
    show: Callable[[Any], str]
    later: bool = False

    def canonical(self, text: str) -> str:
        """Return the canonical spelling of `text`. Raises UnitError naming the knob."""
        return self.show(self._parsed(text))

    def value(self, text: str) -> Any:
        """Return the value that `text` means."""
        return self._parsed(text)

    def _parsed(self, text: str) -> Any:
        try:
            return self.parse(str(text))
        except UnitError as fault:
            raise UnitError(f"{self.name}: {fault}") from fault


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


def _ranged(
    parse: Callable[[str], float], low: float, high: float, show: Callable[[Any], str], what: str
) -> Callable[[str], float]:
    def checked(text: str) -> float:
        value = parse(text)
        if not low <= value <= high:
            raise UnitError(
                f"{text.strip()!r} is out of range; {what} lies between {show(low)} and {show(high)}"
            )
        return value

    return checked


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


def _choice(*names: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        word = text.strip().lower()
        if word not in names:
            raise UnitError(f"{text!r} is not one of {', '.join(names)}")
        return word

    return parse


def _count(low: int, high: int, what: str) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = units.parse_count(text)
        if not low <= value <= high:
            raise UnitError(f"{text.strip()!r} is out of range; {what} lies between {low} and {high}")
        return value

    return parse


def _word(pattern: str, what: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        word = text.strip()
        if not re.fullmatch(pattern, word):
            raise UnitError(f"{text!r} is not {what}")
        return word

    return parse


def _optional(parse: Callable[[str], Any], word: str) -> Callable[[str], Any]:
    return lambda text: None if text.strip() == word else parse(text)


def _shown(show: Callable[[Any], str], word: str) -> Callable[[Any], str]:
    return lambda value: word if value is None else show(value)


def _memory(which: str, default: str, meaning: str) -> Knob:
    # the text itself stays the value: `lab.memory` needs to know what was meant, not three numbers
    return Knob(which, default, meaning, lambda text: memory.canonical(text, which), str)


def _size(name: str, low: int, high: int, word: str, meaning: str) -> Knob:
    """Return a later knob that is a number of bytes, or a word for the kernel's own."""
    ranged = _ranged(units.parse_size, low, high, lambda size: units.format_size(int(size)), "a size")
    return Knob(name, word, meaning, _optional(ranged, word), _shown(units.format_size, word), later=True)


def _probability(name: str, meaning: str) -> Knob:
    return Knob(name, "0%", meaning, units.parse_probability, units.format_probability)


_time = units.format_time
_KNOBS = (
    Knob(
        "rate",
        "1gbit",
        "rate of the bottleneck, both ways",
        _ranged(units.parse_rate, *RATE_RANGE_BPS, units.format_rate, "a rate"),
        units.format_rate,
    ),
    Knob(
        "rtt",
        "200ms",
        "base RTT: two propagation delays",
        _ranged(units.parse_time, 0, 2 * LONGEST_DELAY_S, _time, "an RTT"),
        _time,
    ),
    Knob(
        "queue",
        "auto",
        "queue of the bottleneck: 256KiB, 1000p, 50ms, 1bdp, or auto: one BDP, at least 32 packets",
        _parse_queue,
        _show_queue,
    ),
    _probability("loss", "random loss on the way to the receiver, after the bottleneck"),
    _probability("duplicate", "packets duplicated on the way to the receiver"),
    _probability("reorder", "packets that overtake the delay line"),
    Knob(
        "jitter",
        "0s",
        "spread of the delay to the receiver; it reorders, as netem's does",
        _ranged(units.parse_time, 0, LONGEST_DELAY_S, _time, "a jitter"),
        _time,
    ),
    Knob("mtu", "1500", "MTU of every link, bytes", _count(576, 65535, "an MTU"), str),
    Knob("offloads", "off", "segmentation and receive offloads: on or off", _choice("on", "off"), str),
    Knob(
        "recipe",
        "separate",
        "separate: rate and delay apart; leaf: netem under htb",
        _choice("separate", "leaf"),
        str,
    ),
    Knob(
        "leaf_limit",
        "1000",
        "packets that netem holds in the leaf recipe",
        _count(1, 2**31 - 1, "a limit"),
        str,
    ),
    _memory("wmem", "default", "tcp_wmem of the sender: default, SIZE, max=SIZE or MIN:DEFAULT:MAX"),
    _memory("rmem", "default", "tcp_rmem of the receiver: default, SIZE, max=SIZE or MIN:DEFAULT:MAX"),
    Knob(
        "adv_win_scale",
        "default",
        "tcp_adv_win_scale of the receiver; Linux 6.6 and later ignore it",
        _optional(_count(-31, 31, "tcp_adv_win_scale"), "default"),
        _shown(str, "default"),
    ),
    Knob(
        "app_win",
        "default",
        "tcp_app_win of the receiver: one part in 2^n of the first window is kept back; the kernel has 31",
        _optional(_count(0, 31, "tcp_app_win"), "default"),
        _shown(str, "default"),
        later=True,
    ),
    Knob(
        "moderate_rcvbuf",
        "on",
        "tcp_moderate_rcvbuf of the receiver, receive buffer autotuning: on or off",
        _choice("on", "off"),
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
        "congestion control, by the kernel's name",
        _word(r"[a-z0-9_]{1,15}", "a congestion control"),
        str,
    ),
    Knob("flows", "1", "parallel flows", _count(1, 1000, "the number of flows"), str),
    Knob("workload", "bulk", "bulk, iperf3 or http", _choice("bulk", "iperf3", "http"), str),
    Knob(
        "duration",
        "12s",
        "how long the load lasts",
        _ranged(units.parse_time, 0.01, 3600, _time, "a duration"),
        _time,
    ),
    Knob(
        "bytes",
        "none",
        "bytes a flow; the point ends when they arrived, or after the duration",
        _optional(_ranged(units.parse_size, LEAST_BYTES, MOST_BYTES, units.format_size, "a size"), "none"),
        _shown(units.format_size, "none"),
    ),
    Knob(
        "interval",
        "auto",
        "time between samples; auto takes 200 samples",
        _optional(_ranged(units.parse_time, 1e-4, 3600, _time, "an interval"), "auto"),
        _shown(_time, "auto"),
    ),
    Knob(
        "kernel",
        "6.12",
        "kernel of the lab: 6.12, 6.1 or one that you built",
        _word(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,47}", "the name of a kernel"),
        lambda name: str(name).removesuffix(f"@{DEFAULT_HZ}"),
    ),
)

PATH_KNOBS: Mapping[str, Knob] = {knob.name: knob for knob in _KNOBS}
"""Knobs of every scenario on the `path` topology."""

INTEGER_KNOBS = frozenset({"mtu", "flows", "leaf_limit", "adv_win_scale"})
