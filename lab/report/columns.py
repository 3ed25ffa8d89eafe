"""A column of a table as an axis: its words, its unit, where it ends and what is even.

Not here: knobs as axes (see `lab.report.axes`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lab import schema

MIB = 2**20
WIDE_SPAN = 100.0
"""From this ratio of largest to least on, times and sizes have a logarithmic axis."""


@dataclass(frozen=True)
class Scale:
    """A column as an axis. factor: one of the axis's units in those of the column.

    ends: where it ends by its nature, middle: what is even, both in the axis's
    unit, None for neither; less: whether less of it is better.
    """

    words: str
    unit: str
    factor: float
    ends: tuple[float, float] | None = None
    middle: float | None = None
    less: bool = False

    @property
    def title(self) -> str:
        """Words and unit, as the axis has them."""
        return f"{self.words} ({self.unit})" if self.unit else self.words

    @property
    def ratio(self) -> bool:
        """Whether 1 is even and twice as far from it as a half."""
        return self.middle == 1 and not self.unit

    def text(self, value: float) -> str:
        """Return a value of the column in the axis's unit."""
        return f"{value / self.factor:.4g} {self.unit}".strip()


_WORDS = {
    "goodput_bps": "Goodput, whole load",
    "steady_goodput_bps": "Goodput, steady part",
    "predicted_goodput_bps": "Predicted goodput, steady part",
    "predicted_mean_goodput_bps": "Predicted goodput, whole load",
    "utilisation": "Use of the link",
    "loaded_rtt_s": "RTT in the steady part",
    "queue_delay_s": "Queueing delay, median",
    "queue_delay_p95_s": "Queueing delay, 95th percentile",
    "queue_delay_p99_s": "Queueing delay, 99th percentile",
    "probe_delay_s": "Probe's delay over idle, median",
    "probe_delay_p95_s": "Probe's delay over idle, 95th percentile",
    "probe_delay_p99_s": "Probe's delay over idle, 99th percentile",
    "probe_loss": "Probe packets lost",
    "retransmit_share": "Segments sent again",
    "jain": "Jain's fairness index",
    "rtt_unfairness": "Goodput of the shortest RTT / longest",
    "convergence_s": "Time until the flows share fairly",
    "fct_s": "Flow completion time",
    "fct_p99_s": "Flow completion time, 99th percentile",
    "slowdown": "Slowdown of a flow",
    "slowdown_p99": "Slowdown of a flow, 99th percentile",
    "flows_finished": "Flows finished",
    "udp_goodput_bps": "UDP goodput",
    "udp_loss": "UDP packets lost",
    "request_s": "Time of a request",
    "request_p99_s": "Time of a request, 99th percentile",
    "rtt_s": "RTT",
    "delay_s": "One-way delay",
    "cc_shares": "Share of the goodput",
    "limit_shares": "Share of the load it bound",
    "predicted_shares": "Predicted share of the load it binds",
    "rtt_base_s": "Base RTT",
    "size_bytes": "Size of the flow",
    "start_s": "Start of the flow",
    "cc": "Congestion control",
    "kind": "Kind of flow",
    "src": "Sender",
    "dst": "Receiver",
}
_OF_POINTS = {
    "fct_s": "Flow completion time, median",
    "slowdown": "Slowdown of a flow, median",
    "request_s": "Time of a request, median",
    "rtt_s": "RTT of the idle path",
}
"""What the same name means in table points."""
_OF_FLOWS = {
    "goodput_bps": "Goodput of a flow",
    "steady_goodput_bps": "Goodput of a flow, steady part",
}
_FRACTIONS = {"utilisation", "retransmit_share", "probe_loss", "udp_loss"}
_ENDING = {"utilisation"}
_LESS = {"retransmits", "retransmit_share", "queue_drops", "probe_loss", "udp_loss", "jitter", "slowdown"}


def known(name: str, table: str = "points") -> schema.Column:
    """Return a column of numbers, or of shares where `name` asks for one. Raises KeyError."""
    stem, _, share = name.partition(":")
    for column in schema.TABLES.get(table, ()):
        if column.name == stem and (column.kind == "shares" if share else column.kind in ("int", "float")):
            return column
    raise KeyError(name)


def scale(name: str, values: Iterable[float] = (), table: str = "points") -> Scale:
    """Return a column as an axis, in a unit that suits these values. KeyError for one that is no number."""
    column = known(name, table)
    stem, _, share = name.partition(":")
    words = _WORDS.get(stem, column.meaning[:1].upper() + column.meaning[1:])
    words = {"points": _OF_POINTS, "flows": _OF_FLOWS}.get(table, {}).get(stem, words)
    if share:
        words = f"{words}, {share.replace('_', ' ')}"
        return Scale(words, "%", 0.01, (0.0, 100.0), 50.0 if stem == "cc_shares" else None)
    less = stem in _LESS or column.unit == "s"
    if stem in _FRACTIONS:
        return Scale(words, "%", 0.01, (0.0, 100.0) if stem in _ENDING else None, less=less)
    if stem == "jain":
        return Scale(words, "", 1.0, (0.0, 1.0))
    if stem == "rtt_unfairness":
        return Scale(words, "", 1.0, middle=1.0)
    factor, unit = _unit(column.unit, max((abs(value) for value in values), default=math.inf))
    return Scale(words, unit, factor, less=less)


def _unit(unit: str, largest: float) -> tuple[float, str]:
    """Return (factor, unit) of an axis for values up to `largest`."""
    if unit == "bit/s":
        return 1e6, "Mbit/s"
    if unit == "bytes":
        return (float(MIB), "MiB") if largest >= MIB else (1024.0, "KiB")
    if unit == "s":
        return (1.0, "s") if largest >= 1 else (1e-3, "ms")
    return 1.0, unit


def words(name: str) -> str:
    """Return what a column is called along an axis whose values are written out."""
    return _WORDS.get(name, name)


def number(row: Mapping[str, Any] | None, name: str) -> float | None:
    """Return a column of a row, or one share of a column of shares, as a finite number; None for none.

    A share that is not named is nothing where others are; of `cc_shares` it is
    unknown: who did not take part has no share.
    """
    stem, _, share = name.partition(":")
    value = None if row is None else row.get(stem)
    if share:
        held = value if isinstance(value, Mapping) else {}
        value = held.get(share, None if stem == "cc_shares" or not held else 0.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def wide(values: Iterable[float], span: float = WIDE_SPAN) -> bool:
    """Return whether positive values span so much that a logarithmic axis shows them better."""
    every = list(values)
    return bool(every) and min(every) > 0 and max(every) / min(every) > span


def log_ticks(low: float, high: float) -> dict[str, Any]:
    """Return tickvals and ticktext of a logarithmic axis: 1, 2, 5 of each decade, decades alone of many."""
    steps = (1, 2, 5) if high / low < 2e3 else (1,)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    shown = [step * 10.0**power for power in range(first, last + 1) for step in steps]
    inside = [tick for tick in shown if low <= tick <= high]
    return {"tickmode": "array", "tickvals": inside, "ticktext": [f"{tick:g}" for tick in inside]}
