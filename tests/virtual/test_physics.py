"""What any long path must show, whatever kernel runs it."""

from __future__ import annotations

import pytest

from lab.model.path import payload_share
from lab.qdisc import ETHERNET_HEADER_BYTES

pytestmark = pytest.mark.virtual

AMPLE = {"rmem": "max=256MiB", "wmem": "max=256MiB"}


@pytest.mark.parametrize("rate", ["1mbit", "100mbit", "10gbit", "400gbit"])
@pytest.mark.parametrize(("rtt", "seconds"), [("1us", 1e-6), ("20ms", 0.02), ("1s", 1.0), ("20s", 20.0)])
def test_an_idle_path_has_the_rtt_that_was_asked_for(run_point, rate, rtt, seconds):
    point = run_point(rate=rate, rtt=rtt, duration="50ms", queue="100p")["points"][0]
    assert abs(point["rtt_s"] - seconds) < 0.5e-6


@pytest.mark.parametrize("rate", ["1mbit", "100mbit", "1gbit", "10gbit", "100gbit"])
def test_a_train_of_packets_has_the_rate_that_was_asked_for(run_point, rate):
    point = run_point(rate=rate, rtt="20ms", duration="50ms")["points"][0]
    assert point["measured_rate_bps"] == pytest.approx(point["rate_bps"], rel=2e-3)


@pytest.mark.parametrize("kernel", ["6.1", "6.12"])
@pytest.mark.parametrize(
    ("rate", "rtt", "mtu"), [("10mbit", "10ms", 1500), ("100mbit", "40ms", 1500), ("1gbit", "20ms", 9000)]
)
def test_an_unlimited_flow_fills_the_link(run_point, kernel, rate, rtt, mtu):
    point = run_point(rate=rate, rtt=rtt, mtu=str(mtu), kernel=kernel, duration="6s", **AMPLE)["points"][0]
    assert point["steady_goodput_bps"] == pytest.approx(point["rate_bps"] * payload_share(mtu), rel=0.005)


def test_offloads_change_the_cost_and_not_the_goodput(run_point):
    knobs = {"rate": "200mbit", "rtt": "20ms", "duration": "4s", **AMPLE}
    off, on = (run_point(offloads=o, **knobs)["points"][0] for o in ("off", "on"))
    assert on["steady_goodput_bps"] == pytest.approx(off["steady_goodput_bps"], rel=0.005)


def test_a_full_queue_delays_by_its_size_over_the_rate(run_point):
    tables = run_point(rate="10mbit", rtt="20ms", queue="100ms", duration="5s", **AMPLE)
    point = tables["points"][0]
    worst = max(row["tcpi_rtt"] for row in tables["samples"] if row["end"] == "sender") / 1e6
    packet_s = (1500 + ETHERNET_HEADER_BYTES) * 8 / 10e6
    assert point["queue_drops"] > 0
    assert 0.02 + 0.1 - 4 * packet_s < worst < 0.02 + 0.1 + 2 * packet_s
    assert point["queue_limit"] - 1514 < point["queue_max_bytes"] <= point["queue_limit"]


@pytest.mark.parametrize("kernel", ["6.1", "6.12"])
@pytest.mark.parametrize(
    "knobs",
    [
        {"rmem": "256KiB", "wmem": "8MiB"},
        {"rmem": "1MiB", "wmem": "8MiB"},
        {"rmem": "max=1MiB", "wmem": "8MiB"},
        {"rmem": "16MiB", "wmem": "1MiB"},
    ],
)
def test_a_window_under_the_bdp_sets_the_rate(run_point, kernel, knobs):
    point = run_point(rate="500mbit", rtt="50ms", kernel=kernel, duration="6s", **knobs)["points"][0]
    assert point["limit_predicted"] in ("receive_window", "send_buffer")
    assert point["steady_goodput_bps"] == pytest.approx(point["predicted_goodput_bps"], rel=0.05)


def test_adv_win_scale_works_on_6_1_and_is_said_to_do_nothing_on_6_12(run_point):
    knobs = {"rate": "500mbit", "rtt": "50ms", "rmem": "1MiB", "wmem": "8MiB", "duration": "4s"}
    rates = {
        (kernel, scale): run_point(kernel=kernel, adv_win_scale=scale, **knobs)["points"][0]
        for kernel in ("6.1", "6.12")
        for scale in ("1", "-2")
    }
    old = [rates["6.1", scale]["steady_goodput_bps"] for scale in ("1", "-2")]
    new = [rates["6.12", scale]["steady_goodput_bps"] for scale in ("1", "-2")]
    assert old[0] / old[1] == pytest.approx(2, rel=0.03)
    assert new[0] == pytest.approx(new[1], rel=0.001)
    assert "no effect" in rates["6.12", "1"]["note"]
    assert rates["6.1", "1"]["note"] is None


@pytest.mark.parametrize("kernel", ["6.1", "6.12"])
@pytest.mark.parametrize("cc", ["reno", "vegas", "htcp", "dctcp", "westwood", "illinois"])
def test_every_congestion_control_of_the_kernel_can_be_used(run_point, kernel, cc):
    tables = run_point(rate="20mbit", rtt="20ms", duration="1s", kernel=kernel, cc=cc)
    assert {flow["cc"] for flow in tables["flows"]} == {cc}


def test_parallel_flows_share_and_number_themselves(run_point):
    tables = run_point(rate="100mbit", rtt="20ms", flows="8", duration="6s", **AMPLE)
    assert [flow["flow"] for flow in tables["flows"]] == list(range(8))
    total = sum(flow["steady_goodput_bps"] for flow in tables["flows"])
    assert total == pytest.approx(tables["points"][0]["steady_goodput_bps"], rel=1e-6)
    assert tables["points"][0]["steady_goodput_bps"] == pytest.approx(100e6 * payload_share(1500), rel=0.005)


def test_loss_jitter_reordering_and_duplicates_are_seen(run_point):
    knobs = {"rate": "20mbit", "rtt": "40ms", "duration": "4s"}
    clean = run_point(**knobs)["points"][0]
    lossy = run_point(loss="1%", **knobs)["points"][0]
    assert lossy["retransmits"] > clean["retransmits"]
    assert lossy["steady_goodput_bps"] < 0.9 * clean["steady_goodput_bps"]

    def receiver_max(column, **more):
        tables = run_point(**knobs, **more)
        return max(row[column] or 0 for row in tables["samples"])

    assert receiver_max("tcpi_rcv_ooopack", jitter="2ms") > 0
    assert receiver_max("tcpi_reord_seen", reorder="1%") > 0
    assert receiver_max("tcpi_dsack_dups", duplicate="5%") > 0


def test_samples_are_on_absolute_deadlines(run_point):
    tables = run_point(rate="10mbit", rtt="20ms", duration="2s", interval="10ms")
    instants = sorted({row["t_s"] for row in tables["samples"] if row["end"] == "sender"})
    assert len(instants) == 201
    assert all(0 <= t - i * 0.01 < 1e-4 for i, t in enumerate(instants))
