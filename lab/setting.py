"""What the model needs to know of a point: knobs in, `Setting` out. No engine, no prediction."""

from __future__ import annotations

from lab.model.predict import Setting
from lab.model.windows import Release
from lab.sweep import Point


def setting(point: Point, release: Release) -> Setting:
    """Return what the model needs to know of a point."""
    scale = point.value("adv_win_scale")
    return Setting(
        rate_bps=point.rate_bps,
        rtt_s=point.rtt_s,
        release=release,
        rmem=point.triple("rmem"),
        wmem=point.triple("wmem"),
        adv_win_scale=1 if scale is None else int(str(scale)),
        mtu_bytes=point.mtu_bytes,
        offloads=point.offloads,
        cc=point.knobs["cc"],
        loss=float(str(point.value("loss"))),
        flows=int(point.knobs["flows"]),
        duration_s=point.duration_s,
    )
