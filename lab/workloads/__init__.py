"""Workloads: what the hosts do. They run in the agent; one module a workload.

Each has a class made as `Workload(net, spec)` with

* `prepare()`: servers listening, connections made; nothing sent yet;
* `begin(start_ns)`: start the load, called at the start instant;
* `finished()`: True when a load of a given size is through;
* `end()`: stop it;
* `outcome()`: a dictionary of what the workload itself saw, stored with the
  point: `flows` with their ports, and `client`, which end of a flow has that port.

Where the hosts are machines of their own, each runs the same class, made as
`Workload(net, spec, here)` with the names of the nodes that it is, and does the
part of those. What `prepare()` does is told it step by step, all machines at
one step: `listen()`, then `connect()` and `accept()`. The other end's part is
beyond reach there, so every step has a time limit, a stranger who connects is
sent away, and nothing outlives the load. `finished()` speaks of the flows that
end here. `stop()` comes before `end()`: from there on what the ends do to each
other is no result.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any


class LoadFailed(RuntimeError):
    """A load that cannot be had; the message says why, and what would have to be so."""


APART_S = 20.0
"""How long an end waits for the other's part, where that is on another machine."""


def first_port(flows: int) -> int:
    """Return the port of flow 0 at the end that connects; the others follow it."""
    return 40000 if flows <= 20000 else 10000


def port_of_first(spec: dict[str, Any]) -> int:
    """Return the port of flow 0 of a load: what its spec says, or where all ports are free the usual."""
    told: int | None = spec.get("first_port")
    return first_port(len(spec["flows"])) if told is None else told


class Here:
    """Which ends of a load are on this machine. names: of nodes; None for all of them."""

    def __init__(self, names: Collection[str] | None) -> None:
        self._names = names

    @property
    def apart(self) -> bool:
        """Whether there may be ends on other machines."""
        return self._names is not None

    def has(self, node: str) -> bool:
        """Whether a node is on this machine."""
        return self._names is None or node in self._names

    @property
    def timeout_s(self) -> float | None:
        """How long to wait for the other ends; None, for ever, where they are here and cannot fail us."""
        return APART_S if self.apart else None
