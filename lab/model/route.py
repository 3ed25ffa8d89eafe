"""What one flow meets on its way, and the steps in which its transfer is followed.

Windows in segments of one flow, times in s, rates in segments/s; the bottleneck
holds `pipe` segments of the flow on its way and `room` more in its queue.
"""

from __future__ import annotations

from dataclasses import dataclass

from lab.model.path import ACCESS_FACTOR
from lab.model.sendbuf import LARGEST_SKB_BYTES

INITIAL_WINDOW = 10
"""Segments, RFC 6928; TCP_INIT_CWND."""

SLOW_START_GAIN, AVOIDANCE_GAIN = 2.0, 1.2
"""tcp_pacing_ss_ratio and tcp_pacing_ca_ratio."""


@dataclass(frozen=True)
class Route:
    """What one flow meets. segment_s: time of a segment at its share of the bottleneck.

    rtt_s: round trip of a segment that waits for nothing but itself; room:
    segments that its share of the queue holds; window: segments that receive
    window and send buffer let into flight; window_limit: which of the two;
    window_burst: segments in the largest burst of a flow that it limits.
    """

    segment_s: float
    rtt_s: float
    room: float
    window: float
    window_limit: str
    loss: float
    flows: int
    mss_bytes: int
    duration_s: float
    offloads: bool
    window_burst: float

    @property
    def pipe(self) -> float:
        """Segments of this flow on their way when the link is just busy."""
        return self.rtt_s / self.segment_s

    def burst(self, window: float, gain: float) -> float:
        """Return the segments of one burst at a pacing gain: tcp_tso_autosize(), see `sendbuf.tso_bytes`."""
        round_s = max(self.rtt_s, window * self.segment_s)
        shift = int(self.rtt_s * 1e6) >> 9
        size = gain * window * self.mss_bytes / round_s / 1024
        size += LARGEST_SKB_BYTES >> shift if shift < 31 else 0
        most = max(2.0, min(LARGEST_SKB_BYTES / self.mss_bytes, window / 3))
        return min(max(size / self.mss_bytes, 2.0), most)

    def spare(self, window: float, gain: float) -> float:
        """Return the segments that the queue still takes with this window in flight; negative for drops.

        A burst comes at `ACCESS_FACTOR` times the link's rate, so it needs nearly as much room as it is long.
        """
        burst = self.burst(window, gain)
        if window >= self.window:
            burst = max(burst, self.window_burst)
        return self.room - max(0.0, window - self.pipe) - (burst - 1) * (1 - 1 / ACCESS_FACTOR)


@dataclass(frozen=True)
class Step:
    """A stretch of time in which nothing much changes."""

    span_s: float
    segments: float
    rtt_s: float
    limit: str


def until(course: list[Step], segments: float) -> list[Step]:
    """Return a course as far as it takes to deliver so many segments."""
    found: list[Step] = []
    left = segments
    for step in course:
        if step.segments >= left:
            share = left / step.segments
            return [*found, Step(step.span_s * share, left, step.rtt_s, step.limit)]
        left -= step.segments
        found.append(step)
    return found
