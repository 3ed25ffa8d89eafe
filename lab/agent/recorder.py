"""Takes the samples: every probe, at absolute deadlines, into frames."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from lab import clock
from lab.agent import frames
from lab.probes.queues import QueueProbe
from lab.probes.sockets import SocketProbe


class Own(NamedTuple):
    """What of a machine that has sockets and queues of its own is the load's.

    between: (own address, the other end's), where sockets between these are; None
    for none. interfaces: numbers of each node's interfaces.
    """

    between: tuple[str, str] | None
    interfaces: Mapping[str, Collection[int]]


def _queues(node: str, own: Own | None) -> QueueProbe:
    return QueueProbe(own.interfaces[node] if own else None)


class Recorder:
    """spec: `sockets` and `queues` (node names), `interval_ns`, `machine` (watch it too).

    here: the nodes that are on this machine, None for all; of others nothing is
    read. own: what of this machine is the load's, where it has more.
    """

    def __init__(
        self,
        net: Any,
        spec: dict[str, Any],
        here: Collection[str] | None = None,
        own: Own | None = None,
    ) -> None:
        order = list(net.nameToNode)
        local = [name for name in order if here is None or name in here]
        between = own.between if own else None
        self._interval_ns = spec["interval_ns"]
        self._probes: list[tuple[int, int, Any]] = []
        for name in spec["sockets"]:
            if name in local:
                with net[name].inside():
                    self._probes.append((frames.SOCKETS, order.index(name), SocketProbe(between)))
        for name in spec["queues"]:
            if name in local:
                with net[name].inside():
                    self._probes.append((frames.QUEUES, order.index(name), _queues(name, own)))
        self._last = []  # the delay lines too: they must not have dropped
        for name in local:
            if name not in spec["queues"]:
                with net[name].inside():
                    self._last.append((frames.QUEUES, order.index(name), _queues(name, own)))
        self._machine: Any = None
        if spec["machine"]:
            from lab.probes.machine import MachineProbe  # noqa: PLC0415 (never in virtual time)

            self._machine = MachineProbe()
            self._probes.append((frames.MACHINE, order.index(local[0]), self._machine))
        self._frames: list[bytes] = []
        self._origin_ns = 0

    def start(self, origin_ns: int) -> None:
        """Take the first sample; instants count from `origin_ns`."""
        self._origin_ns = origin_ns
        self._sample()

    def record(self, finished: Callable[[], bool], end_ns: int) -> None:
        """Sample at every interval until `end_ns` or until the load is through.

        The last time every queue of every node is read too.
        """
        deadline_ns = self._origin_ns
        while deadline_ns < end_ns and not finished():
            deadline_ns = min(deadline_ns + self._interval_ns, end_ns)
            clock.sleep_until_ns(deadline_ns)
            self._sample()
        self._take(self._last)
        self._end_machine()

    def _sample(self) -> None:
        self._take(self._probes)

    def _take(self, probes: list[tuple[int, int, Any]]) -> None:
        """Read probes as one sample: in virtual time reading takes none, and each look at the clock costs."""
        instant_ns = clock.now_ns() - self._origin_ns
        for kind, node, probe in probes:
            self._frames.append(frames.pack(kind, node, instant_ns, probe.read()))

    def _end_machine(self) -> None:
        if self._machine is not None:
            self._machine.end()
            self._machine = None

    def close(self) -> None:
        """Let go of what the probes hold, for an agent that goes on to other points."""
        self._end_machine()
        for kind, _node, probe in (*self._probes, *self._last):
            if kind in (frames.SOCKETS, frames.QUEUES):
                probe.close()

    def add_delays(self, kind: str, flow: int, taken: list[tuple[int, int]]) -> None:
        """Keep what a workload or a stream timed by itself, see `frames.pack_delays`."""
        self._frames.append(frames.pack(frames.DELAYS, 0, 0, frames.pack_delays(kind, flow, taken)))

    def frames(self) -> bytes:
        """Return everything recorded."""
        return b"".join(self._frames)
