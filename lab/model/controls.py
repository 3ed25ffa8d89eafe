"""What the model knows of each congestion control, under the kernel's own names.

beta: what is left of the congestion window after a loss. increase: segments a
round trip that the window of an AIMD control grows by. hystart: leaves slow
start when acknowledgements say that the path is full. rate_based: takes its
rate from what is delivered, not from loss. known: has a model of its own here;
the others are treated as Reno with their back-off, and predictions for them say
no more than that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Control:
    """One congestion control. source: where its back-off stands."""

    beta: float
    source: str
    increase: float = 1.0
    hystart: bool = False
    rate_based: bool = False
    known: bool = False


CONTROLS: Mapping[str, Control] = {
    "cubic": Control(717 / 1024, "RFC 9438; net/ipv4/tcp_cubic.c", hystart=True, known=True),
    "reno": Control(0.5, "RFC 5681; tcp_reno_ssthresh(), net/ipv4/tcp_cong.c", known=True),
    "bbr": Control(
        1.0, "Cardwell and others, CACM 60(2), 2017; net/ipv4/tcp_bbr.c", rate_based=True, known=True
    ),
    "bic": Control(819 / 1024, "net/ipv4/tcp_bic.c"),
    "dctcp": Control(0.5, "RFC 8257: without marks a loss halves, as with Reno"),
    "highspeed": Control(0.5, "RFC 3649: from 0.5, less at large windows"),
    "htcp": Control(0.5, "net/ipv4/tcp_htcp.c: from 0.5 to 0.8 by the RTTs seen"),
    "hybla": Control(0.5, "net/ipv4/tcp_hybla.c"),
    "illinois": Control(0.5, "net/ipv4/tcp_illinois.c: from 0.5 to 0.875 by the delay seen"),
    "lp": Control(0.5, "net/ipv4/tcp_lp.c"),
    "nv": Control(0.8, "net/ipv4/tcp_nv.c"),
    "scalable": Control(0.875, "net/ipv4/tcp_scalable.c"),
    "vegas": Control(0.5, "net/ipv4/tcp_vegas.c"),
    "veno": Control(0.5, "net/ipv4/tcp_veno.c: 0.8 where it takes the loss for chance"),
    "westwood": Control(0.5, "net/ipv4/tcp_westwood.c: to what the path was seen to carry"),
    "yeah": Control(0.5, "net/ipv4/tcp_yeah.c"),
}

_LIKE_RENO = Control(0.5, "taken as Reno")


def control(name: str) -> Control:
    """Return what is known of a congestion control; one without an entry is taken as Reno."""
    return CONTROLS.get(name, _LIKE_RENO)


def shared_beta(beta: float, flows: int) -> float:
    """Return what is left of all windows together after a drop that flows out of step share.

    As if the queue were longer by the root of their number (Appenzeller, Keslassy,
    McKeown, SIGCOMM 2004).
    """
    return 1 / (1 + (1 / beta - 1) / math.sqrt(flows))
