"""The bulk load over loopback: how much arrives, when it ended, and that a cut-off flow has no end."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Iterator

import pytest

from lab import clock
from lab.workloads.bulk import Bulk, first_port


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


def load(flows: int, size: int | None) -> Bulk:
    # an address that no earlier run had: its ports are busy for a minute
    own = f"127.{1 + os.getpid() // 250 % 250}.{os.getpid() % 250}"
    number = next(LOADS)
    net = {"snd": Node(f"{own}.{number}"), "rcv": Node(f"{own}.{100 + number}")}
    bulk = Bulk(net, {"sender": "snd", "receiver": "rcv", "flows": flows, "bytes": size})
    bulk.prepare()
    return bulk


@pytest.mark.parametrize("flows", [1, 3])
def test_flows_of_a_given_size_finish(flows: int) -> None:
    bulk = load(flows, 3_000_001)
    assert not bulk.finished()
    began_ns = clock.now_ns()
    bulk.begin()
    deadline_ns = began_ns + 20 * 10**9
    while not bulk.finished() and clock.now_ns() < deadline_ns:
        time.sleep(0.005)
    bulk.end()
    found = bulk.outcome()["flows"]
    assert [flow["flow"] for flow in found] == list(range(flows))
    assert [flow["port"] for flow in found] == [first_port(flows) + number for number in range(flows)]
    assert all(began_ns < flow["finished_ns"] <= clock.now_ns() for flow in found)


@pytest.mark.parametrize("size", [None, 10**15])
def test_flow_that_is_cut_off_has_not_finished(size: int | None) -> None:
    """Otherwise its whole size would count as delivered."""
    bulk = load(1, size)
    bulk.begin()
    time.sleep(0.05)
    bulk.end()
    assert bulk.outcome() == {"flows": [{"flow": 0, "port": first_port(1), "finished_ns": None}]}


def test_nothing_leaves_before_the_start() -> None:
    bulk = load(1, 1)
    time.sleep(0.05)
    assert not bulk.finished()
    bulk.begin()
    while not bulk.finished():
        time.sleep(0.005)
    bulk.end()
