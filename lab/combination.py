"""One combination of knob values: what runs on its own and reproduces on its own."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab import memory, queues
from lab.changes import Change
from lab.knobs import LARGEST_QUEUE_BYTES, PATH_KNOBS, QueueSize
from lab.losses import Loss
from lab.qdisc import ETHERNET_HEADER_BYTES, GSO_MAX_BYTES, burst_bytes

VIRTUAL = "virtual"
"""The engine in whose time computing takes none."""

REALTIME = "realtime"
"""The engine whose hosts, links and queues are all on one machine, on the real clock."""

REMOTE = "remote"
"""The engine of real hosts, whose links may be nobody's to read."""

IDENTITY_VERSION = 1
AUTO_QUEUE_PACKETS = 32
AUTO_QUEUE_BURSTS = 4
AUTO_AQM_PACKETS = 1000
"""An AQM keeps its queue short by itself; its limit must not. codel and pie have this one of their own."""


@dataclass(frozen=True)
class Point:
    """One combination: canonical knob values, engine and seed."""

    knobs: Mapping[str, str]
    engine: str
    seed: int

    def __hash__(self) -> int:
        return hash((frozenset(self.knobs.items()), self.engine, self.seed))

    @property
    def id(self) -> str:
        """Ten hexadecimal digits, stable over runs and versions of the scenario."""
        told = {
            name: text
            for name, text in sorted(self.knobs.items())
            if not (PATH_KNOBS[name].later and text == PATH_KNOBS[name].default)
        }
        identity = json.dumps([IDENTITY_VERSION, told, self.engine, self.seed])
        return hashlib.sha256(identity.encode()).hexdigest()[:10]

    @property
    def on_real_clock(self) -> bool:
        """Whether it runs where things take time."""
        return self.engine != VIRTUAL

    def value(self, name: str) -> object:
        """Return a knob's value as a number or text, see `lab.knobs`."""
        return PATH_KNOBS[name].value(self.knobs[name])

    @property
    def rate_bps(self) -> float:
        """Rate of the bottleneck, bit/s."""
        return float(PATH_KNOBS["rate"].value(self.knobs["rate"]))

    @property
    def rtts_s(self) -> tuple[float, ...]:
        """Base RTTs as configured, s: pairs of hosts have them in turn."""
        found: tuple[float, ...] = PATH_KNOBS["rtt"].value(self.knobs["rtt"])
        return found

    @property
    def rtt_s(self) -> float:
        """Base RTT, s; of several their mean, by which buffers are sized (Appenzeller et al., 2004)."""
        return math.fsum(self.rtts_s) / len(self.rtts_s)

    @property
    def controls(self) -> tuple[str, ...]:
        """Congestion controls: flows have them in turn."""
        found: tuple[str, ...] = PATH_KNOBS["cc"].value(self.knobs["cc"])
        return found

    @property
    def loss(self) -> Loss:
        """Loss on the way to the receivers."""
        found: Loss = PATH_KNOBS["loss"].value(self.knobs["loss"])
        return found

    @property
    def duration_s(self) -> float:
        """Length of the load, s."""
        return float(PATH_KNOBS["duration"].value(self.knobs["duration"]))

    @property
    def mtu_bytes(self) -> int:
        """MTU of every link, bytes."""
        return int(self.knobs["mtu"])

    @property
    def offloads(self) -> bool:
        """Whether segmentation offloads are on."""
        return self.knobs["offloads"] == "on"

    @property
    def queue(self) -> dict[str, Any]:
        """The bottleneck's queue as `lab.queues` builds it."""
        size: QueueSize = PATH_KNOBS["queue"].value(self.knobs["queue"])
        kind = self.knobs["qdisc"]
        if kind == "fifo":
            kind = "pfifo" if size.unit == "packets" else "bfifo"
        in_bytes = queues.LIMIT_UNIT[kind] == "bytes"
        if size.unit == "packets":
            limit = int(size.amount) * (self.packet_bytes if in_bytes else 1)
        else:
            limit = self._queue_bytes(size, kind)
            if not in_bytes:
                limit = -(-limit // self.packet_bytes)
            if kind == "sfq" and size.unit == "auto":
                limit = min(limit, queues.SFQ_MOST_LIMIT)
        if kind in ("pfifo", "bfifo"):
            return {"kind": kind, "limit": limit}
        target, threshold = (PATH_KNOBS[n].value(self.knobs[n]) for n in ("target", "ce_threshold"))
        return {
            "kind": kind,
            "limit": limit,
            "packet_bytes": self.packet_bytes,
            "ecn": self.knobs["ecn"] == "on",
            "target_s": target if kind in queues.TARGETED else None,
            "ce_threshold_s": threshold if kind in queues.STEPPED else None,
        }

    def _queue_bytes(self, size: QueueSize, kind: str) -> int:
        limit = size.bfifo_bytes(self.rate_bps, self.rtt_s)
        if size.unit == "auto":
            burst = burst_bytes(self.rate_bps, self.mtu_bytes, self.offloads)
            limit = max(limit, AUTO_QUEUE_PACKETS * self.packet_bytes, AUTO_QUEUE_BURSTS * burst)
            if kind in queues.TARGETED:
                limit = max(limit, AUTO_AQM_PACKETS * self.packet_bytes)
            limit = min(limit, LARGEST_QUEUE_BYTES)
        return limit

    @property
    def packet_bytes(self) -> int:
        """The largest packet that a queue meets, bytes, as it counts them."""
        return (GSO_MAX_BYTES if self.offloads else self.mtu_bytes) + ETHERNET_HEADER_BYTES

    @property
    def packet_on_wire_bytes(self) -> int:
        """A full packet as links count it, bytes: offloads or not, it is what leaves the last of them."""
        return self.mtu_bytes + ETHERNET_HEADER_BYTES

    def size(self, name: str) -> int | None:
        """A knob that is a number of bytes; None where it leaves the kernel's own."""
        value = PATH_KNOBS[name].value(self.knobs[name])
        return None if value is None else int(value)

    def changes(self, name: str) -> tuple[Change, ...]:
        """A knob of changes over time; none where nothing changes."""
        found: tuple[Change, ...] | None = PATH_KNOBS[name].value(self.knobs[name])
        return found or ()

    @property
    def sizes_each(self) -> tuple[int, ...] | None:
        """Bytes of the flows, in turn; None where they last until the end."""
        found: tuple[int, ...] | None = PATH_KNOBS["bytes"].value(self.knobs["bytes"])
        return found

    def triple(self, which: str) -> memory.Triple:
        """tcp_rmem or tcp_wmem of this point."""
        return memory.parse(self.knobs[which], which)
