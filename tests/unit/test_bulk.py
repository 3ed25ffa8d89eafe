"""The bulk load over loopback: how much arrives, when flows come, pause and end; a cut-off one has no end."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lab import clock, tcpinfo
from lab.workloads import first_port
from lab.workloads.bulk import Bulk


class Node:
    """A node of a network that is this machine's loopback."""

    def __init__(self, address: str) -> None:
        self._address = address

    def IP(self) -> str:  # noqa: N802 (Mininet's name)
        return self._address

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        yield


LOADS = itertools.count(1)


def load(*flows: dict[str, Any]) -> Bulk:
    """Return a load of these flows, each with what differs from one that lasts; connected, not begun."""
    # an address that no earlier run had: its ports are busy for a minute
    own = f"127.{1 + os.getpid() // 250 % 250}.{os.getpid() % 250}"
    number = next(LOADS)
    net = {"snd": Node(f"{own}.{number}"), "rcv": Node(f"{own}.{100 + number}")}
    usual = {"src": "snd", "dst": "rcv", "cc": "cubic", "start_ns": 0, "bytes": None}
    bulk = Bulk(net, {"flows": [{"flow": at, **usual, **flow} for at, flow in enumerate(flows)]})
    bulk.prepare()
    return bulk


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until something is so; not longer than 20 seconds."""
    deadline_ns = clock.now_ns() + 20 * 10**9
    while not condition() and clock.now_ns() < deadline_ns:
        time.sleep(0.005)


@pytest.mark.parametrize("flows", [1, 3])
def test_flows_of_a_given_size_finish(flows: int) -> None:
    bulk = load(*[{"bytes": 3_000_001}] * flows)
    assert not bulk.finished()
    began_ns = clock.now_ns()
    bulk.begin(began_ns)
    wait_for(bulk.finished)
    bulk.end()
    found = bulk.outcome()["flows"]
    assert [flow["flow"] for flow in found] == list(range(flows))
    assert [flow["port"] for flow in found] == [first_port(flows) + number for number in range(flows)]
    assert all(began_ns < flow["finished_ns"] <= clock.now_ns() for flow in found)


@pytest.mark.parametrize("size", [None, 10**15])
def test_flow_that_is_cut_off_has_not_finished(size: int | None) -> None:
    """Otherwise its whole size would count as delivered."""
    bulk = load({"bytes": size})
    bulk.begin(clock.now_ns())
    time.sleep(0.05)
    bulk.end()
    told = {"flow": 0, "port": first_port(1), "finished_ns": None, "tcp_info": None}
    assert bulk.outcome() == {"client": "sender", "flows": [told]}


def test_nothing_leaves_before_the_start() -> None:
    bulk = load({"bytes": 1})
    time.sleep(0.05)
    assert not bulk.finished()
    bulk.begin(clock.now_ns())
    wait_for(bulk.finished)
    bulk.end()
    assert bulk.outcome()["flows"][0]["finished_ns"] is not None


def test_without_flows_it_never_finishes() -> None:
    """A UDP flow may be all that there is, and lasts until the end."""
    bulk = load()
    bulk.begin(clock.now_ns())
    assert not bulk.finished()
    bulk.end()
    assert bulk.outcome()["flows"] == []


def test_finished_flow_leaves_its_last_tcp_info() -> None:
    bulk = load({"bytes": 100_000})
    bulk.begin(clock.now_ns())
    wait_for(bulk.finished)
    time.sleep(0.05)
    bulk.end()
    info = tcpinfo.decode_info(bytes.fromhex(bulk.outcome()["flows"][0]["tcp_info"]))
    assert info["tcpi_bytes_sent"] == 100_000


def test_flow_that_comes_later_connects_when_it_comes() -> None:
    bulk = load({"bytes": 1000}, {"bytes": 1000, "start_ns": 300_000_000})
    began_ns = clock.now_ns()
    bulk.begin(began_ns)
    wait_for(bulk.finished)
    bulk.end()
    first, second = (flow["finished_ns"] - began_ns for flow in bulk.outcome()["flows"])
    assert first < 300_000_000 < second


def test_flow_that_is_told_to_stop_ends_and_the_others_go_on() -> None:
    bulk = load({"stop_ns": 50_000_000}, {}, {"start_ns": 20_000_000, "stop_ns": 60_000_000})
    bulk.begin(clock.now_ns())
    wait_for(lambda: bulk._flows[0].stopped and bulk._flows[2].stopped)
    time.sleep(0.05)
    there = [flow.out is not None and flow.out.fileno() >= 0 for flow in bulk._flows]
    bulk.end()
    assert there == [False, True, False]
    assert [flow["finished_ns"] for flow in bulk.outcome()["flows"]] == [None] * 3


class Unanswered(socket.socket):
    """A socket whose handshake nobody answers; a shutdown ends the wait."""

    given_up = False

    def shutdown(self, _how: int) -> None:
        self.given_up = True

    def connect(self, _to: Any) -> None:
        while not self.given_up:
            time.sleep(0.002)
        raise ConnectionAbortedError


def test_flow_that_is_told_to_stop_while_it_connects_did_not_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    bulk = load({}, {"start_ns": 10_000_000, "stop_ns": 40_000_000})
    monkeypatch.setattr(bulk, "_open", lambda _flow: Unanswered())
    bulk.begin(clock.now_ns())
    wait_for(lambda: bulk._flows[1].stopped)
    time.sleep(0.05)
    bulk.end()
    assert [flow["finished_ns"] for flow in bulk.outcome()["flows"]] == [None, None]


def test_flow_that_cannot_connect_is_a_failure_of_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    bulk = load({}, {"start_ns": 10_000_000})

    def refuses(_flow: Any) -> socket.socket:
        raise OSError(98, os.strerror(98))

    monkeypatch.setattr(bulk, "_open", refuses)
    bulk.begin(clock.now_ns())
    wait_for(lambda: bool(bulk._flows[1].failure))
    bulk.end()
    with pytest.raises(RuntimeError, match=r"flow 1 could not connect: .*Address already in use"):
        bulk.outcome()


def test_load_that_ends_before_a_flow_comes_does_not_wait_for_it() -> None:
    bulk = load({"bytes": 1000}, {"start_ns": 300_000_000, "bytes": 1000})
    bulk.begin(clock.now_ns())
    wait_for(lambda: bulk._flows[0].finished_ns is not None)
    bulk.end()
    assert [flow["finished_ns"] is None for flow in bulk.outcome()["flows"]] == [False, True]


def test_flow_that_pauses_sends_in_its_spells_alone() -> None:
    bulk = load({"spells_ns": [[0, 50_000_000], [600_000_000, 60_000_000_000]]})
    bulk.begin(clock.now_ns())
    sent = []
    for at_s in (0.25, 0.5, 0.8):
        while (clock.now_ns() - bulk._begin_ns) / 1e9 < at_s:
            time.sleep(0.005)
        info = bulk._flows[0].into.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512)  # type: ignore[union-attr]
        sent.append(tcpinfo.decode_info(info)["tcpi_bytes_received"])
    bulk.end()
    assert 0 < sent[0] == sent[1] < sent[2]  # type: ignore[operator]


def test_flow_of_a_size_that_pauses_is_that_size() -> None:
    bulk = load({"bytes": 300_001, "spells_ns": [[0, 10_000_000], [30_000_000, 60_000_000]]})
    bulk.begin(clock.now_ns())
    wait_for(bulk.finished)
    time.sleep(0.05)
    bulk.end()
    info = tcpinfo.decode_info(bytes.fromhex(bulk.outcome()["flows"][0]["tcp_info"]))
    assert info["tcpi_bytes_sent"] == 300_001


def test_flow_has_the_congestion_control_of_its_own() -> None:
    bulk = load({"cc": "reno", "own_cc": True}, {"cc": "reno"})
    own = [
        flow.out.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")  # type: ignore[union-attr]
        for flow in bulk._flows
    ]
    bulk.begin(clock.now_ns())
    bulk.end()
    assert own[0] == b"reno"
    assert own[1] == Path("/proc/sys/net/ipv4/tcp_congestion_control").read_bytes().strip()
