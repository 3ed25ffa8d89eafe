"""The tables of the report, as text ready to show and numbers to sort by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from lab.knobs import PATH_KNOBS
from lab.report import limits
from lab.report.axes import MEMORY, MIB
from lab.report.curves import knob_value
from lab.report.stored import FAILED, MISSING, Entry, Stored

NONE = "–"


class Cell(NamedTuple):
    """One cell. sort: what to sort by, "" for last; kind: a CSS class."""

    text: str
    sort: str = ""
    kind: str = ""


class Column(NamedTuple):
    """One column: head, its explanation, and whether it holds numbers."""

    head: str
    meaning: str
    number: bool = True


class Table(NamedTuple):
    """Columns, and rows of (point, cells)."""

    columns: list[Column]
    rows: list[tuple[Entry, list[Cell]]]


_MEASURED = [
    Column("goodput<br>Mbit/s", "bytes that applications read, over the whole load"),
    Column("steady<br>Mbit/s", "the same over the steady part"),
    Column("predicted<br>Mbit/s", "what the model gives for the steady part"),
    Column("difference<br>%", "steady against predicted"),
    Column("limit<br>predicted", "which limit the model says binds for the most part", number=False),
    Column(
        "limit<br>measured", "which limit did, by the records, and for what share of the load", number=False
    ),
    Column("RTT<br>ms", "base RTT as measured on the idle path"),
    Column("retransmits<br>segments", "segments sent again, all flows"),
    Column("drops<br>packets", "dropped by the bottleneck's queue"),
    Column("status", "done, failed or not run", number=False),
    Column("note", "why it failed, and what to know before trusting it", number=False),
]

_SHARING = [
    Column("use<br>%", "share of what the bottleneck could carry that it carried"),
    Column("queueing<br>ms", "wait in the bottleneck's queue, median"),
    Column("Jain's<br>index", "how equally the flows share: 1 where all have the same"),
    Column("shares", "of the goodput, by congestion control", number=False),
    Column("completion<br>s", "time of a flow with a size, median"),
]
"""What flows do to the bottleneck and to each other; left out where no point of a run has it."""

_OF_THE_MODEL = [
    column for column in _MEASURED if "predicted" in column.head or column.head.startswith("difference")
]
"""Left out where no point of a run has a prediction."""


def number(value: float | None, digits: int = 4) -> Cell:
    """Return a cell with a number of so many digits; whole numbers in full."""
    if value is None:
        return Cell(NONE, kind="none")
    text = f"{value:,.0f}" if value == int(value) or abs(value) >= 10**digits else f"{value:.{digits}g}"
    return Cell(text.replace(",", "\N{NARROW NO-BREAK SPACE}"), repr(float(value)))


def mbit(value_bps: float | None) -> Cell:
    """Return a rate in Mbit/s, one digit after the point."""
    if value_bps is None:
        return Cell(NONE, kind="none")
    value = value_bps / 1e6
    return Cell(f"{value:.1f}" if value >= 10 else f"{value:.3g}", repr(float(value)))


def percent(value: float | None, of: float | None) -> Cell:
    """Return how far a value is from another, in percent of that one."""
    if value is None or not of:
        return Cell(NONE, kind="none")
    distance = round((value / of - 1) * 100, 1) or 0.0  # no minus before nothing
    text = f"{distance:+.1f}" if distance else "0.0"
    return Cell(text.replace("-", "\N{MINUS SIGN}"), repr(float(distance)))


def points(stored: Stored) -> Table:
    """Return the table of all points."""
    knobs = list(stored.varying)
    columns = [Column("point", "identity of the point", number=False)]
    columns += [Column(name, "", number=False) for name in knobs]
    if stored.several_seeds:
        columns.append(Column("seed", "seed of everything that chance decides"))
    rows = []
    for entry in stored.entries:
        cells = [_knob(name, entry.knobs.get(name, "")) for name in knobs]
        if stored.several_seeds:
            cells.append(number(entry.seed))
        rows.append((entry, cells + _measured(entry)))
    columns += [*_MEASURED[:-2], *_SHARING, *_MEASURED[-2:]]
    predicted = any(entry.number("predicted_goodput_bps") is not None for entry in stored.entries)
    # the first column is the point itself, which is no cell
    empty = {
        column
        for number, column in enumerate(columns)
        if number and all(cells[number - 1].text in ("", NONE) for _, cells in rows)
    }
    left_out = empty & {*_SHARING, _MEASURED[-1]} | (set() if predicted else set(_OF_THE_MODEL))
    kept = [number for number, column in enumerate(columns) if column not in left_out]
    rows = [(entry, [cells[number - 1] for number in kept if number]) for entry, cells in rows]
    return Table([columns[number] for number in kept], rows)


def _knob(name: str, text: str) -> Cell:
    value = knob_value(name, text)
    return Cell(text, text if value is None else repr(value))


def _measured(entry: Entry) -> list[Cell]:
    row = entry.row or {}
    steady, predicted, rtt = (
        entry.number(name) for name in ("steady_goodput_bps", "predicted_goodput_bps", "rtt_s")
    )
    words = [str(row[name]) for name in ("reason", "note") if row.get(name)]
    predicted_limit, measured_limit = entry.text("limit_predicted"), entry.text("limit_measured")
    return [
        mbit(entry.number("goodput_bps")),
        mbit(steady),
        mbit(predicted),
        percent(steady, predicted),
        _limit(predicted_limit, {}),
        _limit(measured_limit, entry.shares("limit_shares")),
        number(None if rtt is None else rtt * 1e3),
        number(entry.number("retransmits")),
        number(entry.number("queue_drops")),
        *_sharing(entry),
        Cell(entry.status, entry.status, entry.status.replace(" ", "-")),
        Cell("; ".join(words), "; ".join(words), "words"),
    ]


def _sharing(entry: Entry) -> list[Cell]:
    use, delay = entry.number("utilisation"), entry.number("queue_delay_s")
    shares = entry.shares("cc_shares")
    told = ", ".join(f"{cc} {limits.percent(share)}" for cc, share in sorted(shares.items()))
    return [
        number(None if use is None else round(use * 100, 2)),
        number(None if delay is None else delay * 1e3),
        number(entry.number("jain")),
        Cell(told, told) if len(shares) > 1 else Cell(NONE, kind="none"),
        number(entry.number("fct_s")),
    ]


def _limit(limit: str, shares: Mapping[str, float]) -> Cell:
    if not limit:
        return Cell(NONE, kind="none")
    share = shares.get(limit)
    # limits sort by name, and of one limit the smaller share first
    return Cell(limits.named(limit, shares), f"{limit} {share:.4f}" if share is not None else limit)


class PublishedRow(NamedTuple):
    """One published figure beside one point of ours; `source` is the number of its note."""

    knobs: str
    published: list[Cell]
    measured: list[Cell]
    rest: list[Cell]
    source: int
    point: str


def published(stored: Stored) -> tuple[list[PublishedRow], list[str]]:
    """Return (rows, notes): each published figure with every point that it belongs to, and the sources."""
    rows: list[PublishedRow] = []
    sources: list[str] = []
    for figure in stored.manifest.get("published", ()):
        where: Mapping[str, str] = figure["where"]
        if figure["source"] not in sources:
            sources.append(figure["source"])
        ours = [entry for entry in stored.done if where.items() <= entry.knobs.items()]
        found: list[Entry | None] = [*ours] or [None]
        rows.extend(_published_row(figure, entry, sources.index(figure["source"]) + 1) for entry in found)
    return rows, sources


def _published_row(figure: Mapping[str, Any], entry: Entry | None, source: int) -> PublishedRow:
    theirs = float(figure["goodput_bps"])
    ours = steady = predicted = None
    if entry is not None:
        ours = entry.number(figure["of"])
        steady, predicted = entry.number("steady_goodput_bps"), entry.number("predicted_goodput_bps")
    return PublishedRow(
        knobs=", ".join(f"{name}={text}" for name, text in _shortened(figure["where"]).items()),
        published=[_mib(theirs), mbit(theirs)],
        measured=[_mib(ours), mbit(ours), percent(ours, theirs)],
        rest=[_mib(steady), mbit(steady), mbit(predicted)],
        source=source,
        point="" if entry is None else entry.id,
    )


def _shortened(where: Mapping[str, str]) -> dict[str, str]:
    """Return the knobs without those that only say "default", except the socket buffers."""
    names = sorted(where, key=list(PATH_KNOBS).index)
    return {name: where[name] for name in names if where[name] != "default" or name in MEMORY}


def _mib(value_bps: float | None) -> Cell:
    return Cell(NONE, kind="none") if value_bps is None else Cell(f"{value_bps / 8 / MIB:.1f}")


class Warning(NamedTuple):
    """One thing to know, with the points that it is about."""

    text: str
    points: list[str]
    grave: bool


def warnings(stored: Stored) -> list[Warning]:
    """Return why points failed, what the run lacks, and the notes of its points; equal texts once."""
    found: dict[tuple[bool, str], list[str]] = {}
    for entry in stored.entries:
        if entry.status == FAILED:
            reason = str((entry.row or {}).get("reason") or "no reason was stored")
            found.setdefault((True, f"Failed: {reason}"), []).append(entry.id)
    for entry in stored.entries:
        note = (entry.row or {}).get("note")
        if note:
            found.setdefault((False, str(note)), []).append(entry.id)
    listed = [Warning(text, ids, grave) for (grave, text), ids in found.items()]
    listed += [Warning(text, [], True) for text in stored.unreadable]
    missing = [entry.id for entry in stored.entries if entry.status == MISSING]
    if missing:
        text = "Not run yet, or not readable; run the same command again to get them."
        listed.append(Warning(text, missing, True))
    return listed


def kernels(stored: Stored) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the kernels of the run by name."""
    return sorted(stored.manifest.get("kernels", {}).items())
