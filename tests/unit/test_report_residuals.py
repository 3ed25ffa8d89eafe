"""How far measurement is from prediction, in the figures: residuals, knees, and all points in one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.report import curves, figures, knee, limits, overview, predicted, residuals
from lab.report import stored as stored_module
from lab.report.stored import Entry, Stored
from tests import made_up_run as made_up

Read = Callable[..., Stored]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Return a maker of runs: points with a steady goodput of this share of the predicted one."""

    def make(shares: dict[made_up.Point, float], y: str = "steady_goodput_bps", **changes: Any) -> Stored:
        its = []
        for one, share in shares.items():
            tables = made_up.done(one)
            row = tables["points"][0]
            row["steady_goodput_bps"] = share * row["predicted_goodput_bps"]
            row["goodput_bps"] = share * row["predicted_mean_goodput_bps"]
            its.append((one, tables))
        figure = {"title": "F", "x": "rmem", "by": ["cc"], "y": y}
        return stored_module.read(made_up.store(tmp_path / "run", its, **{"figures": [figure], **changes}))

    return make


@pytest.fixture(autouse=True)
def hashable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let points be keys."""
    monkeypatch.setattr(made_up.Point, "__hash__", lambda self: hash(self.id))


def sweep(shares: list[float], **knobs: str) -> dict[made_up.Point, float]:
    sizes = ("4MiB", "16MiB", "32MiB", "64MiB", "128MiB")
    points = [made_up.point(rmem=rmem, wmem="max=100MiB", **knobs) for rmem in sizes]
    return dict(zip(points, shares, strict=False))


def below(drawn: Any) -> list[Any]:
    """Return the traces of the panel of residuals."""
    return [trace for trace in drawn.figure.data if trace.yaxis == "y2"]


class TestResiduals:
    def test_are_in_percent_and_stand_under_their_marks(self, read: Read) -> None:
        (drawn,) = figures.draw(read(sweep([1.0, 0.9, 1.02])))
        (trace,) = below(drawn)
        assert list(trace.y) == pytest.approx([0, -10, 2])
        measured = next(trace for trace in drawn.figure.data if trace.customdata is not None)
        assert list(trace.x) == list(measured.x)
        assert list(trace.customdata) == list(measured.customdata)
        assert trace.text[1].startswith("<b>-10.0 %</b>")

    def test_panel_lies_below_and_the_axis_is_shared(self, read: Read) -> None:
        (drawn,) = figures.draw(read(sweep([1.0, 0.9])))
        layout = drawn.figure.layout
        assert layout.xaxis.anchor == "y2"
        assert layout.yaxis.domain[0] > layout.yaxis2.domain[1]
        assert layout.yaxis2.zeroline
        assert list(layout.yaxis2.range) == pytest.approx([-11.5, 11.5])
        bands = [shape for shape in layout.shapes if shape.yref == "y2"]
        assert [(shape.y0, shape.y1) for shape in bands] == [(-8, 8), (-2, 2)]
        assert "the bands are 2 and 8 %" in drawn.caption

    def test_far_ones_stand_at_the_edge_and_say_how_far(self, read: Read) -> None:
        (drawn,) = figures.draw(read(sweep([1.0, 5.0])))
        (trace,) = below(drawn)
        assert trace.y[1] == residuals.MOST_RANGE
        assert "+400.0 %" in trace.text[1]

    def test_each_curve_has_its_own_and_the_legend_hides_both(self, read: Read) -> None:
        shares = {**sweep([1.0, 1.1]), **sweep([0.9, 0.8], cc="bbr")}
        (drawn,) = figures.draw(read(shares))
        groups = [trace.legendgroup for trace in below(drawn)]
        assert len(set(groups)) == 2
        for group in groups:
            assert sum(trace.legendgroup == group for trace in drawn.figure.data) >= 3

    def test_of_the_whole_load_are_against_its_own_prediction(self, read: Read) -> None:
        (drawn,) = figures.draw(read(sweep([1.0, 0.95]), y="goodput_bps"))
        (trace,) = below(drawn)
        assert list(trace.y) == pytest.approx([0, -5])
        assert "predicts for the whole load" in drawn.caption

    def test_of_seeds_is_the_mean(self, tmp_path: Path) -> None:
        its = []
        for rmem in ("4MiB", "8MiB"):
            for seed, share in ((1, 0.9), (2, 1.0), (3, 1.3)):
                one = made_up.point(seed, rmem=rmem)
                goodput = made_up.base_row(one)["predicted_goodput_bps"]
                its.append((one, made_up.done(one, steady_goodput_bps=share * goodput)))
        run = stored_module.read(made_up.store(tmp_path / "run", its))
        (trace,) = below(figures.draw(run)[0])
        assert list(trace.y) == pytest.approx([100 * 0.2 / 3] * 2)

    def test_column_without_prediction_has_no_panel(self, read: Read) -> None:
        (drawn,) = figures.draw(read(sweep([1.0, 1.0]), y="retransmits"))
        assert below(drawn) == []
        assert drawn.figure.layout.xaxis.anchor is None

    @pytest.mark.parametrize("missing", ["predicted_goodput_bps", "steady_goodput_bps"])
    def test_point_that_lacks_a_number_has_none(self, missing: str) -> None:
        point = made_up.point()
        row = {**made_up.done(point)["points"][0], missing: None}
        assert residuals.residual(Entry(point.id, 1, point.knobs, row), "steady_goodput_bps") is None


class TestPredicted:
    @pytest.mark.parametrize(("y", "column"), predicted.COLUMNS.items())
    def test_goes_through_what_was_stored(self, tmp_path: Path, y: str, column: str) -> None:
        of = [made_up.point(rmem=rmem, duration="3s") for rmem in ("2MiB", "8MiB", "64MiB")]
        figure = {"title": "F", "x": "rmem", "by": [], "y": y}
        folder = made_up.store(tmp_path / "run", [(one, made_up.done(one)) for one in of], figures=[figure])
        (plot,) = curves.plots(stored_module.read(folder))
        (curve,) = plot.curves
        assert len(curve.prediction) > 100
        line = dict(curve.prediction)
        for entry in curve.entries:
            told = entry.number(column)
            assert told is not None
            assert line[plot.axis.positions[entry.id]] == pytest.approx(told / plot.scale.factor, rel=1e-5)

    @pytest.mark.parametrize(
        ("x", "values"),
        [("rate", ("10mbit", "1gbit")), ("rtt", ("10ms", "400ms")), ("queue", ("64KiB", "16MiB"))],
    )
    def test_takes_along_what_follows_from_the_knob(
        self, tmp_path: Path, x: str, values: tuple[str, str]
    ) -> None:
        """A queue of one BDP grows with rate and RTT: between the points too."""
        of = [made_up.point(**{x: value}) for value in values]
        figure = {"title": "F", "x": x, "by": [], "y": "steady_goodput_bps"}
        folder = made_up.store(tmp_path / "run", [(one, made_up.done(one)) for one in of], figures=[figure])
        (plot,) = curves.plots(stored_module.read(folder))
        assert len(plot.curves[0].prediction) > 100
        assert not plot.curves[0].outdated

    def test_with_loss_takes_fewer_steps(self, tmp_path: Path) -> None:
        of = [made_up.point(rmem=rmem, loss="1%", rate="10mbit") for rmem in ("64KiB", "1MiB")]
        folder = made_up.store(tmp_path / "run", [(one, made_up.done(one)) for one in of])
        (plot,) = curves.plots(stored_module.read(folder))
        assert len(plot.curves[0].prediction) <= predicted.LOSSY_GRID_STEPS + 2


class TestKnee:
    @pytest.mark.parametrize(
        ("values", "at"),
        [
            ({1: 10, 2: 50, 4: 96, 8: 100}, 4),
            ({8: 100, 4: 96, 1: 10, 2: 50}, 4),
            ({1: 10, 2: 100, 4: 99, 8: 98}, 2),
            ({1: 10, 2: 50, 4: 100}, None),  # it may go on rising
            ({1: 96, 2: 98, 4: 100}, None),  # nothing fell short
            ({1: 0, 2: 0}, None),
            ({4: 7}, None),
            ({}, None),
        ],
    )
    def test_is_where_more_hardly_helps(self, values: dict[float, float], at: float | None) -> None:
        assert knee.find(values) == at

    def test_is_marked_and_told(self, read: Read) -> None:
        run = read(sweep([1.0, 1.0, 1.0, 1.0, 1.0]))
        (plot,) = curves.plots(run)
        (curve,) = plot.curves
        assert curve.knee is not None
        (drawn,) = figures.draw(run)
        (ring,) = [trace for trace in drawn.figure.data if trace.marker.symbol == "circle-open"]
        assert list(ring.x) == [plot.axis.positions[curve.knee.id]]
        assert list(ring.text) == [f"knee {curve.knee.knobs['rmem']}"]
        assert f"best of its curve: {curve.knee.knobs['rmem']} (" in drawn.caption

    def test_is_not_drawn_on_a_curve_that_still_rises(self, read: Read) -> None:
        run = read(sweep([1.0, 1.0, 1.0]))
        assert curves.plots(run)[0].curves[0].knee is None
        assert "Rings" not in figures.draw(run)[0].caption

    def test_is_of_goodput_alone(self, read: Read) -> None:
        run = read(sweep([1.0] * 5), y="retransmits")
        assert curves.plots(run)[0].curves[0].knee is None

    def test_equal_knees_are_named_once(self, read: Read) -> None:
        shares = {**sweep([1.0] * 5), **sweep([1.0] * 5, cc="reno")}
        drawn = figures.draw(read(shares))[0]
        rings = [trace for trace in drawn.figure.data if trace.marker.symbol == "circle-open"]
        assert sorted(ring.mode for ring in rings) == ["markers", "markers+text"]


class TestOverview:
    def many(self) -> dict[made_up.Point, float]:
        return {**sweep([1.0, 0.9, 1.0, 1.0, 1.05]), **sweep([1.0, 1.0, 0.5, 1.0, 1.0], cc="reno")}

    def test_few_points_have_none(self, read: Read) -> None:
        run = read(sweep([1.0] * 5))
        assert overview.draw(run, 2) is None
        assert len(figures.draw(run)) == 1

    def test_is_the_last_figure_of_many(self, read: Read) -> None:
        drawn = figures.draw(read(self.many()))
        assert [one.title for one in drawn] == ["F", "Measured against predicted"]
        assert drawn[-1].slug == "02-measured-predicted"
        assert "8 of 10 points lie within 8 %" in drawn[-1].caption

    def test_sets_every_point_against_its_prediction(self, read: Read) -> None:
        run = read(self.many())
        drawn = overview.draw(run, 1)
        assert drawn is not None
        layout = drawn.figure.layout
        assert layout.xaxis.type == layout.yaxis.type == "log"
        assert layout.xaxis.range == layout.yaxis.range
        marks = [trace for trace in drawn.figure.data if trace.mode == "markers"]
        at = {
            name: (x, y)
            for trace in marks
            for name, x, y in zip(trace.customdata, trace.x, trace.y, strict=True)
        }
        assert at.keys() == {entry.id for entry in run.done}
        for entry in run.done:
            x, y = at[entry.id]
            assert (x * 1e6, y * 1e6) == pytest.approx(
                (entry.number("predicted_goodput_bps"), entry.number("steady_goodput_bps"))
            )

    def test_colour_is_the_limit_that_bound(self, read: Read) -> None:
        drawn = overview.draw(read(self.many()), 1)
        assert drawn is not None
        marks = {trace.name: trace for trace in drawn.figure.data if trace.mode == "markers"}
        assert marks.keys() == {"link", "receive window"}
        assert marks["link"].marker.color == limits.look("link").colour
        assert "point " in marks["link"].text[0]

    def test_point_without_a_verdict_is_not_known(self, tmp_path: Path) -> None:
        of = [made_up.point(rmem=f"{size}MiB") for size in range(1, 11)]
        its = [(one, made_up.done(one, limit_measured=None)) for one in of]
        drawn = overview.draw(stored_module.read(made_up.store(tmp_path / "run", its)), 1)
        assert drawn is not None
        assert [trace.name for trace in drawn.figure.data if trace.mode == "markers"] == ["not known"]

    def test_point_of_nothing_has_no_place_on_it(self, read: Read) -> None:
        shares = {**self.many(), made_up.point(rmem="1GiB"): 0.0}
        drawn = overview.draw(read(shares), 1)
        assert drawn is not None
        assert "of 10 points" in drawn.caption
