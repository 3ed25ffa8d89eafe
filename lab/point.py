"""One point, from its settings to its rows: run it on an engine, check the path, measure, predict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import explain, metrics, pathcheck, records, spec, verdict
from lab.engines.base import Engine, EngineResult
from lab.errors import MeasurementError
from lab.kernels import KernelRecord
from lab.model import inputs, rfc6349, windows
from lab.model.path import bdp_bytes, packet_bytes
from lab.model.predict import Prediction, predict
from lab.setting import setting
from lab.steady import steady_from_s
from lab.sweep import Point

Row = dict[str, Any]


@dataclass(frozen=True)
class Limits:
    """How long a point may take, wall seconds."""

    wall_s: float = 1800.0


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
    prediction: Prediction = predict(setting(point, release))
    queue = point.queue
    return {
        "point": point.id,
        "note": notes(point, release),
        **{name: _column(name, text) for name, text in point.knobs.items()},
        "engine": point.engine,
        "seed": point.seed,
        "kernel_release": kernel.release,
        "kernel_hz": kernel.hz,
        "kernel_recipe_hash": kernel.recipe_hash,
        "kernel_config_hash": kernel.config_hash,
        "rate_bps": point.rate_bps,
        "configured_rtt_s": point.rtt_s,
        "bdp_bytes": bdp_bytes(point.rate_bps, point.rtt_s),
        "queue_limit": int(queue["limit"])
        if point.knobs["recipe"] == "separate"
        else int(point.knobs["leaf_limit"]),
        "queue_limit_unit": "bytes"
        if queue["kind"] == "bfifo" and point.knobs["recipe"] == "separate"
        else "packets",
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
    return int(text) if name in ("mtu", "flows", "leaf_limit") else text


def run(
    point: Point, engine: Engine, kernel: KernelRecord, *, cpu: int, folder: Path, limits: Limits
) -> tuple[dict[str, list[Row]], Mapping[str, Any]]:
    """Run a point; return its tables by name and what the agent reported.

    Raises EngineError or MeasurementError; then nothing of it counts.
    """
    result = engine.run(
        spec.agent_spec(point, teardown=engine.teardown),
        kernel=kernel.path,
        seed=point.seed,
        memory_bytes=spec.guest_memory_bytes(point),
        cpu=cpu,
        folder=folder,
        wall_limit_s=limits.wall_s,
    )
    return tables(point, kernel, result), result.outcome


def tables(point: Point, kernel: KernelRecord, result: EngineResult) -> dict[str, list[Row]]:
    """Return the tables of a point that ran. Raises MeasurementError."""
    outcome = result.outcome
    measured = pathcheck.judge(point, **outcome["path"])
    leaf = point.knobs["recipe"] == "leaf"
    samples, queues = records.decode(
        result.frames, outcome, sender="snd", bottleneck="snd-eth0" if leaf else "r1-eth1"
    )
    _check_delay_lines(point, queues)

    bytes_each = point.value("bytes")
    each = int(str(bytes_each)) if bytes_each is not None else None
    flows = metrics.flows(samples, outcome, each if point.knobs["workload"] != "iperf3" else None)
    begin_s = min(flow.first_data_s for flow in flows)
    whole = metrics.total(flows)
    ends = [flow.finished_s for flow in flows if flow.finished_s is not None]
    end_s = max(ends) if len(ends) == len(flows) else min(begin_s + point.duration_s, float(whole.t_s[-1]))
    steady_s = steady_from_s(whole.t_s.tolist(), whole.delivered.tolist(), begin_s, end_s, point.rtt_s)

    flow_rows: list[Row] = [
        {
            "flow": flow.number,
            "cc": flow.cc,
            "delivered_bytes": round(flow.delivery.at(end_s)),
            "goodput_bps": flow.delivery.rate_bps(begin_s, end_s),
            "steady_goodput_bps": flow.delivery.rate_bps(steady_s, end_s),
            "retransmits": flow.retransmits,
            "min_rtt_s": flow.min_rtt_s,
            "finished_s": None if flow.finished_s is None else flow.finished_s - begin_s,
        }
        for flow in flows
    ]
    bottleneck = [row for row in queues if row["bottleneck"]]
    judged = verdict.judge(
        samples,
        bottleneck,
        verdict.Load(
            rate_bps=point.rate_bps,
            rtt_s=max(measured.rtt_s or 0.0, point.rtt_s),
            packet_bytes=packet_bytes(point.mtu_bytes),
            begin_s=begin_s,
            steady_s=steady_s,
            end_s=end_s,
        ),
    )
    loaded_rtt_s = metrics.loaded_rtt_s(samples, steady_s, end_s)
    retransmits = sum(flow.retransmits for flow in flows)
    drops = bottleneck[-1]["drops"] if bottleneck else None
    steady_bps = whole.rate_bps(steady_s, end_s)
    row: Row = {
        **base_row(point, kernel),
        "status": "done",
        "reason": None,
        "measured_rate_bps": measured.rate_bps,
        "rtt_s": measured.rtt_s,
        "goodput_bps": whole.rate_bps(begin_s, end_s),
        "steady_goodput_bps": steady_bps,
        "steady_from_s": steady_s - begin_s,
        "load_s": end_s - begin_s,
        "delivered_bytes": round(whole.at(end_s)),
        "retransmits": retransmits,
        "queue_drops": drops,
        "queue_max_bytes": max((entry["backlog_bytes"] for entry in bottleneck), default=None),
        "loaded_rtt_s": loaded_rtt_s,
        **_rfc6349(point, whole.at(end_s), end_s - begin_s, loaded_rtt_s, samples),
        "limit_measured": judged.limit,
        "limit_shares": dict(judged.shares),
        "verdict": explain.sentence(
            setting(point, inputs.Release.parse(kernel.release)),
            explain.Measured(
                limit=judged.limit,
                share=judged.shares.get(judged.limit, 0.0),
                steady_bps=steady_bps,
                rtt_s=loaded_rtt_s or point.rtt_s,
                load_s=end_s - begin_s,
                retransmits=retransmits,
                queue_drops=drops or 0,
            ),
        ),
        "virtual_s": result.virtual_s,
        "wall_s": result.wall_s,
        "digest": records.digest(flow_rows, samples, queues),
    }
    found = {
        "points": [row],
        "flows": flow_rows,
        "samples": samples,
        "queues": queues,
        "limits": judged.intervals,
    }
    for rows in found.values():
        for entry in rows:
            entry["point"] = point.id
    return found


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


def _check_delay_lines(point: Point, queues: list[Row]) -> None:
    """Raise MeasurementError where a delay line dropped more than chance was told to."""
    if point.knobs["loss"] != "0%":
        return
    for row in queues:
        if not row["bottleneck"] and row["kind"] == "netem" and row["drops"]:
            raise MeasurementError(
                f"the delay line on {row['interface']} dropped {row['drops']} packets; it must never drop"
            )
