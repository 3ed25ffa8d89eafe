"""Why one point came out as it did: prediction and verdict in words, and side by side in numbers.

Text only; `why.html` shows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from lab.model.limits import words
from lab.report import limits
from lab.report.observed import Observed
from lab.report.stored import Entry
from lab.report.tables import NONE, percent
from lab.units import human_rate, human_size

LABELLED = 0.16
"""From this share on a piece of a bar has room for its name."""


class Row(NamedTuple):
    """One quantity. measured: "" where nothing can measure it; difference: measured against predicted, ""
    where it says nothing; limit: its CSS class."""

    name: str
    predicted: str
    measured: str
    difference: str = ""
    limit: str = ""


class Piece(NamedTuple):
    """One limit in a bar. share: of the whole bar; text: inside, "" where there is no room."""

    css: str
    name: str
    share: float
    text: str


class Bar(NamedTuple):
    """The shares of all limits, predicted or measured."""

    name: str
    pieces: list[Piece]

    @property
    def words(self) -> str:
        """Return all shares in words."""
        return ", ".join(piece.name for piece in self.pieces)


class Why(NamedTuple):
    """What there is to say of one point. predicted: whether the model has a number for it at all."""

    predicted: bool
    prediction: str
    verdict: str
    bars: list[Bar]
    rows: list[Row]


def build(entry: Entry, seen: Observed) -> Why:
    """Return what there is to say of a point that is done."""
    predicted, measured = entry.shares("predicted_shares"), entry.shares("limit_shares")
    bars = [Bar("predicted", _pieces(predicted)), Bar("measured", _pieces(measured))]
    its_rows = [*_results(entry), *_shares(entry, predicted, measured), *_sizes(entry, seen), _next(entry)]
    known = entry.number("predicted_goodput_bps") is not None
    return Why(
        predicted=known,
        prediction=entry.text("prediction"),
        verdict=entry.text("verdict"),
        bars=[bar for bar in bars if bar.pieces],
        rows=its_rows if known else [row for row in its_rows if row.measured not in ("", NONE)],
    )


def _pieces(shares: Mapping[str, float]) -> list[Piece]:
    return [
        Piece(
            limits.css_class(limit),
            limits.named(limit, shares),
            round(shares[limit], 5),
            limits.named(limit, shares) if shares[limit] >= LABELLED else "",
        )
        for limit in limits.present(shares)
    ]


def _results(entry: Entry) -> list[Row]:
    rows = []
    for name, predicted, measured in (
        ("steady goodput", "predicted_goodput_bps", "steady_goodput_bps"),
        ("mean goodput", "predicted_mean_goodput_bps", "goodput_bps"),
    ):
        rows.append(_compared(name, entry.number(predicted), entry.number(measured), human_rate))
    rtt = _compared("RTT under load", entry.number("predicted_rtt_s"), entry.number("loaded_rtt_s"), _time)
    return [*rows, rtt]


def _shares(entry: Entry, predicted: Mapping[str, float], measured: Mapping[str, float]) -> list[Row]:
    rows = [
        Row("limit", *(words(entry.text(f"limit_{which}")) or NONE for which in ("predicted", "measured")))
    ]
    for limit in limits.present(predicted, measured):
        told = [
            limits.percent(shares.get(limit, 0.0) if shares else None) for shares in (predicted, measured)
        ]
        rows.append(Row(words(limit), told[0], told[1], limit=limits.css_class(limit)))
    return rows


def _sizes(entry: Entry, seen: Observed) -> list[Row]:
    goodput, rtt_s = entry.number("predicted_goodput_bps"), entry.number("predicted_rtt_s")
    rate, base_s = entry.number("rate_bps"), entry.number("configured_rtt_s")
    measured_rate, measured_s = entry.number("measured_rate_bps"), entry.number("rtt_s")
    queue = None
    if rtt_s is not None and rate is not None and base_s is not None:
        queue = max(0.0, rtt_s - base_s) * rate / 8
    sndbuf = f"{_size(seen.queued_bytes)} of {_size(seen.sndbuf_bytes)} in use"
    in_flight = _size(entry.number("send_window_bytes"))
    return [
        _compared("window of a flow", entry.number("window_bytes"), seen.window_bytes, _size),
        Row(
            "send buffer of a flow",
            f"{in_flight} in flight" if in_flight != NONE else NONE,
            sndbuf if seen.sndbuf_bytes is not None else NONE,
        ),
        _compared("in flight, all flows", _product(goodput, rtt_s), seen.inflight_bytes, _size),
        _compared("BDP", entry.number("bdp_bytes"), _product(measured_rate, measured_s), _size),
        Row("queue, mean", _size(queue), _size(seen.backlog_bytes)),
        Row("queue, longest", NONE, _longest(entry)),
    ]


def _longest(entry: Entry) -> str:
    longest, limit = entry.number("queue_max_bytes"), entry.number("queue_limit")
    if longest is None:
        return NONE
    told = _size(longest)
    if limit is not None:
        unit = entry.text("queue_limit_unit")
        told += f" of {_size(limit)}" if unit == "bytes" else f", limit {limit:.0f} {unit}"
    drops = entry.number("queue_drops")
    return told if not drops else f"{told}, {drops:.0f} drops"


def _next(entry: Entry) -> Row:
    limit, margin = entry.text("next_limit"), entry.number("margin")
    if not limit:
        return Row("next limit", NONE, "")
    if margin is None or not math.isfinite(margin):
        return Row("next limit", words(limit), "")
    return Row("next limit", f"{words(limit)}, at {margin:.3g} times the goodput", "")


def _product(rate_bps: float | None, time_s: float | None) -> float | None:
    return None if rate_bps is None or time_s is None else rate_bps * time_s / 8


def _compared(
    name: str, predicted: float | None, measured: float | None, show: Callable[[float], str]
) -> Row:
    told = [NONE if value is None else show(value) for value in (predicted, measured)]
    difference = percent(measured, predicted).text
    return Row(name, told[0], told[1], "" if difference == NONE else f"{difference} %")


def _time(time_s: float) -> str:
    return f"{time_s * 1e3:.4g} ms"


def _size(size_bytes: float | None) -> str:
    return NONE if size_bytes is None else human_size(size_bytes)
