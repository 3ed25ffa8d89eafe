"""Traffic both ways over one bottleneck, from hosts of its own each way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lab.plans.dumbbell import dumbbell
from lab.plans.plan import Plan


def two_way(*, pairs: int = 1, back_pairs: int = 1, **params: Any) -> Plan:
    """Return the plan of a dumbbell whose last `back_pairs` pairs send from right to left.

    params: of `lab.plans.shared.Network`.
    """
    whole = dumbbell(pairs=int(pairs) + int(back_pairs), **params)
    return replace(
        whole, shape="two_way", pairs=whole.pairs[: int(pairs)], back_pairs=whole.back_pairs[int(pairs) :]
    )
