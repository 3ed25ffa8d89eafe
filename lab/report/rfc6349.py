"""The section of a run on the real clock: the path and the hosts as found, and the metrics of RFC 6349.

RFC 6349 measures the path first (path MTU, base RTT, bottleneck rate: its
section 3) and then throughput, told by three metrics (its section 3.3 and 4).
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any, NamedTuple

from lab import units
from lab.report import tables
from lab.report.stored import Stored
from lab.report.tables import NONE, Cell, Column, Table

_COLUMNS = [
    Column("goodput<br>Mbit/s", "bytes that applications read, over the whole load"),
    Column(
        "transfer time<br>ratio", "time that the transfer took, over what it would take at the link's rate"
    ),
    Column("TCP efficiency<br>%", "bytes sent that were not sent again, of all bytes sent"),
    Column("buffer delay<br>%", "how much longer the RTT was under load than on the idle path"),
    Column("busiest CPU<br>%", "share of its time that the busiest CPU worked"),
    Column("late wake-ups<br>ms", "one wake-up in a hundred came at least so late"),
]


class Section(NamedTuple):
    """path, remarks: what was found before the load; hosts: a line each; metrics: a row a point."""

    path: list[tuple[str, str]]
    hosts: list[tuple[str, str]]
    remarks: list[str]
    metrics: Table


def section(stored: Stored) -> Section | None:
    """Return the section; None for a run in virtual time, where no machine takes part."""
    if stored.manifest.get("engine") in (None, "virtual", "fake"):
        return None
    record: Mapping[str, Any] = stored.manifest.get("engine_record") or {}
    return Section(
        path=_path(record.get("path") or {}),
        hosts=_hosts(record),
        remarks=[str(remark) for remark in record.get("remarks", ())],
        metrics=_metrics(stored),
    )


def as_is(stored: Stored) -> bool:
    """Return whether the links of a run were there before: then there is no network of ours to draw."""
    inventory = (stored.manifest.get("engine_record") or {}).get("inventory") or {}
    return inventory.get("links") == "as-is"


def _path(told: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what was measured of the path, in words; nothing where it was built and not measured."""
    found = []
    if told.get("mtu_bytes"):
        found.append(("path MTU", f"{told['mtu_bytes']} bytes"))
    if rtts := told.get("rtts_s"):
        least, middle, most = (
            units.format_time(round(one, 7)) for one in (min(rtts), _median(rtts), max(rtts))
        )
        lost = f", {told['ping_loss']:.1%} of them lost" if told.get("ping_loss") else ""
        found.append(
            ("base RTT", f"{least}: the least of {len(rtts)} pings (median {middle}, most {most}{lost})")
        )
    if rates := told.get("rates_bps"):
        middle, least, most = (f"{one / 1e6:.4g}" for one in (_median(rates), min(rates), max(rates)))
        least_of = "at least " if told.get("at_least") else ""
        found.append(
            (
                "bottleneck rate",
                f"{least_of}{middle} Mbit/s: the median of {len(rates)} packet trains ({least} to {most})",
            )
        )
    if told.get("bdp_bytes"):
        found.append(
            (
                "bandwidth-delay product",
                f"{told['bdp_bytes']:,.0f} bytes".replace(",", "\N{NARROW NO-BREAK SPACE}"),
            )
        )
    return found


def _median(numbers: Any) -> float:
    return float(statistics.median(numbers))


def _hosts(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (name, words) of each host, or of the one machine of the realtime engine."""
    hosts: Mapping[str, Mapping[str, Any]] = record.get("hosts") or {}
    if not hosts:
        told = [f"{record['cpus']} CPUs"] if record.get("cpus") else []
        told += [f"Linux {record['kernel']}"] if record.get("kernel") else []
        return [("this machine", ", ".join(told))] if told else []
    return [(name, _host(facts)) for name, facts in sorted(hosts.items())]


def _host(facts: Mapping[str, Any]) -> str:
    told = [f"Linux {facts.get('kernel', '?')}", f"{facts.get('cpus', '?')} CPUs"]
    for name, one in (facts.get("interfaces") or {}).items():
        speed = f"{one['speed_bps'] / 1e9:g} Gbit/s" if one.get("speed_bps") else "of unknown rate"
        offloads = "offloads on" if one.get("offloads") else "offloads off"
        words = f"{one.get('driver') or 'unknown driver'}, {speed}, MTU {one.get('mtu_bytes')}, {offloads}"
        told.append(f"{name} ({words})")
    return ", ".join(told)


def _metrics(stored: Stored) -> Table:
    knobs = list(stored.varying)
    columns = [Column("point", "identity of the point", number=False)]
    columns += [Column(name, "", number=False) for name in knobs]
    rows = []
    for entry in stored.done:
        cells = [Cell(entry.knobs.get(name, "")) for name in knobs]
        busy, late_s = entry.number("cpu_busy"), entry.number("timer_late_s")
        rows.append(
            (
                entry,
                [
                    *cells,
                    tables.mbit(entry.number("goodput_bps")),
                    tables.number(entry.number("transfer_time_ratio")),
                    tables.number(entry.number("tcp_efficiency_percent"), 5),
                    tables.number(entry.number("buffer_delay_percent")),
                    Cell(NONE, kind="none") if busy is None else tables.number(round(100 * busy, 1)),
                    Cell(NONE, kind="none") if late_s is None else tables.number(1e3 * late_s, 3),
                ],
            )
        )
    return Table([*columns, *_COLUMNS], rows)
