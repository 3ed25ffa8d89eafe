"""The command's words, and the one place that turns errors into exit codes.

0  all points done and all expectations met
1  some point failed, an expectation was not met, or a stated tolerance was passed
2  the input cannot be run
3  the machine lacks something
130  interrupted; what was done is kept
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from lab import __version__
from lab.errors import LabError, PreconditionError, StoreError, UserError

OK, FAILED, BAD_INPUT, LACKING, INTERRUPTED = 0, 1, 2, 3, 130

COMMANDS = {  # word: (module that has `add_arguments` and `run`, one line of help)
    "run": ("lab.cli.run", "run a scenario: all its points, or those that are missing"),
    "show": ("lab.cli.show", "print a run as a table, JSON or CSV"),
    "why": ("lab.cli.why", "say what limited each point, by the model and by its records"),
    "report": ("lab.cli.report", "write a run as one self-contained HTML page"),
    "twin": ("lab.cli.twin", "write the scenario that emulates the path a run measured"),
    "compare": ("lab.cli.compare", "compare runs point by point; exit 1 where a tolerance is passed"),
    "trace": ("lab.cli.trace", "make, check and convert traces of a link's rate"),
    "predict": ("lab.cli.predict", "say what a path should give, without running anything"),
    "advise": ("lab.cli.advise", "find the socket buffers that fill a path, and write them as sysctl files"),
    "kernel": ("lab.cli.kernel", "build and list the lab's kernels"),
    "shell": ("lab.cli.shell", "open a scenario's network in Mininet's command line, without root"),
    "clean": (
        "lab.cli.clean",
        "put back what runs that died have changed, here or on the hosts of an inventory",
    ),
    "doctor": ("lab.cli.doctor", "say what this machine has and lacks"),
}


def parser(words: Sequence[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """Return the parser; only of these commands are the arguments known, and their modules imported."""
    top = argparse.ArgumentParser(
        prog="wanlab",
        description="How big must the buffers be, and which congestion control, to fill this long path?",
    )
    top.add_argument("--version", action="version", version=f"wanlab {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for word, (module, text) in COMMANDS.items():
        sub = commands.add_parser(word, help=text, description=text.capitalize() + ".")
        if word in words:
            importlib.import_module(module).add_arguments(sub)
    return top


def main(argv: Sequence[str] | None = None) -> int:  # noqa: PLR0911 (one return an exit code)
    """Run one command; return its exit code."""
    words = sys.argv[1:] if argv is None else argv
    arguments = parser(words).parse_args(words)
    module = importlib.import_module(COMMANDS[arguments.command][0])
    try:
        status: int = module.run(arguments)
        sys.stdout.flush()
        return status
    except (UserError, StoreError) as fault:
        return _say(fault, BAD_INPUT)
    except PreconditionError as fault:
        return _say(fault, LACKING)
    except LabError as fault:
        return _say(fault, FAILED)
    except KeyboardInterrupt:
        print("wanlab: interrupted; points that were done are kept, run again to go on", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has gone: not our error
        return OK
    except OSError as fault:  # a folder that may not be entered, no room for a scratch folder
        return _say(PreconditionError(f"this machine refuses: {fault}"), LACKING)


def _say(fault: LabError, status: int) -> int:
    for line in str(fault).splitlines():
        print(f"wanlab: {line}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
