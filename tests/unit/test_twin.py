"""`wanlab twin`: from the records of a run to a scenario that loads, and says what it rests on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import scenario, sweep
from lab.cli import twin as cli
from lab.combination import Point
from lab.knobs import PATH_KNOBS
from lab.report import stored
from lab.store import RunFolder
from lab.twin import estimates, script
from lab.twin.path import Path as MeasuredPath
from lab.twin.path import paths
from lab.twin.records import FIXED, Record
from tests import measured_run as measured
from tests.said import Wanlab, wanlab_of

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "twin_of_a_path.py"


@pytest.fixture
def wanlab(capsys: pytest.CaptureFixture[str]) -> Wanlab:
    return wanlab_of(capsys, "twin")


def record(of: Point | None = None, checks: Any = None, senders: Any = None, **row: Any) -> Record:
    """Return one point as it is handed to the twin; row: changes of its row."""
    of = of or measured.point(rate="100mbit", rtt="20ms", duration="8s")
    tables = measured.tables(of, **row)
    sending = [one for one in tables["samples"] if one["end"] == "sender"]
    return Record(
        row=tables["points"][0],
        knobs=dict(of.knobs),
        senders={0: sending} if senders is None else senders,
        checks=[measured.check()] if checks is None else checks,
    )


def one_path(*records: Record) -> MeasuredPath:
    """Return the path of records that went the same way; all its knobs are as knobs are written."""
    (found,) = paths(records)
    for name, text in found.knobs.items():
        assert PATH_KNOBS[name].canonical(text) == text
    assert set(found.knobs) == set(FIXED)
    return found


def rate_of(found: MeasuredPath) -> float:
    """Return the rate of a path, bit/s."""
    return float(PATH_KNOBS["rate"].value(found.knobs["rate"]))


def told(found: MeasuredPath) -> str:
    """Return everything that is said of a path."""
    return " ".join([*found.measured, *found.assumed])


class TestPath:
    def test_everything_is_measured_and_said(self) -> None:
        found = one_path(record(), record(measured.point(2, rate="100mbit", rtt="20ms", duration="8s")))
        assert found.knobs["rate"] == "50mbit"
        assert found.knobs["rtt"] == "20ms"
        assert found.knobs["jitter"] == "0s"
        assert found.knobs["loss"] == "0%"
        wanted = measured.RATE_BPS * measured.QUEUE_S / 8 - 2 * measured.PACKET
        assert PATH_KNOBS["queue"].value(found.knobs["queue"]).amount == pytest.approx(wanted, rel=0.01)
        assert "the median of 2 trains of packets (50 Mbit/s)" in told(found)
        assert "the least of 40 idle pings, which lie within 9 us" in told(found)
        assert "30 segments were lost there" in told(found)

    def test_a_train_that_nobody_could_measure(self) -> None:
        found = one_path(record(measured_rate_bps=None))
        assert rate_of(found) == pytest.approx(measured.RATE_BPS, rel=1e-3)
        assert "the largest throughput, since no train of packets could be measured" in told(found)
        assert "may be faster" not in told(found)  # its queue was full, so this is its rate

    def test_a_link_that_nobody_filled_may_be_faster(self) -> None:
        rows = measured.samples(measured.point(), 46e6, tcpi_rtt=20_100, tcpi_total_retrans=0)
        senders = {0: [row for row in rows if row["end"] == "sender"]}
        found = one_path(record(senders=senders, measured_rate_bps=None))
        assert "The path may be faster" in told(found)
        assert "Queue at least" in told(found)
        assert PATH_KNOBS["queue"].value(found.knobs["queue"]).amount == pytest.approx(
            measured.RATE_BPS * measured.BASE_S / 8, rel=0.01
        )

    def test_disturbed_arrivals_still_have_a_slope(self) -> None:
        step_ns = measured.PACKET * 8e9 / measured.RATE_BPS
        train = [(number, round(number * step_ns) + 1000 * (number % 7)) for number in range(200)]
        rows = measured.samples(measured.point(), 46e6, tcpi_rtt=20_100, tcpi_total_retrans=0)
        senders = {0: [row for row in rows if row["end"] == "sender"]}
        found = one_path(
            record(checks=[measured.check(train=train)], senders=senders, measured_rate_bps=None)
        )
        assert rate_of(found) == pytest.approx(measured.RATE_BPS, rel=0.01)
        assert "by least squares" in told(found)

    @pytest.mark.parametrize(("train_bps", "why"), [(30e6, "gave less"), (900e6, "as a token bucket lets")])
    def test_trains_that_flows_contradict(self, train_bps: float, why: str) -> None:
        found = one_path(record(measured_rate_bps=train_bps))
        assert rate_of(found) == pytest.approx(measured.RATE_BPS, rel=1e-3)
        assert why in told(found)

    def test_no_idle_ping(self) -> None:
        found = one_path(record(checks=[measured.check(rtts_s=[])]))
        assert found.knobs["rtt"] == "20ms"
        assert "No idle ping was answered: the base RTT is the least that a flow saw, 20 ms" in told(found)
        assert "0 idle pings say nothing of jitter" in told(found)

    def test_no_idle_ping_and_no_flow_that_knows_an_rtt(self) -> None:
        of = measured.point(rtt="35ms", duration="8s")
        found = one_path(record(of, checks=[], senders={}, measured_rate_bps=None))
        assert found.knobs["rtt"] == "35ms"
        assert "No idle ping was answered: the RTT is 35ms, as it was set." in told(found)
        assert "No rate was measured: it is 1gbit, as it was set." in told(found)
        assert "random loss was not seen" in told(found)

    def test_jitter_that_flows_felt_is_taken(self) -> None:
        pings = [0.02 + 0.0002 * number for number in range(-10, 11)]
        rows = measured.samples(measured.point(), 46e6, tcpi_reord_seen=7)
        senders = {0: [row for row in rows if row["end"] == "sender"]}
        found = one_path(record(checks=[measured.check(rtts_s=pings)], senders=senders))
        assert (found.knobs["jitter"], found.knobs["jitter_dist"]) == ("2ms", "uniform")
        assert found.knobs["rtt"] == "20ms"
        assert "half of them within 2 ms" in told(found)

    def test_jitter_that_kept_the_order_is_left_out_and_said(self) -> None:
        pings = [0.02 + 0.0002 * number for number in range(-10, 11)]
        found = one_path(record(checks=[measured.check(rtts_s=pings)]))
        assert found.knobs["jitter"] == "0s"
        assert "Jitter 2 ms, uniform" in told(found)
        assert "The jitter is left out: netem's lets packets overtake each other" in told(found)

    def test_jitter_under_a_packet_s_time_cannot_reorder(self) -> None:
        pings = [0.02 + 0.00001 * number for number in range(-10, 11)]
        found = one_path(record(checks=[measured.check(rtts_s=pings)], measured_rate_bps=50e6))
        assert found.knobs["jitter"] == "100us"

    def test_timers_that_were_later_than_pings_spread(self) -> None:
        pings = [0.02 + 0.0001 * number for number in range(-10, 11)]
        checks = [measured.check(rtts_s=pings)]
        found = one_path(record(checks=checks, timer_late_s=0.002))
        assert found.knobs["jitter"] == "0s"
        assert "No jitter: half of the idle RTTs lie within 2 ms" in told(found)
        assert "Jitter 1 ms" in told(one_path(record(checks=checks, timer_late_s=0.0005)))

    def test_jitter_is_no_more_than_the_delay(self) -> None:
        pings = [0.001 + 0.0002 * number for number in range(-5, 30)]
        rows = measured.samples(measured.point(), 46e6, tcpi_reord_seen=7)
        senders = {0: [row for row in rows if row["end"] == "sender"]}
        found = one_path(record(checks=[measured.check(rtts_s=pings)], senders=senders))
        jitter, (rtt,) = (PATH_KNOBS[name].value(found.knobs[name]) for name in ("jitter", "rtt"))
        assert 0 < jitter <= rtt / 2
        assert "cut to" in told(found)

    def test_an_mtu_that_senders_found(self) -> None:
        rows = measured.samples(measured.point(), 46e6, tcpi_pmtu=1420)
        found = one_path(record(senders={0: [row for row in rows if row["end"] == "sender"]}))
        assert found.knobs["mtu"] == "1420"
        assert "MTU 1420 bytes" in told(found)

    @pytest.mark.parametrize(
        ("kernel", "release", "chosen"),
        [
            ("host", "5.15.0-91-generic", "6.1"),
            ("host", "6.5.13", "6.1"),
            ("host", "6.8.0-45-generic", "6.12"),
            ("host", "strange", "6.12"),
            ("6.12@1000", "6.12.117", "6.12@1000"),
        ],
    )
    def test_the_kernel_is_one_of_the_lab_s(self, kernel: str, release: str, chosen: str) -> None:
        of = measured.point(kernel=kernel, duration="8s")
        assert one_path(record(of, kernel_release=release)).knobs["kernel"] == chosen

    def test_a_route_and_a_recipe_are_what_was_measured_of_them(self) -> None:
        of = measured.point(
            topology="long_haul", route="geo-satellite", recipe="leaf", leaf_limit="500", duration="8s"
        )
        knobs = one_path(record(of)).knobs
        assert [knobs[name] for name in ("topology", "route", "recipe", "leaf_limit")] == [
            "path",
            "none",
            "separate",
            "1000",
        ]

    @pytest.mark.parametrize(
        ("engine", "lossy", "rise_s", "offloads"),
        [
            ("remote", False, 0.01, "off"),  # 61 KiB: under one packet of an offload
            ("remote", False, 0.1, "on"),  # 610 KiB: nine of them
            ("remote", True, 0.1, "off"),
            ("realtime", False, 0.01, "on"),  # there they went through the network indeed
        ],
    )
    def test_offloads_of_hosts_are_none_of_the_wire(
        self, engine: str, lossy: bool, rise_s: float, offloads: str
    ) -> None:
        of = measured.point(1, engine, rtt="20ms", duration="8s", offloads="on")
        rows = [row for row in measured.samples(of, 46e6) if row["end"] == "sender"]
        for number, row in enumerate(rows):
            row["tcpi_rtt"] = round((0.02 + (row["tcpi_rtt"] / 1e6 - 0.02) * rise_s / measured.QUEUE_S) * 1e6)
            row["tcpi_total_retrans"] += number // 8 if lossy else 0
        found = one_path(record(of, senders={0: rows}))
        assert found.knobs["offloads"] == offloads
        assert ("Packets go one by one" in told(found)) is (offloads == "off")
        assert (found.knobs["loss"] != "0%") is lossy
        queue = PATH_KNOBS["queue"].value(found.knobs["queue"]).amount
        least = of.packet_bytes if offloads == "on" else 0
        assert queue == pytest.approx(max(least, 50e6 * rise_s / 8), rel=0.06)

    def test_pairs_of_hosts_keep_their_rtts(self) -> None:
        of = measured.point(topology="dumbbell", flows="2", rtt="10ms+30ms", duration="8s")
        found = one_path(record(of, checks=[measured.check(), measured.check()]))
        assert found.knobs["rtt"] == "10ms+30ms"
        assert found.knobs["topology"] == "dumbbell"
        assert "The pairs of hosts have their RTTs as they were set: 10ms+30ms." in told(found)

    def test_a_path_that_changes_is_not_taken_for_loss(self) -> None:
        of = measured.point(rtt_change="4s:40ms", loss="0.1%", queue="50p", duration="8s")
        knobs = one_path(record(of)).knobs
        assert (knobs["loss"], knobs["queue"]) == ("0.1%", "50p")

    def test_a_rate_that_rises_later_is_the_train_s(self) -> None:
        of = measured.point(rate="30mbit", rate_change="4s:50mbit", duration="8s")
        assert one_path(record(of, measured_rate_bps=30e6)).knobs["rate"] == "30mbit"

    def test_a_short_queue_is_told_in_bytes(self) -> None:
        idle = {"tcpi_rtt": 1000, "tcpi_min_rtt": 1000, "tcpi_total_retrans": 0, "tcpi_delivered": None}
        rows = measured.samples(measured.point(), 4e6, **idle)
        senders = {0: [row for row in rows if row["end"] == "sender"]}
        slow = record(senders=senders, checks=[measured.check(rtts_s=[0.001] * 9)], measured_rate_bps=5e6)
        assert one_path(slow).knobs["queue"] == f"{2 * measured.PACKET}B"

    @pytest.mark.parametrize(("name", "text"), [("qdisc", "fq_codel"), ("loss", "ge:1%:10%:100%:0%")])
    def test_what_no_number_describes_is_as_it_was_set(self, name: str, text: str) -> None:
        of = measured.point(duration="8s", **{name: text})
        found = one_path(record(of))
        assert "as it was set" in told(found)
        assert {**of.knobs, **found.knobs}[name] == text

    def test_points_of_different_paths_are_kept_apart(self) -> None:
        found = paths([record(measured.point(rtt=rtt, duration="8s")) for rtt in ("20ms", "40ms", "20ms")])
        assert [len(path.records) for path in found] == [2, 1]

    def test_flows_the_other_way_do_not_fill_this_one(self) -> None:
        one = record(measured_rate_bps=None)
        both = replace(one, senders={0: one.senders[0], 1: one.senders[0]})
        assert rate_of(one_path(both)) == pytest.approx(2 * measured.RATE_BPS, rel=1e-3)
        one_way = one_path(replace(both, backwards=frozenset({1})))
        assert rate_of(one_way) == pytest.approx(measured.RATE_BPS, rel=1e-3)


def settings_of(path: Path) -> list[Point]:
    """Return the points that a script has, as `wanlab run` makes them."""
    return sweep.points(scenario.load(path).scenario, {}, engine="virtual", seeds=[1])


def run_script(text: str) -> dict[str, Any]:
    """Return the names that a script leaves."""
    names: dict[str, Any] = {}
    exec(compile(text, "twin.py", "exec"), names)  # noqa: S102 (the text is what is tested)
    return names


class TestScript:
    def test_is_the_golden_one(self, wanlab: Wanlab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        measured.small(Path("results/real"))
        said = wanlab("results/real", "--out", "path_twin.py")
        assert said.status == 0, said.err
        assert Path("path_twin.py").read_text() == GOLDEN.read_text()
        assert wanlab("results/real").out == GOLDEN.read_text()

    def test_the_golden_one_has_the_points_of_the_original(self) -> None:
        found = settings_of(GOLDEN)
        assert [point.knobs["rmem"] for point in found] == ["default", "256KiB"]
        assert {point.knobs["duration"] for point in found} == {"8s"}
        twin_of = scenario.load(GOLDEN).scenario.twin_of
        assert twin_of is not None
        assert len(twin_of.points) == 2

    @pytest.mark.parametrize(
        "knobs",
        [
            {},
            {"topology": "dumbbell", "flows": "3", "rtt": "10ms+30ms+50ms", "cc": "bbr*2+cubic"},
            {"topology": "parking_lot", "flows": "4", "bottlenecks": "3"},
            {"workload": "request", "response": "1MB", "think": "10ms", "flows": "2"},
            {"workload": "iperf3", "offloads": "on", "mtu": "9000", "rcvbuf": "none"},
            {"route": "geo-satellite", "topology": "long_haul"},
            {"qdisc": "cake", "target": "5ms", "ecn": "on"},
            {"loss": "list:5+17", "reorder": "1%", "probe": "20ms"},
            {"rate": "1mbit", "bytes": "1MB+2MB", "flows": "2", "start": "0s+1s"},
            {"arrivals": "poisson:30%", "sizes": "pareto:1.2:50KB", "spread": "1s", "udp": "1mbit"},
        ],
    )
    def test_any_run_has_a_twin_that_loads(self, tmp_path: Path, wanlab: Wanlab, knobs: Any) -> None:
        points = [measured.point(seed, duration="8s", **knobs) for seed in (1, 2)]
        pairs = 1 if points[0].knobs["topology"] in ("path", "long_haul") else 4
        folder = measured.store(
            tmp_path / "real", [(of, measured.tables(of)) for of in points], checks=[measured.check()] * pairs
        )
        out = tmp_path / "made.py"
        assert wanlab(folder.path, "--out", out).status == 0
        (twin,) = settings_of(out)
        for name, text in twin.knobs.items():
            if name not in FIXED:
                assert text == points[0].knobs[name]

    def test_swept_paths_are_blocks_of_their_own(self, tmp_path: Path, wanlab: Wanlab) -> None:
        points = [
            measured.point(rtt=rtt, cc=cc, duration="8s")
            for rtt in ("20ms", "30ms")
            for cc in ("cubic", "bbr")
        ]
        checks = {"20ms": 0.02, "30ms": 0.03}
        folder = measured.store(tmp_path / "real", [(of, measured.tables(of)) for of in points])
        for of in points:
            rtt_s = checks[of.knobs["rtt"]]
            seen = measured.check(rtts_s=[rtt_s] * 20)
            folder.put_point(of.id, measured.tables(of), {"path": [seen]})
        out = tmp_path / "made.py"
        assert wanlab(folder.path, "--out", out).status == 0
        found = settings_of(out)
        assert [(point.knobs["rtt"], point.knobs["cc"]) for point in found] == [
            ("20ms", "cubic"),
            ("20ms", "bbr"),
            ("30ms", "cubic"),
            ("30ms", "bbr"),
        ]
        assert "Where rtt=20ms" in scenario.load(out).scenario.why

    def test_figures_that_show_something_are_taken_over(self, tmp_path: Path, wanlab: Wanlab) -> None:
        figures = [
            {"title": "Goodput against rmem", "x": "rmem", "by": ["cc"], "y": "steady_goodput_bps"},
            {"title": "Goodput against loss", "x": "loss", "by": ["cc"], "y": "steady_goodput_bps"},
            {"title": "Strange", "x": "rmem", "by": [], "y": "no_such_column", "of_tomorrow": 3},
        ]
        folder = measured.small(tmp_path / "real", figures=figures)
        out = tmp_path / "made.py"
        wanlab(folder.path, "--out", out)
        titles = [figure.title for figure in scenario.load(out).scenario.figures]
        assert titles == ["Goodput against rmem", "Goodput over time", "RTT over time"]

    def test_repetitions_far_apart_widen_the_tolerance(self, tmp_path: Path, wanlab: Wanlab) -> None:
        points = [
            (of := measured.point(seed, duration="8s"), measured.tables(of, bps))
            for seed, bps in ((1, 30e6), (2, 50e6))
        ]
        folder = measured.store(tmp_path / "real", points)
        out = tmp_path / "made.py"
        wanlab(folder.path, "--out", out)
        (expected,) = scenario.load(out).scenario.expectations
        assert (expected.within, expected.of) == (0.5, 40e6)

    def test_a_point_without_goodput_is_not_expected(self, tmp_path: Path, wanlab: Wanlab) -> None:
        of = measured.point(duration="8s")
        folder = measured.store(tmp_path / "real", [(of, measured.tables(of, goodput_bps=0.0))])
        out = tmp_path / "made.py"
        assert wanlab(folder.path, "--out", out).status == 0
        assert scenario.load(out).scenario.expectations == ()

    @given(
        st.text(max_size=80),
        st.text(max_size=300),
        st.text(st.characters(codec="utf-8"), min_size=1, max_size=30),
    )
    def test_what_a_run_says_of_itself_stays_text(self, name: str, question: str, run: str) -> None:
        """A folder that somebody sent must not put code into a script that is run later."""
        study = script.Study(run, name, question, "remote", "then", (), "twin.py")
        text = script.write(study, paths([record()]))
        names = run_script(text)
        made = names["scenario"]
        assert scenario.check(made) == []
        assert made.twin_of.run == run.encode("utf-8", "replace").decode()
        assert set(names) == {"__builtins__", "__doc__", "Expectation", "Figure", "Original", "Published"} | {
            "Scenario",
            "TOLERANCE",
            "SOURCE",
            "scenario",
        }

    @pytest.mark.parametrize(
        "evil", ['""" + __import__("os").system("x") + """', "\\", "'''", '"', "\n", "\\N{DIGIT ONE}", "\x00"]
    )
    def test_quotes_do_not_end_text(self, evil: str) -> None:
        study = script.Study(evil, evil, evil, evil, evil, (), evil)
        assert scenario.check(run_script(script.write(study, paths([record()])))["scenario"]) == []


class TestCommand:
    def test_says_what_it_found_and_what_to_do(self, tmp_path: Path, wanlab: Wanlab) -> None:
        folder = measured.small(tmp_path / "real")
        said = wanlab(folder.path, "--out", tmp_path / "made.py")
        assert said.status == 0
        assert said.out.startswith("Rate 50 Mbit/s: the median of 4 trains of packets")
        assert "Assumed: Linux 6.1 stands for 5.15.0-91-generic" in said.out
        assert said.out.splitlines()[-2:] == [
            f"Run it: wanlab run {tmp_path / 'made.py'} --repeat 2",
            f"Then: wanlab compare {folder.path} results/path_twin",
        ]

    def test_json_has_paths_and_text(self, tmp_path: Path, wanlab: Wanlab) -> None:
        folder = measured.small(tmp_path / "real")
        found = json.loads(wanlab(folder.path, "--format", "json").out)
        (path,) = found["paths"]
        assert path["knobs"]["rate"] == "50mbit"
        assert len(path["points"]) == 4
        assert found["text"].startswith('"""The path of run')

    def test_nothing_done(self, tmp_path: Path, wanlab: Wanlab) -> None:
        folder = measured.store(tmp_path / "real", [(measured.point(), None)])
        said = wanlab(folder.path)
        assert (said.status, said.out) == (2, "")
        assert said.err == (
            f"wanlab: {folder.path}: no point is done, so there is nothing to emulate;"
            f" `wanlab show {folder.path}` says why\n"
        )

    def test_a_folder_that_is_no_run(self, tmp_path: Path, wanlab: Wanlab) -> None:
        assert wanlab(tmp_path).status == 2

    def test_what_is_there_is_not_written_over(self, tmp_path: Path, wanlab: Wanlab) -> None:
        folder = measured.small(tmp_path / "real")
        mine = tmp_path / "mine.py"
        mine.write_text("mine")
        said = wanlab(folder.path, "--out", mine)
        assert said.status == 2
        assert "is there already" in said.err
        assert mine.read_text() == "mine"

    def test_a_place_that_cannot_be_written(self, tmp_path: Path, wanlab: Wanlab) -> None:
        folder = measured.small(tmp_path / "real")
        said = wanlab(folder.path, "--out", tmp_path / "no" / "such" / "twin.py")
        assert said.status == 2
        assert "cannot be written" in said.err

    def test_links_as_they_are_have_trains_of_their_own(self, tmp_path: Path) -> None:
        """They were measured before any point ran, and again before each."""
        points = [measured.point(seed, duration="8s") for seed in (1, 2)]
        tables = [(of, measured.tables(of, measured_rate_bps=None)) for of in points]
        path = {"rtts_s": [0.0199] * 5, "rates_bps": [48e6, 52e6], "at_least": True}
        outcome = {"links": "as-is", "measured": {"rate_bps": 51e6}}
        folder = measured.store(
            tmp_path / "real", tables, outcome=outcome, engine_record={"path": path}, engine="remote"
        )
        records = cli.read(stored.read(RunFolder(folder.path)))
        assert [one.trains_bps for one in records] == [(51e6, 48e6, 52e6), (51e6,)]
        found = one_path(*records)
        assert found.knobs["rate"] == "51mbit"
        assert found.knobs["rtt"] == "19.9ms"
        assert "the least of 45 idle pings" in told(found)
        assert "its sender was hardly faster than its trains" in told(found)

    def test_shaped_links_have_those_of_their_points_alone(self, tmp_path: Path) -> None:
        of = measured.point(duration="8s")
        path = {"rtts_s": [0.001], "rates_bps": [9e9], "at_least": False}
        folder = measured.store(
            tmp_path / "real",
            [(of, measured.tables(of))],
            outcome={"links": "shaped", "measured": {"rate_bps": 8e9}},
            engine_record={"path": path},
        )
        (one,) = cli.read(stored.read(RunFolder(folder.path)))
        assert (one.trains_bps, len(one.checks), one.slow_sender) == ((), 1, False)

    def test_failed_points_are_left_out(self, tmp_path: Path) -> None:
        good, bad = measured.point(1, duration="8s"), measured.point(2, duration="8s")
        folder = measured.store(tmp_path / "real", [(good, measured.tables(good)), (bad, None)])
        records = cli.read(stored.read(RunFolder(folder.path)))
        assert [one.row["point"] for one in records] == [good.id]
        assert estimates.spread([0.0]) is not None
