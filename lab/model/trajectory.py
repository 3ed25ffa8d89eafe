"""How a transfer goes, round trip by round trip: slow start, HyStart, growth, losses, limits.

A fluid model of n equal flows on one bottleneck. It gives what closed forms
cannot: the ramp, transfers too short to settle, queues too short for a
congestion control, and chance losses met once or a hundred times.
"""

from __future__ import annotations

import random

from lab.model import paced
from lab.model.controls import Control
from lab.model.cwnd import Window
from lab.model.route import Route, Step

_CHANCES = 12
"""Transfers that are drawn where losses fall by chance."""


def steps(route: Route, control: Control, name: str) -> list[list[Step]]:
    """Return the course of the transfer, once, or where chance has a say several times."""
    if control.rate_based:
        return [paced.course(route)]
    chances = _CHANCES if route.loss > 0 else 1
    return [Window(route, control, name, random.Random(seed)).run() for seed in range(chances)]
