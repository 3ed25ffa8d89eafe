"""The model's curve beside a measured one: fine where it can be computed, else as the run stored it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from lab.combination import Point
from lab.errors import UnitError
from lab.model.inputs import Release, Setting
from lab.model.predict import Prediction, predict
from lab.report import axes
from lab.report.axes import Axis
from lab.report.stored import Entry
from lab.setting import setting

GRID_STEPS = 160
LOSSY_GRID_STEPS = 40
"""With loss the model averages over chance, and a prediction takes ten times as long."""
_SAME = 1e-3
"""Relative distance up to which a stored prediction counts as that of the model of today."""

COLUMNS = {
    "steady_goodput_bps": "predicted_goodput_bps",
    "goodput_bps": "predicted_mean_goodput_bps",
    "loaded_rtt_s": "predicted_rtt_s",
}
"""What is measured, and the column that has its prediction."""

Line = tuple[tuple[float | str | None, float | None], ...]


class Predicted(NamedTuple):
    """line: (position, y) in the units of the figure; None breaks it.

    outdated: the model of today predicts otherwise than the run says, whose word stands.
    """

    line: Line
    outdated: bool


def curve(y: str, entries: Sequence[Entry], axis: Axis, engine: str, factor: float) -> Predicted:
    """Return the prediction of column `y` along an axis, through points that differ in its knob alone.

    factor: what one of the figure's units is in those of the column.
    """
    column = COLUMNS.get(y)
    if column is None:
        return Predicted((), False)
    stored = {entry.id: entry.number(column) for entry in entries}
    known = {axis.positions[name]: value / factor for name, value in stored.items() if value is not None}
    coarse: Line = tuple(known.items())
    release = _release(entries[0])
    if not axis.numeric or not known or release is None or None in stored.values():
        return Predicted(coarse, False)
    try:
        points = [entry.point(engine) for entry in entries]
        settings = [setting(point, release) for point in points]
    except UnitError:
        return Predicted(coarse, True)  # a value that today's knobs refuse
    for entry, its in zip(entries, settings, strict=True):
        told, now = stored[entry.id] or 0.0, _value(predict(its), column)
        if abs(now - told) > _SAME * told:
            return Predicted(coarse, True)
    own = [_at(points[0], axis.knob, point.knobs[axis.knob], release) for point in points]
    if own != settings:
        return Predicted(coarse, False)
    fixed = any(axes.form(axis.knob, entry) == "fixed" for entry in entries)
    return Predicted(_fine(points[0], release, column, axis, known, fixed=fixed, factor=factor), False)


def _fine(
    base: Point,
    release: Release,
    column: str,
    axis: Axis,
    known: dict[float | str, float],
    *,
    fixed: bool,
    factor: float,
) -> Line:
    line: list[tuple[float | str | None, float | None]] = []
    low = axis.range[0]
    if axis.zero_at is not None:  # no line between nothing and the least
        line += [(position, value) for position, value in known.items() if position == axis.zero_at]
        line.append((None, None))
        low = min(float(position) for position in axis.positions.values() if position != axis.zero_at)
    own = {float(position): value for position, value in known.items() if position != axis.zero_at}
    lossy = axis.knob == "loss" or base.knobs["loss"] != "0%"
    steps = LOSSY_GRID_STEPS if lossy else GRID_STEPS
    between = np.geomspace(low, axis.range[1], steps)
    if axis.knob in axes.COUNTED:
        between = between.round()
    for position in sorted({*between[between >= low].tolist(), *own}):
        value = own.get(position)
        if value is None:
            text = axis.text(position)
            if axis.knob in axes.MEMORY and not fixed:
                text = f"max={text}"
            its = _at(base, axis.knob, text, release)
            value = math.nan if its is None else _value(predict(its), column) / factor
        if math.isfinite(value):
            line.append((float(f"{position:.6g}"), float(f"{value:.6g}")))
    return tuple(line)


def _at(base: Point, knob: str, text: str, release: Release) -> Setting | None:
    """Return the setting of a point with another value of one knob; None where the knob refuses it.

    What follows from the knob follows here too, such as a queue of one BDP from the rate.
    """
    try:
        return setting(replace(base, knobs={**base.knobs, knob: text}), release)
    except UnitError:
        return None


def _value(prediction: Prediction, column: str) -> float:
    if column == "predicted_mean_goodput_bps":
        return prediction.mean_goodput_bps
    return prediction.rtt_s if column == "predicted_rtt_s" else prediction.predicted_goodput_bps


def _release(entry: Entry) -> Release | None:
    try:
        return Release.parse(str((entry.row or {}).get("kernel_release")))
    except (ValueError, IndexError):
        return None
