"""One point, from its settings to its rows: run it on an engine, check the path, measure, predict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lab import (
    captures,
    explain,
    layout,
    machine,
    measured,
    metrics,
    pathcheck,
    queues,
    records,
    spec,
    traffic,
    varying,
    verdict,
)
from lab.combination import REALTIME, REMOTE, Point
from lab.engines.base import Engine, EngineResult
from lab.errors import MachineLimited, MeasurementError
from lab.kernels import KernelRecord
from lab.knobs import INTEGER_KNOBS, PATH_KNOBS
from lab.measured import Span
from lab.model import inputs, rfc6349, windows
from lab.model.path import bdp_bytes, packet_bytes, payload_share
from lab.model.predict import predict
from lab.qdisc import GSO_MAX_BYTES
from lab.setting import setting, unpredicted
from lab.steady import steady_from_s

Row = dict[str, Any]


@dataclass(frozen=True)
class Terms:
    """How a point is run, beside what it is.

    wall_s: wall seconds that it may take. captured: interfaces whose packets are
    kept, and snap_bytes: how much of each packet.
    """

    wall_s: float = 1800.0
    captured: tuple[str, ...] = ()
    snap_bytes: int = captures.DEFAULT_SNAP_BYTES


def notes(point: Point, release: inputs.Release) -> str | None:
    """Return what a reader of this point has to know, None for nothing."""
    found = []
    if point.knobs["adv_win_scale"] != "default" and windows.ignores_adv_win_scale(release):
        found.append(
            f"adv_win_scale={point.knobs['adv_win_scale']} has no effect:"
            f" Linux {release.major}.{release.minor} ignores tcp_adv_win_scale (6.6 and later do)"
        )
    return "; ".join(found) or None


def base_row(point: Point, kernel: KernelRecord) -> Row:
    """Return the columns of a point that are known before it runs."""
    release = inputs.Release.parse(kernel.release)
    queue = point.queue
    return {
        "point": point.id,
        "note": notes(point, release),
        **{name: _column(name, text) for name, text in point.knobs.items()},
        "engine": point.engine,
        "seed": point.seed,
        "kernel_release": kernel.release,
        "kernel_hz": kernel.hz or None,
        "kernel_recipe_hash": kernel.recipe_hash,
        "kernel_config_hash": kernel.config_hash,
        "rate_bps": point.rate_bps,
        "configured_rtt_s": point.rtt_s,
        "bdp_bytes": bdp_bytes(point.rate_bps, point.rtt_s),
        "queue_limit": int(queue["limit"])
        if point.knobs["recipe"] == "separate"
        else int(point.knobs["leaf_limit"]),
        "queue_limit_unit": queues.LIMIT_UNIT[str(queue["kind"])]
        if point.knobs["recipe"] == "separate"
        else "packets",
        **_predicted(point, release),
    }


def _predicted(point: Point, release: inputs.Release) -> Row:
    """Return the columns of the prediction: a sentence why there is none, where there is none."""
    lacking = unpredicted(point)
    if lacking:
        return {"prediction": f"No prediction: {lacking}."}
    prediction = predict(setting(point, release))
    return {
        "predicted_goodput_bps": prediction.predicted_goodput_bps,
        "predicted_mean_goodput_bps": prediction.mean_goodput_bps,
        "predicted_rtt_s": prediction.rtt_s,
        "limit_predicted": prediction.limit,
        "predicted_shares": dict(prediction.shares),
        "next_limit": prediction.next_limit,
        "margin": prediction.margin,
        "prediction": prediction.sentence,
        "window_bytes": prediction.window_bytes,
        "send_window_bytes": prediction.send_window_bytes,
    }


def _column(name: str, text: str) -> str | int:
    return int(text) if name in INTEGER_KNOBS - {"adv_win_scale"} else text


def run(
    point: Point, engine: Engine, kernel: KernelRecord, *, cpu: int, folder: Path, terms: Terms
) -> tuple[dict[str, list[Row]], Mapping[str, Any]]:
    """Run a point; return its tables by name and what the agent reported.

    Raises EngineError or MeasurementError; then nothing of it counts.
    """
    result = engine.run(
        {**engine.agent_spec(point), "captures": captures.told(point, terms.captured, terms.snap_bytes)},
        kernel=kernel.path,
        seed=point.seed,
        memory_bytes=spec.guest_memory_bytes(point),
        cpu=cpu,
        folder=folder,
        wall_limit_s=terms.wall_s,
    )
    return tables(point, kernel, result), result.outcome


def tables(point: Point, kernel: KernelRecord, result: EngineResult) -> dict[str, list[Row]]:
    """Return the tables of a point that ran. Raises MeasurementError."""
    outcome = result.outcome
    path = _path(point, outcome)
    recorded = records.decode(result.frames, outcome, bottlenecks=traffic.bottlenecks(point))
    _check_delay_lines(point, recorded.queues)
    steps = varying.rate_steps(point)
    for entry in recorded.queues:
        if entry["bottleneck"]:
            entry["rate_bps"] = varying.value_at(steps, entry["t_s"])

    flows = metrics.flows(recorded.samples, outcome, traffic.flows(point))
    whole = metrics.total(flows)
    begin_s = min((flow.first_data_s for flow in flows), default=0.0)
    ends = [flow.finished_s for flow in flows if flow.finished_s is not None]
    last_s = max((entry["t_s"] for entry in recorded.queues), default=point.duration_s)
    end_s = max(ends) if ends and len(ends) == len(flows) else min(begin_s + point.duration_s, last_s)
    span = Span(
        begin_s,
        steady_from_s(whole.t_s.tolist(), whole.delivered.tolist(), begin_s, end_s, max(point.rtts_s)),
        end_s,
    )
    flow_rows = [measured.flow_row(point, flow, span) for flow in flows]
    measures = measured.row(point, flows, recorded, span)
    bottleneck = [row for row in recorded.queues if row["bottleneck"]]
    seen = bottleneck or (_by_arrivals(point, whole) if point.engine == REMOTE else [])
    judged = verdict.judge(recorded.samples, seen, _load(point, path, span))
    health = machine.judge(recorded.machine, span.begin_s, span.end_s)
    odd = _unexplained(point, judged.limit, flows, recorded.queues)
    used = measures["utilisation"]
    if used is None:  # no queue of ours to read: by what arrived, of what the link can carry
        capacity_bps = point.rate_bps * payload_share(point.mtu_bytes)
        used = whole.rate_bps(span.begin_s, span.end_s) / capacity_bps
    limited = machine.limited(health, min(point.rtts_s), used, odd)
    if limited:
        raise MachineLimited(limited, {"machine": [{**row, "point": point.id} for row in recorded.machine]})
    row: Row = {
        **base_row(point, kernel),
        "status": "done",
        "reason": None,
        "measured_rate_bps": path.rate_bps,
        "rtt_s": path.rtt_s,
        **_totals(point, flows, whole, recorded, span),
        **measures,
        **machine.columns(health),
        "limit_measured": judged.limit,
        "limit_shares": dict(judged.shares),
        "virtual_s": result.virtual_s,
        "wall_s": result.wall_s,
        "digest": records.digest(flow_rows, recorded),
    }
    row["verdict"] = _verdict(point, kernel, row)
    found = {
        "points": [row],
        "flows": flow_rows,
        "samples": recorded.samples,
        "queues": recorded.queues,
        "limits": judged.intervals,
        **({"delays": recorded.delays} if recorded.delays else {}),
        **({"machine": recorded.machine} if recorded.machine else {}),
    }
    name = point.id
    for rows in found.values():
        for entry in rows:
            entry["point"] = name
    return found


def _path(point: Point, outcome: Mapping[str, Any]) -> pathcheck.MeasuredPath:
    """Return the path as measured: one that was built, judged; one that was there before, as it is.

    Raises MeasurementError.
    """
    if outcome.get("links") is None:
        return pathcheck.judge_all(point, outcome["path"])
    measured = outcome["measured"]
    if outcome["links"] != AS_IS:
        built = pathcheck.judge_all(point, outcome["path"])
        (check,) = outcome["path"]
        rate_bps = pathcheck.judge_shaped(point, measured["rate_bps"], check["train"], check["train_sent_ns"])
        return pathcheck.MeasuredPath(built.rtt_s, rate_bps)
    base_rtt_s = measured["base_rtt_s"]
    return pathcheck.MeasuredPath(point.rtt_s if base_rtt_s is None else base_rtt_s, measured["rate_bps"])


AS_IS = "as-is"
"""Links that nobody built for this: see `lab.remote.inventory`."""

_ARRIVALS_SLACK = 1.02
"""What flows bring through a path that was measured may be so much less than its trains told."""


def _by_arrivals(point: Point, whole: metrics.Delivery) -> list[Row]:
    """Return what a bottleneck nobody can read has sent, as rows of its queue: by what came out behind it."""
    on_wire = _ARRIVALS_SLACK / payload_share(point.mtu_bytes)
    step_s = min(_ARRIVED_AT_ONCE * GSO_MAX_BYTES * 8 / point.rate_bps, point.duration_s / 10)
    grid = np.arange(whole.t_s[0], whole.t_s[-1] + step_s, step_s) if len(whole.t_s) else whole.t_s
    return [
        {"interface": "", "t_s": t_s, "bytes": whole.at(t_s) * on_wire, "drops": 0} for t_s in grid.tolist()
    ]


_ARRIVED_AT_ONCE = 50
"""Of the largest that arrive as one, between two readings: so that one more or less tells little."""

_LOSSY = ("loss", "loss_change", "jitter", "reorder", "rtt_change")
"""Knobs at whose defaults a network neither loses packets outside of its queues nor reorders them."""


def _unexplained(
    point: Point, limit: str, flows: Sequence[metrics.Flow], queue_rows: Sequence[Row]
) -> str | None:
    """Return what held flows back though no part of the network that was built does; None for nothing.

    Where all hosts are on one machine every queue is read. Packets that several
    CPUs forward overtake each other, and TCP takes that for loss.
    """
    if point.engine != REALTIME:
        return None
    if limit == "application" and point.knobs["workload"] == "bulk" and point.knobs["on_off"] == "none":
        return "senders or receivers were the limit, and these do nothing but send and receive"
    asked = any(point.knobs[name] != PATH_KNOBS[name].default for name in _LOSSY)
    if limit != "loss" or asked:
        return None
    again = sum(flow.retransmits for flow in flows)
    last = {(row["interface"], row["kind"]): row["drops"] or 0 for row in queue_rows}
    if sum(last.values()) * _RETRANSMITS_A_DROP >= again:
        return None
    return f"flows sent {again} segments again, and the queues dropped {sum(last.values())} packets"


_RETRANSMITS_A_DROP = 4
"""At most, where queues are the cause: a lost packet is sent again once, seldom twice."""


def _load(point: Point, path: pathcheck.MeasuredPath, span: Span) -> verdict.Load:
    """Return what the records are judged against."""
    steps = varying.rate_steps(point)
    offered = varying.offered(steps)
    alike = layout.shape(point) == "path"
    return verdict.Load(
        rate_bps=point.rate_bps,
        rtt_s=max(path.rtt_s or 0.0, point.rtt_s),
        packet_bytes=packet_bytes(point.mtu_bytes),
        begin_s=span.begin_s,
        steady_s=span.steady_s,
        end_s=span.end_s,
        ways={}
        if alike and point.knobs["reverse"] == "0"
        else {flow.number: verdict.Way(flow.rtt_s, flow.bottlenecks) for flow in traffic.flows(point)},
        offered_bytes=None
        if len(steps) == 1
        else lambda instants: np.array([offered(t_s) for t_s in instants]),
    )


def _totals(
    point: Point,
    flows: list[metrics.Flow],
    whole: metrics.Delivery,
    recorded: records.Records,
    span: Span,
) -> Row:
    """Return what all flows together came to; whole: their delivery."""
    load_s = span.end_s - span.begin_s
    bottleneck = [row for row in recorded.queues if row["bottleneck"]]
    last = {row["interface"]: row["drops"] for row in bottleneck}
    loaded_rtt_s = metrics.loaded_rtt_s(recorded.samples, span.steady_s, span.end_s)
    return {
        "goodput_bps": whole.rate_bps(span.begin_s, span.end_s),
        "steady_goodput_bps": whole.rate_bps(span.steady_s, span.end_s),
        "steady_from_s": span.steady_s - span.begin_s,
        "load_s": load_s,
        "delivered_bytes": round(whole.at(span.end_s)),
        "retransmits": sum(flow.retransmits for flow in flows),
        "queue_drops": sum(drops or 0 for drops in last.values()) if last else None,
        "queue_max_bytes": max((entry["backlog_bytes"] for entry in bottleneck), default=None),
        "loaded_rtt_s": loaded_rtt_s,
        **_rfc6349(point, whole.at(span.end_s), load_s, loaded_rtt_s, recorded.samples),
    }


def _verdict(point: Point, kernel: KernelRecord, row: Row) -> str:
    """Return the verdict in a sentence; advice takes the model, and where there is none there is none."""
    seen = explain.Measured(
        limit=row["limit_measured"],
        share=row["limit_shares"].get(row["limit_measured"], 0.0),
        steady_bps=row["steady_goodput_bps"],
        rtt_s=row["loaded_rtt_s"] or point.rtt_s,
        load_s=row["load_s"],
        retransmits=row["retransmits"],
        queue_drops=row["queue_drops"] or 0,
    )
    if unpredicted(point):
        return explain.plain(point.rate_bps, point.rtt_s, seen)
    return explain.sentence(setting(point, inputs.Release.parse(kernel.release)), seen)


def _rfc6349(
    point: Point, delivered_bytes: float, load_s: float, loaded_rtt_s: float | None, samples: list[Row]
) -> Row:
    """Return the metrics of RFC 6349; null where there is nothing to divide by."""
    last = {row["flow"]: row for row in samples if row["end"] == "sender" and "tcpi_bytes_sent" in row}
    sent = sum(row["tcpi_bytes_sent"] for row in last.values())
    again = sum(row["tcpi_bytes_retrans"] for row in last.values())
    ideal = rfc6349.ideal_throughput_bps(point.rate_bps, point.mtu_bytes)
    ratio = rfc6349.transfer_time_ratio(load_s, delivered_bytes, ideal) if delivered_bytes > 0 else None
    return {
        "transfer_time_ratio": ratio,
        "tcp_efficiency_percent": rfc6349.efficiency_percent(sent, again) if sent else None,
        "buffer_delay_percent": rfc6349.buffer_delay_percent(loaded_rtt_s, point.rtt_s)
        if loaded_rtt_s and point.rtt_s
        else None,
    }


def failed_row(point: Point, kernel: KernelRecord, reason: str) -> Row:
    """Return the row of a point that failed: it is stored, and it is not a zero."""
    return {**base_row(point, kernel), "status": "failed", "reason": reason}


def _check_delay_lines(point: Point, queue_rows: list[Row]) -> None:
    """Raise MeasurementError where a delay line dropped more than chance was told to."""
    if point.knobs["loss"] != "0%" or point.knobs["loss_change"] != "none":
        return
    for row in queue_rows:
        if not row["bottleneck"] and row["kind"] == "netem" and row["drops"]:
            raise MeasurementError(
                f"the delay line on {row['interface']} dropped {row['drops']} packets; it must never drop"
            )
