"""How packets get lost on a link: the grammar of the knob `loss`, and what share a model loses.

    0.1%                       each packet by itself, with that probability
    ge:P:R[:1-H[:1-K]]         Gilbert-Elliott: from good to bad with P, back with R;
                               lost in bad with 1-H (100%), in good with 1-K (0%)
    state:P13:P31:P32:P23:P14  netem's Markov chain of four states
    list:5+17+100              just these data packets, counted from 1

Sources: tc-netem(8); Gilbert, "Capacity of a burst-noise channel", 1960;
Elliott, 1963; Salsano et al., "Definition of a general and intuitive loss model
for packet networks and its implementation in the Netem module", 2012.
"""

from __future__ import annotations

from typing import NamedTuple

from lab import units
from lab.errors import UnitError
from lab.values import fields, parts

MOST_DROPS = 100_000
_GE_REST = (1.0, 0.0)
_STATE_REST = (1.0, 0.0, 1.0, 0.0)
"""Of p31, p32, p23 and p14 what is not given; p31 alone left out makes it random loss."""


class Loss(NamedTuple):
    """kind: "random", "ge", "state" or "list"; numbers: probabilities, or the packets of a list."""

    kind: str
    numbers: tuple[float, ...]

    @property
    def share(self) -> float:
        """Of the packets that get lost in the long run; of a list none do.

        Gilbert-Elliott: the chain is in bad for p / (p + r) of the packets. The
        four states: both that lose, from the balance of the chain's arrows
        (Salsano et al., section 2): 1 receives, 2 receives within a burst, 3
        loses within a burst, 4 loses alone.
        """
        if self.kind == "random":
            return self.numbers[0]
        if self.kind == "ge":
            p, r, lost_bad, lost_good = self.numbers
            bad = p / (p + r) if p + r else 0.0
            return bad * lost_bad + (1 - bad) * lost_good
        if self.kind == "state":
            p13, p31, p32, p23, p14 = self.numbers
            two = p32 / p23 if p23 else 0.0
            three = p13 / p31 if p31 else 0.0
            total = 1 + three * (1 + two) + p14
            return (three + p14) / total
        return 0.0

    @property
    def egress(self) -> float | dict[str, object]:
        """As `lab.qdisc.loss_words` takes it."""
        return (
            self.numbers[0] if self.kind == "random" else {"kind": self.kind, "numbers": list(self.numbers)}
        )


def parse(text: str) -> Loss:
    """Return a loss. Raises UnitError."""
    kind, colon, rest = text.strip().partition(":")
    if not colon:
        return Loss("random", (units.parse_probability(text),))
    if kind == "list":
        return Loss("list", _packets(rest))
    if kind == "ge":
        given = tuple(units.parse_probability(part) for part in fields(rest, "ge:1%:10%", 1, 4))
        if len(given) == 1:
            given = (*given, 1 - given[0])  # which is random loss, tc-netem(8)
        return Loss("ge", (*given, *_GE_REST[len(given) - 2 :]))
    if kind == "state":
        every = fields(rest, "state:1%:10%:20%:50%:0.1%", 1, 5)
        given = tuple(units.parse_probability(part) for part in every)
        if len(given) == 1:
            given = (*given, 1 - given[0])
        return Loss("state", (*given, *_STATE_REST[len(given) - 1 :]))
    raise UnitError(
        f"{text!r} is not a loss; write a probability (0.1%), ge:1%:10%, state:1%:10%:20%:50%:0.1%"
        " or list:5+17"
    )


def _packets(text: str) -> tuple[int, ...]:
    named = parts(text, "numbers of packets")
    if len(named) > MOST_DROPS:
        raise UnitError(
            f"'list:...' names {len(named)} packets; at most {MOST_DROPS} can be dropped by number"
        )
    numbers = sorted({units.parse_count(part) for part in named})
    if numbers[0] < 1:
        raise UnitError(f"'list:{text[:40]}': packets are counted from 1; leave {numbers[0]} out")
    return tuple(numbers)


def show(loss: Loss) -> str:
    """Return the canonical spelling."""
    if loss.kind == "random":
        return units.format_probability(loss.numbers[0])
    if loss.kind == "list":
        return "list:" + "+".join(str(number) for number in loss.numbers)
    return f"{loss.kind}:" + ":".join(units.format_probability(number) for number in loss.numbers)
