"""Writes a run as one HTML page that needs nothing else, and its figures as pictures.

The page loads nothing: plotly.js, styles, script and data are inside, and its
content security policy forbids the browser to fetch. What comes from a run is
text to the template, never HTML.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
from plotly.offline import get_plotlyjs

from lab.report import competition, embed, figures, limits, network, pictures, rfc6349, stored, tables, whole
from lab.report.points import PointPart, parts
from lab.report.stored import DONE, FAILED, MISSING, Stored
from lab.store import REPORT, RunFolder


def write(folder: RunFolder) -> Path:
    """Write RUN/report.html, all of it or none, and return its path. Raises StoreError."""
    run = stored.read(folder)
    final = folder.path / REPORT
    whole.write(final, render(run), "make room or give the folder back its rights")
    return final


def write_pictures(folder: RunFolder, directory: Path) -> list[Path]:
    """Write every figure as a PNG picture into `directory` and return the paths.

    Raises PreconditionError where no chromium is found, StoreError where the pictures cannot be written.
    """
    browser = pictures.find_browser()
    run = stored.read(folder)
    chosen, _ = parts(run)
    return pictures.write(figures.draw(run), chosen, directory, browser)


def render(run: Stored) -> str:
    """Return the page."""
    drawn = figures.draw(run)
    chosen, left_out = parts(run)
    published, sources = tables.published(run)
    rows = [entry.row for entry in run.done if entry.row]
    plotly, script = get_plotlyjs(), _own("page.js")
    verdicts = [verdict["status"] for verdict in run.manifest.get("expectations", ())]
    return (
        _environment()
        .get_template("page.html")
        .render(
            manifest=run.manifest,
            why=[part for part in str(run.manifest.get("why", "")).split("\n\n") if part.strip()],
            counts={
                "all": len(run.entries),
                "done": run.count(DONE),
                "failed": run.count(FAILED),
                "missing": run.count(MISSING),
                "met": verdicts.count("met"),
                "unmet": verdicts.count("failed"),
                "untried": verdicts.count("not tried"),
            },
            warnings=tables.warnings(run),
            figures=drawn,
            judged=[*competition.repeat_sentences(rows), *competition.harm_sentences(rows)],
            published=published,
            sources=sources,
            chosen=chosen[0] if chosen else None,
            parts=chosen,
            embedded={part.id for part in chosen},
            left_out=left_out,
            real=rfc6349.section(run),
            built=not rfc6349.as_is(run),
            table=tables.points(run),
            same=", ".join(f"{name}={text}" for name, text in run.same.items()),
            kernels=tables.kernels(run),
            digests=[(entry, entry.row["digest"]) for entry in run.done if entry.row],
            css=f"{_own('page.css')}{limits.css()}{network.CSS}",
            figures_json=embed.data([_figure(one.figure, one.narrow) for one in drawn]),
            points_json=embed.data({part.id: _point(part) for part in chosen}),
            plotly=plotly,
            script=script,
            script_hashes=" ".join(embed.source_hash(text) for text in (plotly, script)),
        )
    )


def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("lab.report", "."),
        autoescape=True,
        undefined=jinja2.ChainableUndefined,  # a manifest of an older wanlab lacks a key or two
        trim_blocks=True,
    )


def _own(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _figure(figure: Any, narrow: Mapping[str, Any]) -> dict[str, Any]:
    return {**json.loads(figure.to_json()), "narrow": dict(narrow)}


def _point(part: PointPart) -> dict[str, Any]:
    return {
        **_figure(part.figure, part.narrow),
        "caption": part.caption,
        "commands": part.commands,
        "facts": part.facts,
    }
