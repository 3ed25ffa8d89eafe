"""What the machine was doing, and when it is said to have been the limit itself."""

from __future__ import annotations

import struct
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import machine
from lab.machine import Health
from lab.probes.machine import BUCKETS, MachineProbe, bucket, unpack

STAT = b"cpu  1 2 3 4\ncpu0 100 0 50 800 10 5 30 5 0 0\ncpu1 200 0 20 700 0 0 80 0 0 0\n"
SOFTNET = (
    b"00000064 00000001 00000002 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000"
    b" 00000000 00000000 00000000 00000000\n"
    b"000000c8 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000"
    b" 00000000 00000001 00000000 00000000\n"
)
IDLE = Health(0.1, 0.05, 0.0, 0, 0.0001, 0.001)


def reading(
    counts: dict[int, int], stat: bytes = STAT.partition(b"\n")[2], softnet: bytes = SOFTNET
) -> bytes:
    told = [counts.get(number, 0) for number in range(BUCKETS)]
    return struct.pack(f"={BUCKETS}Q", *told) + stat.strip() + b"\n\n" + softnet


def at(t_s: float, counts: dict[int, int], busy: int, softirq: int, dropped: int = 0) -> list[machine.Row]:
    """Return the rows of one CPU after so many ticks of work and of packets, idle for the rest."""
    idle = round(100 * t_s) - busy - softirq
    stat = f"cpu0 {busy} 0 0 {idle} 0 0 {softirq} 0 0 0".encode()
    softnet = f"00000064 {dropped:08x} 00000000\n".encode()
    return machine.rows(reading(counts, stat, softnet), t_s, "")


class TestReading:
    def test_is_a_row_a_cpu_and_one_of_the_timers(self) -> None:
        first, second, timers = machine.rows(reading({0: 7, 12: 2}), 1.5, "snd")
        assert first == {
            **{"t_s": 1.5, "host": "snd", "cpu": 0, "user_s": 1.0, "system_s": 0.55, "softirq_s": 0.3},
            **{"steal_s": 0.05, "idle_s": 8.1, "processed": 100, "dropped": 1, "squeezed": 2},
        }
        assert (second["cpu"], second["processed"]) == (1, 200)
        assert timers == {"t_s": 1.5, "host": "snd", "cpu": None, "late": {"1e-06": 7, "0.004096": 2}}

    def test_of_a_kernel_that_does_not_number_its_lines_goes_by_their_order(self) -> None:
        rows = machine.rows(
            reading({}, softnet=b"00000001 00000000 00000000\n00000002 0000000a 00000000\n"), 0, ""
        )
        assert [row.get("processed") for row in rows] == [1, 2, None]
        assert rows[1]["dropped"] == 10

    @given(st.integers(0, len(reading({})) - 1))
    def test_that_is_torn_is_refused_or_short(self, length: int) -> None:
        try:
            machine.rows(reading({})[:length], 0, "")
        except ValueError:
            return
        assert length >= BUCKETS * 8

    @given(st.integers(-(10**9), 10**12))
    def test_lateness_lies_within_its_bucket(self, late_ns: int) -> None:
        number = bucket(late_ns)
        assert number == BUCKETS - 1 or late_ns <= 2**number * 1000
        assert number == 0 or late_ns > 2 ** (number - 1) * 1000

    def test_of_this_machine(self) -> None:
        probe = MachineProbe()
        try:
            before = unpack(probe.read())
            time.sleep(0.2)
            after = unpack(probe.read())
        finally:
            probe.end()
        pulses = sum(after[0]) - sum(before[0])
        assert 1 <= pulses <= 45
        assert [cpu for cpu, _ in after[1]] == [cpu for cpu, _ in before[1]] != []
        assert {cpu for cpu, _ in after[2]} <= {cpu for cpu, _ in after[1]}


class TestHealth:
    def test_is_of_the_load_alone(self) -> None:
        """What was before the load and after it does not count."""
        found = [
            row
            for t_s, busy, softirq, dropped in (
                (0, 0, 0, 0),
                (1, 100, 0, 5),
                (2, 110, 20, 5),
                (3, 210, 20, 9),
            )
            for row in at(t_s, {0: 200 * t_s}, busy, softirq, dropped)
        ]
        health = machine.judge(found, 1.0, 2.0)
        assert health is not None
        assert (health.busy_share, health.softirq_share) == (pytest.approx(0.3), pytest.approx(0.2))
        assert health.dropped == 0

    def test_of_several_machines_is_that_of_the_worst(self) -> None:
        quick, slow = (
            [{**row, "host": host} for t_s in (0, 1) for row in at(t_s, {late: 100 * t_s}, busy * t_s, 0)]
            for host, late, busy in (("snd", 3, 10), ("rcv", 13, 60))
        )
        health = machine.judge([*quick, *slow], 0, 1)
        assert health is not None
        assert health.busy_share == pytest.approx(0.6)
        assert health.late_p95_s == pytest.approx(0.004096)

    def test_of_nothing_is_none(self) -> None:
        assert machine.judge([], 0, 1) is None
        assert machine.limited(None, 0.1, 0.1) is None
        assert set(machine.columns(None).values()) == {None}

    def test_late_quantiles_are_lower_edges(self) -> None:
        counts = {"1e-06": 94.0, "0.002048": 4.0, "0.004096": 2.0}
        assert machine.late_quantile_s({}, counts, 0.5) == 0.5e-6
        assert machine.late_quantile_s({}, counts, 0.95) == 0.001024
        assert machine.late_quantile_s({}, counts, 0.99) == 0.002048
        assert machine.late_quantile_s(counts, counts, 0.5) is None

    @given(
        st.dictionaries(st.integers(0, BUCKETS - 1), st.integers(1, 1000), min_size=1),
        st.sampled_from((0.5, 0.95, 0.99, 1.0)),
    )
    def test_quantiles_grow_with_the_share_and_stay_within_what_was_seen(
        self, counts: dict[int, int], share: float
    ) -> None:
        (timers,) = machine.rows(reading(counts, b"", b""), 0, "")
        found = machine.late_quantile_s({}, timers["late"], share)
        assert found is not None
        assert found <= 2 ** max(counts) * 1e-6
        assert found >= (machine.late_quantile_s({}, timers["late"], share / 2) or 0)


class TestLimited:
    def test_not_by_an_idle_machine(self) -> None:
        assert machine.limited(IDLE, 0.0, 0.3) is None

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"dropped": 3}, "dropped 3 packets because its backlog was full"),
            ({"stolen_share": 0.2}, "a hypervisor took 20% of a CPU"),
            ({"busy_share": 0.97, "softirq_share": 0.8}, "busy 97% of the time, 80% with packets"),
            ({"late_p95_s": 0.008}, "one wake-up in twenty came 8 ms late or more, and 4 ms is"),
        ],
    )
    def test_by_a_machine_that_was(self, changes: dict[str, float], words: str) -> None:
        told = machine.limited(replace(IDLE, **changes), 0.01, 0.5)
        assert told is not None
        assert words in told
        assert told.startswith("this measures the machine, not the network: ")

    def test_not_by_a_busy_one_that_filled_the_link(self) -> None:
        busy = replace(IDLE, busy_share=1.0, late_p95_s=0.008)
        assert machine.limited(busy, 0.01, 0.99) is None
        assert machine.limited(busy, 0.01, 0.97) is not None
        assert machine.limited(busy, 0.01, None) is not None

    def test_by_lost_packets_even_then(self) -> None:
        assert machine.limited(replace(IDLE, dropped=1), 0.01, 1.0) is not None

    def test_long_paths_bear_more_lateness(self) -> None:
        late = replace(IDLE, late_p95_s=0.008)
        assert machine.limited(late, 0.02, 0.5) is not None
        assert machine.limited(late, 0.2, 0.5) is None
