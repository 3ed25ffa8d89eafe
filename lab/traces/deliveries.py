"""mahimahi's packet deliveries: one line a packet, the whole millisecond at which it may pass.

A trace repeats after its last time, as in mahimahi's src/frontend/link_queue.cc:
what is due at 0 in one period is due with what was last in the one before.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lab import units
from lab.errors import UnitError, UserError
from lab.knobs import RATE_RANGE_BPS
from lab.traces import files
from lab.traces.trace import (
    ALIKE,
    DELIVERY_BYTES,
    LONGEST_S,
    MS_NS,
    NS,
    RATE_RULE,
    Instants,
    Rates,
    Trace,
    frozen,
)

SHORTEST_STEP_S, LONGEST_STEP_S = 0.001, 10.0
"""Deliveries count in milliseconds, and one delivery in 10 s is just above the least rate."""
_LAST_MS = round(LONGEST_S * 1e3)
_WHOLE = re.compile(r"[+-]?[0-9]+")
_DELIVERY_BITS = 8 * DELIVERY_BYTES


def check_step(step_s: float) -> int:
    """Return a step in milliseconds. Raises UnitError for one that deliveries cannot have."""
    step_ms = round(step_s * 1e3)
    if not SHORTEST_STEP_S <= step_s <= LONGEST_STEP_S or abs(step_s * 1e3 - step_ms) > ALIKE * step_ms:
        raise UnitError(
            f"step {units.format_time(step_s)!r}: a step is a whole number of milliseconds between"
            f" {units.format_time(SHORTEST_STEP_S)} and {units.format_time(LONGEST_STEP_S)}, such as 10ms"
        )
    return step_ms


def load(path: Path, step_s: float) -> Trace:
    """Return the trace of a file: in each step of the period its deliveries, spread over the step.

    The last step ends with the period. Raises UserError and UnitError.
    """
    step_ms = check_step(step_s)
    last_ms = lines = longest_ms = 0
    parts: list[tuple[Instants, Instants]] = []
    for number, block in files.blocks(path):
        times = _plain(block, last_ms)
        if times is None:
            times = _each(path, number, block, last_ms)
        if len(times):
            longest_ms = max(longest_ms, int(np.diff(times, prepend=last_ms).max()))
            last_ms, lines = int(times[-1]), lines + len(times)
            # a packet that is due at the end of a step has the step to pass in; one due at 0, the first
            parts.append(_runs(np.maximum(-(-times // step_ms), 1) - 1))
    if last_ms == 0:
        raise UserError(
            f"{path}: its last time is 0; deliveries repeat after their last time, so end with a later one"
        )
    numbers, packets = _joined(parts)
    starts_ns, rates_bps = _rates(numbers * step_ms, np.minimum((numbers + 1) * step_ms, last_ms), packets)
    most = int(rates_bps.argmax())
    if rates_bps[most] > RATE_RANGE_BPS[1]:
        raise UnitError(
            f"{path}: its deliveries at {units.format_time(int(starts_ns[most]) / NS)} come to"
            f" {units.human_rate(float(rates_bps[most]))}; {RATE_RULE}: take out lines, or take a longer step"
        )
    return Trace(
        *(str(path), "mahimahi", lines, starts_ns, rates_bps),
        period_ns=last_ms * MS_NS,
        packet_bytes=DELIVERY_BYTES,
        longest_outage_s=longest_ms / 1e3,
    )


def _runs(numbers: Instants) -> tuple[Instants, Instants]:
    """Return each of some numbers that never fall once, and how often it was there."""
    first = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
    return numbers[first], np.diff(first, append=len(numbers))


def _joined(parts: list[tuple[Instants, Instants]]) -> tuple[Instants, Instants]:
    """Return the runs of all parts as one; a run that two of them share is one run. Empties the list."""
    for before, after in itertools.pairwise(parts):
        if before[0][-1] == after[0][0]:
            after[1][0] += before[1][-1]
            before[1][-1] = 0
    numbers = np.concatenate([part[0] for part in parts])
    counts = np.concatenate([part[1] for part in parts])
    parts.clear()
    return numbers[counts > 0], counts[counts > 0]


def _rates(starts_ms: Instants, ends_ms: Instants, packets: Instants) -> tuple[Instants, Rates]:
    """Return starts (ns) and rates of the steps with packets, and of the outages between them."""
    before_ms = np.concatenate([[0], ends_ms[:-1]])
    after_outage = starts_ms > before_ms
    places = np.arange(len(packets)) + np.cumsum(after_outage)
    starts_ns, rates_bps = np.zeros(int(places[-1]) + 1, dtype=np.int64), np.zeros(int(places[-1]) + 1)
    starts_ns[places] = starts_ms * MS_NS
    starts_ns[places[after_outage] - 1] = before_ms[after_outage] * MS_NS
    rates_bps[places] = packets * (_DELIVERY_BITS * 1e3) / (ends_ms - starts_ms)
    return frozen(starts_ns, rates_bps)


def _plain(block: bytes, last_ms: int) -> Instants | None:
    """Return the times of a block that has a good one in every line and nothing else, or None."""
    block = block.replace(b"\r\n", b"\n")
    words = block.split()
    if block.translate(None, b"0123456789") != b"\n" * len(words):
        return None
    try:
        times = np.array(list(map(int, words)), dtype=np.int64)
    except (OverflowError, ValueError):  # ValueError: more digits than Python reads
        return None
    fine = times[0] >= last_ms and times[-1] <= _LAST_MS and not (times[1:] < times[:-1]).any()
    return times if fine else None


def _each(path: Path, number: int, block: bytes, last_ms: int) -> Instants:
    """Return the times of any block, line by line. Raises UnitError for the first that is wrong."""
    times = []
    for line, text in files.lines_of(path, number, block):
        try:
            last_ms = _time(text, last_ms)
        except UnitError as fault:
            raise files.at(path, line, str(fault)) from fault
        times.append(last_ms)
    return np.array(times, dtype=np.int64)


def _time(text: str, last_ms: int) -> int:
    said = files.short(text)
    if not _WHOLE.fullmatch(text):
        raise UnitError(
            f"{said} is not a whole number of milliseconds; write a line a packet, such as 12, or time,rate"
            " in a file whose name ends in .csv"
        )
    if text.startswith("-") and text.strip("-0"):
        raise UnitError(f"{said} is negative; times count in milliseconds from 0")
    if len(text) > 15 or int(text) > _LAST_MS:
        raise UnitError(
            f"{said} is beyond {_LAST_MS} ms; times count from the trace's own start: take the first off all"
        )
    if int(text) < last_ms:
        raise UnitError(f"{said} comes after {last_ms}; times never go back: sort the lines")
    return int(text)


def text(name: str, starts_ns: Instants, rates_bps: Rates, duration_s: float) -> Iterator[str]:
    """Yield the text of deliveries that follow some rates for a duration, which is the period then.

    A packet is due at the first millisecond at which the link has had time for it. The last line is
    at the duration, to the nearest millisecond, whether or not a whole packet is due then.
    Raises UserError where there are too many.
    """
    end_ms = max(1, round(duration_s * 1e3))
    edges_ns = np.append(starts_ns[starts_ns < end_ms * MS_NS], end_ms * MS_NS)
    rates_bps = rates_bps[: len(edges_ns) - 1]
    let_through = np.concatenate([[0.0], np.cumsum(rates_bps * np.diff(edges_ns) / NS)])
    packets = int(let_through[-1] / _DELIVERY_BITS + ALIKE)
    files.check_lines(name, packets)
    due = np.minimum(np.arange(1, packets + 1) * float(_DELIVERY_BITS), let_through[-1])
    which = np.searchsorted(let_through, due) - 1
    instants_ns = edges_ns[which] + (due - let_through[which]) * NS / rates_bps[which]
    times = np.ceil(instants_ns / MS_NS - 1e-6).astype(np.int64)
    if not packets or times[-1] < end_ms:
        times = np.append(times, end_ms)
    for first in range(0, len(times), 4096):
        yield "\n".join(map(str, times[first : first + 4096].tolist())) + "\n"
