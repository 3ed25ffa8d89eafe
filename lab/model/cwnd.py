"""The congestion window of one flow over time: slow start, HyStart, growth, cuts, timeouts.

Reno and CUBIC as Linux has them; the others as Reno with their back-off. Stepped
by round trips, or by as many of them as change nothing.

Sources: RFC 5681 (slow start, Reno), RFC 9438 and net/ipv4/tcp_cubic.c of Linux
6.12 (CUBIC, HyStart), RFC 6937 (recovery), Padhye and others 2000 (timeouts).
"""

from __future__ import annotations

import math
import random

from lab.model.controls import Control, shared_beta
from lab.model.limits import HYSTART, LINK, LOSS, QUEUE, SLOW_START
from lab.model.path import BUSY_SHARE
from lab.model.route import AVOIDANCE_GAIN, INITIAL_WINDOW, SLOW_START_GAIN, Route, Step

CUBIC_C = 0.4
_RENO_FRIENDLY = 8 / 15
"""Growth of CUBIC's estimate of Reno, segments a round trip: beta_scale of tcp_cubic.c is 15."""

MOST_STEPS = 4000
MOST_CYCLES = 40
_SMALL_STEP = 0.02
"""Growth of the window that one step may bring, as a share of it."""

HYSTART_LOW_WINDOW = 16
HYSTART_ACK_DELTA_S = 2e-3
HYSTART_DELAY_S = (4e-3, 16e-3)


class Window:
    """The congestion window of one flow over time."""

    def __init__(self, route: Route, control: Control, name: str, chance: random.Random) -> None:
        self.route, self.control, self.cubic = route, control, name == "cubic"
        self.chance = chance
        self.cwnd = float(INITIAL_WINDOW)
        self.slow_start = True
        self.cause = HYSTART
        self.found: list[Step] = []
        self.left_s = route.duration_s
        self.cycles = 0
        self.last_max = 0.0
        self._new_epoch()

    def _new_epoch(self) -> None:
        self.epoch_s = 0.0
        self.origin = max(self.last_max, self.cwnd)
        self.k_s = ((self.origin - self.cwnd) / CUBIC_C) ** (1 / 3) if self.last_max > self.cwnd else 0.0
        self.reno = self.cwnd

    def run(self) -> list[Step]:
        """Return the steps of the whole transfer; what only repeats is not stepped through."""
        while self.left_s > 0 and len(self.found) < MOST_STEPS and self.cycles < MOST_CYCLES:
            if self._held():
                self._hold()
            elif self.slow_start:
                self._slow_start_round()
            else:
                self._avoidance_step()
        if self.left_s > 0 and self.found:
            self._repeat()
        return self.found

    def _held(self) -> bool:
        """Return whether a window other than cwnd holds the flow, until chance cuts cwnd, if ever."""
        grown = self.cwnd >= self.route.window * (2 if self.slow_start and self.route.loss > 0 else 1)
        return grown and self.route.spare(self.route.window, AVOIDANCE_GAIN) >= 0

    def _hold(self) -> None:
        """Let the time pass to the next loss, or to the end."""
        route = self.route
        if route.loss <= 0:
            self._add(self.left_s, route.window)
            return
        packets = math.log(1 - self.chance.random()) / math.log1p(-min(route.loss, 1 - 1e-12))
        gain = SLOW_START_GAIN if self.slow_start else AVOIDANCE_GAIN
        segments = max(packets, 1.0) * (route.burst(route.window, gain) if route.offloads else 1.0)
        span_s = segments * self._round_s(route.window) / route.window
        ends = span_s >= self.left_s
        self._add(span_s, route.window)
        if not ends:
            self._cut(LOSS, self.cwnd)

    def _repeat(self) -> None:
        """Fill what is left of the time with the mean of the latter half of the steps."""
        tail = self.found[len(self.found) // 2 :]
        span_s = sum(step.span_s for step in tail)
        factor = self.left_s / span_s
        self.found += [Step(s.span_s * factor, s.segments * factor, s.rtt_s, s.limit) for s in tail]
        self.left_s = 0.0

    def _round_s(self, window: float) -> float:
        """Return the round trip with so many segments in flight."""
        return max(self.route.rtt_s, window * self.route.segment_s)

    def _limit(self, window: float) -> str:
        route = self.route
        if route.loss >= 1:
            return LOSS
        if window >= route.pipe * BUSY_SHARE:
            return LINK
        if window >= route.window:
            return route.window_limit
        return SLOW_START if self.slow_start else self.cause

    def _add(self, span_s: float, window: float) -> float:
        """Let a stretch of time pass with a window in flight; return the segments that were sent."""
        window = min(window, self.route.window)
        round_s = self._round_s(window)
        span_s = min(span_s, self.left_s)
        segments = window / round_s * span_s
        self.found.append(Step(span_s, segments, round_s, self._limit(window)))
        self.left_s -= span_s
        return segments

    def _lost(self, segments: float, window: float) -> bool:
        """Return whether one of these segments is lost; with offloads a whole burst is lost as one."""
        loss = self.route.loss
        if loss <= 0:
            return False
        gain = SLOW_START_GAIN if self.slow_start else AVOIDANCE_GAIN
        packets = segments / self.route.burst(window, gain) if self.route.offloads else segments
        return loss >= 1 or self.chance.random() > math.exp(packets * math.log1p(-loss))

    def _slow_start_round(self) -> None:
        route, before = self.route, min(self.cwnd, self.route.window)
        sent = self._add(self._round_s(before), before)
        grown = before
        leaves = math.inf
        if self.control.hystart:
            leaves = self._hystart_after(before)
        # two segments for each one acknowledged: the queue takes what the link cannot
        overflow = max(0.0, route.spare(before, SLOW_START_GAIN))
        if self._lost(sent, before):
            self._cut(LOSS, self.cwnd)
            return
        if overflow < min(grown, leaves) and 2 * before > route.room:
            # noticed a round later, when the window has doubled once more
            top = before + overflow
            self._add(self._round_s(min(top, route.pipe + route.room)), min(top, route.pipe + route.room))
            self._cut(QUEUE, min(2 * top, top + route.pipe + route.room, 2 * route.window))
            return
        if leaves < grown:
            self.cwnd = before + leaves
            self.slow_start = False
            self._new_epoch()
        else:
            # cwnd grows while it is under twice what was ever in flight: tcp_is_cwnd_limited()
            self.cwnd = max(self.cwnd, min(self.cwnd + grown, 2 * route.window))

    def _hystart_after(self, window: float) -> float:
        """Return after how many acknowledgements of this round HyStart leaves slow start."""
        route = self.route
        if window + route.rtt_s / route.segment_s < HYSTART_LOW_WINDOW:
            return math.inf
        found = math.inf
        gap_s = route.segment_s / route.flows
        if gap_s <= HYSTART_ACK_DELTA_S:
            pacing = 2 * window * route.mss_bytes / self._round_s(window)
            threshold_s = (route.rtt_s + min(1e-3, 65536 * 4 / pacing)) / 2
            found = threshold_s / route.segment_s
        low, high = HYSTART_DELAY_S
        standing_s = max(0.0, window - route.pipe) * route.segment_s
        if standing_s > min(max(route.rtt_s / 8, low), high):
            found = min(found, 8.0)
        return max(found, HYSTART_LOW_WINDOW - window)

    def _avoidance_step(self) -> None:
        route = self.route
        in_flight = min(self.cwnd, route.window)
        round_s = self._round_s(in_flight)
        rounds = max(1.0, _SMALL_STEP * self.cwnd / self._growth())
        if self.cubic:
            rounds = max(1.0, min(rounds, max(self.k_s, 0.5) / 20 / round_s))
        if route.loss > 0:
            packets = in_flight / (route.burst(in_flight, AVOIDANCE_GAIN) if route.offloads else 1)
            rounds = max(1.0, min(rounds, 0.2 / (route.loss * packets)))
        rounds = min(rounds, max(1.0, self.left_s / round_s))
        limited = self.cwnd >= route.window
        sent = self._add(rounds * round_s, in_flight)
        if self._lost(sent, in_flight):
            self._cut(LOSS, self.cwnd)
            return
        if not limited:
            self._grow(rounds, round_s)
        if route.spare(min(self.cwnd, route.window), AVOIDANCE_GAIN) < 0:
            self._cut(QUEUE, self.cwnd)

    def _growth(self) -> float:
        """Return the segments by which the window grows in the next round trip."""
        if not self.cubic:
            return self.control.increase
        return max(self._cubic_window(1.0, self.route.rtt_s) - self.cwnd, _RENO_FRIENDLY)

    def _cubic_window(self, rounds: float, span_s: float) -> float:
        """Return CUBIC's window after so much more time; never under what it is."""
        at_s = self.epoch_s + span_s
        target = self.origin + CUBIC_C * (at_s - self.k_s) ** 3
        target = max(target, self.reno + _RENO_FRIENDLY * rounds, self.cwnd)
        if self.last_max == 0:
            target = max(target, self.cwnd * math.pow(1.05, rounds))
        return min(target, self.cwnd * math.pow(1.5, min(rounds, 100.0)))

    def _grow(self, rounds: float, round_s: float) -> None:
        if self.cubic:
            self.cwnd = self._cubic_window(rounds, rounds * round_s)
        else:
            self.cwnd += self.control.increase * rounds
        self.epoch_s += rounds * round_s
        self.reno += _RENO_FRIENDLY * rounds

    def _cut(self, cause: str, window: float) -> None:
        """Back off, as after a loss that was found; the round of recovery passes at the lower window."""
        self.cycles += 1
        self.cause = cause
        self.slow_start = False
        beta = self.control.beta
        if cause == QUEUE and self.route.flows > 1:
            beta = shared_beta(beta, self.route.flows)
        if self.cubic:
            falling = window < self.last_max
            self.last_max = window * (1 + self.control.beta) / 2 if falling else window
        self.cwnd = max(2.0, window * beta)
        self._add(self._round_s(min(self.cwnd, self.route.window)), self.cwnd)
        if cause == LOSS:
            self._time_out(window)
        self._new_epoch()

    def _time_out(self, window: float) -> None:
        """Let pass what a timeout costs, by its chance: Padhye and others, ToN 8(2), 2000, section II.

        A window of w segments has too few acknowledgements left with min(1, 3/w);
        the timer doubles while what it sends again is lost too. Linux's first is
        the tail loss probe's, two RTTs and 2 ms (RFC 8985, section 7.2).
        """
        chance, loss = min(1.0, 3 / window), min(self.route.loss, 0.99)
        doubled = sum((1, 1, 2, 4, 8, 16, 32)[n] * loss**n for n in range(7)) / (1 - loss)
        idle_s = chance * (2 * self.route.rtt_s + 2e-3) * doubled
        idle_s = min(idle_s, self.left_s)
        if idle_s > 0:
            self.found.append(Step(idle_s, 0.0, self.route.rtt_s, LOSS))
            self.left_s -= idle_s
