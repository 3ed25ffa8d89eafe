"""Formulas from the literature, drawn beside what was measured; their names: `lab.scenario.THEORIES`.

Not here: the model's prediction of a point (see `lab.report.predicted`), which
knows the whole path; these are the textbook's curves, each with its assumptions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lab.errors import UnitError
from lab.knobs import PATH_KNOBS
from lab.model import competition, loss, queueing
from lab.model.path import mss_bytes
from lab.report import axes
from lab.report.axes import Axis
from lab.report.stored import Entry

OF_LOSS = ("mathis", "cubic")
MOST_LINES = 4
"""Of one theory in one figure; more settings than this, and it is not drawn."""
_STEPS = 80


@dataclass(frozen=True)
class Theory:
    """One line in the units of a figure's axes. upright: at x alone, whatever y; source: for the caption."""

    name: str
    line: tuple[tuple[float | str, float], ...]
    source: str
    upright: bool = False


@dataclass(frozen=True)
class Case:
    """What a theory is asked about: the column y over the knob of an axis, for the points of a figure.

    values: where to compute, the knob in the lab's unit.
    """

    axis: Axis
    y: str
    entries: Sequence[Entry]
    values: Sequence[float]

    def settings(self, *names: str) -> list[Entry]:
        """Return one point of each combination of knobs but the one along the axis; none where too many."""
        others = [name for name in names if name != self.axis.knob]
        found: dict[tuple[str | None, ...], Entry] = {}
        for entry in self.entries:
            found.setdefault(tuple(entry.knobs.get(name) for name in others), entry)
        return list(found.values()) if len(found) <= MOST_LINES else []

    def differing(self, entry: Entry, *names: str) -> str:
        """Return what tells a point's setting from the others: ", rtt 40ms"; "" where all have the same."""
        varied = [
            name
            for name in names
            if name != self.axis.knob and len({one.knobs.get(name) for one in self.entries}) > 1
        ]
        return "".join(f", {name} {entry.knobs.get(name, '')}" for name in varied)


def of(name: str, axis: Axis, y: str, entries: Sequence[Entry], factor: float) -> tuple[Theory, ...]:
    """Return the lines of a theory in a figure; none where it is not known or says nothing of this figure.

    factor: one of the vertical axis's units in those of the column.
    """
    function = THEORIES.get(name)
    if function is None or not entries:
        return ()
    low, high = axis.range
    values = (np.geomspace(low, high, _STEPS) * axis.factor).tolist() if axis.numeric else []
    found = function(Case(axis, y, entries, values))
    return tuple(
        Theory(one.name, tuple((x, value / factor) for x, value in one.line), one.source, one.upright)
        for one in found
    )


def _of_loss(case: Case, cc: str, name: str, source: str) -> list[Theory]:
    """Return goodput over loss or RTT where loss alone limits, all flows together."""
    if case.y not in ("goodput_bps", "steady_goodput_bps") or case.axis.knob not in ("loss", "rtt"):
        return []
    found = []
    for entry in case.settings("rtt", "loss", "mtu", "flows"):
        knobs = {knob: axes.measure(knob, entry) for knob in ("rtt", "loss", "mtu", "flows")}
        line = []
        for value in case.values:
            its = {**knobs, case.axis.knob: value}
            rtt_s, lost, mtu, flows = its["rtt"], its["loss"], its["mtu"], its["flows"]
            if None in its.values() or not (rtt_s and lost and mtu and flows) or lost >= 1:
                continue
            bound = flows * loss.rate_bound_bps(cc, lost, rtt_s, mss_bytes(int(mtu)), math.inf)
            line.append((value / case.axis.factor, bound))
        told = f"{name}{case.differing(entry, 'rtt', 'loss', 'mtu', 'flows')}"
        found.append(Theory(told, tuple(line), source))
    return [one for one in found if one.line]


def _mathis(case: Case) -> list[Theory]:
    source = "Mathis and others, CCR 27(3), 1997: MSS/RTT x sqrt(3/2p), losses by chance, no timeouts"
    return _of_loss(case, "reno", "Mathis", source.replace(" x ", " × "))


def _cubic(case: Case) -> list[Theory]:
    return _of_loss(
        case, "cubic", "CUBIC, RFC 9438", "RFC 9438, section 5.1: CUBIC's mean window, losses evenly spaced"
    )


def router_buffer_bytes(entry: Entry) -> float | None:
    """Return RTT × rate / √n, the queue that n flows out of step need; None where one is not known."""
    rate, rtt_s = entry.number("rate_bps"), entry.number("configured_rtt_s")
    flows = axes.measure("flows", entry)
    if not (rate and rtt_s and flows):
        return None
    return queueing.least_queue_bytes("reno", rate, rtt_s, int(flows))


ROUTER_BUFFER = "Appenzeller, Keslassy, McKeown, SIGCOMM 2004: a queue of RTT × rate / √n keeps the link busy"


def _router_buffer(case: Case) -> list[Theory]:
    if case.axis.knob != "queue" or not case.axis.numeric:
        return []
    found: dict[float, Theory] = {}
    for entry in case.settings("flows", "rtt", "rate"):
        size = router_buffer_bytes(entry)
        unit = case.axis.unit_bytes(entry)
        if size is None or unit is None:
            continue
        place = size / unit
        if not case.axis.range[0] <= place <= case.axis.range[1]:
            continue
        name = f"RTT × rate / √{entry.knobs.get('flows', '')}"
        found.setdefault(round(place, 9), Theory(name, ((place, 0.0),), ROUTER_BUFFER, upright=True))
    return list(found.values())


def _ware(case: Case) -> list[Theory]:
    """Return what BBR takes beside loss-based flows, over the queue."""
    of, _, cc = case.y.partition(":")
    if of != "cc_shares" or case.axis.knob != "queue" or not case.axis.numeric:
        return []
    found = []
    for entry in case.settings("cc", "flows", "rate", "rtt", "mtu"):
        counts = controls(entry)
        unit, rate, rtt_s, mtu = (
            case.axis.unit_bytes(entry),
            *(entry.number(name) for name in ("rate_bps", "configured_rtt_s", "mtu")),
        )
        if "bbr" not in counts or cc not in counts or len(counts) != 2 or not (unit and rate):
            continue
        line = []
        for value in case.values:
            place = value / case.axis.factor
            share = competition.bbr_share(
                counts["bbr"],
                sum(counts.values()) - counts["bbr"],
                rate_bps=rate,
                rtt_s=rtt_s or 0.0,
                queue_bytes=place * unit,
                mtu_bytes=int(mtu or 1500),
            )
            if share is not None:
                line.append((place, share if cc == "bbr" else 1 - share))
        name = f"Ware et al.{case.differing(entry, 'cc', 'flows', 'rate', 'rtt')}"
        found.append(Theory(name, tuple(line), WARE))
    return [one for one in found if one.line]


WARE = "Ware, Mukerjee, Seshan, Sherry, IMC 2019: what BBR version 1 takes beside others, from one BDP on"


def controls(entry: Entry) -> Mapping[str, int]:
    """Return how many flows of a point have each congestion control; none where that is not known."""
    try:
        names = PATH_KNOBS["cc"].value(entry.knobs.get("cc", ""))
        flows = int(entry.knobs.get("flows", "1"))
    except (UnitError, ValueError):
        return {}
    turns = (names,) if isinstance(names, str) else names
    return Counter(turns[number % len(turns)] for number in range(flows))


def _rtt_ratio(case: Case) -> list[Theory]:
    """Return between what the goodputs of flows with different RTTs should differ, from least to most."""
    if case.y != "rtt_unfairness":
        return []
    by_cc: dict[str, dict[float | str, list[competition.Band]]] = {}
    for entry in case.entries:
        rtts, counts = _rtts(entry), controls(entry)
        if len(counts) != 1 or len(set(rtts)) < 2:
            continue
        (cc,) = counts
        delay, limit, rate = (entry.number(name) for name in ("queue_delay_s", "queue_limit", "rate_bps"))
        in_bytes = entry.text("queue_limit_unit") == "bytes"
        band = competition.rtt_ratio(
            cc,
            rtts,
            queue_delay_s=delay or 0.0,
            queue_s=limit * 8 / rate if in_bytes and limit and rate else None,
        )
        if band is not None and band.low > 0:  # "at most the other's" is no line to hold against
            by_cc.setdefault(cc, {}).setdefault(case.axis.positions[entry.id], []).append(band)
    found = []
    for cc, at in by_cc.items() if len(by_cc) * 2 <= MOST_LINES else ():
        for end in ("low", "high"):
            line = tuple((place, float(np.mean([getattr(band, end) for band in at[place]]))) for place in at)
            told = {"low": "least", "high": "most"}[end]
            found.append(Theory(f"{cc}, {told} by theory", tuple(sorted(line, key=_place(case))), RTT_RATIO))
    return found


RTT_RATIO = (
    "Mathis and others 1997, Lakshman and Madhow 1997, RFC 9438: RTT to a power,"
    " with the queueing delay that was measured"
)


def _rtts(entry: Entry) -> tuple[float, ...]:
    try:
        value = PATH_KNOBS["rtt"].value(entry.knobs.get("rtt", ""))
    except UnitError:
        return ()
    return value if isinstance(value, tuple) else (float(value),)


def _place(case: Case) -> Callable[[tuple[float | str, float]], float]:
    """Return what sorts a line along its axis."""
    order = {tick: number for number, (tick, _) in enumerate(case.axis.ticks)}
    return lambda at: float(at[0]) if isinstance(at[0], float) else float(order[at[0]])


THEORIES: Mapping[str, Callable[[Case], list[Theory]]] = {
    "mathis": _mathis,
    "cubic": _cubic,
    "router_buffer": _router_buffer,
    "ware": _ware,
    "rtt_ratio": _rtt_ratio,
}
