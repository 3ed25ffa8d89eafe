"""A network as an SVG drawing, from its plan: hosts left and right, routers between them, words on the links.

Words above a link are about what leaves to the right, words below it about what
leaves to the left: rate and queue at the bottleneck, the rate of a host's own
interface, and the delay, which sits on a router behind the queue. Heads of
arrows show where data go.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab.plans.plan import Plan
from lab.report import tall
from lab.report.canvas import LINE_PX, Canvas, widest, width
from lab.report.sketch import Column, Gap, Host, Sketch, sketch

MOST_HOSTS, FIRST_HOSTS = 8, 3
"""In a column; of more the first ones and the last are drawn."""

CSS = """
.network text { fill: var(--text); } .network text.soft { fill: var(--soft); }
.network rect { fill: var(--tint); stroke: var(--soft); } .network rect.host { stroke: var(--accent); }
.network .link { stroke: var(--soft); } .network .head { fill: var(--soft); }
.network .link.studied { stroke: var(--accent); } .network .head.studied { fill: var(--accent); }
.network rect.queue { fill: var(--paper); } .network rect.queue.studied { stroke: var(--accent); }
"""
"""Colours of drawings, from the report's own; without it a drawing has the colour of the text around it."""

_ROUTER_PX = (44, 44)
_HOST_HIGH_PX, _HOST_HIGHER_PX = 30, 42
_RUN_PX = 84
_FAN_PX = 44
_GAP_PX = 96
_ROW_PX = 16
_CROSS_PX = 74
"""From the middle of a router to the middle of a host above or below it."""
_LANE_PX = 6
_QUEUE_PX = (24, 12)

Notes = Sequence[str]


def svg(plan: Plan, *, narrow: bool = False, notes: tuple[Notes, Notes] = ((), ())) -> str:
    """Return a plan as an SVG element that needs nothing else; narrow: from top to bottom, for a phone.

    notes: lines to write at the left and at the right hosts.
    """
    if narrow:
        return tall.svg(plan, notes)
    return _Wide(sketch(plan, MOST_HOSTS, FIRST_HOSTS)).svg(notes)


def document(plan: Plan) -> str:
    """Return a plan as an SVG file with colours of its own, for a light and a dark screen."""
    page = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    palette = page.partition("* {")[0]
    drawn = svg(plan)
    before, closed, after = drawn.partition("</desc>")
    paper = '<rect class="paper" x="-9999" y="-9999" width="19999" height="19999" fill="none"/>'
    style = f"<style>{palette}{CSS}.network rect.paper {{ fill: var(--paper); stroke: none; }}</style>"
    return f"{before}{closed}\n{style}\n{paper}\n{after}\n"


class _Wide:
    """The drawing from left to right. The routers stand at y = 0."""

    def __init__(self, of: Sketch) -> None:
        self._of = of
        self._canvas = Canvas()

    def svg(self, notes: tuple[Notes, Notes]) -> str:
        """Draw everything and return it."""
        of = self._of
        self._x = 0.0
        left = self._fan(of.left, left=True)
        places = []
        for router, gap in zip(of.routers, (*of.gaps, None), strict=True):
            places.append(self._x)
            self._x += _ROUTER_PX[0] + (_gap_px(gap) if gap else 0)
        right = self._fan(of.right, left=False)
        for place, after, gap in zip(places, places[1:], of.gaps, strict=False):
            self._gap(gap, place + _ROUTER_PX[0], after)
        for router, place in zip(of.routers, places, strict=True):
            self._router(router, place)
        below = max(left[1], right[1])
        for (x, _), lines, anchor in zip((left, right), notes, ("start", "end"), strict=True):
            self._canvas.lines(x, below + LINE_PX, lines, "soft", anchor)
        return self._canvas.svg(of.title, of.text, "network wide")

    def _router(self, name: str, x: float) -> None:
        wide, high = _ROUTER_PX
        self._canvas.box(x, -high / 2, wide, high, "router", 3)
        self._canvas.text(x + wide / 2, 5, name, "name", "middle")

    def _fan(self, column: Column, *, left: bool) -> tuple[float, float]:
        """Draw the hosts of a side; return its outer edge and its lower end."""
        box = max(width(host.name, bold=True) + 22 for host in column.hosts)
        box = max(box, widest([host.rtt for host in column.hosts]) + 18)
        out, back = (
            [getattr(host, way) for host in column.hosts] for way in ("out", "back")
        )
        run = max(_RUN_PX, widest(*out, *back) + 34)
        above, below = (max(len(lines) for lines in ways) for ways in (out, back))
        rows = _rows(column)
        fan = _FAN_PX if len(rows) > 1 else 0
        start = self._x
        self._x += box + run + fan
        edge, inner, router = (start, start + box, self._x) if left else (self._x, start + fan + run, start)
        bend = inner + run if left else inner - run
        high = max(_box_high(host) for host in column.hosts)
        pitch = max(high + _ROW_PX, (above + below) * LINE_PX + _ROW_PX + 4)
        y = -pitch * (len(rows) - 1) / 2
        top = y
        for row in rows:
            if row is None:
                self._hidden(column.hidden, y, (inner, bend, router), left=left)
            else:
                self._row(row, y, (start if left else inner, box), (inner, bend, router), left=left)
            y += pitch
        bottom = y - pitch + max(high / 2, 4 + below * LINE_PX + 2)
        middle = (edge + inner) / 2
        self._canvas.text(middle, top - high / 2 - 8, column.heading, "soft", "middle")
        lines = [f"to each: {', '.join(column.besides)}"] if column.besides else []
        self._canvas.lines(edge, bottom + LINE_PX, lines, "", "start" if left else "end")
        return edge, bottom + LINE_PX * len(lines)

    def _row(
        self, host: Host, y: float, box: tuple[float, float], along: tuple[float, float, float], *, left: bool
    ) -> None:
        inner, bend, router = along
        kind = "studied" if host.studied else ""
        self._canvas.line(inner, y, bend, y, kind)
        if bend != router:
            self._canvas.curve(bend, y, router, 0, upright=False, kind=kind)
        to_router = host.sends
        tip = router if to_router else inner
        way = "right" if left == to_router else "left"
        self._canvas.head(tip, 0 if to_router else y, way, kind)
        middle = (inner + bend) / 2
        self._canvas.lines_above(middle, y - 7, _pointed(host.out, "", " →"))
        self._canvas.lines(middle, y + 17, _pointed(host.back, "← ", ""), "soft", "middle")
        self._host(host, box[0], y, box[1])

    def _hidden(
        self, count: int, y: float, along: tuple[float, float, float], *, left: bool
    ) -> None:
        inner, bend, router = along
        end = bend - 20 if left else bend + 20
        self._canvas.curve(end, y, router, 0, upright=False, kind="hidden")
        self._canvas.text((inner + bend) / 2, y + 4, f"… {count} more", "soft", "middle")

    def _host(self, host: Host, x: float, y: float, wide: float) -> None:
        high = _box_high(host)
        self._canvas.box(x, y - high / 2, wide, high, "host", 9)
        self._canvas.text(x + wide / 2, y + (-2 if host.rtt else 5), host.name, "name", "middle")
        if host.rtt:
            self._canvas.text(x + wide / 2, y + 14, host.rtt, "", "middle")

    def _gap(self, gap: Gap, x1: float, x2: float) -> None:
        middle = (x1 + x2) / 2
        if gap.hidden:
            self._canvas.line(x1, 0, x2, 0, "hidden", dashed=True)
            self._canvas.text(middle, -8, f"… {gap.hidden} more", "soft", "middle")
            return
        for way, y, tip, tail in (("out", -_LANE_PX, x2, x1), ("back", _LANE_PX, x1, x2)):
            kind = "studied" if way in gap.studied else ""
            forward = 1 if tip > tail else -1
            self._canvas.line(tail, y, tip - 6 * forward, y, kind)
            self._canvas.head(tip, y, "right" if forward > 0 else "left", kind)
            if any("queue" in line for line in getattr(gap, way)):
                self._queue(tail + 4 * forward, y, forward, kind)
        self._canvas.lines_above(middle, -_LANE_PX - 12, gap.out)
        self._canvas.lines(middle, _LANE_PX + 21, gap.back, "" if "back" in gap.studied else "soft", "middle")
        if gap.sender:
            self._cross(gap.sender, middle, x1 - _ROUTER_PX[0] / 2, -1, len(gap.out))
        if gap.receiver:
            self._cross(gap.receiver, middle, x2 + _ROUTER_PX[0] / 2, 1, len(gap.back))

    def _queue(self, x: float, y: float, forward: int, kind: str) -> None:
        """Draw a queue at its interface: packets in a box."""
        wide, high = _QUEUE_PX
        left = x if forward > 0 else x - wide
        self._canvas.box(left, y - high / 2, wide, high, f"queue {kind}".strip(), 1)
        for number in range(1, 4):
            at = left + wide * number / 4
            self._canvas.line(at, y - high / 2, at, y + high / 2, kind and "studied thin")

    def _cross(self, host: Host, x: float, router: float, side: int, lines: int) -> None:
        """Draw a host above (side -1) or below (1) the routers; router: where its link goes upright."""
        y = side * (_CROSS_PX + LINE_PX * lines)
        wide = max(width(host.name, bold=True), width(host.rtt)) + 22
        edge = x - wide / 2 if router < x else x + wide / 2
        self._canvas.corner(edge, y, router, side * _ROUTER_PX[1] / 2, "")
        if host.sends:
            self._canvas.head(router, side * _ROUTER_PX[1] / 2, "down" if side < 0 else "up")
        else:
            self._canvas.head(edge, y, "right" if router < x else "left")
        self._host(host, x - wide / 2, y, wide)
        words = (*_pointed(host.out, "↓ ", ""), *_pointed(host.back, "↑ ", ""))
        beyond = y + side * (_box_high(host) / 2 + 6)
        if side < 0:
            self._canvas.lines_above(x, beyond, words, "soft")
        else:
            self._canvas.lines(x, beyond + 10, words, "soft", "middle")


def _rows(column: Column) -> list[Host | None]:
    """Return hosts from top to bottom, None where some are left out."""
    if not column.hidden:
        return list(column.hosts)
    return [*column.hosts[:-1], None, column.hosts[-1]]


def _pointed(lines: Sequence[str], before: str, after: str) -> list[str]:
    """Return lines, the last of them with a sign that says which way."""
    return [*lines[:-1], f"{before}{lines[-1]}{after}"] if lines else []


def _box_high(host: Host) -> int:
    return _HOST_HIGHER_PX if host.rtt else _HOST_HIGH_PX


def _gap_px(gap: Gap) -> float:
    if gap.hidden:
        return _GAP_PX
    least = _GAP_PX if not gap.sender and not gap.receiver else 140
    return max(least, widest(gap.out, gap.back) + 24)
