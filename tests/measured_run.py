"""A run with the records that a twin is made of: idle pings, a train, saw teeth before a full queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.combination import Point
from lab.knobs import PATH_KNOBS
from lab.store import RunFolder
from tests import made_up_run as made_up

Row = dict[str, Any]
PACKET = 1514
BASE_S, RATE_BPS, QUEUE_S = 0.02, 50e6, 0.01
STEP_S, SENT = 0.2, 800
TOOTH = (0.0, 0.0, 0.002, 0.004, 0.006, 0.008, QUEUE_S, 0.0)
DROPS = (0, 0, 0, 0, 0, 0, 3, 0)
PINGS = tuple(BASE_S + 1e-6 * (3 * number % 10) for number in range(20))


def point(seed: int = 1, engine: str = "remote", **knobs: str) -> Point:
    """Return a point of a run over real links: every knob at its default but for those given."""
    chosen = {name: knob.canonical(knobs.pop(name, knob.default)) for name, knob in PATH_KNOBS.items()}
    assert not knobs, f"no such knob: {knobs}"
    return Point(chosen, engine, seed)


def samples(of: Point, goodput_bps: float, teeth: int = 5, **changes: Any) -> list[Row]:
    """Return samples of both ends of one flow; `changes` are to every row of the sender."""
    rises, drops = TOOTH * teeth, DROPS * teeth
    rows: list[Row] = []
    for number, rise_s in enumerate(rises):
        common = {"point": of.id, "t_s": number * STEP_S, "flow": 0, "cc": of.knobs["cc"]}
        rows.append(
            {
                **common,
                "end": "sender",
                "tcpi_rtt": round((BASE_S + rise_s) * 1e6),
                "tcpi_min_rtt": round(BASE_S * 1e6),
                "tcpi_ca_state": 0,
                "tcpi_snd_ssthresh": 50,
                "tcpi_snd_mss": made_up.MSS,
                "tcpi_snd_cwnd": 100,
                "tcpi_snd_wnd": 2**20,
                "tcpi_pmtu": 1500,
                "tcpi_total_retrans": sum(drops[: number + 1]),
                "tcpi_dsack_dups": 0,
                "tcpi_reord_seen": 0,
                "tcpi_data_segs_out": number * SENT,
                "tcpi_delivered": round(number * STEP_S * RATE_BPS / PACKET / 8),
                "tcpi_busy_time": round(number * STEP_S * 1e6) or None,
                "skmem_sndbuf": 2**20,
                **changes,
            }
        )
        received = round(number * STEP_S * goodput_bps / 8)
        rows.append({**common, "end": "receiver", "tcpi_bytes_received": received, "idiag_rqueue": 0})
    return rows


def tables(of: Point, goodput_bps: float = 46e6, **changes: Any) -> dict[str, list[Row]]:
    """Return the tables of a point; `changes` are to its row."""
    known = Point({**of.knobs, "kernel": "6.12"}, of.engine, of.seed)  # what a made-up row needs
    done = made_up.done(known, goodput_bps=goodput_bps, steady_goodput_bps=goodput_bps)
    row = {
        **done["points"][0],
        "point": of.id,
        "kernel": of.knobs["kernel"],
        "measured_rate_bps": RATE_BPS,
        "rtt_s": BASE_S,
        "loaded_rtt_s": BASE_S + QUEUE_S / 2,
        "kernel_release": "5.15.0-91-generic",
        "digest": of.id * 6,
        **changes,
    }
    flow = {"point": of.id, "flow": 0, "kind": "lasting", "cc": of.knobs["cc"]}
    return {"points": [row], "flows": [flow], "samples": samples(of, goodput_bps), "queues": [], "limits": []}


def check(rtts_s: Sequence[float] = PINGS, train: Sequence[tuple[int, int]] | None = None) -> dict[str, Any]:
    """Return what the agent reports of an idle path."""
    return {"rtts_s": list(rtts_s), "train": train, "train_sent_ns": 1000}


def store(
    path: Path,
    points: Sequence[tuple[Point, Mapping[str, list[Row]] | None]],
    checks: Sequence[Mapping[str, Any]] | None = None,
    outcome: Mapping[str, Any] | None = None,
    **manifest: Any,
) -> RunFolder:
    """Write a run of points with their tables, None for one that failed, and return its folder."""
    folder = RunFolder(path)
    engine = points[0][0].engine
    told = {"scenario": "path", "engine": engine, "began": "2026-01-01T00:00:00+00:00", **manifest}
    folder.write_manifest(made_up.manifest([of for of, _ in points], **told))
    for of, its in points:
        if its is None:
            row = {"point": of.id, "seed": of.seed, "status": "failed", "reason": "the link is down"}
            folder.put_point(of.id, {"points": [row]}, None)
        else:
            path_seen = [check()] if checks is None else list(checks)
            folder.put_point(of.id, its, {**made_up.OUTCOME, "path": path_seen, **(outcome or {})})
    return folder


def small(path: Path, **manifest: Any) -> RunFolder:
    """Write a run of two receive buffers with two repetitions each, over one path."""
    goodputs = {("default", 1): 46e6, ("default", 2): 47e6, ("256KiB", 1): 40e6, ("256KiB", 2): 40.5e6}
    points = [
        (
            of := point(seed, rmem=rmem, rate="100mbit", rtt="20ms", kernel="host", duration="8s"),
            tables(of, bps),
        )
        for (rmem, seed), bps in goodputs.items()
    ]
    return store(path, points, **manifest)
