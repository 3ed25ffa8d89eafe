"""From a point to its network on paper: shape, parameters, plan."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from lab import plans
from lab.combination import Point
from lab.knobs import PATH_KNOBS
from lab.model.path import access_bps
from lab.plans.egress import halves
from lab.plans.plan import Pair, Plan

MOST_AUTO_PAIRS = 100


def shape(point: Point) -> str:
    """Return the shape of a point's network, see `lab.plans.SHAPES`; a long haul is a path."""
    name = point.knobs["topology"]
    return "path" if name == "long_haul" else name


def params(point: Point) -> dict[str, Any]:
    """Return what the shape is made with: JSON, as the agent gets it."""
    value = point.value
    rates = PATH_KNOBS["access"].value(point.knobs["access"])
    back = value("rate_back")
    common: dict[str, Any] = {
        "rate_bps": point.rate_bps,
        "back_bps": back,
        "queue": point.queue,
        "back_queue": None if point.queue["kind"] != "policer" else {"kind": "bfifo", "limit": 2**24},
        "mtu_bytes": point.mtu_bytes,
        "offloads": point.offloads,
    }
    way = {
        "jitter_s": value("jitter"),
        "jitter_distribution": point.knobs["jitter_dist"],
        "loss": point.loss.egress,
        "duplicate": value("duplicate"),
        "reorder": value("reorder"),
    }
    if shape(point) == "path":
        out_s, back_s = halves(point.rtt_s)
        leaf = point.knobs["recipe"] == "leaf"
        auto = None if leaf else access_bps(point.rate_bps)
        return {
            **common,
            **way,
            "access_bps": rates[0] if rates else auto,
            "delay_out_s": out_s,
            "delay_back_s": back_s,
            "recipe": point.knobs["recipe"],
            "leaf_limit_packets": value("leaf_limit"),
        }
    chosen: dict[str, Any] = {
        **common,
        "access_bps": list(rates) if rates else access_bps(point.rate_bps),
        "rtt_s": list(point.rtts_s),
        "way": way,
    }
    if shape(point) == "parking_lot":
        return {**chosen, "bottlenecks": int(point.knobs["bottlenecks"])}
    if shape(point) == "two_way":
        return {
            **chosen,
            "pairs": pair_count(point),
            "back_pairs": min(_reverse(point), MOST_AUTO_PAIRS) or 1,
        }
    return {**chosen, "pairs": pair_count(point)}


def out_share(point: Point) -> float:
    """Return the share of an RTT that is on the way out: half of it; all in a star, see its topology."""
    return 1.0 if shape(point) == "star" else 0.5


def varies(point: Point) -> bool:
    """Return whether the bottleneck's rate changes over time."""
    return point.knobs["rate_change"] != "none" or point.knobs["trace"] != "none"


def pair_count(point: Point) -> int:
    """Return how many pairs of hosts send the way that the shape is drawn."""
    if shape(point) == "path":
        return 1
    if shape(point) == "parking_lot":
        return int(point.knobs["bottlenecks"]) + 1
    wanted = PATH_KNOBS["pairs"].value(point.knobs["pairs"])
    if wanted is not None:
        return int(wanted)
    least = max(len(point.rtts_s), 2 if shape(point) == "dumbbell" else 1)
    return max(least, min(int(point.knobs["flows"]), MOST_AUTO_PAIRS))


def _reverse(point: Point) -> int:
    return int(point.knobs["reverse"])


@lru_cache(maxsize=64)
def plan(point: Point) -> Plan:
    """Return the network of a point."""
    return plans.make(shape(point), params(point))


def pair_of(point: Point, number: int, *, back: bool = False) -> Pair:
    """Return the pair that a flow joins: as the knob `place` has it, else over the pairs in turn.

    Raises IndexError for a pair that is not there, see `lab.checks`.
    """
    network = plan(point)
    pairs = network.back_pairs if back else network.pairs
    places = places_of(point)
    if places is None or back:
        return pairs[number % len(pairs)]
    place = places[number % len(places)] - first_pair(point)
    if place < 0:
        raise IndexError(place)
    return pairs[place]


def places_of(point: Point) -> tuple[int, ...] | None:
    """Return the pairs that flows join in turn, by the numbers of their hosts; None for all in turn."""
    places: tuple[int, ...] | None = PATH_KNOBS["place"].value(point.knobs["place"])
    return places


def first_pair(point: Point) -> int:
    """Return the number that the hosts of the first pair have: none, 0, where the parking lot's has none."""
    return 0 if shape(point) == "parking_lot" else 1
