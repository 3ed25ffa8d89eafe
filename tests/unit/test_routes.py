"""Routes of the world: their lengths by hand, their bounds by physics, their page."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import routes
from lab.errors import UnitError
from lab.knobs import PATH_KNOBS
from lab.routes import ROUTES, Place, fibre_rtt_s, great_circle_km
from lab.units import format_time

PLACES = st.builds(Place, st.floats(-90, 90), st.floats(-180, 180))
NAMES = list(ROUTES)
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "routes.md"


class TestGreatCircle:
    def test_of_a_quarter_of_the_equator(self) -> None:
        assert great_circle_km(Place(0, 0), Place(0, 90)) == pytest.approx(math.pi / 2 * 6371.0088)

    def test_from_london_to_new_york(self) -> None:
        """5570 km, as every atlas has it."""
        assert great_circle_km(Place(51.51, -0.13), Place(40.71, -74.01)) == pytest.approx(5570, abs=5)

    @given(PLACES, PLACES)
    def test_is_the_same_both_ways(self, one: Place, other: Place) -> None:
        assert great_circle_km(one, other) == pytest.approx(great_circle_km(other, one), abs=1e-6)

    @given(PLACES, PLACES)
    def test_is_at_most_half_way_round(self, one: Place, other: Place) -> None:
        assert 0 <= great_circle_km(one, other) <= math.pi * routes.EARTH_RADIUS_KM + 1e-6

    @given(PLACES, PLACES, PLACES)
    def test_no_way_round_is_shorter(self, one: Place, other: Place, between: Place) -> None:
        there = great_circle_km(one, between) + great_circle_km(between, other)
        assert great_circle_km(one, other) <= there + 1e-3

    @given(PLACES)
    def test_to_itself_is_nothing(self, place: Place) -> None:
        assert great_circle_km(place, place) == 0


def test_light_in_fibre_takes_ten_microseconds_a_kilometre_there_and_back() -> None:
    assert fibre_rtt_s(1000) == pytest.approx(9.79e-3, rel=1e-3)


@pytest.mark.parametrize("name", NAMES)
class TestEveryRoute:
    def test_is_no_faster_than_light(self, name: str) -> None:
        route = ROUTES[name]
        assert route.rtt_s >= route.least_rtt_s

    def test_is_within_four_times_light(self, name: str) -> None:
        """Longer than any detour: a slip of units or of places."""
        route = ROUTES[name]
        assert not route.least_rtt_s or route.rtt_s <= 4 * route.least_rtt_s

    def test_says_where_it_is_from(self, name: str) -> None:
        route = ROUTES[name]
        assert route.basis in ("published", "derived")
        assert len(route.source) > 20
        assert route.meaning
        assert not route.meaning.endswith(".")

    def test_is_spelled_as_a_knob_takes_it(self, name: str) -> None:
        assert ROUTES[name].name == name
        assert PATH_KNOBS["route"].canonical(name) == name
        shown = format_time(ROUTES[name].rtt_s)
        assert PATH_KNOBS["rtt"].canonical(shown) == shown

    def test_is_whole_milliseconds(self, name: str) -> None:
        """Or, within a datacentre, whole microseconds."""
        digits = 3 if ROUTES[name].rtt_s >= 1e-3 else 6
        assert ROUTES[name].rtt_s == round(ROUTES[name].rtt_s, digits)


class TestRoutes:
    def test_cover_the_world(self) -> None:
        assert 15 <= len(ROUTES) <= 30
        assert min(route.rtt_s for route in ROUTES.values()) < 1e-3
        assert max(route.rtt_s for route in ROUTES.values()) > 1

    def test_of_the_ground_name_their_ends(self) -> None:
        assert all(len(route.name.split("-")) == 2 for route in ROUTES.values() if route.ends)

    def test_are_only_once_each_way(self) -> None:
        ends = [frozenset(name.split("-")) for name in NAMES]
        assert len(set(ends)) == len(ends)

    def test_geostationary_is_four_times_the_height(self) -> None:
        """RFC 2488, section 2: 239.6 ms there and down again, taken from about 36 000 km."""
        assert ROUTES["geo-satellite"].least_rtt_s == pytest.approx(2 * 0.2396, rel=0.005)

    def test_derived_is_by_the_rule_of_thumb(self) -> None:
        route = ROUTES["newyork-sanfrancisco"]
        assert route.distance_km == pytest.approx(4130, abs=10)
        assert route.rtt_s == pytest.approx(2.1 * fibre_rtt_s(route.distance_km or 0), abs=1e-3)


class TestFind:
    @pytest.mark.parametrize("name", ["london-newyork", " London-NewYork "])
    def test_by_name(self, name: str) -> None:
        assert routes.find(name) is ROUTES["london-newyork"]

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ("newyork-london", "'newyork-london' is not a route; write one such as london-newyork"),
            ("tokio-seoul", "'tokio-seoul' is not a route; write one such as tokyo-seoul"),
            ("42", "'42' is not a route; write one such as datacentre, availability-zones, london-paris"),
        ],
    )
    def test_names_the_nearest(self, wrong: str, message: str) -> None:
        with pytest.raises(UnitError) as refused:
            routes.find(wrong)
        assert str(refused.value).startswith(message)


def test_the_page_has_the_table() -> None:
    assert f"-->\n\n{routes.markdown()}\n<!-- end of routes -->\n" in PAGE.read_text(encoding="utf-8")
