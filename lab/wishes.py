"""What a point asks of the kernel and the tools of the host that runs it, and what each wish is for.

Pure but for the table of features that it shares with the doctor. Not here:
whether the host grants them, see `lab.engines.realtime`.
"""

from __future__ import annotations

from collections.abc import Iterator

from lab import layout
from lab.combination import Point
from lab.doctor import FEATURES, Feature
from lab.qdisc import netem_words

_QDISCS = {  # a queue's kind: its module and a trial of it; bfifo and pfifo are always there
    "red": ("sch_red", "red limit 60000 min 5000 max 20000 avpkt 1000 burst 10 bandwidth 1mbit"),
    "codel": ("sch_codel", "codel"),
    "fq_codel": ("sch_fq_codel", "fq_codel"),
    "pie": ("sch_pie", "pie"),
    "cake": ("sch_cake", "cake"),
    "fq": ("sch_fq", "fq"),
    "sfq": ("sch_sfq", "sfq"),
    "policer": ("sch_tbf", "tbf rate 1mbit burst 10kb limit 10kb"),
}
_NAMED = {feature.name: feature for feature in FEATURES}
_LIST = Feature("cls_bpf", "CONFIG_NET_CLS_BPF", "cls_bpf", "tc qdisc add dev lo clsact")

TOOLS = {"iperf3": "iperf3", "http": "nginx"}
"""Programs that a workload needs, and Debian's packages of the same names."""


def feature_of(kind: str) -> Feature:
    """Return the feature that a kind of queue needs. Raises KeyError for one that needs none."""
    module, words = _QDISCS[kind]
    return Feature(kind, f"CONFIG_NET_{module.upper()}", module, f"tc qdisc add dev lo root {words}")


def wishes(point: Point) -> Iterator[tuple[Feature, str]]:
    """Yield every feature of a kernel that a point needs, with what needs it."""
    plan = layout.plan(point)
    yield _NAMED["namespaces"], "hosts"
    yield _NAMED["veth"], "links"
    ends = [end.egress for link in plan.links for end in link.ends]
    if any(egress.get("rate_bps") for egress in ends):
        yield _NAMED["htb"], f"rate={point.knobs['rate']}"
    kinds = {str((egress.get("queue") or {}).get("kind", "")) for egress in ends}
    for kind in sorted(kinds & set(_QDISCS)):
        yield feature_of(kind), f"qdisc={point.knobs['qdisc']}"
    if point.loss.kind == "list":
        yield _LIST, f"loss={point.knobs['loss'][:40]}"
    delaying = [name for name in _DELAYED if point.knobs[name] not in _UNDELAYED]
    if any(netem_words(egress) for egress in ends) or "rtt_change" in delaying or "loss_change" in delaying:
        told = ", ".join(f"{name}={point.knobs[name][:40]}" for name in delaying)
        yield _NAMED["netem"], f"the delay line of {told}"


_DELAYED = ("rtt", "jitter", "loss", "duplicate", "reorder", "rtt_change", "loss_change")
_UNDELAYED = ("0s", "0%", "none")
