"""What advice is asked for: one path, a target, and the senders to try. No run and no prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lab import memory, sweep, units
from lab.errors import SpecError, UnitError
from lab.knobs import PATH_KNOBS
from lab.model.inputs import Release
from lab.model.path import bdp_bytes, payload_share
from lab.scenario import Scenario
from lab.setting import model_faults
from lab.sweep import Point

PATH = ("rate", "rtt", "queue", "loss", "mtu", "flows")
"""Knobs that make the path; a run folder belongs to one path."""

MOST_TARGET = 0.995
"""A run of some seconds comes to within half a percent of what its headers leave, not nearer."""
LEAST_TARGET = 0.01

WHICH = ("rmem", "wmem")
MIB = 2**20


@dataclass(frozen=True)
class Case:
    """One sender and receiver to advise: a congestion control on a kernel."""

    cc: str
    kernel: str
    release: Release

    @property
    def name(self) -> str:
        """As tables and figures call it."""
        return f"{self.cc} on {self.kernel}"


@dataclass(frozen=True)
class Ask:
    """path: knobs in canonical spelling; target: a share of the payload that the link can carry."""

    path: Mapping[str, str]
    target: float
    cases: tuple[Case, ...]

    @property
    def rate_bps(self) -> float:
        """Rate of the bottleneck, bit/s."""
        return float(PATH_KNOBS["rate"].value(self.path["rate"]))

    @property
    def rtt_s(self) -> float:
        """Base RTT, s."""
        return float(PATH_KNOBS["rtt"].value(self.path["rtt"])[0])

    @property
    def loss(self) -> float:
        """Random loss, a fraction."""
        return float(PATH_KNOBS["loss"].value(self.path["loss"]).share)

    @property
    def flows(self) -> int:
        """Parallel flows."""
        return int(self.path["flows"])

    @property
    def mtu_bytes(self) -> int:
        """MTU of every link, bytes."""
        return int(self.path["mtu"])

    @property
    def bdp_bytes(self) -> float:
        """Rate times RTT, bytes as the shaper counts them."""
        return bdp_bytes(self.rate_bps, self.rtt_s)

    @property
    def capacity_bps(self) -> float:
        """Payload that the link can carry, bit/s: its rate without headers."""
        return self.rate_bps * payload_share(self.mtu_bytes)

    @property
    def target_bps(self) -> float:
        """The goodput that is wanted, of all flows together, bit/s."""
        return self.target * self.capacity_bps

    @property
    def words(self) -> str:
        """The path in one line."""
        parts = [f"{self.path['rate']} x {self.path['rtt']}"]
        usual = {name: PATH_KNOBS[name].default for name in PATH}
        parts += [f"{name} {self.path[name]}" for name in PATH[2:] if self.path[name] != usual[name]]
        return ", ".join(parts)

    @property
    def flags(self) -> str:
        """The path and the target as words of the command."""
        usual = {name: PATH_KNOBS[name].default for name in PATH}
        words = [f"--rate {self.path['rate']} --rtt {self.path['rtt']}"]
        words += [f"--{name} {self.path[name]}" for name in PATH[2:] if self.path[name] != usual[name]]
        return " ".join([*words, f"--target {units.format_probability(self.target)}"])

    def point(self, case: Case, **knobs: str) -> Point:
        """Return a point of this path. Raises SpecError for a path that cannot be built."""
        chosen = {**self.path, "cc": case.cc, "kernel": case.kernel, **knobs}
        (point,) = sweep.points(
            SCENARIO, {name: [text] for name, text in chosen.items()}, engine="virtual", seeds=[1]
        )
        return point


SCENARIO = Scenario(name="advice", question="How big must the buffers be?", why="")
"""What points are made from; the stored run has a fuller one, see `lab.advise.bench`."""


def path(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the knobs of a path in canonical spelling. Raises SpecError with every fault."""
    found, faults = {}, []
    for name in PATH:
        try:
            found[name] = PATH_KNOBS[name].canonical(texts[name])
        except UnitError as fault:
            faults.append(str(fault))
    if found.get("rtt") == "0s":
        faults.append(f"rtt: {texts['rtt']!r} leaves nothing to size; a path needs an RTT, such as 1ms")
    if found.get("loss") == "100%":
        faults.append("loss: '100%' lets nothing through; take less, such as 1%")
    faults += model_faults(found)
    if faults:
        raise SpecError(faults)
    return found


def target(text: str, mtu_bytes: int = 1500) -> float:
    """Return a target as a fraction. Raises UnitError saying of what it is a share."""
    share = f"{payload_share(mtu_bytes) * 100:.3g} % of the rate at MTU {mtu_bytes}"
    of = f"it is a share of the payload that the link can carry, which is {share}"
    value, unit = units.split(text, "target", "95%")
    if unit != "%":
        raise UnitError(f"--target {text!r} is not in percent; write it such as 95% ({of})")
    if value <= 0 or float(value) / 100 < LEAST_TARGET:
        raise UnitError(f"--target {text!r} is under {LEAST_TARGET:.0%}; {of}; write it such as 95%")
    if value > 100:
        raise UnitError(f"--target {text!r} is more than headers leave; {of}; write it such as 95%")
    if float(value) / 100 > MOST_TARGET:
        raise UnitError(
            f"--target {text!r} is nearer to all than a run can show: at most"
            f" {units.format_probability(MOST_TARGET)}; {of}"
        )
    return float(value) / 100


def percent(share: float) -> str:
    """Return a fraction for reading, as prose writes it. Not for parsing."""
    return f"{share * 100:.3g} %"


def text_of(size_bytes: int) -> str:
    """Return a buffer as the knobs `rmem` and `wmem` take it: autotuning up to a size."""
    return f"max={size_bytes}B"


LEAST_SYSCTL_BYTES = {"rmem": 4096, "wmem": 1}
"""Least number that each part of the triple may be: tcp_min_rcvbuf and SYSCTL_ONE,
net/ipv4/sysctl_net_ipv4.c of the lab's kernels."""


def least_bytes(which: str) -> int:
    """Return the least largest buffer that the kernel lets be."""
    return max(LEAST_SYSCTL_BYTES[which], memory.SMALLEST_BYTES[which])


def kernel_default_bytes(which: str) -> int:
    """Return the largest buffer that the kernel's own defaults allow."""
    return memory.DEFAULTS[which].maximum
