"""The only place on the controlling side that starts processes: argv lists, time limits, status checked."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.errors import CommandError, PreconditionError


def run(
    argv: Sequence[str],
    *,
    timeout_s: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
) -> str:
    """Run a tool to its end and return its standard output.

    env is added to the environment. Raises CommandError on any other status
    than 0 or after `timeout_s`, PreconditionError where the tool is not there.
    """
    try:
        done = subprocess.run(
            list(argv),
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            check=False,
        )
    except FileNotFoundError as missing:
        raise PreconditionError(f"{argv[0]} is not installed; `make setup` installs it") from missing
    except subprocess.TimeoutExpired as late:
        raise CommandError(argv, -9, f"no end after {timeout_s:g} s") from late
    if done.returncode != 0:
        raise CommandError(argv, done.returncode, done.stderr or done.stdout)
    return done.stdout


def spawn(
    argv: Sequence[str],
    *,
    stdout: Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a tool in a process group of its own, both outputs appended to `stdout`, no input.

    pass_fds: descriptors that it gets under the same numbers. The caller owns it and ends it.
    """
    with stdout.open("ab") as sink:
        return subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            start_new_session=True,
            pass_fds=tuple(pass_fds),
        )


def converse(argv: Sequence[str], *, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a tool in a session of its own, all three streams in pipes; `env` is all its environment.

    The caller owns it and ends it. Raises PreconditionError where the tool is not there.
    """
    try:
        return subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            start_new_session=True,
        )
    except FileNotFoundError as missing:
        raise PreconditionError(f"{argv[0]} is not installed; `make setup` installs it") from missing
