"""`wanlab compare`: runs beside a baseline, point by point; exit status 1 where a tolerance is passed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab import compare as compare_module
from lab import provenance, repeats, statistics
from lab.cli import output
from lab.cli.show import select
from lab.compare import Compared, Comparison, Measure, Side
from lab.errors import StoreError
from lab.report import stored
from lab.store import RunFolder

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
        help="knobs that may differ between a point and its baseline (default: kernel)",
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
    output.add_format(parser, "csv")


def run(arguments: argparse.Namespace) -> int:
    """Print what differs; return 0, or 1 where a stated tolerance is passed."""
    across = compare_module.across(arguments.across)
    columns = _columns(arguments.column)
    tolerances = compare_module.tolerances(arguments.tolerance, columns)
    columns = tuple(dict.fromkeys((*columns, *tolerances)))
    sides = read([arguments.baseline, *arguments.others], arguments.points)
    found = compare_module.compare(sides, columns, across=across, tolerances=tolerances)
    status = 1 if found.passed else 0
    if arguments.format == "json":
        output.print_json(as_json(found, across, status))
    elif arguments.format == "csv":
        rows = [_flat(found, one, measure) for one in found.comparisons for measure in one.measures]
        output.print_csv(rows, list(rows[0]))
    else:
        _print(found)
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


def as_json(found: Compared, across: Sequence[str], status: int) -> dict[str, Any]:
    """Return everything that was found, for programs."""
    return {
        "baseline": str(found.sides[0].stored.folder.path),
        "runs": [str(side.stored.folder.path) for side in found.sides[1:]],
        "across": list(across),
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
                "columns": {measure.column: _numbers(found, one, measure) for measure in one.measures},
            }
            for one in found.comparisons
        ],
        "alone": [
            {"run": one.run, "without": one.without, "knobs": {k: one.setting.knobs[k] for k in found.varied}}
            for one in found.alone
        ],
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


def _print(found: Compared) -> None:
    names = [side.name for side in found.sides]
    print(f"Baseline: {names[0]}. Beside it: {', '.join(names[1:])}.")
    for note in notes(found.sides):
        print(f"Note: {note}")
    differing = differences(found.sides)
    if differing:
        heads = [f"{names[0]} (baseline)", *names[1:]]
        told = [{"what differs": one.what, **dict(zip(heads, one.values, strict=True))} for one in differing]
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


def _print_sentences(sentences: Sequence[str]) -> None:
    for sentence in sentences[:_MOST_SENTENCES]:
        print(sentence)
    if len(sentences) > _MOST_SENTENCES:
        print(f"... and {len(sentences) - _MOST_SENTENCES} more; --format json has all.")


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
