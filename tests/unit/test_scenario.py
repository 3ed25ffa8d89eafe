"""Scenario scripts: what loads, and what a broken one is told. Broken scripts: tests/golden_errors/."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from lab import scenario
from lab.errors import SpecError, UserError
from lab.scenario import Expectation, Figure, Original, Preset, Published, Scenario

REPOSITORY = Path(__file__).resolve().parents[2]
BROKEN = sorted((REPOSITORY / "tests" / "golden_errors").glob("*.py"))
SHIPPED = sorted((REPOSITORY / "scenarios").glob("*.py"))

GOOD = 'from lab.scenario import Scenario\nscenario = Scenario(name="good", question="q", why="w")\n'


def make(**fields: object) -> Scenario:
    return Scenario(**{"name": "study", "question": "q", "why": "w", **fields})  # type: ignore[arg-type]


class TestLoad:
    def test_gives_the_scenario_with_its_text(self, tmp_path: Path) -> None:
        script = tmp_path / "good.py"
        script.write_text(GOOD)
        loaded = scenario.load(script)
        assert loaded.scenario == make(name="good")
        assert loaded.path == script
        assert loaded.source == GOOD
        assert loaded.source_hash == hashlib.sha256(GOOD.encode()).hexdigest()

    def test_script_knows_its_own_file(self, tmp_path: Path) -> None:
        script = tmp_path / "own.py"
        script.write_text(GOOD.replace('"w"', "__file__ + __name__"))
        assert scenario.load(script).scenario.why == f"{script}scenario_own"

    @pytest.mark.parametrize("script", SHIPPED, ids=lambda script: script.stem)
    def test_shipped_ones_are_sound(self, script: Path) -> None:
        loaded = scenario.load(script).scenario
        assert loaded.name == script.stem
        for preset in (None, *loaded.presets):
            assert scenario.check(loaded.with_preset(preset)) == []

    @pytest.mark.parametrize("script", BROKEN, ids=lambda script: script.stem)
    def test_broken_one_is_told_exactly_why(self, script: Path) -> None:
        with pytest.raises(UserError) as refused:
            scenario.load(script)
        message = str(refused.value).replace(str(script), script.name)
        assert message + "\n" == script.with_suffix(".txt").read_text()

    def test_missing_file(self, tmp_path: Path) -> None:
        script = tmp_path / "gone.py"
        with pytest.raises(UserError) as refused:
            scenario.load(script)
        assert str(refused.value) == f"{script}: cannot read the scenario: No such file or directory"

    def test_folder(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match="cannot read the scenario: Is a directory"):
            scenario.load(tmp_path)

    @pytest.mark.parametrize("data", [b"name = '\xe9'\n", GOOD.encode("utf-16"), b"\x7fELF\xff\xfe"])
    def test_unreadable_encoding(self, tmp_path: Path, data: bytes) -> None:
        script = tmp_path / "latin.py"
        script.write_bytes(data)
        with pytest.raises(UserError) as refused:
            scenario.load(script)
        assert str(refused.value) == f"{script}: cannot read the scenario: it is not UTF-8 text"

    def test_null_bytes(self, tmp_path: Path) -> None:
        script = tmp_path / "null.py"
        script.write_bytes(b"scenario = 1\0\n")
        with pytest.raises(UserError, match="not Python: source code string cannot contain null bytes"):
            scenario.load(script)

    def test_error_in_a_module_of_the_script_names_the_script_s_own_line(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "broken_helper_of_a_test.py").write_text("\n\n\nx = (\n")
        monkeypatch.syspath_prepend(tmp_path)
        script = tmp_path / "importer.py"
        script.write_text("\nimport broken_helper_of_a_test\n")
        with pytest.raises(UserError) as refused:
            scenario.load(script)
        message = str(refused.value)
        assert message.startswith(f"{script}, line 2: SyntaxError: '(' was never closed")
        assert "broken_helper_of_a_test.py, line 4" in message

    def test_interrupt_passes(self, tmp_path: Path) -> None:
        script = tmp_path / "interrupted.py"
        script.write_text("raise KeyboardInterrupt\n")
        with pytest.raises(KeyboardInterrupt):
            scenario.load(script)

    def test_faults_are_a_list(self) -> None:
        script = next(script for script in BROKEN if script.stem == "many_faults")
        with pytest.raises(SpecError) as refused:
            scenario.load(script)
        assert len(refused.value.faults) == len(script.with_suffix(".txt").read_text().splitlines())


class TestCheck:
    def test_takes_every_form_of_value(self) -> None:
        sound = make(
            defaults={"mtu": 9000, "rtt": ["1ms"]},
            sweep=[{"rmem": ("25MiB", "max=50MiB"), "adv_win_scale": [-2, "2"], "flows": 4}],
            expectations=[
                Expectation("a", value="goodput_bps", at_least=1, where={"rmem": ("25MiB", "26214400B")}),
                Expectation("b", value="goodput_bps", at_most=1e9, where={"rmem": ["25MiB"], "flows": 4}),
                Expectation("c", value="goodput_bps", within=0.1, of="predicted_goodput_bps"),
                Expectation("d", value="retransmits", within=0.1, of=5.0),
            ],
            figures=[Figure("f", x="rmem", by=["cc"])],
        )
        assert scenario.check(sound) == []

    def test_names_all_knobs_where_none_is_near(self) -> None:
        (fault,) = scenario.check(make(defaults={"zzz": 1}))
        assert fault.startswith("defaults: 'zzz' is not a knob of study; it has: rate, rtt, queue, ")

    @pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a/b", "a b", "a\n", None, 7, "x" * 65])
    def test_name_has_to_name_a_folder(self, name: object) -> None:
        (fault,) = scenario.check(make(name=name))
        assert fault == f"name: {name!r} cannot name a folder; write it in letters, digits, - and _"

    @pytest.mark.parametrize(
        "field", ["question", "why", "defaults", "sweep", "expectations", "published", "figures", "presets"]
    )
    @pytest.mark.parametrize("value", [None, 7, b"bytes", Preset("")])
    def test_any_form_is_looked_at_and_none_breaks_it(self, field: str, value: object) -> None:
        (fault,) = scenario.check(make(**{field: value}))
        assert fault.startswith(f"{field}: {type(value).__name__} is not its form; write it as {field}=")

    def test_published_figure_belongs_to_one_value(self) -> None:
        published = (Published({"rmem": ["25MiB", "50MiB"]}, 1e6, "somebody"),)  # type: ignore[dict-item]
        (fault,) = scenario.check(make(presets={"long": Preset("", published=published)}))
        assert fault.startswith("preset long: published: rmem: ")

    @pytest.mark.parametrize(
        "original",
        [
            7,
            "results/real",
            Original("real", "remote", "then", ["2024f41e98"]),  # type: ignore[arg-type]
            Original("real", "remote", "then", {"2024f41e98": "rmem=25MiB"}),  # type: ignore[dict-item]
        ],
    )
    def test_a_twin_says_of_what_in_one_form(self, original: object) -> None:
        (fault,) = scenario.check(make(twin_of=original))
        assert fault.startswith("twin_of: has not its form; write points={")

    def test_a_twin_stands_for_points_by_knobs_that_there_are(self) -> None:
        points = {"2024f41e98": {"rmem": "25MiB"}, "44f1b2cacf": {"rmen": "25MiB", "rtt": "1"}}
        first, second = scenario.check(make(twin_of=Original("real", "remote", "then", points)))
        assert first == "twin_of: point 44f1b2cacf: 'rmen' is not a knob of study; did you mean 'rmem'?"
        assert second.startswith("twin_of: point 44f1b2cacf: rtt: '1' has no unit")

    def test_knob_names_must_be_text(self) -> None:
        (fault,) = scenario.check(make(defaults={7: "1gbit"}))
        assert fault.startswith("defaults: 7 cannot be in it")


class TestPresets:
    STUDY = make(
        why="because",
        defaults={"rate": "1gbit", "rtt": "200ms"},
        sweep=({"rmem": ["25MiB"]},),
        expectations=(Expectation("a", value="goodput_bps", at_least=1),),
        presets={
            "plain": Preset("nothing changes"),
            "long": Preset(
                "a longer path",
                defaults={"rtt": "400ms"},
                sweep=({"wmem": ["25MiB"]},),
                expectations=(Expectation("b", value="goodput_bps", at_most=1),),
                note="longer",
            ),
        },
    )

    def test_none_changes_nothing(self) -> None:
        assert self.STUDY.with_preset(None) is self.STUDY
        assert self.STUDY.with_preset("plain") == self.STUDY

    def test_changes_what_it_has(self) -> None:
        changed = self.STUDY.with_preset("long")
        assert changed.defaults == {"rate": "1gbit", "rtt": "400ms"}
        assert changed.sweep == ({"wmem": ["25MiB"]},)
        assert [expectation.text for expectation in changed.expectations] == ["b"]
        assert changed.why == "because\n\nlonger"
        assert changed.name == "study"

    def test_published_figures_are_those_of_the_preset_if_it_has_any(self) -> None:
        ours, theirs = (Published({}, rate, "somebody") for rate in (1e6, 2e6))
        presets = {"plain": Preset(""), "other": Preset("", published=(theirs,))}
        study = make(published=(ours,), presets=presets, twin_of=Original("real", "remote", "then", {}))
        assert [study.with_preset(name).published for name in (None, "plain", "other")] == [
            (ours,),
            (ours,),
            (theirs,),
        ]
        assert study.with_preset("other").twin_of == study.twin_of

    def test_unknown_one_names_those_there_are(self) -> None:
        with pytest.raises(SpecError) as refused:
            self.STUDY.with_preset("longer")
        assert str(refused.value) == "preset: 'longer' is not a preset of study; it has: long, plain"

    def test_of_a_scenario_without_any(self) -> None:
        with pytest.raises(SpecError, match="it has: none"):
            make().with_preset("long")
