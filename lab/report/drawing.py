"""The path of a point as words for the drawing and for the list beside it.

The drawing itself is in `page.html`: sender, bottleneck router, WAN router,
receiver, and three links with room for a few lines above (towards the receiver)
and below (back).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lab.report.stored import Entry
from lab.units import human_rate, human_size

SLOTS = {"node": (4, 3), "out": (3, 6), "back": (3, 3)}
"""How many nodes or links there are, and how many lines each has room for."""

_NOTHING = ("", "0%", "0s")


def words(entry: Entry) -> dict[str, str]:
    """Return {slot: text} of the drawing: node0-0 is the first line in the sender."""
    knobs = entry.knobs
    rate, rtt_s = human_rate(entry.number("rate_bps")), entry.number("configured_rtt_s") or 0.0
    impairments = [
        f"{name} {knobs[name]}"
        for name in ("jitter", "loss", "duplicate", "reorder")
        if knobs.get(name, "") not in _NOTHING
    ]
    wmem, rmem = (f"{name} {knobs.get(name, '')}" for name in ("wmem", "rmem"))
    cc = knobs.get("cc", "")
    if _is_leaf(entry):
        out = [
            [f"htb {rate}", f"netem {_delay(rtt_s)}", _queue(entry), *impairments],
            ["not shaped"],
            ["not shaped"],
        ]
        back = [["not shaped"], ["not shaped"], ["not shaped"]]
        nodes = [[wmem, cc, "rate, delay, queue"], ["forwards"], ["forwards"], [rmem]]
    else:
        delay = _delay(rtt_s / 2)
        out = [["access link"], [f"htb {rate}", f"queue {_queue(entry)}"], [f"netem {delay}", *impairments]]
        back = [[f"netem {delay}"], [f"htb {rate}", f"queue {_queue(entry)}"], ["access link"]]
        nodes = [[wmem, cc], ["rate and queue"], ["delay"], [rmem]]
    found = {
        "recipe": knobs.get("recipe", ""),
        "name1": "router" if _is_leaf(entry) else "bottleneck router",
    }
    for kind, groups in (("node", nodes), ("out", out), ("back", back)):
        count, room = SLOTS[kind]
        for place in range(count):
            for line in range(room):
                found[f"{kind}{place}-{line}"] = groups[place][line] if line < len(groups[place]) else ""
    return found


def rows(points: Sequence[Mapping[str, str]]) -> dict[str, int]:
    """Return how many lines above and below the links any of these points uses, 1 at least."""
    used = {"out": 1, "back": 1}
    for slots in points:
        for slot, text in slots.items():
            kind = slot.rstrip("0123456789-")
            if text and kind in used:
                used[kind] = max(used[kind], int(slot.split("-")[1]) + 1)
    return used


def facts(entry: Entry) -> list[tuple[str, str]]:
    """Return what the path was asked to be and what was measured before the load."""
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
    return [
        ("Rate", f"{human_rate(asked_rate)} asked for, {_measured(rate, 1e-6, 'Mbit/s')} before the load"),
        ("RTT", f"{asked_rtts} asked for, {_measured(rtt, 1e3, 'ms')} before the load"),
        ("BDP", human_size(entry.number("bdp_bytes"))),
        ("Queue", queue),
        ("Loss", entry.knobs.get("loss", "")),
        ("MTU", f"{entry.knobs.get('mtu', '')} bytes"),
        ("Offloads", entry.knobs.get("offloads", "")),
        ("Recipe", recipe),
    ]


def _delay(time_s: float) -> str:
    return f"{time_s * 1e3:.6g} ms"


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
