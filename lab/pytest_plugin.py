"""What pytest gets of the lab: the fixture `wanlab_point`, which runs one point for a test.

    def test_cubic_fills_a_long_path(wanlab_point):
        result = wanlab_point(cc="cubic", rate="100mbit", rtt="100ms", duration="60s")
        result.assert_at_least(steady_goodput_bps=90e6)

Loaded by every pytest of an environment in which the lab is installed, so it
imports nothing of the lab before a test asks. All else is in `lab.trial`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from lab.trial import Result, Trials


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("wanlab", "TCP on emulated paths")
    group.addoption(
        "--wanlab-kernel",
        metavar="K",
        help="kernel of all points for which the test names none, as `wanlab kernel list` has it",
    )
    group.addoption(
        "--wanlab-engine", metavar="NAME", default="virtual", help="where points run (default: virtual)"
    )


def pytest_report_header(config: pytest.Config) -> str | None:
    """Return the line that says on which kernel the points run, if one was chosen."""
    kernel = config.getoption("wanlab_kernel")
    return f"wanlab: kernel {kernel}" if kernel else None


@pytest.fixture(scope="session")
def _wanlab_trials(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Trials:
    """Return what runs the points and remembers them; the lab's own tests put another in its place."""
    from lab import trial  # noqa: PLC0415 (not before a test asks for it)
    from lab.errors import LabError  # noqa: PLC0415

    try:
        engine = trial.engine(pytestconfig.getoption("wanlab_engine"))
    except LabError as fault:
        sentence = f"--wanlab-engine: {fault}"
    else:
        return trial.Trials(
            engine,
            tmp_path_factory.mktemp("wanlab"),
            kernel=pytestconfig.getoption("wanlab_kernel"),
            folder=pytestconfig.rootpath,
            worker=int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")),
        )
    pytest.fail(sentence, pytrace=False)


@pytest.fixture(scope="session")
def wanlab_point(_wanlab_trials: Trials) -> Callable[..., Result]:
    """Run one point in virtual time: wanlab_point("scenarios/path.py", cc="bbr", rtt="100ms", seed=1).

    The scenario is a path from pytest's root folder, a `lab.scenario.Scenario`,
    or left out, which leaves all knobs at their defaults but those given. Also
    preset="name" and kernel="6.12". The result has the columns of table points
    as attributes, .row, .flows, .samples, .queues, .table("limits"), .digest and
    assert_at_least, assert_at_most, assert_within, assert_like. A point runs
    once a session.
    """
    from lab.errors import LabError  # noqa: PLC0415 (not before a test asks for it)

    def run(*scenario: Any, **settings: Any) -> Result:
        __tracebackhide__ = True
        try:
            return _wanlab_trials(*scenario, **settings)
        except LabError as fault:
            sentence = str(fault)
        pytest.fail(sentence, pytrace=False)

    return run
