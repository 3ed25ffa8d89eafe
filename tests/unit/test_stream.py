"""UDP streams over loopback: each packet has its delay, a lost one has none, and they end when told."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lab import clock
from lab.agent import frames
from lab.workloads import stream
from lab.workloads.stream import LOST, Stream

MS_NS = 1_000_000
STREAMS = itertools.count(1)
MakeStream = Callable[..., Stream]


class Node:
    """A node of a network that is this machine's loopback."""

    def __init__(self, address: str) -> None:
        self._address = address

    def IP(self) -> str:  # noqa: N802 (Mininet's name)
        return self._address

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        yield


@pytest.fixture
def make_stream(monkeypatch: pytest.MonkeyPatch) -> MakeStream:
    """Return a maker of streams that need no root: their buffers are what anybody may have."""
    monkeypatch.setattr(stream, "_SO_RCVBUFFORCE", socket.SO_RCVBUF)

    def make(**spec: Any) -> Stream:
        address = f"127.2.{os.getpid() % 250}.{next(STREAMS)}"
        net = {"snd": Node("127.0.0.1"), "rcv": Node(address)}
        return Stream(
            net, {"kind": "probe", "src": "snd", "dst": "rcv", "gap_ns": MS_NS, "ip_bytes": 64, **spec}
        )

    return make


def run(one: Stream, seconds: float) -> list[tuple[int, int]]:
    start_ns = clock.now_ns()
    one.begin(start_ns, start_ns + round(seconds * 1e9))
    one._threads[-1].join(20)
    time.sleep(0.05)
    one.end()
    return one.delays()[2]


def test_every_packet_has_the_time_it_was_sent_and_how_long_it_took(make_stream: MakeStream) -> None:
    one = make_stream()
    taken = run(one, 0.1)
    assert one.delays()[:2] == ("probe", -1)
    assert len(taken) == 100
    assert [sent for sent, _ in taken] == sorted(sent for sent, _ in taken)
    assert all(number * MS_NS <= sent for number, (sent, _) in enumerate(taken))
    assert all(0 <= took < 10**9 for _, took in taken)


def test_packet_that_does_not_arrive_is_lost(
    make_stream: MakeStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Lossy:
        def __init__(self, real: socket.socket) -> None:
            self._real, self._count = real, 0

        def sendto(self, data: bytes, to: Any) -> None:
            self._count += 1
            if self._count % 3:
                self._real.sendto(data, to)

        def close(self) -> None:
            self._real.close()

    one = make_stream()
    monkeypatch.setattr(one, "_source", Lossy(one._source))
    taken = run(one, 0.03)
    assert [number for number, (_, took) in enumerate(taken) if took == LOST] == list(range(2, 30, 3))


def test_ends_when_it_is_told_to(make_stream: MakeStream) -> None:
    one = make_stream(kind="udp", ip_bytes=1500)
    start_ns = clock.now_ns()
    one.begin(start_ns, start_ns + 60 * 10**9)
    time.sleep(0.05)
    one.end()
    kind, flow, taken = one.delays()
    assert (kind, flow) == ("udp", -1)
    assert 1 <= len(taken) < 1000


def test_packets_are_as_long_as_asked_for(make_stream: MakeStream, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []

    class Counting:
        def sendto(self, data: bytes, _to: Any) -> None:
            lengths.append(len(data) + 28)

        def close(self) -> None:
            pass

    one = make_stream(kind="udp", ip_bytes=1500)
    one._source.close()
    monkeypatch.setattr(one, "_source", Counting())
    run(one, 0.005)
    assert set(lengths) == {1500}


def test_what_it_saw_goes_through_the_record_file(make_stream: MakeStream) -> None:
    one = make_stream()
    run(one, 0.01)
    told = one.delays()
    assert frames.unpack_delays(frames.pack_delays(*told)) == told
