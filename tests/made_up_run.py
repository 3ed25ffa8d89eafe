"""A run that nobody ran: stored through `RunFolder` with made-up numbers, for tests of what reads runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab import schema
from lab.knobs import PATH_KNOBS
from lab.model.inputs import Release
from lab.model.limits import LIMITS, words
from lab.model.predict import predict
from lab.setting import setting
from lab.store import RunFolder
from lab.sweep import Point

Row = dict[str, Any]

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
    prediction = predict(setting(of, Release.parse(release)))
    queue = of.queue
    return {
        "point": of.id,
        **{
            name: int(text) if name in ("mtu", "flows", "leaf_limit") else text
            for name, text in of.knobs.items()
        },
        "engine": of.engine,
        "seed": of.seed,
        "kernel_release": release,
        "rate_bps": of.rate_bps,
        "configured_rtt_s": of.rtt_s,
        "bdp_bytes": prediction.bdp_bytes,
        "queue_limit": queue["limit"],
        "queue_limit_unit": "bytes" if queue["kind"] == "bfifo" else "packets",
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
    goodput, limit = row["predicted_goodput_bps"], row["limit_predicted"]
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
