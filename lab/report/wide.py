"""A network drawn from left to right: senders, routers, receivers.

Words above a link are about what leaves to the right, words below it about what
leaves to the left. Hosts between the routers stand above them where they send
and below where they receive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lab.report.canvas import LINE_PX, Canvas, widest, width
from lab.report.sketch import Column, Gap, Host, Sketch, Words, pointed

MOST_HOSTS, FIRST_HOSTS = 8, 3
"""In a column; of more the first ones and the last are drawn."""

Notes = Sequence[str]

_ROUTER_PX = 44
_HOST_PX, _HOST_HIGHER_PX = 30, 42
_RUN_PX = 84
"""Least length of the level part of a host's link, where its words stand."""
_FAN_PX = 44
_GAP_PX = 96
_CROSS_PX = 76
"""From the routers to a host above or below them, and more for each line of words between."""
_LANE_PX = 6
_QUEUE_PX = (24, 12)
_LONG = 16
"""Characters of a line that is folded between bottlenecks in a row."""


class _Fan(NamedTuple):
    """Where the hosts of a side are: outer and inner edge of their boxes, end of the level links, router."""

    outer: float
    inner: float
    bend: float
    router: float

    @property
    def left(self) -> bool:
        """Whether it is the left side."""
        return self.outer < self.router


class Wide:
    """The drawing. The routers stand at y = 0."""

    def __init__(self, of: Sketch) -> None:
        self._of = of
        self._canvas = Canvas()
        self._pitch = max(_pitch(column) for column in (of.left, of.right))

    def svg(self, notes: tuple[Notes, Notes]) -> str:
        """Draw everything and return it."""
        of, (box, run, fan) = self._of, _sizes(self._of.left)
        left = _Fan(0, box, box + run, box + run + fan)
        routers = [left.router]
        for gap in of.gaps:
            routers.append(routers[-1] + _ROUTER_PX + _gap_px(gap))
        box, run, fan = _sizes(of.right)
        start = routers[-1] + _ROUTER_PX
        right = _Fan(start + fan + run + box, start + fan + run, start + fan, start)
        self._side(of.left, left, notes[0])
        for gap, x, after in zip(of.gaps, routers, routers[1:], strict=False):
            self._gap(gap, x + _ROUTER_PX, after)
        for name, x in zip(of.routers, routers, strict=True):
            self._canvas.box(x, -_ROUTER_PX / 2, _ROUTER_PX, _ROUTER_PX, "router", 3)
            self._canvas.text(x + _ROUTER_PX / 2, 5, name, "name", "middle")
        self._side(of.right, right, notes[1])
        return self._canvas.svg(of.title, of.text, "network wide")

    def _side(self, column: Column, at: _Fan, notes: Notes) -> None:
        """Draw the hosts of a side with what is said of them all."""
        y = -self._pitch * (len(column.places) - 1) / 2
        high = max(_box_high(host) for column in (self._of.left, self._of.right) for host in column.hosts)
        self._canvas.text((at.outer + at.inner) / 2, y - high / 2 - 8, column.heading, "soft", "middle")
        for host in column.places:
            if host is None:
                self._hidden(column.hidden, y, at)
            else:
                self._row(host, y, at)
            y += self._pitch
        below = y - self._pitch + max(high / 2, LINE_PX * max(len(host.back) for host in column.hosts) + 6)
        anchor = "start" if at.left else "end"
        self._canvas.lines(at.outer, below + LINE_PX, column.said, "", anchor)
        self._canvas.lines(at.outer, below + LINE_PX * (1 + len(column.said)), notes, "soft", anchor)

    def _row(self, host: Host, y: float, at: _Fan) -> None:
        kind = "studied" if host.studied else ""
        self._canvas.line(at.inner, y, at.bend, y, kind)
        if at.bend != at.router:
            self._canvas.curve(at.bend, y, at.router, 0, upright=False, kind=kind)
        way = "right" if at.left == host.sends else "left"
        tip = (at.router, 0.0) if host.sends else (at.inner, y)
        self._canvas.head(*tip, way, kind)
        middle = (at.inner + at.bend) / 2
        self._canvas.lines_above(middle, y - 7, pointed(host.out, after=" →"))
        self._canvas.lines(middle, y + 17, pointed(host.back, "← "), "soft", "middle")
        self._host(host, min(at.outer, at.inner), y, abs(at.inner - at.outer))

    def _hidden(self, count: int, y: float, at: _Fan) -> None:
        end = at.bend - 20 if at.left else at.bend + 20
        self._canvas.curve(end, y, at.router, 0, upright=False)
        beside = end - 6 if at.left else end + 6
        self._canvas.text(beside, y + 4, f"… {count} more", "soft", "end" if at.left else "start")

    def _host(self, host: Host, x: float, y: float, wide: float) -> None:
        high = _box_high(host)
        self._canvas.box(x, y - high / 2, wide, high, "host", 9)
        self._canvas.text(x + wide / 2, y + (-2 if host.rtt else 5), host.name, "name", "middle")
        if host.rtt:
            self._canvas.text(x + wide / 2, y + 14, host.rtt, "", "middle")

    def _gap(self, gap: Gap, x1: float, x2: float) -> None:
        """Draw the link between two routers: a lane each way, and the hosts that cross it alone."""
        middle = (x1 + x2) / 2
        if gap.hidden:
            self._canvas.line(x1, 0, x2, 0, dashed=True)
            self._canvas.text(middle, -8, f"… {gap.hidden} more", "soft", "middle")
            if gap.hosts:
                self._canvas.text(middle, 18, f"{gap.hosts} hosts", "soft", "middle")
            return
        out, back = _gap_words(gap)
        self._lane(gap, "out", -_LANE_PX, x1, x2)
        self._lane(gap, "back", _LANE_PX, x2, x1)
        self._canvas.lines_above(middle, -_LANE_PX - 12, out)
        kind = "" if "back" in gap.studied else "soft"
        self._canvas.lines(middle, _LANE_PX + 21, back, kind, "middle")
        if gap.sender:
            self._cross(gap.sender, middle, x1 - _ROUTER_PX / 2, -1, len(out))
        if gap.receiver:
            self._cross(gap.receiver, middle, x2 + _ROUTER_PX / 2, 1, len(back))

    def _lane(self, gap: Gap, way: str, y: float, tail: float, tip: float) -> None:
        """Draw one way of a link, with the queue at the interface that it leaves."""
        kind = "studied" if way in gap.studied else ""
        sign = 1 if tip > tail else -1
        self._canvas.line(tail, y, tip - 6 * sign, y, kind)
        self._canvas.head(tip, y, "right" if sign > 0 else "left", kind)
        if not gap.queued(way):
            return
        wide, high = _QUEUE_PX
        left = min(tail + 4 * sign, tail + (4 + wide) * sign)
        self._canvas.box(left, y - high / 2, wide, high, f"queue {kind}", 1)
        for number in range(1, 4):
            x = left + wide * number / 4
            self._canvas.line(x, y - high / 2, x, y + high / 2, kind)

    def _cross(self, host: Host, x: float, router: float, side: int, lines: int) -> None:
        """Draw a host above (side -1) or below (1) the routers; router: the middle of its own."""
        y, edge = side * (_CROSS_PX + LINE_PX * lines), side * _ROUTER_PX / 2
        wide = _box_wide([host])
        end = x - wide / 2 if router < x else x + wide / 2
        self._canvas.corner(end, y, router, edge)
        if host.sends:
            self._canvas.head(router, edge, "down" if side < 0 else "up")
        else:
            self._canvas.head(end, y, "right" if router < x else "left")
        self._host(host, x - wide / 2, y, wide)
        beyond = y + side * (_box_high(host) / 2 + 6)
        if side < 0:
            self._canvas.lines_above(x, beyond, host.upright, "soft")
        else:
            self._canvas.lines(x, beyond + 10, host.upright, "soft", "middle")


def _sizes(column: Column) -> tuple[float, float, float]:
    """Return how wide the boxes of a side are, the level links, and the fan to the router."""
    run = widest(*(words for host in column.hosts for words in (host.out, host.back))) + 18
    return _box_wide(column.hosts), max(_RUN_PX, run), _FAN_PX if len(column.places) > 1 else 0


def _pitch(column: Column) -> float:
    """Return how far apart hosts are from top to bottom."""
    words = max(len(host.out) for host in column.hosts) + max(len(host.back) for host in column.hosts)
    return max(max(_box_high(host) for host in column.hosts) + 14, words * LINE_PX + 18)


def _box_wide(hosts: Sequence[Host]) -> float:
    names = max(width(host.name, bold=True) for host in hosts)
    return max(names, widest([host.rtt for host in hosts])) + 20


def _box_high(host: Host) -> int:
    return _HOST_HIGHER_PX if host.rtt else _HOST_PX


def _gap_px(gap: Gap) -> float:
    return max(_GAP_PX, widest(*_gap_words(gap)) + 14)


def _gap_words(gap: Gap) -> tuple[Words, Words]:
    """Return the words above and below; of bottlenecks in a row folded, for there are many."""
    if not gap.crossed:
        return gap.out, gap.back
    out, back = (
        tuple(part for line in words for part in (line.split(", ") if len(line) > _LONG else [line]))
        for words in (gap.out, gap.back)
    )
    return out, back
