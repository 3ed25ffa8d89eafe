"""The path that was measured against the path that was asked for: the right one passes, no other does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import pathcheck
from lab.errors import MeasurementError
from lab.knobs import PATH_KNOBS
from lab.sweep import Point

MakePoint = Callable[..., Point]
Train = list[tuple[int, int]]


def train(point: Point, *, rate_bps: float | None = None, burst: int = 0, begin_ns: int = 10**9) -> Train:
    """Return arrivals of a whole train at a rate, the first `burst` packets of it at once."""
    packet_ns = (point.mtu_bytes + 14) * 8 / (rate_bps or point.rate_bps) * 1e9
    count = pathcheck.train_packets(point)
    return [(number, begin_ns + round(max(0, number - burst) * packet_ns)) for number in range(count)]


def judge(
    point: Point, rtts_s: list[float], arrivals: Train | None, sent_ns: int = 1
) -> pathcheck.MeasuredPath:
    return pathcheck.judge(point, point.rtt_s, rtts_s=rtts_s, train=arrivals, train_sent_ns=sent_ns)


class TestRightPath:
    @pytest.mark.parametrize("rate", ["1mbit", "100mbit", "1gbit", "10gbit", "100gbit"])
    @pytest.mark.parametrize("rtt", ["1ms", "200ms", "2s"])
    def test_is_accepted(self, make_point: MakePoint, rate: str, rtt: str) -> None:
        point = make_point(rate=rate, rtt=rtt)
        found = judge(point, [point.rtt_s + 9e-6, point.rtt_s + 3e-6], train(point))
        assert found.rtt_s == point.rtt_s + 3e-6
        assert found.rate_bps is None or found.rate_bps == pytest.approx(point.rate_bps, rel=1e-3)

    @pytest.mark.parametrize("rate", ["100mbit", "1gbit", "10gbit"])
    def test_rate_is_measured_past_the_burst(self, make_point: MakePoint, rate: str) -> None:
        point = make_point(rate=rate)
        found = judge(point, [0.2], train(point, burst=pathcheck.burst_packets(point)))
        assert found.rate_bps == pytest.approx(point.rate_bps, rel=1e-3)

    @pytest.mark.parametrize("offset_s", [-1e-6, 0, 20e-6])
    def test_rtt_may_be_off_by_a_little(self, make_point: MakePoint, offset_s: float) -> None:
        point = make_point()
        judge(point, [0.2 + offset_s * 0.999], train(point))


class TestWrongPath:
    @pytest.mark.parametrize("rtt_s", [0.1, 0.19999, 0.2001, 0.4])
    def test_rtt(self, make_point: MakePoint, rtt_s: float) -> None:
        point = make_point()
        with pytest.raises(MeasurementError) as refused:
            judge(point, [rtt_s, rtt_s + 1], train(point))
        assert str(refused.value) == (
            f"the idle RTT is {rtt_s * 1e3:.6f} ms where 200.000000 ms was asked for"
        )

    @pytest.mark.parametrize("factor", [1 / 8, 0.5, 0.97, 1.03, 8])
    @pytest.mark.parametrize("rate", ["100mbit", "1gbit", "10gbit"])
    def test_rate(self, make_point: MakePoint, rate: str, factor: float) -> None:
        point = make_point(rate=rate)
        with pytest.raises(
            MeasurementError, match=r"the path carries \S+ bit/s where \S+ bit/s was asked for"
        ):
            judge(point, [0.2], train(point, rate_bps=point.rate_bps * factor))

    def test_no_packet_of_the_train(self, make_point: MakePoint) -> None:
        with pytest.raises(MeasurementError, match="the path lost 82 of 82 packets sent in one go"):
            judge(make_point(), [0.2], [])

    def test_no_answer(self, make_point: MakePoint) -> None:
        with pytest.raises(MeasurementError) as refused:
            judge(make_point(), [], [])
        assert str(refused.value) == "the path answered no ping: it does not carry packets as built"


class TestChance:
    def test_lossy_path_may_answer_nothing(self, make_point: MakePoint) -> None:
        assert judge(make_point(loss="100%"), [], []) == pathcheck.MeasuredPath(0.2, None)

    def test_lost_packets_do_not_look_like_a_faster_link(self, make_point: MakePoint) -> None:
        point = make_point(loss="10%")
        arrivals = [arrival for arrival in train(point) if arrival[0] % 7 not in (0, 3)]
        assert judge(point, [0.2], arrivals).rate_bps == pytest.approx(1e9, rel=1e-3)

    @pytest.mark.parametrize("keep", [0, 1, 3])
    def test_few_arrivals_say_nothing(self, make_point: MakePoint, keep: int) -> None:
        point = make_point(loss="90%")
        assert judge(point, [0.2], train(point)[-keep:] if keep else []).rate_bps is None

    @pytest.mark.parametrize("knobs", [{"jitter": "10ms"}, {"reorder": "10%"}, {"duplicate": "10%"}])
    def test_disturbed_path_is_not_held_to_the_microsecond(
        self, make_point: MakePoint, knobs: dict[str, str]
    ) -> None:
        point = make_point(**knobs)
        assert judge(point, [0.195], train(point, rate_bps=5e8)) == pathcheck.MeasuredPath(0.195, None)

    def test_undisturbed_in_another_spelling_is_undisturbed(self, make_point: MakePoint) -> None:
        point = make_point(jitter="0", reorder="0", duplicate="-0%")
        with pytest.raises(MeasurementError):
            judge(point, [0.195], train(point))

    @pytest.mark.parametrize(("queue", "measured"), [("4p", False), ("11p", False), ("12p", True)])
    def test_train_that_is_hardly_longer_than_a_burst_says_nothing(
        self, make_point: MakePoint, queue: str, measured: bool
    ) -> None:
        point = make_point(queue=queue)
        assert pathcheck.burst_packets(point) == 3
        assert (judge(point, [0.2], train(point)).rate_bps is not None) is measured

    def test_packets_of_one_instant_count_once(self, make_point: MakePoint) -> None:
        """An offload hands packets over in pairs; the time of a pair is that of its first."""
        point = make_point()
        pairs = [(number, train(point)[number - number % 2][1]) for number, _ns in train(point)]
        assert judge(point, [0.2], pairs).rate_bps == pytest.approx(1e9, rel=1e-3)

    def test_slow_sender_says_nothing_of_the_link(self, make_point: MakePoint) -> None:
        point = make_point()
        arrivals = train(point, rate_bps=5e8)
        assert judge(point, [0.2], arrivals, arrivals[-1][1] - arrivals[0][1]).rate_bps is None

    @pytest.mark.parametrize(("speed", "measured"), [(1.9, False), (2.1, True)])
    def test_sender_has_to_be_twice_as_fast_as_the_link(
        self, make_point: MakePoint, speed: float, measured: bool
    ) -> None:
        point = make_point()
        sent_ns = round(pathcheck.train_packets(point) * 1514 * 8 / (speed * 1e9) * 1e9)
        assert (judge(point, [0.2], train(point), sent_ns).rate_bps is not None) is measured


class TestTrain:
    @given(
        st.sampled_from(["1kbit", "100kbit", "10mbit", "1gbit", "400gbit"]),
        st.sampled_from(["576", "1500", "9000", "65535"]),
        st.sampled_from(["auto", "70KB", "1MB", "1p", "1000p", "10ms"]),
        st.sampled_from(["on", "off"]),
        st.sampled_from(["separate", "leaf"]),
    )
    def test_fits_the_queue_and_two_seconds(
        self, rate: str, mtu: str, queue: str, offloads: str, recipe: str
    ) -> None:
        chosen = {"rate": rate, "mtu": mtu, "queue": queue, "offloads": offloads, "recipe": recipe}
        point = Point({name: knob.default for name, knob in PATH_KNOBS.items()} | chosen, "virtual", 1)
        packets = pathcheck.train_packets(point)
        wire = point.mtu_bytes + 14
        assert packets >= 1
        assert packets <= max(4, 2.0 * point.rate_bps / 8 / wire)
        if recipe == "leaf":
            assert packets <= 1000
        elif point.queue["kind"] == "pfifo":
            assert packets <= int(point.queue["limit"])
        else:
            assert packets == 1 or packets * wire <= int(point.queue["limit"])

    @pytest.mark.parametrize(
        ("knobs", "packets"),
        [
            ({}, 6 * 3 + 64),
            ({"queue": "10p"}, 10),
            ({"queue": "15140B"}, 10),
            ({"recipe": "leaf", "leaf_limit": "7", "queue": "10p"}, 7),
            ({"rate": "100kbit"}, 16),  # 25 kB in two seconds
            ({"rate": "10kbit"}, 4),
            ({"rate": "100gbit"}, 6 * (250_000 // 1514 + 1) + 64),
        ],
    )
    def test_length(self, make_point: MakePoint, knobs: dict[str, str], packets: int) -> None:
        assert pathcheck.train_packets(make_point(**knobs)) == packets

    @pytest.mark.parametrize("rate", ["10mbit", "1gbit", "40gbit", "400gbit"])
    def test_outlasts_the_burst(self, make_point: MakePoint, rate: str) -> None:
        point = make_point(rate=rate, rtt="200ms")
        assert pathcheck.train_packets(point) > 2 * pathcheck.burst_packets(point)


class TestShapedOnAnEmulator:
    def test_rate_as_asked_passes(self, make_point: MakePoint) -> None:
        point = make_point(rate="50mbit")
        assert pathcheck.judge_shaped(point, 49e6, train(point), 1) == 49e6
        assert pathcheck.judge_shaped(point, None, None, 0) is None

    def test_rate_of_the_way_back_says_what_is_probably_wrong(self, make_point: MakePoint) -> None:
        point = make_point(rate="50mbit")
        with pytest.raises(MeasurementError, match="the one toward the sender, then the one toward"):
            pathcheck.judge_shaped(point, 10e6, train(point), 1)

    def test_sender_that_measured_itself_tells_nothing(self, make_point: MakePoint) -> None:
        point = make_point(rate="50mbit")
        arrivals = train(point)
        slow_ns = round(len(arrivals) * 1514 * 8 / 60e6 * 1e9)
        assert pathcheck.judge_shaped(point, 10e6, arrivals, slow_ns) == 10e6

    def test_losses_and_aqms_tell_nothing_either(self, make_point: MakePoint) -> None:
        for knobs in ({"loss": "1%"}, {"jitter": "1ms"}, {"qdisc": "codel"}, {"qdisc": "policer"}):
            point = make_point(rate="50mbit", **knobs)
            assert pathcheck.judge_shaped(point, 10e6, train(point), 1) == 10e6
