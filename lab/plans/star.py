"""One server and many clients, each at an RTT of its own, behind the server's link."""

from __future__ import annotations

from typing import Any

from lab.plans.plan import Draft, Pair, Plan
from lab.plans.shared import Network


def star(*, pairs: int = 4, **params: Any) -> Plan:
    """Return the plan of one server and `pairs` clients; params: of `lab.plans.shared.Network`."""
    network, count, draft = Network(**params), int(pairs), Draft()
    fastest = [rate for rate in network.rates_bps(count) if rate]
    draft.add("snd", "r1", network.wire.access(max(fastest) if fastest else None), {})
    middle = network.bottleneck(draft, "r1", "r2")
    forward, backward = [], []
    numbered = zip(network.rtts_s(count), network.rates_bps(count), strict=True)
    for number, (rtt_s, rate_bps) in enumerate(numbered, 1):
        client = f"rcv{number}"
        way = {**(network.way or {}), "delay_s": rtt_s}
        draft.add("r2", client, way, network.wire.access(rate_bps))
        forward.append(Pair("snd", client, rtt_s, (middle.left.interface,)))
        backward.append(Pair(client, "snd", rtt_s, (middle.right.interface,)))
    clients = tuple(pair.receiver for pair in forward)
    return network.plan(
        "star",
        draft,
        hosts=("snd", *clients),
        routers=("r1", "r2"),
        pairs=forward,
        back_pairs=backward,
        columns=(("snd",), ("r1",), ("r2",), clients),
    )
