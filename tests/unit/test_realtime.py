"""What the realtime engine grants and refuses, without a namespace being made."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab import spec
from lab.combination import Point
from lab.doctor import Feature, Finding
from lab.engines import realtime
from lab.engines.base import Options
from tests.conftest import MakePoint

SYSCTLS = {
    "net.core.rmem_max": "212992",
    "net.core.wmem_max": "212992",
    "net.ipv4.tcp_mem": "1 2 3",
    "net.ipv4.tcp_allowed_congestion_control": "reno cubic",
    "net.ipv4.tcp_available_congestion_control": "reno cubic bbr",
}


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Put a host in the place of this one; return the names of features that it lacks, to be filled."""
    lacking: set[str] = set()

    def grant(feature: Feature) -> Finding:
        found = f"Linux 6.6 was built without {feature.option}"
        mend = "use `--engine virtual`"
        return Finding("realtime", feature.name, feature.name not in lacking, found, mend)

    monkeypatch.setattr(realtime, "grant", grant)
    monkeypatch.setattr(realtime, "has_control", lambda name: name in ("reno", "cubic", "bbr"))
    monkeypatch.setattr(realtime, "_read", lambda name: SYSCTLS.get(name, ""))
    return lacking


@pytest.fixture
def on_host(make_point: MakePoint) -> MakePoint:
    return lambda **knobs: replace(make_point(kernel="host", **knobs), engine="realtime")


ENGINE = realtime.make()
ALLOWING = realtime.make(Options(allow_host_sysctls=True))


class TestLacking:
    def test_nothing_where_all_is_there(self, on_host: MakePoint) -> None:
        assert ENGINE.lacking(on_host(loss="1%", qdisc="fq_codel")) is None

    @pytest.mark.parametrize(
        ("feature", "knobs", "words"),
        [
            (
                "netem",
                {"rtt": "10ms"},
                "the delay line of rtt=10ms needs netem, and Linux 6.6 was built without",
            ),
            ("htb", {"rtt": "0s", "rate": "1gbit"}, "rate=1gbit needs htb"),
            ("cake", {"rtt": "0s", "qdisc": "cake"}, "qdisc=cake needs cake"),
        ],
    )
    def test_names_the_wish_and_the_mend(
        self, on_host: MakePoint, host: set[str], feature: str, knobs: dict[str, str], words: str
    ) -> None:
        host.add(feature)
        told = ENGINE.lacking(on_host(**knobs))
        assert told is not None
        assert told.startswith(words)
        assert told.endswith("use `--engine virtual`")

    def test_of_one_wish_does_not_touch_others(self, on_host: MakePoint, host: set[str]) -> None:
        host.add("netem")
        assert ENGINE.lacking(on_host(rtt="0s", qdisc="cake")) is None

    def test_congestion_control(self, on_host: MakePoint) -> None:
        told = ENGINE.lacking(on_host(cc="bbr+vegas"))
        assert told is not None
        assert "no congestion control 'vegas'" in told
        assert "it has bbr, cubic, reno" in told

    def test_lab_kernel_lacks_nothing_of_the_host_s(self, make_point: MakePoint, host: set[str]) -> None:
        host.add("netem")
        assert ENGINE.lacking(replace(make_point(kernel="6.12"), engine="realtime")) is None


class TestValuesOfTheHost:
    def test_most_points_need_none(self, on_host: MakePoint) -> None:
        assert realtime.changes(on_host(rmem="max=64MiB", wmem="max=64MiB", cc="bbr")) == {}

    @pytest.mark.parametrize(
        ("knobs", "wanted"),
        [
            ({"rmem_max": "8MiB"}, {"net.core.rmem_max": "8388608"}),
            ({"wmem_max": "8MiB", "sndbuf": "1MB"}, {"net.core.wmem_max": "8388608"}),
            ({"rcvbuf": "1MB"}, {}),  # clamped by what the host has, which is what the lab has
            ({"tcp_mem": "12MiB"}, {"net.ipv4.tcp_mem": "1536 2048 3072"}),
        ],
    )
    def test_are_those_that_knobs_ask_for(
        self, on_host: MakePoint, knobs: dict[str, str], wanted: dict[str, str]
    ) -> None:
        point = on_host(**knobs)
        assert realtime.changes(point) == wanted
        told = ENGINE.lacking(point)
        assert (told is None) == (not wanted)
        for name, value in wanted.items():
            assert f"{name} (now {SYSCTLS[name]}, wanted {value})" in str(told)
        assert ALLOWING.lacking(point) is None
        assert ALLOWING.agent_spec(point)["host_sysctls"] == wanted

    def test_a_host_with_other_limits_is_set_to_the_lab_s_where_they_clamp(
        self, on_host: MakePoint, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(SYSCTLS, "net.core.rmem_max", "4194304")
        assert realtime.changes(on_host(rcvbuf="1MB")) == {"net.core.rmem_max": "212992"}
        assert realtime.changes(on_host()) == {}

    def test_server_that_cannot_choose_needs_its_congestion_control_allowed(self, on_host: MakePoint) -> None:
        point = on_host(workload="http", cc="bbr", bytes="1MB")
        assert realtime.changes(point) == {"net.ipv4.tcp_allowed_congestion_control": "reno cubic bbr"}
        assert realtime.changes(on_host(workload="http", cc="cubic", bytes="1MB")) == {}

    def test_dry_run_says_them(self, on_host: MakePoint) -> None:
        lines = list(ENGINE.dry_run([on_host(rmem_max="8MiB"), on_host()]))
        assert any("net.core.rmem_max = 8388608 (now 212992)" in line for line in lines)
        assert any("no value outside" in line for line in ENGINE.dry_run([on_host()]))


class TestSpec:
    def controls(self, point: Point) -> tuple[object, object]:
        told = ENGINE.agent_spec(point)
        (flow,) = told["workload"]["flows"]
        return told["sysctls"]["snd"].get("net.ipv4.tcp_congestion_control"), flow.get("own_cc")

    def test_of_a_host_touches_its_namespaces_alone(self, on_host: MakePoint) -> None:
        told = ENGINE.agent_spec(on_host())
        assert set(told["sysctls"]) == {"snd", "rcv"}
        assert not told["own_kernel"]
        assert told["probes"]["machine"]

    def test_restricted_congestion_control_is_asked_for_by_each_socket(self, on_host: MakePoint) -> None:
        assert self.controls(on_host(cc="bbr")) == (None, True)
        assert self.controls(on_host(cc="cubic")) == ("cubic", None)

    def test_of_a_lab_kernel_is_that_of_virtual_time_but_for_the_clock(self, make_point: MakePoint) -> None:
        point = replace(make_point(), engine="realtime")
        told, virtual = ENGINE.agent_spec(point), spec.agent_spec(point)
        assert told["sysctls"] == virtual["sysctls"]
        assert told["own_kernel"]
        assert told["probes"] == {**virtual["probes"], "machine": True}
        assert told["path_check"][0]["pings"] > virtual["path_check"][0]["pings"]
