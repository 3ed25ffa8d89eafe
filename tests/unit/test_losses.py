"""How packets get lost: the grammar of a loss, and the share that a model loses, against the model itself."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import losses
from lab.errors import UnitError
from lab.losses import Loss

PACKETS = 200_000
SHARES = st.floats(0.02, 0.98)


def gilbert_elliott(numbers: tuple[float, ...], chance: random.Random) -> Iterator[bool]:
    """Yield whether each packet is lost: loss_gilb_ell(), net/sched/sch_netem.c."""
    p, r, lost_bad, lost_good = numbers
    bad = False
    while True:
        if bad:
            bad = not chance.random() < r
            yield chance.random() < lost_bad
        else:
            bad = chance.random() < p
            yield chance.random() < lost_good


def four_states(numbers: tuple[float, ...], chance: random.Random) -> Iterator[bool]:
    """Yield whether each packet is lost: loss_4state(), net/sched/sch_netem.c."""
    p13, p31, p32, p23, p14 = numbers
    state = 1
    while True:
        drawn = chance.random()
        if state == 1:
            state = 4 if drawn < p14 else 3 if drawn < p14 + p13 else 1
        elif state == 2:
            state = 3 if drawn < p23 else 2
        elif state == 3:
            state = 2 if drawn < p32 else 1 if drawn < p31 + p32 else 3
        else:
            state = 1
        yield state in (3, 4)


def lost_share(packets: Iterator[bool]) -> float:
    return sum(next(packets) for _ in range(PACKETS)) / PACKETS


class TestGrammar:
    @pytest.mark.parametrize(
        ("text", "loss", "canonical"),
        [
            ("0.1%", Loss("random", (0.001,)), "0.1%"),
            ("0", Loss("random", (0.0,)), "0%"),
            ("ge:1%", Loss("ge", (0.01, 0.99, 1.0, 0.0)), "ge:1%:99%:100%:0%"),
            ("ge:1%:10%", Loss("ge", (0.01, 0.1, 1.0, 0.0)), "ge:1%:10%:100%:0%"),
            ("ge: 1% :10%:70%:0.1%", Loss("ge", (0.01, 0.1, 0.7, 0.001)), "ge:1%:10%:70%:0.1%"),
            ("state:1%", Loss("state", (0.01, 0.99, 0.0, 1.0, 0.0)), "state:1%:99%:0%:100%:0%"),
            ("state:1%:10%:20%", Loss("state", (0.01, 0.1, 0.2, 1.0, 0.0)), "state:1%:10%:20%:100%:0%"),
            ("list:17+5+100+5", Loss("list", (5, 17, 100)), "list:5+17+100"),
        ],
    )
    def test_reads_and_prints(self, text: str, loss: Loss, canonical: str) -> None:
        read = losses.parse(text)
        assert read.kind == loss.kind
        assert read.numbers == pytest.approx(loss.numbers)
        assert losses.show(read) == canonical
        assert losses.parse(canonical) == read

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("burst:1%", "'burst:1%' is not a loss; write a probability (0.1%), ge:1%:10%"),
            ("ge:", "'' has not the form that is wanted here; write it such as ge:1%:10%"),
            ("ge:1%::10%", "'1%::10%' has not the form that is wanted here; write it such as ge:1%:10%"),
            ("ge:1%:2%:3%:4%:5%", "'1%:2%:3%:4%:5%' has not the form that is wanted here"),
            ("state:1%:2%:3%:4%:5%:6%", "'1%:2%:3%:4%:5%:6%' has not the form that is wanted here"),
            ("ge:1:10%", "'1': it may be a fraction or percent"),
            ("ge:101%:10%", "'101%' is out of range; a probability lies between 0% and 100%"),
            ("list:", "'' is not a whole number"),
            ("list:0+5", "'list:0+5': packets are counted from 1; leave 0 out"),
            ("list:5+", "'5+' has an empty place; join numbers of packets by +, such as A+B"),
            ("list:1.5", "'1.5' is not a whole number"),
        ],
    )
    def test_refuses_and_says_why(self, text: str, message: str) -> None:
        with pytest.raises(UnitError) as refused:
            losses.parse(text)
        assert str(refused.value).startswith(message)

    def test_refuses_a_list_that_no_kernel_holds(self) -> None:
        text = "list:" + "+".join(map(str, range(1, losses.MOST_DROPS + 2)))
        with pytest.raises(UnitError, match="names 100001 packets; at most 100000 can be dropped by number"):
            losses.parse(text)


class TestShare:
    def test_of_random_loss_is_its_probability(self) -> None:
        assert losses.parse("3%").share == 0.03

    def test_of_a_list_is_none_in_the_long_run(self) -> None:
        assert losses.parse("list:1+2+3").share == 0

    @given(SHARES)
    def test_of_one_number_is_that_of_random_loss(self, p: float) -> None:
        """tc-netem(8) says so of both models with nothing but their first probability."""
        assert losses.parse(f"ge:{p * 100:.9f}%").share == pytest.approx(p, rel=1e-6)
        assert losses.parse(f"state:{p * 100:.9f}%").share == pytest.approx(p, rel=1e-6)

    @pytest.mark.parametrize(
        ("text", "packets"),
        [
            ("ge:1%:10%", gilbert_elliott),
            ("ge:10%:40%:60%:2%", gilbert_elliott),
            ("state:1%:10%", four_states),
            ("state:5%:20%:30%:50%:1%", four_states),
            ("state:10%:30%:40%:20%:15%", four_states),
        ],
    )
    def test_is_what_the_kernel_s_chain_loses(
        self, text: str, packets: Callable[[tuple[float, ...], random.Random], Iterator[bool]]
    ) -> None:
        loss = losses.parse(text)
        assert lost_share(packets(loss.numbers, random.Random(text))) == pytest.approx(loss.share, rel=0.03)

    @given(st.tuples(SHARES, SHARES, SHARES, SHARES))
    def test_lies_between_that_of_the_good_and_of_the_bad_state(
        self, numbers: tuple[float, float, float, float]
    ) -> None:
        share = Loss("ge", numbers).share
        assert min(numbers[2:]) - 1e-12 <= share <= max(numbers[2:]) + 1e-12

    @given(st.tuples(*[st.just(0.0) | st.floats(1e-12, 1)] * 5))
    def test_of_four_states_is_a_share(self, numbers: tuple[float, ...]) -> None:
        assert 0 <= Loss("state", numbers).share <= 1

    def test_of_a_chain_that_never_leaves_where_it_is(self) -> None:
        assert Loss("ge", (0.0, 0.0, 1.0, 0.0)).share == 0


class TestEgress:
    def test_is_a_number_or_what_json_holds(self) -> None:
        assert losses.parse("1%").egress == 0.01
        assert losses.parse("ge:1%:10%").egress == {"kind": "ge", "numbers": [0.01, 0.1, 1.0, 0.0]}
        assert losses.parse("list:5").egress == {"kind": "list", "numbers": [5]}
