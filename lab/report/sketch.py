"""What a drawing of a network says: hosts by column, routers in a row, and the words on each link.

Which way a word belongs is the same everywhere: `out` is what leaves towards
the right, `back` what leaves towards the left. Where things go on the paper is
decided by `lab.report.network` and `lab.report.tall`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lab.plans.plan import Egress, Pair, Plan
from lab.qdisc import UNLIMITED_PACKETS
from lab.queues import LIMIT_UNIT
from lab.units import human_rate, human_size

Words = tuple[str, ...]

MOST_GAPS = 4
"""Of more bottlenecks in a row the first two and the last are drawn."""

_PLAIN = {"pfifo", "bfifo"}


@dataclass(frozen=True)
class Host:
    """A host and its link to a router. sends: whether data under study leave it.

    rtt: of its pair, told at the end that data reach. besides: those lines of
    `out` that are no rate, queue or delay. studied: whether the queue of the
    data is on this link already, as in the leaf recipe.
    """

    name: str
    router: str
    rtt: str
    out: Words
    back: Words
    besides: Words
    sends: bool
    studied: bool

    @property
    def upright(self) -> Words:
        """Its words where the link goes down from the left end, each way with its sign."""
        return (*pointed(self.out, "↓ "), *pointed(self.back, "↑ "))


@dataclass(frozen=True)
class Column:
    """Hosts of one side, top to bottom. hidden: how many more there are, before the last.

    besides: lines that would stand at each of several hosts, said once.
    """

    hosts: tuple[Host, ...]
    hidden: int = 0
    besides: Words = ()

    @property
    def places(self) -> tuple[Host | None, ...]:
        """The hosts in order, None where some are hidden."""
        return (*self.hosts[:-1], None, self.hosts[-1]) if self.hidden else self.hosts

    @property
    def said(self) -> Words:
        """What is said of all hosts, a line at most."""
        return (f"to each: {', '.join(self.besides)}",) if self.besides else ()

    @property
    def heading(self) -> str:
        """What the hosts are to the data."""
        roles = {"sender" if host.sends else "receiver" for host in self.hosts}
        if len(roles) > 1:
            return "hosts"
        (role,) = roles
        return role if len(self.hosts) == 1 else f"{role}s"


@dataclass(frozen=True)
class Gap:
    """The link between two routers, with a pair of hosts that cross it alone.

    studied: the ways, "out" and "back", whose queue is under study. hidden: of
    how many links it takes the place, 0 where it is drawn itself; hosts: how
    many stand at those.
    """

    out: Words
    back: Words
    studied: frozenset[str]
    sender: Host | None = None
    receiver: Host | None = None
    hidden: int = 0
    hosts: int = 0

    @property
    def crossed(self) -> bool:
        """Whether hosts stand between its routers."""
        return self.sender is not None or self.receiver is not None

    def queued(self, way: str) -> bool:
        """Whether packets of a way, "out" or "back", wait here."""
        return any("queue" in line for line in (self.out if way == "out" else self.back))


@dataclass(frozen=True)
class Sketch:
    """A network in words: its left hosts, its routers with what is between them, its right hosts."""

    title: str
    text: str
    left: Column
    routers: tuple[str, ...]
    gaps: tuple[Gap, ...]
    right: Column


def sketch(plan: Plan, most_hosts: int, first: int) -> Sketch:
    """Return what to draw. Of more than `most_hosts` in a column, the `first` ones and the last."""
    studied = _studied(plan)
    hosts = _hosts(plan, studied)
    spine = {frozenset((link.left.node, link.right.node)): link for link in plan.links}
    between = _between(plan, hosts)
    gaps = []
    for left, right in itertools.pairwise(plan.routers):
        link = spine[frozenset((left, right))]
        ways = {way for way, end in zip(("out", "back"), link.ends, strict=True) if end.interface in studied}
        own = between.get((left, right), ())
        gaps.append(
            Gap(
                words(link.left.egress) or ("not shaped",),
                words(link.right.egress) or ("not shaped",),
                frozenset(ways),
                next((host for host in own if host.sends), None),
                next((host for host in own if not host.sends), None),
            )
        )
    routers, drawn = _shorten(list(plan.routers), gaps)
    ends = [
        _column([hosts[name] for name in names], most_hosts, first)
        for names in (plan.columns[0], plan.columns[-1])
    ]
    return Sketch(_title(plan), _text(plan), ends[0], routers, drawn, ends[1])


def words(egress: Egress) -> Words:
    """Return in words what shapes the packets that leave an interface, a line each."""
    lines = []
    if egress.get("rate_bps"):
        lines.append(human_rate(egress["rate_bps"]))
    if egress.get("delay_s"):
        lines.append(f"delay {milliseconds(egress['delay_s'])}")
    queue = egress.get("queue")
    if queue and not _endless(queue):
        lines += queue_words(queue)
    elif egress.get("rate_bps") and not queue and not egress.get("delay_s"):
        lines.append("htb's own queue")
    if egress.get("limit_packets"):
        lines.append(f"netem queue, {egress['limit_packets']} packets")
    return (*lines, *impairments(egress))


def queue_words(queue: Mapping[str, Any]) -> list[str]:
    """Return a queue in words, see `lab.queues`: kind and size, then what else it was told."""
    kind, limit = str(queue["kind"]), int(queue["limit"])
    size = human_size(limit) if LIMIT_UNIT.get(kind) == "bytes" else f"{limit} packets"
    lines = [
        f"policer, bucket of {size}"
        if kind == "policer"
        else f"{'FIFO' if kind in _PLAIN else kind} queue, {size}"
    ]
    told = [f"target {milliseconds(queue['target_s'])}"] if queue.get("target_s") else []
    told += ["ECN"] if queue.get("ecn") else []
    told += [f"marks over {milliseconds(queue['ce_threshold_s'])}"] if queue.get("ce_threshold_s") else []
    return [*lines, ", ".join(told)] if told else lines


def impairments(egress: Egress) -> Words:
    """Return what else happens to packets after the delay line, a line each."""
    lines = []
    if egress.get("jitter_s"):
        name = egress.get("jitter_distribution", "uniform")
        lines.append(
            f"jitter {milliseconds(egress['jitter_s'])}" + ("" if name == "uniform" else f", {name}")
        )
    loss = egress.get("loss")
    if isinstance(loss, Mapping):
        named = {"ge": "loss in bursts", "state": "loss by four states"}
        lines.append(named.get(loss["kind"], f"loss of {len(loss['numbers'])} packets"))
    elif loss:
        lines.append(f"loss {_percent(loss)}")
    lines += [f"{name} {_percent(egress[name])}" for name in ("duplicate", "reorder") if egress.get(name)]
    return tuple(lines)


def pointed(lines: Sequence[str], before: str = "", after: str = "") -> Words:
    """Return lines with a sign before the first and one after the last."""
    if not lines:
        return ()
    told = [f"{before}{lines[0]}", *lines[1:]]
    return (*told[:-1], f"{told[-1]}{after}")


def milliseconds(time_s: float) -> str:
    """Return a time as the drawing has it."""
    return f"{time_s * 1e3:.6g} ms"


def _percent(share: float) -> str:
    return f"{share * 100:.6g}%"


def _endless(queue: Mapping[str, Any]) -> bool:
    """Whether a queue holds whatever it is given, as a host's own does."""
    return queue["kind"] == "pfifo" and int(queue["limit"]) >= UNLIMITED_PACKETS


def _own_back_pairs(plan: Plan) -> tuple[Pair, ...]:
    """Return the pairs for data the other way that are not the same hosts the other way round."""
    turned = {(pair.receiver, pair.sender) for pair in plan.pairs}
    return tuple(pair for pair in plan.back_pairs if (pair.sender, pair.receiver) not in turned)


def _studied(plan: Plan) -> set[str]:
    """Return the interfaces whose queues the data under study wait in."""
    return {name for pair in (*plan.pairs, *_own_back_pairs(plan)) for name in pair.bottlenecks}


def _hosts(plan: Plan, studied: set[str]) -> dict[str, Host]:
    pairs = (*plan.pairs, *_own_back_pairs(plan))
    senders = {pair.sender for pair in pairs}
    rtts = {pair.receiver: pair.rtt_s for pair in pairs if pair.rtt_s}
    wanted, found = set(plan.hosts), {}
    for link in plan.links:
        for end, other in (link.ends, link.ends[::-1]):
            if end.node in wanted:
                rtt_s = rtts.get(end.node)
                found[end.node] = Host(
                    end.node,
                    other.node,
                    f"RTT {milliseconds(rtt_s)}" if rtt_s else "",
                    words(link.left.egress),
                    words(link.right.egress),
                    impairments(link.left.egress),
                    end.node in senders,
                    any(one.interface in studied for one in link.ends),
                )
    return found


def _between(plan: Plan, hosts: Mapping[str, Host]) -> dict[tuple[str, str], list[Host]]:
    """Return the hosts that columns have between two routers. ValueError where there are too many to draw."""
    found: dict[tuple[str, str], list[Host]] = {}
    router = ""
    waiting: list[Host] = []
    for column in plan.columns[1:-1]:
        if column[0] in hosts:
            waiting = [hosts[name] for name in column]
            continue
        if waiting:
            if sum(host.sends for host in waiting) > 1 or sum(not host.sends for host in waiting) > 1:
                raise ValueError(f"more than one pair of hosts between {router} and {column[0]}")
            found[router, column[0]] = waiting
            waiting = []
        router = column[0]
    return found


def _column(hosts: Sequence[Host], most: int, first: int) -> Column:
    besides = {host.besides for host in hosts}
    shared = besides.pop() if len(hosts) > 1 and len(besides) == 1 else ()
    if shared:
        hosts = [replace(host, out=host.out[: -len(shared)]) for host in hosts]
    if len(hosts) <= most:
        return Column(tuple(hosts), besides=shared)
    return Column((*hosts[:first], hosts[-1]), len(hosts) - first - 1, shared)


def _shorten(routers: list[str], gaps: list[Gap]) -> tuple[tuple[str, ...], tuple[Gap, ...]]:
    """Return routers and what is between them, with one gap for those in the middle of very many."""
    if len(gaps) <= MOST_GAPS:
        return tuple(routers), tuple(gaps)
    hidden = gaps[2:-1]
    hosts = sum((gap.sender is not None) + (gap.receiver is not None) for gap in hidden)
    one = Gap((), (), frozenset(), hidden=len(hidden), hosts=hosts)
    return (*routers[:3], *routers[-2:]), (*gaps[:2], one, gaps[-1])


def _title(plan: Plan) -> str:
    count = len(plan.hosts)
    return f"Network: {plan.shape.replace('_', ' ')}, {count} hosts, {len(plan.routers)} routers"


def _text(plan: Plan) -> str:
    """Return the drawing for those who do not see it."""
    own = _own_back_pairs(plan)
    said = [f"Data go from {_names([pair.sender for pair in plan.pairs])} to"]
    said[0] += f" {_names([pair.receiver for pair in plan.pairs])} over {_names(plan.routers)}."
    if own:
        said.append(
            f"Others go back from {_names([pair.sender for pair in own])}"
            f" to {_names([pair.receiver for pair in own])}."
        )
    studied = _studied(plan)
    ends = [end for link in plan.links for end in link.ends if end.interface in studied]
    for lines, which in itertools.groupby(ends, key=lambda end: words(end.egress)):
        said.append(f"At {_names([end.interface for end in which])}: {', '.join(lines) or 'not shaped'}.")
    rtts = sorted({pair.rtt_s for pair in (*plan.pairs, *own)})
    said.append(f"RTT {' to '.join(dict.fromkeys(milliseconds(rtt_s) for rtt_s in (rtts[0], rtts[-1])))}.")
    return " ".join(said)


def _names(names: Sequence[str]) -> str:
    """Return names as a list; of many the first and the last, and how many there are."""
    told = list(dict.fromkeys(names))
    if len(told) > 4:
        return f"{told[0]} to {told[-1]} ({len(told)})"
    return told[0] if len(told) == 1 else f"{', '.join(told[:-1])} and {told[-1]}"
