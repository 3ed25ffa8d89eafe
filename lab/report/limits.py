"""How limits look and read, the same in every part of the report: colour, pattern, words.

Which limits there are and what they mean is in `lab.model.limits`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lab.model import limits as model
from lab.report import style

SMALLEST = 0.0005
"""A share under this is nothing: it would be shown as 0.0 %."""


class Look(NamedTuple):
    """How one limit is filled.

    text: the colour that reads on it; pattern: plotly's name of a pattern in
    that colour, "" for none. Colours that a colour-blind reader may take for
    another have one.
    """

    colour: str
    text: str
    pattern: str = ""
    symbol: str = "circle"


_BLACK, _WHITE = "#111111", "#ffffff"
LOOKS: Mapping[str, Look] = {
    model.LINK: Look(style.BLUE, _WHITE, symbol="circle"),
    model.RECEIVE_WINDOW: Look(style.VERMILLION, _BLACK, symbol="square"),
    model.SEND_BUFFER: Look(style.ORANGE, _BLACK, symbol="diamond"),
    model.LOSS: Look(style.PURPLE, _BLACK, symbol="x"),
    model.QUEUE: Look("#F0E442", _BLACK, symbol="triangle-up"),
    model.HYSTART: Look(style.SKY, _BLACK, symbol="triangle-down"),
    model.SLOW_START: Look(style.GREEN, _BLACK, symbol="cross"),
    model.PACING: Look("#882255", _WHITE, ".", "star"),
    model.APPLICATION: Look("#A8A8A8", _BLACK, "/", "hexagon"),
    model.MACHINE: Look(style.GREY, _BLACK, "x", "pentagon"),
}
UNKNOWN = Look(style.GREY, _BLACK, symbol="circle-open")

_PATTERNS = {
    "": "none",
    ".": "radial-gradient({text} 15%, transparent 18%) 0 0 / 6px 6px",
    "/": "repeating-linear-gradient(135deg, transparent 0 4px, {text} 4px 5px)",
    "x": "repeating-linear-gradient(135deg, transparent 0 4px, {text} 4px 5px),"
    " repeating-linear-gradient(45deg, transparent 0 4px, {text} 4px 5px)",
}


def look(limit: str) -> Look:
    """Return how a limit looks, also one that this version does not know."""
    return LOOKS.get(limit, UNKNOWN)


def css_class(limit: str) -> str:
    """Return the CSS class of a limit; what a run says is never part of it."""
    return f"limit-{limit if limit in LOOKS else 'unknown'}"


def css() -> str:
    """Return the style sheet of all limits."""
    rules = []
    for limit, its in {**LOOKS, "unknown": UNKNOWN}.items():
        pattern = _PATTERNS[its.pattern].format(text=its.text)
        background = its.colour if pattern == "none" else f"{pattern} {its.colour}"
        if its.pattern == "x":  # the colour belongs to the last of several layers
            background = f"{pattern}, {its.colour}"
        rules.append(f".limit-{limit} {{ background: {background}; color: {its.text}; }}")
    return "\n".join(rules)


def ordered(limits: Iterable[str]) -> list[str]:
    """Return limits in the order of `LIMITS`, then those that this version does not know, each once."""
    named = set(limits)
    return [limit for limit in model.LIMITS if limit in named] + sorted(named - set(model.LIMITS))


def present(*shares: Mapping[str, float]) -> list[str]:
    """Return the limits that have a share worth showing in any of these, ordered."""
    return ordered(limit for some in shares for limit, share in some.items() if share >= SMALLEST)


def percent(share: float | None) -> str:
    """Return a share as text, such as "93 %" or "0.4 %"; a dash for none."""
    if share is None:
        return "–"
    if share < SMALLEST:
        return "0 %"
    digits = 1 if share < 0.0995 or 0.995 <= share < 0.9995 else 0
    return f"{100 * share:.{digits}f} %"


def named(limit: str | None, shares: Mapping[str, float] | None = None) -> str:
    """Return a limit in words, with its share where it is known: "receive window 93 %"; "" for none."""
    if not limit:
        return ""
    share = (shares or {}).get(limit)
    return model.words(limit) + (f" {percent(share)}" if share is not None else "")
