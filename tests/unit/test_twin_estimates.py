"""What a path was is found again in records that were made of it: rate, RTT, jitter, loss, queue."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lab.twin import estimates
from lab.twin import losses as loss_module

Row = dict[str, Any]
PACKET = 1514

rates = st.floats(1e6, 10e9)
rtts = st.floats(1e-3, 0.5)


def train(
    rate_bps: float, count: int, late_s: Callable[[], float] = lambda: 0.0, start_ns: int = 10**18
) -> list[tuple[int, int]]:
    """Return a train's arrivals, each late by chance, in the order in which they came."""
    packet_ns = PACKET * 8e9 / rate_bps
    found = [(n, start_ns + round(n * packet_ns + late_s() * 1e9)) for n in range(count)]
    return sorted(found, key=lambda one: one[1])


class TestSlope:
    @given(rates, st.integers(20, 400))
    def test_a_clean_train_has_its_rate(self, rate_bps: float, count: int) -> None:
        found = estimates.slope_rate(train(rate_bps, count), PACKET)
        assert found is not None
        # arrivals are whole ns: at 10 Gbit/s a packet takes 1211 of them
        assert found.rate_bps == pytest.approx(rate_bps, rel=2e-3)

    @given(rates, st.integers(0, 2**32))
    def test_jitter_is_borne_and_its_error_is_said(self, rate_bps: float, seed: int) -> None:
        chance = random.Random(seed)
        late_s = 20 * PACKET * 8 / rate_bps
        found = estimates.slope_rate(train(rate_bps, 300, lambda: chance.uniform(0, late_s)), PACKET)
        assert found is not None
        assert 0 < found.error < 0.05
        assert found.rate_bps == pytest.approx(rate_bps, rel=5 * found.error)

    @given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 10**9)), max_size=40))
    def test_no_train_is_too_strange(self, strange: list[tuple[int, int]]) -> None:
        found = estimates.slope_rate(strange, PACKET)
        assert found is None or (found.rate_bps > 0 and math.isfinite(found.rate_bps))

    def test_short_and_torn_trains_say_nothing(self) -> None:
        assert estimates.slope_rate([], PACKET) is None
        assert estimates.slope_rate(train(1e8, 14), PACKET) is None
        backwards = [(n, -n * 1000) for n in range(40)]
        assert estimates.slope_rate(backwards, PACKET) is None
        chance = random.Random(1)
        assert estimates.slope_rate(train(1e8, 40, lambda: chance.uniform(0, 0.1)), PACKET) is None


class TestThroughput:
    @given(rates, st.floats(0.7, 0.99), st.integers(1, 4), st.floats(0.02, 0.2))
    def test_the_largest_rate_over_a_second_is_found(
        self, rate_bps: float, share: float, flows: int, step_s: float
    ) -> None:
        """A flow idles for two seconds, fills the link for two, and idles again."""
        segments_s = rate_bps * share / 8 / 1448 / flows
        made = [
            [
                {
                    "t_s": number * step_s,
                    "tcpi_delivered": segments_s * min(2.0, max(0.0, number * step_s - 2.0)),
                    "tcpi_snd_mss": 1448,
                }
                for number in range(int(6 / step_s))
            ]
            for _ in range(flows)
        ]
        found = estimates.largest_throughput_bps(*estimates.delivered(made), share, 0.04)
        assert found == pytest.approx(rate_bps, rel=1e-6)

    def test_flows_that_come_and_go_add_up_while_they_are_there(self) -> None:
        early = [{"t_s": t, "tcpi_delivered": 100 * t, "tcpi_snd_mss": 1000} for t in (0.0, 1.0, 2.0)]
        late = [{"t_s": t, "tcpi_delivered": 50 * (t - 1), "tcpi_snd_mss": 1000} for t in (1.0, 2.0, 3.0)]
        instants, total = estimates.delivered([early, late])
        assert instants == [0.0, 1.0, 2.0, 3.0]
        assert total == [0.0, 100e3, 250e3, 300e3]

    def test_a_short_record_says_nothing(self) -> None:
        assert estimates.largest_throughput_bps([], [], 0.95, 0.04) is None
        assert estimates.largest_throughput_bps([0.0, 1.0], [0.0, 1.0], 0.95, 0.04) is None
        assert estimates.largest_throughput_bps([1.0, 1.0, 1.0], [0.0, 1.0, 2.0], 0.95, 0.04) is None

    def test_rows_without_the_counter_are_left_out(self) -> None:
        assert estimates.delivered([[{"t_s": 1.0, "tcpi_delivered": None, "tcpi_snd_mss": 1448}]]) == ([], [])


class TestRate:
    @given(st.lists(st.floats(99e6, 101e6), min_size=1, max_size=9), st.booleans())
    def test_trains_count_where_nothing_contradicts_them(self, trains: list[float], full: bool) -> None:
        found = estimates.rate(trains, [5e6], 99.5e6, full=full)
        assert found == (statistics.median(trains), "train", True)

    @pytest.mark.parametrize(
        ("trains", "slopes", "throughput", "full", "found"),
        [
            ([100e6], [], 110e6, False, (110e6, "throughput", False)),  # flows carried more
            ([1e9], [], 100e6, True, (100e6, "throughput", True)),  # a bucket let the train pass
            ([1e9], [], 100e6, False, (1e9, "train", True)),  # nobody filled the link
            ([], [90e6, 110e6], 50e6, False, (100e6, "slope", True)),
            ([], [90e6, 110e6], 99e6, True, (99e6, "throughput", True)),  # a full queue is surer
            ([], [], 50e6, False, (50e6, "throughput", False)),
            ([], [], 50e6, True, (50e6, "throughput", True)),
            ([100e6], [], None, True, (100e6, "train", True)),
            ([], [7e6], None, True, (7e6, "slope", True)),
            ([], [], None, True, None),
        ],
    )
    def test_contradictions(
        self, trains: list[float], slopes: list[float], throughput: float | None, full: bool, found: Any
    ) -> None:
        assert estimates.rate(trains, slopes, throughput, full=full) == found


def netem(name: str, seed: int) -> Callable[[], float]:
    """Return draws of one of netem's distributions with parameter 1."""
    chance = random.Random(seed)
    draws: dict[str, Callable[[], float]] = {
        "uniform": lambda: chance.uniform(-1, 1),
        "normal": lambda: chance.gauss(0, 1),
        "pareto": lambda: ((1 - chance.random()) ** (-1 / 3) - 1.5) * 4 / 3,
    }
    return draws[name]


class TestRtt:
    @given(rtts, st.lists(st.floats(0, 15e-6), min_size=8, max_size=40))
    def test_the_base_rtt_is_the_least_and_what_hosts_add_is_no_jitter(
        self, rtt_s: float, added_s: list[float]
    ) -> None:
        seen = [rtt_s, *(rtt_s + one for one in added_s)]
        assert estimates.base_rtt_s(seen) == rtt_s
        assert estimates.jitter(seen) is None

    def test_there_is_no_time_under_none(self) -> None:
        assert estimates.base_rtt_s([]) is None
        assert estimates.base_rtt_s([-3e-6, 1e-3]) == 0.0

    @pytest.mark.parametrize("name", list(estimates.SHAPES))
    @given(rtt_s=st.floats(0.02, 0.5), share=st.floats(0.02, 0.2), seed=st.integers(0, 10**6))
    def test_jitter_is_found_again(self, name: str, rtt_s: float, share: float, seed: int) -> None:
        draw, size_s = netem(name, seed), share * rtt_s
        found = estimates.jitter([rtt_s + size_s * draw() for _ in range(6000)])
        assert found is not None
        assert found.distribution == name
        assert found.jitter_s == pytest.approx(size_s, rel=0.2)
        assert found.rtt_s == pytest.approx(rtt_s, abs=0.2 * size_s)

    @given(st.integers(0, 10**6))
    def test_one_late_ping_makes_no_jitter(self, seed: int) -> None:
        chance = random.Random(seed)
        seen = [0.02 + chance.uniform(0, 15e-6) for _ in range(19)]
        assert estimates.jitter([*seen, 0.05]) is None

    def test_a_few_pings_say_nothing_and_a_few_more_no_shape(self) -> None:
        seen = [0.02 + 0.001 * number for number in range(8)]
        assert estimates.jitter(seen[:7]) is None
        found = estimates.jitter(seen)
        assert found is not None
        assert found.distribution == "uniform"

    @pytest.mark.parametrize("name", ["normal", "pareto"])
    def test_shapes_are_those_of_the_tables_that_tc_reads(self, name: str) -> None:
        """Where iproute2 is installed with its tables; they are in steps of 1/8192, and end somewhere."""
        files = sorted(Path("/usr/lib").glob(f"**/tc/{name}.dist"))
        assert files, "iproute2's tables of distributions are not there; apt-get install iproute2"
        lines = [line for line in files[0].read_text().splitlines() if not line.startswith("#")]
        table = [int(word) / 8192 for line in lines for word in line.split()]
        low, middle, high = statistics.quantiles(table, n=4)
        assert high - low == pytest.approx(estimates.SHAPES[name].iqr, abs=1e-3)
        assert middle == pytest.approx(estimates.SHAPES[name].median, abs=1e-3)
        for share in (0.05, 0.25, 0.5, 0.75, 0.95):
            value = sorted(table)[int(share * len(table))]
            assert estimates.SHAPES[name].cdf(value) == pytest.approx(share, abs=2e-3)


def sender(
    rises_s: Sequence[float],
    again: Sequence[int],
    *,
    base_s: float = 0.04,
    sent: int = 1000,
    step_s: float = 0.2,
    states: Sequence[int] = (),
    spurious: Sequence[int] = (),
    slow_start: int = 0,
    cwnd: int | None = 60,
) -> list[Row]:
    """Return a sender's samples: over the base by rises_s, with so many sent again up to each."""
    return [
        {
            "t_s": number * step_s,
            "tcpi_rtt": round((base_s + rise_s) * 1e6),
            "tcpi_data_segs_out": number * sent,
            "tcpi_total_retrans": sum(again[: number + 1]),
            "tcpi_dsack_dups": sum(spurious[: number + 1]),
            "tcpi_ca_state": states[number] if states else 0,
            "tcpi_snd_ssthresh": None if number < slow_start else 50,
            "tcpi_snd_cwnd": cwnd,
        }
        for number, rise_s in enumerate(rises_s)
    ]


def found(rows: Sequence[Row], base_s: float = 0.04, rate_bps: float = 100e6) -> loss_module.Losses:
    return loss_module.losses([(rows, base_s)], rate_bps, PACKET, 0.0)


class TestLoss:
    @given(st.floats(1e-4, 0.03), st.integers(0, 2**31), st.integers(1, 4))
    def test_random_loss_is_found_again_within_its_bounds(self, share: float, seed: int, flows: int) -> None:
        """Losses at the base RTT, by chance, which is given five standard deviations here."""
        chance = random.Random(seed)
        steps, sent = 200, 500
        made = [
            (
                sender(
                    [0.0] * steps, [0, *(poisson(chance, share * sent) for _ in range(steps - 1))], sent=sent
                ),
                0.04,
            )
            for _ in range(flows)
        ]
        losses = loss_module.losses(made, 100e6, PACKET, 0.0)
        low, high = losses.bounds
        assert losses.sent == flows * (steps - 1) * sent
        assert low <= losses.share <= high
        expected = share * losses.sent
        assert abs(losses.lost - expected) <= 5 * math.sqrt(expected) + 5
        assert not losses.full

    @given(st.floats(0.005, 0.1), st.floats(2e6, 1e9), st.integers(1, 30))
    def test_losses_of_a_full_queue_are_not_random_and_show_it(
        self, queue_s: float, rate_bps: float, drops: int
    ) -> None:
        """A saw tooth: the RTT rises to the full queue, segments are lost there, it falls to the base."""
        rise = [queue_s * part / 10 for part in range(11)]
        tooth = [*rise, queue_s, 0.0, 0.0, 0.0]
        again = [*[0] * 11, drops, 0, 0, 0]
        rows = sender(tooth * 6, again * 6)
        floor_s = loss_module.BURST_PACKETS * PACKET * 8 / rate_bps
        assume(abs(queue_s / floor_s - 1) > 0.01)  # samples have microseconds
        losses = found(rows, rate_bps=rate_bps)
        if queue_s < floor_s:  # such a queue is told from random loss by nothing
            assert not losses.full
            return
        assert losses.lost == 0
        assert losses.full
        assert losses.full_lost == 6 * drops
        queue = loss_module.queue(losses, rate_bps, 0.04, PACKET)
        assert queue.sure
        wanted = max(2 * PACKET, rate_bps * queue_s / 8 - 2 * PACKET)
        assert queue.queue_bytes == pytest.approx(wanted, rel=0.01, abs=rate_bps * 2e-6)

    @given(st.floats(0.01, 0.1), st.integers(0, 2**31))
    def test_random_loss_and_a_full_queue_are_told_apart(self, queue_s: float, seed: int) -> None:
        chance, share, sent = random.Random(seed), 0.002, 2000
        tooth = [*[0.0] * 8, *(queue_s * part / 4 for part in range(5)), 0.0, 0.0]
        full = [*[0] * 12, 60, 0, 0]
        again = [drops + poisson(chance, share * sent) for drops in full * 20]
        losses = found(sender(tooth * 20, again, sent=sent))
        assert losses.full
        assert abs(losses.lost - share * losses.sent) <= 5 * math.sqrt(share * losses.sent) + 5
        assert losses.full_s == pytest.approx(queue_s, rel=0.02)

    @given(st.floats(0.001, 0.01), st.integers(0, 2**31))
    def test_random_loss_on_a_way_with_a_queue_does_not_make_it_full(self, share: float, seed: int) -> None:
        """As much is lost at every RTT; three standard deviations more would be, by chance, in 1 of 400."""
        chance, sent = random.Random(seed), 2000
        rises = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.02, 0.02] * 30
        again = [poisson(chance, share * sent) for _ in rises]
        losses = found(sender(rises, again, sent=sent))
        expected = losses.share * losses.full_sent
        assert losses.full_sent > 0
        assume(losses.full_lost < expected + 2 * math.sqrt(expected) - 1e-9)
        assert not losses.full

    def test_a_repair_belongs_to_the_drop_that_began_it(self) -> None:
        """The RTT is back at the base long before the last hole is filled."""
        rises = [0.0, 0.01, 0.02, 0.02, *[0.0] * 10]
        again = [0, 0, 0, 30, *[5] * 6, *[0] * 4]
        states = [0, 0, 0, 3, *[3] * 6, *[0] * 4]
        losses = found(sender(rises, again, states=states))
        assert (losses.lost, losses.full_lost) == (0, 60)

    def test_the_end_of_slow_start_is_no_random_loss(self) -> None:
        """Its queue came and went between two samples; from there on the same is random."""
        again, states = [0, 0, 0, 6, 2, 0, 0, 1, 0, 0], [0, 0, 0, 3, 3, 0, 0, 0, 0, 0]
        losses = found(sender([0.0] * 10, again, states=states, slow_start=3))
        assert (losses.lost, losses.sent) == (1, 4000)
        losses = found(sender([0.0] * 10, again, states=states, slow_start=2))
        assert (losses.lost, losses.sent) == (9, 9000)

    def test_a_flow_that_never_left_slow_start_and_never_lost_counts(self) -> None:
        losses = found(sender([0.0] * 10, [0] * 10, slow_start=10))
        assert (losses.lost, losses.sent) == (0, 9000)

    @pytest.mark.parametrize(("cwnd", "counted"), [(3, False), (4, True), (None, True)])
    def test_rtts_of_a_thin_window_are_no_queue(self, cwnd: int | None, counted: bool) -> None:
        """Its acknowledgements wait for a timer of 40 ms."""
        losses = found(sender([0.0, 0.04] * 6, [0, 1] * 6, cwnd=cwnd))
        assert losses.full is counted
        assert (losses.peak_s > 0) is counted

    def test_what_was_only_overtaken_was_not_lost(self) -> None:
        """Receivers report it a round trip later."""
        again = [0, 0, 3, 0, 0, 2, 0, 0, 0, 0]
        spurious = [0, 0, 0, 3, 0, 0, 1, 0, 0, 0]
        losses = found(sender([0.0] * 10, again, step_s=0.05, spurious=spurious))
        assert losses.lost == 1

    def test_a_host_that_was_held_up_once_is_no_queue(self) -> None:
        rises = [0.0, 0.005, 0.01, *[0.0] * 5] * 12 + [0.2, 0.0, 0.0]
        again = [0, 0, 4, *[0] * 5] * 12 + [1, 0, 0]
        losses = found(sender(rises, again, step_s=0.3))
        assert losses.full_s == pytest.approx(0.01, rel=0.01)

    def test_nothing_at_all(self) -> None:
        losses = loss_module.losses([], None, PACKET, 0.0)
        assert (losses.lost, losses.sent, losses.share, losses.full) == (0, 0, 0.0, False)
        assert losses.bounds == (0.0, 1.0)
        assert found([{"t_s": 0.0, "tcpi_rtt": None, "tcpi_data_segs_out": None}]) == losses

    def test_bounds_are_nearly_the_exact_ones(self) -> None:
        """Exact: Garwood, Biometrika 28, 1936, by the chi-squared distribution."""
        for lost, low, high in ((1, 0.025, 5.572), (5, 1.623, 11.668), (35, 24.379, 48.677)):
            bounds = loss_module.Losses(lost, 10**6, 0.0, 0.0, 0, 0).bounds
            assert bounds[0] * 10**6 == pytest.approx(low, rel=0.01, abs=0.02)
            assert bounds[1] * 10**6 == pytest.approx(high, rel=0.01)
        assert loss_module.Losses(0, 1000, 0.0, 0.0, 0, 0).bounds == (0.0, 0.003)


class TestQueue:
    @given(rates, rtts, st.floats(0, 0.2))
    def test_one_that_was_never_full_gets_room(self, rate_bps: float, base_s: float, rise_s: float) -> None:
        losses = loss_module.Losses(0, 1000, rise_s, 0.0, 0, 0)
        queue = loss_module.queue(losses, rate_bps, base_s, PACKET)
        assert not queue.sure
        assert queue.queue_bytes >= 2 * queue.waited_bytes
        assert queue.queue_bytes >= rate_bps * base_s / 8 * (1 - 1e-12)
        assert queue.waited_bytes <= rate_bps * rise_s / 8

    def test_it_holds_a_packet_or_two(self) -> None:
        losses = loss_module.Losses(0, 0, 0.0, 1e-6, 5, 5)
        assert loss_module.queue(losses, 1e6, 0.0, PACKET).queue_bytes == 2 * PACKET


def poisson(chance: random.Random, mean: float) -> int:
    """Return a count that comes by chance (Knuth's product of uniforms)."""
    limit, count, product = math.exp(-mean), 0, chance.random()
    while product > limit:
        count += 1
        product *= chance.random()
    return count


def test_reordering_is_what_senders_saw() -> None:
    assert not loss_module.reordered([])
    assert not loss_module.reordered([[], [{"tcpi_reord_seen": None}], [{"tcpi_reord_seen": 0}]])
    assert loss_module.reordered([[{"tcpi_reord_seen": 0}], [{"tcpi_reord_seen": 3}]])


def test_spread() -> None:
    assert estimates.spread([]) is None
    assert estimates.spread([3.0, 1.0, 2.0]) == (2.0, 1.0, 3.0, 3)
