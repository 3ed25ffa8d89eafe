"""Where maps over two knobs stand: abreast on a large screen, one below the other on a small one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from lab.report import axes, style
from lab.report.stored import Entry

MOST_WRITTEN, MOST_ABREAST_WRITTEN = 100, 12
"""Cells of one map, and of one of its rows, that have their value written in them; more are too small."""
MOST_ABREAST = 3
FOOT_PX = 62
_CELL_PX, _LEAST_PX, _MOST_PX = 44, 260, 560
_HEAD_PX, _TOP_PX = 26, 34
_GAP = 0.03
"""Between maps, of the width of the plot."""

Place = tuple[str, str]
"""A cell by the values of the two knobs."""


@dataclass
class Grid:
    """The two knobs with their values in order, and how many maps of them there are."""

    x: str
    rows: str
    xs: Sequence[str]
    ys: Sequence[str]
    maps: int = 1

    @property
    def map_px(self) -> int:
        """Height of one map."""
        return max(_LEAST_PX, min(_MOST_PX, _CELL_PX * len(self.ys)))

    def figure(self, names: Sequence[str]) -> go.Figure:
        """Return the empty figure with an axis pair for each map."""
        self.maps = len(names)
        layout = style.layout(hovermode="closest", annotations=[])
        layout["height"], places = self._places(min(self.maps, MOST_ABREAST))
        layout["margin"] |= {"t": _TOP_PX, "r": 24}
        for number, (across, up) in enumerate(places):
            suffix = "" if number == 0 else str(number + 1)
            layout[f"xaxis{suffix}"] = self._axis(self.x, self.xs, across, anchor=f"y{suffix}")
            layout[f"yaxis{suffix}"] = self._axis(self.rows, self.ys, up, anchor=f"x{suffix}")
            if number % MOST_ABREAST:
                layout[f"yaxis{suffix}"] |= {"title": None, "showticklabels": False}
            if names[number]:
                layout["annotations"].append(
                    {
                        "text": f"<b>{style.plain(names[number])}</b>",
                        "xref": f"x{suffix} domain",
                        "yref": f"y{suffix} domain",
                        "x": 0,
                        "y": 1,
                        "yshift": 4,
                        "xanchor": "left",
                        "yanchor": "bottom",
                        "showarrow": False,
                    }
                )
        return go.Figure(layout=layout)

    def narrow(self, changes: dict[str, Any]) -> dict[str, Any]:
        """Return the changes for a small screen."""
        if self.maps > 1:
            height, places = self._places(1)
            legend_px = changes["margin.b"] - FOOT_PX
            for number, (across, up) in enumerate(places):
                suffix = "" if number == 0 else str(number + 1)
                changes |= {f"xaxis{suffix}.domain": across, f"yaxis{suffix}.domain": up}
                changes[f"yaxis{suffix}.showticklabels"] = True
            bar = {"len": 0.9 / self.maps, "y": 1, "yanchor": "top"}
            changes |= {f"coloraxis.colorbar.{name}": value for name, value in bar.items()}
            changes["height"] = height + legend_px
        return {**changes, "margin.l": 76}

    def _places(self, abreast: int) -> tuple[int, list[tuple[list[float], list[float]]]]:
        """Return the height, and the (horizontal, vertical) domains of the maps."""
        lines = -(-self.maps // abreast)
        head, foot = _HEAD_PX if self.maps > 1 else 0, FOOT_PX
        inner = lines * (self.map_px + head) + (lines - 1) * foot
        places = []
        for number in range(self.maps):
            line, place = divmod(number, abreast)
            wide = (1 - _GAP * (abreast - 1)) / abreast
            left = place * (wide + _GAP)
            top = 1 - (line * (self.map_px + head + foot) + head) / inner
            up = [round(max(0.0, top - self.map_px / inner), 5), round(top, 5)]
            places.append(([round(left, 5), round(min(1.0, left + wide), 5)], up))
        return inner + _TOP_PX + FOOT_PX, places

    def _axis(self, knob: str, texts: Sequence[str], domain: list[float], anchor: str) -> dict[str, Any]:
        plain = [style.plain(text) for text in texts]
        return style.axis(
            title={"text": style.plain(axes.title(knob)), "standoff": 6},
            tickmode="array",
            tickvals=list(range(len(texts))),
            ticktext=plain,
            range=[-0.5, len(texts) - 0.5],
            domain=domain,
            anchor=anchor or ("y" if knob == self.x else "x"),
            showgrid=False,
            automargin=knob == self.rows,
        )


def cells_of(entries: Sequence[Entry], grid: Grid) -> dict[Place, list[Entry]]:
    """Return the points of each cell that has any."""
    found: dict[Place, list[Entry]] = {}
    for entry in entries:
        found.setdefault((entry.knobs[grid.x], entry.knobs[grid.rows]), []).append(entry)
    return found


def trace(
    grid: Grid,
    z: Mapping[Place, float],
    written: Mapping[Place, str],
    told: Mapping[Place, str],
    points: Mapping[Place, str],
) -> go.Heatmap:
    """Return a map. written: what stands in cells, where there is room; told: what pointing at them says."""

    def table(at: Mapping[Place, Any], missing: Any = "") -> list[list[Any]]:
        return [[at.get((x, row), missing) for x in grid.xs] for row in grid.ys]

    room = len(grid.xs) * len(grid.ys) <= MOST_WRITTEN and len(grid.xs) <= MOST_ABREAST_WRITTEN
    return go.Heatmap(
        x=list(range(len(grid.xs))),
        y=list(range(len(grid.ys))),
        z=table(z, None),
        text=table(written) if room else None,
        texttemplate="%{text}" if room else None,
        # plotly's own size takes what says the colour for text as well
        textfont={"size": 12 if len(grid.xs) <= 8 else 10},
        hovertext=table(told),
        hovertemplate="%{hovertext}<extra></extra>",
        hoverongaps=False,
        customdata=table(points),
        xgap=1.5,
        ygap=1.5,
    )
