"""Writes the advice as one HTML page that needs nothing else: figures, numbers and files inside."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import resources

import jinja2
from plotly.offline import get_plotlyjs

from lab.advise import summary
from lab.advise.ask import Ask
from lab.advise.choose import Choice
from lab.advise.find import Finding, goodput_bps
from lab.report import embed
from lab.report.drawn import Drawn
from lab.units import human_rate, human_size


def render(
    ask: Ask,
    findings: Sequence[Finding],
    choice: Choice,
    drawn: Sequence[Drawn],
    files: Mapping[str, str],
    words: Mapping[str, str],
) -> str:
    """Return the page. files: {name: text}; words: `command`, `verify` and `run`, as a reader types them."""
    plotly, script = get_plotlyjs(), _own("lab.advise", "page.js")
    return (
        _environment()
        .get_template("page.html")
        .render(
            question=f"How big must the socket buffers be to fill {ask.words}?",
            answer=f"Set the largest tcp_rmem of the receiver to {human_size(choice.sizes['rmem'])}"
            f" and the largest tcp_wmem of the sender to {human_size(choice.sizes['wmem'])}.",
            sentences=summary.sentences(ask, findings, choice),
            warnings=summary.warnings(ask, findings, choice),
            table=summary.table(ask, findings, choice),
            points=_points(findings),
            figures=drawn,
            files=files,
            css=_own("lab.report", "page.css"),
            plotly=plotly,
            script=script,
            script_hashes=" ".join(embed.source_hash(text) for text in (plotly, script)),
            figures_json=embed.data(
                [{**json.loads(one.figure.to_json()), "narrow": dict(one.narrow)} for one in drawn]
            ),
            **words,
        )
    )


def _points(findings: Sequence[Finding]) -> list[dict[str, str]]:
    return [
        {
            "sysctl": f"tcp_{knee.which}",
            "case": finding.case.name,
            "size": human_size(size),
            "goodput": human_rate(goodput_bps(row)),
            "predicted": human_rate(row["predicted_goodput_bps"]),
            "point": row["point"],
        }
        for finding in findings
        for knee in finding.knees.values()
        for size, row in sorted(knee.rows.items())
    ]


def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("lab.advise", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )


def _own(package: str, name: str) -> str:
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")
