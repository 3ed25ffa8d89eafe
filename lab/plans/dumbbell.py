"""Pairs of hosts that share one bottleneck, each with an RTT and an access rate of its own."""

from __future__ import annotations

from typing import Any

from lab.plans.egress import Queue, Wire, each, queue_of
from lab.plans.plan import Draft, Pair, Plan


def dumbbell(  # noqa: PLR0913 (a network has that many properties, and each has a name)
    *,
    pairs: int = 2,
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
    """Return the plan. See `topologies/dumbbell.py` for what each parameter means."""
    wire = Wire(int(mtu_bytes), bool(offloads))
    count = int(pairs)
    rtts, rates = each(rtt_s, count), each(access_bps, count)
    queue = queue_of(queue)
    draft = Draft()
    middle = draft.add(
        "r1",
        "r2",
        wire.shaper(rate_bps, queue),
        wire.shaper(back_bps or rate_bps, queue_of(back_queue) or queue),
    )
    forward, backward = [], []
    for number, (rtt, rate) in enumerate(zip(rtts, rates, strict=True), 1):
        out_s, back_s = halves(rtt or 0.0)
        sender, receiver = f"snd{number}", f"rcv{number}"
        draft.add(sender, "r1", wire.access(rate), {"delay_s": back_s})
        draft.add("r2", receiver, {**(way or {}), "delay_s": out_s}, wire.access(rate))
        forward.append(Pair(sender, receiver, rtt or 0.0, (middle.left.interface,)))
        backward.append(Pair(receiver, sender, rtt or 0.0, (middle.right.interface,)))
    senders, receivers = (tuple(pair.sender for pair in ways) for ways in (forward, backward))
    return Plan(
        shape="dumbbell",
        hosts=(*senders, *receivers),
        routers=("r1", "r2"),
        links=tuple(draft.links),
        pairs=tuple(forward),
        back_pairs=tuple(backward),
        columns=(senders, ("r1",), ("r2",), receivers),
        mtu_bytes=wire.mtu_bytes,
        offloads=wire.offloads,
    )


def halves(rtt_s: float) -> tuple[float, float]:
    """Return the delays out and back of an RTT, in whole microseconds as tc sets them, s."""
    rtt_us = round(rtt_s * 1e6)
    return (rtt_us - rtt_us // 2) / 1e6, rtt_us // 2 / 1e6
