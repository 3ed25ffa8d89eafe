"""A network on paper: nodes, links with what leaves each end, addresses, names and routes.

Link number n (from 1) is the network 10.(n / 256).(n mod 256).0/24; its left
end has .1 and its right end .2. Interfaces are named as Mininet names them: by
the order in which a node gets its links.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Egress = Mapping[str, Any]
"""What shapes the packets that leave an interface, see `lab.qdisc.egress_commands`."""


@dataclass(frozen=True)
class End:
    """One end of a link: its node, its interface, its address without the prefix, what shapes it."""

    node: str
    interface: str
    address: str
    egress: Egress


@dataclass(frozen=True)
class Link:
    """A link between two nodes. number: from 1. words: what a drawing writes on it."""

    number: int
    left: End
    right: End
    words: str = ""

    @property
    def ends(self) -> tuple[End, End]:
        """Both ends, left first."""
        return self.left, self.right


@dataclass(frozen=True)
class Pair:
    """Two hosts that a flow may join. bottlenecks: interfaces under study that its data cross, in order."""

    sender: str
    receiver: str
    rtt_s: float
    bottlenecks: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """A whole network.

    hosts, routers: names in the order in which they are made. pairs: for data
    the way that the shape is drawn; back_pairs: for data the other way.
    bottlenecks: interfaces whose queues are under study; back_bottlenecks: the
    same of the way back. columns: nodes from left to right, as a drawing has them.
    """

    shape: str
    hosts: tuple[str, ...]
    routers: tuple[str, ...]
    links: tuple[Link, ...]
    pairs: tuple[Pair, ...]
    back_pairs: tuple[Pair, ...]
    columns: tuple[tuple[str, ...], ...]
    mtu_bytes: int = 1500
    offloads: bool = False

    @property
    def nodes(self) -> tuple[str, ...]:
        """Every node: routers first, so that they forward before a host asks."""
        return (*self.routers, *self.hosts)

    @property
    def bottlenecks(self) -> tuple[str, ...]:
        """Interfaces whose queues are under study, each once: those of the data's way first."""
        every = [name for pair in (*self.pairs, *self.back_pairs) for name in pair.bottlenecks]
        return tuple(dict.fromkeys(every))

    def end(self, interface: str) -> End:
        """Return the end of a link by its interface's name. Raises KeyError."""
        for link in self.links:
            for one in link.ends:
                if one.interface == interface:
                    return one
        raise KeyError(interface)

    def address(self, host: str) -> str:
        """Return the address of a host. Raises KeyError for a node that is none."""
        for link in self.links:
            for one in link.ends:
                if one.node == host:
                    return one.address
        raise KeyError(host)

    def routes(self) -> dict[str, list[tuple[str, str]]]:
        """Return {node: [(prefix, gateway)]}: shortest ways to every host's network.

        A host has one link, and all of 10.0.0.0/8 behind it.
        """
        neighbours: dict[str, list[tuple[str, str]]] = {node: [] for node in self.nodes}
        attached: dict[str, set[int]] = {node: set() for node in self.nodes}
        home: dict[str, int] = {}
        for link in self.links:
            for here, there in (link.ends, link.ends[::-1]):
                neighbours[here.node].append((there.node, there.address))
                attached[here.node].add(link.number)
                home[here.node] = link.number
        found: dict[str, list[tuple[str, str]]] = {node: [] for node in self.nodes}
        routers = set(self.routers)
        for host in self.hosts:
            found[host].append(("10.0.0.0/8", neighbours[host][0][1]))
        for network in dict.fromkeys(home[host] for host in self.hosts):
            for router, gateway in self._toward(network, neighbours, attached, routers).items():
                found[router].append((f"{prefix(network)}.0/24", gateway))
        return found

    def _toward(
        self,
        network: int,
        neighbours: Mapping[str, Sequence[tuple[str, str]]],
        attached: Mapping[str, set[int]],
        routers: set[str],
    ) -> dict[str, str]:
        """Return {router: gateway} of the shortest way to a network, of routers that are not on it."""
        reached = {router for router in self.routers if network in attached[router]}
        waiting, gateways = deque(sorted(reached)), {}
        while waiting:
            node = waiting.popleft()
            for other, _address in neighbours[node]:
                if other in routers and other not in reached:
                    reached.add(other)
                    gateways[other] = next(address for name, address in neighbours[other] if name == node)
                    waiting.append(other)
        return gateways


def prefix(number: int) -> str:
    """Return the first three bytes of the addresses of a link."""
    return f"10.{number >> 8}.{number & 255}"


@dataclass
class Draft:
    """A plan in the making: links are added one by one and get their names and addresses."""

    links: list[Link] = field(default_factory=list)
    _interfaces: dict[str, int] = field(default_factory=dict)

    def add(self, left: str, right: str, left_egress: Egress, right_egress: Egress, words: str = "") -> Link:
        """Join two nodes; return the link."""
        number = len(self.links) + 1
        net = prefix(number)
        link = Link(
            number,
            End(left, self._next(left), f"{net}.1", left_egress),
            End(right, self._next(right), f"{net}.2", right_egress),
            words,
        )
        self.links.append(link)
        return link

    def _next(self, node: str) -> str:
        count = self._interfaces.get(node, 0)
        self._interfaces[node] = count + 1
        return f"{node}-eth{count}"
