"""What limited a point, said of points of which it is known; and that mending it gives more."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.virtual

PATH = {"rate": "100mbit", "rtt": "40ms", "duration": "4s"}
AMPLE = {"rmem": "max=32MiB", "wmem": "max=32MiB"}
MENDED = {  # limit: (what makes it bind, what lifts it)
    "receive_window": ({"rmem": "256KiB"}, {"rmem": "512KiB"}),
    "send_buffer": ({"wmem": "400KiB", "rtt": "10ms", "rate": "1gbit"}, {"wmem": "800KiB"}),
    "link": ({}, {"rate": "200mbit"}),
    "loss": ({"loss": "0.5%"}, {"loss": "0.05%"}),
    "queue": ({"cc": "reno", "queue": "0.1bdp"}, {"queue": "1bdp"}),
    "slow_start": ({"rtt": "200ms", "duration": "1s"}, {"duration": "4s"}),
}


@pytest.mark.parametrize("limit", MENDED)
def test_names_what_binds_and_lifting_it_gives_more(run_point, limit):
    binding, mend = MENDED[limit]
    knobs = {**PATH, **AMPLE, **binding}
    point = run_point(**knobs)["points"][0]
    assert point["limit_measured"] == limit
    assert point["limit_shares"][limit] > 0.5
    assert sum(point["limit_shares"].values()) == pytest.approx(1)
    assert point["limit_predicted"] == limit
    if limit in ("receive_window", "send_buffer", "link"):
        assert point["steady_goodput_bps"] == pytest.approx(point["predicted_goodput_bps"], rel=0.05)
    mended = run_point(**{**knobs, **mend})["points"][0]
    assert mended["goodput_bps"] > 1.2 * point["goodput_bps"]


def test_the_buffer_that_the_verdict_asks_for_fills_the_link(run_point):
    """1 Gbit/s x 10 ms: without room for a burst beside the BDP it were 95 %."""
    knobs = {"rate": "1gbit", "rtt": "10ms", "duration": "2s", "wmem": "max=32MiB"}
    short = run_point(**knobs, rmem="max=512KiB")["points"][0]
    words = short["verdict"].split("at least ")[1].split()
    size = int(float(words[0]) * {"KiB": 2**10, "MiB": 2**20}[words[1]])
    mended = run_point(**knobs, rmem=f"max={size}B")["points"][0]
    link_bps = mended["rate_bps"] * 1448 / 1514
    assert mended["steady_goodput_bps"] > 0.99 * link_bps


@pytest.mark.parametrize("interval", ["10ms", "30ms"])
def test_an_application_that_always_has_data_is_never_the_limit(run_point, interval):
    """The kernel counts in ticks of 4 ms, which are no divisor of these intervals."""
    point = run_point(**{**PATH, **AMPLE, "rmem": "256KiB", "interval": interval})["points"][0]
    assert point["limit_shares"].get("application", 0) < 0.005


@pytest.mark.parametrize("cc", ["cubic", "bbr"])
def test_seconds_of_every_interval_add_up(run_point, cc):
    tables = run_point(**{**PATH, **AMPLE, "cc": cc, "flows": "2", "loss": "0.1%", "duration": "2s"})
    assert {row["flow"] for row in tables["limits"]} == {0, 1}
    for row in tables["limits"]:
        seconds = [
            value for name, value in row.items() if name.endswith("_s") and name not in ("t_s", "span_s")
        ]
        assert sum(seconds) == pytest.approx(row["span_s"])
        assert min(seconds) >= 0
