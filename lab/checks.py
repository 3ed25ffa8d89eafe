"""What is wrong with a combination of knobs whose single values are right: one sentence a fault."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from lab import changes, layout, queues, traffic
from lab.combination import Point
from lab.knobs import LARGEST_QUEUE_BYTES, PATH_KNOBS
from lab.loads import OnOff
from lab.units import format_rate

MOST_FILLED_BYTES = 2**31 - 2**20
"""Of a send buffer: sk_wmem_queued is an int, and the last segments overshoot the buffer."""
MOST_UDP_PACKETS = 2_000_000
MOST_SAMPLES = 20_000_000
"""Sockets times instants: what one point may record."""
MOST_SPELLS = 1_000_000
"""Times of sending of all flows that pause."""
_NOT_IN_A_LEAF = (
    *("topology", "qdisc", "access", "rate_back", "reverse"),
    *("rate_change", "trace", "rtt_change", "loss_change"),
)
_PLAIN = {  # what the tools that the lab only starts cannot be told
    "start": "0s",
    "stop": "end",
    "spread": "0s",
    "on_off": "none",
    "arrivals": "none",
    "reverse": "0",
}


def check_point(point: Point) -> list[str]:
    """Return what is wrong with a combination whose single values are right."""
    return [
        *_path_faults(point),
        *(fault for check in (_network_faults, _change_faults, _traffic_faults) for fault in check(point)),
    ]


def _path_faults(point: Point) -> list[str]:
    """Return the faults of a single path: sizes and times that do not go together."""
    faults = []
    packet, queue = point.packet_bytes, point.queue
    if queues.LIMIT_UNIT[queue["kind"]] == "bytes" and int(queue["limit"]) < packet:
        faults.append(
            f"queue: {point.knobs['queue']!r} is {queue['limit']} bytes at rate={point.knobs['rate']}"
            f" rtt={point.knobs['rtt']}, under one packet of {packet} bytes"
            f" (mtu={point.mtu_bytes}, offloads={point.knobs['offloads']}); take a larger queue"
        )
    elif int(queue["limit"]) > LARGEST_QUEUE_BYTES:
        faults.append(
            f"queue: {point.knobs['queue']!r} is {queue['limit']} bytes at rate={point.knobs['rate']}"
            f" rtt={point.knobs['rtt']}, over the 4 GiB that a queue can hold; take a smaller queue"
        )
    least_rtt_s = min(point.rtts_s)
    one_way = least_rtt_s if point.knobs["recipe"] == "leaf" else least_rtt_s / 2
    for name, times in (
        ("rtt", point.rtts_s),
        ("jitter", (PATH_KNOBS["jitter"].value(point.knobs["jitter"]),)),
    ):
        if any(abs(t_s * 1e6 - round(t_s * 1e6)) > 1e-6 * max(t_s * 1e6, 1) for t_s in times):
            faults.append(
                f"{name}: {point.knobs[name]!r} is not whole microseconds, which is what tc sets; round it"
            )
    jitter_s = float(PATH_KNOBS["jitter"].value(point.knobs["jitter"]))
    if jitter_s > one_way:
        faults.append(
            f"jitter: {point.knobs['jitter']!r} is more than the delay of {one_way:g} s;"
            " a packet cannot arrive before it was sent; take less"
        )
    if point.knobs["reorder"] != "0%" and least_rtt_s == 0:
        faults.append("reorder: a path without delay cannot reorder; give an rtt")
    faults += [
        f"{name}: {point.knobs[name]!r} needs workload=bulk, whose sockets the lab opens itself"
        for name in ("rcvbuf", "sndbuf")
        if point.knobs[name] != "none" and point.knobs["workload"] != "bulk"
    ]
    if point.triple("wmem").default > MOST_FILLED_BYTES:
        faults.append(
            f"wmem: {point.knobs['wmem']!r} starts at {point.triple('wmem').default} bytes, and a writer that"
            f" fills more than {MOST_FILLED_BYTES} overflows the int in which Linux counts them; take less,"
            " or max= to have it tuned"
        )
    interval = PATH_KNOBS["interval"].value(point.knobs["interval"])
    if interval is not None and point.duration_s / interval > 1e5:
        faults.append(
            f"interval: {point.knobs['interval']!r} gives over 100000 samples in {point.knobs['duration']};"
            " take a longer one"
        )
    return faults


def _is_default(point: Point, name: str) -> bool:
    return point.knobs[name] == PATH_KNOBS[name].default


def _network_faults(point: Point) -> Iterator[str]:
    """Yield the faults of shape, links and queue."""
    shape, knobs = layout.shape(point), point.knobs
    if knobs["recipe"] == "leaf":
        for name in _NOT_IN_A_LEAF:
            if not _is_default(point, name):
                yield (
                    f"{name}: {knobs[name]!r} needs recipe=separate;"
                    " the leaf recipe is one netem under one htb"
                )
    if shape == "path":
        yield from _path_shape_faults(point)
    elif knobs["workload"] in ("iperf3", "http"):
        yield f"workload: {knobs['workload']!r} runs on topology=path; take bulk or request on {shape}"
    if shape == "two_way" and _is_default(point, "reverse"):
        yield "reverse: topology=two_way has hosts that send the other way; give them flows, such as 1"
    if shape == "parking_lot":
        yield from _parking_lot_faults(point)
    if shape in ("dumbbell", "star") and layout.pair_count(point) < len(point.rtts_s):
        yield (
            f"pairs: {knobs['pairs']!r} is fewer than the {len(point.rtts_s)} RTTs that are listed; give more"
        )
    yield from _place_faults(point)
    yield from _queue_faults(point)


def _place_faults(point: Point) -> Iterator[str]:
    """Yield the fault of a flow between hosts that are not there."""
    places, first = layout.places_of(point), layout.first_pair(point)
    last = first + layout.pair_count(point) - 1
    wrong = [place for place in places or () if not first <= place <= last]
    if wrong:
        yield (
            f"place: {point.knobs['place'][:40]!r} puts a flow on pair {wrong[0]}, and the pairs of this"
            f" {layout.shape(point)} are {first} to {last}; take one of them, or more pairs"
        )


def _path_shape_faults(point: Point) -> Iterator[str]:
    """Yield the faults of what a path is asked for beyond its one pair of hosts."""
    knobs = point.knobs
    if knobs["topology"] == "long_haul" and _is_default(point, "route"):
        yield "topology: 'long_haul' needs a route, such as geo-satellite; see docs/reference/routes.md"
    if len(point.rtts_s) > 1:
        yield (
            f"rtt: {knobs['rtt']!r} lists {len(point.rtts_s)} RTTs and a path has one pair of hosts;"
            " take topology=dumbbell or star"
        )
    if len(set(PATH_KNOBS["access"].value(knobs["access"]) or ())) > 1:
        yield (
            f"access: {knobs['access']!r} lists several rates and a path has one pair of hosts;"
            " take topology=dumbbell or star"
        )
    if not _is_default(point, "pairs") and knobs["pairs"] != "1":
        yield f"pairs: {knobs['pairs']!r}: a path has one pair of hosts; take topology=dumbbell or star"


def _parking_lot_faults(point: Point) -> Iterator[str]:
    knobs, pairs = point.knobs, layout.pair_count(point)
    if int(knobs["flows"]) < pairs and layout.places_of(point) is None:
        yield (
            f"flows: {knobs['flows']!r} leaves out cross traffic of a parking lot of"
            f" {knobs['bottlenecks']} bottlenecks; give at least {pairs}, or say their place"
        )
    if not _is_default(point, "pairs"):
        yield (
            f"pairs: {knobs['pairs']!r}: a parking lot has one pair more than bottlenecks; set bottlenecks"
        )


def _queue_faults(point: Point) -> Iterator[str]:
    kind, knobs = str(point.queue["kind"]), point.knobs
    if kind == "sfq" and int(point.queue["limit"]) > queues.SFQ_MOST_LIMIT:
        yield (
            f"queue: {knobs['queue']!r} is {point.queue['limit']} packets, over the {queues.SFQ_MOST_LIMIT}"
            " that sfq can hold; take a smaller queue"
        )
    if kind not in queues.TARGETED and not _is_default(point, "target"):
        yield f"target: {knobs['target']!r}: {kind} aims at no delay; {', '.join(sorted(queues.TARGETED))} do"
    if not _is_default(point, "ce_threshold"):
        if kind not in queues.STEPPED:
            has = ", ".join(sorted(queues.STEPPED))
            yield f"ce_threshold: {knobs['ce_threshold']!r}: {kind} has none; {has} do"
        elif knobs["ecn"] != "on":
            yield f"ce_threshold: {knobs['ce_threshold']!r} marks, and marks need ecn=on"
    if kind == "policer" and layout.varies(point):
        yield "qdisc: 'policer' has a fixed rate here; leave rate_change and trace out, or take another qdisc"


def _change_faults(point: Point) -> Iterator[str]:
    """Yield the faults of what changes over time."""
    knobs = point.knobs
    if knobs["trace"] != "none" and knobs["rate_change"] != "none":
        yield "trace: a trace sets the rate over time, and so does rate_change; give one of them"
    for name in ("rate_change", "rtt_change", "loss_change"):
        planned = point.changes(name)
        if planned and changes.last_s(planned) >= point.duration_s:
            yield (
                f"{name}: {knobs[name]!r} reaches {changes.last_s(planned):g} s and the run ends at"
                f" {point.duration_s:g} s; end it before, or give a longer duration"
            )
    yield from _rate_step_faults(point)
    for name in ("rtt_change", "loss_change"):
        if not _is_default(point, name) and min(point.rtts_s) == 0:
            yield f"{name}: {knobs[name]!r} needs a delay line; give an rtt over 0s"
    if not _is_default(point, "rtt_change") and len(point.rtts_s) > 1:
        yield f"rtt_change: {knobs['rtt_change']!r} changes one RTT, and rtt={knobs['rtt']} lists several"
    if not _is_default(point, "loss_change") and point.loss.kind != "random":
        yield f"loss_change: {knobs['loss_change']!r} changes a probability, and loss={knobs['loss']} is none"
    if point.loss.kind == "list" and knobs["recipe"] == "leaf":
        yield f"loss: {knobs['loss'][:40]!r} counts packets on a router, and recipe=leaf has none on the way"
    if point.loss.kind == "list" and point.offloads:
        yield (
            f"loss: {knobs['loss'][:40]!r} counts packets, and with offloads several travel as one;"
            " set offloads=off"
        )
    if not _is_default(point, "jitter_dist") and knobs["jitter"] == "0s":
        yield f"jitter_dist: {knobs['jitter_dist']!r} needs a jitter to distribute, such as jitter=5ms"


def _rate_step_faults(point: Point) -> Iterator[str]:
    """Yield the fault of a rate that is over before the link is through with one packet at it."""
    for change, following in itertools.pairwise(point.changes("rate_change")):
        held_s, packet_s = following.from_s - change.until_s, point.packet_on_wire_bytes * 8 / change.value
        if 0 < held_s < packet_s:
            yield (
                f"rate_change: {point.knobs['rate_change']!r} has {format_rate(change.value)} for"
                f" {held_s:.3g} s, and a packet takes {packet_s:.3g} s at that; hold it longer, or"
                " write an outage as a trace with a rate of 0"
            )
            return


def _traffic_faults(point: Point) -> Iterator[str]:
    """Yield the faults of what flows do."""
    yield from _time_faults(point)
    yield from _workload_faults(point)
    yield from _amount_faults(point)


def _time_faults(point: Point) -> Iterator[str]:
    """Yield the faults of when flows begin and end."""
    knobs, duration_s = point.knobs, point.duration_s
    starts, stops = (PATH_KNOBS[name].value(knobs[name]) for name in ("start", "stop"))
    late = max(starts) + float(PATH_KNOBS["spread"].value(knobs["spread"]))
    if late >= duration_s:
        yield (
            f"start: a flow that begins at {late:g} s comes after the end of the run at {duration_s:g} s;"
            " begin earlier, or give a longer duration"
        )
    past = [stop for stop in stops if stop is not None and stop > duration_s]
    if past:
        yield (
            f"stop: {past[0]:g} s is past the end of the run at {duration_s:g} s; write end, or a longer"
            " duration"
        )
    elif any(
        stop is not None and stop <= start
        for start, stop in zip(traffic.starts_s(point), itertools.cycle(stops), strict=False)
    ):
        yield f"stop: {knobs['stop']!r} ends a flow before start={knobs['start']} begins it; stop later"


def _workload_faults(point: Point) -> Iterator[str]:
    """Yield the faults of what a workload cannot be told."""
    knobs, workload = point.knobs, point.knobs["workload"]
    for name, default in _PLAIN.items() if workload != "bulk" else ():
        if knobs[name] != default and not (workload == "request" and name in ("start", "spread")):
            yield f"{name}: {knobs[name]!r} needs workload=bulk, whose flows the lab opens itself"
    if workload in ("iperf3", "http"):
        if len(set(point.controls)) > 1:
            yield f"cc: {knobs['cc']!r} gives flows different ones, which needs workload=bulk or request"
        if len(set(point.sizes_each or ())) > 1:
            yield f"bytes: {knobs['bytes']!r} gives flows different sizes, which needs workload=bulk"
    if workload == "request" and point.sizes_each:
        yield f"bytes: {knobs['bytes']!r}: workload=request sends requests and responses; set response"
    if workload != "bulk" and knobs["flows"] == "0" and knobs["udp"] != "none":
        yield f"flows: '0' needs workload=bulk: {workload} is nothing without flows"


def _amount_faults(point: Point) -> Iterator[str]:
    """Yield the faults of how much there is to send and to record."""
    knobs, duration_s = point.knobs, point.duration_s
    if int(knobs["flows"]) == 0 and knobs["arrivals"] == "none" and knobs["udp"] == "none":
        yield "flows: '0' leaves nothing to measure; give flows, arrivals or udp"
    pauses: OnOff | None = PATH_KNOBS["on_off"].value(knobs["on_off"])
    spells = int(knobs["flows"]) * duration_s / (pauses.on_s + pauses.off_s) if pauses else 0.0
    if spells > MOST_SPELLS:
        yield (
            f"on_off: {knobs['on_off']!r} are {spells:.3g} times of sending in {duration_s:g} s; at most"
            f" {MOST_SPELLS} can be: take longer ones or a shorter duration"
        )
    expected = traffic.arrival_count(point)
    if expected > traffic.MOST_ARRIVALS:
        yield (
            f"arrivals: {knobs['arrivals']!r} of sizes={knobs['sizes']} are about {expected:.0f} flows in"
            f" {duration_s:g} s; at most {traffic.MOST_ARRIVALS} can run: take larger ones or a shorter"
            " duration"
        )
    gap_s = traffic.udp_gap_s(point)
    if gap_s is not None and duration_s / gap_s > MOST_UDP_PACKETS:
        yield (
            f"udp: {knobs['udp']!r} are {duration_s / gap_s:.0f} packets in {duration_s:g} s;"
            f" at most {MOST_UDP_PACKETS} can be sent: take a lower rate or a shorter duration"
        )
    interval = PATH_KNOBS["interval"].value(knobs["interval"])
    recorded = 2 * duration_s / interval * traffic.most_at_once(point) if interval is not None else 0
    if recorded > MOST_SAMPLES:
        yield (
            f"interval: {knobs['interval']!r} records {recorded:.3g} samples of sockets, over"
            f" {MOST_SAMPLES}; take a longer one"
        )
