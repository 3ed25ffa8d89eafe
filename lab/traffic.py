"""From a point to its traffic: every flow with its hosts, its times, its size and its congestion control.

What chance decides here follows from the point's seed, outside of any kernel.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lab import layout
from lab.combination import Point
from lab.knobs import PATH_KNOBS
from lab.loads import Arrivals, OnOff, Sizes
from lab.model.path import payload_share

MOST_ARRIVALS = 20_000
LASTING, REVERSE, ARRIVAL, REQUEST = "lasting", "reverse", "arrival", "request"


@dataclass(frozen=True)
class Flow:
    """One connection. Times from the start of the load, s; stop_s: None for the end of the load.

    size_bytes: None where it lasts. spells: (from, to) of each time of sending,
    from start_s; None where it never pauses. bottlenecks: interfaces that its
    data cross.
    """

    number: int
    kind: str
    cc: str
    src: str
    dst: str
    rtt_s: float
    bottlenecks: tuple[str, ...]
    start_s: float = 0.0
    stop_s: float | None = None
    size_bytes: int | None = None
    spells: tuple[tuple[float, float], ...] | None = None


@lru_cache(maxsize=64)
def flows(point: Point) -> tuple[Flow, ...]:
    """Return every flow of a point, by number: those there are, those the other way, those that arrive."""
    return tuple(itertools.chain(_lasting(point), _reverse(point), _arriving(point)))


def starts_s(point: Point) -> list[float]:
    """Return when each of the flows that the knob `flows` counts begins, s."""
    starts: tuple[float, ...] = PATH_KNOBS["start"].value(point.knobs["start"])
    spread_s = float(PATH_KNOBS["spread"].value(point.knobs["spread"]))
    chance = random.Random(f"{point.seed} starts")
    return [
        starts[number % len(starts)] + (round(chance.uniform(0, spread_s), 6) if spread_s else 0.0)
        for number in range(int(point.knobs["flows"]))
    ]


def _joined(point: Point, number: int, kind: str, *, first: int = 0, **told: Any) -> Flow:
    """Return the flow of a kind with that number, from `first` on: on its pair, with its control."""
    pair = layout.pair_of(point, number, back=kind == REVERSE)
    return Flow(
        number=first + number,
        kind=kind,
        cc=point.controls[number % len(point.controls)],
        src=pair.sender,
        dst=pair.receiver,
        rtt_s=pair.rtt_s,
        bottlenecks=pair.bottlenecks,
        **told,
    )


def _lasting(point: Point) -> Iterator[Flow]:
    stops = PATH_KNOBS["stop"].value(point.knobs["stop"])
    sizes = point.sizes_each
    pauses: OnOff | None = PATH_KNOBS["on_off"].value(point.knobs["on_off"])
    chance = random.Random(f"{point.seed} flows")
    kind = REQUEST if point.knobs["workload"] == "request" else LASTING
    for number, start_s in enumerate(starts_s(point)):
        yield _joined(
            point,
            number,
            kind,
            start_s=start_s,
            stop_s=stops[number % len(stops)],
            size_bytes=sizes[number % len(sizes)] if sizes else None,
            spells=tuple(pauses.spells(chance, point.duration_s - start_s)) if pauses else None,
        )


def _reverse(point: Point) -> Iterator[Flow]:
    first = int(point.knobs["flows"])
    for number in range(int(point.knobs["reverse"])):
        yield _joined(point, number, REVERSE, first=first)


def _arriving(point: Point) -> Iterator[Flow]:
    arrivals: Arrivals | None = PATH_KNOBS["arrivals"].value(point.knobs["arrivals"])
    if arrivals is None:
        return
    chance = random.Random(f"{point.seed} arrivals")
    sizes: Sizes = PATH_KNOBS["sizes"].value(point.knobs["sizes"])
    every_s, drawn = mean_gap_s(point, arrivals, sizes), sizes.draw(chance)
    first = int(point.knobs["flows"]) + int(point.knobs["reverse"])
    at_s = 0.0
    for number in itertools.count():
        at_s += chance.expovariate(1 / every_s) if arrivals.kind == "poisson" else every_s
        if at_s >= point.duration_s:
            return
        yield _joined(
            point,
            number,
            ARRIVAL,
            first=first,
            start_s=round(at_s, 6),
            size_bytes=next(drawn),
        )


def mean_gap_s(point: Point, arrivals: Arrivals, sizes: Sizes) -> float:
    """Return the mean time between two arrivals, s: their payload is that share of what the link carries."""
    if arrivals.kind == "every":
        return arrivals.amount
    return sizes.mean_bytes * 8 / (arrivals.amount * point.rate_bps * payload_share(point.mtu_bytes))


def arrival_count(point: Point) -> float:
    """Return how many flows arrive on average."""
    arrivals: Arrivals | None = PATH_KNOBS["arrivals"].value(point.knobs["arrivals"])
    if arrivals is None:
        return 0.0
    sizes: Sizes = PATH_KNOBS["sizes"].value(point.knobs["sizes"])
    return point.duration_s / mean_gap_s(point, arrivals, sizes)


def most_at_once(point: Point) -> int:
    """Return a number of connections that are open at a time, for what must be sized by it.

    Arrivals by Little's law, with room for a queue of them.
    """
    lasting = int(point.knobs["flows"]) + int(point.knobs["reverse"])
    arriving = arrival_count(point)
    return lasting + math.ceil(min(arriving, 50 + 4 * arriving / max(point.duration_s, 1e-3)))


def udp_gap_s(point: Point) -> float | None:
    """Return the time between two packets of the UDP flow, s; None where there is none."""
    rate_bps = PATH_KNOBS["udp"].value(point.knobs["udp"])
    return None if rate_bps is None else point.packet_on_wire_bytes * 8 / rate_bps


def bottlenecks(point: Point) -> tuple[str, ...]:
    """Return the interfaces that the flows' data cross and that are under study, each once."""
    crossed = [name for flow in flows(point) for name in flow.bottlenecks]
    return tuple(dict.fromkeys(crossed or layout.plan(point).pairs[0].bottlenecks))
