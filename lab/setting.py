"""What the model needs to know of a point: knobs in, `Setting` out. No engine, no prediction."""

from __future__ import annotations

from collections.abc import Mapping

from lab import layout, memory, queues
from lab.combination import Point
from lab.knobs import PATH_KNOBS
from lab.losses import Loss
from lab.model.controls import control
from lab.model.inputs import Release, Setting

_SINGLE = {  # knobs whose default the model needs, with what it says of another value
    "rate_back": "the model takes the way back for as fast as the way out",
    "ecn": "the model knows no marks",
    "rate_change": "the rate changes",
    "rtt_change": "the RTT changes",
    "loss_change": "the loss changes",
    "trace": "the rate follows a trace",
    "start": "flows come later",
    "stop": "flows end early",
    "spread": "flows come at different times",
    "arrivals": "flows come and go",
    "on_off": "flows pause",
    "reverse": "traffic goes both ways",
    "udp": "a UDP flow takes its part",
    "access": "the model takes hosts for ten times as fast as the bottleneck",
}


_ONE = {"rtt": "RTTs", "cc": "congestion controls", "bytes": "sizes"}


def unpredicted(point: Point) -> str | None:
    """Return why the model has no prediction for a point, None where it has one."""
    kind = str(point.queue["kind"])
    lacking = {
        "the model knows one bottleneck, and data one way": layout.shape(point)
        not in ("path", "dumbbell", "star"),
        "the model knows one RTT at a time": len(set(point.rtts_s)) > 1,
        "the model knows one congestion control at a time": len(set(point.controls)) > 1,
        f"the model knows queues that drop when they are full, not {kind}": kind not in ("bfifo", "pfifo"),
        "the model knows random loss alone": point.loss.kind != "random",
        f"the model knows no answer to loss of {point.controls[0]}": point.loss.share > 0
        and not control(point.controls[0]).known,
        "the flows have different sizes": len(set(point.sizes_each or ())) > 1,
        "requests wait for responses": point.knobs["workload"] == "request",
        **{why: point.knobs[name] != PATH_KNOBS[name].default for name, why in _SINGLE.items()},
    }
    return next((why for why, lacks in lacking.items() if lacks), None)


def model_faults(knobs: Mapping[str, str]) -> list[str]:
    """Return a fault of each knob that says what `setting` cannot tell the model: one number, one name.

    knobs: in canonical spelling; those that are missing have their defaults.
    """
    faults = []
    if knobs.get("flows") == "0":
        faults.append("flows: '0' leaves nothing to predict; give at least 1")
    for name, what in _ONE.items():
        values = PATH_KNOBS[name].value(knobs.get(name, PATH_KNOBS[name].default)) or ()
        if len(set(values)) > 1:
            first = PATH_KNOBS[name].show(values[:1])
            faults.append(
                f"{name}: {knobs[name]!r} lists {len(values)} {what}, and the model takes one;"
                f" give one, such as {first}"
            )
    loss: Loss = PATH_KNOBS["loss"].value(knobs.get("loss", PATH_KNOBS["loss"].default))
    if loss.kind != "random":
        faults.append(
            f"loss: {knobs['loss']!r} is no probability, and the model knows random loss alone;"
            " give one, such as 0.1%"
        )
    return faults


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
        cc=point.controls[0],
        loss=point.loss.share,
        flows=int(point.knobs["flows"]),
        queue_bytes=queue_bytes(point),
        duration_s=point.duration_s,
        bytes_each=point.sizes_each[0] if point.sizes_each else None,
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
    if queues.LIMIT_UNIT[str(queue["kind"])] == "packets":
        return float(int(queue["limit"]) * point.packet_bytes)
    return float(queue["limit"])
