"""What every network of several pairs shares: links alike, hosts with an RTT and an access rate each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lab.plans.egress import Queue, Wire, each, queue_of
from lab.plans.plan import Draft, Link, Pair, Plan

PerPair = float | str | Sequence[float] | None
"""A number for all pairs, or one for each in turn; see `lab.plans.egress.each`."""


@dataclass(frozen=True)
class Network:
    """The parameters of a shape but for its size.

    rate_bps: bit/s of a bottleneck; None leaves it unshaped. back_bps: of the way
    back, as on the way out unless given. access_bps: bit/s of the hosts' own
    interfaces. queue: {"kind", "limit", ...} before a bottleneck, see
    `lab.queues`; `bfifo:250000` on Mininet's command line; back_queue: of the way
    back. rtt_s: base RTTs. way: what else the way to the receivers does:
    `jitter_s`, `loss`, `duplicate`, `reorder`. mtu_bytes, offloads: of every link.
    """

    rate_bps: float | None = None
    back_bps: float | None = None
    access_bps: PerPair = None
    queue: Queue | str | None = None
    back_queue: Queue | str | None = None
    rtt_s: PerPair = 0.0
    way: Mapping[str, Any] | None = field(default_factory=dict)
    mtu_bytes: int = 1500
    offloads: bool = False

    @property
    def wire(self) -> Wire:
        """What its links share."""
        return Wire(int(self.mtu_bytes), bool(self.offloads))

    def rtts_s(self, count: int) -> list[float]:
        """Return the base RTT of each pair, s."""
        return [rtt or 0.0 for rtt in each(self.rtt_s, count)]

    def rates_bps(self, count: int) -> list[float | None]:
        """Return the access rate of each pair, bit/s."""
        return each(self.access_bps, count)

    def bottleneck(self, draft: Draft, left: str, right: str) -> Link:
        """Join two routers by a bottleneck; data go from left to right."""
        queue = queue_of(self.queue)
        back = self.wire.shaper(self.back_bps or self.rate_bps, queue_of(self.back_queue) or queue)
        return draft.add(left, right, self.wire.shaper(self.rate_bps, queue), back)

    def plan(
        self,
        shape: str,
        draft: Draft,
        *,
        hosts: tuple[str, ...],
        routers: tuple[str, ...],
        pairs: Sequence[Pair],
        back_pairs: Sequence[Pair],
        columns: Sequence[tuple[str, ...]],
    ) -> Plan:
        """Return the plan of what was drafted."""
        return Plan(
            shape=shape,
            hosts=hosts,
            routers=routers,
            links=tuple(draft.links),
            pairs=tuple(pairs),
            back_pairs=tuple(back_pairs),
            columns=tuple(columns),
            mtu_bytes=self.wire.mtu_bytes,
            offloads=self.wire.offloads,
        )
