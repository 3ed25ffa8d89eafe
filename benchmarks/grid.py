"""Points drawn by a seeded Latin hypercube over everything that decides a transfer.

Each dimension is cut into as many slices as there are points and every slice is
used once (McKay, Beckman, Conover, Technometrics 21(2), 1979), so that a few
hundred points cover nine dimensions evenly.
"""

from __future__ import annotations

import math

import numpy as np

from lab.knobs import LARGEST_QUEUE_BYTES
from lab.sweep import MOST_FILLED_BYTES
from lab.units import format_rate, format_size, format_time

RATES_BPS = (1e6, 40e9)
RTTS_S = (1e-4, 1.0)
BUFFERS_BDP = (0.08, 12.0)
LEAST_BUFFER_BYTES = 32 * 1024
QUEUES_BDP = (0.1, 4.0)
LEAST_QUEUE_PACKETS = 20
LOSSES = (1e-6, 1e-2)
LOSSY_SHARE = 0.3
CONTROLS = ("cubic", "cubic", "bbr", "reno")
KERNELS = ("6.12", "6.1")
SCALES = ("default", "2", "-1", "-2")
FORMS = ("fixed", "tuned", "tuned", "default")
MOST_PACKETS = 3e6
"""Of a transfer with single packets; with more, segmentation offloads are on."""
LEAST_DURATION_S = 4.0
ROUND_TRIPS = 50


def hypercube(count: int, dimensions: int, seed: int) -> np.ndarray:
    """Return numbers in [0, 1), shape (count, dimensions): each slice of each column once."""
    chance = np.random.default_rng(seed)
    slices = np.stack([chance.permutation(count) for _ in range(dimensions)], axis=1)
    return (slices + chance.random((count, dimensions))) / count


def points(count: int, seed: int) -> list[dict[str, str]]:
    """Return the knobs of `count` points."""
    return [_knobs(row) for row in hypercube(count, 12, seed)]


def _log(low: float, high: float, at: float) -> float:
    return low * math.pow(high / low, at)


def _pick(choices: tuple[str, ...], at: float) -> str:
    return choices[int(at * len(choices))]


def _buffer(form: str, size: float) -> str:
    size_bytes = min(max(int(size) // 4096 * 4096, LEAST_BUFFER_BYTES), MOST_FILLED_BYTES)
    return {"fixed": f"{size_bytes}B", "tuned": f"max={size_bytes}B", "default": "default"}[form]


def _knobs(row: np.ndarray) -> dict[str, str]:
    rate, rtt, rmem, wmem, r_form, w_form, queue, lossy, loss, cc, kernel, scale = map(float, row)
    rate_bps = float(f"{_log(*RATES_BPS, rate):.3g}")
    rtt_s = max(round(_log(*RTTS_S, rtt) * 1e6 / 2) * 2, 2) / 1e6
    bdp = rate_bps * rtt_s / 8
    duration_s = max(LEAST_DURATION_S, ROUND_TRIPS * rtt_s)
    offloads = rate_bps * duration_s / 8 / 1514 > MOST_PACKETS
    packet = 65550 if offloads else 1514
    queue_bytes = max(_log(*QUEUES_BDP, queue) * bdp, LEAST_QUEUE_PACKETS * packet)
    chance = _log(*LOSSES, loss) if lossy < LOSSY_SHARE else 0.0
    return {
        "rate": format_rate(rate_bps),
        "rtt": format_time(rtt_s),
        "rmem": _buffer(_pick(FORMS, r_form), 2 * bdp * _log(*BUFFERS_BDP, rmem)),
        "wmem": _buffer(_pick(FORMS, w_form), 2 * bdp * _log(*BUFFERS_BDP, wmem)),
        "queue": format_size(int(min(queue_bytes, LARGEST_QUEUE_BYTES))),
        "loss": f"{100 * chance:.3g}%",
        "cc": _pick(CONTROLS, cc),
        "kernel": _pick(KERNELS, kernel),
        "adv_win_scale": _pick(SCALES, scale),
        "offloads": "on" if offloads else "off",
        "duration": format_time(float(f"{duration_s:.3g}")),
    }
