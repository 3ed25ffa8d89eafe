"""The machine as a measuring instrument: what it was doing, and whether it was the limit itself.

Only where the clock is real. In virtual time computing takes none, and there is
nothing to read. Sources: proc_stat(5); Documentation/networking/scaling.rst and
net/core/net-procfs.c for softnet_stat (Linux 6.12).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.probes.machine import BUCKETS, unpack

Row = dict[str, Any]

TICKS_HZ = 100
"""USER_HZ, in which /proc/stat counts on every architecture that Linux runs on today."""

BUSY_SHARE = 0.9
"""Of its time: a CPU that had less than a tenth left has made something wait."""

FULL_SHARE = 0.98
"""Of its rate: a bottleneck that was used so much was the limit, however busy the machine."""

LATE_S, LATE_RTTS = 0.004, 0.1
"""How late a process may wake one time in twenty: a time slice of the scheduler, and a tenth of the
RTT on long paths, which no window notices."""

STOLEN_SHARE = 0.1
"""Of its time, that a hypervisor gave to others: the clock ran on, and nothing was computed."""


@dataclass(frozen=True)
class Health:
    """What the machine did during a load. Shares are of the time of the CPU with the largest.

    dropped: packets that the kernel threw away because its backlog was full.
    late_p95_s, late_p99_s: how late wake-ups were, at least; None where none was watched.
    """

    busy_share: float
    softirq_share: float
    stolen_share: float
    dropped: int
    late_p95_s: float | None
    late_p99_s: float | None


def rows(payload: bytes, t_s: float, host: str) -> list[Row]:
    """Return one row a CPU of a reading, and one of the timers, whose `cpu` is null.

    Counters are as the kernel has them, since it started. Raises ValueError for a torn payload.
    """
    counts, cpus, softnet = unpack(payload)
    packets = dict(softnet)
    found: list[Row] = []
    for cpu, ticks in cpus:
        user, nice, system, idle, iowait, irq, softirq, steal = (*ticks, *[0] * 8)[:8]
        counters = packets.get(cpu, [])
        found.append(
            {
                "t_s": t_s,
                "host": host,
                "cpu": cpu,
                "user_s": (user + nice) / TICKS_HZ,
                "system_s": (system + irq) / TICKS_HZ,
                "softirq_s": softirq / TICKS_HZ,
                "steal_s": steal / TICKS_HZ,
                "idle_s": (idle + iowait) / TICKS_HZ,
                **{
                    name: counters[at] if at < len(counters) else None
                    for at, name in enumerate(("processed", "dropped", "squeezed"))
                },
            }
        )
    found.append(
        {"t_s": t_s, "host": host, "cpu": None, "late": {_edge(n): c for n, c in enumerate(counts) if c}}
    )
    return found


def _edge(number: int) -> str:
    """Return the upper edge of a bucket of lateness, s, as text; the last has none."""
    return "inf" if number == BUCKETS - 1 else f"{2**number * 1e-6:g}"


def judge(found: Sequence[Mapping[str, Any]], begin_s: float, end_s: float) -> Health | None:
    """Return what the machines did between two instants; None where nothing was recorded."""
    within = _between(found, begin_s, end_s)
    if not within:
        return None
    of_cpu: dict[tuple[str, Any], list[Mapping[str, Any]]] = {}
    for row in within:
        of_cpu.setdefault((row["host"], row["cpu"]), []).append(row)
    busy = softirq = stolen = 0.0
    dropped = 0
    late: dict[float, float | None] = {0.95: None, 0.99: None}
    for (_host, cpu), readings in of_cpu.items():
        first, last = readings[0], readings[-1]
        if cpu is None:
            for share, so_far in late.items():
                late_s = late_quantile_s(first["late"], last["late"], share)
                late[share] = max((one for one in (so_far, late_s) if one is not None), default=None)
            continue
        spent = {name: last[name] - first[name] for name in _TIMES}
        total = sum(spent.values())
        if total > 0:
            busy = max(busy, 1 - spent["idle_s"] / total)
            softirq = max(softirq, spent["softirq_s"] / total)
            stolen = max(stolen, spent["steal_s"] / total)
        dropped += (last["dropped"] or 0) - (first["dropped"] or 0)
    return Health(busy, softirq, stolen, dropped, *late.values())


_TIMES = ("user_s", "system_s", "softirq_s", "steal_s", "idle_s")


def _between(found: Sequence[Mapping[str, Any]], begin_s: float, end_s: float) -> list[Mapping[str, Any]]:
    """Return the readings from the last before the load to the first after it."""
    instants = sorted({row["t_s"] for row in found})
    before = max((t_s for t_s in instants if t_s <= begin_s), default=begin_s)
    after = min((t_s for t_s in instants if t_s >= end_s), default=end_s)
    return [row for row in found if before <= row["t_s"] <= after]


def late_quantile_s(before: Mapping[str, float], after: Mapping[str, float], share: float) -> float | None:
    """Return the lower edge of the bucket in which a quantile of the lateness lies, s; None for no pulse.

    Lateness was at least that; buckets double in width.
    """
    counts = sorted((float(edge), count - before.get(edge, 0)) for edge, count in after.items())
    total = sum(count for _edge, count in counts)
    if total <= 0:
        return None
    seen = itertools.accumulate(count for _edge, count in counts)
    edge_s = next(
        edge for (edge, _count), so_far in zip(counts, seen, strict=True) if so_far >= share * total
    )
    return 2 ** (BUCKETS - 2) * 1e-6 if math.isinf(edge_s) else edge_s / 2


def limited(
    health: Health | None, rtt_s: float, utilisation: float | None, unexplained: str | None = None
) -> str | None:
    """Return why the machine was the limit, in one sentence; None where it was not.

    rtt_s: base RTT of the shortest path. utilisation: of the bottleneck, None where
    it has no rate. unexplained: what held flows back and is not of the network.
    """
    if health is None:
        return None
    allowed_s = max(LATE_S, LATE_RTTS * rtt_s)
    if health.dropped > 0:
        why = (
            f"its kernel dropped {health.dropped} packets because its backlog was full"
            " (net.core.netdev_max_backlog)"
        )
    elif health.stolen_share > STOLEN_SHARE:
        why = f"a hypervisor took {health.stolen_share:.0%} of a CPU for others"
    elif utilisation is not None and utilisation >= FULL_SHARE:
        return None
    elif unexplained:
        why = unexplained
    elif health.busy_share > BUSY_SHARE:
        used = "" if utilisation is None else f" while the bottleneck was used to {utilisation:.0%}"
        why = (
            f"a CPU was busy {health.busy_share:.0%} of the time,"
            f" {health.softirq_share:.0%} with packets{used}"
        )
    elif health.late_p95_s is not None and health.late_p95_s > allowed_s:
        why = (
            f"one wake-up in twenty came {health.late_p95_s * 1e3:.3g} ms late or more, and"
            f" {allowed_s * 1e3:.3g} ms is what this path bears"
        )
    else:
        return None
    return (
        f"this measures the machine, not the network: {why}; run it alone, at a lower rate, or with"
        " --engine virtual"
    )


def columns(health: Health | None) -> Row:
    """Return the columns of a point; null where nothing was recorded."""
    return {
        "cpu_busy": health.busy_share if health else None,
        "cpu_softirq": health.softirq_share if health else None,
        "timer_late_s": health.late_p99_s if health else None,
    }
