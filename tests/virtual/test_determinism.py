"""Same scenario, kernel and seed: the same records to the bit, whatever else the machine does."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

pytestmark = pytest.mark.virtual

LOSSY = {"rate": "20mbit", "rtt": "40ms", "loss": "0.5%", "duration": "2s"}
REPETITIONS = 20


@pytest.fixture
def busy_cpus():
    """Keep every CPU busy with something else."""
    spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in os.sched_getaffinity(0)]
    yield
    for spinner in spinners:
        spinner.kill()
        spinner.wait()


def digest(tables):
    return tables["points"][0]["digest"]


@pytest.mark.usefixtures("busy_cpus")
def test_twenty_repetitions_of_a_lossy_point_under_load(run_point):
    """Side by side, on both CPUs, while both are kept busy."""
    cpus = sorted(os.sched_getaffinity(0))
    digests: list[str] = []
    lock = threading.Lock()

    def some(cpu: int, count: int) -> None:
        for _ in range(count):
            tables = run_point(cpu=cpu, **LOSSY)
            with lock:
                digests.append(digest(tables))

    threads = [threading.Thread(target=some, args=(cpus[i % len(cpus)], REPETITIONS // 2)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(digests) == REPETITIONS
    assert len(set(digests)) == 1


def test_another_seed_is_another_course(run_point):
    first, second = run_point(seed=1, **LOSSY), run_point(seed=2, **LOSSY)
    assert first["points"][0]["retransmits"] > 0
    assert digest(first) != digest(second)


def test_the_seed_does_nothing_where_chance_does_nothing(run_point):
    calm = {"rate": "20mbit", "rtt": "40ms", "duration": "1s"}
    assert digest(run_point(seed=1, **calm)) == digest(run_point(seed=2, **calm))


@pytest.mark.parametrize("kernel", ["6.1", "6.12"])
@pytest.mark.parametrize("cc", ["cubic", "bbr"])
def test_both_kernels_repeat(run_point, kernel, cc):
    knobs = {**LOSSY, "kernel": kernel, "cc": cc, "flows": "3"}
    assert digest(run_point(**knobs)) == digest(run_point(**knobs))
