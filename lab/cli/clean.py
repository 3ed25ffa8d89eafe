"""`wanlab clean`: puts back what runs that died have left, here or on the hosts of an inventory."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from lab.agent import journal
from lab.errors import LabError, PreconditionError
from lab.remote import inventory
from lab.remote.host import Hosts, parallel

_LIMIT_S = 120.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's words."""
    parser.add_argument(
        "--inventory", type=Path, metavar="FILE", help="clean the hosts of an inventory, not this machine"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be put back, change nothing")


def run(arguments: argparse.Namespace) -> int:
    """Clean; return 0 where all is as it was before, 1 where something could not be put back."""
    if arguments.inventory is None:
        return _say("this machine", _here(arguments.dry_run))
    known = inventory.load(arguments.inventory)
    status = 0
    faults: list[str] = []
    # each host for itself: one that cannot be reached must not keep the others from being cleaned
    for name, done in parallel(
        {entry.name: partial(_there, known, entry, arguments.dry_run) for entry in known.hosts}
    ).items():
        if isinstance(done, LabError):
            faults.append(str(done))
        else:
            status = max(status, _say(f"host {name}", done))
    if faults:
        raise PreconditionError("\n".join(faults))
    return status


def _here(dry_run: bool) -> list[str]:
    try:
        return journal.clean(dry_run=dry_run)
    except PermissionError as refused:
        raise PreconditionError(
            f"there may be something to put back, and only root may look ({refused.filename});"
            " run it with sudo"
        ) from refused


def _there(known: inventory.Inventory, entry: inventory.Entry, dry_run: bool) -> list[str] | LabError:
    try:
        with Hosts(known, [entry]) as hosts:
            done: list[str] = hosts[entry.name].call("clean", _LIMIT_S, dry_run=dry_run)
            return done
    except LabError as error:
        return error


def _say(where: str, done: Sequence[str]) -> int:
    for sentence in done or ["nothing to put back"]:
        print(f"{where}: {sentence}")
    return int(any(sentence.startswith("not put back") for sentence in done))
