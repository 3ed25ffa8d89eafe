"""A prediction in one sentence, with the numbers in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.model.controls import control
from lab.model.inputs import Setting
from lab.model.limits import (
    HYSTART,
    LINK,
    LOSS,
    PACING,
    QUEUE,
    RECEIVE_WINDOW,
    SEND_BUFFER,
    SLOW_START,
    words,
)
from lab.units import human_rate, human_size

if TYPE_CHECKING:
    from lab.model.predict import Prediction


def prediction(setting: Setting, made: Prediction) -> str:
    """Return what should bind, at what goodput, and what would bind next."""
    if setting.loss >= 1:
        return "Loss binds: every packet is lost, so nothing arrives."
    rate, bdp = human_rate(made.predicted_goodput_bps), human_size(made.bdp_bytes)
    said = {
        LINK: f"The link binds: {rate} of payload is what its rate leaves",
        RECEIVE_WINDOW: f"The receive window binds: {human_size(made.window_bytes)} of a BDP of {bdp}"
        f" give {rate}",
        SEND_BUFFER: f"The send buffer binds: it keeps {human_size(made.send_window_bytes)} in flight of a"
        f" BDP of {bdp}, which gives {rate}",
        LOSS: f"Loss binds: the congestion window that {setting.cc} holds against"
        f" {setting.loss * 100:.3g} % gives {rate}",
        QUEUE: f"The queue binds: {human_size(setting.queue_bytes)} are too short for {setting.cc}, whose"
        f" window falls under the BDP of {bdp} after a drop, which leaves {rate}",
        HYSTART: f"HyStart binds: slow start was left early and the congestion window is still growing"
        f" towards the BDP of {bdp}, which gives {rate}",
        SLOW_START: f"Slow start binds: the transfer ends before the congestion window has grown to what"
        f" windows and the BDP of {bdp} allow, which gives {rate}",
        PACING: f"Pacing binds, at {rate}",
    }[made.steady_limit]
    if not control(setting.cc).known:
        said += f" ({setting.cc} is taken as Reno; the model knows no better)"
    if made.margin < 1.005:
        return f"{said}."
    if made.margin > 1e3:
        return f"{said}; no other limit is near."
    return f"{said}; next is the {words(made.next_limit)}, at {made.margin:.3g} times that."
