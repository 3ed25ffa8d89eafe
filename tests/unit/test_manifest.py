"""The manifest: all that repeats a run is in it, and a folder belongs to one run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab import manifest, sweep
from lab.cli.main import parser
from lab.cli.run import parse_settings
from lab.errors import StoreError
from lab.expectations import Verdict
from lab.kernels import KernelRecord
from lab.scenario import Figure, LoadedScenario, Original, Preset, Published, Scenario
from lab.store import RunFolder

STUDY = Scenario(
    name="study",
    question="How big?",
    why="\nBecause.\n",
    sweep=({"rmem": ["25MiB", "50MiB"]},),
    figures=(Figure("Goodput", x="rmem", by=["cc"]),),
    presets={"long": Preset("", published=(Published({"rmem": "52428800B"}, 1e6, "somebody"),))},
)


@pytest.fixture
def describe(make_kernel: Callable[..., KernelRecord], tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Return a maker of manifests of `STUDY`."""
    loaded = LoadedScenario(STUDY, tmp_path / "my studies" / "study.py", "scenario = ...\n")

    def make(
        settings: dict[str, list[str]] | None = None, seeds: range = range(1, 2), preset: str | None = None
    ) -> dict[str, Any]:
        scenario = STUDY.with_preset(preset)
        points = sweep.points(scenario, settings or {}, engine="virtual", seeds=seeds)
        return manifest.describe(loaded, scenario, preset, settings or {}, points, {"6.12": make_kernel()})

    return make


class TestDescribe:
    def test_holds_what_was_asked(self, describe: Callable[..., dict[str, Any]]) -> None:
        told = describe({"rtt": ["1ms", "2ms"]}, seeds=range(3, 5), preset="long")
        assert (told["scenario"], told["question"], told["why"]) == ("study", "How big?", "Because.")
        assert (told["preset"], told["settings"]) == ("long", {"rtt": ["1ms", "2ms"]})
        assert (told["engine"], told["seeds"]) == ("virtual", [3, 4])
        assert told["scenario_source"] == "scenario = ...\n"
        assert len(told["scenario_hash"]) == 64
        assert told["figures"] == [{"title": "Goodput", "x": "rmem", "by": ["cc"], "y": "steady_goodput_bps"}]
        assert told["published"][0]["where"] == {"rmem": "50MiB"}
        assert len(told["points"]) == 2 * 2 * 2
        assert (told["ended"], told["expectations"]) == (None, [])

    def test_a_twin_says_of_what_and_nobody_else_does(
        self,
        describe: Callable[..., dict[str, Any]],
        make_kernel: Callable[..., KernelRecord],
        tmp_path: Path,
    ) -> None:
        assert "twin_of" not in describe()
        original = Original("results/real", "remote", "then", {"2024f41e98": {"rmem": "52428800B"}})
        twin = replace(STUDY, twin_of=original, published=(Published({"rmem": "52428800B"}, 1e6, "it"),))
        loaded = LoadedScenario(twin, tmp_path / "twin.py", "scenario = ...\n")
        points = sweep.points(twin, {}, engine="virtual", seeds=[1])
        told = manifest.describe(loaded, twin, None, {}, points, {"6.12": make_kernel()})
        assert told["twin_of"] == {
            "run": "results/real",
            "engine": "remote",
            "began": "then",
            "points": {"2024f41e98": {"rmem": "50MiB"}},
        }
        assert told["published"] == [
            {"where": {"rmem": "50MiB"}, "goodput_bps": 1e6, "source": "it", "of": "goodput_bps"}
        ]
        assert {**told, **describe(), "began": None} == {
            **describe(),
            "began": None,
            "twin_of": told["twin_of"],
        }

    def test_holds_kernel_and_machine(self, describe: Callable[..., dict[str, Any]]) -> None:
        told = describe()
        kernel = told["kernels"]["6.12"]
        assert (kernel["release"], kernel["hz"], kernel["source"]) == (
            "6.12.117",
            250,
            "linux-source-6.12.tar.xz",
        )
        assert {"machine", "kernel", "cpus", "python", "packages"} == set(told["host"])

    def test_is_json_and_reads_back(self, describe: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
        told = describe()
        assert json.loads(json.dumps(told)) == told
        folder = RunFolder(tmp_path / "run")
        manifest.claim(folder, told)
        assert folder.manifest() == told


class TestCommand:
    @pytest.mark.parametrize(
        ("settings", "seeds", "preset"),
        [
            ({}, range(1, 2), None),
            ({"rmem": ["4KiB:128KiB:50MiB", "max=50MiB"], "cc": ["bbr"]}, range(7, 10), "long"),
        ],
    )
    def test_reads_back_as_the_run_that_it_was(
        self,
        describe: Callable[..., dict[str, Any]],
        tmp_path: Path,
        settings: dict[str, list[str]],
        seeds: range,
        preset: str | None,
    ) -> None:
        program, *words = shlex.split(describe(settings, seeds, preset)["command"])
        assert program == "wanlab"
        assert ("--repeat" in words) is (len(seeds) > 1)
        arguments = parser().parse_args(words)
        assert arguments.command == "run"
        assert arguments.scenario == tmp_path / "my studies" / "study.py"
        told = parse_settings(arguments.settings)
        assert told.pop("preset", [None]) == [preset]
        assert told == settings
        assert arguments.engine == "virtual"
        assert range(int(arguments.seed), int(arguments.seed) + int(arguments.repeat)) == seeds


class TestClaim:
    def test_takes_a_new_or_an_empty_folder(
        self, describe: Callable[..., dict[str, Any]], tmp_path: Path
    ) -> None:
        manifest.claim(RunFolder(tmp_path / "deep" / "new"), describe())
        (tmp_path / "empty").mkdir()
        manifest.claim(RunFolder(tmp_path / "empty"), describe())

    def test_takes_its_own_folder_again(
        self, describe: Callable[..., dict[str, Any]], tmp_path: Path
    ) -> None:
        folder = RunFolder(tmp_path / "run")
        manifest.claim(folder, describe())
        (folder.path / "notes.txt").write_text("mine")
        manifest.claim(folder, describe())
        assert (folder.path / "notes.txt").exists()

    @pytest.mark.parametrize(
        ("changes", "named"),
        [
            ({"settings": {"rtt": ["1ms"]}}, "settings"),
            ({"seeds": range(2, 3)}, "seeds"),
            ({"preset": "long"}, "preset"),
            ({"preset": "long", "seeds": range(1, 3)}, "preset, seeds"),
        ],
    )
    def test_refuses_another_run_and_names_the_difference(
        self, describe: Callable[..., dict[str, Any]], tmp_path: Path, changes: dict[str, Any], named: str
    ) -> None:
        folder = RunFolder(tmp_path / "run")
        manifest.claim(folder, describe())
        with pytest.raises(StoreError) as refused:
            manifest.claim(folder, describe(**changes))
        assert str(refused.value) == (
            f"{folder.path}: holds another run (its {named} differ);"
            " choose another --out, or --fresh to throw that one away"
        )
        assert folder.manifest() == describe() | {"began": folder.manifest()["began"]}

    @pytest.mark.parametrize("kind", ["file", "folder with a file"])
    def test_refuses_what_is_no_run(
        self, describe: Callable[..., dict[str, Any]], tmp_path: Path, kind: str
    ) -> None:
        path = tmp_path / "thing"
        if kind == "file":
            path.write_text("precious")
        else:
            path.mkdir()
            (path / "precious").write_text("precious")
        with pytest.raises(StoreError) as refused:
            manifest.claim(RunFolder(path), describe())
        assert str(refused.value) == f"{path}: exists and is not a run; choose another --out"
        assert [file.read_text() for file in (path, *path.glob("*")) if file.is_file()] == ["precious"]


def test_finish_adds_the_end_and_the_verdicts(
    describe: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    folder, told = RunFolder(tmp_path / "run"), describe()
    manifest.claim(folder, told)
    manifest.finish(folder, told, [Verdict("fills", 2, ("aa: too little",)), Verdict("quick", 0, ())])
    finished = folder.manifest()
    assert finished["ended"] >= finished["began"]
    assert finished["expectations"] == [
        {"text": "fills", "status": "failed", "points": 2, "failures": ["aa: too little"]},
        {"text": "quick", "status": "not tried", "points": 0, "failures": []},
    ]
    assert {**finished, "ended": None, "expectations": []} == told
