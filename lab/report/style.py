"""How figures look: colours, marks, lines, and the layout that all share.

Colours: Okabe and Ito, "Color Universal Design", 2008; they stay apart for
colour-blind readers. Its yellow is left out (too pale on white) and its black
is a grey that reads on white and on dark alike. Marks and dashes differ too.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from typing import Any

BLUE, VERMILLION, GREEN = "#0072B2", "#D55E00", "#009E73"
PURPLE, ORANGE, SKY = "#CC79A7", "#E69F00", "#56B4E9"
GREY = "#7F7F7F"
COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY)
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "triangle-down")
DASHES = ("dash", "dot", "dashdot", "longdash", "longdashdot")

THEORY, THEORY_DASHES = "#858e96", ("dot", "dashdot", "longdash", "dash")
"""Of lines that nobody measured."""
GRID = "rgba(127,127,127,0.22)"
AXIS = "rgba(127,127,127,0.6)"
WIDE_PX, NARROW_PX = 900, 300
"""Room for a legend on a large and on a small screen, at least."""

_TITLE_CHARACTERS = 44

FONT = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', sans-serif"
TEXT = "#1d2329"


def colour(number: int) -> str:
    """Return the colour of the nth curve."""
    return COLOURS[number % len(COLOURS)]


def symbol(number: int) -> str:
    """Return the mark of the nth curve; with its colour it repeats after 42 curves."""
    return SYMBOLS[number % len(SYMBOLS)]


def dash(number: int) -> str:
    """Return the dash of the nth curve's prediction."""
    return DASHES[number % len(DASHES)]


def group(number: int) -> str:
    """Return what ties together all that is drawn of the nth curve: the legend hides it as one."""
    return f"curve{number}"


def plain(text: object) -> str:
    """Return text that plotly shows as it is: it reads some HTML in labels."""
    return html.escape(str(text), quote=False)


def upright(title: str) -> dict[str, Any]:
    """Return a vertical axis's title; one that is longer than an axis has two lines and the room for them."""
    lines = textwrap.wrap(title, _TITLE_CHARACTERS)
    return {"title": {"text": "<br>".join(plain(line) for line in lines)}, "automargin": len(lines) > 1}


def legend_lines(names: Sequence[str], width_px: int) -> int:
    """Return how many lines a lying legend needs; plotly gives every entry the width of the longest."""
    if not names:
        return 0
    columns = max(1, width_px // (48 + 7 * max(map(len, names))))
    return -(-len(names) // columns)


def legend_fits(names: Sequence[str], title: str, width_px: int) -> bool:
    """Return whether a lying legend and its title have room in one line."""
    return sum(48 + 7 * len(name) for name in names) + 9 * len(title) <= width_px


def faded(colour: str, share: float = 0.45) -> str:
    """Return a colour of the palette that lets so much of the page through as is left of 1."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},{share})"


_OF_CC = {"cubic": BLUE, "bbr": VERMILLION, "reno": GREEN, "vegas": PURPLE, "dctcp": ORANGE, "bbr3": SKY}


def colours(names: Sequence[str]) -> dict[str, str]:
    """Return a colour for each of these names: congestion controls have their own wherever they are drawn."""
    found = {name: _OF_CC[name] for name in names if name in _OF_CC}
    free = [colour for colour in COLOURS if colour not in found.values()] or list(COLOURS)
    others = [name for name in dict.fromkeys(names) if name not in found]
    return {**found, **{name: free[number % len(free)] for number, name in enumerate(others)}}


def layout(**more: Any) -> dict[str, Any]:
    """Return the layout that all figures share, with more on top. The page sets its own text colour."""
    return {
        "template": "none",
        "font": {"family": FONT, "size": 13, "color": TEXT},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 64, "r": 18, "t": 30, "b": 56},
        "hoverlabel": {"align": "left", "namelength": -1},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": GREY, "activecolor": BLUE},
        **more,
    }


def axis(**more: Any) -> dict[str, Any]:
    """Return an axis with the shared grid and line."""
    return {
        "gridcolor": GRID,
        "zeroline": False,
        "showline": True,
        "linecolor": AXIS,
        "ticks": "outside",
        "tickcolor": AXIS,
        "ticklen": 4,
        **more,
    }
