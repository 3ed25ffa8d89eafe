"""`wanlab predict`: what a path should give, by the model alone. Needs no kernel."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from dataclasses import replace

from lab import checks, sweep, units
from lab.cli import output
from lab.errors import SpecError, UnitError
from lab.knobs import PATH_KNOBS
from lab.model import inputs, windows
from lab.model.limits import words
from lab.model.predict import Prediction, predict
from lab.setting import model_faults, setting

_REQUIRED = ("rate", "rtt")
_KNOBS = (
    *(*_REQUIRED, "queue", "loss", "duration", "bytes", "flows", "cc", "kernel", "mtu", "offloads"),
    *("rmem", "adv_win_scale", "app_win", "moderate_rcvbuf", "rcvbuf", "rmem_max"),
    *("wmem", "sndbuf", "wmem_max", "notsent_lowat", "tcp_mem"),
)
_LONG_RUN = "the long run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's words."""
    for name in _KNOBS:
        knob = PATH_KNOBS[name]
        usual = _LONG_RUN if name == "duration" else knob.default
        said = knob.meaning if name in _REQUIRED else f"{knob.meaning} (default: {usual})"
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            dest=name,
            metavar=name.upper(),
            required=name in _REQUIRED,
            help=said.replace("%", "%%"),
        )
    output.add_format(parser)


def release_of(kernel: str) -> inputs.Release:
    """Return the version of a kernel by its name, or by its record where the name does not say."""
    try:
        return inputs.Release.parse(kernel)
    except (ValueError, IndexError):
        pass
    from lab.kernels import find_kernel  # noqa: PLC0415 (predicting needs no kernel where the name says enough)

    return inputs.Release.parse(find_kernel(kernel).release)


def run(arguments: argparse.Namespace) -> int:
    """Print the prediction; return 0."""
    texts = {name: text for name in _KNOBS if (text := getattr(arguments, name)) is not None}
    point = _point(texts)
    release = release_of(point.knobs["kernel"])
    asked = setting(point, release)
    long_run = "duration" not in texts
    prediction = predict(replace(asked, duration_s=math.inf) if long_run else asked)
    note = ""
    if point.knobs["adv_win_scale"] != "default" and windows.ignores_adv_win_scale(release):
        note = f"Linux {release} ignores tcp_adv_win_scale (6.6 and later do)."
    knobs: dict[str, str | None] = {name: point.knobs[name] for name in _KNOBS}
    if long_run:
        knobs["duration"] = None
    if arguments.format == "json":
        output.print_json(_as_json(knobs, prediction, note))
    else:
        _print(knobs, prediction, note)
    return 0


def _point(texts: Mapping[str, str]) -> sweep.Point:
    """Return the point that the words describe. Raises SpecError with every fault."""
    knobs, faults = {name: knob.default for name, knob in PATH_KNOBS.items()}, []
    for name, text in texts.items():
        try:
            knobs[name] = PATH_KNOBS[name].canonical(text)
        except UnitError as fault:
            faults.append(str(fault))
    if knobs["rtt"] == "0s":
        faults.append(f"rtt: {texts['rtt']!r} leaves nothing to predict; a path needs an RTT, such as 1ms")
    point = sweep.Point(knobs, "virtual", 1)
    faults += model_faults(knobs)
    if faults := faults or checks.check_point(point):
        raise SpecError(faults)
    return point


def _as_json(knobs: Mapping[str, str | None], prediction: Prediction, note: str) -> dict[str, object]:
    return {
        **knobs,
        "bdp_bytes": prediction.bdp_bytes,
        "window_bytes": prediction.window_bytes,
        "send_window_bytes": prediction.send_window_bytes,
        "bounds_bps": prediction.bounds_bps,
        "predicted_goodput_bps": prediction.predicted_goodput_bps,
        "predicted_mean_goodput_bps": prediction.mean_goodput_bps if _load(knobs) else None,
        "predicted_rtt_s": prediction.rtt_s,
        "ramp_s": prediction.ramp_s,
        "limit": prediction.limit,
        "steady_limit": prediction.steady_limit,
        "predicted_shares": prediction.shares,
        "next_limit": prediction.next_limit,
        "margin": prediction.margin,
        "sentence": prediction.sentence,
        "note": note or None,
    }


def _load(knobs: Mapping[str, str | None]) -> str | None:
    """Return what a load that ends was given as; None for the long run."""
    return knobs["duration"] if knobs["bytes"] in (None, "none") else knobs["bytes"]


def _print(knobs: Mapping[str, str | None], prediction: Prediction, note: str) -> None:
    rows = {
        "bandwidth-delay product": units.human_size(prediction.bdp_bytes),
        "receive window of a flow": units.human_size(prediction.window_bytes),
        "send buffer keeps in flight": units.human_size(prediction.send_window_bytes),
    }
    for name, bound in prediction.bounds_bps.items():
        binds = "  <- binds" if name == prediction.steady_limit else ""
        rows[f"goodput by {words(name)} alone"] = units.human_rate(bound) + binds
    rows["steady goodput"] = units.human_rate(prediction.predicted_goodput_bps)
    if load := _load(knobs):
        rows[f"mean goodput of {load}"] = units.human_rate(prediction.mean_goodput_bps)
    if prediction.predicted_goodput_bps > 0:
        rows["RTT under load"] = _time(prediction.rtt_s)
        rows["ramp"] = _time(prediction.ramp_s)
    rows["time limited by"] = ", ".join(
        f"{words(name)} {100 * share:.3g} %"
        for name, share in sorted(prediction.shares.items(), key=lambda item: -item[1])
    )
    if math.isfinite(prediction.margin):
        rows["next limit"] = f"{words(prediction.next_limit)}, at {prediction.margin:.3g} times the goodput"
    output.print_table([{"what": what, "value": value} for what, value in rows.items()])
    print(prediction.sentence)
    if note:
        print(f"Note: {note}")


def _time(time_s: float) -> str:
    """Return a time for reading: four digits."""
    for unit_s, unit in ((1, "s"), (1e-3, "ms")):
        if time_s >= unit_s:
            return f"{time_s / unit_s:.4g} {unit}"
    return f"{time_s / 1e-6:.4g} µs"
