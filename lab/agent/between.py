"""What two hosts measure of the path between them: path MTU, RTT, clocks, packets sent in one go.

The agent on each host does its part; whoever drives both puts the answers
together (see `lab.remote.measure`). RFC 6349 has a path measured in this order
before any throughput is: path MTU, base RTT, bottleneck rate.

The operations take the host (see `lab.agent.hostops`) and their arguments, and
return JSON. Standard library of Python 3.8: this is
pushed to other hosts.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

from lab import clock, netlink
from lab.agent.pathcheck import Train, stamped
from lab.probes.queues import QueueProbe
from lab.workloads import LoadFailed

ECHO_PORT, TRAIN_PORT = 5005, 5006
"""UDP: what the other host's agent answers, and what trains are sent to."""
TOKEN_BYTES = 16

LEAST_MTU_BYTES = 576
"""What every IPv4 host takes (RFC 791)."""

_HEADERS_BYTES = 28
_PROBE = struct.Struct(">I")
_ANSWER = struct.Struct(">Iq")
_TRIES = 3
_IP_MTU_DISCOVER, _IP_PMTUDISC_PROBE = 10, 3  # include/uapi/linux/in.h
_SO_TIMESTAMPNS = 35
_ECHO_REQUEST, _ECHO_REPLY = 8, 0
_IP_HEADER_BYTES = 20
_LAST_PORT = 60999


class Responder:
    """Answers probes that carry a token: their number, and what the clock here showed when they came.

    Nobody can know the token but the two agents and who drives them; whatever
    else comes to the port is not answered.
    """

    def __init__(self, address: str, other: str, token: bytes) -> None:
        self._other, self._token = other, token
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.bind((address, ECHO_PORT))
        except OSError as refused:
            self._socket.close()
            raise OSError(
                refused.errno, f"{address} UDP port {ECHO_PORT} cannot be had: {refused.strerror}"
            ) from refused
        self._ended = False
        self._thread = threading.Thread(target=self._answer, daemon=True)
        self._thread.start()

    def _answer(self) -> None:
        while not self._ended:
            with contextlib.suppress(OSError):
                data, sender = self._socket.recvfrom(TOKEN_BYTES + _PROBE.size)
                came_ns = clock.now_ns()
                if sender is None:
                    return  # shut down
                whole = sender[0] == self._other and len(data) == TOKEN_BYTES + _PROBE.size
                if whole and data[:TOKEN_BYTES] == self._token:
                    (number,) = _PROBE.unpack_from(data, TOKEN_BYTES)
                    self._socket.sendto(self._token + _ANSWER.pack(number, came_ns), sender)

    def end(self) -> None:
        """Answer no more."""
        self._ended = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RD)  # wakes the thread
        self._thread.join()
        self._socket.close()


class Asker:
    """Sends probes to the other host's responder and waits for the answers."""

    def __init__(self, told: dict[str, Any]) -> None:
        self._token = bytes.fromhex(told["token"])
        self._timeout_s: float = told["timeout_s"]
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((told["own"], 0))
        self._socket.connect((told["other"], ECHO_PORT))
        self._number = 0

    def dont_fragment(self) -> None:
        """Have probes lost where they are too large, by us and by every router, whatever is known so far."""
        self._socket.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_PROBE)

    def ask(self, ip_bytes: int = 0) -> tuple[int, int, int] | None:
        """Send a probe that is an IP packet of so many bytes; return (sent, seen there, answered), ns.

        None where no answer came in time. The one in the middle is by the other host's clock.
        """
        self._number += 1
        data = self._token + _PROBE.pack(self._number)
        sent_ns = clock.now_ns()
        try:
            self._socket.send(data.ljust(ip_bytes - _HEADERS_BYTES, b"\0"))
        except OSError as refused:
            if refused.errno in (errno.EMSGSIZE, errno.ECONNREFUSED):
                return None
            raise
        deadline_ns = sent_ns + int(self._timeout_s * 1e9)
        while True:
            left_s = (deadline_ns - clock.now_ns()) / 1e9
            if left_s <= 0:
                return None
            self._socket.settimeout(left_s)
            try:
                answer = self._socket.recv(64)
            except socket.timeout:  # noqa: UP041 (Python 3.8 knows no other name)
                return None
            except OSError:
                continue  # what a router said of an earlier probe
            now_ns = clock.now_ns()
            if len(answer) == TOKEN_BYTES + _ANSWER.size and answer[:TOKEN_BYTES] == self._token:
                number, seen_ns = _ANSWER.unpack_from(answer, TOKEN_BYTES)
                if number == self._number:
                    return sent_ns, seen_ns, now_ns

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def _kept(host: Any) -> dict[str, Any]:
    """Return what operations keep on a host from one to the next."""
    kept: dict[str, Any] = host.__dict__.setdefault("kept_between", {})
    return kept


def echo_open(host: Any, told: dict[str, Any]) -> dict[str, Any]:
    """Begin to answer the other host's probes. told: `own`, `other` (addresses), `token` (hex)."""
    echo_close(host, {})
    _kept(host)["responder"] = Responder(told["own"], told["other"], bytes.fromhex(told["token"]))
    return {"port": ECHO_PORT}


def echo_close(host: Any, told: dict[str, Any]) -> dict[str, Any]:
    """Answer no more, and let go of a train's socket."""
    del told
    responder, sink = (_kept(host).pop(name, None) for name in ("responder", "sink"))
    if responder is not None:
        responder.end()
    if sink is not None:
        sink[1].close()
    return {}


def path_mtu(host: Any, told: dict[str, Any]) -> dict[str, Any]:
    """Return the largest IP packet that comes through to the other host unbroken, bytes: `mtu_bytes`.

    told: `own`, `other`, `token`, `timeout_s` for one answer, `largest`: where to
    begin, the interface's MTU. Probes of the sizes themselves, as packetization
    layer path MTU discovery has it (RFC 4821, RFC 8899), so a router that says
    nothing of what it drops does not mislead it. Raises LoadFailed where no
    probe at all is answered.
    """
    del host
    asker = Asker(told)
    try:
        asker.dont_fragment()

        def passes(size: int) -> bool:
            return any(asker.ask(size) is not None for _ in range(_TRIES))

        largest = told["largest"]
        if passes(largest):
            return {"mtu_bytes": largest}
        if not passes(LEAST_MTU_BYTES):
            raise LoadFailed(
                f"{told['other']} answers no probe from {told['own']}: UDP port {ECHO_PORT} has to be open"
                " between the hosts of a test"
            )
        low, high = LEAST_MTU_BYTES, largest
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if passes(middle) else (low, middle)
        return {"mtu_bytes": low}
    finally:
        asker.close()


def clock_offset(host: Any, told: dict[str, Any]) -> dict[str, Any]:
    """Return by how much the other host's clock is ahead: `offset_ns`, and within what: `error_ns`.

    told: `own`, `other`, `token`, `timeout_s`, `count`. As NTP does it (RFC 5905):
    of the exchange that took least, the middle; off by no more than half of what
    it took. Raises LoadFailed where nothing is answered.
    """
    del host
    asker = Asker(told)
    try:
        asked = [asker.ask() for _ in range(told["count"])]
    finally:
        asker.close()
    answered = [one for one in asked if one is not None]
    if not answered:
        raise LoadFailed(
            f"{told['other']} answers no probe from {told['own']}: UDP port {ECHO_PORT} has to be open"
            " between the hosts of a test"
        )
    sent_ns, seen_ns, back_ns = min(answered, key=lambda one: one[2] - one[0])
    return {"offset_ns": seen_ns - (sent_ns + back_ns) // 2, "error_ns": (back_ns - sent_ns) // 2}


def pings(host: Any, told: dict[str, Any]) -> dict[str, Any]:
    """Return `rtts_s` of those echo requests that were answered, `lost` of the others, `by` whom.

    told: `own`, `other`, `count`, `gap_s` between two, `timeout_s` for the last.
    The kernel there answers, no process (RFC 792), and what asking costs without
    a path is taken off, as in `lab.agent.pathcheck`. Where a host answers no echo
    request, its agent does if `token` is told (`by` is then "udp").
    """
    rtts = _echoes(told["own"], told["other"], told)
    if rtts:
        own = min(_echoes(told["own"], told["own"], {**told, "gap_s": 0.001}), default=0.0)
        return {
            "rtts_s": [max(0.0, rtt - own) for rtt in rtts],
            "lost": told["count"] - len(rtts),
            "by": "icmp",
        }
    if "token" not in told:
        return {"rtts_s": [], "lost": told["count"], "by": "icmp"}
    del host
    asker = Asker(told)
    try:
        asked = [asker.ask() for _ in range(told["count"])]
    finally:
        asker.close()
    answered = [one for one in asked if one is not None]
    return {
        "rtts_s": [(back_ns - sent_ns) / 1e9 for sent_ns, _seen, back_ns in answered],
        "lost": len(asked) - len(answered),
        "by": "udp",
    }


def _echoes(own: str, other: str, told: dict[str, Any]) -> list[float]:
    """Return the RTTs of echo requests that are sent at a steady pace, s."""
    ident = int.from_bytes(os.urandom(2), "big")
    sent_at: dict[int, int] = {}
    rtts: list[float] = []
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as channel:
        channel.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        channel.bind((own, 0))
        next_ns = clock.now_ns()
        for number in range(told["count"]):
            sent_at[number] = time.time_ns()
            with contextlib.suppress(OSError):  # refused by a router or a rule here: lost like any other
                channel.sendto(echo_request(ident, number), (other, 0))
            next_ns += int(told["gap_s"] * 1e9)
            _gather(channel, ident, sent_at, rtts, next_ns)
            clock.sleep_until_ns(next_ns)
        _gather(channel, ident, sent_at, rtts, clock.now_ns() + int(told["timeout_s"] * 1e9))
    return rtts


def _gather(
    channel: socket.socket, ident: int, sent_at: dict[int, int], rtts: list[float], until_ns: int
) -> None:
    """Take answers until an instant, or until none is missing. sent_at: those that are; answered ones go."""
    while sent_at:
        left_s = (until_ns - clock.now_ns()) / 1e9
        if left_s <= 0:
            return
        channel.settimeout(left_s)
        arrival = stamped(channel)
        if arrival is None:
            return
        data, came_ns = arrival
        kind, _code, _sum, its, number = struct.unpack_from(">BBHHH", data, _IP_HEADER_BYTES)
        if kind == _ECHO_REPLY and its == ident and number in sent_at:
            rtts.append((came_ns - sent_at.pop(number)) / 1e9)


def echo_request(ident: int, number: int) -> bytes:
    """Return an ICMP echo request (RFC 792) with its checksum (RFC 1071)."""
    total = (_ECHO_REQUEST << 8) + ident + number
    total = (total & 0xFFFF) + (total >> 16)
    return struct.pack(">BBHHH", _ECHO_REQUEST, 0, ~total & 0xFFFF, ident, number)


def train_open(host: Any, told: dict[str, Any]) -> dict[str, Any]:
    """Be ready for a train. told: `own`, `other`, `packets`, `mtu_bytes`, `timeout_s`."""
    sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        train = Train(told["packets"], told["mtu_bytes"], TRAIN_PORT)
        train.listen(sink, told["own"], told["timeout_s"])
        sink.connect((told["other"], TRAIN_PORT))  # nobody else is heard
    except OSError as refused:
        sink.close()
        raise OSError(
            refused.errno, f"{told['own']} UDP port {TRAIN_PORT} cannot be had: {refused.strerror}"
        ) from refused
    _kept(host)["sink"] = (train, sink)
    return {"port": TRAIN_PORT}


def train_send(host: Any, told: dict[str, Any]) -> dict[str, Any]:
    """Send a train; return `sent_ns`, how long that took. told: as in `train_open`, and `burst`."""
    del host
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as source:
        source.bind((told["own"], TRAIN_PORT))
        train = Train(told["packets"], told["mtu_bytes"], TRAIN_PORT, told["burst"])
        return {"sent_ns": train.send(source, told["other"])}


def train_read(host: Any, told: dict[str, Any]) -> dict[str, Any]:
    """Return the `arrivals` of a train: [number, ns by the time of day here]."""
    del told
    train, sink = _kept(host).pop("sink")
    with sink:
        return {"arrivals": train.arrivals(sink)}


def ports(host: Any, told: dict[str, Any]) -> dict[str, Any]:
    """Return `first`, from which on `count` TCP ports in a row are free at `own`; from `first` on.

    One whose last connection ended within the minute is not free (RFC 9293,
    TIME-WAIT). Raises LoadFailed where there are no such.
    """
    del host
    first: int = told["first"]
    port = first
    while port - first < told["count"]:
        if port > _LAST_PORT:
            raise LoadFailed(
                f"{told['own']} has no {told['count']} free TCP ports in a row from {told['first']} on"
            )
        with socket.socket() as trial:
            try:
                trial.bind((told["own"], port))
            except OSError as refused:
                if refused.errno != errno.EADDRINUSE:
                    raise
                first = port + 1
        port += 1
    return {"first": first}


def forget_words(other: str) -> list[str]:
    """Return the command that forgets what TCP here has learned of another host in earlier connections."""
    return ["ip", "tcp_metrics", "flush", other]


def forget(host: Any, told: dict[str, Any]) -> None:
    """Run that command. Where there is nothing to forget it fails, and that is as well. told: `other`."""
    del host
    subprocess.run(
        forget_words(told["other"]),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=told["timeout_s"],
        check=False,
    )


def queues(host: Any, told: dict[str, Any]) -> dict[str, Any]:
    """Return what queues there are, as the kernel tells it: netlink dumps, hex. told: `interfaces`.

    `qdiscs` of all interfaces, and of each that is told its `index` and its `classes`.
    """
    del host
    found = {}
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as channel:
        for name in told["interfaces"]:
            index = socket.if_nametoindex(name)
            body = struct.pack("=BxxxiIII", 0, index, 0, 0, 0)
            classes = netlink.dump(channel, netlink.request(netlink.RTM_GETTCLASS, body))
            found[name] = {"index": index, "classes": classes.hex()}
    with contextlib.closing(QueueProbe()) as probe:
        return {"qdiscs": probe.read().hex(), "interfaces": found}


OPS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "forget": forget,
    "echo_open": echo_open,
    "echo_close": echo_close,
    "path_mtu": path_mtu,
    "clock_offset": clock_offset,
    "pings": pings,
    "train_open": train_open,
    "train_send": train_send,
    "train_read": train_read,
    "ports": ports,
    "queues": queues,
}
"""Every operation by its name."""
