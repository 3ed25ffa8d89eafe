"""Two whole runs on the fake engine, side by side: a patched kernel against the one before it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from lab import manifest, repeats, sweep
from lab import run as run_module
from lab.cli.main import main
from lab.engines import fake
from lab.kernels import KernelRecord
from lab.point import Terms
from lab.scenario import LoadedScenario, Scenario
from lab.store import RunFolder

STUDY = Scenario(
    name="study",
    question="q",
    why="w",
    defaults={"rate": "10mbit", "rtt": "10ms", "duration": "1s", "interval": "100ms"},
    sweep=({"cc": ["cubic", "bbr"]},),
)

Run = Callable[..., RunFolder]


@pytest.fixture
def run(tmp_path: Path, make_kernel: Callable[..., KernelRecord]) -> Run:
    """Return what runs the study on a kernel of this name."""

    def go(name: str, kernel: str = "6.12", seeds: Sequence[int] = (1,), **changes: str) -> RunFolder:
        points = sweep.points(STUDY, {"kernel": [kernel]}, engine="virtual", seeds=seeds)
        kernels = {kernel: make_kernel(name=kernel, **changes)}
        folder = RunFolder(tmp_path / name)
        loaded = LoadedScenario(STUDY, Path("study.py"), "scenario = ...")
        written = manifest.describe(loaded, STUDY, None, {}, points, kernels)
        manifest.claim(folder, written)
        run_module.run(
            points,
            engine=fake.make(),
            kernels=kernels,
            folder=folder,
            jobs=2,
            terms=Terms(wall_s=60),
            notify=lambda _event: None,
        )
        manifest.finish(folder, written, [])
        return folder

    return go


def compare(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    capsys.readouterr()
    status = main(["compare", *map(str, words)])
    return status, capsys.readouterr().out


def test_the_same_run_twice_is_identical(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = run("a"), run("b")
    status, out = compare(capsys, a.path, b.path, "--tolerance", "0%")
    assert status == 0
    assert "nothing differs" in out
    assert "Identical, all records byte for byte: 2 of 2 settings." in out


def test_a_kernel_that_loses_is_found(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    a = run("a")
    monkeypatch.setattr(fake, "LINK_SHARE", 0.8)
    b = run("b", kernel="patched", config_hash="01" * 32)
    status, out = compare(capsys, a.path, b.path, "--tolerance", "goodput=-5%")
    assert status == 1
    assert "kernel config" in out
    assert out.count("(-11.1 %), outside -5 %.") == 2
    status, out = compare(capsys, a.path, b.path, "--tolerance", "goodput=-15%", "--format", "json")
    assert status == 0
    found = json.loads(out)
    assert [one["changed"] for one in found["comparisons"]] == [{"kernel": "patched"}] * 2
    assert {one["columns"]["goodput_bps"]["certainty"] for one in found["comparisons"]} == {"exact"}


def test_seeds_without_chance_say_so(run: Run) -> None:
    groups = repeats.summarise(run("a", seeds=(1, 2, 3)).rows("points"))
    assert [group.n for group in groups] == [3, 3]
    assert all(
        estimate is None or estimate.constant for group in groups for estimate in group.estimates.values()
    )
    assert repeats.indistinct(groups, "goodput_bps") == [
        "cc=cubic and cc=bbr give the same with every seed: 8.55 Mbit/s."
    ]
