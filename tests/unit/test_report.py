"""The report: what it draws and says of a run, that it fetches nothing and runs no text of a run."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.errors import PreconditionError, StoreError
from lab.knobs import PATH_KNOBS
from lab.report import (
    axes,
    band,
    bars,
    curves,
    drawing,
    figures,
    page,
    panels,
    pictures,
    points,
    series,
    stack,
    style,
    tables,
)
from lab.report import stored as stored_module
from lab.report.stored import Entry, Stored
from lab.store import RunFolder
from tests import made_up_run as made_up

MIB = 2**20
HOSTILE = "</script></title><script>alert(1)</script><img src=x onerror=alert(2)>&amp;"


class Page(HTMLParser):
    """What a browser would make of a page: its elements, texts and scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self._inside: str | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, _tag: str) -> None:
        self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            attrs, text = self.scripts[-1]
            self.scripts[-1] = (attrs, text + data)
        elif self._inside != "style":
            self.texts.append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.elements if name == tag]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def data(self, name: str) -> Any:
        (text,) = [text for attrs, text in self.scripts if attrs.get("id") == name]
        return json.loads(text)


def written(folder: RunFolder) -> Page:
    return Page(page.write(folder).read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def plotly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put three words in the place of 5 MB; the browser tests and one here have the real thing."""
    monkeypatch.setattr(page, "get_plotlyjs", lambda: "/* plotly.js */")


@pytest.fixture
def small(tmp_path: Path) -> RunFolder:
    return made_up.small(tmp_path / "run")


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Stored]:
    """Return a maker of runs: points that went as predicted, read back."""

    def make(*of: made_up.Point, **changes: Any) -> Stored:
        folder = made_up.store(tmp_path / "run", [(one, made_up.done(one)) for one in of], **changes)
        return stored_module.read(folder)

    return make


def figure(x: str, *by: str, y: str = "steady_goodput_bps") -> dict[str, Any]:
    return {"figures": [{"title": "F", "x": x, "by": list(by), "y": y}]}


class TestWrite:
    def test_writes_one_page_into_the_run_and_nothing_else(self, small: RunFolder) -> None:
        before = set(small.path.rglob("*"))
        path = page.write(small)
        assert path == small.path / "report.html"
        assert set(small.path.rglob("*")) - before == {path}

    def test_same_run_gives_the_same_page(self, small: RunFolder) -> None:
        first = page.write(small).read_bytes()
        assert page.write(small).read_bytes() == first

    def test_keeps_to_itself(self, small: RunFolder) -> None:
        made = written(small)
        assert not {"link", "img", "iframe", "object", "embed", "base", "form", "a"} & {
            name for name, _ in made.elements
        }
        for _, attrs in made.elements:
            assert not {"src", "href", "srcset", "data", "action", "poster"} & attrs.keys()
        assert "url(" not in page._own("page.css")
        assert "@import" not in page._own("page.css")

    def test_policy_allows_its_own_scripts_and_no_request(self, small: RunFolder) -> None:
        made = written(small)
        (policy,) = [meta["content"] for meta in made.named("meta") if "http-equiv" in meta]
        assert policy is not None
        assert policy.startswith("default-src 'none'")
        run = [text for attrs, text in made.scripts if "type" not in attrs]
        hashes = {base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in run}
        assert hashes == set(re.findall(r"'sha256-([^']+)'", policy))
        assert len(run) == 2
        assert "http" not in policy

    def test_plotly_is_inside_once(self, small: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.undo()
        text = page.write(small).read_text(encoding="utf-8")
        assert text.count("* plotly.js v") == 1
        assert len(text) < 6_000_000

    def test_old_page_stays_where_the_new_one_cannot_be_written(self, small: RunFolder) -> None:
        (small.path / "report.html").mkdir()
        with pytest.raises(StoreError, match=r"report\.html: cannot be written"):
            page.write(small)
        assert not list(small.path.glob(".report.html.*"))

    def test_folder_that_is_no_run_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match="not a run"):
            page.write(RunFolder(tmp_path))

    def test_needs_no_engine(self) -> None:
        code = "import sys, lab.report.page; print(*[m for m in sys.modules if m.startswith('lab.')])"
        told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        assert "lab.report.page" in told
        for unwanted in ("lab.engines", "lab.agent", "lab.command", "lab.cli", "lab.kernels"):
            assert unwanted not in told


class TestContent:
    def test_says_question_reason_and_status(self, small: RunFolder) -> None:
        made = written(small)
        assert "How big must the buffers be?" in made.text
        assert "The second paragraph." in made.text
        assert "7 of 8 points done, 1 failed . Expectations: 1 met" in made.text
        assert "it fills the link" in made.text

    def test_says_why_points_failed(self, small: RunFolder) -> None:
        made = written(small)
        assert made.text.count("the emulated kernel died") == 2  # among the warnings, and in its row

    def test_lists_every_point_once(self, small: RunFolder) -> None:
        listed = [attrs["data-point"] for attrs in written(small).named("button") if "data-point" in attrs]
        done = [entry.id for entry in stored_module.read(small).done]
        assert listed == done
        assert len(done) == 7

    def test_shows_notes_before_all_else(self, tmp_path: Path) -> None:
        one = made_up.point()
        folder = made_up.store(
            tmp_path / "run", [(one, made_up.done(one, note="adv_win_scale has no effect"))]
        )
        text = written(folder).text
        assert text.index("adv_win_scale has no effect") < text.index("Because a window is not a buffer")

    def test_failed_expectations_have_their_numbers(self, tmp_path: Path) -> None:
        failures = [f"p{number}: goodput_bps is {number}, under 5" for number in range(7)]
        verdict = {"text": "it fills", "status": "failed", "points": 7, "failures": failures}
        text = written(made_up.small(tmp_path / "run", expectations=[verdict])).text
        assert "Expectations: 0 met , 1 failed" in text
        assert all(failure in text for failure in failures)
        assert "2 more" in text

    def test_tells_how_to_repeat_it(self, small: RunFolder) -> None:
        made = written(small)
        for part in (
            "wanlab run scenarios/made_up.py --engine virtual --seed 1",
            "6.12.117",
            "d1" * 32,
            "5c" * 32,
        ):
            assert part in made.text
        assert "tc qdisc add dev r1-eth1 root handle 1: htb default 1" in made.text
        assert "sysctl -w net.ipv4.tcp_wmem='4096 16384 4194304'" in made.text
        assert "scenario = Scenario(...)" in made.text

    def test_embeds_every_point_over_time(self, small: RunFolder) -> None:
        embedded = written(small).data("points-data")
        assert list(embedded) == [entry.id for entry in stored_module.read(small).done]
        for told in embedded.values():
            assert len(told["data"]) > 8
            assert len(told["facts"]) > 5

    @pytest.mark.parametrize("preset", [None, "published"])
    def test_names_the_preset(self, tmp_path: Path, preset: str | None) -> None:
        text = written(made_up.small(tmp_path / "run", preset=preset)).text
        assert ("preset published" in text) == (preset is not None)


class TestBrokenRuns:
    def test_only_failed_points(self, tmp_path: Path) -> None:
        of = [made_up.point(rmem=size) for size in ("25MiB", "50MiB")]
        folder = made_up.store(tmp_path / "run", [(one, made_up.failed(one, "no path")) for one in of])
        made = written(folder)
        assert "0 of 2 points done, 2 failed" in made.text
        assert "No point is done" in made.text
        assert "Failed: no path (2 points:" in made.text
        assert made.data("points-data") == {}

    def test_half_finished(self, tmp_path: Path) -> None:
        of = [made_up.point(rmem=size) for size in ("25MiB", "50MiB", "100MiB")]
        stored = [(of[0], made_up.done(of[0])), (of[1], None), (of[2], None)]
        folder = made_up.store(tmp_path / "run", stored, ended=None, expectations=[])
        text = written(folder).text
        assert "1 of 3 points done, 2 not run . Expectations: not checked, the run has not ended" in text
        assert "run the same command again" in text

    def test_nothing_ran(self, tmp_path: Path) -> None:
        folder = made_up.store(tmp_path / "run", [(made_up.point(), None)], ended=None, expectations=[])
        assert "0 of 1 points done, 1 not run" in written(folder).text

    def test_damaged_point_is_named_and_the_rest_is_shown(self, small: RunFolder) -> None:
        first, second = stored_module.read(small).done[:2]
        (small.points_path / first.id / "point.parquet").write_bytes(b"torn")
        (small.points_path / second.id / "samples.parquet").write_bytes(b"torn")
        made = written(small)
        assert "cannot be read as Parquet" in made.text
        assert "6 of 8 points done" in made.text
        assert second.id not in made.data("points-data")
        assert len(made.data("points-data")) == 5

    def test_manifest_of_an_older_version_has_a_bar_chart(self, tmp_path: Path) -> None:
        folder = made_up.small(tmp_path / "run")
        manifest = folder.manifest()
        for key in ("figures", "published", "host", "kernels"):
            del manifest[key]
        folder.write_manifest(manifest)
        made = written(folder)
        assert "Goodput of each point" in made.text
        (bar,) = made.data("figures-data")
        assert bar["data"][0]["type"] == "bar"

    def test_samples_that_lack_fields_leave_gaps(self, tmp_path: Path) -> None:
        one = made_up.point()
        its = made_up.done(one)
        for row in its["samples"]:
            row.pop("tcpi_snd_wnd", None)
            row.pop("skmem_sndbuf", None)
        assert made_up.store(tmp_path / "run", [(one, its)])
        assert written(RunFolder(tmp_path / "run")).data("points-data")

    def test_no_samples_and_no_queues(self, tmp_path: Path) -> None:
        one = made_up.point()
        its = {**made_up.done(one), "samples": [], "queues": []}
        made = written(made_up.store(tmp_path / "run", [(one, its)]))
        assert one.id in made.data("points-data")


class TestHostileText:
    def test_is_shown_and_never_run(self, tmp_path: Path) -> None:
        one, other = made_up.point(), made_up.point(rmem="50MiB")
        row = made_up.done(one, note=HOSTILE, limit_predicted=HOSTILE, digest=HOSTILE)
        verdict = {"text": HOSTILE, "status": "failed", "points": 1, "failures": [HOSTILE]}
        published = [{"where": {"rmem": HOSTILE}, "goodput_bps": 1.0, "source": HOSTILE, "of": "goodput_bps"}]
        kernel = dict.fromkeys(("release", "hz", "recipe_hash", "config_hash", "source", "compiler"), HOSTILE)
        folder = made_up.store(
            tmp_path / "run",
            [(one, row), (other, made_up.failed(other, HOSTILE))],
            **dict.fromkeys(("question", "why", "scenario", "scenario_source", "command", "preset"), HOSTILE),
            **dict.fromkeys(("scenario_path", "scenario_hash", "began", "ended", "wanlab_version"), HOSTILE),
            expectations=[verdict],
            published=published,
            kernels={HOSTILE: kernel},
            host={"machine": HOSTILE, "packages": {HOSTILE: HOSTILE}},
        )
        manifest = folder.manifest()
        manifest["points"][1]["knobs"]["rmem"] = HOSTILE
        manifest["points"][1]["knobs"]["cc"] = HOSTILE
        manifest["figures"] = [{"title": HOSTILE, "x": "cc", "by": [HOSTILE], "y": HOSTILE}]
        folder.write_manifest(manifest)
        made = written(folder)
        assert len(made.scripts) == 4
        assert not made.named("img")
        assert not [key for _, attrs in made.elements for key in attrs if key.startswith("on")]
        assert made.text.count("alert(1)") > 15

    def test_data_cannot_end_its_script(self, tmp_path: Path) -> None:
        one = made_up.point()
        folder = made_up.store(
            tmp_path / "run", [(one, made_up.done(one, limit_predicted=HOSTILE))], figures=[]
        )
        made = written(folder)
        (bar,) = made.data("figures-data")
        assert "&lt;img" in bar["data"][0]["text"][0]  # plotly reads HTML in what it shows

    def test_figure_shows_it_as_text(self, tmp_path: Path) -> None:
        of = [made_up.point(cc=cc) for cc in ("cubic", "bbr")]
        folder = made_up.store(tmp_path / "run", [(one, made_up.done(one)) for one in of], **figure("cc"))
        manifest = folder.manifest()
        manifest["points"][0]["knobs"]["cc"] = "<b>bold</b>"
        folder.write_manifest(manifest)
        (drawn,) = figures.draw(stored_module.read(folder))
        assert drawn.figure.layout.xaxis.ticktext[0] == "&lt;b&gt;bold&lt;/b&gt;"


class TestCurves:
    def test_join_points_that_differ_in_the_knob_alone(self, read: Callable[..., Stored]) -> None:
        sizes = ("default", "25MiB", "50MiB", "100MiB")
        of = [made_up.point(rmem=rmem, cc=cc) for cc in ("cubic", "bbr") for rmem in sizes]
        of += [made_up.point(rmem=rmem, wmem="50MiB") for rmem in sizes[:3]]
        (plot,) = curves.plots(read(*of, **figure("rmem", "cc")))
        assert [curve.name for curve in plot.curves] == ["cubic", "bbr"]
        for curve in plot.curves:
            assert stored_module.varying(curve.entries) == ("rmem",)
            assert [entry.knobs["rmem"] for entry in curve.entries] == list(sizes)
        assert plot.fixed == {"wmem": "default"}
        assert plot.left_out == 3

    def test_caption_says_what_is_left_out(self, read: Callable[..., Stored]) -> None:
        of = [made_up.point(rmem=rmem) for rmem in ("25MiB", "50MiB")] + [
            made_up.point(rmem="25MiB", mtu="9000")
        ]
        (drawn,) = figures.draw(read(*of, **figure("rmem")))
        assert drawn.restricted == "Here mtu=1500; 1 point with other values left out."
        assert drawn.caption.endswith(drawn.restricted)

    def test_knob_at_default_goes_unsaid(self, read: Callable[..., Stored]) -> None:
        of = [made_up.point(rmem=rmem, kernel="6.1") for rmem in ("25MiB", "50MiB")]
        of += [made_up.point(rmem=rmem, kernel="6.1", adv_win_scale="-2") for rmem in ("25MiB", "50MiB")]
        (plot,) = curves.plots(read(*of, **figure("rmem", "cc", "adv_win_scale")))
        assert [curve.name for curve in plot.curves] == ["adv_win_scale default", "adv_win_scale -2"]

    @pytest.mark.parametrize("x", ["cc", "rmem", "nonsense"])
    def test_figure_with_one_value_is_skipped(self, read: Callable[..., Stored], x: str) -> None:
        run = read(made_up.point(rate="10mbit"), made_up.point(rate="20mbit"), **figure(x))
        assert curves.plots(run) == []
        (drawn,) = figures.draw(run)
        assert drawn.title == "Goodput of each point"

    def test_figure_of_a_column_without_numbers_is_skipped(self, read: Callable[..., Stored]) -> None:
        run = read(made_up.point(), made_up.point(rmem="50MiB"), **figure("rmem", y="status"))
        assert curves.plots(run) == []

    def test_other_columns_have_their_unit_and_no_prediction(self, read: Callable[..., Stored]) -> None:
        (plot,) = curves.plots(
            read(made_up.point(), made_up.point(rmem="50MiB"), **figure("rmem", y="retransmits"))
        )
        assert plot.scale.title == "Segments sent again, all flows (segments)"
        assert plot.link == ()
        assert all(curve.prediction == () for curve in plot.curves)

    def test_buffers_fixed_and_autotuned_are_not_joined(self, read: Callable[..., Stored]) -> None:
        of = [made_up.point(rmem=rmem) for rmem in ("default", "25MiB", "max=25MiB", "50MiB", "max=50MiB")]
        (plot,) = curves.plots(read(*of, **figure("rmem")))
        named = {curve.name: [entry.knobs["rmem"] for entry in curve.entries] for curve in plot.curves}
        assert named == {
            "rmem autotuned": ["default", "max=25MiB", "max=50MiB"],
            "rmem fixed": ["25MiB", "50MiB"],
        }


TWO_VALUES = {
    "rate": ("1kbit", "400gbit"),
    "rtt": ("0s", "20s"),
    "queue": ("64KiB", "20p"),
    "loss": ("0%", "100%"),
    "duplicate": ("0%", "1%"),
    "reorder": ("0%", "1%"),
    "jitter": ("0s", "1ms"),
    "mtu": ("576", "9000"),
    "offloads": ("on", "off"),
    "recipe": ("separate", "leaf"),
    "leaf_limit": ("10", "1000"),
    "wmem": ("8KiB", "4096B:16KiB:1GiB"),
    "rmem": ("8KiB", "4096B:128KiB:1GiB"),
    "adv_win_scale": ("default", "-2"),
    "app_win": ("default", "2"),
    "moderate_rcvbuf": ("on", "off"),
    "rcvbuf": ("none", "1MiB"),
    "sndbuf": ("64KiB", "1MiB"),
    "rmem_max": ("default", "16MiB"),
    "wmem_max": ("1MiB", "16MiB"),
    "notsent_lowat": ("none", "128KiB"),
    "tcp_mem": ("ample", "64MiB"),
    "cc": ("reno", "bbr"),
    "flows": ("1", "9"),
    "workload": ("bulk", "http"),
    "duration": ("1s", "10s"),
    "bytes": ("none", "1MiB"),
    "interval": ("auto", "10ms"),
    "kernel": ("6.1", "6.12"),
    "topology": ("dumbbell", "star"),
    "pairs": ("2", "4"),
    "bottlenecks": ("2", "4"),
    "access": ("auto", "10mbit+1gbit"),
    "rate_back": ("same", "1mbit"),
    "route": ("none", "london-newyork"),
    "qdisc": ("fq_codel", "cake"),
    "target": ("default", "20ms"),
    "ecn": ("on", "off"),
    "ce_threshold": ("none", "1ms"),
    "jitter_dist": ("uniform", "pareto"),
    "rate_change": ("none", "5s:50mbit"),
    "rtt_change": ("none", "5s~10s:80ms"),
    "loss_change": ("none", "5s:1%"),
    "trace": ("none", "traces/one.csv"),
    "trace_step": ("10ms", "20ms"),
    "place": ("1", "1+2"),
    "start": ("0s", "0s+5s"),
    "stop": ("end", "10s+end"),
    "spread": ("0s", "1s"),
    "arrivals": ("none", "poisson:60%"),
    "sizes": ("exp:100KB", "pareto:1.2:64KB"),
    "on_off": ("none", "1s:2s"),
    "reverse": ("0", "2"),
    "udp": ("none", "10mbit"),
    "probe": ("none", "10ms"),
    "request": ("100B", "1KB"),
    "response": ("1MB", "64KB"),
    "think": ("0s", "1s"),
}


class TestEveryKnob:
    def test_is_here(self) -> None:
        assert TWO_VALUES.keys() == PATH_KNOBS.keys()

    @pytest.mark.parametrize("x", PATH_KNOBS)
    def test_can_be_an_axis(self, read: Callable[..., Stored], x: str) -> None:
        of = [
            made_up.point(**{x: value, "queue": value if x == "queue" else "1MiB"}) for value in TWO_VALUES[x]
        ]
        run = read(*of, **figure(x, "cc", "kernel"))
        (drawn,) = figures.draw(run)
        assert drawn.title == "F"
        assert len(points.parts(run)[0]) == 2
        assert json.loads(drawn.figure.to_json())


class TestPrediction:
    def test_is_a_smooth_line_through_what_was_stored(self, read: Callable[..., Stored]) -> None:
        of = [made_up.point(rmem=rmem) for rmem in ("default", "25MiB", "50MiB")]
        (plot,) = curves.plots(read(*of, **figure("rmem")))
        (curve,) = plot.curves
        assert len(curve.prediction) > 100
        assert not curve.outdated
        line = dict(curve.prediction)
        for entry in curve.entries:
            predicted = entry.number("predicted_goodput_bps")
            assert predicted is not None
            assert line[plot.axis.positions[entry.id]] == pytest.approx(predicted / 1e6, rel=1e-5)

    def test_goes_beyond_a_curve_of_one_point(self, read: Callable[..., Stored]) -> None:
        of = [made_up.point(rmem=rmem) for rmem in ("25MiB", "50MiB")] + [
            made_up.point(rmem="50MiB", cc="bbr")
        ]
        (plot,) = curves.plots(read(*of, **figure("rmem", "cc")))
        assert [len(curve.entries) for curve in plot.curves] == [2, 1]
        assert len(plot.curves[1].prediction) > 100

    def test_of_another_model_stands_as_stored_and_is_said(self, tmp_path: Path) -> None:
        of = [made_up.point(rmem=rmem) for rmem in ("25MiB", "50MiB")]
        its = [(one, made_up.done(one, predicted_goodput_bps=5e6)) for one in of]
        run = stored_module.read(made_up.store(tmp_path / "run", its, **figure("rmem")))
        (plot,) = curves.plots(run)
        assert plot.curves[0].outdated
        assert [value for _, value in plot.curves[0].prediction] == [5.0, 5.0]
        (drawn,) = figures.draw(run)
        assert "the model has changed since" in drawn.caption

    @pytest.mark.parametrize(
        ("x", "values"),
        [
            ("rate", ("10mbit", "1gbit")),
            ("rtt", ("10ms", "400ms")),
            ("wmem", ("1MiB", "50MiB")),
            ("loss", ("0.01%", "1%")),
        ],
    )
    def test_follows_the_knob_between_points(
        self, read: Callable[..., Stored], x: str, values: tuple[str, str]
    ) -> None:
        run = read(*(made_up.point(**{x: value}) for value in values), **figure(x))
        (plot,) = curves.plots(run)
        (curve,) = plot.curves
        assert len({value for _, value in curve.prediction}) > 10
        assert not curve.outdated

    def test_breaks_between_no_loss_and_some(self, read: Callable[..., Stored]) -> None:
        of = [made_up.point(loss=loss) for loss in ("0%", "0.01%", "1%")]
        (plot,) = curves.plots(read(*of, **figure("loss")))
        assert plot.axis.zero_at == plot.curves[0].prediction[0][0]
        assert plot.curves[0].prediction[1] == (None, None)
        assert 0 < plot.axis.zero_at < 0.01

    def test_curve_without_loss_beside_others_with_some(self, read: Callable[..., Stored]) -> None:
        of = [made_up.point(loss=loss) for loss in ("0%", "0.01%", "1%")] + [made_up.point(cc="bbr")]
        (plot,) = curves.plots(read(*of, **figure("loss", "cc")))
        (x, value), gap, (first, _) = plot.curves[1].prediction[:3]
        assert (x, gap) == (plot.axis.zero_at, (None, None))
        assert value is not None
        assert first == pytest.approx(0.01)

    def test_link_and_bdp_are_drawn_where_they_are_one_number(self, read: Callable[..., Stored]) -> None:
        of = [made_up.point(rmem=rmem, rate="100mbit", rtt="80ms") for rmem in ("512KiB", "25MiB")]
        (plot,) = curves.plots(read(*of, **figure("rmem")))
        assert {round(level, 3) for _, level in plot.link} == {95.641}
        assert plot.bdp == pytest.approx(1e6 / MIB)

    def test_link_rises_with_its_rate(self, read: Callable[..., Stored]) -> None:
        of = [made_up.point(rate=rate) for rate in ("10mbit", "1gbit")]
        (plot,) = curves.plots(read(*of, **figure("rate")))
        assert plot.link[-1][1] > 90 * plot.link[0][1]
        assert plot.bdp is None


class TestAxis:
    @staticmethod
    def build(run: Stored, knob: str) -> axes.Axis:
        return axes.build(knob, run.done)

    def test_buffers_count_in_mib_and_the_default_is_labelled(self, read: Callable[..., Stored]) -> None:
        run = read(made_up.point(), made_up.point(rmem="max=50MiB"))
        axis = self.build(run, "rmem")
        assert list(axis.positions.values()) == [6.0, 50.0]
        assert [text for _, text in axis.ticks] == ["6<br>(default)", "50"]

    def test_queue_counts_in_the_bytes_that_it_came_to(self, read: Callable[..., Stored]) -> None:
        run = read(*(made_up.point(queue=queue, rate="8mbit", rtt="128ms") for queue in ("1bdp", "500KiB")))
        assert list(self.build(run, "queue").positions.values()) == [125.0, 500.0]

    @pytest.mark.parametrize(
        ("queues", "title", "positions"),
        [
            (("0.5bdp", "4bdp"), "Queue of the bottleneck (BDP)", [0.5, 4.0]),
            (("10p", "1000p"), "Queue of the bottleneck (packets)", [10.0, 1000.0]),
            (("5ms", "50ms"), "Queue of the bottleneck (ms at its rate)", [5.0, 50.0]),
        ],
    )
    def test_queues_of_one_unit_count_in_it(
        self, read: Callable[..., Stored], queues: tuple[str, ...], title: str, positions: list[float]
    ) -> None:
        axis = self.build(read(*(made_up.point(queue=queue) for queue in queues)), "queue")
        assert axis.title == title
        assert list(axis.positions.values()) == pytest.approx(positions)
        assert [text for _, text in axis.ticks] == [f"{position:g}" for position in positions]
        for queue, position in zip(queues, positions, strict=True):
            value = PATH_KNOBS["queue"].value
            assert value(axis.text(position)).amount == pytest.approx(value(queue).amount)

    def test_lists_are_names(self, read: Callable[..., Stored]) -> None:
        run = read(
            *(made_up.point(rtt=rtt, topology="dumbbell") for rtt in ("10ms+20ms", "10ms+80ms", "10ms"))
        )
        axis = self.build(run, "rtt")
        assert not axis.numeric
        assert [text for _, text in axis.ticks] == ["10ms+20ms", "10ms+80ms", "10ms"]

    @pytest.mark.parametrize(("loss", "numeric"), [("0.1%", True), ("ge:1%:10%", False)])
    def test_losses_are_numbers_where_they_are_chance(
        self, read: Callable[..., Stored], loss: str, numeric: bool
    ) -> None:
        axis = self.build(read(*(made_up.point(loss=one) for one in ("1%", loss))), "loss")
        assert axis.numeric == numeric

    def test_queues_in_packets_are_names(self, read: Callable[..., Stored]) -> None:
        axis = self.build(read(made_up.point(queue="10p"), made_up.point(queue="1bdp")), "queue")
        assert not axis.numeric
        assert not axis.ordered

    def test_counts_are_in_order(self, read: Callable[..., Stored]) -> None:
        axis = self.build(read(*(made_up.point(flows=flows) for flows in ("10", "2", "1"))), "flows")
        assert [text for _, text in axis.ticks] == ["1", "2", "10"]
        assert axis.ordered

    def test_many_values_have_round_ticks(self, read: Callable[..., Stored]) -> None:
        axis = self.build(read(*(made_up.point(rtt=f"{3 * number}ms") for number in range(1, 30))), "rtt")
        assert [text for _, text in axis.ticks] == ["4", "8", "16", "32", "64"]

    def test_zero_alone_has_a_place(self, read: Callable[..., Stored]) -> None:
        axis = self.build(read(made_up.point(loss="0%")), "loss")
        assert axis.range[0] > 0


class TestSeeds:
    def test_mean_is_drawn_with_its_interval_and_every_seed_marked(self, tmp_path: Path) -> None:
        of = [made_up.point(seed, rmem=rmem) for rmem in ("25MiB", "50MiB") for seed in (1, 2, 3)]
        its = [(one, made_up.done(one, steady_goodput_bps=one.seed**2 * 1e6)) for one in of]
        run = stored_module.read(made_up.store(tmp_path / "run", its, **figure("rmem")))
        assert run.label(run.entries[0]) == "rmem=25MiB, seed 1"
        (drawn,) = figures.draw(run)
        above = [trace for trace in drawn.figure.data if trace.yaxis is None]
        measured = [trace for trace in above if trace.customdata is not None]
        mean = pytest.approx(14 / 3)
        assert list(measured[0].y) == [mean, mean]
        assert list(measured[1].y) == [1.0, 4.0, 9.0, 1.0, 4.0, 9.0]
        low, high = measured[0].error_y.arrayminus[0], measured[0].error_y.array[0]
        assert 0 < low <= 14 / 3 - 1
        assert 0 < high <= 9 - 14 / 3
        assert "mean of 3 seeds" in measured[0].text[0]
        assert "the mean of all seeds" in drawn.caption
        assert "3 repetitions are few" in drawn.caption


class TestSeries:
    @staticmethod
    def of(point: made_up.Point, **changes: Any) -> series.PointSeries:
        its = made_up.done(point, **changes)
        return series.read(its["samples"], its["queues"])

    def test_goodput_is_what_the_application_read(self) -> None:
        one = made_up.point(rate="100mbit")
        goodput = made_up.base_row(one)["predicted_goodput_bps"]
        (flow,) = self.of(one).flows
        assert flow.goodput_bps()[1:] == pytest.approx(goodput, rel=1e-4)
        assert np.isnan(flow.goodput_bps()[0])
        assert flow.mean_goodput_bps(0.2)[1:] == pytest.approx(goodput, rel=1e-4)
        assert flow.read_bytes[0] == 0

    def test_in_flight_leaves_out_what_arrived_and_what_is_lost(self) -> None:
        (flow,) = self.of(made_up.point()).flows
        assert set(flow.columns["inflight_bytes"]) == {(12 - 3 - 2 + 1) * made_up.MSS}

    def test_many_flows_are_drawn_as_one(self) -> None:
        whole = self.of(made_up.point(flows="12", rtt="40ms"))
        assert whole.merged == 12
        (flow,) = whole.flows
        assert flow.columns["cwnd_bytes"][0] == 12 * 10 * made_up.MSS
        assert flow.columns["srtt_s"][0] == pytest.approx(0.040 + 550e-6)
        assert flow.columns["retransmits"][-1] == 12 * 3

    def test_flow_that_ended_keeps_its_count(self) -> None:
        one = made_up.point(flows="9")
        its = made_up.done(one)
        rows = [row for row in its["samples"] if row["flow"] or row["t_s"] < 1.5]
        (flow,) = series.read(rows, its["queues"]).flows
        assert flow.columns["retransmits"][-1] == 9 * 3
        assert flow.columns["cwnd_bytes"][-1] == 8 * (10 + 39) * made_up.MSS
        assert (np.diff(flow.read_bytes) >= 0).all()

    def test_few_flows_stay_apart(self) -> None:
        assert [flow.name for flow in self.of(made_up.point(flows="3")).flows] == [
            "flow 0",
            "flow 1",
            "flow 2",
        ]

    def test_many_samples_are_thinned_and_nothing_is_lost(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(series, "MOST_SAMPLES", 10)
        thin = self.of(made_up.point(rate="100mbit"))
        assert thin.stride == 4
        assert len(thin.flows[0].t_s) == 10
        (queue,) = thin.queues
        assert queue.drops.sum() == 5
        assert queue.backlog_bytes.max() == 1514 * 39
        goodput = made_up.base_row(made_up.point(rate="100mbit"))["predicted_goodput_bps"]
        assert thin.flows[0].goodput_bps()[1:] == pytest.approx(goodput, rel=1e-4)

    def test_load_begins_with_the_first_data(self) -> None:
        its = made_up.done(made_up.point())
        for row in its["samples"]:
            if row.get("tcpi_busy_time"):
                row["tcpi_busy_time"] = max(0, row["tcpi_busy_time"] - 300_000) or None
        assert series.read(its["samples"], its["queues"]).begin_s == pytest.approx(0.3)


class TestPanels:
    @staticmethod
    def of(point: made_up.Point, **changes: Any) -> tuple[list[panels.Panel], str]:
        its = made_up.done(point, **changes)
        entry = Entry(point.id, point.seed, point.knobs, its["points"][0])
        whole, limited = series.read(its["samples"], its["queues"]), band.read(its["limits"])
        return panels.build(entry, whole, limited), panels.caption(entry, whole, limited)

    def test_one_flow_has_six(self) -> None:
        built, caption = self.of(made_up.point(rate="100mbit", rtt="40ms"))
        assert [panel.title for panel in built] == [
            "Goodput",
            "Windows",
            "Send buffer, overhead included",
            "RTT",
            "Bottleneck queue",
            "What limited the flow",
        ]
        names = [line.name for line in built[0].lines]
        assert names == ["each interval", "mean over 280 ms", "predicted 95.64", "link 95.64"]
        assert [line.name for line in built[1].lines] == [
            "cwnd",
            "receive window",
            "in flight",
            "retransmits",
            "BDP 488.3 KiB",
        ]
        assert built[0].spans == ((0.4, pytest.approx(1.95)),)
        assert "steady part" in caption

    def test_drops_are_marked_with_their_number(self) -> None:
        built, _ = self.of(made_up.point(rate="10mbit", rtt="40ms"))
        (drops,) = [line for line in built[-2].lines if line.name == "drops"]
        assert drops.texts == ("5 packets dropped",)
        assert drops.t_s.tolist() == [pytest.approx(21 * made_up.SPACING_S)]

    def test_few_flows_have_a_panel_for_each_quantity(self) -> None:
        built, caption = self.of(made_up.point(flows="3"))
        assert [panel.title for panel in built][1:5] == [
            "Congestion window",
            "Receive window",
            "Bytes in flight",
            "Send buffer in use",
        ]
        assert [line.name for line in built[3].lines][:3] == ["flow 0", "flow 1", "flow 2"]
        assert "all flows" in [line.name for line in built[0].lines]
        assert "each of the 3 flows" in caption

    def test_many_flows_say_that_they_are_one(self) -> None:
        _, caption = self.of(made_up.point(flows="20"))
        assert "The 20 flows are drawn as one" in caption

    def test_limit_far_above_the_queue_is_said_and_not_drawn(self) -> None:
        built, _ = self.of(made_up.point(queue="1GiB"))
        assert built[-2].title == "Bottleneck queue, limit 1 GiB"
        assert "limit" not in " ".join(line.name for line in built[-2].lines)

    def test_leaf_recipe_says_that_the_queue_holds_the_delay_line(self) -> None:
        built, caption = self.of(made_up.point(recipe="leaf"), queue_limit=1000, queue_limit_unit="packets")
        assert built[-2].title == "Bottleneck queue, limit 1000 packets"
        assert "delay line's too" in caption

    def test_panels_share_one_time_axis_and_do_not_overlap(self) -> None:
        built, _ = self.of(made_up.point(flows="3"))
        drawn, narrow = stack.draw(built)
        assert {trace.xaxis for trace in drawn.data} == {None}
        names = ["yaxis", *(f"yaxis{number}" for number in range(2, len(built) + 1))]
        for domains in (
            [drawn.layout[name].domain for name in names],
            [narrow[f"{name}.domain"] for name in names],
        ):
            for above, below in pairwise(domains):
                assert above[0] > below[1]
        assert narrow["height"] > drawn.layout.height
        assert drawn.layout.xaxis.anchor == f"y{len(built)}"


class TestPoints:
    def test_too_many_are_thinned_evenly(self, small: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
        run = stored_module.read(small)
        monkeypatch.setattr(points, "MOST_POINTS", 3)
        chosen, left_out = points.parts(run)
        assert [part.id for part in chosen] == [run.done[number].id for number in (0, 2, 4)]
        assert left_out == 4
        assert "3 of 7 points can be chosen here; the other 4 were left out" in written(small).text

    def test_size_of_the_page_has_a_bound(self, small: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(points, "MOST_BYTES", 30_000)
        chosen, left_out = points.parts(stored_module.read(small))
        assert 1 <= len(chosen) < 7
        assert len(chosen) + left_out == 7

    def test_one_point_is_shown_whatever_its_size(
        self, small: RunFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(points, "MOST_BYTES", 0)
        chosen, _ = points.parts(stored_module.read(small))
        assert len(chosen) == 1


class TestTables:
    def test_columns_are_the_varying_knobs_and_the_results(self, small: RunFolder) -> None:
        table = tables.points(stored_module.read(small))
        heads = [column.head for column in table.columns]
        assert heads[:3] == ["point", "rmem", "cc"]
        assert heads[-2:] == ["status", "note"]
        assert all(len(cells) == len(heads) - 1 for _, cells in table.rows)

    def test_buffers_sort_by_size(self, small: RunFolder) -> None:
        table = tables.points(stored_module.read(small))
        sizes = {cells[0].text: float(cells[0].sort) for _, cells in table.rows}
        assert sorted(sizes, key=sizes.__getitem__) == ["256KiB", "512KiB", "1MiB", "default"]

    def test_failed_point_has_no_numbers_and_its_reason(self, small: RunFolder) -> None:
        entry, cells = tables.points(stored_module.read(small)).rows[-1]
        assert entry.status == "failed"
        assert [cell.text for cell in cells[2:4]] == ["–", "–"]
        assert cells[-1].text == "the emulated kernel died"

    def test_note_column_is_left_out_where_there_is_none(self, read: Callable[..., Stored]) -> None:
        assert tables.points(read(made_up.point())).columns[-1].head == "status"

    @pytest.mark.parametrize(
        ("value", "of", "text"),
        [
            (110.0, 100.0, "+10.0"),
            (93.0, 100.0, "−7.0"),
            (99.99, 100.0, "0.0"),
            (None, 1.0, "–"),
            (1.0, 0.0, "–"),
        ],
    )
    def test_difference_in_percent(self, value: float | None, of: float, text: str) -> None:
        assert tables.percent(value, of).text == text

    @pytest.mark.parametrize(
        ("value", "text"),
        [(12345.0, "12 345"), (0.0, "0"), (0.123456, "0.1235"), (200.0008, "200"), (None, "–")],
    )
    def test_numbers_read_well(self, value: float | None, text: str) -> None:
        assert tables.number(value).text == text.replace(" ", "\N{NARROW NO-BREAK SPACE}")

    def test_published_stands_beside_the_point_with_its_settings(self, tmp_path: Path) -> None:
        of = [made_up.point(rmem=rmem) for rmem in ("default", "50MiB")]
        mib = 8 * MIB
        its = [(one, made_up.done(one, goodput_bps=92 * mib, steady_goodput_bps=114 * mib)) for one in of]
        published = [
            {
                "where": {"rmem": "50MiB", "cc": "cubic"},
                "goodput_bps": 80 * mib,
                "source": "one",
                "of": "goodput_bps",
            },
            {"where": {"rmem": "1GiB"}, "goodput_bps": 80 * mib, "source": "two", "of": "goodput_bps"},
            {
                "where": {"rmem": "default"},
                "goodput_bps": 114 * mib,
                "source": "one",
                "of": "steady_goodput_bps",
            },
        ]
        run = stored_module.read(made_up.store(tmp_path / "run", its, published=published))
        (first, missing, steady), sources = tables.published(run)
        assert [cell.text for cell in first.published] == ["80.0", "671.1"]
        assert [cell.text for cell in first.measured] == ["92.0", "771.8", "+15.0"]
        assert first.rest[0].text == "114.0"
        assert first.knobs == "rmem=50MiB, cc=cubic"
        assert missing.point == ""
        assert missing.measured[0].text == "–"
        assert steady.measured[2].text == "0.0"
        assert sources == ["one", "two"]
        assert (first.source, missing.source, steady.source) == (1, 2, 1)

    def test_warnings_say_equal_things_once(self, tmp_path: Path) -> None:
        of = [made_up.point(rmem=rmem) for rmem in ("1MiB", "2MiB", "3MiB", "4MiB")]
        its = [(one, made_up.failed(one, "dead")) for one in of[:2]] + [(of[2], None)]
        its.append((of[3], made_up.done(of[3], note="ignored")))
        told = tables.warnings(stored_module.read(made_up.store(tmp_path / "run", its)))
        assert [(len(warning.points), warning.grave) for warning in told] == [
            (2, True),
            (1, False),
            (1, True),
        ]
        assert told[0].text == "Failed: dead"


class TestDrawing:
    @staticmethod
    def entry(point: made_up.Point, **changes: Any) -> Entry:
        return Entry(point.id, point.seed, point.knobs, made_up.done(point, **changes)["points"][0])

    def draw(self, point: made_up.Point, **changes: Any) -> str:
        return drawing.draw(self.entry(point, **changes), "virtual")

    def test_both_ways_of_drawing_have_rate_queue_and_delay(self) -> None:
        told = self.draw(made_up.point(loss="0.1%", rtt="40ms", queue="1MiB"))
        assert told.count("<svg ") == 2
        for words in ("1 Gbit/s", "FIFO queue, 1 MiB", "delay 20 ms", "loss 0.1%", "RTT 40 ms"):
            assert told.count(words) >= 2

    def test_leaf_recipe_is_all_at_the_sender(self) -> None:
        told = self.draw(made_up.point(recipe="leaf", rtt="40ms", jitter="1ms"))
        assert "netem queue, 1000 packets" in told
        assert "not shaped" in told
        assert "FIFO" not in told

    def test_hosts_have_what_the_point_gave_them(self) -> None:
        told = self.draw(made_up.point(wmem="4MiB", rmem="2MiB", cc="bbr"))
        assert all(word in told for word in (">wmem 4MiB<", ">bbr<", ">rmem 2MiB<"))
        told = self.draw(made_up.point(topology="dumbbell", cc="bbr+cubic", flows="4", reverse="2"))
        assert all(word in told for word in (">bbr+cubic, 4 flows<", ">2 flows back<"))

    def test_run_that_knew_no_topology_has_a_path(self) -> None:
        one = self.entry(made_up.point())
        knobs = {name: text for name, text in one.knobs.items() if not PATH_KNOBS[name].later}
        assert drawing.draw(replace(one, knobs=knobs), "virtual") == drawing.draw(one, "virtual")

    @pytest.mark.parametrize("knob", ["rtt", "topology", "queue", "access", "recipe"])
    def test_value_that_is_refused_today_is_not_drawn(self, knob: str) -> None:
        one = self.entry(made_up.point())
        told = drawing.draw(replace(one, knobs={**one.knobs, knob: HOSTILE}), "virtual")
        assert "<script" not in told
        assert told == "" or knob == "recipe"

    def test_each_point_has_its_own_in_the_page_and_one_is_shown(self, small: RunFolder) -> None:
        drawn = [attrs for attrs in written(small).named("div") if "data-drawing" in attrs]
        assert [attrs["data-drawing"] for attrs in drawn] == [
            entry.id for entry in stored_module.read(small).done
        ]
        assert ["hidden" in attrs for attrs in drawn] == [False] + [True] * (len(drawn) - 1)

    def test_facts_hold_what_was_measured(self) -> None:
        told = dict(drawing.facts(self.entry(made_up.point(), measured_rate_bps=999.7e6, rtt_s=0.200000768)))
        assert told["Rate"] == "1 Gbit/s asked for, 999.7 Mbit/s measured before the load"
        assert told["RTT"] == "200 ms asked for, 200.001 ms measured before the load"

    def test_rate_that_could_not_be_measured(self) -> None:
        told = dict(drawing.facts(self.entry(made_up.point(), measured_rate_bps=None)))
        assert "could not be measured before the load" in told["Rate"]

    def test_facts_say_what_changes(self) -> None:
        changing = made_up.point(rate_change="1s:50mbit", rtt_change="1s:80ms")
        told = dict(drawing.facts(self.entry(changing)))
        assert told["Over time"] == "rate_change 1s:50mbit, rtt_change 1s:80ms"
        assert dict(drawing.facts(self.entry(made_up.point())))["Over time"] == "nothing changes"

    def test_commands_by_node(self) -> None:
        assert (
            drawing.commands(made_up.OUTCOME).split("\n\n")[0]
            == "# in the whole kernel\nsysctl -w net.ipv4.tcp_mem='1 2 3'"
        )
        assert drawing.commands(None) == ""


class TestBars:
    def test_very_many_are_cut_and_said(self, small: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(bars, "MOST_BARS", 5)
        drawn = bars.draw(stored_module.read(small))
        assert len(drawn.figure.data[0].x) == 5
        assert "The first 5 of 7 points." in drawn.caption


class TestPictures:
    def test_without_chromium_it_says_how_to_get_it(
        self, small: RunFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", "/nonexistent")
        monkeypatch.delenv("BROWSER_PATH", raising=False)
        with pytest.raises(PreconditionError, match="apt-get install chromium"):
            page.write_pictures(small, small.path / "pictures")
        assert not (small.path / "pictures").exists()

    def test_browser_that_is_not_there_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("BROWSER_PATH", "/nonexistent/chromium")
        with pytest.raises(PreconditionError, match="/nonexistent/chromium"):
            pictures.find_browser()

    @pytest.mark.parametrize(
        ("text", "name"),
        [
            ("Goodput (wmem 100 MiB)", "goodput-wmem-100-mib"),
            ("../../etc/passwd", "etc-passwd"),
            ("☃", "figure"),
        ],
    )
    def test_names_of_files_are_plain(self, text: str, name: str) -> None:
        assert pictures.slug(text) == name


class TestStyle:
    def test_curves_are_told_apart_without_colour(self) -> None:
        looks = {(style.colour(number), style.symbol(number)) for number in range(42)}
        assert len(looks) == 42
        assert len({style.symbol(number) for number in range(7)}) == 7
