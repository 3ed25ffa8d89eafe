"""Networks, queues, losses, changes and traffic in the lab's own kernel, held against what physics allows."""

from __future__ import annotations

import pytest

from lab.queues import LIMIT_UNIT

pytestmark = pytest.mark.virtual

LINK = {"rate": "20mbit", "rtt": "40ms", "duration": "4s"}
PAYLOAD = 1448 / 1514


def row_of(tables):
    (row,) = tables["points"]
    assert row["status"] == "done"
    return row


class TestShapes:
    def test_pairs_of_a_dumbbell_have_their_own_rtts(self, run_point):
        tables = run_point(
            **{**LINK, "topology": "dumbbell", "rtt": "10ms+30ms+90ms", "flows": "3", "queue": "20ms"}
        )
        seen = {flow["dst"]: flow["min_rtt_s"] for flow in tables["flows"]}
        assert seen == {
            "rcv1": pytest.approx(0.010, abs=1e-3),
            "rcv2": pytest.approx(0.030, abs=1e-3),
            "rcv3": pytest.approx(0.090, abs=1e-3),
        }
        assert row_of(tables)["steady_goodput_bps"] <= 20e6 * PAYLOAD * 1.001

    def test_access_rate_holds_its_pair_alone(self, run_point):
        tables = run_point(**{**LINK, "topology": "dumbbell", "flows": "2", "access": "2mbit+100mbit"})
        slow, fast = (flow["steady_goodput_bps"] for flow in tables["flows"])
        assert slow == pytest.approx(2e6 * PAYLOAD, rel=0.02)
        assert fast == pytest.approx(18e6 * PAYLOAD, rel=0.05)

    def test_flow_across_a_parking_lot_meets_every_queue(self, run_point):
        tables = run_point(**{**LINK, "topology": "parking_lot", "bottlenecks": "2", "flows": "3"})
        whole, first, second = tables["flows"]
        assert whole["rtt_s"] > max(first["rtt_s"], second["rtt_s"])
        for crossing in (first, second):
            total = whole["goodput_bps"] + crossing["goodput_bps"]
            assert 0.85 * 20e6 * PAYLOAD < total <= 20e6 * PAYLOAD * 1.001
        assert len({entry["interface"] for entry in tables["queues"] if entry["bottleneck"]}) == 2

    def test_star_serves_many_from_one(self, run_point):
        tables = run_point(**{**LINK, "topology": "star", "rtt": "10ms+50ms", "flows": "4"})
        assert {flow["src"] for flow in tables["flows"]} == {"snd"}
        assert len({flow["dst"] for flow in tables["flows"]}) == 4

    def test_slow_way_back_holds_acknowledgements(self, run_point):
        shape = {**LINK, "topology": "two_way", "rate": "50mbit", "rate_back": "1mbit", "reverse": "1"}
        tables = run_point(**shape)
        forward, reverse = tables["flows"]
        assert reverse["kind"] == "reverse"
        assert reverse["goodput_bps"] <= 1e6 * PAYLOAD * 1.001
        assert forward["goodput_bps"] < 0.5 * 50e6

    def test_two_hundred_hosts_come_up(self, run_point):
        tables = run_point(topology="dumbbell", rate="50mbit", rtt="20ms", flows="100", duration="1s")
        assert len(tables["flows"]) == 100
        assert row_of(tables)["rtt_s"] == pytest.approx(0.02, abs=2e-5)

    def test_a_thousand_flows_run(self, run_point):
        tables = run_point(rate="200mbit", rtt="40ms", flows="1000", duration="2s")
        assert len(tables["flows"]) == 1000
        assert 0 < row_of(tables)["goodput_bps"] <= 200e6 * PAYLOAD * 1.001


class TestQueues:
    @pytest.mark.parametrize("kind", LIMIT_UNIT)
    def test_every_kind_carries_the_rate_and_no_more(self, run_point, kind):
        row = row_of(run_point(**LINK, qdisc=kind, flows="4"))
        assert 0.8 * 20e6 * PAYLOAD < row["steady_goodput_bps"] <= 20e6 * PAYLOAD * 1.002

    @pytest.mark.parametrize(("kind", "most_s"), [("codel", 0.02), ("pie", 0.03), ("fq_codel", 0.02)])
    def test_aqm_keeps_the_wait_short(self, run_point, kind, most_s):
        row = row_of(run_point(**{**LINK, "duration": "10s"}, qdisc=kind, flows="2"))
        assert row["queue_delay_s"] < most_s

    def test_fair_queue_lets_a_probe_pass(self, run_point):
        behind = row_of(run_point(**LINK, flows="4", probe="20ms", queue="200ms"))
        beside = row_of(run_point(**LINK, flows="4", probe="20ms", queue="200ms", qdisc="fq"))
        assert beside["probe_delay_s"] < 0.005
        assert behind["probe_delay_s"] > 0.05

    def test_marks_take_the_place_of_drops(self, run_point):
        row = row_of(run_point(**{**LINK, "duration": "8s"}, qdisc="codel", ecn="on", flows="2"))
        assert row["ecn_marks"] > 0
        assert row["retransmits"] == 0

    def test_policer_delays_nothing_and_drops(self, run_point):
        row = row_of(run_point(**LINK, qdisc="policer", queue="50ms"))
        assert row["loaded_rtt_s"] < 0.0425
        assert row["queue_drops"] > 0

    def test_size_in_time_is_what_a_packet_waits(self, run_point):
        row = row_of(run_point(**{**LINK, "duration": "10s"}, queue="100ms"))
        assert row["queue_delay_p99_s"] == pytest.approx(0.1, rel=0.03)


class TestChanges:
    def test_rate_steps_at_its_instant(self, run_point):
        tables = run_point(rate="20mbit", rtt="20ms", duration="6s", rate_change="2s:5mbit+4s:10mbit")
        sent = [(entry["t_s"], entry["bytes"]) for entry in tables["queues"] if entry["bottleneck"]]

        def rate(from_s: float, until_s: float) -> float:
            inside = [(t, n) for t, n in sent if from_s <= t <= until_s]
            return (inside[-1][1] - inside[0][1]) * 8 / (inside[-1][0] - inside[0][0])

        assert rate(2.1, 3.9) == pytest.approx(5e6, rel=0.01)
        assert rate(4.1, 5.9) == pytest.approx(10e6, rel=0.02)
        assert row_of(tables)["utilisation"] <= 1.001

    def test_rtt_steps_at_its_instant(self, run_point):
        tables = run_point(
            rate="20mbit",
            rtt="20ms",
            duration="4s",
            probe="10ms",
            rtt_change="2s:100ms",
            flows="0",
            udp="1mbit",
        )
        took = [(d["t_s"], d["delay_s"]) for d in tables["delays"] if d["kind"] == "probe" and d["delay_s"]]
        before = [delay for t, delay in took if t < 1.95]
        after = [delay for t, delay in took if t > 2.05]
        assert max(before) == pytest.approx(0.010, abs=2e-3)
        assert min(after) == pytest.approx(0.050, abs=2e-3)

    def test_outage_lets_one_packet_pass(self, run_point, tmp_path):
        trace = tmp_path / "outage.csv"
        trace.write_text("0,10mbit\n1,0\n2,10mbit\n")
        tables = run_point(
            rate="10mbit", rtt="20ms", duration="3s", trace=str(trace), probe="10ms", flows="0", udp="100kbit"
        )
        arrived = [d["t_s"] + d["delay_s"] for d in tables["delays"] if d["delay_s"] is not None]
        inside = [t for t in arrived if 1.03 < t < 1.98]
        assert len(inside) <= 1
        after = [t for t in arrived if 2.0 <= t < 2.1]
        assert after, "the link comes back at once"


class TestTraffic:
    def test_flows_have_the_controls_that_they_were_dealt(self, run_point):
        tables = run_point(**LINK, flows="4", cc="bbr+cubic*2")
        assert [flow["cc"] for flow in tables["flows"]] == ["bbr", "cubic", "cubic", "bbr"]
        assert sum(row_of(tables)["cc_shares"].values()) == pytest.approx(1)

    def test_flow_comes_and_goes_when_told(self, run_point):
        tables = run_point(**LINK, flows="2", start="0s+1s", stop="end+3s")
        own = [s["t_s"] for s in tables["samples"] if s["flow"] == 1 and s["end"] == "sender"]
        assert min(own) == pytest.approx(1, abs=0.05)
        assert max(own) == pytest.approx(3, abs=0.05)

    def test_arrivals_offer_what_was_asked(self, run_point):
        tables = run_point(
            rate="50mbit", rtt="20ms", duration="6s", flows="0", arrivals="poisson:40%", sizes="20KB"
        )
        row = row_of(tables)
        assert row["flows_finished"] >= 0.97 * len(tables["flows"])
        assert row["utilisation"] == pytest.approx(0.4, rel=0.15)
        assert row["slowdown"] >= 1

    def test_udp_keeps_its_rate(self, run_point):
        row = row_of(run_point(**LINK, udp="5mbit", queue="100ms"))
        lost = row["udp_loss"]
        assert row["udp_goodput_bps"] == pytest.approx(5e6 * 1472 / 1514 * (1 - lost), rel=0.03)

    def test_request_on_an_idle_path_takes_its_round_trips(self, run_point):
        row = row_of(run_point(**LINK, workload="request", response="1KB", think="100ms"))
        assert row["request_s"] == pytest.approx(0.041, abs=2e-3)

    def test_pauses_are_silent(self, run_point):
        row = row_of(run_point(**LINK, on_off="500ms:500ms"))
        assert 0.35 < row["utilisation"] < 0.65

    def test_burst_loss_is_as_rare_as_its_model_says(self, run_point):
        row = row_of(run_point(rate="20mbit", rtt="10ms", duration="20s", cc="bbr", loss="ge:0.2%:20%"))
        assert row["retransmit_share"] == pytest.approx(0.01, rel=0.5)
