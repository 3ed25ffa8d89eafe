"""Figures as PNG pictures: plotly draws them in a chromium without a window, from files alone."""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from lab.errors import PreconditionError, StoreError
from lab.report import style
from lab.report.drawn import Drawn
from lab.report.points import PointPart

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
WIDTH_PX = 1000
SCALE = 2
TITLE_PX, LINE_PX = 30, 17
"""Above a figure: its title, and each line of the words under it."""
_LINE_CHARACTERS = 150


def find_browser() -> str:
    """Return the chromium to use: BROWSER_PATH, or the first on the PATH. Raises PreconditionError."""
    told = os.environ.get("BROWSER_PATH")
    for name in (told,) if told else BROWSERS:
        path = shutil.which(name)
        if path:
            return path
    raise PreconditionError(
        f"BROWSER_PATH is {told!r}, and no program is there; name a chromium or unset it"
        if told
        else "pictures are drawn by chromium, which is not installed; get it by `apt-get install chromium`"
    )


def write(drawn: Sequence[Drawn], points: Sequence[PointPart], directory: Path, browser: str) -> list[Path]:
    """Write the main figures and every point over time; return the paths in that order."""
    titled = [(slug(one.slug), one.title, one.restricted, one.figure) for one in drawn]
    titled += [(f"point-{slug(part.id)}", part.label, part.caption, part.figure) for part in points]
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as refused:
        raise StoreError(
            f"{directory}: cannot be made ({refused.strerror}); name another folder"
        ) from refused
    jobs = []
    for name, title, words, figure in titled:
        whole = _titled(figure, title, words)
        jobs.append({"fig": whole, "path": str(directory / f"{name}.png"), "opts": _options(whole)})
    if jobs:
        _draw(jobs, browser)
    return [Path(job["path"]) for job in jobs]


def slug(text: str) -> str:
    """Return a text as a file name: small letters, digits, hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60] or "figure"


def _titled(figure: go.Figure, title: str, words: str) -> go.Figure:
    copy = go.Figure(figure)
    lines = textwrap.wrap(words, _LINE_CHARACTERS)
    above = TITLE_PX + LINE_PX * len(lines)
    copy.update_layout(
        title={
            "text": style.plain(title),
            "font": {"size": 17},
            "subtitle": {"text": "<br>".join(style.plain(line) for line in lines), "font": {"size": 12}},
            "x": 0.01,
            "xanchor": "left",
            "y": 1,
            "yanchor": "top",
            "pad": {"t": 14},
        },
        margin={"t": figure.layout.margin.t + above},
        height=figure.layout.height + above,
        paper_bgcolor="white",
        plot_bgcolor="white",
    )
    return copy


def _options(figure: go.Figure) -> dict[str, Any]:
    return {"format": "png", "width": WIDTH_PX, "height": figure.layout.height, "scale": SCALE}


def _draw(jobs: list[dict[str, Any]], browser: str) -> None:
    # slow to import, and a page needs no pictures
    import kaleido  # noqa: PLC0415
    from choreographer.errors import (  # noqa: PLC0415
        BrowserClosedError,
        BrowserDepsError,
        BrowserFailedError,
    )

    try:
        faults = kaleido.write_fig_from_object_sync(jobs, kopts={"path": browser, "mathjax": False})
    except (BrowserClosedError, BrowserDepsError, BrowserFailedError, OSError) as broken:
        raise PreconditionError(
            f"{browser} could not be started to draw pictures; see what `{browser} --version` says"
        ) from broken
    for fault in faults:
        if isinstance(fault, OSError):
            raise StoreError(
                f"a picture cannot be written ({fault}); make room or name another folder"
            ) from fault
        raise PreconditionError(
            f"{browser} could not draw {len(faults)} of {len(jobs)} pictures, the first because of: {fault}"
        ) from fault
