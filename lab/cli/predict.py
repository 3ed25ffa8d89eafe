"""`wanlab predict`: what a path should give, by the model alone. Needs no kernel."""

from __future__ import annotations

import argparse

from lab import units
from lab.cli import output
from lab.errors import UserError
from lab.knobs import PATH_KNOBS
from lab.model import windows
from lab.model.predict import Prediction, Setting, predict

_KNOBS = ("rate", "rtt", "rmem", "wmem", "adv_win_scale", "kernel", "cc", "loss", "flows", "mtu", "offloads")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's words."""
    for name in _KNOBS:
        knob = PATH_KNOBS[name]
        required = name in ("rate", "rtt")
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            dest=name,
            metavar=name.upper(),
            required=required,
            default=None if required else knob.default,
            help=(knob.meaning if required else f"{knob.meaning} (default: {knob.default})").replace(
                "%", "%%"
            ),
        )
    output.add_format(parser)


def release_of(kernel: str) -> windows.Release:
    """Return the version of a kernel by its name, or by its record where the name does not say."""
    try:
        return windows.Release.parse(kernel)
    except (ValueError, IndexError):
        pass
    from lab.kernels import find_kernel  # noqa: PLC0415 (predicting needs no kernel where the name says enough)

    return windows.Release.parse(find_kernel(kernel).release)


def run(arguments: argparse.Namespace) -> int:
    """Print the prediction; return 0."""
    value = {name: PATH_KNOBS[name].value(getattr(arguments, name)) for name in _KNOBS}
    if value["rtt"] == 0:
        raise UserError("rtt: '0' leaves nothing to predict; a path needs an RTT, such as 1ms")
    from lab import memory  # noqa: PLC0415

    release = release_of(value["kernel"])
    scale = value["adv_win_scale"]
    prediction = predict(
        Setting(
            rate_bps=value["rate"],
            rtt_s=value["rtt"],
            release=release,
            rmem=memory.parse(value["rmem"], "rmem"),
            wmem=memory.parse(value["wmem"], "wmem"),
            adv_win_scale=1 if scale is None else scale,
            mtu_bytes=value["mtu"],
            offloads=value["offloads"] == "on",
            cc=value["cc"],
            loss=value["loss"],
            flows=value["flows"],
        )
    )
    note = ""
    if scale is not None and windows.ignores_adv_win_scale(release):
        note = f"Linux {release.major}.{release.minor} ignores tcp_adv_win_scale (6.6 and later do)."
    if arguments.format == "json":
        output.print_json(_as_json(arguments, prediction, note))
    else:
        _print(prediction, note)
    return 0


def _as_json(arguments: argparse.Namespace, prediction: Prediction, note: str) -> dict[str, object]:
    knobs = {name: PATH_KNOBS[name].canonical(getattr(arguments, name)) for name in _KNOBS}
    return {
        **knobs,
        "bdp_bytes": prediction.bdp_bytes,
        "window_bytes": prediction.window_bytes,
        "send_window_bytes": prediction.send_window_bytes,
        "bounds_bps": prediction.bounds_bps,
        "predicted_goodput_bps": prediction.predicted_goodput_bps,
        "limit": prediction.limit,
        "sentence": prediction.sentence,
        "note": note or None,
    }


def _print(prediction: Prediction, note: str) -> None:
    rows = [
        {"what": "bandwidth-delay product", "value": units.human_size(prediction.bdp_bytes)},
        {"what": "receive window of a flow", "value": units.human_size(prediction.window_bytes)},
        {"what": "send buffer keeps in flight", "value": units.human_size(prediction.send_window_bytes)},
    ]
    for name, bound in prediction.bounds_bps.items():
        binds = "  <- binds" if name == prediction.limit else ""
        rows.append(
            {"what": f"goodput by {name.replace('_', ' ')} alone", "value": units.human_rate(bound) + binds}
        )
    output.print_table(rows)
    print(prediction.sentence)
    if note:
        print(f"Note: {note}")
