"""A run that nobody ran: stored through `RunFolder` with made-up numbers, for tests of what reads runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab import schema, traffic
from lab.combination import Point
from lab.knobs import INTEGER_KNOBS, PATH_KNOBS
from lab.model.inputs import Release
from lab.model.limits import LIMITS, words
from lab.model.path import bdp_bytes, payload_share
from lab.model.predict import predict
from lab.queues import LIMIT_UNIT
from lab.setting import setting, unpredicted
from lab.store import RunFolder

Row = dict[str, Any]
Floats = NDArray[np.float64]

INTEGERS = INTEGER_KNOBS - {"adv_win_scale"}
MSS = 1448
SAMPLES = 40
SPACING_S = 0.05
STEADY_S = 0.4
KERNELS = {"6.12": "6.12.117", "6.1": "6.1.192"}


def point(seed: int = 1, **knobs: str) -> Point:
    """Return a point: every knob at its default but for those given, in any spelling."""
    chosen = {name: knob.canonical(knobs.pop(name, knob.default)) for name, knob in PATH_KNOBS.items()}
    assert not knobs, f"no such knob: {knobs}"
    return Point(chosen, "virtual", seed)


def base_row(of: Point) -> Row:
    """Return what is known of a point before it runs."""
    release = KERNELS[of.knobs["kernel"]]
    queue = of.queue
    return {
        "point": of.id,
        **{name: int(text) if name in INTEGERS else text for name, text in of.knobs.items()},
        "engine": of.engine,
        "seed": of.seed,
        "kernel_release": release,
        "rate_bps": of.rate_bps,
        "configured_rtt_s": of.rtt_s,
        "bdp_bytes": bdp_bytes(of.rate_bps, of.rtt_s),
        "queue_limit": queue["limit"],
        "queue_limit_unit": LIMIT_UNIT[queue["kind"]],
        **_predicted(of, release),
    }


def _predicted(of: Point, release: str) -> Row:
    lacking = unpredicted(of)
    if lacking:
        return {"prediction": f"No prediction: {lacking}."}
    prediction = predict(setting(of, Release.parse(release)))
    return {
        "predicted_goodput_bps": prediction.predicted_goodput_bps,
        "predicted_mean_goodput_bps": prediction.mean_goodput_bps,
        "predicted_rtt_s": prediction.rtt_s,
        "limit_predicted": prediction.limit,
        "predicted_shares": dict(prediction.shares),
        "next_limit": prediction.next_limit,
        "margin": prediction.margin,
        "window_bytes": prediction.window_bytes,
        "send_window_bytes": prediction.send_window_bytes,
        "prediction": prediction.sentence,
    }


def done(of: Point, **changes: Any) -> dict[str, list[Row]]:
    """Return the tables of a point that went as predicted; `changes` are to its row."""
    row = base_row(of)
    goodput = row.get("predicted_goodput_bps") or 0.9 * of.rate_bps
    limit = row.get("limit_predicted") or "link"
    flows = int(of.knobs["flows"])
    limited = [one for flow in range(flows) for one in _limits(of, flow, limit)]
    total_s = sum(one["span_s"] for one in limited)
    spent = {name: sum(one[f"{name}_s"] for one in limited) / total_s for name in LIMITS}
    row |= {
        "status": "done",
        "measured_rate_bps": of.rate_bps,
        "rtt_s": of.rtt_s + 1e-6,
        "goodput_bps": 0.8 * goodput,
        "steady_goodput_bps": 0.99 * goodput,
        "steady_from_s": STEADY_S,
        "load_s": (SAMPLES - 1) * SPACING_S,
        "retransmits": 3,
        "queue_drops": 5,
        "queue_max_bytes": 1514 * (SAMPLES - 1),
        "loaded_rtt_s": of.rtt_s,
        "limit_measured": max(spent, key=spent.__getitem__),
        "limit_shares": {name: share for name, share in spent.items() if share > 0},
        "verdict": f"The {words(limit)} bound for the most part. Raise it, or leave it.",
        "digest": "d1" * 32,
        **changes,
    }
    samples = [
        sample
        for number in range(SAMPLES)
        for flow in range(flows)
        for sample in _samples(of, flow, number, goodput / flows)
    ]
    queues = [_queue(of, number) for number in range(SAMPLES)]
    return {"points": [row], "flows": [], "samples": samples, "queues": queues, "limits": limited}


def _limits(of: Point, flow: int, limit: str) -> list[Row]:
    """Return one row an interval between two samples: slow start up to the steady part, then the limit.

    The application had nothing to send for a tenth of the last interval.
    """
    rows = []
    for number in range(1, SAMPLES):
        bound = "slow_start" if number * SPACING_S <= STEADY_S + 1e-9 else limit
        spent = dict.fromkeys(LIMITS, 0.0)
        idle_s = 0.1 * SPACING_S if number == SAMPLES - 1 else 0.0
        spent["application"] += idle_s
        spent[bound] += SPACING_S - idle_s
        seconds = {f"{name}_s": time_s for name, time_s in spent.items()}
        rows.append({"point": of.id, "flow": flow, "t_s": number * SPACING_S, "span_s": SPACING_S, **seconds})
    return rows


def _samples(of: Point, flow: int, number: int, goodput_bps: float) -> list[Row]:
    t_s = number * SPACING_S
    common = {"point": of.id, "t_s": t_s, "flow": flow, "cc": of.knobs["cc"]}
    sender = {
        "end": "sender",
        "tcpi_snd_mss": MSS,
        "tcpi_snd_cwnd": 10 + number,
        "tcpi_snd_wnd": 65536 * (1 + number),
        "tcpi_unacked": 12,
        "tcpi_sacked": 3,
        "tcpi_lost": 2,
        "tcpi_retrans": 1,
        "tcpi_rtt": round(of.rtt_s * 1e6) + 100 * flow,
        "tcpi_total_retrans": 3 if number > 20 else 0,
        "tcpi_busy_time": round(t_s * 1e6) or None,
        "skmem_wmem_queued": 30000,
        "skmem_sndbuf": 87040,
    }
    waiting = 1000
    received = round(goodput_bps * t_s / 8)
    receiver = {"end": "receiver", "tcpi_bytes_received": received + waiting, "idiag_rqueue": waiting}
    return [{**common, **sender}, {**common, **receiver}]


def _queue(of: Point, number: int) -> Row:
    return {
        "point": of.id,
        "t_s": number * SPACING_S,
        "node": "r1",
        "interface": "r1-eth1",
        "kind": of.queue["kind"],
        "bottleneck": True,
        "backlog_bytes": 1514 * number,
        "drops": 5 if number > 20 else 0,
    }


INSTANTS = 60
"""Samples of each flow that competes for the whole load."""
PROBES = 120


def competing(of: Point, **changes: Any) -> dict[str, list[Row]]:
    """Return the tables of a point whose flows share the bottleneck, as `lab.traffic` plans them.

    A fluid model with chance from the seed: at each instant flows share the link
    by weights, BBR's by the queue's length, the others' by their RTT. What it
    comes to is plausible, not right.
    """
    chance = np.random.default_rng(int(of.id, 16))
    planned = traffic.flows(of)
    t_s = np.linspace(0.0, of.duration_s, INSTANTS)
    capacity = of.rate_bps * payload_share(of.mtu_bytes)
    bdps = max(0.05, of.queue["limit"] * _queue_unit(of) * 8 / of.rate_bps / max(of.rtt_s, 1e-3))
    bbr = np.clip(0.5 + 0.5 / bdps, 0.3, 0.95)
    weights = np.array([_weight(flow, planned, float(bbr)) for flow in planned])
    weights = weights * chance.lognormal(0.0, 0.12, len(planned))
    read = np.zeros((len(planned), INSTANTS))
    for at in range(1, INSTANTS):
        on = np.array([_is_on(flow, t_s[at - 1], read[n, at - 1]) for n, flow in enumerate(planned)])
        swing = weights * on * chance.lognormal(0.0, 0.2, len(planned))
        ways = np.array([flow.kind == traffic.REVERSE for flow in planned])
        for way in (ways, ~ways):
            if (on & way).any():
                got = capacity * (t_s[at] - t_s[at - 1]) / 8 * swing * way / (swing * way).sum()
                read[:, at] += got
        read[:, at] += read[:, at - 1]
    sizes = [flow.size_bytes for flow in planned]
    read = np.array([np.minimum(its, size or np.inf) for its, size in zip(read, sizes, strict=True)])
    backlog = (
        of.queue["limit"]
        * _queue_unit(of)
        * np.clip(0.5 + 0.45 * np.sin(7 * t_s) + 0.08 * chance.normal(size=INSTANTS), 0, 1)
    )
    wait_s = backlog * 8 / of.rate_bps
    samples, flows = [], []
    for number, flow in enumerate(planned):
        there = (t_s >= flow.start_s) & (t_s <= (flow.stop_s or np.inf))
        done_at = (
            np.flatnonzero(read[number] >= flow.size_bytes) if flow.size_bytes else np.zeros(0, dtype=int)
        )
        if len(done_at):
            there &= t_s <= t_s[done_at[0]]
        if not there.any():
            continue
        flows.append(_flow_row(of, flow, t_s[there], read[number][there], bool(len(done_at)), chance))
        for at in np.flatnonzero(there):
            samples += _pair(of, flow, float(t_s[at]), read[number], int(at), float(wait_s[at]))
    rates = np.array([row["goodput_bps"] for row in flows if row["kind"] == "lasting"])
    total = {cc: sum(row["delivered_bytes"] for row in flows if row["cc"] == cc) for cc in of.controls}
    everything = sum(total.values()) or 1
    fcts = [row["fct_s"] for row in flows if row["fct_s"] is not None]
    slow = [row["slowdown"] for row in flows if row["slowdown"] is not None]
    goodput = float(read[:, -1].sum() * 8 / of.duration_s * chance.uniform(0.94, 1.0))
    row = {
        **base_row(of),
        "status": "done",
        "measured_rate_bps": of.rate_bps,
        "rtt_s": of.rtt_s,
        "goodput_bps": goodput,
        "steady_goodput_bps": goodput * float(chance.uniform(0.96, 1.0)),
        "steady_from_s": 0.2 * of.duration_s,
        "load_s": of.duration_s,
        "utilisation": goodput / capacity * float(chance.uniform(0.95, 1.0)),
        "queue_delay_s": float(np.median(wait_s)),
        "queue_delay_p95_s": float(np.quantile(wait_s, 0.95)),
        "queue_delay_p99_s": float(np.quantile(wait_s, 0.99)),
        "loaded_rtt_s": of.rtt_s + float(np.median(wait_s)),
        "retransmits": int(chance.integers(10, 500)),
        "retransmit_share": float(chance.lognormal(-6, 0.5)),
        "queue_drops": int(chance.integers(10, 500)),
        "jain": float(rates.sum() ** 2 / (len(rates) * (rates**2).sum())) if len(rates) > 1 else None,
        "convergence_s": float(chance.uniform(0.5, 3)) if len(rates) > 1 else None,
        "cc_shares": {cc: bytes_ / everything for cc, bytes_ in total.items()},
        "flows_finished": len(fcts) or None,
        "fct_s": float(np.median(fcts)) if fcts else None,
        "fct_p99_s": float(np.quantile(fcts, 0.99)) if fcts else None,
        "slowdown": float(np.median(slow)) if slow else None,
        "slowdown_p99": float(np.quantile(slow, 0.99)) if slow else None,
        "limit_measured": "link",
        "limit_shares": {"link": 0.9, "slow_start": 0.1},
        "verdict": "The link bound for the most part.",
        "digest": "d2" * 32,
        **changes,
    }
    delays = _probes(of, t_s, wait_s, chance) if of.knobs["probe"] != "none" else []
    if delays:
        known = [one["delay_s"] - of.rtt_s / 2 for one in delays if one["delay_s"] is not None]
        for name, share in (("", 0.5), ("_p95", 0.95), ("_p99", 0.99)):
            row.setdefault(f"probe_delay{name}_s", float(np.quantile(known, share)))
        row.setdefault("probe_loss", 1 - len(known) / len(delays))
    names = (
        [f"r{n + 1}-eth1" for n in range(int(of.knobs["bottlenecks"]))]
        if "parking" in of.knobs["topology"]
        else ["r1-eth1"]
    )
    queues = [
        {
            **_queue(of, at),
            "t_s": float(t_s[at]),
            "node": name.split("-")[0],
            "interface": name,
            "backlog_bytes": int(backlog[at] * 0.8**place),
            "drops": int(np.cumsum(backlog > 0.97 * backlog.max())[at]) * 3,
            "rate_bps": of.rate_bps,
        }
        for place, name in enumerate(names)
        for at in range(INSTANTS)
    ]
    tables = {"points": [row], "flows": flows, "samples": samples, "queues": queues, "limits": []}
    return {**tables, "delays": delays}


def _queue_unit(of: Point) -> int:
    return of.packet_bytes if LIMIT_UNIT[of.queue["kind"]] == "packets" else 1


def _weight(flow: traffic.Flow, planned: Sequence[traffic.Flow], bbr: float) -> float:
    """Return what a flow weighs beside the others that go its way."""
    mixed = {one.cc for one in planned}
    own = sum(one.cc == flow.cc for one in planned)
    if "bbr" not in mixed or len(mixed) == 1:
        return 1 / max(flow.rtt_s, 1e-3) ** 0.7
    return (bbr if flow.cc == "bbr" else (1 - bbr) / (len(mixed) - 1)) / own


def _is_on(flow: traffic.Flow, t_s: float, read: float) -> bool:
    unfinished = flow.size_bytes is None or read < flow.size_bytes
    return flow.start_s <= t_s < (flow.stop_s or np.inf) and unfinished


def _flow_row(
    of: Point, flow: traffic.Flow, t_s: Floats, read: Floats, finished: bool, chance: np.random.Generator
) -> Row:
    span_s = max(float(t_s[-1] - t_s[0]), 1e-3)
    # instants are coarse: a finer time makes a smooth distribution
    fct_s = max(flow.rtt_s, span_s - float(chance.uniform(0, t_s[-1] / INSTANTS))) if finished else None
    ideal_s = (flow.size_bytes or 0) * 8 / of.rate_bps + flow.rtt_s / 2
    return {
        "point": of.id,
        "flow": flow.number,
        "cc": flow.cc,
        "kind": flow.kind,
        "src": flow.src,
        "dst": flow.dst,
        "rtt_base_s": flow.rtt_s,
        "start_s": flow.start_s,
        "stop_s": flow.stop_s,
        "size_bytes": flow.size_bytes,
        "delivered_bytes": int(read[-1]),
        "goodput_bps": float((read[-1] - read[0]) * 8 / span_s),
        "steady_goodput_bps": float((read[-1] - read[0]) * 8 / span_s),
        "retransmits": int(chance.integers(0, 50)),
        "retransmit_share": float(chance.lognormal(-6, 0.5)),
        "min_rtt_s": flow.rtt_s,
        "rtt_s": flow.rtt_s * 1.3,
        "finished_s": float(t_s[-1]) if finished else None,
        "fct_s": fct_s,
        "slowdown": max(1.0, fct_s / ideal_s) if fct_s else None,
    }


def _pair(of: Point, flow: traffic.Flow, t_s: float, read: Floats, at: int, wait_s: float) -> list[Row]:
    """Return what both ends of a flow show at an instant."""
    step_s = of.duration_s / (INSTANTS - 1)
    rate = (read[at] - read[at - 1]) / step_s if at else 0.0
    inflight = max(4, round(rate * (flow.rtt_s + wait_s) / MSS))
    lost = at > INSTANTS // 6 and flow.cc != "bbr"
    common = {"point": of.id, "t_s": t_s, "flow": flow.number, "cc": flow.cc}
    sender = {
        "end": "sender",
        "tcpi_snd_mss": MSS,
        "tcpi_snd_cwnd": round(inflight * (2.0 if flow.cc == "bbr" else 1.05)) + 1,
        "tcpi_snd_ssthresh": round(inflight * 0.8) if lost else None,
        "tcpi_snd_wnd": 4 * 2**20,
        "tcpi_unacked": inflight,
        "tcpi_sacked": 0,
        "tcpi_lost": 0,
        "tcpi_retrans": 0,
        "tcpi_rtt": round((flow.rtt_s + wait_s) * 1e6),
        "tcpi_total_retrans": at // 8 if lost else 0,
        "tcpi_busy_time": round((t_s - flow.start_s) * 1e6) or None,
        "skmem_wmem_queued": inflight * 2304,
        "skmem_sndbuf": 4 * 2**20,
    }
    receiver = {"end": "receiver", "tcpi_bytes_received": round(read[at]), "idiag_rqueue": 0}
    return [{**common, **sender}, {**common, **receiver}]


def _probes(of: Point, t_s: Floats, wait_s: Floats, chance: np.random.Generator) -> list[Row]:
    sent_s = np.linspace(0.0, of.duration_s, PROBES)
    delays_s = of.rtt_s / 2 + np.interp(sent_s, t_s, wait_s) + chance.exponential(0.0005, PROBES)
    lost = chance.random(PROBES) < 0.03
    return [
        {
            "point": of.id,
            "kind": "probe",
            "flow": None,
            "t_s": float(at),
            "delay_s": None if gone else float(delay),
        }
        for at, delay, gone in zip(sent_s, delays_s, lost, strict=True)
    ]


QUEUES = ("0.5bdp", "1bdp", "2bdp", "4bdp", "8bdp")
MIXED = {
    "topology": "dumbbell",
    "rate": "100mbit",
    "rtt": "40ms",
    "flows": "4",
    "duration": "10s",
    "probe": "50ms",
}


def mixed(path: Path, seeds: Sequence[int] = (1, 2, 3), **changes: Any) -> RunFolder:
    """Write a run of two BBR and two CUBIC flows that begin one after the other, by queue and seed."""
    points = [
        point(seed, **MIXED, cc="bbr+cubic", start="0s+1s+2s+3s", queue=queue)
        for queue in QUEUES
        for seed in seeds
    ]
    figures = [
        {
            "title": "What BBR takes",
            "x": "queue",
            "by": ["cc"],
            "y": "cc_shares:bbr",
            "theory": "ware",
        },
        {"title": "Fairness", "x": "queue", "by": ["cc"], "y": "jain"},
        {
            "title": "Goodput and delay",
            "kind": "ellipse",
            "x": "queue_delay_s",
            "y": "goodput_bps",
            "by": ["queue"],
        },
        {
            "title": "Goodput of the flows",
            "kind": "box",
            "table": "flows",
            "x": "queue",
            "by": ["cc"],
            "y": "goodput_bps",
        },
        {
            "title": "Delay of the probe",
            "kind": "cdf",
            "table": "delays",
            "x": "",
            "by": ["queue"],
            "y": "delay_s",
        },
        {"title": "Over time", "kind": "time", "x": "queue", "by": [], "y": "goodput_bps"},
    ]
    tables = [(of, competing(of)) for of in points]
    return store(path, tables, **{"figures": figures, **changes})


def failed(of: Point, reason: str) -> dict[str, list[Row]]:
    """Return the one table of a point that failed."""
    return {"points": [{**base_row(of), "status": "failed", "reason": reason}]}


OUTCOME = {
    "commands": {
        "snd": {"ip": ["link set dev snd-eth0 up"], "tc": []},
        "r1": {"ip": [], "tc": ["qdisc add dev r1-eth1 root handle 1: htb default 1"]},
    },
    "sysctls": {"": {"net.ipv4.tcp_mem": "1 2 3"}, "snd": {"net.ipv4.tcp_wmem": "4096 16384 4194304"}},
}


def manifest(points: Sequence[Point], **changes: Any) -> dict[str, Any]:
    """Return the manifest of a run of these points."""
    return {
        "schema_version": schema.VERSION,
        "wanlab_version": "0.0.0",
        "scenario": "made_up",
        "scenario_path": "scenarios/made_up.py",
        "scenario_hash": "5c" * 32,
        "scenario_source": "scenario = Scenario(...)\n",
        "question": "How big must the buffers be?",
        "why": "Because a window is not a buffer.\n\nThe second paragraph.",
        "preset": None,
        "settings": {},
        "engine": "virtual",
        "seeds": sorted({of.seed for of in points}),
        "command": "wanlab run scenarios/made_up.py --engine virtual --seed 1",
        "figures": [
            {"title": "Goodput against rmem", "x": "rmem", "by": ["cc", "kernel"], "y": "steady_goodput_bps"}
        ],
        "published": [],
        "points": [{"point": of.id, "seed": of.seed, "knobs": dict(of.knobs)} for of in points],
        "kernels": {
            "6.12": {"release": "6.12.117", "hz": 250, "recipe_hash": "ab" * 32, "config_hash": "ef" * 32}
        },
        "host": {
            "machine": "x86_64",
            "cpus": 2,
            "kernel": "6.1.0",
            "python": "3.11",
            "packages": {"numpy": "2"},
        },
        "began": "2026-01-01T00:00:00+00:00",
        "ended": "2026-01-01T00:01:00+00:00",
        "expectations": [{"text": "it fills the link", "status": "met", "points": 2, "failures": []}],
        **changes,
    }


def store(
    path: Path, tables: Sequence[tuple[Point, dict[str, list[Row]] | None]], **changes: Any
) -> RunFolder:
    """Write a run of points with their tables, None for a point that has not run, and return its folder."""
    folder = RunFolder(path)
    folder.write_manifest(manifest([of for of, _ in tables], **changes))
    for of, its in tables:
        if its is not None:
            folder.put_point(of.id, its, None if its["points"][0]["status"] == "failed" else OUTCOME)
    return folder


def small(path: Path, **changes: Any) -> RunFolder:
    """Write a run of eight points: four receive buffers, two congestion controls, one of them failed."""
    points = [
        point(rmem=rmem, cc=cc, rate="100mbit", rtt="40ms", wmem="4MiB")
        for rmem in ("default", "256KiB", "512KiB", "1MiB")
        for cc in ("cubic", "bbr")
    ]
    tables = [(of, done(of)) for of in points[:-1]]
    return store(path, [*tables, (points[-1], failed(points[-1], "the emulated kernel died"))], **changes)
