"""Elements of an SVG picture, and how far they reach: text is escaped, nothing refers to anything.

Colours are `currentColor` until a style sheet says otherwise by class, so that
a drawing reads on any page. No markers: an element of a hidden picture cannot
be referred to in every browser.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

FONT_PX = 13
LINE_PX = 16
FONTS = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', sans-serif"

_HEAD_PX = 8
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_WIDE, _NARROW = frozenset("mwMW%@…→←"), frozenset("ijltfr.,:;'|()[] -/↓↑")


def width(text: str, size_px: float = FONT_PX, *, bold: bool = False) -> float:
    """Return how wide a text is at most, px: as in DejaVu Sans, the widest of the fonts above."""
    ems = sum(0.98 if sign in _WIDE else 0.42 if sign in _NARROW else 0.65 for sign in text)
    return ems * size_px * (1.1 if bold else 1)


def widest(*groups: Sequence[str]) -> float:
    """Return the width of the widest of all these lines, 0 for none, px."""
    return max((width(line) for group in groups for line in group), default=0.0)


class Canvas:
    """A picture in the making. x grows to the right, y downwards, px."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._left = self._top = float("inf")
        self._right = self._bottom = float("-inf")

    def text(self, x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> None:
        """Write one line; y is its baseline. kind: CSS classes; "name" is bold."""
        wide = width(words, bold="name" in kind)
        left = x - {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor] * wide
        self._reach(left, y - FONT_PX, left + wide, y + 4)
        weight = ' font-weight="600"' if "name" in kind else ""
        self._add("text", f'x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}"{weight}', kind, _safe(words))

    def lines(self, x: float, y: float, lines: Sequence[str], kind: str = "", anchor: str = "start") -> None:
        """Write lines downwards, the first with its baseline at y."""
        for number, line in enumerate(lines):
            self.text(x, y + number * LINE_PX, line, kind, anchor)

    def lines_above(
        self, x: float, y: float, lines: Sequence[str], kind: str = "", anchor: str = "middle"
    ) -> None:
        """Write lines whose last has its baseline at y."""
        self.lines(x, y - LINE_PX * (len(lines) - 1), lines, kind, anchor)

    def box(self, x: float, y: float, wide: float, high: float, kind: str, corner: float) -> None:
        """Draw a box with its left upper corner at (x, y)."""
        self._reach(x - 1, y - 1, x + wide + 1, y + high + 1)
        place = f'x="{_n(x)}" y="{_n(y)}" width="{_n(wide)}" height="{_n(high)}" rx="{_n(corner)}"'
        self._add("rect", f'{place} fill="none" stroke="currentColor" stroke-width="1.5"', kind)

    def path(
        self, path: str, kind: str, reach: Sequence[tuple[float, float]], *, dashed: bool = False
    ) -> None:
        """Draw a line along an SVG path; reach: points that hold its extent."""
        for x, y in reach:
            self._reach(x - 2, y - 2, x + 2, y + 2)
        dashes = ' stroke-dasharray="2 5"' if dashed else ""
        heavy = "3" if "studied" in kind else "1.5"
        self._add(
            "path",
            f'd="{path}" fill="none" stroke="currentColor" stroke-width="{heavy}"{dashes}',
            f"link {kind}",
        )

    def line(
        self, x1: float, y1: float, x2: float, y2: float, kind: str = "", *, dashed: bool = False
    ) -> None:
        """Draw a straight line."""
        ends = ((x1, y1), (x2, y2))
        self.path(f"M{_n(x1)} {_n(y1)}L{_n(x2)} {_n(y2)}", kind, ends, dashed=dashed)

    def curve(self, x1: float, y1: float, x2: float, y2: float, *, upright: bool, kind: str = "") -> None:
        """Draw a line that leaves and arrives level, or upright."""
        x, y = (x1 + x2) / 2, (y1 + y2) / 2
        bends = ((x1, y), (x2, y)) if upright else ((x, y1), (x, y2))
        (ax, ay), (bx, by) = bends
        path = f"M{_n(x1)} {_n(y1)}C{_n(ax)} {_n(ay)} {_n(bx)} {_n(by)} {_n(x2)} {_n(y2)}"
        self.path(path, kind, ((x1, y1), (x2, y2)))

    def corner(self, x1: float, y1: float, x2: float, y2: float, kind: str = "") -> None:
        """Draw a line that leaves level and arrives upright."""
        path = f"M{_n(x1)} {_n(y1)}Q{_n(x2)} {_n(y1)} {_n(x2)} {_n(y2)}"
        self.path(path, kind, ((x1, y1), (x2, y2)))

    def head(self, x: float, y: float, way: str, kind: str = "") -> None:
        """Draw an arrow's head with its tip at (x, y). way: right, left, down or up."""
        dx, dy = {"right": (1, 0), "left": (-1, 0), "down": (0, 1), "up": (0, -1)}[way]
        back_x, back_y = x - _HEAD_PX * dx, y - _HEAD_PX * dy
        side_x, side_y = _HEAD_PX / 2 * dy, _HEAD_PX / 2 * dx
        corners = ((x, y), (back_x + side_x, back_y + side_y), (back_x - side_x, back_y - side_y))
        for corner_x, corner_y in corners:
            self._reach(corner_x, corner_y, corner_x, corner_y)
        path = "L".join(f"{_n(corner_x)} {_n(corner_y)}" for corner_x, corner_y in corners)
        self._add("path", f'd="M{path}z" fill="currentColor"', f"head {kind}")

    def svg(self, title: str, text: str, kind: str, margin: float = 6) -> str:
        """Return the picture, just large enough for all that is in it."""
        left, top = self._left - margin, self._top - margin
        wide, high = self._right + margin - left, self._bottom + margin - top
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{kind}" role="img" width="{_n(wide)}"'
            f' height="{_n(high)}" viewBox="{_n(left)} {_n(top)} {_n(wide)} {_n(high)}"'
            f' font-family="{FONTS}" font-size="{FONT_PX}" fill="currentColor">'
            f"<title>{_safe(title)}</title><desc>{_safe(text)}</desc>{''.join(self._parts)}</svg>"
        )

    def _add(self, tag: str, attributes: str, kind: str, inside: str = "") -> None:
        named = f' class="{kind.strip()}"' if kind.strip() else ""
        self._parts.append(
            f"<{tag} {attributes}{named}>{inside}</{tag}>" if inside else f"<{tag} {attributes}{named}/>"
        )

    def _reach(self, left: float, top: float, right: float, bottom: float) -> None:
        self._left, self._top = min(self._left, left), min(self._top, top)
        self._right, self._bottom = max(self._right, right), max(self._bottom, bottom)


def _safe(text: str) -> str:
    """Return text as XML and HTML have it; what is no character of XML is replaced."""
    return escape(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text))


def _n(value: float) -> str:
    """Return a coordinate: at most one digit after the point."""
    return f"{value:.1f}".removesuffix(".0")
