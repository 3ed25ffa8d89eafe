"""The rules: what each quantity in which two sides differ does to goodput, to the RTT, to losses.

Effects on goodput are natural logarithms of a ratio, so that they add up; on
RTTs seconds; on losses logarithms again. Goodput is window over RTT (RFC 6349,
section 3.3.1), that of a full link the payload's share of its rate, and under
random loss it falls with the loss's square root (Mathis and others, CCR 27(3),
1997). A rule that knows a direction and no amount says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lab.causes.sides import Effect, Side, grown
from lab.model.limits import (
    APPLICATION,
    HYSTART,
    LINK,
    LOSS,
    QUEUE,
    RECEIVE_WINDOW,
    SEND_BUFFER,
    SLOW_START,
)
from lab.model.path import payload_share
from lab.units import human_rate, human_size

Rule = Callable[[Side, Side], Effect | None]

BUSY_FROM = 0.8
"""Of a CPU's time: from here things begin to wait for it."""
LATE_FROM_S = 0.5e-3
"""How late timers are, at the 99th percentile, before they count."""
LEAST_LOSS = 1e-6
"""A share of bytes under this is as good as none."""


# sentences


def _two(what: str, a: Side, b: Side, x: str, y: str, so: str) -> str:
    return f"the {what} is {y} in {b.name} and {x} in {a.name}: {so}"


def _bound(what: str, a: Side, b: Side, x: float, y: float, so: str) -> str:
    return f"{what} {_percent(y)} of the transfer in {b.name} and {_percent(x)} in {a.name}: {so}"


def _ms(time_s: float) -> str:
    return f"{time_s * 1e3:.4g} ms"


def _percent(share: float) -> str:
    return f"{share * 100:.3g} %"


def _more(amount: float, more: str, less: str) -> str:
    return more if amount > 0 else less


# rules of goodput


def _rate(a: Side, b: Side) -> Effect | None:
    """A link of another rate, as far as the link was the limit."""
    x, y = (side.number("measured_rate_bps") or side.number("rate_bps") for side in (a, b))
    if not x or not y or abs(grown(x, y)) < 0.002:
        return None
    held = max(a.shares(LINK), b.shares(LINK))
    told = _two("rate", a, b, human_rate(x), human_rate(y), _more(y - x, "a faster link", "a slower link"))
    return Effect(grown(x, y) * held, told)


def _packets(a: Side, b: Side) -> Effect | None:
    """Packets of another size, of which headers take another share."""
    x, y = (side.number("mtu") for side in (a, b))
    if not x or not y or x == y:
        return None
    rise = grown(payload_share(int(x)), payload_share(int(y)))
    told = _two("MTU", a, b, f"{x:.0f} bytes", f"{y:.0f} bytes", "headers take another share")
    return Effect(rise * max(a.shares(LINK), b.shares(LINK)), told)


def _windowed(a: Side, b: Side) -> float:
    """Return the share of the transfer in which goodput followed a window and so the RTT."""
    return 1 - min(a.shares(LINK), b.shares(LINK))


def _base_rtt(a: Side, b: Side) -> Effect | None:
    """Another base RTT, as far as a window was the limit."""
    x, y = a.number("rtt_s"), b.number("rtt_s")
    if not x or not y or abs(grown(x, y)) < 0.005:
        return None
    told = _two("base RTT", a, b, _ms(x), _ms(y), _more(y - x, "a longer path", "a shorter path"))
    return Effect(-grown(x, y) * _windowed(a, b), told)


def _wait(a: Side, b: Side) -> Effect | None:
    """More or less waiting on the way, as far as a window was the limit."""
    rtts = [(side.number("loaded_rtt_s"), side.number("rtt_s")) for side in (a, b)]
    (x, x_base), (y, y_base) = rtts
    if not x or not y or not x_base or not y_base:
        return None
    rise = grown(x, y) - grown(x_base, y_base)
    if abs(rise) < 0.01:
        return None
    told = _two("RTT under load", a, b, _ms(x), _ms(y), _more(rise, "a longer queue", "a shorter queue"))
    return Effect(-rise * _windowed(a, b), told)


def _window(a: Side, b: Side) -> Effect | None:
    """Another receive window, as far as it was the limit."""
    return _sized(
        a,
        b,
        "window_bytes",
        "largest receive window",
        RECEIVE_WINDOW,
        ("a larger window", "a smaller window"),
    )


def _send_buffer(a: Side, b: Side) -> Effect | None:
    """Another send buffer, as far as it was the limit."""
    return _sized(a, b, "sndbuf_bytes", "largest send buffer", SEND_BUFFER, ("a larger one", "a smaller one"))


def _sized(a: Side, b: Side, name: str, what: str, limit: str, words: tuple[str, str]) -> Effect | None:
    x, y = a.observed.get(name), b.observed.get(name)
    held = max(a.shares(limit), b.shares(limit))
    if not x or not y or abs(grown(x, y)) < 0.01 or not held:
        return None
    so = _more(y - x, *words)
    if a.text("kernel_release") != b.text("kernel_release"):
        so += f" (Linux {b.text('kernel_release')} and {a.text('kernel_release')})"
    return Effect(grown(x, y) * held, _two(what, a, b, human_size(x), human_size(y), so))


def _loss(a: Side, b: Side) -> Effect | None:
    """More or less of what was sent was lost, as far as cuts of the congestion window were the limit."""
    x, y = a.number("retransmit_share"), b.number("retransmit_share")
    if x is None or y is None:
        return None
    rise = grown(max(x, LEAST_LOSS), max(y, LEAST_LOSS))
    held = max(a.shares(LOSS, QUEUE), b.shares(LOSS, QUEUE))
    if abs(rise) < 0.1 or not held:
        return None
    told = _two(
        "share of bytes sent again",
        a,
        b,
        _percent(x),
        _percent(y),
        _more(y - x, "more loss", "less loss"),
    )
    return Effect(-0.5 * rise * held, told)


def _shares(limit: str, what: str, so: str, weight: float) -> Rule:
    """Return the rule on a limit that bound one side for longer. weight: goodput that its time costs."""

    def rule(a: Side, b: Side) -> Effect | None:
        x, y = a.shares(limit), b.shares(limit)
        if abs(y - x) < 0.02:
            return None
        told = _bound(what, a, b, x, y, so)
        return Effect(-weight * (y - x), told)

    return rule


def _busy(a: Side, b: Side) -> Effect | None:
    """A machine that had its hands full. In virtual time there is none."""
    x, y = (side.number("cpu_busy") or 0.0 for side in (a, b))
    if max(x, y) < BUSY_FROM or abs(y - x) < 0.05:
        return None
    busier = b if y > x else a
    softirq = busier.number("cpu_softirq")
    packets = f", {_percent(softirq)} with packets" if softirq is not None else ""
    told = f"the busiest CPU of {busier.name} worked {_percent(max(x, y))} of the time{packets}"
    other = a if busier is b else b
    least = other.number("cpu_busy")
    if least is not None:
        told += f", of {other.name} {_percent(least)}"
    elif other.text("engine") == "virtual":
        told += f"; {other.name} ran in virtual time"
    return Effect(-(y - x), f"{told}: the machine, not the network", sure=False)


def _reordering(a: Side, b: Side) -> Effect | None:
    """Segments that overtook others, for which a sender slows down."""
    x, y = a.observed.get("reordered"), b.observed.get("reordered")
    if x is None or y is None or abs(grown(x + 10, y + 10)) < 1:
        return None
    told = _two(
        "number of segments that overtook others",
        *(a, b, f"{x:.0f}", f"{y:.0f}"),
        _more(y - x, "more reordering", "less reordering"),
    )
    return Effect(x - y, told, sure=False)


def _load(a: Side, b: Side) -> Effect | None:
    """A load of another length, of which the start takes another part."""
    x, y = a.number("load_s"), b.number("load_s")
    if not x or not y or abs(grown(x, y)) < 0.05:
        return None
    told = _two(
        "the length of the load", a, b, f"{x:.4g} s", f"{y:.4g} s", "the start takes another part of it"
    )
    return Effect(y - x, told, sure=False)


OF_THE_START = frozenset({"slow_start", "load"})

OF_GOODPUT: Sequence[tuple[str, Rule]] = (
    ("rate", _rate),
    ("packets", _packets),
    ("base_rtt", _base_rtt),
    ("queue", _wait),
    ("receive_window", _window),
    ("send_buffer", _send_buffer),
    ("loss", _loss),
    ("slow_start", _shares(SLOW_START, "slow start took", "another start", 0.7)),
    ("hystart", _shares(HYSTART, "the way up after an early end of slow start took", "another start", 0.5)),
    ("short_queue", _shares(QUEUE, "drops of the queue bound", "a queue that drops sooner or later", 0.3)),
    ("application", _shares(APPLICATION, "the application's own pauses took", "other pauses", 1.0)),
    ("reordering", _reordering),
    ("load", _load),
    ("machine", _busy),
)


# rules of the RTT under load


def _base_in_rtt(a: Side, b: Side) -> Effect | None:
    """Another base RTT, all of which is in the RTT under load."""
    x, y = a.number("rtt_s"), b.number("rtt_s")
    if x is None or y is None or abs(y - x) < 2e-6:
        return None
    told = _two("base RTT", a, b, _ms(x), _ms(y), _more(y - x, "a longer path", "a shorter path"))
    return Effect(y - x, told)


def _longest_wait(a: Side, b: Side) -> Effect | None:
    """A queue that lets more or fewer packets wait."""
    waits = []
    for side in (a, b):
        peak, base = side.observed.get("peak_rtt_s"), side.number("rtt_s")
        if peak is None or base is None:
            return None
        waits.append(max(0.0, peak - base))
    x, y = waits
    if abs(y - x) < 0.05 * max(x, y):
        return None
    told = _two(
        "longest wait on the way", a, b, _ms(x), _ms(y), _more(y - x, "a longer queue", "a shorter queue")
    )
    return Effect(y - x, told)


def _slower(a: Side, b: Side) -> Effect | None:
    """The same bytes wait longer before a slower link: as many as waited in the mean of both."""
    x, y = (side.number("measured_rate_bps") or side.number("rate_bps") for side in (a, b))
    if not x or not y or abs(grown(x, y)) < 0.005:
        return None
    waited = []
    for side, rate_bps in ((a, x), (b, y)):
        loaded_s, base_s = side.number("loaded_rtt_s"), side.number("rtt_s")
        if loaded_s is None or base_s is None:
            return None
        waited.append(max(0.0, loaded_s - base_s) * rate_bps)
    so = _more(y - x, "a queue drains faster", "a queue drains more slowly")
    told = _two("rate", a, b, human_rate(x), human_rate(y), so)
    return Effect((waited[0] + waited[1]) / 2 * (1 / y - 1 / x), told)


def _emptier(a: Side, b: Side) -> Effect | None:
    """A link that is not full has no queue."""
    x, y = a.shares(LINK), b.shares(LINK)
    if abs(y - x) < 0.1:
        return None
    so = _more(y - x, "a full link has a queue", "a link that is not full has none")
    return Effect(y - x, _bound("the link bound", a, b, x, y, so), sure=False)


def _timers(a: Side, b: Side) -> Effect | None:
    """Timers that were late, and delay lines with them. In virtual time none is."""
    x, y = (side.number("timer_late_s") or 0.0 for side in (a, b))
    if max(x, y) < LATE_FROM_S:
        return None
    later, late_s = (b, y) if y > x else (a, x)
    told = f"one timer in a hundred was {_ms(late_s)} late in {later.name}: the machine, not the network"
    return Effect(y - x, told)


OF_RTT: Sequence[tuple[str, Rule]] = (
    ("base_rtt", _base_in_rtt),
    ("queue", _longest_wait),
    ("rate", _slower),
    ("link", _emptier),
    ("timers", _timers),
    ("machine", lambda a, b: _turned(_busy(a, b))),
)


def _turned(effect: Effect | None) -> Effect | None:
    """Return an effect with the other sign: what costs goodput adds to RTTs and losses."""
    return None if effect is None else effect._replace(amount=-effect.amount)


# rules of losses


def _drops(a: Side, b: Side) -> Effect | None:
    """More or fewer drops at the bottleneck's queue, where that was recorded."""
    x, y = a.number("queue_drops"), b.number("queue_drops")
    again = [side.number("retransmits") for side in (a, b)]
    if x is None or y is None or None in again or abs(grown(x + 1, y + 1)) < 0.1:
        return None
    told = _two(
        "number of packets that the queue dropped",
        *(a, b, f"{x:.0f}", f"{y:.0f}"),
        _more(y - x, "more congestion loss", "less congestion loss"),
    )
    of_all = max(x, y) / max(1.0, *(one or 0.0 for one in again), x, y)
    return Effect(grown(x + 1, y + 1) * of_all, told)


def _shorter(a: Side, b: Side) -> Effect | None:
    """A shorter queue overflows more often."""
    effect = _longest_wait(a, b)
    return None if effect is None else Effect(-effect.amount, effect.sentence, sure=False)


def _sent_more(a: Side, b: Side) -> Effect | None:
    """More was sent, so more is lost."""
    x, y = a.number("delivered_bytes"), b.number("delivered_bytes")
    if not x or not y or abs(grown(x, y)) < 0.05:
        return None
    told = _two("load", a, b, human_size(x), human_size(y), _more(y - x, "more to lose", "less to lose"))
    return Effect(grown(x, y), told)


OF_LOSSES: Sequence[tuple[str, Rule]] = (
    ("drops", _drops),
    ("queue", _shorter),
    ("delivered", _sent_more),
    ("reordering", lambda a, b: _turned(_reordering(a, b))),
    ("machine", lambda a, b: _turned(_busy(a, b))),
)
