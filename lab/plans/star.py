"""One server and many clients, each at an RTT of its own, behind the server's link."""

from __future__ import annotations

from typing import Any

from lab.plans.egress import Queue, Wire, each, queue_of
from lab.plans.plan import Draft, Pair, Plan


def star(  # noqa: PLR0913 (a network has that many properties, and each has a name)
    *,
    pairs: int = 4,
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
    """Return the plan. See `topologies/star.py` for what each parameter means."""
    wire = Wire(int(mtu_bytes), bool(offloads))
    count = int(pairs)
    rtts, rates = each(rtt_s, count), each(access_bps, count)
    queue = queue_of(queue)
    fastest = [rate for rate in rates if rate]
    draft = Draft()
    draft.add("snd", "r1", wire.access(max(fastest) if fastest else None), {})
    middle = draft.add(
        "r1",
        "r2",
        wire.shaper(rate_bps, queue),
        wire.shaper(back_bps or rate_bps, queue_of(back_queue) or queue),
    )
    forward, backward = [], []
    for number, (rtt, rate) in enumerate(zip(rtts, rates, strict=True), 1):
        client = f"rcv{number}"
        draft.add("r2", client, {**(way or {}), "delay_s": rtt or 0.0}, wire.access(rate))
        forward.append(Pair("snd", client, rtt or 0.0, (middle.left.interface,)))
        backward.append(Pair(client, "snd", rtt or 0.0, (middle.right.interface,)))
    clients = tuple(pair.receiver for pair in forward)
    return Plan(
        shape="star",
        hosts=("snd", *clients),
        routers=("r1", "r2"),
        links=tuple(draft.links),
        pairs=tuple(forward),
        back_pairs=tuple(backward),
        columns=(("snd",), ("r1",), ("r2",), clients),
        mtu_bytes=wire.mtu_bytes,
        offloads=wire.offloads,
    )
