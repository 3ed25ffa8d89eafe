"""What was found, in words and as plain data: sentences, warnings, rows of the table, the JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lab.advise import cost
from lab.advise.ask import WHICH, Ask, percent
from lab.advise.choose import Choice, Proof, bounds
from lab.advise.find import Finding, Knee, Row, goodput_bps, misses_above
from lab.advise.obstacles import obstacles
from lab.advise.verify import Applied, Check
from lab.units import format_time, human_rate, human_size


def share(ask: Ask, rate_bps: float) -> str:
    """Return a goodput with its share of what the link can carry."""
    return f"{human_rate(rate_bps)} ({percent(rate_bps / ask.capacity_bps)})"


def table(ask: Ask, findings: Sequence[Finding], choice: Choice) -> list[dict[str, str]]:
    """Return a row for each case and buffer."""
    return [
        {
            "sysctl": f"tcp_{knee.which}",
            "cc": finding.case.cc,
            "kernel": finding.case.kernel,
            "model": human_size(knee.guess_bytes),
            "falls short": human_size(knee.short_bytes),
            "least": human_size(knee.found_bytes),
            "gives": share(ask, goodput_bps(knee.rows[knee.found_bytes])),
            "set": human_size(choice.sizes[knee.which])
            + (" (kernel's own)" if knee.which in choice.kept else ""),
        }
        for finding in findings
        for knee in finding.knees.values()
    ]


def sentences(ask: Ask, findings: Sequence[Finding], choice: Choice) -> list[str]:
    """Return what to know, a sentence or two a line, without the warnings."""
    said = [
        f"Target: {percent(ask.target)} of {human_rate(ask.capacity_bps)}, the payload that {ask.words} can"
        f" carry, is {human_rate(ask.target_bps)}"
        + (f" by {ask.flows} flows together" if ask.flows > 1 else "")
        + f". The BDP is {human_size(ask.bdp_bytes)}."
    ]
    for proof in choice.proofs:
        default = next(finding.default for finding in findings if finding.case == proof.case)
        said.append(
            f"{proof.case.name}: the values to set give {share(ask, goodput_bps(proof.both))}, half of"
            f" tcp_rmem {share(ask, goodput_bps(proof.half['rmem']))}, half of tcp_wmem"
            f" {share(ask, goodput_bps(proof.half['wmem']))}, the kernel's own defaults"
            f" {share(ask, goodput_bps(default))}."
        )
    if len(choice.kept) == len(WHICH):
        said.append("The kernel's own buffers are enough for this path: nothing has to be set.")
    merged = [finding for finding in findings if finding.how.offloads]
    if merged:
        text = (
            "Offloads were on, because so many packets one by one would take minutes: queues and losses are"
            " coarser."
        )
        factor = max(finding.factor for finding in merged)
        if factor > 1:
            text += (
                " Where segments arrive singly a receive buffer of Linux 6.6 and later has to be"
                f" {factor:.3g} times as large; what is set"
                + (" does not allow for that." if "rmem" in bounds(findings) else " allows for that.")
            )
        if ask.loss > 0:
            text += " A loss took up to 45 segments at once, so there were fewer of them than one by one."
        proved = [proof for proof in choice.proofs if not proof.how.offloads]
        if proved:
            text += " The values to set were tried with offloads off."
        said.append(text)
    sizes = choice.sizes
    delays = [cost.delay(ask, finding.case, sizes["rmem"], sizes["wmem"]) for finding in findings]
    standing_s = float(f"{max(one.standing_s for one in delays):.2g}")
    full_s = float(f"{delays[0].full_queue_s:.2g}")
    said.append(
        f"Cost: {human_size(sizes['wmem'])} at the sender and {human_size(sizes['rmem'])} at the receiver at"
        f" most for a connection, {human_size(cost.MANY * sizes['wmem'])} and"
        f" {human_size(cost.MANY * sizes['rmem'])} for {cost.MANY};"
        f" {f'up to {format_time(standing_s)} of' if standing_s else 'no'} standing queue at the bottleneck,"
        f" whose whole queue is {format_time(full_s)}."
    )
    return said


def warnings(ask: Ask, findings: Sequence[Finding], choice: Choice) -> list[str]:
    """Return what stands in the way, and what not to trust."""
    said = []
    for finding in findings:
        name = finding.case.name
        if not finding.attainable:
            said.append(
                f"{name} cannot reach the target: with ample buffers it gives"
                f" {share(ask, goodput_bps(finding.ample))}. {' '.join(obstacles(ask, finding))} So the"
                f" search was for {percent(ask.target)} of what can be had, {human_rate(finding.goal_bps)}."
            )
        if finding.bound is not None:
            said.append(
                f"{name} reaches the target only while tcp_{finding.bound} bounds the flow: with ample"
                f" buffers it gives {share(ask, goodput_bps(finding.ample))}."
                f" {' '.join(obstacles(ask, finding))} What was found holds for this path alone; another flow"
                " or another RTT undoes it."
            )
        for knee in finding.knees.values():
            above = misses_above(finding, knee)
            if above and finding.attainable and finding.bound is None:
                listed = ", ".join(
                    f"{human_size(size)} gave {share(ask, goodput_bps(knee.rows[size]))}"
                    for size in above[:3]
                )
                said.append(
                    f"{name}: more is not always better: of tcp_{knee.which} {listed}, since a larger window"
                    " overflows the bottleneck's queue."
                )
    said += [
        f"{proof.case.name}: the values to set give {human_rate(goodput_bps(proof.both))} together, which"
        f" falls short of {human_rate(proof.goal_bps)}; treat them as a beginning."
        for proof in choice.proofs
        if not proof.reached
    ]
    if ask.loss > 0:
        said.append(
            "With random loss chance has a part: a run sees a dozen losses or so, its goodput is good to a"
            " third or so, and another seed would find other sizes."
        )
    return said


def as_json(ask: Ask, findings: Sequence[Finding], choice: Choice, files: dict[str, str]) -> dict[str, Any]:
    """Return every number, names with their units."""
    return {
        "path": dict(ask.path),
        "bdp_bytes": ask.bdp_bytes,
        "capacity_bps": ask.capacity_bps,
        "target": ask.target,
        "target_bps": ask.target_bps,
        "reached": all(proof.reached for proof in choice.proofs) and all(one.attainable for one in findings),
        "set": {
            f"tcp_{which}": {"max_bytes": choice.sizes[which], "kernel_default": which in choice.kept}
            for which in WHICH
        },
        "headroom": choice.headroom,
        "cases": [
            _case(ask, finding, proof, choice) for finding, proof in zip(findings, choice.proofs, strict=True)
        ],
        "sentences": sentences(ask, findings, choice),
        "warnings": warnings(ask, findings, choice),
        "files": files,
    }


def _case(ask: Ask, finding: Finding, proof: Proof, choice: Choice) -> dict[str, Any]:
    delays = cost.delay(ask, finding.case, choice.sizes["rmem"], choice.sizes["wmem"])
    return {
        "cc": finding.case.cc,
        "kernel": finding.case.kernel,
        "duration_s": finding.how.duration_s,
        "offloads": finding.how.offloads,
        "goal_bps": finding.goal_bps,
        "attainable": finding.attainable,
        "bound": finding.bound and f"tcp_{finding.bound}",
        "obstacles": [] if finding.attainable and finding.bound is None else obstacles(ask, finding),
        "ample_goodput_bps": goodput_bps(finding.ample),
        "default_goodput_bps": goodput_bps(finding.default),
        "single_segments_factor": finding.factor,
        "buffers": {f"tcp_{which}": _buffer(knee) for which, knee in finding.knees.items()},
        "proof": {
            "offloads": proof.how.offloads,
            "duration_s": proof.how.duration_s,
            "reached": proof.reached,
            "goodput_bps": goodput_bps(proof.both),
            "half_rmem_goodput_bps": goodput_bps(proof.half["rmem"]),
            "half_wmem_goodput_bps": goodput_bps(proof.half["wmem"]),
        },
        "full_queue_s": delays.full_queue_s,
        "standing_queue_s": delays.standing_s,
    }


def _buffer(knee: Knee) -> dict[str, Any]:
    return {
        "model_bytes": knee.guess_bytes,
        "least_bytes": knee.found_bytes,
        "short_bytes": knee.short_bytes,
        "points": [_point(size, row) for size, row in sorted(knee.rows.items())],
    }


def _point(size: int, row: Row) -> dict[str, Any]:
    return {
        "max_bytes": size,
        "goodput_bps": goodput_bps(row),
        "predicted_goodput_bps": row["predicted_goodput_bps"],
        "point": row["point"],
    }


def check_sentence(ask: Ask, check: Check) -> str:
    """Return whether the files fill the path, and why not."""
    got = f"{check.case.name}: {share(ask, check.goodput_bps)}"
    goal = f"the target of {human_rate(ask.target_bps)} ({percent(ask.target)})"
    if check.reached:
        return f"{got} reaches {goal}."
    return f"{got} falls short of {goal}. {' '.join(check.reasons)}"


def check_json(ask: Ask, applied: Applied, checks: Sequence[Check]) -> dict[str, Any]:
    """Return every number of a verification."""
    return {
        "path": dict(ask.path),
        "capacity_bps": ask.capacity_bps,
        "target": ask.target,
        "target_bps": ask.target_bps,
        "reached": all(check.reached for check in checks),
        "applied": [
            {"end": end, "file": line.file, "line": line.number, "key": line.key, "value": line.value}
            for end, line in applied.lines
        ],
        "notes": list(applied.notes),
        "cases": [
            {
                "cc": check.case.cc,
                "kernel": check.case.kernel,
                "duration_s": check.how.duration_s,
                "offloads": check.how.offloads,
                "goodput_bps": check.goodput_bps,
                "ample_goodput_bps": goodput_bps(check.ample),
                "reached": check.reached,
                "reasons": list(check.reasons),
                "point": check.row["point"],
            }
            for check in checks
        ],
    }
