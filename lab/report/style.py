"""How figures look: colours, marks, lines, and the layout that all share.

Colours: Okabe and Ito, "Color Universal Design", 2008; they stay apart for
colour-blind readers. Its yellow is left out (too pale on white) and its black
is a grey that reads on white and on dark alike. Marks and dashes differ too.
"""

from __future__ import annotations

import html
from typing import Any

BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
GREY = "#7F7F7F"
COLOURS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY)
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "triangle-down")
DASHES = ("dash", "dot", "dashdot", "longdash", "longdashdot")

GRID = "rgba(127,127,127,0.22)"
AXIS = "rgba(127,127,127,0.6)"
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


def plain(text: object) -> str:
    """Return text that plotly shows as it is: it reads some HTML in labels."""
    return html.escape(str(text), quote=False)


def layout(**more: Any) -> dict[str, Any]:
    """Return the layout that all figures share, with more on top. The page sets its own text colour."""
    return {
        "template": "none",
        "font": {"family": FONT, "size": 13, "color": TEXT},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 64, "r": 18, "t": 30, "b": 56},
        "hoverlabel": {"align": "left", "namelength": -1},
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
