"""The horizontal axis of a figure: where a knob's values stand and how they are written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lab import memory
from lab.errors import UnitError
from lab.knobs import PATH_KNOBS
from lab.model.path import packet_bytes
from lab.report import style
from lab.report.stored import Entry

MIB = 2**20
MOST_NAMED_TICKS = 10
"""More values than this, and the axis shows round numbers instead of them."""

MEMORY = ("rmem", "wmem")


class Scale(NamedTuple):
    """Title and unit of a numeric axis.

    factor: turns the axis's number into the lab's unit; spelled: how a value in
    that unit is written as the knob.
    """

    title: str
    factor: float
    spelled: str


_SCALES = {
    "rmem": Scale("Receive buffer, tcp_rmem maximum (MiB)", MIB, "{:.0f}B"),
    "wmem": Scale("Send buffer, tcp_wmem maximum (MiB)", MIB, "{:.0f}B"),
    "rate": Scale("Rate of the bottleneck (Mbit/s)", 1e6, "{:.0f}bit"),
    "rtt": Scale("Base RTT (ms)", 1e-3, "{:.9f}s"),
    "loss": Scale("Random loss (%)", 1e-2, "{:.12%}"),
    "flows": Scale("Flows", 1, "{:.0f}"),
    "bytes": Scale("Size of a transfer (KiB)", 1024, "{:.0f}B"),
}
_QUEUES = {
    "bdp": Scale("Queue of the bottleneck (BDP)", 1, "{:.9g}bdp"),
    "packets": Scale("Queue of the bottleneck (packets)", 1, "{:.0f}p"),
    "s": Scale("Queue of the bottleneck (ms at its rate)", 1e-3, "{:.9f}s"),
    "bytes": Scale("Queue of the bottleneck (KiB)", 1024, "{:.0f}B"),
}
"""By the unit in which all of a figure's queues were asked for; else they count in bytes."""
_TITLES = {
    "cc": "Congestion control",
    "qdisc": "Queueing discipline",
    "queue": "Queue of the bottleneck",
    "kernel": "Kernel",
    "topology": "Topology",
    "target": "Target of the queueing discipline",
    "access": "Rate of the hosts' interfaces",
    "rate_back": "Rate of the way back",
    "pairs": "Pairs of hosts",
    "bottlenecks": "Bottlenecks",
    "reverse": "Flows the other way",
    "udp": "Rate of the UDP flow",
    "trace": "Trace of the bottleneck's rate",
    "arrivals": "Arrivals of flows",
    "sizes": "Sizes of the flows that arrive",
    "start": "Start of the flows",
    "jitter": "Jitter",
    "mtu": "MTU (bytes)",
    "ecn": "ECN",
}
"""Of an axis whose values are written out."""
COUNTED = ("flows",)
"""Knobs that come in whole numbers only."""


@dataclass(frozen=True)
class Axis:
    """One axis. positions: number (or category) of each point, by its id.

    ticks: (position, text); range: of a numeric axis, before any logarithm;
    zero_at: where 0 stands on a logarithmic axis, None where it is not drawn;
    ordered: neighbours are neighbours in value, so a line between them says something.
    """

    knob: str
    title: str
    numeric: bool
    ordered: bool
    positions: dict[str, float | str]
    ticks: tuple[tuple[float | str, str], ...]
    range: tuple[float, float] = (0.0, 1.0)
    zero_at: float | None = None
    scale: Scale | None = None

    @property
    def factor(self) -> float:
        """What turns a position into the lab's unit."""
        return self.scale.factor if self.scale else 1.0

    def text(self, position: float) -> str:
        """Return the knob's value at a position of a numeric axis, as it is written."""
        return self.scale.spelled.format(position * self.factor) if self.scale else ""

    def unit_bytes(self, entry: Entry) -> float | None:
        """Return the bytes of one unit of an axis of queues at a point; None where it has none."""
        bdp, rate, mtu = (entry.number(name) for name in ("bdp_bytes", "rate_bps", "mtu"))
        if self.scale == _QUEUES["bdp"]:
            return bdp or None
        if self.scale == _QUEUES["s"]:
            return rate * self.factor / 8 if rate else None
        if self.scale == _QUEUES["packets"]:
            return packet_bytes(int(mtu)) if mtu else None
        return self.factor if self.scale == _QUEUES["bytes"] else None


def measure(knob: str, entry: Entry) -> float | None:
    """Return a knob of a point as a number in the lab's unit, None where it has none.

    A queue counts in the bytes that it came to; one in packets has no such number.
    """
    text = entry.knobs.get(knob, "")
    if knob == "queue":
        unit = None if entry.row is None else entry.row.get("queue_limit_unit")
        return entry.number("queue_limit") if unit == "bytes" else None
    try:
        if knob in MEMORY:
            return float(memory.parse(text, knob).maximum)
        value = PATH_KNOBS[knob].value(text)
    except (UnitError, KeyError):
        return None
    if getattr(value, "kind", None) == "random":  # of losses this one is a number
        value = value.numbers
    if isinstance(value, tuple) and len(value) == 1:
        (value,) = value
    return float(value) if isinstance(value, int | float) else None


def _queues(entries: Sequence[Entry]) -> tuple[Scale, dict[str, float | None]]:
    """Return the scale of queues and their numbers: in the unit that all were asked for in, else in bytes."""
    try:
        asked = {entry.id: PATH_KNOBS["queue"].value(entry.knobs.get("queue", "")) for entry in entries}
    except UnitError:
        asked = {}
    units = {size.unit for size in asked.values()}
    if len(units) == 1 and (unit := units.pop()) in ("bdp", "packets", "s"):
        return _QUEUES[unit], {name: float(size.amount) for name, size in asked.items()}
    return _QUEUES["bytes"], {entry.id: measure("queue", entry) for entry in entries}


def form(knob: str, entry: Entry) -> str:
    """Return how a socket buffer was given: fixed, autotuned or default; "" for other knobs."""
    if knob not in MEMORY:
        return ""
    text = entry.knobs[knob]
    if text == "default":
        return text
    return "autotuned" if text.startswith("max=") or ":" in text else "fixed"


def build(knob: str, entries: Sequence[Entry]) -> Axis:
    """Return the axis for a knob of these points."""
    scale = _SCALES.get(knob)
    values = {entry.id: measure(knob, entry) for entry in entries}
    if knob == "queue":
        scale, values = _queues(entries)
    if scale is not None and all(value is not None and value >= 0 for value in values.values()):
        return _numeric(knob, scale, entries, {name: value or 0.0 for name, value in values.items()})
    return _categories(knob, entries, values)


def _numeric(knob: str, scale: Scale, entries: Sequence[Entry], values: dict[str, float]) -> Axis:
    numbers = {name: value / scale.factor for name, value in values.items()}
    positive = sorted({number for number in numbers.values() if number > 0})
    zero_at = None
    if len(positive) < len(set(numbers.values())):
        zero_at = positive[0] / max(3.0, (positive[-1] / positive[0]) ** 0.25) if positive else 1.0
        numbers = {name: number or zero_at for name, number in numbers.items()}
    low, high = min(numbers.values()), max(numbers.values())
    room = max(1.12, (high / low) ** 0.06)
    return Axis(
        knob=knob,
        title=scale.title,
        numeric=True,
        ordered=True,
        positions=dict(numbers),
        ticks=_ticks(knob, scale, entries, numbers, zero_at),
        range=(low / room, high * room),
        zero_at=zero_at,
        scale=scale,
    )


def _ticks(
    knob: str, scale: Scale, entries: Sequence[Entry], numbers: dict[str, float], zero_at: float | None
) -> tuple[tuple[float, str], ...]:
    texts: dict[float, str] = {}
    for entry in entries:
        number, text = numbers[entry.id], entry.knobs[knob]
        shown = "0" if number == zero_at else f"{number:.4g}"
        if text == "default":
            texts[number] = f"{shown}<br>(default)"
        elif scale == _QUEUES["bytes"] and (text == "auto" or text.endswith(("bdp", "s"))):
            texts[number] = f"{shown}<br>({style.plain(text)})"
        else:
            texts.setdefault(number, shown)
    if len(texts) > MOST_NAMED_TICKS:
        texts = {number: text for number, text in texts.items() if number == zero_at or "default" in text}
        low, high = min(numbers.values()), max(numbers.values())
        step = 10 if high / low > 100 else 2
        power = math.ceil(math.log(low, step))
        while step**power <= high:
            if all(abs(math.log(step**power / number, step)) > 0.3 for number in texts):
                texts[float(step**power)] = f"{step**power:.4g}"
            power += 1
    return tuple(sorted(texts.items()))


def _categories(knob: str, entries: Sequence[Entry], values: dict[str, float | None]) -> Axis:
    texts = list(dict.fromkeys(entry.knobs[knob] for entry in entries))
    ordered = knob != "queue" and all(value is not None for value in values.values())
    if ordered:
        number_of = {entry.knobs[knob]: values[entry.id] or 0.0 for entry in entries}
        texts.sort(key=lambda text: number_of[text])
    return Axis(
        knob=knob,
        title=title(knob),
        numeric=False,
        ordered=ordered,
        positions={entry.id: entry.knobs[knob] for entry in entries},
        ticks=tuple((text, _short(knob, text)) for text in texts),
    )


def title(knob: str) -> str:
    """Return the title of an axis on which a knob's values are written out."""
    if knob in _TITLES or knob in _SCALES:
        return _TITLES.get(knob) or _SCALES[knob].title.split(" (")[0]
    meaning = PATH_KNOBS[knob].meaning if knob in PATH_KNOBS else ""
    return f"{knob}: {meaning}" if 0 < len(meaning) < 60 else knob


def _short(knob: str, text: str) -> str:
    """Return a category as a tick has it: of a trace its file's name, without folder and digest."""
    return (text.rpartition("@")[0] or text).rpartition("/")[2] if knob == "trace" else text
