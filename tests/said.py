"""The command run in this process, and what it left."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from lab.cli import main


class Said(NamedTuple):
    """What a command left."""

    status: int
    out: str
    err: str


Wanlab = Callable[..., Said]


def wanlab_of(capsys: pytest.CaptureFixture[str], *first: str) -> Wanlab:
    """Return the command as a function of its words; `first`: those that all calls begin with."""

    def run(*words: object) -> Said:
        capsys.readouterr()
        try:
            status = main([*first, *map(str, words)])
        except SystemExit as left:
            status = left.code if isinstance(left.code, int) else 1
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return Said(status, printed.out, printed.err)

    return run
