"""From a point's records to its measures: how full, how long, how fair, how soon.

What each measure is stands in `lab.measures`; here is where its numbers come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lab import layout, measures, traffic, varying
from lab.combination import Point
from lab.measures import Floats
from lab.metrics import Flow
from lab.model.path import mss_bytes, payload_share
from lab.records import Records

Row = dict[str, Any]

LEAST_TIME_SHARE = 0.02
"""Of the load: a flow that was there for less has no rate to be fair or unfair with."""


@dataclass(frozen=True)
class Span:
    """The load, s from the start of the recording, and where its steady part begins."""

    begin_s: float
    steady_s: float
    end_s: float

    def own(self, flow: Flow) -> tuple[float, float]:
        """Return a flow's own time within the load: all of it for one that is there from the start."""
        from_s = self.begin_s if flow.planned.start_s == 0 else flow.planned.start_s
        ended_s = flow.ended_s if flow.ended_s is not None else self.end_s
        return from_s, min(max(ended_s, from_s), self.end_s)


def flow_row(point: Point, flow: Flow, span: Span) -> Row:
    """Return the row of a flow."""
    planned = flow.planned
    from_s, until_s = span.own(flow)
    goodput = flow.delivery.rate_bps(from_s, until_s) if until_s > from_s else 0.0
    fct_s = _fct_s(flow, span)
    return {
        "flow": flow.number,
        "kind": planned.kind,
        "cc": flow.cc,
        "src": planned.src,
        "dst": planned.dst,
        "rtt_base_s": planned.rtt_s,
        "start_s": planned.start_s,
        "stop_s": planned.stop_s,
        "size_bytes": planned.size_bytes,
        "delivered_bytes": round(flow.delivery.at(span.end_s)),
        "goodput_bps": goodput,
        "steady_goodput_bps": flow.delivery.rate_bps(span.steady_s, span.end_s),
        "rtt_s": flow.rtt_s,
        "retransmits": flow.retransmits,
        "retransmit_share": measures.retransmit_share(flow.bytes_retrans, flow.bytes_sent),
        "min_rtt_s": flow.min_rtt_s,
        "finished_s": None if flow.finished_s is None else flow.finished_s - span.begin_s,
        "fct_s": fct_s,
        "slowdown": None if fct_s is None else _slowdown(point, flow, fct_s),
    }


def _fct_s(flow: Flow, span: Span) -> float | None:
    """Return how long a flow with a size took; None where it never ended."""
    if flow.planned.size_bytes is None or flow.finished_s is None:
        return None
    return flow.finished_s - span.own(flow)[0]


def _slowdown(point: Point, flow: Flow, fct_s: float) -> float | None:
    size = flow.planned.size_bytes
    assert size is not None
    round_trips = layout.out_share(point) + (
        1.0 if flow.planned.start_s > 0 else 0.0
    )  # one that comes later connects first
    return measures.slowdown(fct_s, size, point.rate_bps, flow.planned.rtt_s, point.mtu_bytes, round_trips)


def row(point: Point, flows: Sequence[Flow], found: Records, span: Span) -> Row:
    """Return the measures of a point, under the names of their columns."""
    return {
        **_bottleneck(point, found.queues, span),
        **_retransmissions(flows),
        **_fairness(point, flows, span),
        **_transfers(point, flows, span),
        **_streams(point, found.delays, span),
    }


def _column(rows: Sequence[Row], name: str) -> Floats:
    return np.array([one[name] or 0 for one in rows], dtype=np.float64)


def _bottleneck(point: Point, queues: Sequence[Row], span: Span) -> Row:
    """Return utilisation, the mean of the bottlenecks', and the waits of the one with the longest."""
    offered = varying.offered(varying.rate_steps(point))
    used, waits = [], []
    names = {name for pair in layout.plan(point).pairs for name in pair.bottlenecks}
    for name in sorted(names & set(traffic.bottlenecks(point))):
        rows = [one for one in queues if one["interface"] == name]
        if not rows:
            continue
        t_s, sent = _column(rows, "t_s"), _column(rows, "bytes")
        carried = float(np.interp(span.end_s, t_s, sent) - np.interp(span.begin_s, t_s, sent))
        could = offered(span.end_s) - offered(span.begin_s)
        used.append(measures.utilisation_of(carried, could) or 0.0)
        inside = [one for one in rows if span.begin_s <= one["t_s"] <= span.end_s]
        if not inside:  # a load that was over between two samples
            continue
        waits.append(
            measures.queue_delays_s(
                _column(inside, "t_s"),
                _column(inside, "backlog_bytes"),
                _column(inside, "rate_bps"),
                span.end_s,
            )
        )
    longest = max(waits, key=lambda three: three[0] or 0.0, default=(None, None, None))
    return {
        "utilisation": sum(used) / len(used) if used else None,
        "queue_delay_s": longest[0],
        "queue_delay_p95_s": longest[1],
        "queue_delay_p99_s": longest[2],
    }


def _retransmissions(flows: Sequence[Flow]) -> Row:
    return {
        "retransmit_share": measures.retransmit_share(
            sum(flow.bytes_retrans for flow in flows), sum(flow.bytes_sent for flow in flows)
        ),
        "ecn_marks": sum(flow.ecn_marks for flow in flows),
    }


def _fairness(point: Point, flows: Sequence[Flow], span: Span) -> Row:
    """Return fairness among the flows that last; those of a size are judged by their time.

    Flows the other way meet another queue: they do not compete with these.
    """
    flows = [flow for flow in flows if flow.planned.kind != traffic.REVERSE]
    lasting = [flow for flow in flows if flow.planned.size_bytes is None]
    timed = [(flow, *span.own(flow)) for flow in lasting]
    least_s = LEAST_TIME_SHARE * (span.end_s - span.begin_s)
    there = [(flow, flow.delivery.rate_bps(a, b)) for flow, a, b in timed if b - a > least_s]
    rates = [rate for _, rate in there]
    unfair = (
        measures.rtt_unfairness(rates, [flow.planned.rtt_s for flow, _ in there]) if len(there) > 1 else None
    )
    half_s = (span.begin_s + span.end_s) / 2  # competition settles later than the ramp
    shares = measures.share_by_control(
        [flow.delivery.at(span.end_s) - flow.delivery.at(half_s) for flow in flows],
        [flow.cc for flow in flows],
    )
    return {
        "jain": measures.jain(rates) if len(rates) > 1 else None,
        "convergence_s": _convergence_s(point, lasting, span),
        "rtt_unfairness": unfair.ratio if unfair else None,
        "cc_shares": shares,
    }


def _convergence_s(point: Point, lasting: Sequence[Flow], span: Span) -> float | None:
    """Return how soon the flow that joined last has its fair share; None where none joined others."""
    if len(lasting) < 2:
        return None
    joins = sorted({flow.planned.start_s for flow in lasting})
    if len(joins) < 2:
        return None
    last = max(lasting, key=lambda flow: (flow.planned.start_s, flow.number))
    join_s = last.planned.start_s
    beside = [flow for flow in lasting if set(flow.planned.bottlenecks) & set(last.planned.bottlenecks)]
    on = [flow for flow in beside if span.own(flow)[0] <= join_s < span.own(flow)[1]]
    leaves = [flow.ended_s for flow in beside if flow.ended_s is not None and flow.ended_s > join_s]
    fair_bps = varying.value_at(varying.rate_steps(point), join_s) * payload_share(point.mtu_bytes) / len(on)
    return measures.convergence_s(
        last.delivery.t_s,
        last.delivery.delivered,
        join_s,
        fair_bps,
        end_s=min([*leaves, span.end_s]),
        rtt_s=last.planned.rtt_s,
    )


def _transfers(point: Point, flows: Sequence[Flow], span: Span) -> Row:
    sized = [flow for flow in flows if flow.planned.size_bytes is not None]
    times = [(flow, fct_s) for flow in sized if (fct_s := _fct_s(flow, span)) is not None]
    fct = measures.quantiles([fct_s for _, fct_s in times], (0.5, 0.99))
    slow = measures.quantiles([_slowdown(point, flow, fct_s) for flow, fct_s in times], (0.5, 0.99))
    return {
        "flows_finished": len(times) if sized else None,
        "fct_s": fct[0],
        "fct_p99_s": fct[1],
        "slowdown": slow[0],
        "slowdown_p99": slow[1],
    }


def _streams(point: Point, delays: Sequence[Row], span: Span) -> Row:
    """Return what the probe, the UDP flow and the requests saw within the load."""
    base_s = layout.plan(point).pairs[0].rtt_s * layout.out_share(point)
    by_kind: dict[str, list[Row]] = {"probe": [], "udp": [], "request": []}
    for one in delays:
        if span.begin_s <= one["t_s"] <= span.end_s:
            by_kind[one["kind"]].append(one)
    # what was sent so late that the end came before it could arrive is not lost; where none arrived, all are
    for kind in ("probe", "udp"):
        last_s = max((one["t_s"] for one in by_kind[kind] if one["delay_s"] is not None), default=span.end_s)
        by_kind[kind] = [one for one in by_kind[kind] if one["t_s"] <= last_s]
    probe = measures.quantiles([one["delay_s"] for one in by_kind["probe"]])
    asked = measures.quantiles([one["delay_s"] for one in by_kind["request"]], (0.5, 0.99))
    arrived = sum(one["delay_s"] is not None for one in by_kind["udp"])
    payload = mss_bytes(point.mtu_bytes) + 24  # UDP's header is 8 bytes where TCP's is 32 here
    return {
        **{
            name: None if value is None else max(0.0, value - base_s)
            for name, value in zip(
                ("probe_delay_s", "probe_delay_p95_s", "probe_delay_p99_s"), probe, strict=True
            )
        },
        "probe_loss": _lost(by_kind["probe"]),
        "udp_goodput_bps": arrived * payload * 8 / (span.end_s - span.begin_s) if by_kind["udp"] else None,
        "udp_loss": _lost(by_kind["udp"]),
        "request_s": asked[0],
        "request_p99_s": asked[1],
    }


def _lost(rows: Sequence[Row]) -> float | None:
    return sum(one["delay_s"] is None for one in rows) / len(rows) if rows else None
