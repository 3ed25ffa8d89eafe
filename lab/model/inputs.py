"""What a prediction needs to know of a point: settings only, nothing measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from lab import memory


class Release(NamedTuple):
    """A kernel version as far as the rules ask."""

    major: int
    minor: int

    @classmethod
    def parse(cls, release: str) -> Release:
        """Return the version of `6.12`, `6.12.117` or `6.12@1000`. Raises ValueError."""
        parts = release.split("@", maxsplit=1)[0].split("-", maxsplit=1)[0].split(".")
        return cls(int(parts[0]), int(parts[1]))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


@dataclass(frozen=True)
class Setting:
    """Rates bit/s, times s, sizes bytes, loss a fraction.

    rmem, adv_win_scale, app_win, moderate_rcvbuf, rcvbuf, rmem_max: the
    receiver's; wmem, sndbuf, wmem_max, notsent_lowat: the sender's. rcvbuf and
    sndbuf: what the application asks for by SO_RCVBUF and SO_SNDBUF, None where
    it does not. tcp_mem_bytes: for all sockets of a kernel, None for ample.
    queue_bytes: what may wait at the bottleneck, None for more than ever waits.
    duration_s: infinity for the long run; bytes_each: of a flow that ends by
    itself, None for one that lasts.
    """

    rate_bps: float
    rtt_s: float
    release: Release
    rmem: memory.Triple = memory.DEFAULTS["rmem"]
    wmem: memory.Triple = memory.DEFAULTS["wmem"]
    adv_win_scale: int = 1
    app_win: int = 31
    moderate_rcvbuf: bool = True
    rcvbuf_bytes: int | None = None
    sndbuf_bytes: int | None = None
    rmem_max_bytes: int = memory.CORE_MAX_BYTES
    wmem_max_bytes: int = memory.CORE_MAX_BYTES
    notsent_lowat_bytes: int | None = None
    tcp_mem_bytes: int | None = None
    mtu_bytes: int = 1500
    offloads: bool = False
    cc: str = "cubic"
    loss: float = 0.0
    flows: int = 1
    queue_bytes: float | None = None
    duration_s: float = math.inf
    bytes_each: int | None = None
