"""Netlink framing: what is whole is walked, what is torn is refused."""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import netlink

BODIES = st.lists(st.tuples(st.integers(0, 2**16 - 1), st.binary(max_size=40)), max_size=6)
ATTRIBUTES = st.dictionaries(st.integers(0, 2**14 - 1), st.binary(max_size=40), max_size=6)


def message(kind: int, body: bytes) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, 2, 1, 4711) + body + b"\0" * (-len(body) % 4)


def attribute(kind: int, payload: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(payload), kind) + payload + b"\0" * (-len(payload) % 4)


class TestMessages:
    @given(BODIES)
    def test_walks_what_is_whole(self, bodies: list[tuple[int, bytes]]) -> None:
        data = b"".join(message(kind, body) for kind, body in bodies)
        assert list(netlink.messages(data)) == bodies

    @given(BODIES.filter(bool), st.data())
    def test_refuses_what_is_torn(self, bodies: list[tuple[int, bytes]], data: st.DataObject) -> None:
        whole = [message(kind, body) for kind, body in bodies]
        last, rest = whole[-1], b"".join(whole[:-1])
        padding = -len(bodies[-1][1]) % 4
        cut = data.draw(st.integers(1, len(last) - padding - 1))
        with pytest.raises(ValueError, match="torn at byte"):
            list(netlink.messages(rest + last[:cut]))

    def test_says_where_it_is_torn(self) -> None:
        data = message(20, b"whole") + message(20, b"torn" * 10)[:-1]
        with pytest.raises(ValueError, match="netlink message of 56 bytes torn at byte 24"):
            list(netlink.messages(data))

    @pytest.mark.parametrize("length", [0, 1, 15])
    def test_refuses_a_length_that_would_never_end(self, length: int) -> None:
        with pytest.raises(ValueError, match=f"netlink message of {length} bytes torn at byte 0"):
            list(netlink.messages(struct.pack("=IHHII", length, 20, 2, 1, 0)))

    @given(st.binary(max_size=100))
    def test_any_bytes_are_walked_or_refused(self, data: bytes) -> None:
        try:
            found = list(netlink.messages(data))
        except ValueError:
            return
        assert sum(16 + len(body) for _, body in found) <= len(data)


class TestAttributes:
    @given(ATTRIBUTES, st.integers(0, 20))
    def test_walks_what_is_whole(self, attributes: dict[int, bytes], offset: int) -> None:
        data = b"\xff" * offset + b"".join(attribute(kind, payload) for kind, payload in attributes.items())
        assert netlink.attributes(data, offset) == attributes

    def test_leaves_out_the_flags_of_a_type(self) -> None:
        nested, byte_order = 0x8000, 0x4000
        assert netlink.attributes(attribute(7 | nested | byte_order, b"x")) == {7: b"x"}

    def test_last_of_a_repeated_one_stays(self) -> None:
        assert netlink.attributes(attribute(1, b"a") + attribute(1, b"b")) == {1: b"b"}

    @pytest.mark.parametrize("length", [0, 3, 6, 65535])
    def test_refuses_what_is_torn(self, length: int) -> None:
        with pytest.raises(ValueError, match=f"netlink attribute 9 of {length} bytes torn at byte 8"):
            netlink.attributes(attribute(1, b"four") + struct.pack("=HH", length, 9) + b"x")

    @given(st.binary(max_size=60))
    def test_any_bytes_are_walked_or_refused(self, data: bytes) -> None:
        try:
            netlink.attributes(data)
        except ValueError:
            return


class TestRequest:
    def test_is_one_whole_message(self) -> None:
        body = b"0123456789"
        data = netlink.request(netlink.RTM_GETQDISC, body)
        assert list(netlink.messages(data)) == [(netlink.RTM_GETQDISC, body)]
        length, _kind, flags, _sequence, _port = struct.unpack_from("=IHHII", data)
        assert (length, flags) == (len(data), 0x301)

    def test_numbers_are_the_kernel_s(self, assert_in_c: Callable[[list[str], dict[str, int]], None]) -> None:
        headers = ["linux/netlink.h", "linux/rtnetlink.h", "linux/sock_diag.h"]
        names = ["NLMSG_ERROR", "NLMSG_DONE", "NLM_F_REQUEST", "NLM_F_DUMP"]
        names += ["RTM_GETLINK", "RTM_GETQDISC", "RTM_GETTCLASS", "SOCK_DIAG_BY_FAMILY"]
        assert_in_c(headers, {name: getattr(netlink, name) for name in names})
        assert_in_c(
            headers, {"sizeof(struct nlmsghdr)": 16, "sizeof(struct nlattr)": 4, "sizeof(struct tcmsg)": 20}
        )


class Channel:
    """A netlink socket that gives the answers it was made with."""

    def __init__(self, *answers: bytes) -> None:
        self.sent: list[bytes] = []
        self._answers = list(answers)

    def send(self, data: bytes, /) -> int:
        self.sent.append(data)
        return len(data)

    def recv(self, size: int, /) -> bytes:
        answer = self._answers.pop(0)
        assert len(answer) <= size
        return answer


class TestDump:
    DONE = message(netlink.NLMSG_DONE, struct.pack("=i", 0))

    def test_gathers_every_part(self) -> None:
        channel = Channel(message(20, b"one") + message(20, b"two"), message(20, b"three"), self.DONE)
        data = netlink.dump(channel, b"request")
        assert channel.sent == [b"request"]
        assert [body for kind, body in netlink.messages(data) if kind == 20] == [b"one", b"two", b"three"]

    def test_end_may_come_with_the_last_part(self) -> None:
        data = netlink.dump(Channel(message(20, b"one") + self.DONE), b"")
        assert next(netlink.messages(data)) == (20, b"one")

    def test_refusal_of_the_kernel_is_an_error_with_its_number(self) -> None:
        refusal = message(netlink.NLMSG_ERROR, struct.pack("=i", -errno.EPERM) + bytes(16))
        with pytest.raises(PermissionError):
            netlink.dump(Channel(refusal), b"")

    def test_torn_part_is_refused(self) -> None:
        with pytest.raises(ValueError, match="torn"):
            netlink.dump(Channel(message(20, b"long enough")[:-4]), b"")
