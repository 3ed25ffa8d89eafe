"""A network drawn from top to bottom, for a narrow screen: senders, routers, receivers.

Words at the right of a link are about what leaves downwards, words at its left
about what leaves upwards. Hosts between the routers stand at the left; all
words of the links are then at the right.
"""

from __future__ import annotations

from collections.abc import Sequence

from lab.report.canvas import LINE_PX, Canvas, widest, width
from lab.report.sketch import Column, Gap, Host, Sketch, pointed

MOST_HOSTS, FIRST_HOSTS = 4, 2
"""Side by side; of more the first ones and the last are drawn."""

Notes = Sequence[str]

_ROUTER_PX = (52, 30)
_HOST_PX, _HOST_HIGHER_PX = 30, 42
_FAN_PX = 44
_LANE_PX = 6
_QUEUE_PX = (12, 24)
_WORDS_PX = 20
"""From the middle of a link to its words."""
_CROSS_PX = 30
"""From the edge of a router to the middle of a host at its left."""


class Tall:
    """The drawing. The routers stand at x = 0, the first with its upper edge at y = 0."""

    def __init__(self, of: Sketch) -> None:
        self._of = of
        self._canvas = Canvas()
        crossing = [host for gap in of.gaps for host in (gap.sender, gap.receiver) if host]
        self._aside = widest(*(host.upright for host in crossing)) + 24

    def svg(self, notes: tuple[Notes, Notes]) -> str:
        """Draw everything and return it."""
        of, (wide, high) = self._of, _ROUTER_PX
        self._end(of.left, 0, -1, notes[0])
        y = 0.0
        for name, gap in zip(of.routers, (*of.gaps, None), strict=True):
            self._canvas.box(-wide / 2, y, wide, high, "router", 3)
            self._canvas.text(0, y + high / 2 + 5, name, "name", "middle")
            y += high
            if gap:
                below = y + _gap_px(gap)
                self._gap(gap, y, below)
                y = below
        self._end(of.right, y, 1, notes[1])
        return self._canvas.svg(of.title, of.text, "network tall")

    def _end(self, column: Column, router: float, side: int, notes: Notes) -> None:
        """Draw the hosts above (side -1) or below (1) the routers, and beyond them their words."""
        high = max(_box_high(host) for host in column.hosts)
        near = router + side * _FAN_PX
        far = near + side * high
        told = [host.upright for host in column.hosts]
        box = max(_box_wide(host) for host in column.hosts)
        slot = max(box, widest(*told)) + 8
        x = -slot * (len(column.places) - 1) / 2
        for host in column.places:
            if host is None:
                self._canvas.curve(x, near, 0, router, upright=True)
                self._beyond(x, near, side, (f"… {column.hidden}", "more"))
            else:
                self._host_below(host, x, (router, near, far), side, box)
            x += slot
        beyond = far + side * LINE_PX * max(len(words) for words in told)
        said = [*column.said, *notes]
        lines = [column.heading, *said] if side < 0 else [*said, column.heading]
        self._beyond(0, beyond + side * 6, side, lines)

    def _host_below(
        self, host: Host, x: float, at: tuple[float, float, float], side: int, wide: float
    ) -> None:
        router, near, far = at
        kind = "studied" if host.studied else ""
        if x:
            self._canvas.curve(x, near, 0, router, upright=True, kind=kind)
        else:
            self._canvas.line(0, near, 0, router, kind)
        tip = (0.0, router) if host.sends else (x, near)
        self._canvas.head(*tip, "down" if (side < 0) == host.sends else "up", kind)
        self._host(host, x, (near + far) / 2, (wide, abs(far - near)))
        self._beyond(x, far, side, host.upright)

    def _beyond(self, x: float, y: float, side: int, lines: Sequence[str]) -> None:
        """Write lines above or below a height."""
        if side < 0:
            self._canvas.lines_above(x, y - 7, lines, "soft")
        else:
            self._canvas.lines(x, y + 17, lines, "soft", "middle")

    def _host(self, host: Host, x: float, y: float, size: tuple[float, float]) -> None:
        wide, high = size
        self._canvas.box(x - wide / 2, y - high / 2, wide, high, "host", 9)
        self._canvas.text(x, y + (-2 if host.rtt else 5), host.name, "name", "middle")
        if host.rtt:
            self._canvas.text(x, y + 14, host.rtt, "", "middle")

    def _gap(self, gap: Gap, y1: float, y2: float) -> None:
        """Draw the link between two routers: a lane each way, and the hosts that cross it alone."""
        middle = (y1 + y2) / 2
        if gap.hidden:
            self._canvas.line(0, y1, 0, y2, dashed=True)
            more = f"… {gap.hidden} more" + (f", {gap.hosts} hosts" if gap.hosts else "")
            self._canvas.text(_WORDS_PX, middle + 4, more, "soft")
            return
        self._lane(gap, "out", _LANE_PX, y1, y2)
        self._lane(gap, "back", -_LANE_PX, y2, y1)
        out, back = pointed(gap.out, "↓ "), pointed(gap.back, "↑ ")
        kind = "" if "back" in gap.studied else "soft"
        if gap.crossed:
            top = middle - LINE_PX * (len(out) + len(back)) / 2 + 8
            self._canvas.lines(_WORDS_PX, top, out)
            self._canvas.lines(_WORDS_PX, top + LINE_PX * len(out) + 8, back, kind)
        else:
            for x, words, look, anchor in (
                (_WORDS_PX, out, "", "start"),
                (-_WORDS_PX, back, kind, "end"),
            ):
                self._canvas.lines(x, middle - LINE_PX * (len(words) - 1) / 2 + 5, words, look, anchor)
        if gap.sender:
            self._cross(gap.sender, y1, 1)
        if gap.receiver:
            self._cross(gap.receiver, y2, -1)

    def _lane(self, gap: Gap, way: str, x: float, tail: float, tip: float) -> None:
        """Draw one way of a link, with the queue at the interface that it leaves."""
        kind = "studied" if way in gap.studied else ""
        sign = 1 if tip > tail else -1
        self._canvas.line(x, tail, x, tip - 6 * sign, kind)
        self._canvas.head(x, tip, "down" if sign > 0 else "up", kind)
        if not gap.queued(way):
            return
        wide, high = _QUEUE_PX
        top = min(tail + 4 * sign, tail + (4 + high) * sign)
        self._canvas.box(x - wide / 2, top, wide, high, f"queue {kind}", 1)
        for number in range(1, 4):
            y = top + high * number / 4
            self._canvas.line(x - wide / 2, y, x + wide / 2, y, kind)

    def _cross(self, host: Host, router: float, side: int) -> None:
        """Draw a host at the left, below (side 1) or above (-1) the edge of its router."""
        aside = self._aside
        y, wide, high = router + side * _CROSS_PX, _box_wide(host), _box_high(host)
        at = -_ROUTER_PX[0] / 2 + 6
        self._canvas.corner(-aside, y, at, router)
        if host.sends:
            self._canvas.head(at, router, "up" if side > 0 else "down")
        else:
            self._canvas.head(-aside, y, "left")
        self._host(host, -aside - wide / 2, y, (wide, high))
        if side > 0:
            self._canvas.lines(-aside + 8, y + 17, host.upright, "soft")
        else:
            self._canvas.lines_above(-aside + 8, y - 8, host.upright, "soft", "start")


def _box_wide(host: Host) -> float:
    return max(width(host.name, bold=True), widest([host.rtt])) + 16


def _box_high(host: Host) -> int:
    return _HOST_HIGHER_PX if host.rtt else _HOST_PX


def _gap_px(gap: Gap) -> float:
    if gap.hidden:
        return 54
    if not gap.crossed:
        return LINE_PX * max(len(gap.out), len(gap.back)) + 60
    hosts = [host for host in (gap.sender, gap.receiver) if host]
    room = 2 * _CROSS_PX + LINE_PX * sum(len(host.upright) for host in hosts) + 34
    return max(room, LINE_PX * (len(gap.out) + len(gap.back)) + 48)
