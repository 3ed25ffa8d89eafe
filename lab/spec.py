"""What the agent is told of a point: the JSON that crosses into the emulated world.

Everything that must not bind and is not swept is sized here, from the path:
the delay lines hold any packet, tcp_mem holds any socket, the hosts' own
interfaces run at ten times the bottleneck.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab import memory, pathcheck
from lab.knobs import PATH_KNOBS
from lab.model.path import access_bps
from lab.model.pressure import thresholds_bytes
from lab.sweep import Point

REPOSITORY = Path(__file__).resolve().parent.parent
DEFAULT_SAMPLES = 200
PAGE_BYTES = 4096
_SETTLE_S = 30.0
_MOST_MEMORY_PAGES = 2**31 - 1


def interval_s(point: Point) -> float:
    """Return the time between samples, s."""
    chosen = PATH_KNOBS["interval"].value(point.knobs["interval"])
    return float(chosen) if chosen is not None else point.duration_s / DEFAULT_SAMPLES


def guest_memory_bytes(point: Point) -> int:
    """Return the memory of a virtual kernel that this point cannot fill.

    What senders may hold, what is on its way and what a receiver may keep out
    of order, each with the overhead of a segment, over what the kernel and the
    agent need.
    """
    pipe = point.rate_bps * point.rtt_s / 8
    queue = point.queue
    queued = float(queue["limit"]) * (point.mtu_bytes if queue["kind"] == "pfifo" else 1)
    flows = int(point.knobs["flows"])
    in_flight = min(pipe + min(queued, 4 * pipe + 2**24), flows * 2.0**30)
    largest = {
        which: max(point.triple(which).maximum, 2 * (point.size(option) or 0))
        for which, option in (("wmem", "sndbuf"), ("rmem", "rcvbuf"))
    }
    # an autotuned buffer is some times cwnd, and a writer fills it
    sender = min(4 * in_flight + flows * 2**20, flows * 1.2 * largest["wmem"])
    # a writer fills a buffer that is large from the start, whatever is in flight of it
    sender = max(sender, flows * 1.1 * max(point.triple("wmem").default, 2 * (point.size("sndbuf") or 0)))
    receiver = min(1.7 * in_flight, flows * 1.2 * largest["rmem"])
    heads = in_flight / (64e3 if point.offloads else point.mtu_bytes) * 1300
    need = (192 + flows / 4) * 2**20 + 1.6 * (sender + receiver + heads)
    return (int(need) // 2**22 + 1) * 2**22


def sysctls(point: Point) -> dict[str, dict[str, str]]:
    """Return {node: {name: value}}; "" is the kernel as a whole.

    The triples are always written out: on a small virtual machine the kernel's
    own defaults would be smaller than on a host.
    """
    most = point.size("tcp_mem")
    ample = guest_memory_bytes(point)
    thresholds = (ample,) * 3 if most is None else thresholds_bytes(most)
    pages = " ".join(str(min(size // PAGE_BYTES, _MOST_MEMORY_PAGES)) for size in thresholds)
    control = {"net.ipv4.tcp_congestion_control": point.knobs["cc"]}
    receiver = {"net.ipv4.tcp_rmem": point.triple("rmem").sysctl()}
    scale = point.value("adv_win_scale")
    if scale is not None:
        receiver["net.ipv4.tcp_adv_win_scale"] = str(scale)
    if point.value("app_win") is not None:
        receiver["net.ipv4.tcp_app_win"] = str(point.value("app_win"))
    if point.knobs["moderate_rcvbuf"] == "off":
        receiver["net.ipv4.tcp_moderate_rcvbuf"] = "0"
    sender = {"net.ipv4.tcp_wmem": point.triple("wmem").sysctl()}
    lowat = point.size("notsent_lowat")
    if lowat is not None:
        sender["net.ipv4.tcp_notsent_lowat"] = str(lowat)
    whole = {
        # always written out: kernels differ in their defaults
        f"net.core.{name}": str(point.size(name) or memory.CORE_MAX_BYTES)
        for name in ("rmem_max", "wmem_max")
    }
    return {
        # set for the whole kernel, a congestion control is open to every namespace; else only a few are
        "": {"net.ipv4.tcp_mem": pages, **whole, **control},
        "snd": {
            **control,
            **sender,
            "net.ipv4.tcp_rmem": memory.DEFAULTS["rmem"].sysctl(),
        },
        "rcv": {**control, **receiver, "net.ipv4.tcp_wmem": memory.DEFAULTS["wmem"].sysctl()},
    }


def topology(point: Point) -> dict[str, Any]:
    """Return the topology file, class and parameters."""
    value = point.value
    leaf = point.knobs["recipe"] == "leaf"
    rtt_us = round(point.rtt_s * 1e6)
    return {
        "file": str(REPOSITORY / "topologies" / "path.py"),
        "name": "PathTopo",
        "params": {
            "rate_bps": point.rate_bps,
            "access_bps": None if leaf else access_bps(point.rate_bps),
            "queue": point.queue,
            "delay_out_s": (rtt_us - rtt_us // 2) / 1e6,
            "delay_back_s": rtt_us // 2 / 1e6,
            "jitter_s": value("jitter"),
            "loss": value("loss"),
            "duplicate": value("duplicate"),
            "reorder": value("reorder"),
            "mtu_bytes": point.mtu_bytes,
            "offloads": point.offloads,
            "recipe": point.knobs["recipe"],
            "leaf_limit_packets": value("leaf_limit"),
        },
    }


def agent_spec(point: Point, *, teardown: bool) -> dict[str, Any]:
    """Return the whole specification. teardown: undo the network afterwards (a virtual kernel just ends)."""
    jitter_s = float(PATH_KNOBS["jitter"].value(point.knobs["jitter"]))
    packet_s = (point.mtu_bytes + 14) * 8 / point.rate_bps
    timeout_s = 1 + 2 * point.rtt_s + 8 * jitter_s + 8 * packet_s
    slack_s = _SETTLE_S if point.knobs["workload"] == "iperf3" else 0.0
    limit_s = point.duration_s + slack_s + (20 * point.rtt_s if slack_s else 0)
    return {
        "topology": topology(point),
        "sysctls": sysctls(point),
        "workload": {
            "kind": point.knobs["workload"],
            "sender": "snd",
            "receiver": "rcv",
            "flows": int(point.knobs["flows"]),
            "bytes": point.value("bytes"),
            "cc": point.knobs["cc"],
            "rcvbuf_bytes": point.size("rcvbuf"),
            "sndbuf_bytes": point.size("sndbuf"),
            "duration_s": point.duration_s,
            "limit_ns": round(limit_s * 1e9),
        },
        "probes": {
            "sockets": ["snd", "rcv"],
            "queues": ["r1"] if point.knobs["recipe"] == "separate" else ["snd"],
            "interval_ns": max(1, round(interval_s(point) * 1e9)),
        },
        "path_check": {
            "sender": "snd",
            "receiver": "rcv",
            "timeout_s": timeout_s,
            "mtu_bytes": point.mtu_bytes,
            "train_packets": pathcheck.train_packets(point),
        },
        "teardown": teardown,
        "virtual_limit_ns": round((limit_s + 120 + 20 * timeout_s + 40 * point.rtt_s) * 1e9),
    }
