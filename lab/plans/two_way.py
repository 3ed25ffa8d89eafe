"""Traffic both ways over one bottleneck, from hosts of its own each way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lab.plans.dumbbell import dumbbell
from lab.plans.plan import Plan


def two_way(*, pairs: int = 1, back_pairs: int = 1, **network: Any) -> Plan:
    """Return the plan. See `topologies/two_way.py` for what each parameter means.

    A dumbbell whose last pairs are there for the data that go from right to left.
    """
    whole = dumbbell(pairs=int(pairs) + int(back_pairs), **network)
    return replace(
        whole, shape="two_way", pairs=whole.pairs[: int(pairs)], back_pairs=whole.back_pairs[int(pairs) :]
    )
