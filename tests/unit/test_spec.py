"""What the agent is told: settings where they belong, delays that add up, room for all that may be held."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import layout, plans, spec
from lab.knobs import PATH_KNOBS
from lab.sweep import Point

MakePoint = Callable[..., Point]
MIB = 2**20


def told(point: Point) -> dict[str, Any]:
    return spec.agent_spec(point)


class TestAgentSpec:
    def test_is_json(self, make_point: MakePoint) -> None:
        whole = told(make_point(adv_win_scale="-2", loss="0.1%", bytes="1GiB"))
        assert json.loads(json.dumps(whole)) == whole

    @pytest.mark.parametrize("own", [True, False])
    def test_kernel_is_the_point_s_own_or_a_host_s(self, make_point: MakePoint, own: bool) -> None:
        assert spec.agent_spec(make_point(), spec.World(own_kernel=own))["own_kernel"] is own

    def test_names_a_topology_that_is_there(self, make_point: MakePoint) -> None:
        topology = told(make_point())["topology"]
        assert topology["name"] == "path"
        assert 'topos = {"path": ' in Path(topology["file"]).read_text()

    @pytest.mark.parametrize("shape", plans.SHAPES)
    def test_topology_builds_what_the_plan_says(self, make_point: MakePoint, shape: str) -> None:
        point = make_point(topology=shape, flows="4", reverse="1", rtt="20ms")
        topology = json.loads(json.dumps(spec.topology(point)))
        assert plans.make(topology["name"], topology["params"]) == layout.plan(point)
        assert f'topos = {{"{shape}": ' in Path(topology["file"]).read_text()

    def test_load(self, make_point: MakePoint) -> None:
        load = told(make_point(flows="4", bytes="1MB", cc="bbr", duration="3s", workload="http"))["workload"]
        assert load["kind"] == "http"
        assert [flow["flow"] for flow in load["flows"]] == [0, 1, 2, 3]
        one = {"kind": "lasting", "src": "snd", "dst": "rcv", "cc": "bbr", "start_ns": 0, "bytes": 10**6}
        assert load["flows"][3] == {"flow": 3, **one}
        assert (load["duration_s"], load["limit_ns"]) == (3.0, 3 * 10**9)

    def test_flow_with_times_and_a_control_of_its_own_says_so(self, make_point: MakePoint) -> None:
        point = make_point(flows="2", cc="bbr+cubic", start="0s+1s", stop="end+3s", on_off="1s:4s")
        first, second = told(point)["workload"]["flows"]
        assert (first["cc"], second["cc"]) == ("bbr", "cubic")
        assert first["own_cc"] is second["own_cc"] is True
        assert "stop_ns" not in first
        assert (second["start_ns"], second["stop_ns"]) == (10**9, 3 * 10**9)
        assert first["spells_ns"] == [[0, 10**9], [5 * 10**9, 6 * 10**9], [10 * 10**9, 11 * 10**9]]

    def test_streams_are_a_flow_of_udp_and_a_probe(self, make_point: MakePoint) -> None:
        assert told(make_point())["streams"] == []
        udp, probe = told(make_point(udp="12.112mbit", probe="10ms", topology="dumbbell"))["streams"]
        ends = {"src": "snd1", "dst": "rcv1"}
        assert udp == {"kind": "udp", **ends, "gap_ns": 1_000_000, "ip_bytes": 1500}
        assert probe == {"kind": "probe", **ends, "gap_ns": 10_000_000, "ip_bytes": spec.PROBE_BYTES}

    def test_packets_to_drop_are_named_where_they_leave_for_the_receivers(
        self, make_point: MakePoint
    ) -> None:
        assert told(make_point(loss="1%"))["drops"] == []
        drops = told(make_point(loss="list:5+17", topology="dumbbell"))["drops"]
        assert drops == [
            {"node": "r2", "interface": f"r2-eth{number}", "numbers": [5, 17]} for number in (1, 2)
        ]

    def test_samples_are_two_hundred_unless_told(self, make_point: MakePoint) -> None:
        assert told(make_point(duration="12s"))["probes"]["interval_ns"] == 60_000_000
        assert told(make_point(interval="5ms"))["probes"]["interval_ns"] == 5_000_000

    def test_many_flows_are_sampled_less_often(self, make_point: MakePoint) -> None:
        intervals = [spec.interval_s(make_point(flows=flows)) for flows in ("1", "100", "200", "1000")]
        assert intervals == [0.06, 0.06, 0.12, 0.3]

    def test_bottleneck_is_where_the_recipe_puts_it(self, make_point: MakePoint) -> None:
        assert told(make_point())["probes"]["queues"] == ["r1"]
        assert told(make_point(recipe="leaf"))["probes"]["queues"] == ["snd"]
        assert told(make_point(reverse="1"))["probes"]["queues"] == ["r1", "r2"]
        lot = told(make_point(topology="parking_lot", flows="4"))["probes"]
        assert lot["queues"] == ["r1", "r2", "r3"]
        assert lot["sockets"] == ["snd", "rcv", "snd1", "rcv1", "snd2", "rcv2", "snd3", "rcv3"]

    @pytest.mark.parametrize("workload", ["bulk", "iperf3", "http"])
    def test_kernel_is_given_longer_than_the_load(self, make_point: MakePoint, workload: str) -> None:
        whole = told(make_point(rtt="20s", duration="1h", workload=workload))
        assert whole["virtual_limit_ns"] > whole["workload"]["limit_ns"] >= 3600 * 10**9


class TestPathChecks:
    def test_are_one_a_pair_and_a_train_for_each_bottleneck(self, make_point: MakePoint) -> None:
        checks = spec.path_checks(make_point(topology="dumbbell", flows="3", rtt="10ms+20ms+30ms"), spec.OWN)
        assert [(one["sender"], one["receiver"]) for one in checks] == [
            *(("snd1", "rcv1"), ("snd2", "rcv2"), ("snd3", "rcv3")),
        ]
        assert [one["train_packets"] > 0 for one in checks] == [True, False, False]

    def test_of_a_parking_lot_send_a_train_over_all_bottlenecks(self, make_point: MakePoint) -> None:
        checks = spec.path_checks(make_point(topology="parking_lot", flows="4"), spec.OWN)
        assert [one["train_packets"] > 0 for one in checks] == [True, False, False, False]

    @pytest.mark.parametrize("rtt", ["10ms", "20s"])
    def test_wait_longer_than_the_path_takes(self, make_point: MakePoint, rtt: str) -> None:
        point = make_point(rtt=rtt)
        assert all(one["timeout_s"] > 2 * point.rtt_s for one in spec.path_checks(point, spec.OWN))


class TestDelays:
    @given(st.integers(0, 20_000_000))
    def test_add_up_to_the_rtt_in_whole_microseconds(self, rtt_us: int) -> None:
        knobs = {name: knob.default for name, knob in PATH_KNOBS.items()} | {"rtt": f"{rtt_us}us"}
        params = spec.topology(Point(knobs, "virtual", 1))["params"]
        out_us, back_us = params["delay_out_s"] * 1e6, params["delay_back_s"] * 1e6
        assert round(out_us) + round(back_us) == rtt_us
        assert max(abs(out_us - round(out_us)), abs(back_us - round(back_us))) < 1e-6
        assert 0 <= round(out_us) - round(back_us) <= 1

    def test_hosts_run_at_ten_times_the_bottleneck(self, make_point: MakePoint) -> None:
        assert spec.topology(make_point())["params"]["access_bps"] == 10e9
        assert spec.topology(make_point(rate="400gbit"))["params"]["access_bps"] == 800e9
        assert spec.topology(make_point(recipe="leaf"))["params"]["access_bps"] is None


class TestSysctls:
    def test_of_the_sender_and_of_the_receiver(self, make_point: MakePoint) -> None:
        point = make_point(wmem="50MiB", rmem="max=25MiB", cc="bbr", adv_win_scale="-2")
        settings = spec.sysctls(point, spec.OWN)
        assert settings["snd"] == {
            "net.ipv4.tcp_congestion_control": "bbr",
            "net.ipv4.tcp_wmem": f"{50 * MIB} {50 * MIB} {50 * MIB}",
            "net.ipv4.tcp_rmem": "4096 131072 6291456",
        }
        assert settings["rcv"] == {
            "net.ipv4.tcp_congestion_control": "bbr",
            "net.ipv4.tcp_wmem": "4096 16384 4194304",
            "net.ipv4.tcp_rmem": f"4096 131072 {25 * MIB}",
            "net.ipv4.tcp_adv_win_scale": "-2",
        }

    def test_of_a_host_that_sends_and_receives(self, make_point: MakePoint) -> None:
        settings = spec.sysctls(make_point(wmem="50MiB", rmem="25MiB", reverse="1"), spec.OWN)
        for host in ("snd", "rcv"):
            assert settings[host]["net.ipv4.tcp_wmem"] == f"{50 * MIB} {50 * MIB} {50 * MIB}"
            assert settings[host]["net.ipv4.tcp_rmem"] == f"{25 * MIB} {25 * MIB} {25 * MIB}"

    def test_of_every_host_of_a_network(self, make_point: MakePoint) -> None:
        point = make_point(topology="two_way", flows="2", reverse="1", wmem="1MiB", ecn="on")
        settings = spec.sysctls(point, spec.OWN)
        assert list(settings) == ["", *layout.plan(point).hosts]
        assert {of["net.ipv4.tcp_ecn"] for host, of in settings.items() if host} == {"1"}
        large = f"{MIB} {MIB} {MIB}"
        assert [host for host, of in settings.items() if of.get("net.ipv4.tcp_wmem") == large] == [
            *("snd1", "snd2", "rcv3"),
        ]

    def test_that_were_not_asked_for_are_left_alone(self, make_point: MakePoint) -> None:
        assert "net.ipv4.tcp_adv_win_scale" not in spec.sysctls(make_point(), spec.OWN)["rcv"]

    def test_buffers_of_the_whole_kernel_are_written_out(self, make_point: MakePoint) -> None:
        assert spec.sysctls(make_point(), spec.OWN)[""]["net.core.rmem_max"] == "212992"
        whole = spec.sysctls(make_point(rmem_max="8MiB", wmem_max="16MiB"), spec.OWN)[""]
        assert (whole["net.core.rmem_max"], whole["net.core.wmem_max"]) == (str(8 * MIB), str(16 * MIB))

    def test_of_autotuning_and_of_what_may_wait(self, make_point: MakePoint) -> None:
        settings = spec.sysctls(
            make_point(moderate_rcvbuf="off", app_win="2", notsent_lowat="16KiB"), spec.OWN
        )
        assert settings["rcv"]["net.ipv4.tcp_moderate_rcvbuf"] == "0"
        assert settings["rcv"]["net.ipv4.tcp_app_win"] == "2"
        assert settings["snd"]["net.ipv4.tcp_notsent_lowat"] == "16384"
        usual = spec.sysctls(make_point(), spec.OWN)
        names = {name for of in usual.values() for name in of}
        assert not names & {
            *("net.ipv4.tcp_moderate_rcvbuf", "net.ipv4.tcp_app_win", "net.ipv4.tcp_notsent_lowat"),
        }

    def test_tcp_memory_that_is_short_is_as_the_kernel_divides_it(self, make_point: MakePoint) -> None:
        low, pressure, high = map(
            int, spec.sysctls(make_point(tcp_mem="12MiB"), spec.OWN)[""]["net.ipv4.tcp_mem"].split()
        )
        assert (low, pressure, high) == (1536, 2048, 3072)

    def test_tcp_memory_never_binds(self, make_point: MakePoint) -> None:
        point = make_point(rmem="1GiB", wmem="1GiB", rate="100gbit", flows="2")
        low, pressure, high = map(int, spec.sysctls(point, spec.OWN)[""]["net.ipv4.tcp_mem"].split())
        assert low == pressure == high
        assert high * 4096 == spec.guest_memory_bytes(point)


class TestMemory:
    @given(
        st.sampled_from(["1mbit", "1gbit", "100gbit", "400gbit"]),
        st.sampled_from(["0", "1ms", "200ms", "2s"]),
        st.sampled_from(["default", "25MiB", "max=1GiB", "2147483647B"]),
        st.sampled_from(["1", "10", "1000"]),
        st.sampled_from(["auto", "1000p", "1MB"]),
    )
    def test_holds_what_is_in_flight(self, rate: str, rtt: str, buffer: str, flows: str, queue: str) -> None:
        chosen = {"rate": rate, "rtt": rtt, "rmem": buffer, "wmem": buffer, "flows": flows, "queue": queue}
        point = Point({name: knob.default for name, knob in PATH_KNOBS.items()} | chosen, "virtual", 1)
        size = spec.guest_memory_bytes(point)
        window = min(point.triple("rmem").maximum, point.triple("wmem").maximum, 2**30)
        in_flight = min(point.rate_bps * point.rtt_s / 8, window * int(flows))
        assert size % 2**22 == 0
        assert size >= 192 * MIB + in_flight

    def test_grows_with_the_buffers_until_the_path_is_full(self, make_point: MakePoint) -> None:
        sizes = [
            spec.guest_memory_bytes(make_point(rmem=f"max={size}MiB", wmem=f"max={size}MiB"))
            for size in (1, 50, 500, 2000)
        ]
        assert sizes[0] < sizes[1] < sizes[2] == sizes[3]

    @pytest.mark.parametrize("knobs", [{"wmem": "2000MiB"}, {"wmem": "max=2000MiB", "sndbuf": "1000MiB"}])
    def test_holds_a_send_buffer_that_is_large_from_the_start(
        self, make_point: MakePoint, knobs: dict[str, str]
    ) -> None:
        assert spec.guest_memory_bytes(make_point(**knobs)) > 2000 * MIB
