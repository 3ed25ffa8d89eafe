"""The network of a point: its drawing, and the list of facts beside it."""

from __future__ import annotations

from typing import Any

from lab import layout
from lab.report import network
from lab.report.stored import Entry
from lab.units import human_rate, human_size

_CHANGES = ("rate_change", "rtt_change", "loss_change", "trace")


def draw(entry: Entry, engine: str) -> str:
    """Return the network as SVG, once for a wide page and once for a narrow one; the page shows either.

    "" where today's knobs refuse a value that the run had.
    """
    try:
        plan = layout.plan(entry.point(engine))
    except (KeyError, ValueError):  # of UnitError's kind, or a topology that is not there
        return ""
    knobs = entry.knobs
    wmem, rmem = (f"{name} {knobs.get(name, '')}" for name in ("wmem", "rmem"))
    flows, back = (knobs.get(name, default) for name, default in (("flows", "1"), ("reverse", "0")))
    cc = knobs.get("cc", "")
    left = [wmem, cc if flows == "1" else f"{cc}, {flows} flows"]
    right = [rmem] if back == "0" else [rmem, f"{back} {'flow' if back == '1' else 'flows'} back"]
    return "".join(network.svg(plan, narrow=narrow, notes=(left, right)) for narrow in (False, True))


def facts(entry: Entry) -> list[tuple[str, str]]:
    """Return what the network was asked to be and what was measured before the load."""
    rate, rtt = entry.number("measured_rate_bps"), entry.number("rtt_s")
    asked_rate, asked_rtt = entry.number("rate_bps"), entry.number("configured_rtt_s")
    asked_queue, limit = entry.knobs.get("queue", ""), _queue(entry)
    asked_rtts = _number(asked_rtt, 1e3, "ms")
    if "+" in entry.knobs.get("rtt", ""):  # in turn, so their mean alone would say little
        asked_rtts = f"{entry.knobs['rtt']}, a mean of {asked_rtts},"
    if _is_leaf(entry):
        queue = f"{limit}, shared with what is on its way"
        recipe = "leaf: one netem under the sender's own htb is delay line and queue"
    else:
        queue = limit if limit.replace(" ", "") == asked_queue else f"{asked_queue}: {limit}"
        recipe = "separate: rate and queue on one router, the delay on the next hop"
    changes = [f"{name} {entry.knobs[name]}" for name in _CHANGES if entry.knobs.get(name, "none") != "none"]
    return [
        ("Rate", f"{human_rate(asked_rate)} asked for, {_measured(rate, 1e-6, 'Mbit/s')} before the load"),
        ("RTT", f"{asked_rtts} asked for, {_measured(rtt, 1e3, 'ms')} before the load"),
        ("BDP", human_size(entry.number("bdp_bytes"))),
        ("Queue", queue),
        ("Loss", entry.knobs.get("loss", "")),
        ("MTU", f"{entry.knobs.get('mtu', '')} bytes"),
        ("Offloads", entry.knobs.get("offloads", "")),
        ("Recipe", recipe),
        ("Over time", ", ".join(changes) or "nothing changes"),
    ]


def _is_leaf(entry: Entry) -> bool:
    return entry.knobs.get("recipe") == "leaf"


def _number(value: float | None, factor: float, unit: str) -> str:
    return "-" if value is None else f"{value * factor:.6g} {unit}"


def _measured(value: float | None, factor: float, unit: str) -> str:
    return "could not be measured" if value is None else f"{_number(value, factor, unit)} measured"


def _queue(entry: Entry) -> str:
    limit = entry.number("queue_limit")
    if limit is None:
        return "-"
    unit = (entry.row or {}).get("queue_limit_unit")
    return human_size(limit) if unit == "bytes" else f"{limit:.0f} {unit}"


def commands(outcome: dict[str, Any] | None) -> str:
    """Return the `ip` and `tc` commands and the sysctls that the agent reported, node by node."""
    if outcome is None:
        return ""
    told, sysctls = outcome.get("commands", {}), outcome.get("sysctls", {})
    lines = []
    for node in sorted({*told, *sysctls}):
        lines.append(f"# in {node}" if node else "# in the whole kernel")
        for tool in ("ip", "tc"):
            lines += [f"{tool} {words}" for words in told.get(node, {}).get(tool, ())]
        lines += [f"sysctl -w {name}='{value}'" for name, value in sorted(sysctls.get(node, {}).items())]
        lines.append("")
    return "\n".join(lines).strip()
