"""Queueing disciplines of a bottleneck: how each is sized, written for `tc`, and read back.

A queue is {"kind", "limit"} and, where the kind has them, "ecn" (mark instead of
drop), "target_s" (the delay that an AQM aims at), "ce_threshold_s" (mark every
packet that waited longer) and "packet_bytes" (a full packet, for those that
count in one unit and are sized in the other). `limit` is in the kind's own
unit, see `LIMIT_UNIT`.

Sources: tc-bfifo(8), tc-red(8), tc-codel(8), tc-fq_codel(8), tc-pie(8),
tc-cake(8), tc-fq(8), tc-sfq(8), tc-tbf(8); include/uapi/linux/pkt_sched.h and
net/sched (Linux 6.12).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from lab import netlink

LIMIT_UNIT = {
    "pfifo": "packets",
    "bfifo": "bytes",
    "red": "bytes",
    "codel": "packets",
    "fq_codel": "packets",
    "pie": "packets",
    "cake": "bytes",
    "fq": "packets",
    "sfq": "packets",
    "policer": "bytes",
}
"""Every kind, and what its limit counts. A policer's is the depth of its bucket."""

AQM = frozenset({"red", "codel", "fq_codel", "pie", "cake"})
"""Kinds that drop or mark before they are full."""

TARGETED = frozenset({"codel", "fq_codel", "pie", "cake"})
"""Kinds that aim at a delay."""

STEPPED = frozenset({"codel", "fq_codel", "fq"})
"""Kinds that have a ce_threshold."""

SFQ_MOST_PACKETS = 127
"""That one flow may have in it: SFQ_MAX_DEPTH, net/sched/sch_sfq.c."""

SFQ_MOST_LIMIT = SFQ_MOST_PACKETS * 128
"""That all flows may: by SFQ_DEFAULT_FLOWS; the kernel cuts a larger limit without a word."""

RED_MOST_SHARE, RED_LEAST_SHARE = 1 / 2, 1 / 6
"""Of the limit: RED's thresholds. The upper is three times the lower, as Floyd
recommends ("RED: Discussions of Setting Parameters", 1997), and half of the queue
is left for bursts. Its probability adapts itself (Floyd, Gummadi and Shenker, 2001)."""

_RED_MOST_BYTES = 2**28 - 1
"""Of the upper threshold: from a little more on `tc` finds no number for a probability of 0.1."""
_RED_MOST_RATE_BPS = 8 * (2**32 - 1)
"""That `tc` can be told: bytes in 32 bits. It only says how fast an idle queue's average falls."""
_RED_MOST_WLOG = 9
"""Floyd's weight of 0.002; `tc` warns from 10 on."""

CAKE_TARGET_SHARE = 20
"""cake is told an RTT, and aims at a 20th of it: 5 ms of 100 ms (tc-cake(8))."""

_MEMORY_FACTOR = 4
"""What a packet takes of a queue's memory, at most, over what it counts in bytes."""


def words(queue: Mapping[str, Any]) -> str:
    """Return the `tc` words of a queue, its kind first; of a policer there are none (see `lab.qdisc`)."""
    kind, limit = str(queue["kind"]), int(queue["limit"])
    return _WORDS[kind](queue, limit)


def _ecn(queue: Mapping[str, Any]) -> str:
    return "ecn" if queue.get("ecn") else "noecn"


def _us(name: str, seconds: float | None) -> str:
    return f" {name} {seconds * 1e6:.0f}us" if seconds else ""


def _red(queue: Mapping[str, Any], limit: int) -> str:
    packet = int(queue.get("packet_bytes", 1514))
    most = max(2 * packet, min(int(limit * RED_MOST_SHARE), _RED_MOST_BYTES))
    packets = max(1, int(most * RED_LEAST_SHARE / RED_MOST_SHARE) // packet)
    burst = _red_burst(packets, most, packet)
    rate = min(int(queue.get("rate_bps", 10**7)), _RED_MOST_RATE_BPS)
    ecn = " ecn" if queue.get("ecn") else ""
    return (
        f"red limit {limit}b min {packets * packet}b max {most}b avpkt {packet} burst {burst}"
        f" probability 0.1 bandwidth {rate}bit adaptive{ecn}"
    )


def _red_burst(packets: int, most: int, packet: int) -> int:
    """Return the burst that RED lets pass, in packets: what tc-red(8) recommends, or what the kernel takes.

    `tc` turns it into a weight of 2^-wlog (tc_red_eval_ewma()), and the kernel
    wants that and the upper threshold in 32 bits together (red_check_params()).
    packets: of the lower threshold.
    """
    most_wlog = min(_RED_MOST_WLOG, 31 - most.bit_length())
    burst = min((2 * packets * packet + most) // (3 * packet) + 1, packets + (1 << most_wlog))
    while burst > packets and not 1 <= _red_wlog(burst, packets) <= most_wlog:
        burst -= 1
    return burst


def _red_wlog(burst: int, packets: int) -> int:
    """Return the weight that `tc` finds for a burst, 0 where it finds none."""
    wanted = burst + 1 - packets
    return next((wlog for wlog in range(1, 32) if wanted <= (1 - (1 - 0.5**wlog) ** burst) * 2**wlog), 0)


def _codel(queue: Mapping[str, Any], limit: int) -> str:
    target, threshold = queue.get("target_s"), queue.get("ce_threshold_s")
    return f"codel limit {limit}{_us('target', target)} {_ecn(queue)}{_us('ce_threshold', threshold)}"


def _fq_codel(queue: Mapping[str, Any], limit: int) -> str:
    packet = int(queue.get("packet_bytes", 1514))
    memory = min(2**32 - 1, max(2**25, _MEMORY_FACTOR * limit * packet))
    target, threshold = queue.get("target_s"), queue.get("ce_threshold_s")
    return (
        f"fq_codel limit {limit} memory_limit {memory}b{_us('target', target)}"
        f" {_ecn(queue)}{_us('ce_threshold', threshold)}"
    )


def _pie(queue: Mapping[str, Any], limit: int) -> str:
    return f"pie limit {limit}{_us('target', queue.get('target_s'))} {_ecn(queue)}"


def _cake(queue: Mapping[str, Any], limit: int) -> str:
    target = queue.get("target_s")
    rtt = _us("rtt", CAKE_TARGET_SHARE * target if target else None)
    return f"cake unlimited besteffort{rtt} memlimit {limit}b"


def _fq(queue: Mapping[str, Any], limit: int) -> str:
    threshold = queue.get("ce_threshold_s")
    return f"fq limit {limit} flow_limit {limit}{_us('ce_threshold', threshold)}"


_WORDS: Mapping[str, Callable[[Mapping[str, Any], int], str]] = {
    "pfifo": lambda _queue, limit: f"pfifo limit {limit}",
    "bfifo": lambda _queue, limit: f"bfifo limit {limit}b",
    "red": _red,
    "codel": _codel,
    "fq_codel": _fq_codel,
    "pie": _pie,
    "cake": _cake,
    "fq": _fq,
    "sfq": lambda _queue, limit: f"sfq limit {limit}",
}

_LIMIT_AT: Mapping[str, tuple[int | None, int]] = {
    "pfifo": (None, 0),
    "bfifo": (None, 0),
    "red": (1, 0),  # TCA_RED_PARMS, struct tc_red_qopt
    "codel": (2, 0),  # TCA_CODEL_LIMIT
    "fq_codel": (2, 0),  # TCA_FQ_CODEL_LIMIT
    "pie": (2, 0),  # TCA_PIE_LIMIT
    "cake": (10, 0),  # TCA_CAKE_MEMORY
    "fq": (1, 0),  # TCA_FQ_PLIMIT
    "sfq": (None, 8),  # struct tc_sfq_qopt
}
"""Where the kernel tells the limit: attribute of the options, None for the options themselves; offset."""


def limit_of(kind: str, options: bytes) -> int | None:
    """Return the limit that a queue reads back with, None where it does not tell. ValueError where torn."""
    attribute, offset = _LIMIT_AT[kind]
    held = options if attribute is None else netlink.attributes(options).get(attribute)
    if held is None:
        return None
    try:
        (limit,) = struct.unpack_from("=I", held, offset)
    except struct.error as torn:
        raise ValueError(f"{kind}: options of {len(held)} bytes are torn") from torn
    return int(limit)
