"""What all tests share: a repeatable hypothesis, and makers of points and kernels that need neither."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings

from lab.kernels import KernelRecord
from lab.knobs import PATH_KNOBS
from lab.sweep import Point

settings.register_profile("laptop", max_examples=60, deadline=None)
settings.register_profile("ci", max_examples=60, deadline=None, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "laptop")

MakePoint = Callable[..., Point]
MakeKernel = Callable[..., KernelRecord]


@pytest.fixture(scope="session")
def as_root() -> None:
    """Skip what needs root where there is none; under CI that is a failure."""
    if os.geteuid() != 0:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("it makes network namespaces: run it as root")


@pytest.fixture(scope="session")
def make_point() -> MakePoint:
    """Return a maker of points: every knob at its default but for those given, in any spelling."""

    def make(seed: int = 1, **knobs: str) -> Point:
        chosen = {name: knob.canonical(knobs.pop(name, knob.default)) for name, knob in PATH_KNOBS.items()}
        assert not knobs, f"no such knob: {knobs}"
        return Point(chosen, "virtual", seed)

    return make


@pytest.fixture(scope="session")
def make_kernel() -> MakeKernel:
    """Return a maker of kernel records; nothing is built and nothing boots."""
    record = KernelRecord(
        name="6.12",
        release="6.12.117",
        recipe_hash="ab" * 32,
        source="/tmp/linux-source-6.12.tar.xz",
        source_hash="sha256:cd",
        hz=250,
        config_hash="ef" * 32,
        compiler="gcc 12.2.0",
        built_at="2026-01-01T00:00:00+00:00",
        options_left_out=(),
        path=Path("/nonexistent/linux"),
    )
    return lambda **changes: replace(record, **changes)


@pytest.fixture(scope="session")
def assert_in_c() -> Callable[[list[str], dict[str, int]], None]:
    """Return a check of numbers against the kernel's own headers, by the C compiler that reads them."""
    compiler = shutil.which("gcc")
    if compiler is None:
        missing = "gcc reads the kernel's headers; `make setup` installs it"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)

    def check(headers: list[str], facts: dict[str, int]) -> None:
        lines = ["#include <stddef.h>", *(f"#include <{header}>" for header in headers)]
        lines += [f'_Static_assert(({what}) == {number}, "{what}");' for what, number in facts.items()]
        argv = [compiler, "-fsyntax-only", "-x", "c", "-"]
        told = subprocess.run(argv, input="\n".join(lines), capture_output=True, text=True, check=False)
        assert told.returncode == 0, told.stderr

    return check
