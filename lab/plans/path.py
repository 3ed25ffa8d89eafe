"""One long path: sender, bottleneck router, WAN router, receiver."""

from __future__ import annotations

from typing import Any

from lab.plans.egress import Queue, Wire, queue_of
from lab.plans.plan import Draft, Egress, Pair, Plan


def path(  # noqa: PLR0913 (a path has that many properties, and each has a name)
    *,
    rate_bps: float | None = None,
    back_bps: float | None = None,
    access_bps: float | None = None,
    queue: Queue | str | None = None,
    back_queue: Queue | str | None = None,
    delay_out_s: float = 0.0,
    delay_back_s: float = 0.0,
    jitter_s: float = 0.0,
    jitter_distribution: str = "uniform",
    loss: Any = 0.0,
    loss_back: float = 0.0,
    duplicate: float = 0.0,
    reorder: float = 0.0,
    mtu_bytes: int = 1500,
    offloads: bool = False,
    recipe: str = "separate",
    leaf_limit_packets: int = 1000,
) -> Plan:
    """Return the plan. See `topologies/path.py` for what each parameter means."""
    wire = Wire(int(mtu_bytes), bool(offloads))
    queue = queue_of(queue)
    back_queue = queue_of(back_queue) or queue
    out = {
        "delay_s": delay_out_s,
        "jitter_s": jitter_s,
        "jitter_distribution": jitter_distribution,
        "loss": loss,
        "duplicate": duplicate,
        "reorder": reorder,
    }
    back = {"delay_s": delay_back_s, "loss": loss_back}
    egress: dict[str, Egress] = {
        "snd": wire.access(access_bps),
        "r1-snd": back,
        "r1-r2": wire.shaper(rate_bps, queue),
        "r2-r1": wire.shaper(back_bps or rate_bps, back_queue),
        "r2-rcv": out,
        "rcv": wire.access(access_bps),
    }
    if recipe == "leaf":
        leaf = {**wire.shaper(rate_bps), **out, "delay_s": delay_out_s + delay_back_s}
        leaf["limit_packets"] = leaf_limit_packets
        egress = {**{name: {} for name in egress}, "snd": leaf}
    draft = Draft()
    draft.add("snd", "r1", egress["snd"], egress["r1-snd"])
    middle = draft.add("r1", "r2", egress["r1-r2"], egress["r2-r1"])
    draft.add("r2", "rcv", egress["r2-rcv"], egress["rcv"])
    out_at = "snd-eth0" if recipe == "leaf" else middle.left.interface
    rtt_s = delay_out_s + delay_back_s
    return Plan(
        shape="path",
        hosts=("snd", "rcv"),
        routers=("r1", "r2"),
        links=tuple(draft.links),
        pairs=(Pair("snd", "rcv", rtt_s, (out_at,)),),
        back_pairs=() if recipe == "leaf" else (Pair("rcv", "snd", rtt_s, (middle.right.interface,)),),
        columns=(("snd",), ("r1",), ("r2",), ("rcv",)),
        mtu_bytes=wire.mtu_bytes,
        offloads=wire.offloads,
    )
