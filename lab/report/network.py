"""A network as an SVG drawing, from its plan: hosts, routers between them, words on the links.

Beside a link stands what shapes the packets that leave each of its ends: rate
and queue at the bottleneck, the rate of a host's own interface, and the delay,
which sits on a router behind the queue. Heads of arrows show where data go.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab.plans.plan import Plan
from lab.report import tall, wide
from lab.report.sketch import sketch

CSS = """
.network text { fill: var(--text); } .network text.soft { fill: var(--soft); }
.network rect { fill: var(--tint); stroke: var(--soft); } .network rect.host { stroke: var(--accent); }
.network .link { stroke: var(--soft); } .network .head { fill: var(--soft); }
.network .link.studied { stroke: var(--accent); } .network .head.studied { fill: var(--accent); }
.network rect.queue { fill: var(--paper); } .network rect.queue.studied { stroke: var(--accent); }
"""
"""Colours of drawings, from the report's own; without it a drawing has the colour of the text around it."""

_PAPER = '<rect class="paper" x="-5000" y="-5000" width="10000" height="10000" fill="none"/>'
_PAPER_CSS = ".network rect.paper { fill: var(--paper); stroke: none; }"


def svg(plan: Plan, *, narrow: bool = False, notes: tuple[Sequence[str], Sequence[str]] = ((), ())) -> str:
    """Return a plan as an SVG element that needs nothing else; narrow: from top to bottom, for a phone.

    notes: lines to write at the hosts of the first and of the last column.
    """
    if narrow:
        return tall.Tall(sketch(plan, tall.MOST_HOSTS, tall.FIRST_HOSTS)).svg(notes)
    return wide.Wide(sketch(plan, wide.MOST_HOSTS, wide.FIRST_HOSTS)).svg(notes)


def document(plan: Plan) -> str:
    """Return a plan as an SVG file with the report's colours in it, for a light and a dark screen."""
    palette = Path(__file__).with_name("page.css").read_text(encoding="utf-8").partition("* {")[0]
    head, end, rest = svg(plan).partition("</desc>")
    return f"{head}{end}\n<style>\n{palette.strip()}{CSS}{_PAPER_CSS}\n</style>\n{_PAPER}\n{rest}\n"
