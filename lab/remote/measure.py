"""The path between two hosts, measured before any throughput is: RFC 6349, section 3.

In its order: path MTU, then base RTT, then bottleneck rate; each by the agents
of both hosts (see `lab.agent.between`). The rate is that of trains: packets sent
in one go leave the bottleneck at its rate, and how they arrive tells it. One
train tells little where others use the path, so there are several, and the rate
is their median.

Not here: throughput over buffers and flows, which the points of a run measure.
"""

from __future__ import annotations

import secrets
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

from lab import clock, units
from lab.errors import MeasurementError
from lab.qdisc import ETHERNET_HEADER_BYTES
from lab.remote.host import Host, parallel

PINGS = 100
PING_GAP_S = 0.02
TRAINS = 9

ANSWER_S = 2.0
"""How long to wait for one answer: more than any RTT that the lab knows, the Moon's aside."""

_FIRST_PACKETS, _MOST_PACKETS = 64, 8192
_TRAIN_S = 0.05
"""A train is to take so long on its way: against it what a card or a CPU gathers before it tells is short."""
_MOST_TRAIN_S = 2.0
_GROWTH = 4
_OVERFLOWN = 0.9
_BURSTS = (1, 8, 64)
_LEAST_ANSWER_S = 0.3
_SETTLED = 0.05
"""Where the halves of a train differ by less, no burst of a shaper hides its rate any more."""
_LEAST_FASTER = 2.0
_SPREAD = 0.1
"""Of the least of the trains' rates: from here on they disagree."""
_LEAST_INSTANTS = 4
_PAUSE_S = 0.1
_CALL_S = 60.0
_CLOCK_ROUNDS = 20


@dataclass(frozen=True)
class MeasuredPath:
    """What was measured of a path between two hosts.

    mtu_bytes: path MTU. rtts_s: idle RTTs in the order they were asked for; ping_loss: share that
    got no answer; rtt_by: who answered, the kernel ("icmp") or the agent ("udp"). rates_bps: of
    each train, as the lab counts (IP packets and 14 bytes); train_packets: in each; train_burst:
    that one call sent; train_loss: share of them that did not arrive. at_least: the sender was
    hardly faster, so the path may carry more.
    """

    mtu_bytes: int
    rtts_s: tuple[float, ...]
    ping_loss: float
    rtt_by: str
    rates_bps: tuple[float, ...]
    train_packets: int
    train_burst: int
    train_loss: float
    at_least: bool

    @property
    def base_rtt_s(self) -> float:
        """The least idle RTT, s: the one without any queue."""
        return min(self.rtts_s)

    @property
    def rate_bps(self) -> float | None:
        """The median of the trains' rates, bit/s; None where none was sent."""
        return statistics.median(self.rates_bps) if self.rates_bps else None

    @property
    def answer_s(self) -> float:
        """How long to wait for the next packet of a train, s."""
        return min(ANSWER_S, _LEAST_ANSWER_S + 4 * max(self.rtts_s))

    @property
    def bdp_bytes(self) -> float | None:
        """Bandwidth-delay product, bytes: what RFC 6349 sizes windows by."""
        return None if self.rate_bps is None else self.rate_bps * self.base_rtt_s / 8

    def told(self) -> dict[str, Any]:
        """Return it as JSON, with what follows from it."""
        return {
            **asdict(self),
            "rtts_s": list(self.rtts_s),
            "rates_bps": list(self.rates_bps),
            "base_rtt_s": self.base_rtt_s,
            "rate_bps": self.rate_bps,
            "bdp_bytes": self.bdp_bytes,
        }

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> MeasuredPath:
        """Return what `told` gave."""
        return cls(
            mtu_bytes=int(told["mtu_bytes"]),
            rtts_s=tuple(told["rtts_s"]),
            ping_loss=float(told["ping_loss"]),
            rtt_by=str(told["rtt_by"]),
            rates_bps=tuple(told["rates_bps"]),
            train_packets=int(told["train_packets"]),
            train_burst=int(told["train_burst"]),
            train_loss=float(told["train_loss"]),
            at_least=bool(told["at_least"]),
        )


@dataclass(frozen=True)
class Rates:
    """What trains told. Fields: see `MeasuredPath`."""

    rates_bps: tuple[float, ...]
    shape: TrainShape
    loss: float
    at_least: bool


@dataclass(frozen=True)
class TrainShape:
    """A train: how many packets of what size; timeout_s: for the next one; burst: that one call sends."""

    packets: int
    mtu_bytes: int
    timeout_s: float
    burst: int = 1


class Ends:
    """Both hosts of a path while it is measured: each is asked about the other.

    sender, receiver: (the host, its address in the test).
    """

    def __init__(self, sender: tuple[Host, str], receiver: tuple[Host, str]) -> None:
        self.sender, self.receiver = sender[0], receiver[0]
        self._addresses = (sender[1], receiver[1])
        self._token = secrets.token_hex(16)  # what only the two agents know

    def _at(self, host: Host) -> dict[str, str]:
        own, other = self._addresses if host is self.sender else self._addresses[::-1]
        return {"own": own, "other": other}

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Have the receiver's agent answer probes for the block."""
        self.receiver.call("echo_open", _CALL_S, token=self._token, **self._at(self.receiver))
        try:
            yield
        finally:
            self.receiver.call("echo_close", _CALL_S)

    def path_mtu_bytes(self, largest: int) -> int:
        """Return the path MTU, bytes, up to the sender's own. Needs `answering`."""
        told = {"token": self._token, "timeout_s": ANSWER_S / 2, "largest": largest}
        return int(self.sender.call("path_mtu", _CALL_S, **told, **self._at(self.sender))["mtu_bytes"])

    def pings(self, count: int, gap_s: float = PING_GAP_S) -> dict[str, Any]:
        """Return what `lab.agent.between.pings` does. Needs `answering`."""
        limit_s = _CALL_S + count * (gap_s + ANSWER_S)
        told = {"count": count, "gap_s": gap_s, "timeout_s": ANSWER_S, "token": self._token}
        found: dict[str, Any] = self.sender.call("pings", limit_s, **told, **self._at(self.sender))
        return found

    def clock_offset_ns(self) -> tuple[int, int]:
        """Return by how much the receiver's clock is ahead of the sender's, and within what.

        Needs `answering`.
        """
        told = {"token": self._token, "timeout_s": ANSWER_S, "count": _CLOCK_ROUNDS}
        limit_s = _CALL_S + _CLOCK_ROUNDS * ANSWER_S
        found = self.sender.call("clock_offset", limit_s, **told, **self._at(self.sender))
        return int(found["offset_ns"]), int(found["error_ns"])

    def train(self, shape: TrainShape) -> tuple[list[list[int]], int]:
        """Send one train; return the arrivals, (number, ns) each, and how long sending took, ns."""
        told = asdict(shape)
        limit_s = _CALL_S + shape.timeout_s
        self.receiver.call("train_open", limit_s, **told, **self._at(self.receiver))
        tasks = {
            "read": lambda: self.receiver.call("train_read", limit_s + _MOST_TRAIN_S),
            "send": lambda: self.sender.call("train_send", limit_s, **told, **self._at(self.sender)),
        }
        done = parallel(tasks)
        return done["read"]["arrivals"], int(done["send"]["sent_ns"])


def measure(ends: Ends, interface_mtu_bytes: int, *, trains: bool = True) -> MeasuredPath:
    """Return the path as measured. interface_mtu_bytes: of the sender, the most that it can send.

    trains: whether its rate is wanted. Raises MeasurementError where the path tells
    no RTT or no rate, EngineError where a host fails.
    """
    with ends.answering():
        mtu_bytes = ends.path_mtu_bytes(interface_mtu_bytes)
        echoed = ends.pings(PINGS)
    if not echoed["rtts_s"]:
        raise MeasurementError(
            f"{ends.receiver.name} answers neither pings nor probes from {ends.sender.name}:"
            " without its RTT a path cannot be measured"
        )
    timeout_s = min(ANSWER_S, _LEAST_ANSWER_S + 4 * max(echoed["rtts_s"]))
    first = TrainShape(_FIRST_PACKETS, mtu_bytes, timeout_s)
    rates = measure_rate(ends, first) if trains else Rates((), first, 0.0, at_least=False)
    return MeasuredPath(
        mtu_bytes=mtu_bytes,
        rtts_s=tuple(echoed["rtts_s"]),
        ping_loss=echoed["lost"] / PINGS,
        rtt_by=echoed["by"],
        rates_bps=rates.rates_bps,
        train_packets=rates.shape.packets,
        train_burst=rates.shape.burst,
        train_loss=rates.loss,
        at_least=rates.at_least,
    )


def remarks(path: MeasuredPath) -> Iterator[str]:
    """Yield what a reader of results over a path should know of it, a sentence each."""
    if path.rate_bps is not None:
        rate = units.human_rate(path.rate_bps)
        if path.at_least:
            yield (
                f"the path carries at least {rate}: the sender handed trains of {path.train_packets} packets"
                " over hardly faster, so they measured the sender"
            )
        low, high = min(path.rates_bps), max(path.rates_bps)
        if high > (1 + _SPREAD) * low:
            yield (
                f"{len(path.rates_bps)} trains gave rates from {units.human_rate(low)} to"
                f" {units.human_rate(high)}: something else uses the path, or a host is busy; it counts as"
                f" {rate}"
            )
    if path.ping_loss:
        yield f"{path.ping_loss:.0%} of the idle pings were not answered: the path loses packets by itself"


def measure_rate(ends: Ends, first: TrainShape) -> Rates:
    """Return what `TRAINS` trains tell of the rate, of the length and burst that the path needs.

    Raises MeasurementError where no train tells a rate.
    """
    shape = _fast_enough(ends, first)
    rates: list[float] = []
    arrived, slow = 0, False
    for _ in range(TRAINS):
        arrivals, sent_ns = settled(ends).train(shape)
        rate_bps = train_rate_bps(arrivals, shape.mtu_bytes)
        arrived += len(arrivals)
        if rate_bps is not None:
            rates.append(rate_bps)
            slow = slow or not faster(sent_ns, shape, rate_bps)
    if not rates:
        raise MeasurementError(
            f"none of {TRAINS} trains of {shape.packets} packets told the rate between {ends.sender.name} and"
            f" {ends.receiver.name}: {arrived} of {TRAINS * shape.packets} packets arrived; UDP port 5006 of"
            f" {ends.receiver.name} has to be open"
        )
    return Rates(tuple(rates), shape, 1 - arrived / (TRAINS * shape.packets), slow)


def _fast_enough(ends: Ends, first: TrainShape) -> TrainShape:
    """Return the train that the path needs, handed over in bursts only where the sender is too slow else."""
    for burst in _BURSTS:
        shape = _long_enough(ends, replace(first, burst=burst))
        arrivals, sent_ns = settled(ends).train(shape)
        rate_bps = train_rate_bps(arrivals, shape.mtu_bytes)
        if rate_bps is not None and faster(sent_ns, shape, rate_bps):
            return shape
    return _long_enough(ends, first)


def _long_enough(ends: Ends, first: TrainShape) -> TrainShape:
    """Return the train of the length that the path needs.

    Long in time, against what gathers packets before they are told of; and past
    the burst that a shaper lets through at once: both halves tell the same rate. A
    train that overflows the queue keeps the link busy as it is.
    """
    shape = first
    while shape.packets < _MOST_PACKETS:
        arrivals, _sent_ns = settled(ends).train(shape)
        rate_bps = train_rate_bps(arrivals, shape.mtu_bytes)
        if rate_bps is not None:
            took_s = len(arrivals) * packet_bits(shape.mtu_bytes) / rate_bps
            first_bps = train_rate_bps(arrivals[: len(arrivals) // 2 + 1], shape.mtu_bytes)
            even = first_bps is not None and abs(first_bps / rate_bps - 1) < _SETTLED
            overflown = len(arrivals) < _OVERFLOWN * shape.packets
            if took_s >= _MOST_TRAIN_S / _GROWTH or (even and (took_s >= _TRAIN_S or overflown)):
                break
        shape = replace(shape, packets=min(shape.packets * _GROWTH, _MOST_PACKETS))
    return shape


def settled(ends: Ends, took_s: float = 0.0) -> Ends:
    """Wait until the train before has left no trace: a token bucket is full again, a queue is empty.

    took_s: how long the bottleneck takes for a train, where that is known.
    """
    clock.sleep_until_ns(clock.now_ns() + int(max(_PAUSE_S, took_s) * 1e9))
    return ends


def packet_bits(mtu_bytes: int) -> int:
    """Return a full packet as the lab counts it on a link, bits."""
    return (mtu_bytes + ETHERNET_HEADER_BYTES) * 8


def train_rate_bps(arrivals: Sequence[Sequence[int]], mtu_bytes: int) -> float | None:
    """Return the rate of the second half of what arrived of a train, bit/s; None where it tells none.

    arrivals: (number, instant in ns) in any order. The first half may be what a
    shaper lets through at once. Packets of one instant were gathered before they
    were told of; those after an instant took the time since. What was lost took
    no time of the link, and does not count.
    """
    instants = sorted(at_ns for _number, at_ns in arrivals)
    half = instants[len(instants) // 2 :]
    if len(set(half)) < _LEAST_INSTANTS:
        return None
    after = sum(1 for at_ns in half if at_ns > half[0])
    return after * packet_bits(mtu_bytes) / (half[-1] - half[0]) * 1e9


def faster(sent_ns: int, shape: TrainShape, rate_bps: float) -> bool:
    """Return whether a train was handed over so fast that it measured the path and not its sender."""
    return shape.packets * packet_bits(shape.mtu_bytes) / max(sent_ns, 1) * 1e9 >= _LEAST_FASTER * rate_bps
