"""Networks as plans: nodes, links, addresses and routes, before anything is built. One module a shape.

The Mininet classes in `topologies/` build these plans; sweeps, records and drawings read them. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lab.plans.dumbbell import dumbbell
from lab.plans.parking_lot import parking_lot
from lab.plans.path import path
from lab.plans.plan import Plan
from lab.plans.star import star
from lab.plans.two_way import two_way

SHAPES: Mapping[str, Callable[..., Plan]] = {
    "path": path,
    "dumbbell": dumbbell,
    "parking_lot": parking_lot,
    "star": star,
    "two_way": two_way,
}
"""Every shape by the name that the knob `topology` and Mininet's `--topo` have for it."""


def make(name: str, params: Mapping[str, Any]) -> Plan:
    """Return the plan of a shape."""
    return SHAPES[name](**params)
