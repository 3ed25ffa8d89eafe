"""Named routes of the world and their base RTTs, for the knob `route`.

An RTT is published, then the source says where, or derived from the route's length,
then the source says how. Distances are great circles between the places named here,
so no cable is as short; what light in fibre needs for them is a bound from below.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from lab.errors import UnitError
from lab.units import format_time

LIGHT_KM_S = 299_792.458
"""In vacuum: exact, by the definition of the metre."""
FIBRE_INDEX = 1.468
"""Group index of standard single-mode fibre at 1550 nm (ITU-T G.652 fibre, makers' data sheets)."""
EARTH_RADIUS_KM = 6371.0088
"""Mean radius, IUGG."""
ROUTE_FACTOR = 2.1
"""RTT of a land route by light in fibre on its great circle; a rule of thumb (Bozkurt, arXiv 1811.10737)."""


class Place(NamedTuple):
    """A place on the ground, degrees north and east."""

    latitude: float
    longitude: float


@dataclass(frozen=True)
class Route:
    """One route. rtt_s: base RTT, s. basis: where it is from; source: where that stands.

    ends: the two places of one on the ground; radio_km: the way there and back of one
    through space, km; a route within a place has neither.
    """

    name: str
    rtt_s: float
    basis: Literal["published", "derived"]
    source: str
    meaning: str
    ends: tuple[Place, Place] | None = None
    radio_km: float | None = None

    @property
    def distance_km(self) -> float | None:
        """The great circle between its ends, km."""
        return great_circle_km(*self.ends) if self.ends else None

    @property
    def least_rtt_s(self) -> float:
        """What no route between its ends is under, s: light in fibre, or in vacuum through space."""
        if self.ends:
            return fibre_rtt_s(great_circle_km(*self.ends))
        return (self.radio_km or 0.0) / LIGHT_KM_S


def great_circle_km(one: Place, other: Place) -> float:
    """Return the great circle between two places on a sphere, km, by the haversine formula.

    Sinnott, Sky and Telescope 68(2), 1984. The Earth is no sphere: up to 0.6 % off.
    """
    lat, other_lat = math.radians(one.latitude), math.radians(other.latitude)
    east = math.radians(other.longitude - one.longitude)
    half_chord = math.sin((other_lat - lat) / 2) ** 2 + math.cos(lat) * math.cos(other_lat) * (
        math.sin(east / 2) ** 2
    )
    return 2 * EARTH_RADIUS_KM * math.asin(math.sqrt(min(1.0, half_chord)))


def fibre_rtt_s(distance_km: float) -> float:
    """Return the round trip of light in a fibre of this length, s: 9.79 us a km."""
    return 2 * distance_km * FIBRE_INDEX / LIGHT_KM_S


_PLACES = {
    "amsterdam": Place(52.37, 4.90),
    "california": Place(37.783, -122.417),
    "capetown": Place(-33.92, 18.42),
    "dubai": Place(25.27, 55.32),
    "frankfurt": Place(50.11, 8.68),
    "hongkong": Place(22.27, 114.19),
    "johannesburg": Place(-26.20, 28.05),
    "london": Place(51.51, -0.13),
    "newyork": Place(40.71, -74.01),
    "paris": Place(48.86, 2.35),
    "pune": Place(18.58, 73.92),
    "sanfrancisco": Place(37.77, -122.42),
    "saopaulo": Place(-23.55, -46.63),
    "seoul": Place(37.57, 126.98),
    "singapore": Place(1.28, 103.83),
    "sydney": Place(-33.86, 151.21),
    "tokyo": Place(35.68, 139.77),
    "virginia": Place(37.372, -79.816),
}
"""Cities; for Virginia and California what Azure gives as the places of its regions East US and West US."""

_AZURE = (
    "Microsoft, Azure network round-trip latency statistics, medians of the 30 days to 29 June 2025,"
    " learn.microsoft.com/azure/networking/azure-network-latency: {}"
)
_AZURE_REGIONS = {
    "amsterdam": "West Europe",
    "california": "West US",
    "capetown": "South Africa West",
    "dubai": "UAE North",
    "frankfurt": "Germany West Central",
    "hongkong": "East Asia",
    "johannesburg": "South Africa North",
    "london": "UK South",
    "paris": "France Central",
    "pune": "Central India",
    "saopaulo": "Brazil South",
    "seoul": "Korea Central",
    "singapore": "Southeast Asia",
    "sydney": "Australia East",
    "tokyo": "Japan East",
    "virginia": "East US",
}


def _azure(rtt_ms: int, one: str, other: str, meaning: str) -> Route:
    """Return a route between two regions of a cloud, on its own backbone."""
    regions = f"{_AZURE_REGIONS[one]} to {_AZURE_REGIONS[other]}"
    return Route(
        f"{one}-{other}",
        rtt_ms / 1e3,
        "published",
        _AZURE.format(regions),
        meaning,
        ends=(_PLACES[one], _PLACES[other]),
    )


def _derived(one: str, other: str, meaning: str) -> Route:
    """Return a route on land of which no RTT was found, whole milliseconds."""
    ends = (_PLACES[one], _PLACES[other])
    return Route(
        f"{one}-{other}",
        math.ceil(ROUTE_FACTOR * fibre_rtt_s(great_circle_km(*ends)) * 1e3) / 1e3,
        "derived",
        f"great circle x {ROUTE_FACTOR} at the speed of light in fibre, the rule of thumb of Bozkurt and"
        " others, arXiv 1811.10737",
        meaning,
        ends=ends,
    )


_ALL = (
    Route(
        "datacentre",
        0.5e-3,
        "published",
        "J. Dean, Designs, lessons and advice from building large distributed systems, LADIS 2009:"
        " round trip within a datacentre, 500 us",
        "within one datacentre",
    ),
    Route(
        "availability-zones",
        2e-3,
        "published",
        "Microsoft, What are availability zones,"
        " learn.microsoft.com/azure/reliability/availability-zones-overview: less than about 2 ms",
        "between datacentres of one city",
    ),
    _azure(11, "london", "paris", "two cities of Europe"),
    _azure(13, "amsterdam", "frankfurt", "two cities of Europe"),
    _azure(17, "london", "frankfurt", "two cities of Europe"),
    _azure(30, "tokyo", "seoul", "two cities of East Asia"),
    _azure(36, "singapore", "hongkong", "two cities of East Asia"),
    _azure(70, "virginia", "california", "coast to coast of the USA"),
    Route(
        "london-newyork",
        75e-3,
        "published",
        "WonderNetwork, ping statistics, wondernetwork.com/pings/London/New+York: about 75 ms",
        "across the North Atlantic",
        ends=(_PLACES["london"], _PLACES["newyork"]),
    ),
    _azure(79, "london", "virginia", "across the North Atlantic"),
    _derived("newyork", "sanfrancisco", "coast to coast of the USA, as public routes go"),
    _azure(94, "singapore", "sydney", "South-East Asia to Australia"),
    _azure(107, "tokyo", "california", "across the North Pacific"),
    _azure(119, "saopaulo", "virginia", "South America to North America"),
    _azure(119, "dubai", "london", "the Gulf to Europe"),
    _azure(137, "pune", "london", "India to Europe"),
    _azure(141, "sydney", "california", "across the Pacific"),
    _azure(145, "capetown", "london", "Africa to Europe"),
    _azure(158, "frankfurt", "singapore", "Europe to South-East Asia"),
    _azure(180, "saopaulo", "london", "South America to Europe"),
    _azure(247, "sydney", "london", "Australia to Europe"),
    _azure(271, "saopaulo", "tokyo", "to the other side of the world"),
    _azure(382, "johannesburg", "sydney", "across the Indian Ocean, and far longer than the great circle"),
    Route(
        "leo-satellite",
        26e-3,
        "published",
        "SpaceX, Starlink network update, starlink.com/updates/network-update: 25.7 ms, median at the peak"
        " hour in the USA, June 2025",
        "low Earth orbit, 550 km, up and down by one satellite",
        radio_km=4 * 550,
    ),
    Route(
        "meo-satellite",
        140e-3,
        "published",
        "O3b Networks (SES): round trip of 140 ms for data, from an orbit of 8062 km",
        "medium Earth orbit, up and down by one satellite",
        radio_km=4 * 8062,
    ),
    Route(
        "geo-satellite",
        558e-3,
        "published",
        "RFC 2488, section 2: at least 558 ms for stations at the edge of view, 2 x 41 756 km each way",
        "geostationary orbit, up and down by one satellite",
        radio_km=4 * 35_786,
    ),
    Route(
        "moon",
        2.565,
        "derived",
        "2 x 384 400 km, the mean distance of the Moon, at the speed of light",
        "Earth to Moon",
        radio_km=2 * 384_400,
    ),
)

ROUTES: Mapping[str, Route] = {route.name: route for route in _ALL}
"""Every route by its name, in the order of the reference page."""


def find(name: str) -> Route:
    """Return a route by its name. Raises UnitError with the nearest names, or with the other way round."""
    word = name.strip().lower()
    if word in ROUTES:
        return ROUTES[word]
    turned = "-".join(reversed(word.split("-")))
    near = difflib.get_close_matches(word, ROUTES, n=3, cutoff=0.4) or list(ROUTES)[:3]
    if turned in ROUTES:
        near = [turned]
    raise UnitError(f"{name.strip()!r} is not a route; write one such as {', '.join(near)}")


def markdown() -> str:
    """Return the table of all routes for the reference page."""
    lines = [
        "| route | RTT | great circle, km | light in fibre | basis | meaning | source |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for route in ROUTES.values():
        km = route.distance_km
        bound = f"{route.least_rtt_s * 1e3:.1f} ms" if km is not None else ""
        if route.radio_km:
            bound = f"{route.least_rtt_s * 1e3:.1f} ms in vacuum"
        cells = (
            f"`{route.name}`",
            format_time(route.rtt_s),
            "" if km is None else f"{km:.0f}",
            bound,
            route.basis,
            route.meaning,
            route.source,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "".join(f"{line}\n" for line in lines)
