"""One example of every topology, for the reference: picture, commands, interfaces.

All of a topology's parts are made from the same knobs, so that they are about
one network: the picture, what the lab is told, what Mininet is told, and what
leaves each interface.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab import layout, scenario, sweep
from lab.combination import Point
from lab.plans.plan import End, Plan
from lab.report import network, sketch

ROOT = Path(__file__).resolve().parents[1]
SCENARIO = "scenarios/path.py"

EXAMPLES: Mapping[str, Mapping[str, str]] = {
    "path": {"rate": "100mbit", "rtt": "40ms"},
    "dumbbell": {"topology": "dumbbell", "flows": "3", "rate": "100mbit", "rtt": "20ms+80ms+200ms"},
    "parking_lot": {
        "topology": "parking_lot",
        "bottlenecks": "3",
        "flows": "4",
        "rate": "100mbit",
        "rtt": "40ms",
    },
    "star": {"topology": "star", "flows": "4", "rate": "100mbit", "rtt": "10ms+50ms+100ms+200ms"},
    "two_way": {
        "topology": "two_way",
        "reverse": "1",
        "rate": "100mbit",
        "rate_back": "10mbit",
        "rtt": "40ms",
    },
    "long_haul": {"topology": "long_haul", "route": "geo-satellite", "rate": "20mbit"},
}
"""{topology: knobs of its example}"""

_SAME = ("path", "dumbbell", "parking_lot", "star", "two_way")
"""Whose interfaces are listed: a long haul has those of a path."""

_UNSAID = {
    "mtu_bytes": 1500,
    "recipe": "separate",
    "leaf_limit_packets": 1000,
    "jitter_distribution": "uniform",
}


def point(name: str) -> Point:
    """Return the point of an example."""
    study = scenario.load(ROOT / SCENARIO).scenario
    settings = {knob: [text] for knob, text in EXAMPLES[name].items()}
    (only,) = sweep.points(study, settings, engine="virtual", seeds=[1])
    return only


def plan(name: str) -> Plan:
    """Return the network of an example."""
    return layout.plan(point(name))


def lab_command(name: str) -> str:
    """Return what runs an example in the lab."""
    told = " ".join(f"--set {knob}={text}" for knob, text in EXAMPLES[name].items())
    return f"wanlab run {SCENARIO} {told}"


def mininet_words(name: str) -> list[str]:
    """Return the words of `mn` that build the network of an example, without `sudo mn`."""
    params = layout.params(point(name))
    if name == "long_haul":
        del params["delay_out_s"], params["delay_back_s"]
        params = {"route": EXAMPLES[name]["route"], **params}
    told = {key: _mininet(value) for key, value in params.items() if _is_said(key, value)}
    topo = ",".join([name, *(f"{key}={text}" for key, text in told.items())])
    return ["--custom", f"topologies/{name}.py", "--controller", "none", "--topo", topo]


def picture(name: str) -> tuple[Path, str]:
    """Return the file with the drawing of an example, and what has to be in it."""
    return ROOT / "docs" / "pictures" / f"topology-{name}.svg", network.document(plan(name))


def part(name: str, table: Callable[[Sequence[str], Iterable[Sequence[str]]], str]) -> str:
    """Return the generated part of a topology in the reference. table: makes one of a head and rows."""
    drawn = plan(name)
    said = (
        f"![The network of the example: {len(drawn.hosts)} hosts, {len(drawn.routers)} routers]"
        f"(../pictures/topology-{name}.svg)\n\n"
        f"    {lab_command(name)}\n"
        f"    sudo mn {' '.join(mininet_words(name))}\n"
    )
    if name not in _SAME:
        return said
    head = ("left end", "address", "what leaves it", "right end", "address", "what leaves it")
    rows = [[cell for end in link.ends for cell in _cells(end)] for link in drawn.links]
    return f"{said}\n{table(head, rows)}"


def _cells(end: End) -> tuple[str, str, str]:
    return f"`{end.interface}`", end.address, ", ".join(sketch.words(end.egress)) or "unshaped"


def _is_said(key: str, value: Any) -> bool:
    return bool(value) and _UNSAID.get(key) != value and key != "way"


def _mininet(value: Any) -> str:
    """Return a parameter as Mininet's command line has it: no lists, no dictionaries."""
    if isinstance(value, Mapping):
        return f"{value['kind']}:{value['limit']}"
    if isinstance(value, list | tuple):
        return "+".join(_mininet(one) for one in value)
    if isinstance(value, int | float) and value >= 1e6 and value == int(value):
        digits = str(int(value)).rstrip("0")
        return f"{digits}e{len(str(int(value))) - len(digits)}"
    return f"{value:g}" if isinstance(value, float) else str(value)
