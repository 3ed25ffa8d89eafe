"""What a twin is made of: the records of points, and what all estimates of one path need of them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from lab.combination import Point
from lab.knobs import PATH_KNOBS
from lab.model.path import packet_bytes, payload_share
from lab.qdisc import ETHERNET_HEADER_BYTES
from lab.twin import estimates
from lab.twin import losses as losses_module

Row = Mapping[str, Any]

FIXED = (
    *("rate", "rtt", "route", "queue", "loss", "jitter", "jitter_dist", "mtu", "topology"),
    *("recipe", "leaf_limit", "offloads", "kernel"),
)
"""Knobs that a twin sets as the path was measured; in all others it is as its original."""

LINKS = (
    *("rate", "rtt", "route", "queue", "loss", "duplicate", "reorder", "jitter", "jitter_dist", "mtu"),
    *("offloads", "recipe", "leaf_limit", "topology", "pairs", "bottlenecks", "access", "rate_back"),
    *("qdisc", "target", "ecn", "ce_threshold", "rate_change", "rtt_change", "loss_change", "trace"),
)
"""Knobs of the network: points that differ in none of them went the same way."""

SAMPLES = (
    *("t_s", "flow", "end", "tcpi_rtt", "tcpi_min_rtt", "tcpi_ca_state", "tcpi_snd_mss", "tcpi_pmtu"),
    *("tcpi_snd_ssthresh", "tcpi_snd_cwnd"),
    *("tcpi_total_retrans", "tcpi_dsack_dups", "tcpi_data_segs_out", "tcpi_delivered", "tcpi_reord_seen"),
)
"""Columns of table samples that are needed."""

HOST = "host"
"""The address of a machine's own kernel, see `lab.kernels`."""
REMOTE = "remote"
"""The engine of real hosts, see `lab.engines`."""
CHANGES = ("rate_change", "rtt_change", "loss_change", "trace")


@dataclass(frozen=True)
class Record:
    """One point that is done.

    senders: samples of each sending end by flow, in time. checks: the path as it was
    measured of each pair before the load (`rtts_s`, `train`), see `lab.agent.pathcheck`.
    backwards: flows the other way. trains_bps: rates of the trains that were sent, of
    links as they are; slow_sender: whether the sender was hardly faster than they.
    """

    row: Row
    knobs: Mapping[str, str]
    senders: Mapping[int, Sequence[Row]]
    checks: Sequence[Mapping[str, Any]]
    backwards: frozenset[int] = frozenset()
    trains_bps: tuple[float, ...] = ()
    slow_sender: bool = False

    @property
    def point(self) -> Point:
        """The point as it was asked for; knobs that its run did not know have their defaults."""
        defaults = {name: knob.default for name, knob in PATH_KNOBS.items()}
        return Point({**defaults, **self.knobs}, str(self.row.get("engine")), int(self.row["seed"]))

    @property
    def forward(self) -> list[Sequence[Row]]:
        """The samples of each sender but for those of flows the other way."""
        return [rows for flow, rows in sorted(self.senders.items()) if flow not in self.backwards]


def least_rtt_s(rows: Sequence[Row]) -> float | None:
    """Return the least RTT that a sender saw, s; None where it saw none."""
    known = [int(row["tcpi_min_rtt"]) for row in rows if row.get("tcpi_min_rtt")]
    return min(known) / 1e6 if known else None


@dataclass(frozen=True)
class Seen:
    """The points of one path, and what all estimates need of them."""

    records: tuple[Record, ...]
    measured: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)

    @cached_property
    def point(self) -> Point:
        """The first of the points, which all went the same way."""
        return self.records[0].point

    @cached_property
    def several_pairs(self) -> bool:
        """Whether it is a network of more than one pair of hosts."""
        return self.point.knobs["topology"] not in ("path", "long_haul")

    @cached_property
    def rtts_s(self) -> list[float]:
        """All idle RTTs, s."""
        return [float(rtt) for record in self.records for check in record.checks for rtt in check["rtts_s"]]

    @cached_property
    def least_rtt_s(self) -> float | None:
        """The least RTT that any sender saw."""
        seen = [least_rtt_s(rows) for record in self.records for rows in record.forward]
        return min((one for one in seen if one is not None), default=None)

    @cached_property
    def mtu_bytes(self) -> int:
        """The path MTU that the senders found, else as it was set."""
        found = {int(rows[-1]["tcpi_pmtu"]) for rows in self._flows if rows[-1].get("tcpi_pmtu")}
        return found.pop() if len(found) == 1 else self.point.mtu_bytes

    @cached_property
    def packet_bytes(self) -> int:
        """A full packet as a shaper counts it."""
        return packet_bytes(self.mtu_bytes)

    @cached_property
    def resolved_s(self) -> float:
        """The spread of idle RTTs that hosts and clocks make: at least as late as timers were."""
        late_s = [float(one.row["timer_late_s"]) for one in self.records if one.row.get("timer_late_s")]
        return max(estimates.RESOLVED_S, statistics.median(late_s)) if late_s else estimates.RESOLVED_S

    @cached_property
    def jitter(self) -> estimates.Jitter | None:
        """The jitter, None where there is none or too little is known."""
        return None if self.several_pairs else estimates.jitter(self.rtts_s, self.resolved_s)

    @cached_property
    def base_s(self) -> float:
        """The base RTT that queues are counted from."""
        if self.jitter is not None:
            return self.jitter.rtt_s
        known = estimates.base_rtt_s(self.rtts_s)
        if known is not None and self.point.knobs["jitter"] != "0s":  # too few to say how far they spread
            known = statistics.median(self.rtts_s)
        if known is None:
            known = self.least_rtt_s
        return self.point.rtt_s if known is None else known

    @cached_property
    def _flows(self) -> list[Sequence[Row]]:
        return [rows for record in self.records for rows in record.forward if rows]

    @cached_property
    def reordered(self) -> bool:
        """Whether senders saw segments overtake others."""
        return losses_module.reordered(self._flows)

    @cached_property
    def throughput_bps(self) -> float | None:
        """The largest throughput of any point; of several bottlenecks in a row their sum says nothing."""
        if self.point.knobs["topology"] == "parking_lot":
            return None
        share = payload_share(self.mtu_bytes)
        seen = [
            estimates.largest_throughput_bps(*estimates.delivered(record.forward), share, self.base_s)
            for record in self.records
        ]
        return max((one for one in seen if one is not None), default=None)

    @cached_property
    def trains_bps(self) -> list[float]:
        """The rates of all trains."""
        found = [record.row.get("measured_rate_bps") for record in self.records]
        return [*(float(one) for one in found if one), *(r for one in self.records for r in one.trains_bps)]

    @cached_property
    def slopes_bps(self) -> list[float]:
        """The rates of trains by least squares, where their arrivals were disturbed."""
        trains = [check.get("train") for record in self.records for check in record.checks]
        size = self.point.mtu_bytes + ETHERNET_HEADER_BYTES
        slopes = [estimates.slope_rate(train, size) for train in trains if train]
        return [slope.rate_bps for slope in slopes if slope is not None]

    def losses(self, rate_bps: float | None) -> losses_module.Losses:
        """Return what was lost near the base RTT and near the largest; pairs with RTTs of their own each."""
        noise_s = self.jitter.iqr_s if self.jitter else 0.0
        flows = [
            (rows, (least_rtt_s(rows) or self.base_s) if self.several_pairs else self.base_s)
            for rows in self._flows
        ]
        return losses_module.losses(flows, rate_bps, self.packet_bytes, noise_s)

    @cached_property
    def steady(self) -> bool:
        """Whether the path stayed what it was."""
        return all(self.point.knobs[name] == PATH_KNOBS[name].default for name in CHANGES)
