"""Bottlenecks in a row: one pair crosses them all, and each has a pair of its own across it."""

from __future__ import annotations

import itertools
from typing import Any

from lab.plans.egress import halves
from lab.plans.plan import Draft, Pair, Plan
from lab.plans.shared import Network


def parking_lot(*, bottlenecks: int = 3, **params: Any) -> Plan:
    """Return the plan of `bottlenecks` links in a row; params: of `lab.plans.shared.Network`.

    Pair 0 crosses all of them, pair i the i-th.
    """
    network, count, draft = Network(**params), int(bottlenecks), Draft()
    routers = tuple(f"r{number}" for number in range(1, count + 2))
    middles = [network.bottleneck(draft, left, right) for left, right in itertools.pairwise(routers)]
    spans = [(0, count), *((number, number + 1) for number in range(count))]
    forward, backward = [], []
    numbered = zip(spans, network.rtts_s(count + 1), network.rates_bps(count + 1), strict=True)
    for number, ((first, last), rtt_s, rate_bps) in enumerate(numbered):
        out_s, back_s = halves(rtt_s)
        sender, receiver, own = f"snd{number or ''}", f"rcv{number or ''}", network.wire.access(rate_bps)
        draft.add(sender, routers[first], own, {"delay_s": back_s})
        draft.add(routers[last], receiver, {**(network.way or {}), "delay_s": out_s}, own)
        crossed = middles[first:last]
        forward.append(Pair(sender, receiver, rtt_s, tuple(link.left.interface for link in crossed)))
        backward.append(
            Pair(receiver, sender, rtt_s, tuple(link.right.interface for link in reversed(crossed)))
        )
    columns: list[tuple[str, ...]] = [("snd",)]
    for number, router in enumerate(routers):
        columns.append((router,))
        if number < count:
            columns.append((f"snd{number + 1}", f"rcv{number + 1}"))
    columns.append(("rcv",))
    return network.plan(
        "parking_lot",
        draft,
        hosts=tuple(name for pair in forward for name in (pair.sender, pair.receiver)),
        routers=routers,
        pairs=forward,
        back_pairs=backward,
        columns=columns,
    )
