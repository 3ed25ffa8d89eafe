"""Workloads: bulk for a time and for bytes, iperf3, HTTP from nginx; each measured the same way."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.virtual

PATHS = {
    "link": {"rate": "50mbit", "rtt": "40ms", "duration": "5s"},
    "receive window": {"rate": "100mbit", "rtt": "50ms", "rmem": "128KiB", "duration": "4s"},
    "bbr": {"rate": "20mbit", "rtt": "30ms", "cc": "bbr", "duration": "5s"},
}


@pytest.mark.parametrize("knobs", PATHS.values(), ids=PATHS.keys())
def test_iperf3_and_bulk_agree(run_point, knobs):
    bulk = run_point(workload="bulk", **knobs)["points"][0]
    iperf3 = run_point(workload="iperf3", **knobs)["points"][0]
    assert iperf3["goodput_bps"] == pytest.approx(bulk["goodput_bps"], rel=0.01)
    assert iperf3["steady_goodput_bps"] == pytest.approx(bulk["steady_goodput_bps"], rel=0.01)


def test_http_comes_from_nginx_and_agrees(run_point):
    knobs = PATHS["link"]
    bulk = run_point(workload="bulk", **knobs)["points"][0]
    http = run_point(workload="http", **knobs)["points"][0]
    assert http["steady_goodput_bps"] == pytest.approx(bulk["steady_goodput_bps"], rel=0.01)


@pytest.mark.parametrize("workload", ["bulk", "http"])
def test_a_transfer_of_given_size_ends_with_its_last_byte(run_point, workload):
    tables = run_point(workload=workload, rate="50mbit", rtt="40ms", bytes="5MB", flows="2", duration="60s")
    point = tables["points"][0]
    for flow in tables["flows"]:
        assert flow["delivered_bytes"] == pytest.approx(5e6, rel=0.001)
        assert flow["finished_s"] <= point["load_s"]
    assert point["load_s"] < 3
    assert point["goodput_bps"] == pytest.approx(10e6 * 8 / point["load_s"], rel=0.001)
