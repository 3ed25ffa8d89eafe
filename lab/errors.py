"""The error tree. Every error that the lab raises on purpose is one of these.

LabError
├── UserError                 the user gave something that cannot be        exit 2
│   ├── UnitError             a quantity that does not read (ValueError)
│   └── SpecError             a scenario or a knob with faults (ValueError)
├── PreconditionError         the machine lacks something                    exit 3
├── EngineError               the emulated world did not come up             a failed point
│   ├── CommandError          a tool ended badly
│   ├── GuestError            the emulated kernel or its agent died
│   └── PointTimeout          a point took longer than it may (TimeoutError)
├── MeasurementError          it ran, but the records cannot be believed     a failed point
│   └── MachineLimited        the machine was the limit, not the network
└── StoreError                a run folder that cannot be read or written    exit 2

Every message is one sentence that names the value, the rule and the mend.
`lab.cli` alone turns them into exit codes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class LabError(Exception):
    """Base of all errors of the lab."""


class UserError(LabError):
    """The user gave something that cannot be run."""


class UnitError(UserError, ValueError):
    """A quantity that does not read as one."""


class SpecError(UserError, ValueError):
    """One or more faults of a scenario, all of them listed."""

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = list(faults)
        super().__init__("\n".join(self.faults))


class PreconditionError(LabError):
    """The machine lacks something that this needs; the message says how to get it."""


class EngineError(LabError):
    """The emulated world did not come up or did not stay up."""


class CommandError(EngineError):
    """A tool that the lab started ended badly."""

    def __init__(self, argv: Sequence[str], status: int, stderr: str) -> None:
        self.argv, self.status, self.stderr = list(argv), status, stderr
        tail = "\n".join(stderr.strip().splitlines()[-12:])
        super().__init__(f"{argv[0]} ended with status {status}: {tail}")


class GuestError(EngineError):
    """The emulated kernel or the agent in it died; `console` holds its last lines."""

    def __init__(self, message: str, console: str = "") -> None:
        self.console = console
        super().__init__(message)


class PointTimeout(EngineError, TimeoutError):
    """A point took more wall or virtual seconds than it may."""


class MeasurementError(LabError):
    """The point ran, but what it recorded cannot be believed."""


class MachineLimited(MeasurementError):
    """The point measured the machine that ran it; `rows` are the tables that say so."""

    def __init__(self, message: str, rows: Mapping[str, Sequence[dict[str, Any]]]) -> None:
        self.rows = rows
        super().__init__(message)


class StoreError(LabError):
    """A run folder that cannot be read or written."""
