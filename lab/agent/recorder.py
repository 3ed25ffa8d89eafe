"""Takes the samples: every probe, at absolute deadlines, into frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lab import clock
from lab.agent import frames
from lab.probes.queues import QueueProbe
from lab.probes.sockets import SocketProbe


class Recorder:
    """spec: `sockets` and `queues` (node names), `interval_ns`."""

    def __init__(self, net: Any, spec: dict[str, Any]) -> None:
        order = list(net.nameToNode)
        self._interval_ns = spec["interval_ns"]
        self._probes: list[tuple[int, int, Any]] = []
        for kind, probe, names in (
            (frames.SOCKETS, SocketProbe, spec["sockets"]),
            (frames.QUEUES, QueueProbe, spec["queues"]),
        ):
            for name in names:
                with net[name].inside():
                    self._probes.append((kind, order.index(name), probe()))
        self._last = []  # the delay lines too: they must not have dropped
        for name in order:
            if name not in spec["queues"]:
                with net[name].inside():
                    self._last.append((frames.QUEUES, order.index(name), QueueProbe()))
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

    def _sample(self) -> None:
        self._take(self._probes)

    def _take(self, probes: list[tuple[int, int, Any]]) -> None:
        """Read probes as one sample: in virtual time reading takes none, and each look at the clock costs."""
        instant_ns = clock.now_ns() - self._origin_ns
        for kind, node, probe in probes:
            self._frames.append(frames.pack(kind, node, instant_ns, probe.read()))

    def add_delays(self, kind: str, flow: int, taken: list[tuple[int, int]]) -> None:
        """Keep what a workload or a stream timed by itself, see `frames.pack_delays`."""
        self._frames.append(frames.pack(frames.DELAYS, 0, 0, frames.pack_delays(kind, flow, taken)))

    def frames(self) -> bytes:
        """Return everything recorded."""
        return b"".join(self._frames)
