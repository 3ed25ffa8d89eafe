"""A trace: a link's rate over time as a file has it, and the steps of it that a shaper can follow.

Which shaper follows them, and how it is told, is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lab import units
from lab.errors import UserError
from lab.knobs import RATE_RANGE_BPS
from lab.traces import files

Instants = NDArray[np.int64]
Rates = NDArray[np.float64]
Steps = tuple[tuple[float, float], ...]
"""(seconds, bit/s), the first at 0, seconds rising, rates above 0; each rate holds until the next step."""

NS, MS_NS = 10**9, 10**6
DELIVERY_BYTES = 1514
"""What one packet delivery lets through: a full packet of an MTU of 1500, as a link counts it. In
mahimahi it is one too: 1504 bytes, with 4 of its tunnel (PACKET_SIZE, src/frontend/link_queue.hh)."""
FRAME_BYTES = 1514
"""A full packet on Ethernet with an MTU of 1500: what an outage in a CSV lets through."""
LONGEST_S = 1e6
"""Over eleven days. Whatever has later times counts from 1970, not from its own start."""
MOST_STEPS = 100_000
"""What one run can take: a command sets the shaper's rate at every step."""
RATE_RULE = (
    f"a rate lies between {units.format_rate(RATE_RANGE_BPS[0])} and {units.format_rate(RATE_RANGE_BPS[1])},"
    " or is 0 for an outage"
)

ALIKE = 1e-9
"""Relative difference below which two rates or amounts are one, after sums of many floats."""
_CHUNK = 4096


@dataclass(frozen=True, eq=False)
class Trace:
    """A trace as its file has it, with rates of 0 for outages.

    form: "csv" or "mahimahi". lines: how many of the file say something, a header not counted.
    starts_ns, rates_bps: shape (n,), read-only. The first start is 0; each rate holds until the next
    start, the last one until `period_ns`, or for ever where that is None.
    packet_bytes: what every step gets time for.
    longest_outage_s: the longest time at rate 0, or without a delivery.
    """

    name: str
    form: str
    lines: int
    starts_ns: Instants
    rates_bps: Rates
    period_ns: int | None
    packet_bytes: int
    longest_outage_s: float

    @property
    def period_s(self) -> float | None:
        """Seconds after which the trace begins anew; None for a CSV."""
        return None if self.period_ns is None else self.period_ns / NS

    @property
    def length_s(self) -> float:
        """Seconds that the file itself speaks of: its period, or its last time."""
        return (int(self.starts_ns[-1]) if self.period_ns is None else self.period_ns) / NS

    def upto(self, duration_s: float) -> Steps:
        """Return the steps of a run's first seconds; a trace with a period comes as often as it takes.

        A shaper cannot follow a rate of 0: it would wait for ever on the packet that it has begun. So
        every step has time for one packet at its rate. An outage of length G has the rate of one packet
        per G, and a shaper that has begun with one is done by its end. What goes through then is taken
        from what follows: at no instant have the steps let through a packet more, or less, than the
        trace. Neighbours with one rate are one step.
        Raises UserError where there are more than `MOST_STEPS`.
        """
        end_ns = whole_ns(duration_s)
        once = self._once(end_ns)
        if self.period_ns is None or len(once) == 1:
            return tuple((start_ns / NS, rate_bps) for start_ns, rate_bps in once)
        steps: list[tuple[float, float]] = []
        for base_ns in range(0, end_ns, self.period_ns):
            for start_ns, rate_bps in once:
                if base_ns + start_ns >= end_ns:
                    break
                if not (steps and _alike(rate_bps, steps[-1][1])):
                    steps.append(((base_ns + start_ns) / NS, rate_bps))
            self._check_steps(len(steps), end_ns)
        return tuple(steps)

    def _once(self, end_ns: int) -> list[tuple[int, float]]:
        """Return the steps (ns, bit/s) before an instant, without repetition."""
        steps: list[tuple[int, float]] = []
        for start_ns, rate_bps in _with_time_for(8 * self.packet_bytes, self._stretches()):
            if start_ns >= end_ns:
                break
            if not (steps and _alike(rate_bps, steps[-1][1])):
                steps.append((start_ns, rate_bps))
                self._check_steps(len(steps), end_ns)
        return steps

    def _check_steps(self, steps: int, end_ns: int) -> None:
        if steps > MOST_STEPS:
            duration = units.format_time(end_ns / NS)
            coarser = (
                f"convert it: wanlab trace convert {self.name} coarse.csv --duration {duration} --step 100ms"
            )
            raise UserError(
                f"{self.name}: has over {MOST_STEPS} steps within {duration}, more than a run takes; "
                f"{coarser if self.period_ns is None else 'take longer ones, such as trace_step=100ms'}"
            )

    def _stretches(self) -> Iterator[tuple[int, int, float]]:
        """Yield (start ns, end ns, bit/s) of one period, or of the whole CSV: that ends far away."""
        end_ns = int(self.starts_ns[-1]) + whole_ns(LONGEST_S) if self.period_ns is None else self.period_ns
        for first in range(0, len(self.starts_ns), _CHUNK):  # as lists, whose items are quick to get at
            starts = self.starts_ns[first : first + _CHUNK].tolist()
            ends = [*starts[1:], *self.starts_ns[first + _CHUNK :][:1].tolist()]
            rates = self.rates_bps[first : first + _CHUNK].tolist()
            yield from zip(starts, ends if len(ends) == len(starts) else [*ends, end_ns], rates, strict=True)

    def bits_until(self, instants_ns: Instants) -> Rates:
        """Return how many bits the link has let through from 0 to each instant."""
        before = np.zeros(len(self.starts_ns))  # in place: a trace may have millions of rates
        np.subtract(self.starts_ns[1:], self.starts_ns[:-1], out=before[1:], casting="unsafe")
        before[1:] *= self.rates_bps[:-1]
        before /= NS
        np.cumsum(before, out=before)

        def once(within_ns: Instants) -> Rates:
            which = np.searchsorted(self.starts_ns, within_ns, side="right") - 1
            bits: Rates = before[which] + self.rates_bps[which] * (within_ns - self.starts_ns[which]) / NS
            return bits

        if self.period_ns is None:
            return once(instants_ns)
        periods, within_ns = np.divmod(instants_ns, self.period_ns)
        return periods * once(np.array([self.period_ns])) + once(within_ns)

    def mean_bps(self, duration_s: float) -> float:
        """Return the mean rate of the first seconds, by the trace itself."""
        end_ns = whole_ns(duration_s)
        return float(self.bits_until(np.array([end_ns]))[0]) * NS / end_ns

    def over(self, duration_s: float) -> tuple[Instants, Rates]:
        """Return starts and rates of the first seconds as the trace has them, a period repeated.

        Raises UserError where they are too many to write.
        """
        end_ns = whole_ns(duration_s)
        times = 1 if self.period_ns is None else -(-end_ns // self.period_ns)
        files.check_lines(self.name, times * len(self.starts_ns))
        bases = np.repeat(np.arange(times) * (self.period_ns or 0), len(self.starts_ns))
        starts_ns = np.tile(self.starts_ns, times) + bases
        until = int(np.searchsorted(starts_ns, end_ns))
        return starts_ns[:until], np.tile(self.rates_bps, times)[:until]

    def sampled(self, duration_s: float, step_s: float) -> tuple[Instants, Rates]:
        """Return starts and mean rates of equal steps over the first seconds; the last may be shorter.

        Raises UserError where they are too many to write.
        """
        end_ns, step_ns = whole_ns(duration_s), whole_ns(step_s)
        files.check_lines(self.name, end_ns // step_ns)
        edges = np.append(np.arange(0, end_ns, step_ns), end_ns)
        return edges[:-1], np.diff(self.bits_until(edges)) * NS / np.diff(edges)


def _with_time_for(
    packet_bits: int, stretches: Iterable[tuple[int, int, float]]
) -> Iterator[tuple[int, float]]:
    """Yield (start ns, bit/s) of stretches (start ns, end ns, bit/s), each with time for one packet.

    A stretch that has no time for one, an outage above all, waits for the next. Both together have one
    rate if that is no faster than one packet in the time waited. Else the time waited gets just that
    packet, and the next stretch as much less. Either way their sum stays.
    """
    waiting: tuple[int, float] | None = None
    for start_ns, end_ns, rate_bps in stretches:
        begin_ns, bits, rate = start_ns, rate_bps * (end_ns - start_ns) / NS, rate_bps
        if waiting is not None:
            since_ns, waited_bits = waiting
            waited_ns = start_ns - since_ns
            bits += waited_bits
            if bits * waited_ns <= packet_bits * (end_ns - since_ns) * (1 + ALIKE):
                begin_ns = since_ns
            else:
                yield since_ns, packet_bits * NS / waited_ns
                bits -= packet_bits
            rate, waiting = bits * NS / (end_ns - begin_ns), None
        if bits < packet_bits * (1 - ALIKE):
            waiting = begin_ns, bits
        else:
            yield begin_ns, rate


def _alike(one: float, other: float) -> bool:
    return abs(one - other) <= ALIKE * other


def whole_ns(time_s: float) -> int:
    """Return the nearest nanosecond."""
    return round(time_s * NS)


def frozen(starts_ns: Instants, rates_bps: Rates) -> tuple[Instants, Rates]:
    """Return the arrays of a trace, read-only from now on."""
    starts_ns.flags.writeable = rates_bps.flags.writeable = False
    return starts_ns, rates_bps
