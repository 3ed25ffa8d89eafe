"""Why a target cannot be had: one sentence for each thing that stands in the way, from model and records."""

from __future__ import annotations

import math
from dataclasses import replace

from lab.advise.ask import Ask, percent
from lab.advise.cost import flows_needed
from lab.advise.find import Finding, goodput_bps
from lab.advise.inverse import MOST_WINDOW_BYTES
from lab.model.limits import CONGESTION_WINDOW, LOSS, PACING, QUEUE, words
from lab.model.predict import predict
from lab.setting import queue_bytes, setting
from lab.units import human_rate, human_size


def obstacles(ask: Ask, finding: Finding) -> list[str]:
    """Return what keeps ample buffers from the target, the surest first."""
    found = [
        sentence
        for sentence in (_window(ask), _loss(ask, finding), _probe_rtt(ask, finding), _queue(ask, finding))
        if sentence
    ]
    if not found:
        limit = str(finding.ample.get("limit_measured") or finding.ample["limit_predicted"])
        found.append(f"What binds with ample buffers is {words(limit)}.")
    return found


def _window(ask: Ask) -> str:
    most_bps = ask.flows * MOST_WINDOW_BYTES * 8 / ask.rtt_s
    if most_bps >= ask.target_bps:
        return ""
    return (
        "TCP's window cannot exceed 1 GiB (RFC 7323), and the target needs"
        f" {human_size(ask.target_bps * ask.rtt_s / 8 / ask.flows)} of it: a flow gets at most"
        f" {human_rate(most_bps / ask.flows)} over {ask.path['rtt']}, whatever its buffers. Many flows are"
        f" the way out: {flows_needed(ask.target_bps, ask.rtt_s)} or more."
    )


def _loss(ask: Ask, finding: Finding) -> str:
    limit = finding.ample.get("limit_measured") or finding.ample["limit_predicted"]
    if ask.loss <= 0 or (limit != LOSS and finding.case.cc == "bbr" and ask.loss < 0.01):
        return ""
    cc = finding.case.cc
    other = (
        " bbr does not take its rate from loss: try --cc bbr."
        if cc != "bbr"
        else " No congestion control here does better; the loss itself has to go."
    )
    return (
        f"Loss stands in the way, not a buffer: {cc} takes {percent(ask.loss)} for congestion and holds"
        f" {human_rate(goodput_bps(finding.ample))}.{other}"
    )


def _probe_rtt(ask: Ask, finding: Finding) -> str:
    if finding.case.cc != "bbr":
        return ""
    point = ask.point(finding.case)
    long_run = replace(setting(point, finding.case.release), duration_s=math.inf, loss=0.0, queue_bytes=None)
    wide = replace(
        long_run, rmem=long_run.rmem._replace(maximum=2**30), wmem=long_run.wmem._replace(maximum=2**30)
    )
    if predict(wide).predicted_goodput_bps >= ask.target_bps:
        return ""
    idle_s = max(0.2, ask.rtt_s) + ask.rtt_s
    return (
        f"bbr drains the path every ten seconds to see its base RTT, which takes it {idle_s:.2g} s here:"
        f" {percent(idle_s / 10)} of the time (net/ipv4/tcp_bbr.c). cubic has no such pause."
    )


def _queue(ask: Ask, finding: Finding) -> str:
    row = finding.ample
    limit = row.get("limit_measured") or row["limit_predicted"]
    drops = row.get("queue_drops") or 0
    queue = queue_bytes(ask.point(finding.case))
    if (
        not drops
        or queue >= ask.bdp_bytes
        or (limit not in CONGESTION_WINDOW and limit not in (PACING, QUEUE))
    ):
        return ""
    cc = finding.case.cc
    return (
        f"The bottleneck's queue is short for {cc}: {human_size(queue)}, {queue / ask.bdp_bytes:.2g} of the"
        f" BDP; it dropped {drops} packets, and the congestion window fell under what the path holds. No"
        " socket buffer mends that: a queue of half a BDP and more does"
        + ("." if cc == "bbr" else ", or another congestion control (--cc bbr).")
    )
