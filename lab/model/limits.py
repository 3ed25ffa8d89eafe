"""What can keep a flow from sending more: one word for each limit, the same in predictions and verdicts."""

from __future__ import annotations

from collections.abc import Mapping

LINK = "link"
RECEIVE_WINDOW = "receive_window"
SEND_BUFFER = "send_buffer"
LOSS = "loss"
QUEUE = "queue"
HYSTART = "hystart"
SLOW_START = "slow_start"
PACING = "pacing"
APPLICATION = "application"
MACHINE = "machine"

MEANINGS: Mapping[str, str] = {
    LINK: "the bottleneck is busy: only a faster link gives more",
    RECEIVE_WINDOW: "the receiver advertises no more",
    SEND_BUFFER: "the send buffer holds no more",
    LOSS: "the congestion window, cut by losses that no queue caused",
    QUEUE: "the congestion window, cut by drops of a bottleneck queue that is too short for it",
    HYSTART: "the congestion window, grown slowly since slow start was left before the path was full",
    SLOW_START: "the congestion window, still on its way up",
    PACING: "the sender's own pacing, with room left in every window",
    APPLICATION: "the application has nothing to send",
    MACHINE: "the machine that emulates (never in virtual time)",
}
"""Every limit in the order in which tables and figures show them."""

LIMITS = tuple(MEANINGS)
CONGESTION_WINDOW = frozenset({LOSS, QUEUE, HYSTART, SLOW_START})


def words(limit: str) -> str:
    """Return a limit as it stands in a sentence."""
    return {SLOW_START: "slow start", HYSTART: "HyStart"}.get(limit, limit.replace("_", " "))


def dominant(shares: Mapping[str, float]) -> str:
    """Return the limit with the largest share; of equals the first in `LIMITS`."""
    return max(LIMITS, key=lambda limit: (shares.get(limit, 0.0), -LIMITS.index(limit)))
