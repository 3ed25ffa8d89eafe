"""From what was found to what to set: headroom, whole numbers, and the proof by runs of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab.advise.ask import MIB, WHICH, Ask, Case, kernel_default_bytes
from lab.advise.effort import Effort, exact
from lab.advise.find import Finding, Measure, Row, buffers, goodput_bps
from lab.errors import UserError
from lab.memory import LARGEST_BYTES

HEADROOM = 1.10
HEADROOM_LOSS = 1.25
"""With random loss the knee itself is known only as well as chance lets it."""
RAISE = 1.15
MOST_RAISES = 3


@dataclass(frozen=True)
class Proof:
    """Runs with the chosen values at both ends, and with half of each; rows of table points."""

    case: Case
    how: Effort
    goal_bps: float
    both: Row
    half: Mapping[str, Row]

    @property
    def reached(self) -> bool:
        """Whether the chosen values reach the goal together."""
        return goodput_bps(self.both) >= self.goal_bps


@dataclass(frozen=True)
class Choice:
    """What to set. sizes: {rmem, wmem} in bytes; kept: which of them are the kernel's own default."""

    sizes: Mapping[str, int]
    kept: frozenset[str]
    headroom: float
    proofs: Sequence[Proof]


def headroom(ask: Ask) -> float:
    """Return by how much to exceed what was found."""
    return HEADROOM_LOSS if ask.loss > 0 else HEADROOM


def bounds(findings: Sequence[Finding]) -> frozenset[str]:
    """Return the buffers that bound a flow on purpose: more of them would let the queue overflow again."""
    return frozenset(finding.bound for finding in findings if finding.bound is not None)


def needed_bytes(findings: Sequence[Finding], which: str) -> float:
    """Return the largest of what all cases need, where segments arrive singly."""
    return max(
        finding.knees[which].found_bytes
        * (finding.factor if which == "rmem" and finding.bound != "rmem" else 1.0)
        for finding in findings
    )


def whole(size_bytes: float) -> int:
    """Return the next whole number of MiB, of KiB under one MiB."""
    unit = MIB if size_bytes >= MIB else 1024
    return min(math.ceil(size_bytes / unit) * unit, LARGEST_BYTES // MIB * MIB)


def whole_sizes(findings: Sequence[Finding], times: float) -> tuple[dict[str, int], frozenset[str]]:
    """Return what to set for each buffer, and which of them the kernel's own default covers already."""
    chosen, kept = {}, set()
    bound = bounds(findings)
    for which in WHICH:
        needed = needed_bytes(findings, which)
        size = math.ceil(needed / 1024) * 1024 if which in bound else whole(needed * times)
        default = kernel_default_bytes(which)
        if size <= default and which not in bound:
            size = default
            kept.add(which)
        chosen[which] = size
    return chosen, frozenset(kept)


def choose(ask: Ask, findings: Sequence[Finding], measure: Measure) -> Choice:
    """Return values that reach the goals together, as far as raising them helps, with their proofs."""
    if not findings:
        raise UserError("nothing was searched: name a congestion control and a kernel")
    times = headroom(ask)
    chosen, kept = whole_sizes(findings, times)
    proofs = _proofs(ask, findings, chosen, measure)
    for _ in range(MOST_RAISES):
        if all(proof.reached for proof in proofs) or ask.loss > 0:
            break  # with random loss it is chance that a larger one would reach
        raised, raised_kept = whole_sizes(findings, times * RAISE)
        better = _proofs(ask, findings, raised, measure)
        if sum(proof.reached for proof in better) < sum(proof.reached for proof in proofs):
            break
        times *= RAISE
        chosen, kept, proofs = raised, raised_kept, better
    return Choice(chosen, kept, times, proofs)


def _proofs(
    ask: Ask, findings: Sequence[Finding], chosen: Mapping[str, int], measure: Measure
) -> list[Proof]:
    """Run each case with the chosen buffers and with half of each; packet by packet where affordable."""
    hows = [exact(ask, finding.case, finding.how) for finding in findings]
    points = [
        buffers(ask, finding.case, how, sizes)
        for finding, how in zip(findings, hows, strict=True)
        for sizes in (chosen, *({**chosen, which: chosen[which] // 2} for which in WHICH))
    ]
    rows = iter(measure(points))
    return [
        Proof(finding.case, how, finding.goal_bps, both, dict(zip(WHICH, halves, strict=True)))
        for finding, how, (both, *halves) in zip(
            findings, hows, zip(rows, rows, rows, strict=True), strict=True
        )
    ]
