"""Pairs of hosts that share one bottleneck, each with an RTT and an access rate of its own."""

from __future__ import annotations

from typing import Any

from lab.plans.egress import halves
from lab.plans.plan import Draft, Pair, Plan
from lab.plans.shared import Network


def dumbbell(*, pairs: int = 2, **params: Any) -> Plan:
    """Return the plan of `pairs` senders and as many receivers; params: of `lab.plans.shared.Network`."""
    network, count, draft = Network(**params), int(pairs), Draft()
    middle = network.bottleneck(draft, "r1", "r2")
    forward, backward = [], []
    numbered = zip(network.rtts_s(count), network.rates_bps(count), strict=True)
    for number, (rtt_s, rate_bps) in enumerate(numbered, 1):
        out_s, back_s = halves(rtt_s)
        sender, receiver, own = f"snd{number}", f"rcv{number}", network.wire.access(rate_bps)
        draft.add(sender, "r1", own, {"delay_s": back_s})
        draft.add("r2", receiver, {**(network.way or {}), "delay_s": out_s}, own)
        forward.append(Pair(sender, receiver, rtt_s, (middle.left.interface,)))
        backward.append(Pair(receiver, sender, rtt_s, (middle.right.interface,)))
    senders, receivers = (tuple(pair.sender for pair in ways) for ways in (forward, backward))
    return network.plan(
        "dumbbell",
        draft,
        hosts=(*senders, *receivers),
        routers=("r1", "r2"),
        pairs=forward,
        back_pairs=backward,
        columns=(senders, ("r1",), ("r2",), receivers),
    )
