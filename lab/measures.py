"""What queues, competition and transfers come to, each in a number: pure functions of arrays and rows.

Rates bit/s, sizes bytes, times s, shares fractions. A measure without anything to
divide by is None, never 0. Not here: goodput and its steady part (`metrics`), and
the metrics of RFC 6349 (`model.rfc6349`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab.knobs import PATH_KNOBS
from lab.model import transfers

Floats = NDArray[np.float64]
Row = Mapping[str, Any]

QUANTILES = (0.5, 0.95, 0.99)
CONVERGENCE_TOLERANCE = 0.25
CONVERGENCE_WINDOWS = 5
CONVERGENCE_WINDOW_S = 1.0
CONVERGENCE_ROUND_TRIPS = 8
"""One cycle of BBR's probes; a window shorter than it sees the probe and not the rate."""


# the bottleneck


def utilisation(sent_bytes: float, rate_bps: float, span_s: float) -> float | None:
    """Return the share of a constant rate that was sent in a span: sent x 8 / (rate x span).

    sent_bytes: as the shaper counts, so headers and what is sent again are in it and a
    full link has 1; a little over it, by what the shaper's bucket held. None for no
    rate or no span. RFC 5166, section 2.1.1.
    """
    return utilisation_of(sent_bytes, rate_bps * span_s / 8)


def utilisation_of(sent_bytes: float, offered_bytes: float) -> float | None:
    """Return the share of what the link could have sent that it did; for a rate that varies.

    offered_bytes: the rate's integral over the span, in bytes. None where that is 0.
    """
    return sent_bytes / offered_bytes if offered_bytes > 0 else None


def queue_delays_s(
    t_s: Floats, backlog_bytes: Floats, rate_bps: Floats | float, end_s: float | None = None
) -> tuple[float | None, ...]:
    """Return median, 95th and 99th percentile of the queueing delay over time.

    backlog_bytes: what waited at each instant, shape (n,); it leaves at rate_bps, one
    for all or shape (n,), so a packet that comes then waits backlog x 8 / rate. Each
    sample holds until the next, the last to end_s. Instants with no rate have no
    delay and are left out; None each without any. RFC 8033 estimates it so too, by
    Little's law. Right for queues that send in order; of fair queueing it is the mean.
    """
    rates = np.broadcast_to(np.asarray(rate_bps, dtype=np.float64), t_s.shape)
    delays = np.full(t_s.shape, np.nan)
    np.divide(backlog_bytes * 8, rates, out=delays, where=rates > 0)
    return time_quantiles(t_s, delays, QUANTILES, end_s)


def retransmit_share(bytes_retrans: float, bytes_sent: float) -> float | None:
    """Return the share of the bytes sent that were sent again: tcpi_bytes_retrans / tcpi_bytes_sent.

    The second counts retransmissions too (tcpEStatsPerfHCDataOctetsOut, RFC 4898), so
    the share is at most 1. None where nothing was sent.
    """
    return bytes_retrans / bytes_sent if bytes_sent > 0 else None


# quantiles


def quantiles(
    values: Sequence[float | None], probabilities: Sequence[float] = QUANTILES
) -> tuple[float | None, ...]:
    """Return quantiles of values that count alike, such as one a transfer; None among them are left out.

    Linear between order statistics, as numpy, pandas and DuckDB have it: definition 7
    of Hyndman and Fan, The American Statistician 50(4), 1996. The 99th percentile of
    fewer than 100 values is little more than their largest. None each without any.
    """
    there = [value for value in values if value is not None and not math.isnan(value)]
    if not there:
        return (None,) * len(probabilities)
    return tuple(float(one) for one in np.quantile(np.array(there, dtype=np.float64), list(probabilities)))


def time_quantiles(
    t_s: Floats, values: Floats, probabilities: Sequence[float] = QUANTILES, end_s: float | None = None
) -> tuple[float | None, ...]:
    """Return quantiles over time of samples that hold until the next one.

    The least value that holds for that share of the time or that is not exceeded in
    it: definition 1 of Hyndman and Fan 1996, with spans for weights. t_s: rising,
    shape (n,); the last sample holds to end_s, without it for no time, and alone for
    all. NaN: not known; its span is left out. None each without any.
    """
    spans = np.diff(t_s, append=t_s[-1:] if end_s is None else max(end_s, float(t_s[-1])))
    there = ~np.isnan(values)
    values, spans = values[there], spans[there]
    if not len(values):
        return (None,) * len(probabilities)
    if spans.sum() <= 0:
        spans = np.ones_like(spans)
    order = np.argsort(values, kind="stable")
    held = np.cumsum(spans[order]) / spans.sum()
    held[-1] = 1.0
    places = np.searchsorted(held, np.array(probabilities) - 1e-12)
    return tuple(float(one) for one in values[order][places])


# fairness


def jain(rates: Sequence[float] | Floats) -> float | None:
    """Return Jain's index of fairness, (sum x)^2 / (n sum x^2): 1 for equal rates, k/n where k of n have all.

    Jain, Chiu, Hawe, DEC-TR-301, 1984. It has no unit and no direction: it does not say
    who loses. None without flows, or where none has any rate.
    """
    # by the largest, or squares of tiny rates vanish
    most = max(rates, default=0.0)
    if most <= 0:
        return None
    shares = np.asarray(rates, dtype=np.float64) / most
    return float(shares.sum() ** 2 / (len(shares) * (shares**2).sum()))


class Series(NamedTuple):
    """Values over time: t_s and values, shape (n,); NaN where there is none."""

    t_s: Floats
    values: Floats


def jain_over_time(t_s: Floats, delivered: Floats, window_s: float, alive: NDArray[np.bool_]) -> Series:
    """Return Jain's index of the flows' rates in each window, at the window's end.

    delivered: bytes by each instant, shape (flows, n); alive: whether a flow is on, same
    shape. A flow counts in a window that begins and ends while it is on; NaN where
    fewer than two do, since one alone is always fair. What is left of the time after
    the last whole window is left out.
    """
    count = int((t_s[-1] - t_s[0]) / window_s + 1e-9) if len(t_s) else 0
    if count == 0:
        return Series(np.empty(0), np.empty(0))
    edges = t_s[0] + window_s * np.arange(count + 1)
    sent = np.array([np.diff(np.interp(edges, t_s, one)) for one in delivered])
    values = np.full(count, np.nan)
    for number in range(count):
        inside = (t_s >= edges[number] - 1e-9) & (t_s <= edges[number + 1] + 1e-9)
        on = alive[:, inside].all(axis=1) if inside.any() else np.zeros(len(delivered), dtype=np.bool_)
        if on.sum() > 1:
            index = jain(sent[on, number])
            values[number] = np.nan if index is None else index
    return Series(edges[1:], values)


def convergence_s(
    t_s: Floats,
    delivered: Floats,
    join_s: float,
    fair_bps: float,
    *,
    end_s: float | None = None,
    rtt_s: float = 0.0,
    tolerance: float = CONVERGENCE_TOLERANCE,
) -> float | None:
    """Return how long after it joined a flow holds its fair share, s; None if it never does.

    The first instant from which its rate is within 25 % of fair_bps, the link's goodput
    by the number of flows, in each of five windows on end: as Dong and others, NSDI
    2015, have it, with windows of 1 s. Here a window is eight RTTs where that is
    longer. t_s, delivered: what it had delivered by each instant, shape (n,), rising.
    end_s: when the number of flows changes next, or the load ends; what is not held
    before that does not count. Instants are those of the samples.
    """
    windows = CONVERGENCE_WINDOWS
    window_s = max(CONVERGENCE_WINDOW_S, CONVERGENCE_ROUND_TRIPS * rtt_s)
    last_s = float(t_s[-1]) if end_s is None else min(end_s, float(t_s[-1]))
    starts = np.unique(np.append(t_s[t_s > join_s], join_s))
    starts = starts[starts + windows * window_s <= last_s + 1e-9]
    if not len(starts) or fair_bps <= 0:
        return None
    edges = starts[:, None] + window_s * np.arange(windows + 1)
    rates = np.diff(np.interp(edges, t_s, delivered), axis=1) * 8 / window_s
    held = (np.abs(rates - fair_bps) <= tolerance * fair_bps * (1 + 1e-9)).all(axis=1)
    return float(starts[held.argmax()] - join_s) if held.any() else None


class RttUnfairness(NamedTuple):
    """ratio: goodput of the shortest RTT by that of the longest; exponent: a of rate ~ RTT^-a."""

    ratio: float
    exponent: float


def rtt_unfairness(rates_bps: Sequence[float], rtts_s: Sequence[float]) -> RttUnfairness | None:
    """Return how far goodput falls with the base RTT; None with one RTT or where a flow has no rate.

    ratio: mean over the flows of the shortest RTT by the mean over those of the longest;
    over 1 if short RTTs win. exponent: slope of log rate over log RTT by least
    squares, its sign turned, over all flows: 0 for fair, 1 for equal windows, between 1
    and 2 for Reno on drop-tail queues (Lakshman and Madhow, ToN 5(3), 1997), under 0 if
    long RTTs win.
    """
    short, long = min(rtts_s, default=0.0), max(rtts_s, default=0.0)
    if short <= 0 or short == long or min(rates_bps) <= 0:
        return None
    by_rtt = list(zip(rtts_s, rates_bps, strict=True))
    best, worst = ([rate for rtt, rate in by_rtt if rtt == end] for end in (short, long))
    x, y = np.log(np.array(rtts_s)), np.log(np.array(rates_bps, dtype=np.float64))
    slope = float(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum())
    return RttUnfairness((sum(best) / len(best)) / (sum(worst) / len(worst)), -slope)


def share_by_control(goodputs: Sequence[float], ccs: Sequence[str]) -> dict[str, float]:
    """Return each congestion control's share of the goodput of all flows, by name.

    Ware and others, IMC 2019, call it the aggregate fraction of the link. Empty where
    nothing was delivered.
    """
    total = sum(goodputs)
    if total <= 0:
        return {}
    return {
        cc: sum(one for one, own in zip(goodputs, ccs, strict=True) if own == cc) / total
        for cc in sorted(set(ccs))
    }


# transfers


def slowdown(
    fct_s: float,
    size_bytes: float,
    rate_bps: float,
    rtt_s: float,
    mtu_bytes: int = 1500,
    round_trips: float = 0.5,
) -> float | None:
    """Return how many times the ideal a transfer took; 1 is the best there is.

    The ideal is the same size alone on the idle path at line rate: `transfers.ideal_s`,
    which has sources. round_trips: of propagation that fct_s holds; 0.5 from the first
    byte sent to the last one read, 1.5 with a handshake before. None for an ideal of 0.
    """
    ideal_s = transfers.ideal_s(size_bytes, rate_bps, rtt_s, mtu_bytes, round_trips)
    return fct_s / ideal_s if ideal_s > 0 else None


# harm


def harm(solo: float | None, with_others: float | None, more_is_better: bool = True) -> float | None:
    """Return what company costs a flow, as a share: 0 for nothing, 1 for all, under 0 where it gains.

    (solo - with) / solo for goodput, (with - solo) / with for delay and transfer times,
    so both end at 1. Ware, Mukerjee, Seshan, Sherry, HotNets 2019. None where either
    is not known or there is nothing to divide by.
    """
    if solo is None or with_others is None:
        return None
    best, worst = (solo, with_others) if more_is_better else (with_others, solo)
    return (best - worst) / best if best > 0 else None


class Harm(NamedTuple):
    """What a mix of controls costs one of them. goodput, delay: `harm` of each, None if not known."""

    point: str
    victim: str
    others: str
    goodput: float | None
    delay: float | None


def harms(rows: Sequence[Row], goodput: str = "goodput_bps", delay: str = "loaded_rtt_s") -> list[Harm]:
    """Return the harm to every congestion control of every mix among rows of the table `points`.

    A mix is a point whose knob cc names several (`bbr*2+cubic`, dealt to the flows in
    turn). It is held against the point with the same knobs, engine and seed and as
    many flows in which the victim is the only control: what its flows got among their
    own kind. So 0 means that the others take no more than the victim's own would, the
    bar that Ware and others, HotNets 2019, set for deployment; their harm itself is
    against a flow alone, which is another point. Goodput is a flow's mean, from column
    `goodput` and cc_shares; delay is of all flows. None each without such a point.
    """
    done = [row for row in rows if row.get("status", "done") == "done"]
    alone = {(_others(row), _dealt(row)): row for row in done}
    found = []
    for row in done:
        dealt = _dealt(row)
        controls = sorted(set(dealt))
        flows = int(row["flows"])
        for victim in controls if len(controls) > 1 else ():
            own = [number for number in range(flows) if dealt[number % len(dealt)] == victim]
            base = alone.get((_others(row), (victim,)))
            share = (row.get("cc_shares") or {}).get(victim)
            if base is None or share is None or not own or row[goodput] is None or base[goodput] is None:
                got, usual = None, None
            else:
                got, usual = share * row[goodput] / len(own), base[goodput] / flows
            found.append(
                Harm(
                    point=row["point"],
                    victim=victim,
                    others="+".join(cc for cc in controls if cc != victim),
                    goodput=harm(usual, got),
                    delay=harm(base.get(delay), row.get(delay), more_is_better=False) if base else None,
                )
            )
    return found


_IDENTITY = (*(name for name in PATH_KNOBS if name != "cc"), "engine", "seed")


def _dealt(row: Row) -> tuple[str, ...]:
    """Return the congestion controls of a point's flows, in turn; one if there is only one."""
    names = tuple(PATH_KNOBS["cc"].value(str(row["cc"])))
    return names if len(set(names)) > 1 else names[:1]


def _others(row: Row) -> tuple[Any, ...]:
    """Return all that identifies a point but its congestion control."""
    return tuple(row.get(name) for name in _IDENTITY)
