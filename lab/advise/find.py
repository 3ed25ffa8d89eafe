"""Finds the least buffers of a path by measuring: ample ones first, then a search for each, then the knee.

What runs a point is handed in, so all of this is tried without a kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lab.advise import inverse
from lab.advise.ask import WHICH, Ask, Case, least_bytes, text_of
from lab.advise.effort import (
    MOST_MERGED_PACKETS,
    MOST_SINGLE_PACKETS,
    Effort,
    ample_bytes,
    effort,
    packets,
)
from lab.advise.search import Search
from lab.setting import setting
from lab.sweep import Point

Row = dict[str, Any]
Measure = Callable[[Sequence[Point]], list[Row]]
"""Runs points, those that are missing, and returns their rows in the same order."""

SETTLED = 0.02
"""A run is long enough where one twice as long comes out the same, to this share."""
MOST_DOUBLINGS = 3
BOUNDS = (1.08, 1.25)
"""Where ample buffers fall short: times the model's guess that are tried as a bound on the flow."""
KNEE = (1 / 4, 1 / 2, 3 / 4, 1.18, 1.5, 2.5)
"""Further sizes for the figure, times the one that was found."""
APART = 1.15
"""Sizes nearer to one another than this are one mark of the figure."""


@dataclass
class Knee:
    """One buffer's search. Sizes are largest buffers of a flow, bytes.

    guess_bytes: the model's; found_bytes: the least that reached the goal;
    short_bytes: the largest below it that did not, None where even the kernel's
    least reached; held_bytes: the other buffer meanwhile; rows: what was measured.
    """

    which: str
    guess_bytes: int
    most_bytes: int
    held_bytes: int
    found_bytes: int = 0
    short_bytes: int | None = None
    rows: dict[int, Row] = field(default_factory=dict)


@dataclass
class Finding:
    """What was found for one case.

    ample: the row of a run with ample buffers, default: with the kernel's own.
    goal_bps: what the search asked for. attainable: whether that is the target;
    else it is the target's share of what ample buffers gave. bound: the buffer
    that has to bound the flow for the target to be reached, None where ample ones
    reach it. factor: how much larger the receive buffer has to be where segments
    arrive singly.
    """

    case: Case
    how: Effort
    ample_bytes: Mapping[str, int]
    ample: Row
    default: Row
    goal_bps: float
    attainable: bool
    bound: str | None = None
    knees: dict[str, Knee] = field(default_factory=dict)
    factor: float = 1.0


def goodput_bps(row: Row) -> float:
    """Return what counts: the goodput of all flows together in the steady part."""
    return float(row["steady_goodput_bps"])


def find(ask: Ask, measure: Measure, jobs: int) -> list[Finding]:
    """Return a finding for each case, searched side by side."""
    findings = _with_goals(ask, _settled(ask, measure), measure)
    _search(ask, findings, measure, jobs)
    _fill(ask, findings, measure)
    for finding in findings:
        found = finding.knees["rmem"].found_bytes
        if finding.how.offloads:
            model = setting(ask.point(finding.case), finding.case.release)
            finding.factor = inverse.single_segments_factor(model, found)
    return findings


def buffers(ask: Ask, case: Case, how: Effort, sizes: Mapping[str, int]) -> Point:
    """Return the point with these largest buffers."""
    return ask.point(case, **how.knobs, **{which: text_of(size) for which, size in sizes.items()})


def _settled(ask: Ask, measure: Measure) -> list[Finding]:
    """Run every case with ample buffers and with the kernel's own, for as long as it takes to be steady."""
    found: dict[Case, Finding] = {}
    hows = {case: effort(ask, case) for case in ask.cases}
    ample = {case: {which: ample_bytes(ask, case, which) for which in WHICH} for case in ask.cases}
    for _ in range(MOST_DOUBLINGS + 1):
        todo = [case for case in ask.cases if case not in found or found[case].how != hows[case]]
        if not todo:
            break
        points = [
            point
            for case in todo
            for point in (
                buffers(ask, case, _longer(ask, hows[case]), ample[case]),
                buffers(ask, case, hows[case], ample[case]),
                buffers(ask, case, hows[case], {}),
            )
        ]
        rows = iter(measure(points))
        for case, (longer, short, default) in zip(todo, zip(rows, rows, rows, strict=True), strict=True):
            found[case] = Finding(
                case, hows[case], ample[case], short, default, goal_bps=ask.target_bps, attainable=True
            )
            longest = _longer(ask, hows[case])
            most = MOST_MERGED_PACKETS if longest.offloads else 2 * MOST_SINGLE_PACKETS
            differ = abs(goodput_bps(longer) / max(goodput_bps(short), 1.0) - 1) > SETTLED
            if differ and packets(goodput_bps(longer), longest, ask.mtu_bytes) <= most:
                hows[case] = longest
    return [found[case] for case in ask.cases]


def _longer(ask: Ask, how: Effort) -> Effort:
    """Return twice the time; the same with random loss, where two runs differ by chance."""
    return how if ask.loss > 0 else how.longer()


def _guess(ask: Ask, finding: Finding, which: str, goal_bps: float) -> int:
    """Return the least buffer by the model, the other held ample, over such a run."""
    point = buffers(ask, finding.case, finding.how, finding.ample_bytes)
    model = setting(point, finding.case.release)
    return inverse.least_buffer(model, which, goal_bps, finding.ample_bytes[which])


def _with_goals(ask: Ask, findings: list[Finding], measure: Measure) -> list[Finding]:
    """Say what to search: the target, or a share of what can be had; make the searches' frames."""
    failing = [finding for finding in findings if goodput_bps(finding.ample) < ask.target_bps]
    _bound(ask, failing, measure)
    for finding in failing:
        if finding.bound is None:
            finding.attainable = False
            finding.goal_bps = ask.target * goodput_bps(finding.ample)
    for finding in findings:
        for which in WHICH:
            if which not in finding.knees:
                finding.knees[which] = _frame(ask, finding, which)
    return findings


def _frame(ask: Ask, finding: Finding, which: str) -> Knee:
    """Return a search between nothing and ample, the other buffer ample or at the bound."""
    held, row = finding.ample_bytes[WHICH[which == "rmem"]], finding.ample
    if finding.bound is not None:
        bound = finding.knees[finding.bound]
        held, row = bound.most_bytes, bound.rows[bound.most_bytes]
    most = finding.ample_bytes[which]
    return Knee(which, _guess(ask, finding, which, finding.goal_bps), most, held, rows={most: row})


def _bound(ask: Ask, failing: Sequence[Finding], measure: Measure) -> None:
    """Try whether a buffer that bounds the flow reaches what ample ones do not, the receiver's first.

    A window that ends before the queue overflows keeps a short queue from dropping.
    """
    tries = []
    for finding in failing:
        for which in WHICH:
            guess = _guess(ask, finding, which, ask.target_bps)
            tries += [
                (finding, which, guess, size)
                for size in (math.ceil(guess * times) for times in BOUNDS)
                if size < finding.ample_bytes[which]
            ]
    points = [
        buffers(ask, finding.case, finding.how, {**finding.ample_bytes, which: size})
        for finding, which, _, size in tries
    ]
    rows = measure(points) if points else []
    for (finding, which, guess, size), row in zip(tries, rows, strict=True):
        if goodput_bps(row) >= ask.target_bps and finding.bound is None:
            held = finding.ample_bytes[WHICH[which == "rmem"]]
            most = finding.ample_bytes[which]
            finding.bound = which
            finding.knees[which] = Knee(which, guess, size, held, rows={size: row, most: finding.ample})


def _search(ask: Ask, findings: Sequence[Finding], measure: Measure, jobs: int) -> None:
    """Search all buffers of all cases side by side, some sizes a round of each."""
    searches = [
        (finding, knee, Search(knee.guess_bytes, least_bytes(knee.which), knee.most_bytes))
        for finding in findings
        for knee in finding.knees.values()
    ]
    while True:
        open_ones = [one for one in searches if not one[2].done]
        if not open_ones:
            break
        count = max(2, math.ceil(jobs / len(open_ones)))
        asked = [(one, size) for one in open_ones for size in one[2].propose(count)]
        rows = measure([_at(ask, finding, knee, size) for (finding, knee, _), size in asked])
        for one in open_ones:
            finding, knee, search = one
            mine = {size: row for (other, size), row in zip(asked, rows, strict=True) if other is one}
            knee.rows.update(mine)
            search.tell({size: goodput_bps(row) >= finding.goal_bps for size, row in mine.items()})
    for _, knee, search in searches:
        knee.found_bytes, knee.short_bytes = search.result, search.short


def _at(ask: Ask, finding: Finding, knee: Knee, size: int) -> Point:
    other = WHICH[knee.which == "rmem"]
    return buffers(ask, finding.case, finding.how, {knee.which: size, other: knee.held_bytes})


def _fill(ask: Ask, findings: Sequence[Finding], measure: Measure) -> None:
    """Measure more sizes around what was found, for the figure."""
    asked = []
    for finding in findings:
        for knee in finding.knees.values():
            top = max(knee.rows)
            for times in KNEE:
                size = round(knee.found_bytes * times)
                if least_bytes(knee.which) < size < top and _apart(size, knee.rows):
                    asked.append((finding, knee, size))
    rows = measure([_at(ask, *one) for one in asked]) if asked else []
    for (_, knee, size), row in zip(asked, rows, strict=True):
        knee.rows[size] = row


def _apart(size: int, sizes: Iterable[int]) -> bool:
    return all(max(size / other, other / size) > APART for other in sizes)


def misses_above(finding: Finding, knee: Knee) -> list[int]:
    """Return the sizes above the found one that fell short: goodput that does not grow with the buffer."""
    return sorted(
        size
        for size, row in knee.rows.items()
        if size > knee.found_bytes and goodput_bps(row) < finding.goal_bps
    )
