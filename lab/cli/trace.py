"""`wanlab trace make`, `wanlab trace show` and `wanlab trace convert`."""

from __future__ import annotations

import argparse
from pathlib import Path

from lab import traces, units
from lab.cli import output
from lab.errors import UnitError, UserError
from lab.traces import deliveries, files, formula, table
from lab.traces.trace import LONGEST_S, MOST_STEPS, Instants, Rates, Trace, whole_ns

_STEP = units.format_time(traces.STEP_S)
_FORMATS = {"csv": "CSV", "mahimahi": "mahimahi packet deliveries"}
_COLUMNS = 60
_BLOCKS = "·▁▂▃▄▅▆▇█"
"""An outage, and eighths of the largest rate."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's words."""
    words = parser.add_subparsers(dest="word", metavar="WORD", required=True)
    make = words.add_parser("make", help="write a trace by a formula")
    make.add_argument("out", type=Path, metavar="OUT", help="file to write")
    make.add_argument(
        "--rate",
        required=True,
        metavar="FORMULA",
        help="12mbit, or arithmetic in t, seconds: '20mbit + 10mbit*sin(2*pi*t/10)'",
    )
    make.add_argument("--duration", required=True, metavar="T", help="how long the trace is")
    make.add_argument(
        "--step",
        default=_STEP,
        metavar="T",
        help=f"the formula is taken in the middle of each (default: {_STEP})",
    )
    _add_out(make)

    show = words.add_parser("show", help="say what a trace has, and whether it reads")
    show.add_argument("file", type=Path, metavar="FILE", help="a trace")
    show.add_argument(
        "--duration", metavar="T", help="look at the first T (default: the period, or up to the last time)"
    )
    show.add_argument(
        "--step",
        default=_STEP,
        metavar="T",
        help=f"rates of packet deliveries are means of it (default: {_STEP})",
    )
    output.add_format(show)

    convert = words.add_parser("convert", help="write a trace in the other format, or coarser")
    convert.add_argument("source", type=Path, metavar="IN", help="a trace")
    convert.add_argument("out", type=Path, metavar="OUT", help="file to write")
    convert.add_argument(
        "--duration", metavar="T", help="take the first T; a CSV has no end of its own (default: the period)"
    )
    convert.add_argument(
        "--step", metavar="T", help=f"rates become means of it (default: {_STEP}; those of a CSV stay)"
    )
    _add_out(convert)


def _add_out(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        choices=tuple(_FORMATS),
        help="format to write (default: csv where OUT ends in .csv, else mahimahi)",
    )
    parser.add_argument("--force", action="store_true", help="replace a file that is there")


def run(arguments: argparse.Namespace) -> int:
    """Make, show or convert; return 0."""
    {"make": _make, "show": _show, "convert": _convert}[arguments.word](arguments)
    return 0


def _make(arguments: argparse.Namespace) -> None:
    form = _form(arguments)
    duration_s, step_s = _duration(arguments.duration), _step(arguments.step)
    files.check_new(arguments.out, force=arguments.force)
    try:
        starts_ns, rates_bps = formula.sampled(arguments.rate, duration_s, step_s)
    except UnitError as fault:
        raise UnitError(f"--rate {fault}") from fault
    _write(arguments, form, starts_ns, rates_bps, duration_s)
    _say(arguments.out, duration_s)


def _convert(arguments: argparse.Namespace) -> None:
    form = _form(arguments)
    step_s = _step(arguments.step) if arguments.step else None
    files.check_new(arguments.out, force=arguments.force)
    source = traces.load(arguments.source, step_s or traces.STEP_S)
    averaged = step_s if source.form == "csv" else None
    duration_s = _duration(arguments.duration) if arguments.duration else source.period_s
    if duration_s is None and (averaged or form == "mahimahi"):
        raise UserError(
            f"{arguments.source}: has no end of its own; say how much of it to take, such as --duration 60s"
        )
    if duration_s is None:
        starts_ns, rates_bps = source.starts_ns, source.rates_bps
    elif averaged:
        starts_ns, rates_bps = source.sampled(duration_s, averaged)
    else:
        starts_ns, rates_bps = source.over(duration_s)
    duration_s = duration_s or source.length_s
    _write(arguments, form, starts_ns, rates_bps, duration_s)
    _say(arguments.out, duration_s)
    for lost in _lost(source, form, duration_s, step_s):
        print(f"Lost: {lost}")


def _lost(source: Trace, form: str, duration_s: float, step_s: float | None) -> list[str]:
    """Return what the converted trace does not say any more."""
    lost, duration = [], units.format_time(duration_s)
    if source.form == "mahimahi":
        step = units.format_time(step_s or traces.STEP_S)
        lost.append(f"where in its step of {step} each packet was due")
        if form == "csv":
            lost.append(f"the repetition; after {duration} the last rate holds")
    elif step_s:
        lost.append(f"what changed within {units.format_time(step_s)}")
    if form == "mahimahi":
        lost.append("parts of a packet and of a millisecond")
        if source.form == "csv":
            lost.append(f"what comes later; after {duration} the trace begins anew")
    return lost


def _form(arguments: argparse.Namespace) -> str:
    """Return the format to write. Raises UserError where the file would not be read as that."""
    csv = arguments.out.suffix.lower() == ".csv"
    form: str = arguments.format or ("csv" if csv else "mahimahi")
    if csv and form != "csv":
        raise UserError(
            f"{arguments.out}: would be read as CSV by its name; name it otherwise, such as link.up"
        )
    return form


def _write(
    arguments: argparse.Namespace, form: str, starts_ns: Instants, rates_bps: Rates, duration_s: float
) -> None:
    if form == "csv":
        texts = table.text(starts_ns, rates_bps)
    else:
        texts = deliveries.text(str(arguments.out), starts_ns, rates_bps, duration_s)
    try:
        files.write(arguments.out, texts, force=arguments.force)
    except UnitError as fault:
        raise UnitError(f"{arguments.out}: {fault}") from fault


def _say(path: Path, duration_s: float) -> None:
    """Say of a file what it has, as it reads now."""
    written = traces.load(path)
    mean = units.human_rate(written.mean_bps(duration_s or 1.0))
    print(f"{path}: {_FORMATS[written.form]}, {written.lines} lines, mean rate {mean}")


def _show(arguments: argparse.Namespace) -> None:
    trace = traces.load(arguments.file, _step(arguments.step))
    over_s = _duration(arguments.duration) if arguments.duration else trace.length_s or 1.0
    # without an end of its own a trace is looked at up to its last rate, and that is counted
    until_s = over_s if arguments.duration or trace.period_s else over_s + 1e-9
    rates_bps = trace.rates_bps[trace.starts_ns < whole_ns(until_s)]
    try:
        steps: int | None = len(trace.upto(until_s))
    except UserError:
        steps = None
    known = {
        "file": str(arguments.file),
        "format": trace.form,
        "lines": trace.lines,
        "digest": traces.digest(arguments.file),
        "period_s": trace.period_s,
        "over_s": over_s,
        "mean_bps": trace.mean_bps(over_s),
        "min_bps": float(rates_bps.min()),
        "max_bps": float(rates_bps.max()),
        "longest_outage_s": trace.longest_outage_s,
        "steps": steps,
    }
    if arguments.format == "json":
        output.print_json(known)
        return
    period = "none; the last rate holds" if trace.period_s is None else units.format_time(trace.period_s)
    rows = {
        "format": _FORMATS[trace.form],
        "lines": str(trace.lines),
        "digest": str(known["digest"]),
        "period": period,
        "looked at": units.format_time(over_s),
        "mean rate": units.human_rate(trace.mean_bps(over_s)),
        "least rate": units.human_rate(float(rates_bps.min())),
        "largest rate": units.human_rate(float(rates_bps.max())),
        "longest outage": units.format_time(trace.longest_outage_s),
        "steps of a run": f"over {MOST_STEPS}, too many" if steps is None else str(steps),
    }
    output.print_table([{"what": what, "value": value} for what, value in rows.items()])
    print(_spark(trace, over_s))


def _spark(trace: Trace, over_s: float) -> str:
    """Return the mean rates of equal parts as blocks."""
    _, rates_bps = trace.sampled(over_s, over_s / _COLUMNS)
    part = rates_bps[:_COLUMNS] / (rates_bps.max() or 1)
    return "".join(_BLOCKS[min(8, int(1 + 8 * share)) if share else 0] for share in part.tolist())


def _duration(text: str) -> float:
    duration_s = units.parse_time(text)
    if not 1e-3 <= duration_s <= LONGEST_S:
        raise UnitError(f"--duration {text!r}: is not between 1ms and {LONGEST_S:.0f}s; write it such as 60s")
    return duration_s


def _step(text: str) -> float:
    return deliveries.check_step(units.parse_time(text)) / 1e3
