"""What of a point changes while it runs: rate, delay and loss, as steps and as `tc` words."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from lab import changes, layout, qdisc, traces
from lab.combination import Point
from lab.errors import UserError
from lab.knobs import PATH_KNOBS
from lab.plans.egress import halves
from lab.plans.plan import End

Steps = Sequence[tuple[float, float]]

_DIGEST = re.compile(r"@[0-9a-f]{8}$")

SHORTEST_HOLD_S = 0.03
"""From here a step in which hardly a packet passes is a link that stands still, and not a slow one."""


def trace_file(text: str) -> Path:
    """Return the file that the knob `trace` names, without the digest that a point's has."""
    return Path(_DIGEST.sub("", text))


def with_digest(text: str) -> str:
    """Return the knob `trace` with what the file holds in its name. Raises UserError where it has changed."""
    file = trace_file(text)
    digest = traces.digest(file)
    if _DIGEST.search(text) and not text.endswith(f"@{digest}"):
        raise UserError(
            f"trace: {text!r} names another content than {file} has now, {digest}; leave @... out"
        )
    return f"{file}@{digest}"


@lru_cache(maxsize=8)
def _trace(text: str, step_s: float) -> traces.Trace:
    with_digest(text)
    return traces.load(trace_file(text), step_s=step_s)


def rate_steps(point: Point) -> tuple[tuple[float, float], ...]:
    """Return (instant in s, bit/s) of the bottleneck's rate; the first is at 0. Raises UserError."""
    if point.knobs["trace"] != "none":
        step_s = float(PATH_KNOBS["trace_step"].value(point.knobs["trace_step"]))
        return tuple(_trace(point.knobs["trace"], step_s).upto(point.duration_s))
    return tuple(changes.steps(point.rate_bps, point.changes("rate_change")))


def value_at(steps: Steps, t_s: float) -> float:
    """Return what holds at an instant."""
    return steps[max(0, bisect_right(steps, (t_s, float("inf"))) - 1)][1]


def offered(steps: Steps) -> Callable[[float], float]:
    """Return what tells how much the link could have carried by an instant, bytes."""
    instants = [t_s for t_s, _ in steps]
    spans = (rate_bps * (until_s - from_s) / 8 for (from_s, rate_bps), (until_s, _) in pairwise(steps))
    sums = [0.0, *accumulate(spans)]

    def by(t_s: float) -> float:
        at = bisect_right(instants, t_s) - 1
        return sums[at] + steps[at][1] * (t_s - instants[at]) / 8 if at >= 0 else 0.0

    return by


def commands(point: Point) -> list[dict[str, Any]]:
    """Return what the agent tells `tc` and when: {"at_ns", "node", "interface", "tc", "hold"}, in order.

    hold: bytes of a frame that goes first, or None. A shaper that has nothing to
    send when the link begins to stand still would let the next packet pass at
    once and count the wait from there; such a frame is the packet that passes.
    """
    found = [*_rate_commands(point), *_delay_commands(point)]
    return sorted(found, key=lambda one: (one["at_ns"], one["node"], one["interface"]))


def _rate_commands(point: Point) -> list[dict[str, Any]]:
    if not layout.varies(point):
        return []
    network = layout.plan(point)
    ends = [
        network.end(name) for name in dict.fromkeys(n for pair in network.pairs for n in pair.bottlenecks)
    ]
    steps = rate_steps(point)
    found = []
    for (t_s, rate_bps), until_s in zip(
        steps, [t_s for t_s, _ in steps[1:]] + [point.duration_s], strict=True
    ):
        if t_s == 0 and rate_bps == point.rate_bps:
            continue
        held = until_s - t_s >= SHORTEST_HOLD_S and rate_bps * (until_s - t_s) / 8 < 2 * point.packet_bytes
        for end in ends:
            rate = max(8, int(rate_bps))
            burst = qdisc.burst_bytes(rate, point.mtu_bytes, point.offloads)
            egress = {**end.egress, "rate_bps": rate, "burst_bytes": burst}
            words = f"class change {qdisc.htb_class(end.interface, egress)}"
            found.append(_at(t_s, end, words, point.packet_on_wire_bytes if held else None))
    return found


def _delay_commands(point: Point) -> list[dict[str, Any]]:
    rtts = changes.steps(point.rtt_s, point.changes("rtt_change"))
    shares = changes.steps(point.loss.numbers[0], point.changes("loss_change"))
    instants = sorted({t_s for t_s, _ in (*rtts[1:], *shares[1:])})
    found = []
    for t_s in instants:
        rtt_s = value_at(rtts, t_s)
        out_s, back_s = halves(rtt_s) if layout.out_share(point) < 1 else (rtt_s, 0.0)
        for end in (one for link in layout.plan(point).links for one in link.ends):
            if "delay_s" not in end.egress:
                continue
            out = "jitter_s" in end.egress
            egress = {**end.egress, "delay_s": out_s if out else back_s}
            if out and point.knobs["loss_change"] != "none":
                egress["loss"] = value_at(shares, t_s)
            netem = qdisc.netem_words(egress) or f"limit {qdisc.UNLIMITED_PACKETS}"
            words = f"qdisc change dev {end.interface} root handle 20: netem {netem}"
            found.append(_at(t_s, end, words, None))
    return found


def _at(t_s: float, end: End, words: str, hold: int | None) -> dict[str, Any]:
    return {
        "at_ns": round(t_s * 1e9),
        "node": end.node,
        "interface": end.interface,
        "tc": words,
        "hold": hold,
    }
