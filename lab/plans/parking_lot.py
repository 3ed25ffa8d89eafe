"""Bottlenecks in a row: one pair crosses them all, and each has a pair of its own across it."""

from __future__ import annotations

import itertools
from typing import Any

from lab.plans.dumbbell import halves
from lab.plans.egress import Queue, Wire, each, queue_of
from lab.plans.plan import Draft, Pair, Plan


def parking_lot(  # noqa: PLR0913 (a network has that many properties, and each has a name)
    *,
    bottlenecks: int = 3,
    rate_bps: float | None = None,
    back_bps: float | None = None,
    access_bps: Any = None,
    queue: Queue | str | None = None,
    back_queue: Queue | str | None = None,
    rtt_s: Any = 0.0,
    way: dict[str, Any] | None = None,
    mtu_bytes: int = 1500,
    offloads: bool = False,
) -> Plan:
    """Return the plan. See `topologies/parking_lot.py` for what each parameter means."""
    wire = Wire(int(mtu_bytes), bool(offloads))
    count = int(bottlenecks)
    rtts, rates = each(rtt_s, count + 1), each(access_bps, count + 1)
    queue = queue_of(queue)
    draft = Draft()
    routers = [f"r{number}" for number in range(1, count + 2)]
    middles = [
        draft.add(
            left,
            right,
            wire.shaper(rate_bps, queue),
            wire.shaper(back_bps or rate_bps, queue_of(back_queue) or queue),
        )
        for left, right in itertools.pairwise(routers)
    ]
    spans = [(0, count), *((number, number + 1) for number in range(count))]
    forward, backward = [], []
    for number, ((first, last), rtt, rate) in enumerate(zip(spans, rtts, rates, strict=True)):
        out_s, back_s = halves(rtt or 0.0)
        sender, receiver = (f"snd{number or ''}", f"rcv{number or ''}")
        draft.add(sender, routers[first], wire.access(rate), {"delay_s": back_s})
        draft.add(routers[last], receiver, {**(way or {}), "delay_s": out_s}, wire.access(rate))
        crossed = middles[first:last]
        forward.append(Pair(sender, receiver, rtt or 0.0, tuple(link.left.interface for link in crossed)))
        backward.append(
            Pair(receiver, sender, rtt or 0.0, tuple(link.right.interface for link in reversed(crossed)))
        )
    columns: list[tuple[str, ...]] = [("snd",)]
    for number, router in enumerate(routers):
        columns.append((router,))
        if number < count:
            columns.append((f"snd{number + 1}", f"rcv{number + 1}"))
    columns.append(("rcv",))
    return Plan(
        shape="parking_lot",
        hosts=tuple(name for pair in forward for name in (pair.sender, pair.receiver)),
        routers=tuple(routers),
        links=tuple(draft.links),
        pairs=tuple(forward),
        back_pairs=tuple(backward),
        columns=tuple(columns),
        mtu_bytes=wire.mtu_bytes,
        offloads=wire.offloads,
    )
