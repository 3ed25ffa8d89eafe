"""A path measured by trains, pings and probes: against paths that are reckoned, not built."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import clock
from lab.errors import MeasurementError
from lab.remote import measure
from lab.remote.measure import Ends, MeasuredPath, TrainShape

MTU = 1500
SENDER_BPS = 3e9
"""How fast these senders hand packets over, one at a call."""


class FakePath:
    """A shaper with a bucket, then a queue, then a delay; sends trains on paper.

    late_ns: arrivals are told of at multiples of it, as a card that gathers them does.
    """

    def __init__(
        self,
        rate_bps: float,
        *,
        burst_bytes: float = 3028,
        queue_bytes: float = 1e9,
        loss: float = 0.0,
        late_ns: int = 1,
        mtu_bytes: int = MTU,
    ) -> None:
        self.rate_bps, self.burst_bytes, self.queue_bytes = rate_bps, burst_bytes, queue_bytes
        self.loss, self.late_ns, self.mtu_bytes = loss, late_ns, mtu_bytes
        self._chance = random.Random("path")

    def train(self, packets: int, mtu_bytes: int, sender_bps: float) -> tuple[list[list[int]], int]:
        """Return arrivals and how long sending took, ns."""
        size = mtu_bytes + 14
        tokens, free_at_s, found = self.burst_bytes, 0.0, []
        last_s = 0.0
        for number in range(packets):
            now_s = number * size * 8 / sender_bps
            tokens = min(self.burst_bytes, tokens + (now_s - last_s) * self.rate_bps / 8)
            last_s = now_s
            if max(0.0, free_at_s - now_s) * self.rate_bps / 8 > self.queue_bytes:
                continue
            if tokens >= size and free_at_s <= now_s:
                tokens -= size
                free_at_s = now_s
            else:
                free_at_s = max(free_at_s, now_s) + size * 8 / self.rate_bps
                tokens = 0.0
            if self._chance.random() >= self.loss:
                at_ns = round(free_at_s * 1e9) + 10**18
                found.append([number, at_ns // self.late_ns * self.late_ns])
        return found, round(packets * size * 8 / sender_bps * 1e9)


class FakeHost:
    """An end of a fake path: does what the agent's operations do. asked: all that it was told to do."""

    def __init__(self, name: str, path: FakePath, **told: Any) -> None:
        self.name, self._path, self._told = name, path, told
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.peer: FakeHost | None = None
        self.waiting: list[list[int]] = []

    def call(self, op: str, _timeout_s: float, /, **args: Any) -> Any:
        self.asked.append((op, args))
        if op == "train_send":
            assert self.peer is not None
            sender_bps = self._told.get("sender_bps", SENDER_BPS * args["burst"])
            arrivals, sent_ns = self._path.train(args["packets"], args["mtu_bytes"], sender_bps)
            self.peer.waiting = arrivals
            return {"sent_ns": sent_ns}
        if op == "train_read":
            return {"arrivals": self.waiting}
        if op == "path_mtu":
            return {"mtu_bytes": min(args["largest"], self._path.mtu_bytes)}
        if op == "pings":
            rtts = self._told.get("rtts_s", [0.0101, 0.01, 0.0103])
            return {"rtts_s": rtts, "lost": args["count"] - len(rtts), "by": "icmp"}
        if op == "clock_offset":
            return {"offset_ns": 5, "error_ns": 2}
        return {}


@pytest.fixture(autouse=True)
def on_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here takes time: nothing has to be waited for, and a train is sent before it is read."""

    def one_by_one(tasks: dict[str, Callable[[], Any]]) -> dict[str, Any]:
        return {name: tasks[name]() for name in ("send", "read")}

    monkeypatch.setattr(clock, "sleep_until_ns", lambda _deadline_ns: None)
    monkeypatch.setattr(measure, "parallel", one_by_one)


def ends(path: FakePath, **told: Any) -> Ends:
    sender, receiver = FakeHost("sender", path, **told), FakeHost("receiver", path)
    sender.peer = receiver
    return Ends((sender, "192.0.2.1"), (receiver, "192.0.2.2"))  # type: ignore[arg-type]


class TestRateOfATrain:
    @given(st.floats(1e5, 1e10), st.integers(16, 400))
    def test_is_the_link_s(self, rate_bps: float, packets: int) -> None:
        arrivals, _ = FakePath(rate_bps).train(packets, MTU, 1e12)
        assert measure.train_rate_bps(arrivals, MTU) == pytest.approx(rate_bps, rel=0.01)

    def test_is_not_what_a_bucket_lets_through_at_once(self) -> None:
        arrivals, _ = FakePath(1e8, burst_bytes=100 * 1514).train(400, MTU, 1e10)
        assert measure.train_rate_bps(arrivals, MTU) == pytest.approx(1e8, rel=0.01)

    def test_counts_only_what_arrived(self) -> None:
        """What a full queue drops takes no time of the link."""
        arrivals, _ = FakePath(1e8, queue_bytes=60 * 1514).train(1000, MTU, 1e10)
        assert len(arrivals) < 200
        assert measure.train_rate_bps(arrivals, MTU) == pytest.approx(1e8, rel=0.02)

    def test_does_not_mind_what_gathers_packets(self) -> None:
        arrivals, _ = FakePath(1e9, late_ns=100_000).train(2000, MTU, 1e11)
        assert measure.train_rate_bps(arrivals, MTU) == pytest.approx(1e9, rel=0.02)

    def test_does_not_mind_the_order(self) -> None:
        arrivals, _ = FakePath(1e8).train(100, MTU, 1e10)
        assert measure.train_rate_bps(arrivals[::-1], MTU) == measure.train_rate_bps(arrivals, MTU)

    @pytest.mark.parametrize("arrivals", [[], [[0, 1]], [[n, 7] for n in range(100)]])
    def test_is_unknown_where_too_few_instants_tell(self, arrivals: list[list[int]]) -> None:
        assert measure.train_rate_bps(arrivals, MTU) is None


class TestMeasure:
    @pytest.mark.parametrize("rate_bps", [64e3, 1e6, 1e8, 1e9])
    def test_finds_the_path(self, rate_bps: float) -> None:
        found = measure.measure(ends(FakePath(rate_bps)), 9000)
        assert found.mtu_bytes == MTU
        assert found.base_rtt_s == 0.01
        assert found.rate_bps == pytest.approx(rate_bps, rel=0.02)
        assert len(found.rates_bps) == measure.TRAINS
        assert not found.at_least
        assert list(measure.remarks(found)) == [
            "97% of the idle pings were not answered: the path loses packets by itself"
        ]

    def test_a_rate_that_is_not_wanted_is_not_measured(self) -> None:
        both = ends(FakePath(1e8))
        found = measure.measure(both, MTU, trains=False)
        assert (found.rate_bps, found.bdp_bytes, found.rates_bps) == (None, None, ())
        assert not any("train" in op for op, _ in both.receiver.asked)  # type: ignore[attr-defined]
        assert len(list(measure.remarks(found))) == 1

    def test_trains_outgrow_the_bucket_of_a_shaper(self) -> None:
        """Of 1 MB, which lets the first 690 packets through at once."""
        found = measure.measure(ends(FakePath(1e8, burst_bytes=1e6)), MTU)
        assert found.rate_bps == pytest.approx(1e8, rel=0.02)
        assert found.train_packets > 1000

    def test_a_short_queue_is_no_hindrance(self) -> None:
        found = measure.measure(ends(FakePath(1e8, queue_bytes=64e3)), MTU)
        assert found.rate_bps == pytest.approx(1e8, rel=0.02)
        assert found.train_loss > 0

    def test_losses_are_no_hindrance(self) -> None:
        found = measure.measure(ends(FakePath(1e8, loss=0.02)), MTU)
        assert found.rate_bps == pytest.approx(1e8 * 0.98, rel=0.02)

    def test_a_sender_that_is_too_slow_hands_over_bursts(self) -> None:
        """8 packets a call are 24 Gbit/s here, where one is 3."""
        found = measure.measure(ends(FakePath(5e9)), MTU)
        assert (found.train_burst, found.at_least) == (8, False)
        assert found.rate_bps == pytest.approx(5e9, rel=0.02)

    def test_a_sender_that_is_too_slow_all_the_same_is_told(self) -> None:
        found = measure.measure(ends(FakePath(5e9), sender_bps=3e9), MTU)
        assert found.at_least
        assert found.rate_bps == pytest.approx(3e9, rel=0.02)
        assert "the path carries at least 3 Gbit/s" in next(iter(measure.remarks(found)))

    def test_without_any_answer_there_is_no_path(self) -> None:
        with pytest.raises(MeasurementError, match="receiver answers neither pings nor probes from sender"):
            measure.measure(ends(FakePath(1e8), rtts_s=[]), MTU)

    def test_without_any_arrival_there_is_no_rate(self) -> None:
        with pytest.raises(MeasurementError, match=r"0 of \d+ packets arrived; UDP port 5006 of receiver"):
            measure.measure(ends(FakePath(1e8, loss=1.1)), MTU)

    def test_each_end_is_told_of_the_other_and_of_one_secret(self) -> None:
        both = ends(FakePath(1e8))
        measure.measure(both, MTU)
        tokens = set()
        for host, own, other in (
            (both.sender, "192.0.2.1", "192.0.2.2"),
            (both.receiver, "192.0.2.2", "192.0.2.1"),
        ):
            for _op, args in host.asked:  # type: ignore[attr-defined]
                assert (args.get("own", own), args.get("other", other)) == (own, other)
                tokens |= {args["token"]} if "token" in args else set()
        assert len(tokens) == 1
        assert len(tokens.pop()) == 32
        assert both.receiver.asked[0][0] == "echo_open"  # type: ignore[attr-defined]
        assert "echo_close" in [op for op, _ in both.receiver.asked]  # type: ignore[attr-defined]

    def test_another_measurement_has_another_secret(self) -> None:
        one, other = ends(FakePath(1e8)), ends(FakePath(1e8))
        with one.answering(), other.answering():
            pass
        assert one.receiver.asked[0] != other.receiver.asked[0]  # type: ignore[attr-defined]


class TestMeasuredPath:
    def path(self, **changes: Any) -> MeasuredPath:
        known: dict[str, Any] = {
            "mtu_bytes": 1500,
            "rtts_s": (0.02, 0.01),
            "ping_loss": 0.0,
            "rtt_by": "icmp",
            "rates_bps": (1e8, 1.01e8, 9e7),
            "train_packets": 400,
            "train_burst": 1,
            "train_loss": 0.0,
            "at_least": False,
        }
        return MeasuredPath(**{**known, **changes})

    def test_its_rtt_is_the_least_and_its_rate_the_median(self) -> None:
        path = self.path()
        assert (path.base_rtt_s, path.rate_bps, path.bdp_bytes) == (0.01, 1e8, 125_000)

    def test_survives_a_manifest(self) -> None:
        path = self.path()
        assert MeasuredPath.of(path.told()) == path

    def test_trains_that_disagree_are_remarked(self) -> None:
        (said,) = measure.remarks(self.path())
        assert said.startswith("3 trains gave rates from 90 Mbit/s to 101 Mbit/s")
        assert list(measure.remarks(self.path(rates_bps=(1e8, 1.05e8)))) == []


def test_faster_is_twice_the_rate() -> None:
    shape = TrainShape(1000, MTU, 1.0)
    took_ns = round(1000 * 1514 * 8 / 2.1e8 * 1e9)
    assert measure.faster(took_ns, shape, 1e8)
    assert not measure.faster(took_ns, shape, 1.1e8)
