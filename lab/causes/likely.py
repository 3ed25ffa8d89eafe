"""From two sides to the causes of their difference, and to a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lab.causes import rules
from lab.causes.rules import Rule
from lab.causes.sides import Side, grown

GOODPUTS = frozenset({"goodput_bps", "steady_goodput_bps"})
TIMES = frozenset(
    {
        *("transfer_time_ratio", "fct_s", "fct_p99_s", "slowdown", "slowdown_p99"),
        *("request_s", "request_p99_s"),
    }
)
"""Columns that fall where goodput rises."""
RTTS = frozenset({"loaded_rtt_s", "queue_delay_s", "queue_delay_p95_s", "queue_delay_p99_s"})
LOSSES = frozenset({"retransmits", "retransmit_share", "queue_drops"})

LEAST_SHARE = 0.1
"""Of a difference: what explains less of it is no cause."""
SIGN_ONLY = 0.2
"""Share of a difference that a rule is credited with which knows only the direction."""

NOTHING = "No cause found in what was recorded"


class Cause(NamedTuple):
    """One likely cause. rule: its name; sentence: with both numbers; share: of the difference it explains."""

    rule: str
    sentence: str
    share: float


def likely(column: str, a: Side, b: Side) -> list[Cause]:
    """Return the likely causes of b's difference from a in a column, those that explain most first.

    A cause has the direction of the difference and explains at least a tenth of it.
    Of a column that no rule is about there are none.
    """
    change = _change(column, a, b)
    if change is None or change == 0:
        return []
    sign = -1.0 if column in TIMES else 1.0
    found = []
    for name, rule in _rules(column):
        effect = rule(a, b)
        if effect is None:
            continue
        share = sign * effect.amount / change
        if not effect.sure:
            share = SIGN_ONLY if share > 0 else 0.0
        if share >= LEAST_SHARE:
            # a rule that would explain ten times what there is explains it no better than one of a tenth
            found.append(Cause(name, effect.sentence, min(share, 1 / share)))
    return sorted((cause for cause in found if cause.share >= LEAST_SHARE), key=lambda one: -one.share)


def said(causes: Sequence[Cause], a: Side, b: Side) -> str:
    """Return the first cause as a sentence, and the second where it counts half as much or more.

    Where there is none that is said, with what else differs between the two.
    """
    if causes:
        told = [one.sentence for one in causes[:2] if one.share >= causes[0].share / 2]
        return ". ".join(text[0].upper() + text[1:] for text in told) + "."
    others = also(a, b)
    return f"{NOTHING}; what else differs: {', '.join(others)}." if others else f"{NOTHING}."


_FACTS = {
    "kernel_release": "Linux",
    "kernel_hz": "HZ",
    "offloads": "offloads",
    "mtu": "MTU",
    "engine": "engine",
    "workload": "workload",
}


def also(a: Side, b: Side) -> list[str]:
    """Return phrases on what differs and of which no number says what it does."""
    return [
        f"{word} {a.text(name)} and {b.text(name)}"
        for name, word in _FACTS.items()
        if a.text(name) != b.text(name)
    ]


def _change(column: str, a: Side, b: Side) -> float | None:
    """Return the difference as the rules count it."""
    x, y = a.number(column), b.number(column)
    if x is None or y is None:
        return None
    if column in RTTS:
        return y - x
    if column in LOSSES:
        floor = rules.LEAST_LOSS if column == "retransmit_share" else 1.0
        return grown(max(x, floor), max(y, floor))
    return grown(x, y) if x > 0 and y > 0 else None


def _rules(column: str) -> Sequence[tuple[str, Rule]]:
    if column in GOODPUTS | TIMES:
        every = rules.OF_GOODPUT
        return [one for one in every if not (column == "steady_goodput_bps" and one[0] in rules.OF_THE_START)]
    if column in RTTS:
        return rules.OF_RTT
    return rules.OF_LOSSES if column in LOSSES else ()
