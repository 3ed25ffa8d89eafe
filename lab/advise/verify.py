"""Whether given sysctl files fill a path: which line counts at which end, a run, and what hinders it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lab.advise import inverse, obstacles, sysctl
from lab.advise.ask import WHICH, Ask, Case
from lab.advise.effort import Effort, ample_bytes, effort, exact
from lab.advise.find import Finding, Measure, buffers, goodput_bps
from lab.advise.keys import BECAUSE, ENDS, KEYS, WINDOW_SCALING, knob
from lab.errors import SpecError, UnitError
from lab.knobs import PATH_KNOBS
from lab.model.limits import RECEIVE_WINDOW, SEND_BUFFER, words
from lab.setting import setting
from lab.units import human_rate, human_size

Row = dict[str, Any]


@dataclass(frozen=True)
class Source:
    """A file and the ends that have it."""

    path: Path
    ends: tuple[str, ...]


@dataclass(frozen=True)
class Applied:
    """knobs: what the files set on this path; lines: the same as file, line, key and value; notes: the rest.

    scaling: whether windows are scaled; False caps them at 65535 bytes.
    """

    knobs: Mapping[str, str]
    lines: Sequence[tuple[str, sysctl.Line]]
    notes: Sequence[str]
    scaling: bool = True


@dataclass(frozen=True)
class Check:
    """One case: the row with the files applied, and whether it reaches the target. reasons: why not."""

    case: Case
    how: Effort
    row: Row
    ample: Row
    goodput_bps: float
    reached: bool
    reasons: Sequence[str]


def source(text: str) -> Source:
    """Return what `--verify` names: FILE, sender=FILE or receiver=FILE.

    A file named sender.conf, 90-wan-sender.conf or the like is the sender's
    without being told, and so for receivers; any other is at both ends.
    """
    for end in ENDS:
        if text.startswith(f"{end}="):
            return Source(Path(text.removeprefix(f"{end}=")), (end,))
    path = Path(text)
    named = [end for end in ENDS if end in path.name.lower()]
    return Source(path, tuple(named) if len(named) == 1 else ENDS)


def apply(sources: Sequence[Source]) -> Applied:
    """Return what the files set. Raises UserError or SpecError with every fault."""
    files = [(source, sysctl.read(source.path)) for source in sources]
    notes = _checked([file for _, file in files])
    knobs: dict[str, str] = {}
    lines: list[tuple[str, sysctl.Line]] = []
    unused: dict[str, str] = {}
    scaling = True
    for end in ENDS:
        mine = [line for source, file in files if end in source.ends for line in file.lines]
        held, again = sysctl.last_ones(line for line in mine if not _refused(line))
        notes += again
        for line in held.values():
            if line.key == WINDOW_SCALING:
                scaling = scaling and line.value != "0"
            elif line.key not in KEYS:
                unused[line.key] = _unused(line)
            elif end in KEYS[line.key].ends:
                _set(knobs, line)
                lines.append((end, line))
    notes += [note for source, file in files for note in _other_end(source, file)]
    if "tcp_mem" in knobs:
        notes.append("net.ipv4.tcp_mem: both emulated hosts share one kernel's, all by the third value")
    return Applied(knobs, lines, list(dict.fromkeys([*notes, *unused.values()])), scaling)


def _checked(files: Sequence[sysctl.File]) -> list[str]:
    """Return notes on refused values that may be refused. Raises SpecError with every fault of the files."""
    notes, faults = [], [fault for file in files for fault in file.faults]
    for line in (line for file in files for line in file.lines if line.key in KEYS):
        try:
            knob(line)
        except UnitError as fault:
            if line.optional:
                notes.append(f"{fault}; the '-' before it lets it fail, so it sets nothing")
            else:
                faults.append(str(fault))
    if faults:
        order = [line.file for file in files for line in file.lines]
        raise SpecError(sorted(dict.fromkeys(faults), key=lambda fault: _place(fault, order)))
    return notes


def _place(fault: str, order: Sequence[str]) -> tuple[int, int]:
    """Return where a fault stands, by the order of the files and by its line."""
    match = re.match(r"(.*?):([0-9]+): ", fault)
    assert match is not None
    return (order.index(match[1]) if match[1] in order else len(order), int(match[2]))


def _unused(line: sysctl.Line) -> str:
    because = BECAUSE.get(line.key)
    return f"{line.place}: {line.key} is not used on this path" + (f": {because}" if because else "")


def _other_end(source: Source, file: sysctl.File) -> list[str]:
    """Return a note for each line of a file of one end that counts at the other."""
    if len(source.ends) > 1:
        return []
    (end,) = source.ends
    return [
        f"{line.place}: {line.key} does not count at the {end}: data goes from sender to receiver"
        for line in file.lines
        if line.key in KEYS and end not in KEYS[line.key].ends
    ]


def _set(knobs: dict[str, str], line: sysctl.Line) -> None:
    """Set the knob of a line; both ends' tcp_mem is one kernel's here, so the two add up."""
    name, text = KEYS[line.key].knob, knob(line)
    if name == "tcp_mem" and name in knobs:
        value = PATH_KNOBS[name].value
        text = f"{min(value(knobs[name]) + value(text), 2**42)}B"
    knobs[name] = text


def _refused(line: sysctl.Line) -> bool:
    """Return whether a line that may fail does."""
    if line.key not in KEYS:
        return False
    try:
        knob(line)
    except UnitError:
        return True
    return False


def check(ask: Ask, applied: Applied, measure: Measure) -> list[Check]:
    """Run every case with the files and with ample buffers; say what came of it.

    A case that falls short runs over twice the time too, and that counts: it may
    only have been on its way.
    """
    hows = {case: exact(ask, case, effort(ask, case)) for case in ask.cases}
    rows = _measured(ask, applied, hows, measure)
    late = {case: how.longer() for case, how in hows.items() if goodput_bps(rows[case][0]) < ask.target_bps}
    rows |= _measured(ask, applied, late, measure)
    hows |= late
    return [_judged(ask, applied, case, hows[case], rows[case]) for case in ask.cases]


def _measured(
    ask: Ask, applied: Applied, hows: Mapping[Case, Effort], measure: Measure
) -> dict[Case, tuple[Row, Row]]:
    """Return the rows with the files applied and with ample buffers."""
    points = [
        point
        for case, how in hows.items()
        for point in (
            ask.point(case, **{**applied.knobs, "cc": case.cc}, **how.knobs),
            buffers(ask, case, how, {which: ample_bytes(ask, case, which) for which in WHICH}),
        )
    ]
    rows = iter(measure(points) if points else [])
    return dict(zip(hows, zip(rows, rows, strict=True), strict=True))


def _judged(ask: Ask, applied: Applied, case: Case, how: Effort, rows: tuple[Row, Row]) -> Check:
    row, ample = rows
    got = goodput_bps(row)
    reasons = []
    unscaled = ask.flows * 65535 * 8 / ask.rtt_s
    if not applied.scaling and unscaled < got:
        got = unscaled
        reasons.append(
            f"{WINDOW_SCALING} = 0 keeps every window under 64 KiB, which is at most {human_rate(unscaled)}"
            f" over {ask.path['rtt']} (by arithmetic: the lab leaves it on); set it to 1"
        )
    if got < ask.target_bps and not reasons:
        reasons = _reasons(ask, case, how, (row, ample), applied)
    return Check(case, how, row, ample, got, got >= ask.target_bps, reasons)


def _reasons(ask: Ask, case: Case, how: Effort, rows: tuple[Row, Row], applied: Applied) -> list[str]:
    row, ample = rows
    if goodput_bps(ample) < ask.target_bps and goodput_bps(row) >= 0.98 * goodput_bps(ample):
        finding = Finding(case, how, {}, ample, row, ask.target_bps, attainable=False)
        return ["Ample buffers do not reach it either.", *obstacles.obstacles(ask, finding)]
    limit = str(row.get("limit_measured") or row["limit_predicted"])
    said = f"The {words(limit)} binds"
    names = {RECEIVE_WINDOW: "rmem", SEND_BUFFER: "wmem"}
    if limit not in names:
        return [f"{said}."]
    which = names[limit]
    point = ask.point(case, **{**applied.knobs, "cc": case.cc}, **how.knobs)
    other = "wmem" if which == "rmem" else "rmem"
    size = ample_bytes(ask, case, other)
    model = inverse.with_buffer(setting(point, case.release), other, size)
    model = replace(model, offloads=False) if which == "rmem" else model
    least = inverse.least_buffer(model, which, ask.target_bps, ample_bytes(ask, case, which))
    set_now = point.triple(which).maximum
    if which == "rmem" and applied.knobs.get("moderate_rcvbuf") == "off":
        return [
            f"{said}: with net.ipv4.tcp_moderate_rcvbuf = 0 the buffer stays at the second value of tcp_rmem,"
            f" {human_size(point.triple(which).default)}; set it to 1."
        ]
    return [
        f"{said}: the largest net.ipv4.tcp_{which} is {human_size(set_now)}"
        + ("" if which in applied.knobs else ", the kernel's own, since no file sets it")
        + f"; by the model it takes {human_size(least)}, to be found by `wanlab advise` without --verify."
    ]
