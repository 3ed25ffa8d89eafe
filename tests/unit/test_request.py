"""Requests and responses over loopback: how long each took, one at a time, until the end."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from lab import clock
from lab.workloads import first_port
from lab.workloads.request import Request

LOADS = itertools.count(1)
MS_NS = 1_000_000


class Node:
    """A node of a network that is this machine's loopback."""

    def __init__(self, address: str) -> None:
        self._address = address

    def IP(self) -> str:  # noqa: N802 (Mininet's name)
        return self._address

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        yield


def load(*flows: dict[str, Any], **spec: Any) -> Request:
    """Return a load of these flows, connected, not begun."""
    # addresses that no earlier run had: their ports are busy for a minute
    own = f"127.{1 + os.getpid() // 250 % 250}.{os.getpid() % 250}"
    number = next(LOADS)
    net = {"snd": Node(f"{own}.{150 + number}"), "rcv": Node(f"{own}.{200 + number}")}
    usual = {"src": "snd", "dst": "rcv", "cc": "cubic", "start_ns": 0, "bytes": None}
    told = [{"flow": at, **usual, **flow} for at, flow in enumerate(flows)]
    request = Request(
        net, {"flows": told, "request_bytes": 100, "response_bytes": 64_000, "think_ns": 0, **spec}
    )
    request.prepare()
    return request


def run(request: Request, least: int = 3) -> dict[int, list[tuple[int, int]]]:
    """Run until every flow has that many answers; return them."""
    request.begin(clock.now_ns())
    deadline_ns = clock.now_ns() + 20 * 10**9
    while min(map(len, request.taken.values())) < least and clock.now_ns() < deadline_ns:
        time.sleep(0.002)
    request.end()
    return {flow: taken for _kind, flow, taken in request.delays()}


@pytest.mark.parametrize(("asked", "answered"), [(1, 1), (100, 64_000), (100_000, 10), (1, 6_000_000)])
def test_every_request_is_answered_and_timed(asked: int, answered: int) -> None:
    taken = run(load({}, request_bytes=asked, response_bytes=answered))[0]
    assert len(taken) >= 3
    assert all(took > 0 for _, took in taken)
    for (sent, took), (after, _) in itertools.pairwise(taken):
        assert after >= sent + took  # one at a time


def test_nothing_is_asked_before_the_start() -> None:
    request = load({})
    time.sleep(0.05)
    assert request.taken == {0: []}
    assert run(request)[0][0][0] >= 0


def test_client_thinks_between_a_response_and_the_next_request() -> None:
    taken = run(load({}, think_ns=20 * MS_NS))[0]
    for (sent, took), (after, _) in itertools.pairwise(taken):
        assert after - sent - took >= 20 * MS_NS


def test_flow_that_comes_later_asks_later() -> None:
    found = run(load({}, {"start_ns": 200 * MS_NS}))
    assert found[0][0][0] < 200 * MS_NS <= found[1][0][0]


def test_requests_go_on_until_the_end() -> None:
    request = load({})
    request.begin(clock.now_ns())
    time.sleep(0.02)
    assert not request.finished()
    request.end()


def test_ports_number_the_flows_at_the_client() -> None:
    request = load({}, {})
    run(request)
    first = first_port(2)
    assert request.outcome() == {
        "client": "receiver",
        "flows": [{"flow": number, "port": first + number, "finished_ns": None} for number in range(2)],
    }
