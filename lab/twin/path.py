"""From the records of a run to its paths: the knobs that emulate each, and in words what they rest on.

Points that were asked for on the same path are taken together. Not here: how a
quantity is estimated, see `lab.twin.estimates`, and the scenario's text, see
`lab.twin.script`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.knobs import PATH_KNOBS
from lab.model.inputs import Release
from lab.model.windows import ignores_adv_win_scale
from lab.twin import estimates, losses
from lab.twin.losses import Losses, Queue
from lab.twin.records import FIXED, HOST, LINKS, REMOTE, Record, Seen
from lab.units import human_rate, human_size

_DIGITS = 4
_FEW = 4
"""Packets of 64 KiB: of a queue that holds fewer it matters that there are none on a wire."""


@dataclass(frozen=True)
class Path:
    """One path. knobs: those of `FIXED` in canonical spelling; measured: what was seen, a sentence
    each; assumed: what was not, and what was taken; records: the points that went over it."""

    knobs: Mapping[str, str]
    measured: tuple[str, ...]
    assumed: tuple[str, ...]
    records: tuple[Record, ...]


def paths(records: Sequence[Record]) -> list[Path]:
    """Return the paths of the points, in the order of their first points."""
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        knobs = record.point.knobs
        groups.setdefault(tuple(knobs[name] for name in (*LINKS, "kernel")), []).append(record)
    return [_path(Seen(tuple(group))) for group in groups.values()]


def _path(seen: Seen) -> Path:
    set_so = seen.point.knobs
    knobs = {name: set_so[name] for name in FIXED}
    knobs |= {"route": "none", "recipe": "separate", "leaf_limit": PATH_KNOBS["leaf_limit"].default}
    if set_so["topology"] == "long_haul":
        knobs["topology"] = "path"
    rate = _rate(seen)
    if rate is None:
        seen.assumed.append(f"No rate was measured: it is {set_so['rate']}, as it was set.")
    else:
        knobs["rate"] = _text("rate", _significant(rate.rate_bps))
    rate_bps = rate.rate_bps if rate else seen.point.rate_bps
    knobs |= _rtt(seen)
    knobs |= _jitter(seen, knobs, rate_bps)
    knobs |= _loss_and_queue(seen, rate_bps)
    if seen.mtu_bytes != seen.point.mtu_bytes:
        knobs["mtu"] = str(seen.mtu_bytes)
        seen.measured.append(f"MTU {seen.mtu_bytes} bytes: what the senders found; set was {set_so['mtu']}.")
    knobs["kernel"] = _kernel(seen)
    return Path(knobs, tuple(seen.measured), tuple(seen.assumed), seen.records)


def _rate(seen: Seen) -> estimates.Rate | None:
    """Return the rate, and say what it rests on."""
    first = estimates.rate(seen.trains_bps, seen.slopes_bps, seen.throughput_bps, full=False)
    full = seen.steady and seen.losses(first.rate_bps if first else None).full
    found = estimates.rate(
        seen.trains_bps, seen.slopes_bps, seen.throughput_bps if seen.steady else None, full=full
    )
    if found is None:
        return None
    trains = estimates.spread(seen.trains_bps or seen.slopes_bps)
    most = seen.throughput_bps
    carried = "" if most is None else f" Flows carried {human_rate(most)} at most, headers counted."
    said = f"Rate {human_rate(found.rate_bps)}"
    if found.basis == "throughput":
        if trains is None:
            said += ": the largest throughput, since no train of packets could be measured."
        elif not seen.trains_bps:
            said += f": the largest throughput, with the queue full; {_trains(trains)} gave it less surely,"
            said += " as their arrivals were disturbed."
        elif trains.value < found.rate_bps:
            said += f": the largest throughput; {_trains(trains)} gave less."
        else:
            said += f": the largest throughput while the queue was full; {_trains(trains)} gave more,"
            said += " as a token bucket lets through."
        seen.measured.append(said)
        if not found.sure:
            seen.assumed.append("The path may be faster: no flow filled it for long.")
    elif trains is not None:
        how = "" if found.basis == "train" else ", by least squares since their arrivals were disturbed"
        seen.measured.append(f"{said}: {_trains(trains)}{how}.{carried}")
        if any(record.slow_sender for record in seen.records):
            seen.assumed.append("The path may be faster: its sender was hardly faster than its trains.")
    return found


def _trains(found: estimates.Spread) -> str:
    if found.n == 1:
        return f"one train of packets ({human_rate(found.value)})"
    low, high = human_rate(found.low), human_rate(found.high)
    told = low if low == high else f"{low} to {high}"
    return f"the median of {found.n} trains of packets ({told})"


def _rtt(seen: Seen) -> dict[str, str]:
    """Return the knob rtt, and say what it rests on."""
    set_so = seen.point.knobs["rtt"]
    pings = estimates.spread(seen.rtts_s)
    if seen.several_pairs:
        seen.assumed.append(f"The pairs of hosts have their RTTs as they were set: {set_so}.")
        return {"rtt": set_so}
    if pings is None:
        if seen.least_rtt_s is None:
            seen.assumed.append(f"No idle ping was answered: the RTT is {set_so}, as it was set.")
            return {"rtt": set_so}
        seen.assumed.append(
            "No idle ping was answered: the base RTT is the least that a flow saw,"
            f" {_time(seen.least_rtt_s)}, and so at most that."
        )
        return {"rtt": _text("rtt", (_whole_us(seen.least_rtt_s),))}
    base_s = seen.base_s
    what = "the least" if seen.jitter is None and base_s == max(0.0, pings.low) else "the middle"
    half = ""
    if seen.jitter is not None:
        half = f", which lie between {_time(pings.low)} and {_time(pings.high)}, half of them within"
        half += f" {_time(seen.jitter.iqr_s)}"
    elif pings.n > 1:
        half = f", which lie within {_time(pings.high - pings.low)}"
    seen.measured.append(f"Base RTT {_time(base_s)}: {what} of {_pings(pings.n)}{half}.")
    return {"rtt": _text("rtt", (_whole_us(base_s),))}


def _pings(count: int) -> str:
    return "one idle ping" if count == 1 else f"{count} idle pings"


def _jitter(seen: Seen, knobs: Mapping[str, str], rate_bps: float) -> dict[str, str]:
    """Return the knobs jitter and jitter_dist, and say what they rest on.

    netem's jitter lets packets overtake each other. It is taken where flows saw that
    too, or where it is shorter than a packet takes and so cannot.
    """
    set_so = {name: seen.point.knobs[name] for name in ("jitter", "jitter_dist")}
    none = {"jitter": "0s", "jitter_dist": PATH_KNOBS["jitter_dist"].default}
    found = seen.jitter
    if seen.several_pairs or len(seen.rtts_s) < estimates.LEAST_PINGS:
        if set_so["jitter"] != "0s" or not seen.several_pairs:
            few = f"{len(seen.rtts_s)} idle pings say nothing of jitter, {estimates.LEAST_PINGS} would"
            why = "Jitter is not measured over several pairs" if seen.several_pairs else few
            seen.assumed.append(f"{why}: it is {set_so['jitter']}, as it was set.")
        return set_so
    if found is None:
        seen.measured.append(
            "No jitter: half of the idle RTTs lie within"
            f" {_time(seen.resolved_s)}, which is what hosts and clocks add."
        )
        return none
    said = f"Jitter {_time(found.jitter_s)}, {found.distribution}, by the middle half of the idle RTTs"
    packet_s = seen.packet_bytes * 8 / rate_bps
    if not seen.reordered and 2 * found.jitter_s > packet_s:
        seen.measured.append(f"{said}; packets kept their order.")
        seen.assumed.append(
            "The jitter is left out: netem's lets packets overtake each other, which no flow saw here."
        )
        return none
    one_way_s = float(PATH_KNOBS["rtt"].value(knobs["rtt"])[0]) / 2
    size_s = min(found.jitter_s, math.floor(one_way_s * 1e6) / 1e6)
    cut = "" if size_s == found.jitter_s else f"; cut to {_time(size_s)}, since a delay is not under 0"
    seen.measured.append(f"{said}{cut}.")
    seen.assumed.append("All of the jitter is on the way to the receiver, each packet for itself.")
    size_s = _whole_us(size_s)
    if not size_s:
        return none
    return {"jitter": _text("jitter", size_s), "jitter_dist": found.distribution}


def _loss_and_queue(seen: Seen, rate_bps: float) -> dict[str, str]:
    """Return the knobs loss, queue and offloads, and say what they rest on."""
    set_so = {name: seen.point.knobs[name] for name in ("loss", "queue", "offloads")}
    if not seen.steady:
        seen.assumed.append(
            f"The path changes over time, as it was told to: its loss is {set_so['loss']} and its queue"
            f" {set_so['queue']}, as they were set."
        )
        return set_so
    lost = seen.losses(rate_bps)
    queue = losses.queue(lost, rate_bps, seen.base_s, seen.packet_bytes)
    apart = _apart(seen, lost, queue)
    if apart:
        seen.assumed.append(
            "Packets go one by one, as on a wire, though the hosts' interfaces had offloads: an emulated"
            " network with them loses and queues up to 64 KiB at once. Without them Linux 6.6 and later"
            " advertises less of a receive buffer."
        )
    knobs = {**_loss(seen, lost), **_queue(seen, lost, queue, apart=apart)}
    return {**knobs, "offloads": "off" if apart else set_so["offloads"]}


def _apart(seen: Seen, lost: Losses, queue: Queue) -> bool:
    """Return whether the twin of hosts with offloads has to send packets one by one.

    On a wire there are no packets of 64 KiB. In an emulated network there are, which
    matters where single ones are lost, or where the queue holds only a few of them.
    """
    if seen.point.engine != REMOTE or not seen.point.offloads:
        return False
    return lost.lost > 0 or (queue.sure and queue.queue_bytes < _FEW * seen.point.packet_bytes)


def _loss(seen: Seen, lost: Losses) -> dict[str, str]:
    set_so = seen.point.knobs["loss"]
    if seen.point.loss.kind != "random":
        seen.assumed.append(f"Loss comes in bursts, which no rate describes: {set_so}, as it was set.")
        return {"loss": set_so}
    if not lost.sent:
        seen.assumed.append(
            f"The queue was never empty for long, so random loss was not seen: it is {set_so}, as it was set."
        )
        return {"loss": set_so}
    low, high = lost.bounds
    if not lost.lost:
        seen.measured.append(
            f"No random loss: of {lost.sent} segments sent while the queue was empty none was sent again;"
            f" up to {_percent(high)} would do the same."
        )
        return {"loss": "0%"}
    seen.measured.append(
        f"Random loss {_percent(lost.share)}: {lost.lost} of {lost.sent} segments sent while the queue was"
        f" empty were sent again; as many come by chance of {_percent(low)} to {_percent(high)}."
    )
    seen.assumed.append("Random losses are independent from packet to packet.")
    return {"loss": _text_loss(lost.share)}


def _queue(seen: Seen, lost: Losses, found: Queue, *, apart: bool) -> dict[str, str]:
    """Return the knob queue, and say what it rests on. apart: whether packets go one by one."""
    set_so = seen.point.knobs
    if set_so["qdisc"] != "fifo":
        seen.assumed.append(
            f"The queue is {set_so['qdisc']} of {set_so['queue']}, as it was set: it drops before it is full."
        )
        return {"queue": set_so["queue"]}
    if found.sure:
        seen.measured.append(
            f"Queue {human_size(found.queue_bytes)}: RTTs rose by {_time(lost.full_s)}, and"
            f" {_segments(lost.full_lost)} lost there."
        )
    else:
        seen.measured.append(
            f"Queue at least {human_size(found.waited_bytes)}: RTTs rose by {_time(lost.peak_s)}, and no"
            " losses there show that it was full."
        )
        seen.assumed.append(
            f"A queue of {human_size(found.queue_bytes)}: twice what waited or one BDP, whichever is more."
        )
    largest = seen.packet_bytes if apart else seen.point.packet_bytes
    if found.queue_bytes < largest:  # an offload's packet, as large as it gets
        seen.assumed.append(f"With offloads the queue holds one packet of {human_size(largest)} at least.")
    return {"queue": _text_queue(found.queue_bytes, largest)}


def _segments(count: int) -> str:
    return "1 segment was" if count == 1 else f"{count} segments were"


def _kernel(seen: Seen) -> str:
    """Return the kernel of the lab that is nearest to the one that ran, in how it sizes windows."""
    set_so = seen.point.knobs["kernel"]
    release = str(seen.records[0].row.get("kernel_release") or "")
    if set_so != HOST:
        return set_so
    try:
        old = not ignores_adv_win_scale(Release.parse(release))
    except (ValueError, IndexError):
        old = False
    chosen = "6.1" if old else "6.12"
    seen.assumed.append(
        f"Linux {chosen} stands for {release or 'the host’s own kernel'}: of the lab's kernels the one that"
        " sizes receive windows as that does."
    )
    return chosen


# numbers as knobs have them, and as people read them


def _significant(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _whole_us(time_s: float) -> float:
    """Return a time to four digits and whole microseconds, which is what tc sets."""
    return round(_significant(time_s) * 1e6) / 1e6


def _text(name: str, value: Any) -> str:
    knob = PATH_KNOBS[name]
    return knob.canonical(knob.show(value))


def _text_loss(share: float) -> str:
    return PATH_KNOBS["loss"].canonical(f"{share * 100:.3g}%")


def _text_queue(size_bytes: float, least_bytes: int) -> str:
    """Return a queue in whole KiB, and where that is coarse in bytes; never under the least."""
    if size_bytes < 10 * 1024:
        return PATH_KNOBS["queue"].canonical(f"{max(math.ceil(size_bytes), least_bytes)}B")
    kib = round(float(f"{size_bytes / 1024:.{_DIGITS}g}"))
    return PATH_KNOBS["queue"].canonical(f"{max(kib, -(-least_bytes // 1024))}KiB")


def _percent(share: float) -> str:
    return f"{share * 100:.2g} %"


def _time(time_s: float) -> str:
    if 0 < abs(time_s) < 1e-3:
        return f"{time_s * 1e6:.3g} us"
    return f"{time_s * 1e3:.4g} ms" if abs(time_s) < 1 else f"{time_s:.4g} s"
