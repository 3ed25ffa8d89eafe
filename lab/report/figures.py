"""The main figures of a report: the scenario's own, each drawn by the module of its kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lab.report import bars, boxes, cdf, ellipses, heat, lines, overtime, overview
from lab.report.asked import asked
from lab.report.drawn import Drawn
from lab.report.stored import Stored
from lab.scenario import Figure

KINDS: Mapping[str, Callable[[Figure, Stored, int], Drawn | None]] = {
    "curve": lines.draw,
    "heat": heat.draw,
    "box": boxes.draw,
    "cdf": cdf.draw,
    "ellipse": ellipses.draw,
    "time": overtime.draw,
}
"""Each returns the figure, the nth of the report; None where the run has nothing to show in it."""


def draw(stored: Stored) -> list[Drawn]:
    """Return the main figures: the scenario's own; a bar a point where none of them has anything to show.

    The last is measured against predicted, where there are points enough.
    """
    drawn: list[Drawn] = []
    for told in stored.manifest.get("figures", ()):
        figure = asked(told)
        kind = KINDS.get(figure.kind)
        one = kind(figure, stored, len(drawn) + 1) if kind else None
        if one is not None:
            drawn.append(one)
    if not drawn and stored.done:
        drawn = [bars.draw(stored)]
    compared = overview.draw(stored, len(drawn) + 1)
    return [*drawn, compared] if compared else drawn
