"""One call from the settings of a path to its predicted goodput and the limit that binds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lab import memory
from lab.model import loss as loss_model
from lab.model import path, windows

_BBR_PROBE_RTT_S = 0.2
_BBR_PROBE_RTT_EVERY_S = 10.0

LINK, RECEIVE_WINDOW, SEND_BUFFER, LOSS = "link", "receive_window", "send_buffer", "loss"


@dataclass(frozen=True)
class Setting:
    """What a prediction needs to know. Rates bit/s, times s, sizes bytes, loss a fraction."""

    rate_bps: float
    rtt_s: float
    release: windows.Release
    rmem: memory.Triple = memory.DEFAULTS["rmem"]
    wmem: memory.Triple = memory.DEFAULTS["wmem"]
    adv_win_scale: int = 1
    mtu_bytes: int = 1500
    offloads: bool = False
    cc: str = "cubic"
    loss: float = 0.0
    flows: int = 1
    duration_s: float = math.inf


@dataclass(frozen=True)
class Prediction:
    """What the model says.

    window_bytes: the most the receiver advertises to a flow; send_window_bytes:
    what a flow's send buffer keeps in flight; bounds_bps: the goodput of all
    flows that each limit alone would allow; limit: the least of them.
    """

    bdp_bytes: float
    window_bytes: int
    send_window_bytes: int
    bounds_bps: dict[str, float]
    predicted_goodput_bps: float
    limit: str

    @property
    def sentence(self) -> str:
        """One sentence with the numbers in."""
        rate = self.predicted_goodput_bps / 1e6
        return {
            LINK: f"The link binds: {rate:.4g} Mbit/s of payload is what its rate leaves.",
            RECEIVE_WINDOW: f"The receive window binds: {self.window_bytes} bytes of a BDP of"
            f" {self.bdp_bytes:.0f} bytes give {rate:.4g} Mbit/s.",
            SEND_BUFFER: f"The send buffer binds: it keeps {self.send_window_bytes} bytes in flight of a BDP"
            f" of {self.bdp_bytes:.0f} bytes, which gives {rate:.4g} Mbit/s.",
            LOSS: f"Loss binds: the congestion window that it leaves gives {rate:.4g} Mbit/s.",
        }[self.limit]


def bbr_duty(rtt_s: float) -> float:
    """Return the share of the time that BBR sends at its rate.

    Every ten seconds it drains the path for 200 ms or one RTT, whichever is
    longer, and takes an RTT to fill it again: bbr_min_rtt_win_sec,
    bbr_probe_rtt_mode_ms in net/ipv4/tcp_bbr.c.
    """
    idle_s = max(_BBR_PROBE_RTT_S, rtt_s) + rtt_s
    return 1 - min(idle_s / _BBR_PROBE_RTT_EVERY_S, 0.5)


def predict(setting: Setting) -> Prediction:
    """Return the steady goodput that the settings should give.

    A window can be in flight once an RTT; the RTT is the base RTT and the
    serialisation of one packet at the bottleneck.
    """
    mss = path.mss_bytes(setting.mtu_bytes)
    link = setting.rate_bps * path.payload_share(setting.mtu_bytes)
    rtt_s = setting.rtt_s + path.queue_delay_s(setting.mtu_bytes, setting.rate_bps)
    window = windows.receive_window_bytes(
        setting.rmem.maximum, setting.release, setting.adv_win_scale, mss, setting.offloads
    )
    send_window = windows.send_window_bytes(setting.wmem.maximum, mss)
    bounds = {
        LINK: link,
        RECEIVE_WINDOW: setting.flows * window * 8 / rtt_s,
        SEND_BUFFER: setting.flows * send_window * 8 / rtt_s,
        LOSS: setting.flows
        * loss_model.rate_bound_bps(setting.cc, setting.loss, setting.rtt_s, mss, link / setting.flows),
    }
    limit = min(bounds, key=lambda name: (bounds[name], name != LINK))
    probes = setting.cc == "bbr" and setting.duration_s >= _BBR_PROBE_RTT_EVERY_S
    duty = bbr_duty(setting.rtt_s) if probes else 1.0
    return Prediction(
        bdp_bytes=path.bdp_bytes(setting.rate_bps, setting.rtt_s),
        window_bytes=window,
        send_window_bytes=send_window,
        bounds_bps={name: bound for name, bound in bounds.items() if math.isfinite(bound)},
        predicted_goodput_bps=bounds[limit] * duty,
        limit=limit,
    )
