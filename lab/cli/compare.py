"""`wanlab compare`: runs beside a baseline, point by point; exit status 1 where a tolerance is passed."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab import apart, matching, provenance, repeats, statistics
from lab import compare as compare_module
from lab.apart import Explained
from lab.cli import output
from lab.cli.show import select
from lab.compare import Compared, Comparison, Measure
from lab.errors import StoreError
from lab.matching import Side
from lab.report import stored
from lab.store import RunFolder

if TYPE_CHECKING:
    from lab.report import beside

_MOST_SENTENCES = 40
_NUMBERS = frozenset(("baseline", "beside it", "difference"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's words."""
    parser.add_argument("baseline", type=Path, metavar="RUN", help="run folder that the others stand beside")
    parser.add_argument("others", type=Path, nargs="+", metavar="RUN", help="one or more other run folders")
    parser.add_argument(
        "--column",
        action="append",
        metavar="NAME[,NAME...]",
        help=f"compare these columns of table points (default: {', '.join(repeats.COLUMNS)})",
    )
    parser.add_argument(
        "--across",
        action="append",
        metavar="KNOB[,KNOB...]",
        help="knobs that may differ between a point and its baseline (default: kernel; of a twin, and of"
        " links that are as they are, what describes the path too)",
    )
    parser.add_argument(
        "--tolerance",
        action="append",
        default=[],
        metavar="[NAME=]PERCENT",
        help="exit 1 where a column differs by more: 2%% for all that are compared, goodput_bps=2%% for one;"
        " goodput_bps=-2%% objects to a fall only, goodput_bps=+2%% to a rise",
    )
    parser.add_argument(
        "--points",
        action="append",
        default=[],
        metavar="WHICH",
        help="only these: identities (2024f41e98,...), `failed`, `done`, or NAME=V[,V...]; repeat to narrow",
    )
    parser.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help="write a page with the runs laid over each other, goodput, RTT and windows over time",
    )
    output.add_format(parser, "csv")


def run(arguments: argparse.Namespace) -> int:
    """Print what differs; return 0, or 1 where a stated tolerance is passed."""
    across = None if arguments.across is None else matching.across(arguments.across)
    columns = _columns(arguments.column)
    tolerances = compare_module.tolerances(arguments.tolerance, columns)
    columns = tuple(dict.fromkeys((*columns, *tolerances)))
    sides = read([arguments.baseline, *arguments.others], arguments.points)
    found = compare_module.compare(sides, columns, across=across, tolerances=tolerances)
    explained, engines = apart.explain(found), apart.engines(found)
    status = 1 if found.passed else 0
    if arguments.html is not None:
        _write(arguments, found, explained, engines)
    if arguments.format == "json":
        output.print_json(as_json(found, explained, engines, status))
    elif arguments.format == "csv":
        rows = [_flat(found, one, measure) for one in found.comparisons for measure in one.measures]
        output.print_csv(rows, list(rows[0]))
    else:
        _print(found, explained, engines)
        if arguments.html is not None:
            print(arguments.html)
    return status


def _columns(given: Sequence[str] | None) -> tuple[str, ...]:
    if given is None:
        return repeats.COLUMNS
    names = (part.strip() for text in given for part in text.split(","))
    return tuple(dict.fromkeys(repeats.column(name) for name in names))


def read(paths: Sequence[Path], filters: Sequence[str] = ()) -> list[Side]:
    """Return the runs of these folders with the points that all filters take, as `wanlab show --points`.

    Raises StoreError for a folder that is no run or a point that cannot be
    read, UserError for a filter that cannot be.
    """
    runs = [stored.read(RunFolder(path)) for path in paths]
    for one in runs:
        if one.unreadable:
            raise StoreError(one.unreadable[0])
    rows: list[dict[str, Any]] = [
        {**entry.knobs, **(entry.row or {}), "status": entry.status, "point": entry.id, "entry": entry}
        for one in runs
        for entry in one.entries
    ]
    chosen = {id(row["entry"]) for row in select(rows, filters)}
    return [
        Side(name, one, tuple(entry for entry in one.entries if id(entry) in chosen))
        for name, one in zip(_names(paths), runs, strict=True)
    ]


def _names(paths: Sequence[Path]) -> list[str]:
    """Return what runs are called: the last part of their path where it tells them apart, else all of it."""
    for names in ([path.name for path in paths], [str(path) for path in paths]):
        if len(set(names)) == len(names) and all(names):
            return names
    return [f"{path} ({number})" for number, path in enumerate(paths, 1)]


def as_json(
    found: Compared, explained: Sequence[Explained], engines: Sequence[str], status: int
) -> dict[str, Any]:
    """Return everything that was found, for programs."""
    why = {(id(one.comparison), one.measure.column): one for one in explained}
    return {
        "baseline": str(found.sides[0].stored.folder.path),
        "runs": [str(side.stored.folder.path) for side in found.sides[1:]],
        "across": list(found.across),
        "columns": list(found.columns),
        "tolerances": {name: {"fall": t.fall, "rise": t.rise} for name, t in found.tolerances.items()},
        "notes": notes(found.sides),
        "differs": [{"what": one.what, "values": list(one.values)} for one in differences(found.sides)],
        "comparisons": [
            {
                "run": one.run,
                "knobs": {name: one.baseline.knobs[name] for name in found.varied},
                "changed": {name: one.other.knobs[name] for name in one.changed},
                "points": [[e.id for e in side.entries] for side in (one.baseline, one.other)],
                "identical": one.identical,
                "lacking": list(one.lacking),
                "columns": {
                    measure.column: {
                        **_numbers(found, one, measure),
                        "causes": _causes(why.get((id(one), measure.column))),
                    }
                    for measure in one.measures
                },
            }
            for one in found.comparisons
        ],
        "alone": [
            {"run": one.run, "without": one.without, "knobs": {k: one.setting.knobs[k] for k in found.varied}}
            for one in found.alone
        ],
        "engines": list(engines),
        "passed": list(found.passed),
        "exit_status": status,
    }


def _numbers(found: Compared, one: Comparison, measure: Measure) -> dict[str, Any]:
    """Return what is known of one column of one setting."""
    before, now, interval = measure.baseline, measure.other, measure.interval
    return {
        "baseline": before.value if before else None,
        "value": now.value if now else None,
        "baseline_n": before.n if before else 0,
        "n": now.n if now else 0,
        "difference": measure.verdict.difference if measure.verdict else None,
        "percent": measure.percent,
        "percent_low": interval.low if interval else None,
        "percent_high": interval.high if interval else None,
        "certainty": certainty(one, measure),
        "outside": found.outside(measure) if measure.column in found.tolerances else None,
    }


def _causes(found: Explained | None) -> list[dict[str, Any]] | None:
    """Return the likely causes of a difference; None where it was not looked into."""
    if found is None:
        return None
    return [{"rule": one.rule, "sentence": one.sentence, "share": one.share} for one in found.causes]


def _flat(found: Compared, one: Comparison, measure: Measure) -> dict[str, Any]:
    knobs = {name: _change(one, name) for name in found.varied}
    return {
        "run": found.sides[one.run].name,
        **knobs,
        "column": measure.column,
        **_numbers(found, one, measure),
    }


def certainty(one: Comparison, measure: Measure) -> str:
    """Return how a difference is to be taken.

    identical: the records are equal, byte for byte. exact: one seed in virtual
    time, which gives this difference every time. interval: over several seeds.
    one repetition: no more is known. "": there is no difference to speak of.
    """
    if one.identical:
        return "identical"
    if measure.verdict is None:
        return ""
    if measure.verdict.interval is not None:
        return "interval"
    return "exact" if one.exact else "one repetition"


def differences(sides: Sequence[Side]) -> list[provenance.Difference]:
    """Return what differs between the runs, see `lab.provenance`."""
    knobs = [[entry.knobs for entry in side.entries] for side in sides]
    return provenance.differences([side.stored.manifest for side in sides], knobs)


def notes(sides: Sequence[Side]) -> list[str]:
    """Return sentences on the runs as such: one that is there twice, one that has not ended."""
    told = []
    places = [side.stored.folder.path.resolve() for side in sides]
    for number, place in enumerate(places):
        if place in places[:number]:
            told.append(f"{place} is there twice: a run beside itself differs in nothing.")
        elif not sides[number].stored.manifest.get("ended"):
            told.append(f"{sides[number].name} has not ended; run its command again to get the rest.")
    return told


def _print(found: Compared, explained: Sequence[Explained], engines: Sequence[str]) -> None:
    names = [side.name for side in found.sides]
    print(f"Baseline: {names[0]}. Beside it: {', '.join(names[1:])}.")
    for note in notes(found.sides):
        print(f"Note: {note}")
    told = _differing(found)
    if told:
        output.print_table(told)
    else:
        print("What was asked, by which versions and on which kernels: nothing differs.")
    rows = [
        _line(found, one, measure)
        for one in found.comparisons
        if not one.identical
        for measure in one.measures
    ]
    if rows:
        output.print_table(rows, right=_NUMBERS)
    same = sum(one.identical for one in found.comparisons)
    if same:
        print(f"Identical, all records byte for byte: {same} of {len(found.comparisons)} settings.")
    for sentence in engines:
        print(sentence)
    _print_sentences(likely(found, explained))
    _print_sentences(_remarks(found))
    if found.tolerances:
        _print_sentences(found.passed)
        measures = [measure for one in found.comparisons for measure in one.measures]
        chance = sum(found.larger(measure) and not found.outside(measure) for measure in measures)
        if found.passed:
            print(f"{len(found.passed)} outside the tolerance: exit status 1.")
        elif chance:
            print(
                f"Nothing is certain to be outside the tolerance; {chance} may be: more --repeat would tell."
            )
        else:
            print("Everything is within the tolerance.")


def _differing(found: Compared) -> list[dict[str, str]]:
    """Return the rows of the table of what differs before any number does."""
    names = [side.name for side in found.sides]
    heads = [f"{names[0]} (baseline)", *names[1:]]
    return [
        {"what differs": one.what, **dict(zip(heads, one.values, strict=True))}
        for one in differences(found.sides)
    ]


def _print_sentences(sentences: Sequence[str]) -> None:
    for sentence in sentences[:_MOST_SENTENCES]:
        print(sentence)
    if len(sentences) > _MOST_SENTENCES:
        print(f"... and {len(sentences) - _MOST_SENTENCES} more; --format json has all.")


def _looked_into() -> str:
    return (
        f"Likely causes of what is more than chance and {apart.LEAST_PERCENT:g} %, or of one repetition more"
        f" than {apart.THRESHOLD_PERCENT:g} %."
    )


def likely(found: Compared, explained: Sequence[Explained]) -> list[str]:
    """Return the likely cause of each difference that was looked into, after what is looked into."""
    if not explained:
        return []
    told = [f"{_looked_into()[:-1]}:"]
    several = len(found.sides) > 2
    for one in explained:
        run = f"{found.sides[one.comparison.run].name}: " if several else ""
        head = f"{run}{found.label(one.comparison.other)}: {one.measure.column}"
        told.append(f"{head} {_difference(one.measure)}: {one.said}")
    return told


def _remarks(found: Compared) -> list[str]:
    """Return sentences on what could not be compared, unless the tolerance says them, and on few seeds."""
    told = []
    if not found.tolerances:
        for alone in found.alone:
            told.append(f"Only {found.sides[alone.run].name} has {found.label(alone.setting)}.")
        for one in found.comparisons:
            told += [f"{found.label(one.other)}: {phrase}." for phrase in one.lacking]
    spread = [
        min(one.verdict.a.n, one.verdict.b.n)
        for comparison in found.comparisons
        for one in comparison.measures
        if one.interval is not None and one.interval.low < one.interval.high and one.verdict is not None
    ]
    return [*dict.fromkeys(told), *filter(None, [statistics.caution(min(spread, default=0))])]


def _line(found: Compared, one: Comparison, measure: Measure) -> dict[str, str]:
    """Return one line of the table: a column of a setting."""
    run = {"run": found.sides[one.run].name} if len(found.sides) > 2 else {}
    before, now = (
        "" if estimate is None else repeats.say(measure.column, estimate)
        for estimate in (measure.baseline, measure.other)
    )
    return {
        **{name: _change(one, name) for name in found.varied},
        **run,
        "column": measure.column,
        "baseline": before,
        "beside it": now,
        "difference": _difference(measure),
        "": _remark(found, one, measure),
    }


def _change(one: Comparison, name: str) -> str:
    before, now = one.baseline.knobs[name], one.other.knobs[name]
    return before if before == now else f"{before} → {now}"


def _difference(measure: Measure) -> str:
    if measure.verdict is None:
        return ""
    if measure.percent is None:
        return "from 0"
    change = f"{measure.percent:+.3g} %" if measure.percent else "0 %"
    if measure.interval is None or measure.interval.low == measure.interval.high:
        return change
    return f"{change} ({measure.interval.low:+.3g} to {measure.interval.high:+.3g})"


def _remark(found: Compared, one: Comparison, measure: Measure) -> str:
    if found.outside(measure):
        return f"outside {found.tolerances[measure.column].text}"
    if found.larger(measure):
        return compare_module.chance(measure)
    if measure.one_sided:
        return "only one has it"
    if (
        measure.baseline is not None
        and measure.baseline.constant
        and measure.other
        and measure.other.constant
    ):
        return "every seed gave the same"
    known = certainty(one, measure)
    return "" if known == "interval" else known


# the page


def _write(
    arguments: argparse.Namespace, found: Compared, explained: Sequence[Explained], engines: Sequence[str]
) -> None:
    """Write the page. Raises StoreError."""
    from lab.report import beside  # noqa: PLC0415 (plotting is slow to import, and few comparisons want it)

    words = ["wanlab", "compare", str(arguments.baseline), *map(str, arguments.others)]
    for flag, texts in (
        ("--column", arguments.column or ()),
        ("--across", arguments.across or ()),
        ("--points", arguments.points),
    ):
        words += [word for text in texts for word in (flag, text)]
    words += [f"--tolerance={text}" for text in arguments.tolerance] + ["--html", str(arguments.html)]
    names = [side.name for side in found.sides]
    text = beside.Text(
        title=f"{' and '.join(names[1:])} beside {names[0]}",
        status=engines,
        notes=[*notes(found.sides), *_remarks(found)],
        differs=_cells([*_differing(found)]),
        table=_table(found, explained),
        command=shlex.join(words),
    )
    pairs = [pair for one in found.comparisons if (pair := _pair(found, one, explained)) is not None]
    beside.write(beside.render(text, pairs), arguments.html)


def _table(found: Compared, explained: Sequence[Explained]) -> beside.Cells:
    """Return the table of the page: that of the terminal, with likely causes under their differences."""
    why = {(id(one.comparison), one.measure.column): one.said for one in explained}
    pairs = [(one, measure) for one in found.comparisons for measure in one.measures]
    rows = [_line(found, one, measure) for one, measure in pairs]
    below = [why.get((id(one), measure.column), "") for one, measure in pairs]
    return _cells(rows, _NUMBERS, below, _looked_into() if why else "")


def _cells(
    rows: Sequence[Mapping[str, str]],
    right: frozenset[str] = frozenset(),
    below: Sequence[str] = (),
    caption: str = "",
) -> beside.Cells:
    from lab.report import beside  # noqa: PLC0415 (see above)

    heads = list(rows[0]) if rows else []
    return beside.Cells(heads, [list(row.values()) for row in rows], right, below, caption)


def _pair(found: Compared, one: Comparison, explained: Sequence[Explained]) -> beside.Pair | None:
    """Return the points of a comparison that are drawn: of the first seed that is done in both."""
    from lab.report import beside  # noqa: PLC0415 (see above)

    if not one.baseline.rows or not one.other.rows:
        return None
    both = sorted(one.baseline.rows.keys() & one.other.rows.keys())
    members = []
    for number, setting in ((0, one.baseline), (one.run, one.other)):
        seed = both[0] if both else min(setting.rows)
        entry = next(entry for entry in setting.entries if entry.seed == seed)
        members.append(beside.Member(found.sides[number].name, found.sides[number].stored, entry))
    run = f"{found.sides[one.run].name}: " if len(found.sides) > 2 else ""
    words = [
        f"{this.measure.column} {_difference(this.measure)}: {this.said}"
        for this in explained
        if this.comparison is one
    ]
    return beside.Pair(f"{run}{found.label(one.other)}", (members[0], members[1]), tuple(words))
