"""From a scenario to its points: every combination of the swept values, each once.

A point is what runs on its own and reproduces on its own. Its identity is the
digest of what decides its result, so a point keeps its name in any run.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lab import memory
from lab.errors import SpecError, UnitError
from lab.knobs import LARGEST_QUEUE_BYTES, PATH_KNOBS, QueueSize
from lab.qdisc import ETHERNET_HEADER_BYTES, GSO_MAX_BYTES, burst_bytes
from lab.scenario import Scenario, unknown_knob

IDENTITY_VERSION = 1
MOST_POINTS = 100_000
MOST_FILLED_BYTES = 2**31 - 2**20
"""Of a send buffer: sk_wmem_queued is an int, and the last segments overshoot the buffer."""
AUTO_QUEUE_PACKETS = 32
AUTO_QUEUE_BURSTS = 4


@dataclass(frozen=True)
class Point:
    """One combination: canonical knob values, engine and seed."""

    knobs: Mapping[str, str]
    engine: str
    seed: int

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

    def value(self, name: str) -> object:
        """Return a knob's value as a number or text, see `lab.knobs`."""
        return PATH_KNOBS[name].value(self.knobs[name])

    @property
    def rate_bps(self) -> float:
        """Rate of the bottleneck, bit/s."""
        return float(PATH_KNOBS["rate"].value(self.knobs["rate"]))

    @property
    def rtt_s(self) -> float:
        """Base RTT as configured, s."""
        return float(PATH_KNOBS["rtt"].value(self.knobs["rtt"]))

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
    def queue(self) -> dict[str, int | str]:
        """The bottleneck's queue as `lab.qdisc` builds it: kind and limit."""
        size: QueueSize = PATH_KNOBS["queue"].value(self.knobs["queue"])
        if size.unit == "packets":
            return {"kind": "pfifo", "limit": int(size.amount)}
        limit = size.bfifo_bytes(self.rate_bps, self.rtt_s)
        if size.unit == "auto":
            burst = burst_bytes(self.rate_bps, self.mtu_bytes, self.offloads)
            limit = max(limit, AUTO_QUEUE_PACKETS * self.packet_bytes, AUTO_QUEUE_BURSTS * burst)
            limit = min(limit, LARGEST_QUEUE_BYTES)
        return {"kind": "bfifo", "limit": limit}

    @property
    def packet_bytes(self) -> int:
        """The largest packet that a queue meets, bytes, as it counts them."""
        return (GSO_MAX_BYTES if self.offloads else self.mtu_bytes) + ETHERNET_HEADER_BYTES

    def size(self, name: str) -> int | None:
        """A knob that is a number of bytes; None where it leaves the kernel's own."""
        value = PATH_KNOBS[name].value(self.knobs[name])
        return None if value is None else int(value)

    def triple(self, which: str) -> memory.Triple:
        """tcp_rmem or tcp_wmem of this point."""
        return memory.parse(self.knobs[which], which)


def points(
    scenario: Scenario,
    overrides: Mapping[str, Sequence[str]],
    *,
    engine: str,
    seeds: Sequence[int],
) -> list[Point]:
    """Return the points of a scenario in order, each combination once.

    overrides: knob to one or more texts; they replace the scenario's own values
    of that knob in every block. Raises SpecError with all faults.
    """
    faults: list[str] = []
    chosen: dict[str, list[str]] = {}
    for name, texts in overrides.items():
        knob = scenario.knobs.get(name)
        if knob is None:
            faults.append(unknown_knob(name, scenario))
            continue
        for text in texts:
            try:
                canonical = knob.canonical(text)
            except UnitError as fault:
                faults.append(str(fault))
                continue
            if canonical not in chosen.setdefault(name, []):
                chosen[name].append(canonical)
    if faults:
        raise SpecError(faults)

    found: dict[Point, None] = {}
    for block in scenario.sweep:
        settings: dict[str, list[str]] = {name: [knob.default] for name, knob in scenario.knobs.items()}
        for name, given in {**scenario.defaults, **block}.items():
            wanted: list[str | int] = list(given) if isinstance(given, list | tuple) else [str(given)]
            spelled = [scenario.knobs[name].canonical(str(text)) for text in wanted]
            settings[name] = list(dict.fromkeys(spelled))
        settings.update(chosen)
        count = len(seeds) * math.prod(len(values) for values in settings.values())
        if len(found) + count > MOST_POINTS:
            raise SpecError([f"sweep: over {MOST_POINTS} points in one run; sweep fewer values"])
        for combination in itertools.product(*settings.values()):
            knobs = dict(zip(settings, combination, strict=True))
            for seed in seeds:
                found[Point(_Frozen(knobs), engine, seed)] = None
    every = list(found)
    faults = list(dict.fromkeys(fault for point in every for fault in check_point(point)))
    if faults:
        raise SpecError(faults)
    return every


class _Frozen(dict[str, str]):
    """A dictionary that can be a key: it is never changed after it was made."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


def check_point(point: Point) -> list[str]:
    """Return what is wrong with a combination whose single values are right."""
    faults = []
    packet, queue = point.packet_bytes, point.queue
    if queue["kind"] == "bfifo" and int(queue["limit"]) < packet:
        faults.append(
            f"queue: {point.knobs['queue']!r} is {queue['limit']} bytes at rate={point.knobs['rate']}"
            f" rtt={point.knobs['rtt']}, under one packet of {packet} bytes"
            f" (mtu={point.mtu_bytes}, offloads={point.knobs['offloads']}); take a larger queue"
        )
    elif int(queue["limit"]) > LARGEST_QUEUE_BYTES:
        faults.append(
            f"queue: {point.knobs['queue']!r} is {queue['limit']} bytes at rate={point.knobs['rate']}"
            f" rtt={point.knobs['rtt']}, over the 4 GiB that a queue can hold; take a smaller queue"
        )
    one_way = point.rtt_s if point.knobs["recipe"] == "leaf" else point.rtt_s / 2
    for name in ("rtt", "jitter"):
        time_us = float(PATH_KNOBS[name].value(point.knobs[name])) * 1e6
        if abs(time_us - round(time_us)) > 1e-6 * max(time_us, 1):
            faults.append(
                f"{name}: {point.knobs[name]!r} is not whole microseconds, which is what tc sets; round it"
            )
    jitter_s = float(PATH_KNOBS["jitter"].value(point.knobs["jitter"]))
    if jitter_s > one_way:
        faults.append(
            f"jitter: {point.knobs['jitter']!r} is more than the delay of {one_way:g} s;"
            " a packet cannot arrive before it was sent; take less"
        )
    if point.knobs["reorder"] != "0%" and point.rtt_s == 0:
        faults.append("reorder: a path without delay cannot reorder; give an rtt")
    faults += [
        f"{name}: {point.knobs[name]!r} needs workload=bulk, whose sockets the lab opens itself"
        for name in ("rcvbuf", "sndbuf")
        if point.knobs[name] != "none" and point.knobs["workload"] != "bulk"
    ]
    if point.triple("wmem").default > MOST_FILLED_BYTES:
        faults.append(
            f"wmem: {point.knobs['wmem']!r} starts at {point.triple('wmem').default} bytes, and a writer that"
            f" fills more than {MOST_FILLED_BYTES} overflows the int in which Linux counts them; take less,"
            " or max= to have it tuned"
        )
    interval = PATH_KNOBS["interval"].value(point.knobs["interval"])
    if interval is not None and point.duration_s / interval > 1e5:
        faults.append(
            f"interval: {point.knobs['interval']!r} gives over 100000 samples in {point.knobs['duration']};"
            " take a longer one"
        )
    return faults
