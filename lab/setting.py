"""What the model needs to know of a point: knobs in, `Setting` out. No engine, no prediction."""

from __future__ import annotations

from lab import memory
from lab.model.inputs import Release, Setting
from lab.sweep import Point


def setting(point: Point, release: Release) -> Setting:
    """Return what the model needs to know of a point."""
    scale, app_win = point.value("adv_win_scale"), point.value("app_win")
    return Setting(
        rate_bps=point.rate_bps,
        rtt_s=point.rtt_s,
        release=release,
        rmem=point.triple("rmem"),
        wmem=point.triple("wmem"),
        adv_win_scale=1 if scale is None else int(str(scale)),
        app_win=31 if app_win is None else int(str(app_win)),
        moderate_rcvbuf=point.knobs["moderate_rcvbuf"] == "on",
        rcvbuf_bytes=point.size("rcvbuf"),
        sndbuf_bytes=point.size("sndbuf"),
        rmem_max_bytes=point.size("rmem_max") or memory.CORE_MAX_BYTES,
        wmem_max_bytes=point.size("wmem_max") or memory.CORE_MAX_BYTES,
        notsent_lowat_bytes=point.size("notsent_lowat"),
        tcp_mem_bytes=point.size("tcp_mem"),
        mtu_bytes=point.mtu_bytes,
        offloads=point.offloads,
        cc=point.knobs["cc"],
        loss=float(str(point.value("loss"))),
        flows=int(point.knobs["flows"]),
        queue_bytes=queue_bytes(point),
        duration_s=point.duration_s,
        bytes_each=point.size("bytes"),
    )


def queue_bytes(point: Point) -> float:
    """Return what may wait at the bottleneck, bytes as the shaper counts them.

    A queue of packets is taken to hold full ones. In the leaf recipe the delay
    line is the queue: what it may hold less what is on its way.
    """
    queue = point.queue
    if point.knobs["recipe"] == "leaf":
        way_bytes = point.rate_bps * point.rtt_s / 8
        return max(0.0, int(point.knobs["leaf_limit"]) * point.packet_bytes - way_bytes)
    if queue["kind"] == "pfifo":
        return float(int(queue["limit"]) * point.packet_bytes)
    return float(queue["limit"])
