"""How long a run has to last, whether its packets go one by one, and what buffer is ample. Runs nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from lab import memory, units
from lab.advise.ask import MIB, Ask, Case, text_of
from lab.model.path import mss_bytes
from lab.model.predict import predict
from lab.setting import queue_bytes, setting

LEAST_S = 3.0
LEAST_ROUND_TRIPS = 60
"""Slow start and autotuning take 15 round trips from ten segments to 10 Gbit/s x 80 ms (measured: 1.2 s), and
the steady part is to be most of a run."""
LEAST_PACKETS = 1500
"""On a slow link few packets are in a second; one more or less in the steady part is then under 0.1 %."""
PROBE_RTT_S = 20.0
"""BBR drains the path every ten seconds: two of its cycles. bbr_min_rtt_win_sec, net/ipv4/tcp_bbr.c."""
LOSS_EVENTS = 12
"""Random losses that a run has to see before its mean says something; more would take minutes a run."""
GROWTH_CYCLES = 5
"""Times that CUBIC climbs back to where it lost, where a short queue makes it lose: K of RFC 9438."""
SHORT_QUEUE_BDP = 0.5

MOST_SINGLE_PACKETS = 2e6
"""Packets of one run that go singly: about 7 s of a CPU, at 3.3 us each (docs/speed.md)."""
MOST_PROOF_PACKETS = 6e6
"""The same for the few runs that prove the result, and where single losses count."""
MOST_MERGED_PACKETS = 3e7
"""The same with offloads on: about 10 s."""
LONGEST_S = 3600.0
AMPLE_PIPES = 4


@dataclass(frozen=True)
class Effort:
    """duration_s: of the load; offloads: whether segments are merged on their way."""

    duration_s: float
    offloads: bool

    @property
    def knobs(self) -> Mapping[str, str]:
        """As knobs of a point."""
        return {
            "duration": units.format_time(self.duration_s),
            "offloads": "on" if self.offloads else "off",
        }

    def longer(self) -> Effort:
        """Return the same over twice the time."""
        return replace(self, duration_s=min(LONGEST_S, 2 * self.duration_s))


def ample_bytes(ask: Ask, case: Case, which: str) -> int:
    """Return a largest buffer that cannot bind on this path, as far as there are such.

    Four times what the path and its queue hold, of which the least share that a
    kernel makes a window (half) is twice that; whole MiB, never under the
    kernel's own default. Where losses hold the window down, twice the path: more
    than a window of the whole path is then never of use.
    """
    pipe = AMPLE_PIPES * (ask.bdp_bytes + min(queue_bytes(ask.point(case)), 4 * ask.bdp_bytes + 2**24))
    if ask.loss > 0 and case.cc != "bbr":
        pipe = 2 * ask.bdp_bytes
    size = max(memory.DEFAULTS[which].maximum, math.ceil(pipe / MIB) * MIB)
    return min(size, memory.LARGEST_BYTES // MIB * MIB)


def effort(ask: Ask, case: Case) -> Effort:
    """Return how to run a case: as long as it takes to become steady, as exactly as a minute allows."""
    texts = {which: text_of(ample_bytes(ask, case, which)) for which in ("rmem", "wmem")}
    point = ask.point(case, **texts)
    made = predict(replace(setting(point, case.release), duration_s=math.inf))
    packets_s = max(made.predicted_goodput_bps, ask.rate_bps * 1e-4) / 8 / mss_bytes(ask.mtu_bytes)
    duration_s = max(LEAST_S, LEAST_ROUND_TRIPS * ask.rtt_s, LEAST_PACKETS * 8 * ask.mtu_bytes / ask.rate_bps)
    if case.cc == "bbr":
        duration_s = max(duration_s, PROBE_RTT_S)
    wanted_s = 0.0
    if ask.loss > 0:
        wanted_s = LOSS_EVENTS / (ask.loss * packets_s / ask.flows)
    if queue_bytes(point) < SHORT_QUEUE_BDP * ask.bdp_bytes:
        segments = ask.bdp_bytes / ask.mtu_bytes / ask.flows
        wanted_s = max(wanted_s, GROWTH_CYCLES * (segments * 0.3 / 0.4) ** (1 / 3))
    duration_s = max(duration_s, min(wanted_s, MOST_MERGED_PACKETS / packets_s))
    duration_s = min(LONGEST_S, round_up(duration_s))
    # a loss takes a merged segment whole: to who answers each one that is fewer losses than were asked for
    counts = ask.loss > 0 and case.cc != "bbr"
    most = MOST_PROOF_PACKETS if counts else MOST_SINGLE_PACKETS
    return Effort(duration_s, offloads=duration_s * packets_s > most)


def round_up(time_s: float) -> float:
    """Return the next time of two digits, so that a command and a table read well."""
    unit = 10.0 ** (math.floor(math.log10(time_s)) - 1)
    return float(f"{math.ceil(time_s / unit - 1e-9) * unit:.12g}")


def packets(goodput_bps: float, how: Effort, mtu_bytes: int) -> float:
    """Return the packets of a run that goes at a goodput."""
    return goodput_bps * how.duration_s / 8 / mss_bytes(mtu_bytes)


def exact(ask: Ask, case: Case, how: Effort) -> Effort:
    """Return how to prove: packet by packet over half the time where that is affordable.

    Not where losses decide, which would be others over another time.
    """
    if ask.loss > 0 or queue_bytes(ask.point(case)) < SHORT_QUEUE_BDP * ask.bdp_bytes:
        return how
    single = Effort(round_up(how.duration_s / 2), offloads=False)
    affordable = packets(ask.capacity_bps, single, ask.mtu_bytes) <= MOST_PROOF_PACKETS
    return single if how.offloads and affordable else how
