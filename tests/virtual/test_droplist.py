"""Dropping by number in the lab's kernels: just those packets are lost, and just those are sent again."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.virtual

# A window that the link and its queue hold: nothing else can get lost, and retransmits count the list.
KNOBS = {"rate": "100mbit", "rtt": "20ms", "bytes": "20MB", "duration": "60s"}
WINDOW = {"1": "256KiB", "4": "64KiB"}


@pytest.mark.parametrize("kernel", ["6.1", "6.12"])
@pytest.mark.parametrize(("cc", "flows"), [("cubic", "1"), ("bbr", "1"), ("cubic", "4")])
@pytest.mark.parametrize("numbers", [(100, 101, 5000), tuple(range(300, 9000, 611))], ids=["few", "many"])
def test_just_the_packets_of_the_list_are_lost(run_point, kernel, cc, flows, numbers):
    loss = "list:" + "+".join(map(str, numbers))
    tables = run_point(kernel=kernel, cc=cc, flows=flows, loss=loss, rmem=WINDOW[flows], **KNOBS)
    point = tables["points"][0]
    assert point["retransmits"] == len(numbers)
    assert point["queue_drops"] == 0
    # No duplicate came: each that was sent again took the place of one that was lost.
    assert {row["tcpi_dsack_dups"] for row in tables["samples"]} == {0}
    assert sum(flow["delivered_bytes"] for flow in tables["flows"]) == pytest.approx(
        20e6 * int(flows), rel=1e-4
    )


def test_numbers_that_never_come_change_nothing(run_point):
    without = run_point(rmem="256KiB", **KNOBS)
    beyond = run_point(loss="list:1000000", rmem="256KiB", **KNOBS)
    assert beyond["points"][0]["retransmits"] == 0
    for one, other in zip(beyond["samples"], without["samples"], strict=True):
        assert {**one, "point": None} == {**other, "point": None}


def test_the_path_check_is_not_counted(run_point):
    """Its probes are UDP and the handshake carries no payload: number 1 is the load's first packet."""
    first = run_point(loss="list:1", rmem="256KiB", **KNOBS)["points"][0]
    assert 1 <= first["retransmits"] <= 2  # a tail loss probe may send it once more than there was need


def test_a_list_may_be_long(run_point):
    numbers = "+".join(str(number) for number in range(10**6, 10**6 + 99_998))
    point = run_point(loss=f"list:100+101+{numbers}", rmem="256KiB", **KNOBS)["points"][0]
    assert point["retransmits"] == 2
