"""Whether a point can run on real hosts at all, whatever they are. Pure.

Not here: what certain hosts lack, see `lab.remote.preflight` and the engine.
"""

from __future__ import annotations

from collections.abc import Iterator

from lab import layout
from lab.combination import Point
from lab.knobs import PATH_KNOBS

_LINK_KNOBS = (
    *("queue", "loss", "duplicate", "reorder", "jitter", "jitter_dist", "recipe", "access", "rate_back"),
    *("route", "qdisc", "target", "ce_threshold", "rate_change", "rtt_change", "loss_change", "trace"),
)
"""What links that are taken as they are cannot be asked for; their rate, RTT and MTU are measured."""

_CHANGING = ("rate_change", "rtt_change", "loss_change", "trace")


def unfit(point: Point, mode: str) -> str | None:
    """Return why a point cannot run, in one sentence; None where it can. mode: of the links."""
    links = _as_is(point) if mode == "as-is" else _shaped(point)
    return next((sentence for found in (_hosts(point), links) for sentence in found), None)


def _hosts(point: Point) -> Iterator[str]:
    if layout.shape(point) != "path":
        yield (
            f"topology={point.knobs['topology']} needs more hosts than a sender and a receiver;"
            " take topology=path"
        )
    if point.knobs["workload"] == "http":
        yield "workload=http starts nginx, which is left alone on real hosts; take workload=bulk"


def _as_is(point: Point) -> Iterator[str]:
    for name in _LINK_KNOBS:
        text = point.knobs[name]
        if text != PATH_KNOBS[name].canonical(PATH_KNOBS[name].default):
            yield (
                f"{name}={text} asks something of the links, and these are taken as they are; leave it out,"
                ' or have them shaped (links.mode = "shaped" in the inventory)'
            )


def _shaped(point: Point) -> Iterator[str]:
    knobs = point.knobs
    for name in _CHANGING:
        if knobs[name] != "none":
            yield (
                f"{name}={knobs[name]} changes a link while packets flow, which an emulator does not; take"
                " --engine realtime or virtual"
            )
    if knobs["recipe"] != "separate":
        yield "recipe=leaf shapes at the sender, and here the emulator shapes; take recipe=separate"
    if point.loss.kind == "list":
        yield (
            f"loss={knobs['loss'][:40]} drops packets by a program in the kernel, which an emulator is not"
            " given; take a probability, or --engine realtime or virtual"
        )
