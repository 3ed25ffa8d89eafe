"""`wanlab advise`: the least socket buffers that fill a path, by real runs; and whether sysctl files do."""

from __future__ import annotations

import argparse
import importlib
import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from lab import run as run_module
from lab.advise import ask as asking
from lab.advise import bench, choose, conf, find, summary, verify
from lab.advise.ask import Ask, Case
from lab.cli import output
from lab.cli.progress import Progress
from lab.cli.run import DEFAULT_RESULTS, whole_number
from lab.engines.base import ENGINES
from lab.errors import SpecError, StoreError, UserError
from lab.kernels import find_kernel
from lab.knobs import PATH_KNOBS
from lab.model.inputs import Release
from lab.setting import model_faults
from lab.store import RunFolder

PAGE = "advice.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's words."""
    for name in asking.PATH:
        knob = PATH_KNOBS[name]
        required = name in ("rate", "rtt")
        said = knob.meaning if required else f"{knob.meaning} (default: {knob.default})"
        parser.add_argument(
            f"--{name}",
            metavar=name.upper(),
            required=required,
            default=None if required else knob.default,
            help=said.replace("%", "%%"),
        )
    parser.add_argument("--cc", metavar="CC[,CC...]", help="congestion controls to size for (default: cubic)")
    parser.add_argument(
        "--kernel", default="6.12", metavar="K[,K...]", help="kernels to size for (default: 6.12)"
    )
    parser.add_argument(
        "--target",
        default="95%",
        metavar="SHARE",
        help="how much of the payload that the link can carry is to be reached (default: 95%%)",
    )
    parser.add_argument(
        "--verify",
        action="extend",
        nargs="+",
        default=[],
        metavar="FILE",
        help="instead of searching, say whether these sysctl.d files fill the path; sender=FILE and"
        " receiver=FILE name the end, and so does a file's name",
    )
    parser.add_argument("--jobs", metavar="N", help="points side by side (default: one a CPU)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder (default: results/advice-RATE-RTT)")
    parser.add_argument("--png", action="store_true", help="write the figures as pictures too")
    output.add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Search, or verify; return 0, or 1 where the target is not reached."""
    path = asking.path({name: getattr(arguments, name) for name in asking.PATH})
    target = asking.target(arguments.target, int(path["mtu"]))
    jobs = whole_number(arguments.jobs or str(len(run_module.cpus())), "--jobs", 1, 1024)
    sources = [verify.source(text) for text in arguments.verify]
    applied = verify.apply(sources) if sources else None

    ccs = _words(arguments.cc, "--cc", "cc") if arguments.cc else ["cubic"]
    if applied is not None and not arguments.cc and "cc" in applied.knobs:
        ccs = [applied.knobs["cc"]]
    kernels = {name: find_kernel(name) for name in _words(arguments.kernel, "--kernel", "kernel")}
    cases = tuple(
        Case(cc, name, Release.parse(record.release)) for name, record in kernels.items() for cc in ccs
    )
    ask = Ask(path, target, cases)
    ask.point(cases[0])  # a path that cannot be built is refused before anything starts

    directory = arguments.out or DEFAULT_RESULTS / f"advice-{path['rate']}-{path['rtt']}"
    quiet = arguments.format == "json"
    folder = RunFolder(directory / bench.RUN)
    engine = importlib.import_module(ENGINES["virtual"]).make()
    with folder.locked(), Progress(total=0, kept=0, quiet=quiet) as progress:
        runner = bench.Bench(
            ask, _command(ask, arguments), engine, kernels, folder, jobs, progress.expect, progress.notify
        )
        runner.claim()
        if applied is not None:
            checks = verify.check(ask, applied, runner.rows)
        else:
            findings = find.find(ask, runner.rows, jobs)
            choice = choose.choose(ask, findings, runner.rows)
    if applied is not None:
        return _say_checks(ask, applied, checks, json=quiet)
    told = conf.Told(ask, findings, choice, _command(ask, arguments), cc_asked=bool(arguments.cc))
    return _say(told, directory, arguments)


def _words(text: str, flag: str, knob: str) -> list[str]:
    """Return the values of a list, canonical and each once. Raises UserError naming the flag."""
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise UserError(
            f"{flag} {text!r}: an empty name; write one or several, such as {PATH_KNOBS[knob].default}"
        )
    found = list(dict.fromkeys(PATH_KNOBS[knob].canonical(part) for part in parts))
    faults = [fault for text in found for fault in model_faults({knob: text})]
    if faults:
        raise SpecError(faults)
    return found


def _command(ask: Ask, arguments: argparse.Namespace) -> str:
    """Return the command that finds this again."""
    words = ["wanlab", "advise", *ask.flags.split()]
    words += ["--cc", ",".join(dict.fromkeys(case.cc for case in ask.cases))]
    words += ["--kernel", ",".join(dict.fromkeys(case.kernel for case in ask.cases))]
    for file in arguments.verify:
        words += ["--verify", file]
    return shlex.join(words)


def _say_checks(ask: Ask, applied: verify.Applied, checks: list[verify.Check], *, json: bool) -> int:
    reached = all(check.reached for check in checks)
    if json:
        output.print_json({**summary.check_json(ask, applied, checks), "exit_status": 0 if reached else 1})
        return 0 if reached else 1
    if applied.lines:
        output.print_table(
            [
                {"end": end, "sysctl": line.key, "value": " ".join(line.value.split()), "from": line.place}
                for end, line in applied.lines
            ]
        )
    else:
        print("The files set nothing that counts on this path.")
    for note in applied.notes:
        print(f"Note: {note}.")
    for check in checks:
        print(summary.check_sentence(ask, check))
    return 0 if reached else 1


def _say(told: conf.Told, directory: Path, arguments: argparse.Namespace) -> int:
    ask, findings, choice = told.ask, told.findings, told.choice
    from lab.advise import figure, page  # noqa: PLC0415 (plotting is slow to import)

    files = {conf.SENDER_FILE: conf.sender(told), conf.RECEIVER_FILE: conf.receiver(told)}
    drawn = figure.draw(ask, findings, choice)
    words = {
        "command": told.command,
        "verify": shlex.join(
            ["wanlab", "advise", *ask.flags.split(), "--verify", *(str(directory / name) for name in files)]
        ),
        "run": str(directory / bench.RUN),
    }
    made = {**files, PAGE: page.render(ask, findings, choice, drawn, files, words)}
    written = _write(directory, made)
    if arguments.png:
        from lab.report import pictures  # noqa: PLC0415

        for picture in pictures.write(drawn, [], directory, pictures.find_browser()):
            written[picture.name] = str(picture)
    found = summary.as_json(ask, findings, choice, written)
    status = 0 if found["reached"] else 1
    if arguments.format == "json":
        output.print_json({**found, "run": words["run"], "exit_status": status})
        return status
    output.print_table(
        summary.table(ask, findings, choice),
        right=frozenset(("model", "falls short", "least", "gives", "set")),
    )
    for sentence in found["sentences"]:
        print(sentence)
    for warning in found["warnings"]:
        print(f"Warning: {warning}")
    for name in written.values():
        print(name)
    print(f"Check it: {words['verify']}")
    return status


def _write(directory: Path, texts: Mapping[str, str]) -> dict[str, str]:
    """Write files, each all of it or none; return {name: path}. Raises StoreError."""
    for name, text in texts.items():
        aside = directory / f".{name}.{os.getpid()}"
        try:
            aside.write_text(text, encoding="utf-8")
            aside.replace(directory / name)
        except OSError as refused:
            aside.unlink(missing_ok=True)
            raise StoreError(
                f"{directory / name}: cannot be written ({refused.strerror}); choose another --out or make"
                " room"
            ) from refused
    return {name: str(directory / name) for name in texts}
