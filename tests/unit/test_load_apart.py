"""A load whose ends are on machines of their own: here two of them in one process, over loopback.

Each end has its own `Load`, is told of its own nodes alone, and knows nothing of the other.
"""

from __future__ import annotations

import array
import contextlib
import itertools
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lab import clock, netlink, records, tcpinfo, workloads
from lab.agent import frames, load
from lab.agent.hostops import Blob
from lab.probes.sockets import SocketProbe
from lab.remote import points
from lab.workloads import LoadFailed, bulk, stream

ADDRESSES = itertools.count(1)
S_NS = 10**9


class Far:
    """A host as operations see it."""

    def __init__(self, work: Path) -> None:
        self.work = work

    def do(self, op: str, **told: Any) -> Any:
        return load.OPS[op](self, told)


class Both:
    """A load on two hosts. told: of the workload, beside its flows."""

    def __init__(self, work: Path, *flows: dict[str, Any], kind: str = "bulk", **told: Any) -> None:
        # addresses that no earlier run had: their ports are busy for a minute
        own = f"127.{100 + os.getpid() // 250 % 100}.{os.getpid() % 250}"
        number = next(ADDRESSES)
        self.addresses = {"snd": f"{own}.{number}", "rcv": f"{own}.{100 + number}"}
        usual = {"src": "snd", "dst": "rcv", "cc": "cubic", "start_ns": 0, "bytes": None}
        self.spec: dict[str, Any] = {
            "kind": kind,
            "flows": [{"flow": at, **usual, **flow} for at, flow in enumerate(flows)],
            "limit_ns": S_NS,
            "first_port": 20000,
            **told.pop("workload", {}),
        }
        self.streams = told.pop("streams", [])
        self.hosts = {name: Far(work) for name in self.addresses}

    def told(self, name: str) -> dict[str, Any]:
        other = "rcv" if name == "snd" else "snd"
        return {
            "nodes": self.addresses,
            "here": [name],
            "interfaces": {name: {f"{name}-eth0": "lo"}},
            "between": [self.addresses[name], self.addresses[other]],
            "workload": self.spec,
            "streams": self.streams,
            "probes": {"sockets": ["snd", "rcv"], "queues": [], "interval_ns": S_NS // 20, "machine": False},
            "captures": [],
        }

    def each(self, op: str, **told: Any) -> dict[str, Any]:
        """Have all hosts do an operation at a time; raise what one of them raises."""
        found: dict[str, Any] = {}
        threads = [
            threading.Thread(target=lambda name=name: found.update({name: self._try(name, op, told)}))
            for name in self.hosts
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for answer in found.values():
            if isinstance(answer, BaseException):
                raise answer
        return found

    def _try(self, name: str, op: str, told: dict[str, Any]) -> Any:
        try:
            return self.hosts[name].do(op, **told)
        except BaseException as error:
            return error

    def begin(self) -> None:
        """Listen, connect and start, as the controller has them do."""
        for name, host in self.hosts.items():
            host.do("load_listen", **self.told(name))
        self.each("load_connect")
        self.each("load_start", start_ns=clock.now_ns() + S_NS // 20)

    def end(self) -> tuple[bytes, dict[str, Any]]:
        """Stop all, then end all; return records and outcome as the controller puts them together."""
        self.each("load_stop")
        ended: dict[str, Blob] = self.each("load_end")
        recorded = b"".join(data[: told["frames_bytes"]] for told, data in ended.values())
        return recorded, {
            "nodes": list(self.addresses),
            "interfaces": {
                node: its for told, _ in ended.values() for node, its in told["interfaces"].items()
            },
            "workload": points.merged(told["workload"] for told, _ in ended.values()),
            "parts": ended,
        }

    def drop(self) -> None:
        for host in self.hosts.values():
            host.do("load_drop")


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Callable[..., Both]]:
    """Return a maker of loads on two hosts; what is left of them at the end is dropped."""
    made: list[Both] = []

    def make(*flows: dict[str, Any], **told: Any) -> Both:
        made.append(Both(tmp_path, *flows, **told))
        return made[-1]

    yield make
    for one in made:
        one.drop()


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until something is so; not longer than 20 seconds."""
    deadline_ns = clock.now_ns() + 20 * S_NS
    while not condition() and clock.now_ns() < deadline_ns:
        time.sleep(0.005)
    assert condition()


def test_flows_of_a_size_end_where_they_end(both: Callable[..., Both]) -> None:
    one = both({"bytes": 300_001}, {"bytes": 5_000}, {"bytes": 70_000, "src": "rcv", "dst": "snd"})
    one.begin()
    wait_for(lambda: all(host.do("load_wait", timeout_s=1)["finished"] for host in one.hosts.values()))
    _recorded, outcome = one.end()
    flows = outcome["workload"]["flows"]
    assert [flow["flow"] for flow in flows] == [0, 1, 2]
    assert [flow["port"] for flow in flows] == [20000, 20001, 20002]
    assert all(0 < flow["finished_ns"] < 20 * S_NS for flow in flows)
    assert outcome["workload"]["client"] == "sender"


def test_a_host_speaks_only_of_the_flows_that_end_there(both: Callable[..., Both]) -> None:
    one = both({"bytes": 1000}, {"src": "rcv", "dst": "snd"})
    one.begin()
    wait_for(lambda: one.hosts["rcv"].do("load_wait", timeout_s=0.1)["finished"])
    assert not one.hosts["snd"].do("load_wait", timeout_s=0.1)["finished"]
    _recorded, outcome = one.end()
    assert [flow["finished_ns"] is None for flow in outcome["workload"]["flows"]] == [False, True]


def test_records_of_both_hosts_are_those_of_one_network(both: Callable[..., Both]) -> None:
    one = both({}, {"start_ns": S_NS // 5})
    one.begin()
    wait_for(lambda: all(host.do("load_wait", timeout_s=1)["over"] for host in one.hosts.values()))
    recorded, outcome = one.end()
    found = records.decode(recorded, outcome, bottlenecks=[])
    seen = {(row["flow"], row["end"]) for row in found.samples}
    assert seen == {(flow, end) for flow in (0, 1) for end in ("sender", "receiver")}
    for end, column in (("sender", "tcpi_bytes_sent"), ("receiver", "tcpi_bytes_received")):
        counts = [row[column] for row in found.samples if (row["flow"], row["end"]) == (0, end)]
        assert counts == sorted(counts)
        assert counts[-1] > 0
    late = [row["t_s"] for row in found.samples if row["flow"] == 1]
    assert min(late) >= 0.2


def test_only_sockets_between_the_two_addresses_are_recorded(both: Callable[..., Both]) -> None:
    """A host has sockets of its own, and what they are is nobody's business here."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        one = both({})
        one.begin()
        recorded, outcome = one.end()
    assert one.addresses["snd"] in addresses_in(recorded)
    assert addresses_in(recorded) == set(one.addresses.values())
    assert outcome["parts"]["snd"].result["frames_bytes"] > 0


def addresses_in(recorded: bytes) -> set[str]:
    """Return the addresses of all sockets in some records; struct inet_diag_sockid."""
    found = set()
    for kind, _node, _at_ns, payload in frames.unpack(recorded):
        if kind == frames.SOCKETS:
            for number, body in netlink.messages(payload):
                if number == netlink.SOCK_DIAG_BY_FAMILY:
                    found |= {socket.inet_ntoa(body[8:12]), socket.inet_ntoa(body[24:28])}
    return found


def test_requests_are_timed_where_they_are_asked(both: Callable[..., Both]) -> None:
    told = {"request_bytes": 100, "response_bytes": 20_000, "think_ns": 0}
    one = both({}, {}, kind="request", workload=told)
    one.begin()
    time.sleep(0.2)
    recorded, outcome = one.end()
    found = records.decode(recorded, outcome, bottlenecks=[])
    assert {row["flow"] for row in found.delays} == {0, 1}
    assert all(row["kind"] == "request" and row["delay_s"] > 0 for row in found.delays)
    assert outcome["workload"]["client"] == "receiver"


def test_a_stream_is_joined_from_what_each_clock_saw(
    both: Callable[..., Both], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "_SO_RCVBUFFORCE", socket.SO_RCVBUF)  # which needs no root
    probe = {"kind": "probe", "src": "snd", "dst": "rcv", "gap_ns": 10_000_000, "ip_bytes": 64}
    one = both(streams=[probe])
    one.begin()
    time.sleep(0.3)
    one.each("load_stop")
    parts = one.each("load_end")
    sent: dict[int, list[int]] = {}
    arrived: dict[int, dict[int, int]] = {}
    for told, data in parts.values():
        points.take_streams(told["streams"], data[told["frames_bytes"] :], sent, arrived)
    taken = stream.joined(sent[0], arrived[0], 5_000_000)
    assert len(taken) >= 10
    assert min(took for _sent, took in taken if took != stream.LOST) == 5_000_000
    assert all(number * 10_000_000 <= at_ns for number, (at_ns, _took) in enumerate(taken))


def test_a_load_that_was_never_begun_is_dropped(both: Callable[..., Both]) -> None:
    one = both({}, {"bytes": 10**9})
    for name, host in one.hosts.items():
        host.do("load_listen", **one.told(name))
    one.each("load_connect")
    began_ns = clock.now_ns()
    one.drop()
    assert clock.now_ns() - began_ns < 5 * S_NS
    with pytest.raises(LoadFailed, match="there is no load on this host"):
        one.hosts["snd"].do("load_wait", timeout_s=1)


def test_nothing_of_an_ended_load_goes_on(both: Callable[..., Both]) -> None:
    """A host would send on what is in its buffers, into the next point: here nobody reads it."""
    one = both({})
    sender = one.hosts["snd"]
    with socket.create_server((one.addresses["rcv"], 5001)) as server:
        sender.do("load_listen", **one.told("snd"))
        sender.do("load_connect")
        sender.do("load_start", start_ns=clock.now_ns())
        unread, _ = server.accept()
        time.sleep(0.2)
        sender.do("load_stop")
        sender.do("load_end")
        with unread, contextlib.closing(SocketProbe((one.addresses["snd"], one.addresses["rcv"]))) as probe:
            assert list(tcpinfo.decode(probe.read())) == []
            with pytest.raises(ConnectionResetError):
                read_all(unread)


def read_all(end: socket.socket) -> None:
    """Read until the other end has no more."""
    while end.recv(2**20):
        pass


def test_a_stranger_is_sent_away(both: Callable[..., Both]) -> None:
    one = both({"bytes": 1000})
    for name, host in one.hosts.items():
        host.do("load_listen", **one.told(name))
    strangers = []
    for address in ("127.0.0.1", one.addresses["snd"]):  # from elsewhere, and from another port
        stranger = socket.socket()
        stranger.bind((address, 0))
        stranger.connect((one.addresses["rcv"], 5001))
        strangers.append(stranger)
    one.each("load_connect")
    one.each("load_start", start_ns=clock.now_ns())
    wait_for(lambda: one.hosts["rcv"].do("load_wait", timeout_s=0.1)["finished"])
    for stranger in strangers:
        with stranger:
            stranger.settimeout(5)
            with contextlib.suppress(ConnectionResetError):
                assert stranger.recv(1) == b""
    one.end()


class TestWhatIsNotThere:
    def test_a_sender_without_a_receiver_says_which_port(
        self, both: Callable[..., Both], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(workloads, "APART_S", 0.5)
        one = both({})
        sender = one.hosts["snd"]
        sender.do("load_listen", **one.told("snd"))
        with pytest.raises(
            LoadFailed, match=r"flow 0 could not connect: Connection refused; port 5001 of rcv has to be open"
        ):
            sender.do("load_connect")

    def test_a_receiver_without_a_sender_says_where_nothing_came(
        self, both: Callable[..., Both], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(workloads, "APART_S", 0.3)
        one = both({})
        receiver = one.hosts["rcv"]
        receiver.do("load_listen", **one.told("rcv"))
        with pytest.raises(LoadFailed, match=r"no connection came to 127\.\S+ port 5001 within 0.3 s"):
            receiver.do("load_connect")

    def test_a_port_that_somebody_has_is_named(self, both: Callable[..., Both]) -> None:
        one = both({})
        with (
            socket.create_server((one.addresses["rcv"], 5001)),
            pytest.raises(OSError, match="port 5001 cannot be had"),
        ):
            one.hosts["rcv"].do("load_listen", **one.told("rcv"))

    def test_a_flow_that_fails_in_the_middle_fails_the_load(self, both: Callable[..., Both]) -> None:
        one = both({}, {"start_ns": S_NS // 10})
        for name, host in one.hosts.items():
            host.do("load_listen", **one.told(name))
        one.each("load_connect")
        with socket.socket() as there:
            there.bind((one.addresses["snd"], 20001))
            one.each("load_start", start_ns=clock.now_ns())
            time.sleep(0.3)
            one.each("load_stop")
        with pytest.raises(RuntimeError, match=r"flow 1 could not connect: .*port 20001 cannot be had"):
            one.each("load_end")


def test_parts_of_streams_are_read_in_their_order() -> None:
    told = [{"kind": "udp", "sent": 2, "arrived": 0}, {"kind": "probe", "sent": 0, "arrived": 2}]
    blob = array.array("q", [5, 6, 0, 100, 3, 130]).tobytes()
    sent: dict[int, list[int]] = {}
    arrived: dict[int, dict[int, int]] = {}
    points.take_streams(told, blob, sent, arrived)
    assert (sent, arrived) == ({0: [5, 6]}, {1: {0: 100, 3: 130}})


def test_joined_counts_from_the_least_delay() -> None:
    """Whatever the clocks show: they are 10^18 apart here."""
    far = 10**18
    taken = stream.joined([0, 10, 20, 30], {0: far + 7, 1: far + 15, 3: far + 90}, 1000)
    assert taken == [(0, 1002), (10, 1000), (20, stream.LOST), (30, 1055)]
    assert stream.joined([0, 10], {}, 1000) == [(0, stream.LOST), (10, stream.LOST)]
    assert stream.joined([0], {0: far, 9: far}, 3) == [(0, 3)]  # a number that was never sent


def test_an_end_knows_whether_it_waits_for_others() -> None:
    assert workloads.Here(None).timeout_s is None
    assert workloads.Here(["snd"]).timeout_s == workloads.APART_S
    assert workloads.Here(["snd"]).has("snd")
    assert not workloads.Here(["snd"]).has("rcv")
    assert bulk.Bulk({}, {"flows": []}, ["snd"]).finished() is False
