"""What two agents do to measure the path between them: here over loopback, between two of its addresses."""

from __future__ import annotations

import itertools
import os
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.agent import between
from lab.agent.between import Asker
from lab.workloads import LoadFailed

NUMBERS = itertools.count(1)
TOKEN = "00112233445566778899aabbccddeeff"


class Host:
    """A host as operations see it: something that they may keep things on."""


@pytest.fixture
def pair() -> tuple[str, str]:
    """Return two addresses of loopback that no other test has."""
    own = f"127.{200 + os.getpid() // 250 % 50}.{os.getpid() % 250}"
    number = next(NUMBERS)
    return f"{own}.{number}", f"{own}.{100 + number}"


@pytest.fixture
def told(pair: tuple[str, str]) -> dict[str, Any]:
    """Return what the one end is told of the other."""
    return {"own": pair[0], "other": pair[1], "token": TOKEN, "timeout_s": 0.3}


@pytest.fixture
def answering(pair: tuple[str, str]) -> Iterator[Host]:
    """Have the other end answer for a test."""
    host = Host()
    between.echo_open(host, {"own": pair[1], "other": pair[0], "token": TOKEN})
    yield host
    between.echo_close(host, {})


class TestPathMtu:
    @pytest.mark.usefixtures("answering")
    def test_is_the_interface_s_where_that_comes_through(self, told: dict[str, Any]) -> None:
        assert between.path_mtu(None, {**told, "largest": 9000}) == {"mtu_bytes": 9000}

    @pytest.mark.parametrize("largest", [9000, 1500, 1451])
    @pytest.mark.parametrize("real", [1450, 576, 577, 1449])
    def test_is_the_largest_that_comes_through(
        self, told: dict[str, Any], monkeypatch: pytest.MonkeyPatch, largest: int, real: int
    ) -> None:
        """On paths that drop what is larger and say nothing of it."""
        asked: list[int] = []

        def ask(_self: Asker, ip_bytes: int = 0) -> tuple[int, int, int] | None:
            asked.append(ip_bytes)
            return (1, 2, 3) if ip_bytes <= real else None

        monkeypatch.setattr(Asker, "ask", ask)
        assert between.path_mtu(None, {**told, "largest": largest}) == {"mtu_bytes": real}
        assert len(asked) < 60

    def test_a_lost_probe_is_asked_again(self, told: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
        turn = itertools.count()

        def ask(_self: Asker, ip_bytes: int = 0) -> tuple[int, int, int] | None:
            return (1, 2, 3) if ip_bytes <= 1400 and next(turn) % 3 else None

        monkeypatch.setattr(Asker, "ask", ask)
        assert between.path_mtu(None, {**told, "largest": 1500}) == {"mtu_bytes": 1400}

    def test_where_nobody_answers_the_port_is_named(self, told: dict[str, Any]) -> None:
        with pytest.raises(LoadFailed, match=r"answers no probe from 127\.\S+: UDP port 5005 has to be open"):
            between.path_mtu(None, {**told, "timeout_s": 0.01, "largest": 1500})


class TestResponder:
    @pytest.mark.usefixtures("answering")
    def test_answers_with_the_number_and_its_clock(self, told: dict[str, Any]) -> None:
        asker = Asker(told)
        answered = asker.ask()
        asker.close()
        assert answered is not None
        sent_ns, seen_ns, back_ns = answered
        assert sent_ns <= seen_ns <= back_ns  # one clock here

    @pytest.mark.usefixtures("answering")
    @pytest.mark.parametrize(
        "packet",
        [
            b"",
            b"x",
            bytes.fromhex(TOKEN),
            bytes(16) + struct.pack(">I", 1),
            bytes.fromhex(TOKEN)[::-1] + b"\0\0\0\1",
        ],
    )
    def test_does_not_answer_whom_it_does_not_know(self, pair: tuple[str, str], packet: bytes) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.bind((pair[0], 0))
            stranger.settimeout(0.1)
            stranger.sendto(packet, (pair[1], between.ECHO_PORT))
            with pytest.raises(TimeoutError):
                stranger.recv(100)

    @pytest.mark.usefixtures("answering")
    def test_does_not_answer_from_elsewhere(self, pair: tuple[str, str]) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.bind(("127.0.0.1", 0))
            stranger.settimeout(0.1)
            stranger.sendto(bytes.fromhex(TOKEN) + struct.pack(">I", 1), (pair[1], between.ECHO_PORT))
            with pytest.raises(TimeoutError):
                stranger.recv(100)

    def test_an_answer_to_another_question_is_none(self, told: dict[str, Any], pair: tuple[str, str]) -> None:
        """Late, repeated, or made up by somebody who does not know the token."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there:
            there.bind((pair[1], between.ECHO_PORT))
            asker = Asker({**told, "timeout_s": 0.05})
            for answer in (TOKEN + "00000009" + "00" * 8, "ff" * 28, "", TOKEN):
                there.sendto(bytes.fromhex(answer), asker._socket.getsockname())
            assert asker.ask() is None
            asker.close()

    def test_a_port_that_somebody_has_is_named(self, pair: tuple[str, str]) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there:
            there.bind((pair[1], between.ECHO_PORT))
            with pytest.raises(
                OSError, match=r"127\.\S+ UDP port 5005 cannot be had: Address already in use"
            ):
                between.echo_open(Host(), {"own": pair[1], "other": pair[0], "token": TOKEN})

    def test_is_there_again_after_it_was_opened_twice(self, answering: Host, pair: tuple[str, str]) -> None:
        between.echo_open(answering, {"own": pair[1], "other": pair[0], "token": TOKEN})
        between.echo_close(answering, {})
        between.echo_open(answering, {"own": pair[1], "other": pair[0], "token": TOKEN})


class TestClockOffset:
    @pytest.mark.usefixtures("answering")
    def test_of_one_clock_is_nothing(self, told: dict[str, Any]) -> None:
        found = between.clock_offset(None, {**told, "count": 10})
        assert abs(found["offset_ns"]) <= found["error_ns"]

    @given(st.integers(-(10**15), 10**15), st.lists(st.integers(1, 10**9), min_size=1))
    def test_is_taken_from_the_shortest_exchange(self, ahead_ns: int, waits_ns: list[int]) -> None:
        """Half of what it waited is on each way here, so it is exact."""
        exchanges = iter([(100, 100 + ahead_ns + wait // 2, 100 + wait) for wait in waits_ns])
        asked = pytest.MonkeyPatch()
        with asked.context() as patch:
            patch.setattr(Asker, "__init__", lambda _self, _told: None)
            patch.setattr(Asker, "ask", lambda _self: next(exchanges))
            patch.setattr(Asker, "close", lambda _self: None)
            found = between.clock_offset(None, {"own": "", "other": "", "count": len(waits_ns)})
        assert abs(found["offset_ns"] - ahead_ns) <= 1
        assert found["error_ns"] == min(waits_ns) // 2


@given(st.integers(0, 0xFFFF), st.integers(0, 0xFFFF))
def test_an_echo_request_has_the_internet_s_checksum(ident: int, number: int) -> None:
    """The sum of all its words is then all ones (RFC 1071)."""
    words = struct.unpack(">4H", between.echo_request(ident, number))
    total = sum(words)
    assert (total & 0xFFFF) + (total >> 16) == 0xFFFF
    assert words[0] == 0x0800
    assert words[2:] == (ident, number)


class TestPorts:
    def test_are_those_asked_for_where_they_are_free(self, pair: tuple[str, str]) -> None:
        assert between.ports(None, {"own": pair[0], "first": 23000, "count": 50}) == {"first": 23000}
        assert between.ports(None, {"own": pair[0], "first": 23000, "count": 0}) == {"first": 23000}

    def test_are_behind_those_that_somebody_has(self, pair: tuple[str, str]) -> None:
        with socket.create_server((pair[0], 23010)), socket.create_server((pair[0], 23033)):
            assert between.ports(None, {"own": pair[0], "first": 23000, "count": 30}) == {"first": 23034}

    def test_are_not_those_of_a_connection_that_has_just_ended(self, pair: tuple[str, str]) -> None:
        with socket.create_server((pair[1], 23100)) as server:
            asking = socket.create_connection(server.getsockname(), source_address=(pair[0], 23000))
            answering, _ = server.accept()
            asking.close()
            answering.close()
        assert between.ports(None, {"own": pair[0], "first": 23000, "count": 1}) == {"first": 23001}

    def test_are_not_there_without_end(self, pair: tuple[str, str]) -> None:
        with pytest.raises(LoadFailed, match="has no 10 free TCP ports in a row from 60995 on"):
            between.ports(None, {"own": pair[0], "first": 60995, "count": 10})


def test_queues_are_told_by_interface() -> None:
    found = between.queues(None, {"interfaces": ["lo"]})
    assert found["interfaces"]["lo"]["index"] == socket.if_nametoindex("lo")
    assert bytes.fromhex(found["qdiscs"])


def test_every_operation_is_documented() -> None:
    for name, operation in between.OPS.items():
        assert operation.__name__ == name
        assert operation.__doc__


@pytest.fixture
def ip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """Put a program in the place of `ip`; return what gives the words that it was called with."""
    tool = tmp_path / "ip"
    tool.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/called\nexit 2\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return lambda: (tmp_path / "called").read_text().strip()


def test_forgetting_where_there_is_nothing_to_forget_is_well(ip: Callable[[], str]) -> None:
    """`ip` ends with 2 then."""
    between.forget(None, {"other": "192.0.2.9", "timeout_s": 10})
    assert ip() == "tcp_metrics flush 192.0.2.9"
