"""Expectations against rows: which hold, on which points, and what is said of those that do not."""

from __future__ import annotations

from typing import Any

import pytest

from lab import expectations
from lab.expectations import Verdict
from lab.scenario import Expectation, Scenario


def scenario(*checks: Expectation) -> Scenario:
    return Scenario(name="study", question="q", why="w", expectations=checks)


def row(**values: Any) -> dict[str, Any]:
    usual = {"point": "aa", "status": "done", "rate": "1gbit", "rmem": "25MiB", "mtu": 1500, "cc": "cubic"}
    usual |= {
        "adv_win_scale": "default",
        "goodput_bps": 95e6,
        "predicted_goodput_bps": 100e6,
        "retransmits": 3,
    }
    return usual | values


def verdict(check: Expectation, *rows: dict[str, Any]) -> Verdict:
    (found,) = expectations.check(scenario(check), rows)
    return found


class TestMatches:
    @pytest.mark.parametrize(
        ("where", "matches"),
        [
            ({}, True),
            ({"rate": "1gbit"}, True),
            ({"rate": "1000mbit"}, True),
            ({"rate": "2gbit"}, False),
            ({"rmem": "26214400B", "cc": "cubic"}, True),
            ({"rmem": "25MiB", "cc": "bbr"}, False),
            ({"rmem": ("default", "25MiB")}, True),
            ({"rmem": ["default", "26214400B"]}, True),
            ({"rmem": ("default", "max=25MiB")}, False),
            ({"rmem": ()}, False),
            ({"mtu": "1500"}, True),
            ({"mtu": 1500}, True),
            ({"mtu": 9000}, False),
            ({"adv_win_scale": "default"}, True),
            ({"adv_win_scale": -2}, False),
        ],
    )
    def test_any_spelling(self, where: dict[str, Any], matches: bool) -> None:
        assert expectations.matches(row(), where, scenario()) is matches


class TestBounds:
    @pytest.mark.parametrize(
        ("bounds", "status", "failure"),
        [
            ({"at_least": 95e6}, "met", None),
            ({"at_least": 95.1e6}, "failed", "aa: goodput_bps is 9.5e+07, under 9.51e+07"),
            ({"at_most": 95e6}, "met", None),
            ({"at_most": 94e6}, "failed", "aa: goodput_bps is 9.5e+07, over 9.4e+07"),
            ({"within": 0.051, "of": 100e6}, "met", None),
            ({"within": 0.0501, "of": "predicted_goodput_bps"}, "met", None),
            (
                {"within": 0.04, "of": "predicted_goodput_bps"},
                "failed",
                "aa: goodput_bps is 9.5e+07, more than 0.04 of predicted_goodput_bps = 1e+08 away",
            ),
            (
                {"within": 0.04, "of": 90e6},
                "failed",
                "aa: goodput_bps is 9.5e+07, more than 0.04 of 90000000.0 = 9e+07 away",
            ),
            ({"at_least": 90e6, "at_most": 100e6}, "met", None),
            ({"at_least": 96e6, "at_most": 97e6}, "failed", "aa: goodput_bps is 9.5e+07, under 9.6e+07"),
        ],
    )
    def test_hold_or_say_the_numbers(self, bounds: dict[str, Any], status: str, failure: str | None) -> None:
        found = verdict(Expectation("fills", value="goodput_bps", **bounds), row())
        assert (found.text, found.tried, found.status) == ("fills", 1, status)
        assert found.failures == (() if failure is None else (failure,))

    def test_zero_is_a_value(self) -> None:
        assert (
            verdict(Expectation("none", value="retransmits", at_most=0), row(retransmits=0)).status == "met"
        )

    def test_missing_value_fails(self) -> None:
        found = verdict(Expectation("fills", value="goodput_bps", at_least=1), row(goodput_bps=None))
        assert found.failures == ("aa: goodput_bps was not measured",)

    @pytest.mark.parametrize("of", [None, 0.0])
    def test_nothing_to_stand_beside_fails(self, of: float | None) -> None:
        check = Expectation("as predicted", value="goodput_bps", within=0.1, of="predicted_goodput_bps")
        found = verdict(check, row(predicted_goodput_bps=of))
        assert found.failures == ("aa: goodput_bps has no predicted_goodput_bps to stand beside",)


class TestVerdicts:
    CHECK = Expectation("fills", value="goodput_bps", at_least=90e6, where={"cc": "cubic"})

    def test_every_matching_point_is_tried(self) -> None:
        rows = [row(point="aa"), row(point="bb", cc="bbr", goodput_bps=1), row(point="cc", goodput_bps=80e6)]
        found = verdict(self.CHECK, *rows)
        assert (found.tried, found.status) == (2, "failed")
        assert found.failures == ("cc: goodput_bps is 8e+07, under 9e+07",)

    def test_failed_points_are_not_tried(self) -> None:
        assert verdict(self.CHECK, row(status="failed", goodput_bps=None)).status == "not tried"

    def test_no_point_at_all_is_not_met(self) -> None:
        assert (verdict(self.CHECK).tried, verdict(self.CHECK).status) == (0, "not tried")

    def test_each_expectation_has_its_own_in_order(self) -> None:
        checks = [
            Expectation(text, value="goodput_bps", at_least=bound) for text, bound in (("a", 1), ("b", 1e12))
        ]
        found = expectations.check(scenario(*checks), [row()])
        assert [(one.text, one.status) for one in found] == [("a", "met"), ("b", "failed")]
