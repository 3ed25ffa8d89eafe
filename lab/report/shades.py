"""Numbers as colours, and the ink that reads on them.

A share around a half or a ratio around 1 diverges from white, blue to
vermillion, which stay apart for colour-blind readers; the rest is viridis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plotly.colors import get_colorscale, sample_colorscale

from lab.report import columns, style
from lab.report.columns import Scale

_DIVERGING = [
    [0.0, style.VERMILLION],
    [0.25, "#EDAF85"],
    [0.5, "#F7F7F7"],
    [0.75, "#7FB8D8"],
    [1.0, style.BLUE],
]
_SEQUENTIAL = get_colorscale("Viridis")


@dataclass(frozen=True)
class Shades:
    """How numbers become colours. low, high: the ends, as z has them; log: z is a logarithm."""

    scale: list[list[Any]]
    low: float
    high: float
    unit: str
    log: bool = False

    def z(self, value: float) -> float:
        """Return where a number stands."""
        return math.log10(value) if self.log else value

    def at(self, value: float) -> str:
        """Return the colour of a number."""
        share = (self.z(value) - self.low) / (self.high - self.low)
        (colour,) = sample_colorscale(self.scale, [min(1.0, max(0.0, share))])
        return str(colour)

    def axis(self) -> dict[str, Any]:
        """Return plotly's axis of colours."""
        bar: dict[str, Any] = {"title": {"text": style.plain(self.unit)}}
        bar |= {"thickness": 14, "outlinewidth": 0, "len": 0.9}
        if self.log:
            ticks = columns.log_ticks(10**self.low, 10**self.high)
            bar |= {**ticks, "tickvals": [math.log10(tick) for tick in ticks["tickvals"]]}
        return {"colorscale": self.scale, "cmin": self.low, "cmax": self.high, "colorbar": bar}


def shades(scale: Scale, values: Sequence[float]) -> Shades:
    """Return the colours of a column's values, given in its axis's unit."""
    low, high = min(values), max(values)
    if scale.ratio and low > 0:
        reach = max(abs(math.log10(low)), abs(math.log10(high))) or 1.0
        return Shades(_DIVERGING, -reach, reach, "", log=True)
    if scale.middle is not None:
        reach = max(abs(low - scale.middle), abs(high - scale.middle)) or 1.0
        if scale.ends:
            reach = max(end - scale.middle for end in scale.ends)
        return Shades(_DIVERGING, scale.middle - reach, scale.middle + reach, scale.unit)
    if columns.wide(values):
        return Shades(_SEQUENTIAL, math.log10(low), math.log10(high), scale.unit, log=True)
    low, high = scale.ends or ((0.0, high) if 0 <= low < 0.5 * high else (low, high))
    return Shades(_SEQUENTIAL, low, high if high > low else low + 1.0, scale.unit)


def inked(text: str, ink: str) -> str:
    """Return a text in a colour, as plotly writes it."""
    return f'<span style="color:{ink}">{text}</span>'


def ink(colour: str) -> str:
    """Return black or white, whichever reads better on a colour."""
    red, green, blue = (
        part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in _rgb(colour)
    )
    light = 0.2126 * red + 0.7152 * green + 0.0722 * blue  # relative luminance, WCAG 2
    return "#111111" if light > 0.19 else "#ffffff"


def _rgb(colour: str) -> tuple[float, ...]:
    if colour.startswith("#"):
        return tuple(float(int(colour[place : place + 2], 16)) for place in (1, 3, 5))
    return tuple(float(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(","))


def mixed_with_white(colour: str, white: float) -> str:
    """Return a colour with so much white in it."""
    parts = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{round(part + (255 - part) * white):02x}" for part in parts)
