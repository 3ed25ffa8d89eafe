"""Traces: what files of them mean, what is refused and in which words, and that steps stay near the trace."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lab import traces
from lab.errors import UnitError, UserError
from lab.traces import deliveries, files, formula, table
from lab.traces.trace import DELIVERY_BYTES, FRAME_BYTES, MOST_STEPS, NS, Steps, Trace
from traces import make

DELIVERY, FRAME = 8 * DELIVERY_BYTES, 8 * FRAME_BYTES
OURS = make.FOLDER


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that examples of one property may share."""
    return tmp_path_factory.mktemp("traces")


def read(folder: Path, text: str | bytes, name: str = "t.up", **how: float) -> Trace:
    """Return the trace of a text."""
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return traces.load(path, **how)


def times(numbers: list[int]) -> str:
    return "".join(f"{number}\n" for number in numbers)


def rows(trace: Trace) -> list[tuple[float, float]]:
    """Return a trace's own starts and rates."""
    return list(zip((trace.starts_ns / NS).tolist(), trace.rates_bps.tolist(), strict=True))


def let_through(steps: Steps, end_s: float) -> float:
    """Return the bits of steps up to an instant."""
    ends = [*(start for start, _ in steps[1:]), math.inf]
    pairs = zip(steps, ends, strict=True)
    return sum(rate * (min(end, end_s) - start) for (start, rate), end in pairs if start < end_s)


class TestDeliveries:
    def test_one_line_is_mahimahi_s_constant_link(self, tmp_path: Path) -> None:
        trace = read(tmp_path, "1\n")
        assert (trace.form, trace.lines, trace.period_s, trace.longest_outage_s) == (
            "mahimahi",
            1,
            0.001,
            0.001,
        )
        assert trace.upto(3600) == ((0.0, 12_112_000.0),)
        assert trace.mean_bps(3600) == pytest.approx(12_112_000, rel=1e-12)

    def test_a_rate_is_the_mean_of_a_step_and_the_trace_repeats(self, tmp_path: Path) -> None:
        trace = read(tmp_path, times([0, 3, 10, 11, 11, 20, 20, 20]))
        low, high = 3 * DELIVERY / 0.01, 5 * DELIVERY / 0.01
        assert trace.period_s == 0.02
        assert trace.upto(0.05) == ((0.0, low), (0.01, high), (0.02, low), (0.03, high), (0.04, low))
        assert trace.upto(0.01) == ((0.0, low),)

    def test_what_is_due_at_a_step_s_end_has_the_step_to_pass(self, tmp_path: Path) -> None:
        assert rows(read(tmp_path, times([10, 11, 20]))) == [
            (0.0, DELIVERY / 0.01),
            (0.01, 2 * DELIVERY / 0.01),
        ]

    def test_the_last_step_ends_with_the_period(self, tmp_path: Path) -> None:
        trace = read(tmp_path, times([10, 12]))
        assert rows(trace) == [(0.0, DELIVERY / 0.01), (0.01, DELIVERY / 0.002)]
        assert trace.upto(0.02)[2] == (0.012, DELIVERY / 0.01)

    def test_step(self, tmp_path: Path) -> None:
        trace = read(tmp_path, times([1, 2, 3, 4, 5, 6]), step_s=0.003)
        assert trace.upto(1) == ((0.0, DELIVERY / 0.001),)
        assert len(read(tmp_path, times([1, 1, 2]), step_s=0.001).upto(0.002)) == 2

    @pytest.mark.parametrize("step_s", [0.0, 0.0005, 0.0015, 10.001, -1.0])
    def test_refuses_other_steps(self, tmp_path: Path, step_s: float) -> None:
        with pytest.raises(UnitError, match="whole number of milliseconds between 1ms and 10s, such as 10ms"):
            read(tmp_path, "1\n", step_s=step_s)

    def test_an_outage_lets_one_packet_through(self, tmp_path: Path) -> None:
        trace = read(tmp_path, times([*range(1, 11), *([50] * 4)]))
        assert rows(trace)[1] == (0.01, 0.0)
        assert trace.upto(0.05) == (
            (0.0, 10 * DELIVERY / 0.01),
            (0.01, pytest.approx(DELIVERY / 0.03)),
            (0.04, pytest.approx(3 * DELIVERY / 0.01)),
        )
        assert trace.longest_outage_s == 0.04

    def test_a_lone_delivery_has_all_the_time_before_it(self, tmp_path: Path) -> None:
        assert read(tmp_path, times([100, 200])).upto(1) == ((0.0, DELIVERY / 0.1),)

    def test_an_outage_over_the_end_of_a_period_counts_from_there(self, tmp_path: Path) -> None:
        trace = read(tmp_path, times([5, 5, 5, 40, 40, 40, 40]))
        assert trace.longest_outage_s == 0.035
        assert read(tmp_path, times([35, 36])).longest_outage_s == 0.035

    @given(
        st.lists(st.integers(0, 300), min_size=1, max_size=80).map(sorted).filter(lambda some: some[-1] > 0),
        st.integers(1, 50),
        st.floats(0.001, 1),
    )
    @example([1, 300], 10, 1.0)
    @example([0, 0, 0, 7], 10, 0.02)
    def test_steps_stay_near_the_deliveries(
        self, folder: Path, due_ms: list[int], step_ms: int, duration_s: float
    ) -> None:
        trace = read(folder, times(due_ms), step_s=step_ms / 1e3)
        period_ms = due_ms[-1]
        steps = trace.upto(1.0)
        check_form(steps)
        counts = [sum(1 for ms in due_ms if max(ms - 1, 0) // step_ms == step) for step in range(300)]
        most = (max(counts) + 1) * DELIVERY
        for ms in range(1, 1001):
            periods, rest = divmod(ms, period_ms)
            due = periods * len(due_ms) + sum(1 for one in due_ms if one <= rest) * (rest > 0)
            assert abs(let_through(steps, ms / 1e3) - due * DELIVERY) <= most + 1e-6 * DELIVERY
            if rest == 0:
                assert let_through(steps, ms / 1e3) == pytest.approx(due * DELIVERY, rel=1e-9)
        check_near(trace, duration_s, DELIVERY)

    @given(st.lists(st.integers(0, 10**6), min_size=1, max_size=60).map(sorted), st.integers(32, 64))
    def test_blocks_do_not_matter(self, folder: Path, due_ms: list[int], block: int) -> None:
        text = times([*due_ms, 10**6])
        whole = read(folder, text)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(files, "_BLOCK_BYTES", block)
            parts = read(folder, text)
            slowly = read(folder, text.replace("\n", " # ms\r\n"))
        for other in (parts, slowly):
            assert rows(other) == rows(whole)
            assert (other.lines, other.longest_outage_s) == (whole.lines, whole.longest_outage_s)


def check_form(steps: Steps) -> None:
    """Check what is true of all steps."""
    assert steps[0][0] == 0
    assert all(one < other for (one, _), (other, _) in pairwise(steps))
    assert all(rate > 0 for _, rate in steps)
    assert all(one != other for (_, one), (_, other) in pairwise(steps))


def check_near(trace: Trace, duration_s: float, packet_bits: int) -> None:
    """Check that steps have time for a packet, and differ by one at most from the trace's own rates."""
    steps = trace.upto(duration_s)
    check_form(steps)
    for (start_s, rate), (end_s, _) in pairwise(steps):
        assert rate * (end_s - start_s) >= packet_bits * (1 - 1e-6)
    own = trace.starts_ns[trace.starts_ns < duration_s * NS] / NS
    for instant_s in (*own.tolist(), *(start_s for start_s, _ in steps), duration_s):
        ours = float(trace.bits_until(np.array([round(instant_s * NS)]))[0])
        assert abs(let_through(steps, instant_s) - ours) <= packet_bits * (1 + 1e-6) + 1e-9 * ours


class TestCsv:
    @pytest.mark.parametrize(
        "text",
        [
            "0,1000000\n1.5,20000000\n",
            "0,1000000\n1.5,20000000",
            "0,1000000\r\n1.5,20000000\r\n",
            "\ufeff0,1000000\n1.5,20000000\n",
            "\n\n0,1000000\n\n 1.5 ,\t20000000 \n\n",
            "# ours: µ\n0,1e6 # begins\n1.5,2e7\n",
            "time_s,rate_bps\n0,1000000\n1.5,20000000\n",
            "time,rate\n0,1000000\n1.5,20000000\n",
            "Time_ms , Rate_Mbps\n0,1\n1500,20\n",
            "time_us,rate_kbps\n0,1000\n1500000,20000\n",
            "time_s,rate_gbps\n0,.001\n+1.5,0.02\n",
            "0s,1mbit\n1500ms,2.5MB/s\n",
            "time,rate\n0,1mbit\n1.5s,20000000\n",
            "time_s,rate\n0,1mbit\n1.5,20mbit\n",
            "3,1mbit\n4.5,20mbit\n".replace("4.5", "1.5").replace("3,", "0.7,"),
        ],
    )
    @pytest.mark.parametrize("name", ["t.csv", "t.CSV", "t"])
    def test_reads(self, tmp_path: Path, text: str, name: str) -> None:
        trace = read(tmp_path, text, name)
        assert (trace.form, trace.lines, trace.period_s, trace.length_s) == ("csv", 2, None, 1.5)
        assert trace.upto(60) == ((0.0, 1e6), (1.5, 2e7))
        assert trace.upto(1.5) == ((0.0, 1e6),)
        assert trace.mean_bps(3) == pytest.approx(10.5e6, rel=1e-12)

    def test_neighbours_with_one_rate_are_one_step(self, tmp_path: Path) -> None:
        assert read(tmp_path, "0,1e6\n1,1e6\n2,2e6\n3,2000000\n").upto(9) == ((0.0, 1e6), (2.0, 2e6))

    def test_an_outage_lets_one_packet_through(self, tmp_path: Path) -> None:
        trace = read(tmp_path, "0,50mbit\n1,0\n1.1,0\n1.2,40mbit\n2,10mbit\n")
        assert trace.longest_outage_s == pytest.approx(0.2)
        assert trace.upto(3) == (
            (0.0, 50e6),
            (1.0, pytest.approx(FRAME / 0.2)),
            (1.2, pytest.approx(40e6 - FRAME / 0.8)),
            (2.0, 10e6),
        )

    def test_an_outage_shorter_than_a_packet_is_a_slower_step(self, tmp_path: Path) -> None:
        trace = read(tmp_path, "0,5mbit\n1,0\n1.001,5mbit\n1.1,4mbit\n")
        assert trace.upto(3) == ((0.0, 5e6), (1.0, pytest.approx(5e6 * 0.099 / 0.1)), (1.1, 4e6))

    def test_an_outage_at_the_start_and_one_at_the_run_s_end(self, tmp_path: Path) -> None:
        trace = read(tmp_path, "0,0\n1,8mbit\n2,0\n9,8mbit\n")
        assert trace.upto(3)[0] == (0.0, FRAME)
        assert trace.upto(3)[-1] == (2.0, pytest.approx(FRAME / 7))
        assert trace.longest_outage_s == 7

    def test_steps_too_short_for_a_packet_are_joined(self, tmp_path: Path) -> None:
        trace = read(tmp_path, "0,1mbit\n0.01,1.4mbit\n0.02,2mbit\n")
        assert trace.upto(1) == ((0.0, pytest.approx(1.2e6)), (0.02, 2e6))

    @given(
        st.lists(
            st.tuples(
                st.sampled_from([0.0001, 0.01, 0.1, 1.0]) | st.floats(1e-6, 2),
                st.just(0) | st.integers(1000, 10**8) | st.sampled_from([10**3, 5 * 10**6]),
            ),
            max_size=30,
        ),
        st.integers(1000, 10**8),
        st.floats(0.001, 40),
    )
    def test_steps_stay_near_the_rates(
        self, folder: Path, parts: list[tuple[float, int]], last_bps: int, duration_s: float
    ) -> None:
        starts = np.cumsum([0, *(round(length_s * 1e6) for length_s, _ in parts)]) / 1e6
        lines = zip(starts.tolist(), [*(rate for _, rate in parts), last_bps], strict=True)
        trace = read(folder, "".join(f"{start:.6f},{rate}\n" for start, rate in lines), "t.csv")
        check_near(trace, duration_s, FRAME)

    @given(st.lists(st.integers(1, 10**6), min_size=1, max_size=60, unique=True), st.integers(30, 90))
    def test_blocks_do_not_matter(self, folder: Path, instants_ms: list[int], block: int) -> None:
        lines = "".join(f"{ms / 1e3},{7919 * ms % 10**6 + 1000}\n" for ms in sorted(instants_ms))
        text = f"time_s,rate_kbps\n{lines}"
        whole = read(folder, text, "t.csv")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(files, "_BLOCK_BYTES", block)
            parts = read(folder, text, "t.csv")
            slowly = read(folder, text.replace("\n", " # ms\r\n"), "t.csv")
        assert rows(parts) == rows(whole) == rows(slowly)


BEYOND = "times count from the trace's own start: take the first off all"
RATE_RULE = "a rate lies between 1kbit and 400gbit, or is 0 for an outage"
BARE = "a bare number is bit/s: write 40mbit, or name the column rate_mbps"
NOT_TEXT = "a trace is plain text, in UTF-8: unpack or convert it"
SORT = "times rise from line to line: sort the lines"
NO_RATE = "write a number and a unit, such as 100mbit or 12.5MB/s"
WHOLE = "is not a whole number of milliseconds; write a line a packet, such as 12, or time,rate"

FAULTS: list[tuple[str, str | bytes, str]] = [
    *(
        (
            "t.up",
            text,
            ": says nothing; write time,rate in each line, or a line a packet with its millisecond",
        )
        for text in ("", "\n\r\n  \n", "# only this\n", "\ufeff")
    ),
    (
        "t.up",
        "0\n0\n",
        ": its last time is 0; deliveries repeat after their last time, so end with a later one",
    ),
    ("t.up", "5\n7\n6\n", ", line 3: '6' comes after 7; times never go back: sort the lines"),
    ("t.up", "5\n\n-7\n", ", line 3: '-7' is negative; times count in milliseconds from 0"),
    ("t.up", "1.5\n", f", line 1: '1.5' {WHOLE} in a file whose name ends in .csv"),
    ("t.up", "1\n1 2\n", f", line 2: '1 2' {WHOLE} in a file whose name ends in .csv"),
    ("t.up", "1\n2,3\n", f", line 2: '2,3' {WHOLE} in a file whose name ends in .csv"),
    ("t.up", "1\nnan\n", f", line 2: 'nan' {WHOLE} in a file whose name ends in .csv"),
    ("t.up", "1_0\n", f", line 1: '1_0' {WHOLE} in a file whose name ends in .csv"),
    ("t.up", "٣\n", f", line 1: '٣' {WHOLE} in a file whose name ends in .csv"),
    ("t.up", "1\r2\n", f", line 1: '1\\r2' {WHOLE} in a file whose name ends in .csv"),
    ("t.up", "1\n1000000001\n", f", line 2: '1000000001' is beyond 1000000000 ms; {BEYOND}"),
    ("t.up", f"{10**30}\n", f", line 1: '{10**30}' is beyond 1000000000 ms; {BEYOND}"),
    ("t.up", "9" * 5000 + "\n", f", line 1: '{'9' * 37}...' is beyond 1000000000 ms; {BEYOND}"),
    (
        "t.up",
        "1\n" * 40_000,
        f": its deliveries at 0s come to 484.5 Gbit/s; {RATE_RULE}: take out lines, or take a longer step",
    ),
    ("t.up", b"1\n2\n\x00\x01", f", line 3: is not text; {NOT_TEXT}"),
    ("t.up", b"\x1f\x8b\x08 gzip", f", line 1: is not UTF-8; {NOT_TEXT}"),
    ("t.up", b"1\n\xe4\n", f", line 2: is not UTF-8; {NOT_TEXT}"),
    ("t.up", "1\n".encode("utf-16"), f", line 1: is not text; {NOT_TEXT}"),
    ("t.csv", "0,1e6\n2,1e6\n1,1e6\n", f", line 3: time '1' is not after 2s, the one before; {SORT}"),
    ("t.csv", "0,1e6\n0,2e6\n", f", line 2: time '0' is not after 0s, the one before; {SORT}"),
    ("t.csv", "0,1e6\n1e-10,2e6\n", f", line 2: time '1e-10' is not after 0s, the one before; {SORT}"),
    ("t.csv", "-1,1e6\n", ", line 1: time '-1' is negative; times count from 0"),
    ("t.csv", "1700000000,1e6\n", f", line 1: time '1700000000' is beyond 1000000 s; {BEYOND}"),
    ("t.csv", "1e999,1e6\n", f", line 1: time '1e999' is beyond 1000000 s; {BEYOND}"),
    ("t.csv", "0,-5\n", f", line 1: rate '-5' is out of range; {RATE_RULE}"),
    ("t.csv", "0,40\n", f", line 1: rate '40' is out of range; {RATE_RULE}; {BARE}"),
    ("t.csv", "0,1e12\n", f", line 1: rate '1e12' is out of range; {RATE_RULE}"),
    ("t.csv", "0,1e999\n", f", line 1: rate '1e999' is out of range; {RATE_RULE}"),
    ("t.csv", "0,500bit\n", f", line 1: rate '500bit' is out of range; {RATE_RULE}"),
    ("t.csv", "time_s,rate_mbps\n0,0.0001\n", f", line 2: rate '0.0001' is out of range; {RATE_RULE}"),
    ("t.csv", "0,nan\n", f", line 1: 'nan' is not a rate; {NO_RATE}"),
    ("t.csv", "0,inf\n", f", line 1: 'inf' is not a rate; {NO_RATE}"),
    ("t.csv", "0,\n", f", line 1: '' is not a rate; {NO_RATE}"),
    ("t.csv", "nan,1e6\n", ", line 1: 'nan' is not a time; write a number and a unit, such as 200ms or 1.5s"),
    (
        "t.csv",
        "0,10mbps\n",
        ", line 1: '10mbps' is ambiguous: `mbps` is megabits to some and megabytes per second to tc;"
        " write a rate such as 100mbit or 12.5MB/s",
    ),
    (
        "t.csv",
        "time_s,rate_mbps\n0,40mbit\n",
        ", line 2: '40mbit' is not a number; in column rate_mbps write bare ones, such as 40",
    ),
    (
        "t.csv",
        "time_s,rate_mbps\n0,nan\n",
        ", line 2: 'nan' is not a number; in column rate_mbps write bare ones, such as 40",
    ),
    (
        "t.csv",
        "0,1e6,3\n",
        ", line 1: '0,1e6,3' has 3 columns; write two, time and rate, with a comma between",
    ),
    ("t.csv", "0\n1\n", ", line 1: '0' has 1 column; write two, time and rate, with a comma between"),
    ("t.csv", "0;1e6\n", ", line 1: '0;1e6' has 1 column; write two, time and rate, with a comma between"),
    (
        "t.csv",
        "0,1e6\n1\n2,3,4\n",
        ", line 2: '1' has 1 column; write two, time and rate, with a comma between",
    ),
    (
        "t.csv",
        "seconds,rate\n0,1e6\n",
        ", line 1: 'seconds' is no name for this column; name it time_s, time_ms, time_us, time",
    ),
    (
        "t.csv",
        "time,bandwidth\n0,1e6\n",
        ", line 1: 'bandwidth' is no name for this column;"
        " name it rate_bps, rate_kbps, rate_mbps, rate_gbps, rate",
    ),
    ("t.csv", "time,rate\n", ": has a header and no line below it; write time,rate in each"),
    *(
        (
            "t.csv",
            text,
            ": its last rate is 0, an outage without an end;"
            " add a line with the time at which the link is back",
        )
        for text in ("0,0\n", "0,1e6\n1,0\n", "0,0mbit\n", "0,1e6\n1,-0\n")
    ),
    ("t.csv", b"0,1e6\n\xe4,2e6\n", f", line 2: is not UTF-8; {NOT_TEXT}"),
]


class TestFaults:
    @pytest.mark.parametrize(("name", "text", "said"), FAULTS, ids=range(len(FAULTS)))
    def test_of_a_text(self, tmp_path: Path, name: str, text: str | bytes, said: str) -> None:
        with pytest.raises(UserError) as refused:
            read(tmp_path, text, name)
        assert str(refused.value) == f"{tmp_path / name}{said}"

    def test_the_line_is_that_of_the_file_in_any_block(self, tmp_path: Path) -> None:
        text = "".join(f"{ms}\n" for ms in range(300_000)) + "7\n"
        with pytest.raises(UnitError, match=r"t\.up, line 300001: '7' comes after 299999; "):
            read(tmp_path, text)
        text = "time_s,rate_mbps\n" + "".join(f"{ms / 1e3},5\n" for ms in range(300_000)) + "300,-5\n"
        with pytest.raises(UnitError, match=r"t\.csv, line 300002: rate '-5' is out of range; "):
            read(tmp_path, text, "t.csv")

    def test_of_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        for path in (tmp_path / "none.csv", tmp_path / "none" / "t.csv"):
            with pytest.raises(UserError) as refused:
                traces.load(path)
            assert (
                str(refused.value)
                == f"{path}: there is no such file; name a trace, such as traces/fading.csv"
            )

    def test_of_a_name_that_no_file_has(self, tmp_path: Path) -> None:
        for name in ("a\0b", "x" * 300):
            with pytest.raises(UserError):
                traces.load(tmp_path / name)
            with pytest.raises(UserError):
                traces.digest(tmp_path / name)

    def test_of_a_folder_and_of_a_pipe(self, tmp_path: Path) -> None:
        with pytest.raises(UserError) as refused:
            traces.load(tmp_path)
        assert str(refused.value) == f"{tmp_path}: is a folder; name a trace in it"
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        with pytest.raises(UserError) as refused:
            traces.load(pipe)
        assert str(refused.value) == f"{pipe}: is no regular file; save the trace to one"

    @pytest.mark.parametrize(
        ("error", "said"),
        [
            (
                PermissionError(13, "Permission denied"),
                "may not be read by this user; change its mode, or copy it to a folder of yours",
            ),
            (OSError(5, "Input/output error"), "cannot be read (Input/output error); name another file"),
        ],
    )
    def test_of_a_file_that_the_machine_refuses(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, said: str
    ) -> None:
        path = tmp_path / "t.csv"
        path.write_text("0,1mbit\n")

        def refuse(*_: object) -> None:
            raise error

        monkeypatch.setattr(Path, "open", refuse)
        for use in (traces.load, traces.digest):
            with pytest.raises(UserError) as refused:
                use(path)
            assert str(refused.value) == f"{path}: {said}"

    def test_of_a_line_without_an_end(self, tmp_path: Path) -> None:
        with pytest.raises(UnitError) as refused:
            read(tmp_path, "1\n" + "1" * 2**21)
        assert str(refused.value) == (
            f"{tmp_path / 't.up'}, line 2: is over a mebibyte long; a line of a trace has one or two numbers"
        )

    def test_of_more_steps_than_a_run_takes(self, tmp_path: Path) -> None:
        text = "".join(f"{ms / 10},{1 + ms % 2}mbit\n" for ms in range(MOST_STEPS + 1))
        trace = read(tmp_path, text, "t.csv")
        assert len(trace.upto(10_000)) == MOST_STEPS
        with pytest.raises(UserError) as refused:
            trace.upto(10_001)
        path = tmp_path / "t.csv"
        assert str(refused.value) == (
            f"{path}: has over 100000 steps within 10001s, more than a run takes; convert it:"
            f" wanlab trace convert {path} coarse.csv --duration 10001s --step 100ms"
        )

    def test_of_more_steps_by_repetition(self, tmp_path: Path) -> None:
        trace = read(tmp_path, times([1, 2, 2]), step_s=0.001)
        assert len(trace.upto(100)) == MOST_STEPS
        with pytest.raises(UserError) as refused:
            trace.upto(100.1)
        assert str(refused.value) == (
            f"{tmp_path / 't.up'}: has over 100000 steps within 100.1s, more than a run takes;"
            " take longer ones, such as trace_step=100ms"
        )

    @given(st.binary(max_size=40) | st.text("0123456789.,-+einf \n\r#tabms_", max_size=60).map(str.encode))
    @pytest.mark.parametrize("name", ["t.csv", "t.up"])
    def test_reads_or_refuses_and_never_breaks(self, folder: Path, name: str, text: bytes) -> None:
        said = ""
        try:
            check_form(read(folder, text, name).upto(1))
        except UserError as refused:
            said = str(refused)
        assert not said or said.startswith(str(folder / name))


class TestSampling:
    def test_bits_over_periods(self, tmp_path: Path) -> None:
        trace = read(tmp_path, times([10, 20, 20, 20]))
        instants = np.array([0, 5, 10, 15, 20, 45], dtype=np.int64) * 10**6
        packets = np.array([0, 0.5, 1, 2.5, 4, 8.5])
        assert trace.bits_until(instants) / DELIVERY == pytest.approx(packets)

    def test_sampled_and_over(self, tmp_path: Path) -> None:
        trace = read(tmp_path, "0,1mbit\n1,3mbit\n", "t.csv")
        starts, rates = trace.sampled(2.5, 1)
        assert starts.tolist() == [0, 10**9, 2 * 10**9]
        assert rates.tolist() == pytest.approx([1e6, 3e6, 3e6])
        assert trace.sampled(2, 2)[1].tolist() == pytest.approx([2e6])
        assert trace.over(0.5)[1].tolist() == [1e6]
        repeated = read(tmp_path, times([10, 20, 20])).over(0.05)
        assert repeated[0].tolist() == [n * 10**7 for n in range(5)]
        assert (repeated[1] / DELIVERY).tolist() == pytest.approx([100, 200, 100, 200, 100])

    def test_arrays_are_read_only(self, tmp_path: Path) -> None:
        for text in ("1\n20\n", "0,1mbit\n"):
            trace = read(tmp_path, text)
            for array in (trace.starts_ns, trace.rates_bps):
                with pytest.raises(ValueError, match="read-only"):
                    array[0] = 1


class TestDigest:
    def test_is_of_the_bytes(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("1\n")
        (tmp_path / "b").write_text("1\r\n")
        assert traces.digest(tmp_path / "a") == "4355a46b"
        assert traces.digest(tmp_path / "b") != traces.digest(tmp_path / "a")


class TestWriting:
    @given(
        st.lists(st.tuples(st.integers(1, 400), st.just(0) | st.integers(10**3, 10**8)), max_size=12),
        st.integers(10**5, 10**8),
        st.integers(1, 100),
    )
    @example([(1, 12_112_000)], 12_112_000, 100)
    @example([], 10**5, 1)
    def test_deliveries_follow_the_rates(
        self, parts: list[tuple[int, int]], last_bps: int, rest_ms: int
    ) -> None:
        starts_ms = np.cumsum([0, *(ms for ms, _ in parts)])
        rates = np.array([*(rate for _, rate in parts), last_bps], dtype=np.float64)
        end_ms = int(starts_ms[-1]) + rest_ms
        text = "".join(deliveries.text("t", starts_ms * 10**6, rates, end_ms / 1e3))
        due_ms = [int(line) for line in text.splitlines()]
        assert due_ms == sorted(due_ms)
        assert due_ms[0] >= 1
        assert due_ms[-1] == end_ms
        bits = np.concatenate([[0], np.cumsum(rates * np.diff([*starts_ms, end_ms]) / 1e3)])
        for ms in range(end_ms + 1):
            through = np.interp(ms, [*starts_ms, end_ms], bits) / DELIVERY
            # the last line may stand for a part of a packet
            assert -1e-6 <= through - sum(1 for one in due_ms if one <= ms) + (ms == end_ms) < 2 + 1e-6
            if ms < end_ms:
                assert through - sum(1 for one in due_ms if one <= ms) < 1 + 1e-6

    def test_deliveries_of_a_constant_link(self) -> None:
        starts, rates = np.array([0]), np.array([12_112_000.0])
        assert "".join(deliveries.text("t", starts, rates, 0.005)) == "1\n2\n3\n4\n5\n"
        assert "".join(deliveries.text("t", starts, rates / 1e3, 0.005)) == "5\n"

    def test_csv(self) -> None:
        starts, rates = np.array([0, 5, 10, 12]) * 10**8, np.array([1e6, 1e6, 0, 1234567.5])
        assert "".join(table.text(starts, rates)) == "time_s,rate_bps\n0,1000000\n1,0\n1.2,1234567.5\n"

    @pytest.mark.parametrize(
        ("rates", "said"),
        [
            ([1e6, 500.0, 1e6], f"at 1s the rate is 500 bit/s; {RATE_RULE}"),
            (
                [1e6, 0.0],
                "the last rate is 0, an outage without an end;"
                " take a duration that ends when the link is back",
            ),
        ],
    )
    def test_a_csv_that_could_not_be_read_is_not_written(self, rates: list[float], said: str) -> None:
        with pytest.raises(UnitError) as refused:
            list(table.text(np.arange(len(rates)) * NS, np.array(rates)))
        assert str(refused.value) == said

    @given(st.lists(st.tuples(st.integers(1, 10**12), st.integers(10**3, 4 * 10**11)), max_size=20))
    def test_a_csv_reads_as_it_was_written(self, folder: Path, parts: list[tuple[int, int]]) -> None:
        starts = np.cumsum([0, *(ns for ns, _ in parts)])
        rates = np.array([*(float(rate) for _, rate in parts), 1e6])
        trace = read(folder, "".join(table.text(starts, rates)), "t.csv")
        changes = np.flatnonzero(np.diff(rates, prepend=-1))
        assert trace.starts_ns.tolist() == starts[changes].tolist()
        assert trace.rates_bps.tolist() == rates[changes].tolist()

    def test_too_many_lines(self) -> None:
        with pytest.raises(UserError) as refused:
            list(deliveries.text("t.up", np.array([0]), np.array([1e11]), 60))
        assert str(refused.value) == (
            "t.up: would have over 10000000 lines; take a shorter duration, a longer step or a lower rate"
        )

    def test_never_over_a_file_that_is_there(self, tmp_path: Path) -> None:
        path = tmp_path / "t"
        files.write(path, ["1\n", "2\n"])
        with pytest.raises(UserError) as refused:
            files.write(path, ["3\n"])
        assert str(refused.value) == f"{path}: is there already; name another file, or --force to replace it"
        assert path.read_text() == "1\n2\n"
        files.write(path, ["3\n"], force=True)
        assert path.read_text() == "3\n"

    def test_what_breaks_off_leaves_nothing(self, tmp_path: Path) -> None:
        def broken() -> object:
            yield "1\n"
            raise UnitError("no")

        with pytest.raises(UnitError):
            files.write(tmp_path / "t", broken())  # type: ignore[arg-type]
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("force", [True, False])
    def test_only_regular_files(self, tmp_path: Path, force: bool) -> None:
        for path, said in (
            (tmp_path, "is a folder; name a file in it"),
            (Path("/dev/null"), "is no regular file; name one"),
            (
                tmp_path / "no" / "t",
                "cannot be written (No such file or directory); name a file in a folder of yours",
            ),
        ):
            with pytest.raises(UserError) as refused:
                files.write(path, ["1\n"], force=force)
            assert str(refused.value) == f"{path}: {said}"


FORMULA_PARTS = (
    "is no part of a formula; write it of t, pi, numbers with or without a unit, + - * / % **, comparisons"
    " and sin, cos, exp, abs, min, max, such as 20mbit + 10mbit*sin(2*pi*t/10)"
)


class TestFormula:
    @pytest.mark.parametrize(
        ("text", "values"),
        [
            ("12mbit", [12e6, 12e6, 12e6]),
            (" 12.5 Mbit/s ", [12.5e6, 12.5e6, 12.5e6]),
            ("1MB/s + t", [8e6, 8e6 + 2, 8e6 + 4]),
            ("2.5e3kbit", [2.5e6] * 3),
            ("1e3 + 2E-1*t", [1000, 1000.4, 1000.8]),
            ("t/500ms", [0, 4, 8]),
            ("-t % 3 + +1", [1, 2, 3]),
            ("2**t", [1, 4, 16]),
            ("5*(1 < t <= 4) + (t == 0) + 2*(t != 0)", [1, 7, 7]),
            ("max(t, 1, 3) + min(t, 1)", [3, 4, 5]),
            ("abs(t - 2) + cos(0*t) + exp(0) + sin(pi/2)", [5, 3, 5]),
            ("9**9**9**9", [math.inf] * 3),
            ("9" * 900, [math.inf] * 3),
            ("1/t", [math.inf, 0.5, 0.25]),
        ],
    )
    def test_reads(self, text: str, values: list[float]) -> None:
        assert formula.evaluated(text, np.array([0.0, 2.0, 4.0])).tolist() == pytest.approx(values)

    def test_no_number_is_one(self) -> None:
        assert math.isnan(formula.evaluated("t % 0", np.array([1.0]))[0])

    @pytest.mark.parametrize(
        ("text", "what"),
        [
            ("__import__('os').system('true')", '"\'"'),
            ("open(t)", "'open(t)'"),
            ("t.real", "'t.real'"),
            ("(lambda: 1)()", "':'"),
            ("[1][0]", "'['"),
            ("{1}", "'{'"),
            ("t @ t", "'@'"),
            ("t if t else 1", "'t if t else 1'"),
            ("t and 1", "'t and 1'"),
            ("not t", "Not"),
            ("t // 2", "FloorDiv"),
            ("t << 2", "LShift"),
            ("t is t", "Is"),
            ("True", "'True'"),
            ("x", "'x'"),
            ("sin", "'sin'"),
            ("sin(t, t)", "'sin(t, t)'"),
            ("min(t)", "'min(t)'"),
            ("max(*t)", "'max(*t)'"),
            ("max(t, t, key=t)", "'max(t, t, key=t)'"),
            ("sin(1)(2)", "'sin(1)(2)'"),
            ("t, t", "'(t, t)'"),
            ("12mbit # twelve", "'#'"),
            ("٣", "'٣'"),
        ],
    )
    def test_knows_nothing_else(self, text: str, what: str) -> None:
        with pytest.raises(UnitError) as refused:
            formula.evaluated(text, np.array([1.0]))
        assert str(refused.value) == f"{text!r}: {what} {FORMULA_PARTS}"

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("", "'' is no formula; write arithmetic in t, such as 20mbit + 10mbit*sin(2*pi*t/10)"),
            ("t +", "'t +' is no formula; write arithmetic in t, such as 20mbit + 10mbit*sin(2*pi*t/10)"),
            ("2t", "'2t' lacks a sign between the two; write 2*t"),
            ("2 pi", "'2pi' lacks a sign between the two; write 2*pi"),
            ("2sin(t)", "'2sin' lacks a sign between the two; write 2*sin"),
            (
                "10mbps",
                "'10mbps' is ambiguous: `mbps` is megabits to some and megabytes per second to tc;"
                " write a rate such as 100mbit or 12.5MB/s",
            ),
            (
                "0x10",
                "'0x': 'x' is not a unit of a time (s, ms, us, ns, min); write it such as 200ms or 1.5s",
            ),
            (
                "-" * 500 + "t",
                f"'{'-' * 37}...' has too many parts; write a shorter one,"
                " such as 20mbit + 10mbit*sin(2*pi*t/10)",
            ),
            (
                "(" * 600 + "t" + ")" * 600,
                f"'{'(' * 37}...' has 1201 characters; a formula has up to 1000,"
                " such as 20mbit + 10mbit*sin(2*pi*t/10)",
            ),
            (
                "(" * 499 + "t" + ")" * 499,
                f"'{'(' * 37}...' is no formula; write arithmetic in t,"
                " such as 20mbit + 10mbit*sin(2*pi*t/10)",
            ),
        ],
    )
    def test_refuses(self, text: str, said: str) -> None:
        with pytest.raises(UnitError) as refused:
            formula.evaluated(text, np.array([1.0]))
        assert str(refused.value) == said

    @given(st.text("t012.5mbit/s()*+-%<>=! sincoexpmaxpi,_", max_size=40) | st.text(max_size=20))
    def test_reads_or_refuses_and_never_breaks(self, text: str) -> None:
        try:
            values = formula.evaluated(text, np.array([0.0, 1.0]))
        except UnitError:
            return
        assert values.shape == (2,)

    def test_is_taken_in_the_middle_of_each_step(self) -> None:
        starts, rates = formula.sampled("1mbit*t", 0.25, 0.1)
        assert starts.tolist() == [0, 10**8, 2 * 10**8]
        assert rates.tolist() == [50_000, 150_000, 225_000]

    @pytest.mark.parametrize(
        ("text", "came"),
        [
            ("1mbit - 2mbit*t", "-500000 bit/s at 750ms"),
            ("500bit", "500 bit/s at 250ms"),
            ("1tbit", "1e+12 bit/s at 250ms"),
            ("1mbit/(t < 0)", "no finite number at 250ms"),
            ("t % 0", "no finite number at 250ms"),
        ],
    )
    def test_refuses_what_no_link_has(self, text: str, came: str) -> None:
        with pytest.raises(UnitError) as refused:
            formula.sampled(text, 1, 0.5)
        assert str(refused.value) == (
            f"{text!r} is {came}; {RATE_RULE}: keep it there, such as by max(1kbit, min(..., 400gbit))"
        )


class TestOurs:
    """The traces of this repository."""

    @pytest.mark.parametrize("name", sorted(make.contents()))
    def test_are_as_their_script_makes_them(self, name: str) -> None:
        assert (OURS / name).read_text(encoding="utf-8") == make.contents()[name]
        assert (OURS / name).stat().st_size < 100_000

    def test_are_all(self) -> None:
        assert {path.name for path in OURS.iterdir() if path.is_file()} == {
            "make.py",
            "README.md",
            *make.contents(),
        }

    def test_fading(self) -> None:
        trace = traces.load(OURS / "fading.csv")
        assert trace.length_s == pytest.approx(59.9)
        assert 18e6 < trace.mean_bps(60) < 23e6
        assert 2e6 < trace.rates_bps.min() < 5e6
        assert 35e6 < trace.rates_bps.max() <= 40e6

    def test_handover(self) -> None:
        trace = traces.load(OURS / "handover.csv")
        outages = np.flatnonzero(trace.rates_bps == 0)
        assert (trace.starts_ns[outages] / NS).tolist() == [5, 20, 35, 50]
        lengths = (trace.starts_ns[outages + 1] - trace.starts_ns[outages]) / NS
        assert all(0.1 <= length <= 0.3 for length in lengths)

    def test_cellular(self) -> None:
        trace = traces.load(OURS / "cellular.mahimahi")
        assert (trace.form, trace.period_s) == ("mahimahi", 15)
        assert 11.5e6 < trace.mean_bps(15) < 12.5e6


def test_importing_the_package_does_not_import_numpy() -> None:
    script = "import sys, lab.traces; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=OURS.parent, check=False).returncode == 0
