"""Advice without a kernel, the model in the place of the runs: what is asked, found, chosen, written."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import memory
from lab.advise import ask as asking
from lab.advise import (
    bench,
    choose,
    conf,
    cost,
    effort,
    figure,
    find,
    inverse,
    obstacles,
    page,
    summary,
    sysctl,
    verify,
)
from lab.advise.ask import MIB, WHICH, Ask, Case
from lab.advise.search import PRECISION
from lab.cli.main import main
from lab.errors import SpecError, UnitError
from lab.model.inputs import Release
from lab.model.limits import LINK, LOSS, QUEUE, RECEIVE_WINDOW, SEND_BUFFER
from lab.model.predict import predict
from lab.model.windows import receive_window_bytes
from lab.setting import setting
from lab.store import RunFolder
from lab.sweep import Point

RELEASES = {"6.12": Release(6, 12), "6.1": Release(6, 1)}
GIGABIT = {"rate": "1gbit", "rtt": "200ms", "queue": "auto", "loss": "0%", "mtu": "1500", "flows": "1"}

Row = dict[str, Any]


def make_ask(*cases: str, target: str = "95%", **path: str) -> Ask:
    """Return a question; a case is written `cubic 6.12`."""
    made = [Case(cc, kernel, RELEASES[kernel]) for cc, kernel in map(str.split, cases or ("cubic 6.12",))]
    return Ask(asking.path({**GIGABIT, **path}), asking.target(target), tuple(made))


def row(point: Point, goodput_bps: float | None = None, **more: Any) -> Row:
    """Return the row of a point as if the model were the world."""
    made = predict(setting(point, RELEASES[point.knobs["kernel"]]))
    measured = made.predicted_goodput_bps if goodput_bps is None else goodput_bps
    return {
        "point": point.id,
        "status": "done",
        "steady_goodput_bps": measured,
        "predicted_goodput_bps": made.predicted_goodput_bps,
        "limit_predicted": made.limit,
        "limit_measured": made.limit,
        "queue_drops": 0,
        **more,
    }


class World:
    """Runs points by the model; counts them. change: what is different from the model."""

    def __init__(self, change: Any = lambda _point, goodput: goodput) -> None:
        self.points: list[Point] = []
        self.rounds = 0
        self._change = change

    def __call__(self, points: Sequence[Point]) -> list[Row]:
        self.rounds += 1
        self.points += points
        return [row(point, self._change(point, row(point)["steady_goodput_bps"])) for point in points]


def largest(point: Point, which: str) -> int:
    return point.triple(which).maximum


def advice(ask: Ask, world: World | None = None) -> conf.Told:
    world = world or World()
    findings = find.find(ask, world, 2)
    return conf.Told(ask, findings, choose.choose(ask, findings, world), "wanlab advise ...", cc_asked=True)


# ---- what is asked


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0%", "is under 1%"),
        ("0.5%", "is under 1%"),
        ("-5%", "is under 1%"),
        ("101%", "is more than headers leave"),
        ("100%", "is nearer to all than a run can show: at most 99.5%"),
        ("0.95", "is not in percent"),
        ("95", "is not in percent"),
        ("much", "is not a target"),
    ],
)
def test_targets_that_are_refused(text: str, said: str) -> None:
    with pytest.raises(UnitError) as raised:
        asking.target(text)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_target_is_a_share_of_payload() -> None:
    assert asking.target("95%") == 0.95
    with pytest.raises(UnitError, match=r"share of the payload that the link can carry, which is 95\.6 % of"):
        asking.target("200%")


def test_every_fault_of_a_path_at_once() -> None:
    with pytest.raises(SpecError) as raised:
        asking.path({**GIGABIT, "rate": "1gbps", "rtt": "0", "loss": "100%", "flows": "0"})
    assert [fault.split(":")[0] for fault in raised.value.faults] == ["rate", "rtt", "loss", "flows"]


def test_the_flags_ask_the_same_again() -> None:
    asked = make_ask(loss="0.1%", flows="3", target="90%")
    assert asked.flags == "--rate 1gbit --rtt 200ms --loss 0.1% --flows 3 --target 90%"
    assert make_ask().words == "1gbit x 200ms"


# ---- how it is run


def test_a_run_lasts_as_long_as_its_path_needs() -> None:
    def duration_s(*cases: str, **path: str) -> float:
        asked = make_ask(*cases, **path)
        return effort.effort(asked, asked.cases[0]).duration_s

    assert duration_s() == 12.0
    assert duration_s("bbr 6.12") == 20.0
    assert duration_s(rate="1mbit", rtt="20ms") == 18.0
    assert duration_s(rtt="5ms") == 3.0
    assert duration_s(queue="0.1bdp") > 60.0
    assert duration_s(loss="0.01%") > 60.0
    assert duration_s(rate="1kbit", rtt="20s", queue="32p") == effort.LONGEST_S


def test_offloads_are_on_where_packets_are_too_many() -> None:
    asked = make_ask()
    assert not effort.effort(asked, asked.cases[0]).offloads
    asked = make_ask(rate="10gbit", rtt="80ms")
    assert effort.effort(asked, asked.cases[0]).offloads
    asked = make_ask(rate="10gbit", rtt="80ms", loss="0.01%")
    assert not effort.effort(asked, asked.cases[0]).offloads, "loss leaves few packets, and hits single ones"


@given(st.floats(1e-3, 3600))
def test_durations_have_two_digits(time_s: float) -> None:
    rounded = effort.round_up(time_s)
    assert time_s * (1 - 1e-9) <= rounded <= time_s * 1.1
    assert len(f"{rounded:.12g}".replace(".", "").strip("0")) <= 2


@pytest.mark.parametrize("path", [{}, {"rate": "100gbit", "rtt": "1s"}, {"rate": "1mbit", "rtt": "20ms"}])
def test_ample_is_ample_and_can_be(path: dict[str, str]) -> None:
    asked = make_ask("cubic 6.1", **path)
    for which in WHICH:
        size = effort.ample_bytes(asked, asked.cases[0], which)
        assert memory.DEFAULTS[which].maximum <= size <= memory.LARGEST_BYTES
        assert size >= min(4 * asked.bdp_bytes, 2047 * MIB)
        assert size % MIB == 0


# ---- the model backwards


@given(st.integers(1, 10**9), st.integers(1, 10**9), st.integers(1, 10**9))
def test_least_size_is_the_least(one: int, two: int, threshold: int) -> None:
    least, most = sorted((one, two))
    found = inverse.least_size(lambda size: size >= threshold, least, most)
    assert found == min(max(threshold, least), most)


@pytest.mark.parametrize("kernel", RELEASES)
def test_the_least_buffer_is_where_the_model_reaches(kernel: str) -> None:
    asked = make_ask(f"cubic {kernel}")
    point = asked.point(asked.cases[0], rmem="max=500MiB", wmem="max=500MiB", duration="20s")
    model = setting(point, RELEASES[kernel])
    for which in WHICH:
        size = inverse.least_buffer(model, which, asked.target_bps, 500 * MIB)
        got = [
            predict(inverse.with_buffer(model, which, at)).predicted_goodput_bps
            for at in (size, round(size * 0.97))
        ]
        assert got[0] >= asked.target_bps > got[1]
    window = 0.95 * asked.bdp_bytes * 1448 / 1514
    share = 0.5 if kernel == "6.1" else 162 / 256
    size = inverse.least_buffer(model, "rmem", asked.target_bps, 500 * MIB)
    assert size == pytest.approx(window / share, rel=0.01)


def test_segments_that_arrive_singly_need_more_since_6_6() -> None:
    asked = make_ask()
    point = asked.point(asked.cases[0])
    assert inverse.single_segments_factor(setting(point, Release(6, 12)), 10**8) == pytest.approx(
        198 / 162, rel=0.01
    )
    assert inverse.single_segments_factor(setting(point, Release(6, 1)), 10**8) == 1.0


# ---- the search by runs


@pytest.mark.parametrize(
    "path",
    [
        {},
        {"rate": "10gbit", "rtt": "80ms"},
        {"rate": "100mbit", "rtt": "600ms"},
        {"rate": "40gbit", "rtt": "10ms"},
        {"flows": "8", "rtt": "50ms"},
    ],
    ids=str,
)
def test_finds_what_the_world_needs(path: dict[str, str]) -> None:
    asked = make_ask(**path)
    world = World()
    (finding,) = find.find(asked, world, 2)
    assert finding.attainable
    assert finding.bound is None
    for which, knee in finding.knees.items():
        assert find.goodput_bps(knee.rows[knee.found_bytes]) >= asked.target_bps
        assert knee.short_bytes is not None
        assert knee.found_bytes <= knee.short_bytes * PRECISION * 1.005
        assert find.goodput_bps(knee.rows[knee.short_bytes]) < asked.target_bps
        assert knee.found_bytes == pytest.approx(knee.guess_bytes, rel=0.03), which
        assert len(knee.rows) <= 16
    assert world.rounds <= 4
    assert len(world.points) <= 26


def test_finds_it_where_the_model_is_wrong() -> None:
    """A world whose windows are half as large as the model says."""
    asked = make_ask()

    def change(point: Point, _goodput: float) -> float:
        for which in WHICH:
            point = Point({**point.knobs, which: f"max={largest(point, which) // 2}B"}, "virtual", 1)
        return float(row(point)["steady_goodput_bps"])

    (finding,) = find.find(asked, World(change), 2)
    for knee in finding.knees.values():
        assert knee.found_bytes == pytest.approx(2 * knee.guess_bytes, rel=0.04)


def test_what_cannot_be_had_is_searched_as_a_share_of_what_can() -> None:
    asked = make_ask()
    (finding,) = find.find(asked, World(lambda _point, goodput: min(goodput, 4e8)), 2)
    assert not finding.attainable
    assert finding.goal_bps == pytest.approx(0.95 * 4e8)
    for knee in finding.knees.values():
        assert find.goodput_bps(knee.rows[knee.found_bytes]) >= finding.goal_bps


def test_a_bound_can_reach_what_ample_buffers_do_not() -> None:
    """A short queue: windows above 1.3 BDP drop, those below do not."""
    asked = make_ask()

    def change(point: Point, goodput: float) -> float:
        model = setting(point, RELEASES["6.12"])
        in_flight = min(predict(model).window_bytes, predict(model).send_window_bytes)
        return goodput if in_flight < 1.3 * asked.bdp_bytes else 5e8

    world = World(change)
    findings = find.find(asked, world, 2)
    (finding,) = findings
    assert finding.bound == "rmem"
    assert finding.attainable
    assert finding.goal_bps == asked.target_bps
    assert finding.knees["wmem"].held_bytes == finding.knees["rmem"].most_bytes
    choice = choose.choose(asked, findings, world)
    assert choice.sizes["rmem"] <= finding.knees["rmem"].found_bytes + 1024
    assert choice.sizes["wmem"] >= finding.knees["wmem"].found_bytes * 1.1
    assert choice.proofs[0].reached
    assert "only while tcp_rmem bounds the flow" in summary.warnings(asked, findings, choice)[0]


def test_a_run_that_is_not_settled_is_made_longer() -> None:
    asked = make_ask()
    world = World(lambda point, goodput: goodput * (1 - 4 / point.duration_s))
    (finding,) = find.find(asked, world, 2)
    assert finding.how.duration_s > effort.effort(asked, asked.cases[0]).duration_s


def test_the_same_search_asks_for_the_same_points() -> None:
    one, other = World(), World()
    for world in (one, other):
        find.find(make_ask("cubic 6.12", "bbr 6.1"), world, 2)
    assert [point.id for point in one.points] == [point.id for point in other.points]


# ---- what to set


@given(st.floats(1, 2.1e9))
def test_sizes_are_whole_and_not_less(size: float) -> None:
    whole = choose.whole(size)
    assert whole >= min(size, 2047 * MIB)
    assert whole % (MIB if size >= MIB else 1024) == 0


def test_headroom_and_proof() -> None:
    told = advice(make_ask())
    for which in WHICH:
        found = told.findings[0].knees[which].found_bytes
        assert found * 1.1 <= told.choice.sizes[which] <= found * 1.1 + MIB
    (proof,) = told.choice.proofs
    assert proof.reached
    assert all(find.goodput_bps(half) < 0.65 * find.goodput_bps(proof.both) for half in proof.half.values())


def test_values_are_raised_until_they_reach_together() -> None:
    asked = make_ask()

    def change(point: Point, goodput: float) -> float:
        tight = all(largest(point, which) < 45 * MIB for which in WHICH)
        return goodput * 0.9 if tight else goodput

    told = advice(asked, World(change))
    assert told.choice.headroom > choose.HEADROOM
    assert told.choice.proofs[0].reached


def test_kernel_s_own_stays_where_it_is_more() -> None:
    told = advice(make_ask(rate="1mbit", rtt="20ms"))
    assert told.choice.kept == frozenset(WHICH)
    assert told.choice.sizes == {which: memory.DEFAULTS[which].maximum for which in WHICH}


def test_values_serve_every_case() -> None:
    told = advice(make_ask("cubic 6.12", "cubic 6.1"))
    needed = [finding.knees["rmem"].found_bytes for finding in told.findings]
    assert needed[1] > needed[0] * 1.2
    assert told.choice.sizes["rmem"] >= needed[1] * 1.1


def test_offloads_leave_room_for_single_segments() -> None:
    told = advice(make_ask(rate="10gbit", rtt="80ms"))
    found = told.findings[0].knees["rmem"].found_bytes
    assert told.findings[0].factor == pytest.approx(1.222, rel=0.01)
    assert told.choice.sizes["rmem"] >= found * 1.34
    assert not told.choice.proofs[0].how.offloads


# ---- what it costs


@given(st.integers(4096, 2**31 - 1), st.integers(1, 10_000))
def test_tcp_mem_is_in_the_kernel_s_proportions(size: int, connections: int) -> None:
    low, pressure, most = cost.tcp_mem_pages(size, connections)
    assert most * cost.PAGE_BYTES >= size * connections
    assert most == 2 * low
    assert low <= pressure <= most
    assert pressure == pytest.approx(low * 4 / 3, abs=1)


def test_delays() -> None:
    asked = make_ask()
    small = cost.delay(asked, asked.cases[0], 20 * MIB, 20 * MIB)
    assert small.standing_s == 0
    assert small.full_queue_s == pytest.approx(0.2)
    large = cost.delay(asked, asked.cases[0], 2000 * MIB, 2000 * MIB)
    assert large.standing_s == pytest.approx(0.2)


def test_flows_needed_above_one_gib() -> None:
    assert cost.flows_needed(8 * 2**30, 1.0) == 2
    assert cost.flows_needed(8e8, 1.0) == 1


# ---- what stands in the way


def failing(asked: Ask, **ample: Any) -> find.Finding:
    case = asked.cases[0]
    how = effort.effort(asked, case)
    sizes = {which: effort.ample_bytes(asked, case, which) for which in WHICH}
    point = find.buffers(asked, case, how, sizes)
    return find.Finding(case, how, sizes, row(point, **ample), row(point), 1.0, attainable=False)


def test_the_window_s_limit_stands_in_the_way() -> None:
    asked = make_ask(rate="100gbit", rtt="200ms")
    (said,) = obstacles.obstacles(asked, failing(asked, goodput_bps=4e10))
    assert "cannot exceed 1 GiB" in said
    assert "Many flows are the way out: 3 or more" in said


def test_loss_stands_in_the_way() -> None:
    asked = make_ask(loss="0.1%")
    said = obstacles.obstacles(asked, failing(asked, goodput_bps=1e6, limit_measured=LOSS))
    assert "takes 0.1 % for congestion" in said[0]
    assert "--cc bbr" in said[0]


def test_probing_stands_in_bbr_s_way() -> None:
    asked = make_ask("bbr 6.12", rate="100mbit", rtt="600ms")
    (said,) = obstacles.obstacles(asked, failing(asked, goodput_bps=8.4e7, limit_measured="pacing"))
    assert "drains the path every ten seconds" in said
    assert "12 % of the time" in said


def test_a_short_queue_stands_in_the_way() -> None:
    asked = make_ask(queue="0.1bdp")
    (said,) = obstacles.obstacles(
        asked, failing(asked, goodput_bps=5e8, limit_measured=QUEUE, queue_drops=611)
    )
    assert "queue is short for cubic: 2.384 MiB, 0.1 of the BDP; it dropped 611 packets" in said


def test_what_binds_is_named_where_nothing_better_is_known() -> None:
    asked = make_ask()
    assert obstacles.obstacles(asked, failing(asked, goodput_bps=5e8, limit_measured="hystart")) == [
        "What binds with ample buffers is HyStart."
    ]


# ---- the files


@pytest.mark.parametrize(
    ("cases", "path"),
    [
        (["cubic 6.12"], {}),
        (["cubic 6.1", "cubic 6.12", "bbr 6.12"], {}),
        (["bbr 6.12"], {"rate": "10gbit", "rtt": "80ms"}),
        (["cubic 6.12"], {"rate": "1mbit", "rtt": "20ms"}),
        (["cubic 6.12"], {"loss": "0.1%", "flows": "4"}),
    ],
)
def test_files_read_back_and_every_line_has_its_reason(
    cases: list[str], path: dict[str, str], tmp_path: Path
) -> None:
    told = advice(make_ask(*cases, **path))
    files = {conf.SENDER_FILE: conf.sender(told), conf.RECEIVER_FILE: conf.receiver(told)}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        assert sysctl.parse(text, name).faults == ()
        lines = text.split("\n")
        assert all(len(line) <= 100 for line in lines)
        for number, line in enumerate(lines):
            if line and not line.startswith("#"):
                assert lines[number - 1].startswith("# "), f"{line} has no reason"
    applied = verify.apply([verify.source(str(tmp_path / name)) for name in files])
    assert not [note for note in applied.notes if "does not count" in note]
    for which in WHICH:
        triple = memory.parse(applied.knobs[which], which)
        assert triple == (*memory.DEFAULTS[which][:2], told.choice.sizes[which])
        allowed = memory.parse(applied.knobs[f"{which}_max"], which).maximum
        needed = choose.needed_bytes(told.findings, which)
        assert 2 * allowed >= min(needed, told.choice.sizes[which])
        assert allowed >= memory.CORE_MAX_BYTES


def test_congestion_control_only_where_it_was_asked_for() -> None:
    told = advice(make_ask("bbr 6.12"))
    assert "\nnet.ipv4.tcp_congestion_control = bbr\n" in conf.sender(told)
    assert "\n-net.core.default_qdisc = fq\n" in conf.sender(told)
    assert "congestion_control" not in conf.sender(replace(told, cc_asked=False))
    several = conf.sender(advice(make_ask("bbr 6.12", "cubic 6.12")))
    assert "\n#net.ipv4.tcp_congestion_control = cubic\n" in several


def test_adv_win_scale_only_before_6_6() -> None:
    assert "\nnet.ipv4.tcp_adv_win_scale = 1\n" in conf.receiver(advice(make_ask("cubic 6.1")))
    assert "tcp_adv_win_scale" not in conf.receiver(advice(make_ask()))


def test_files_do_not_depend_on_the_day() -> None:
    assert conf.sender(advice(make_ask())) == conf.sender(advice(make_ask()))


# ---- what is said, and drawn


def test_json_has_every_number_and_is_json() -> None:
    told = advice(make_ask("cubic 6.12", "cubic 6.1"))
    found = summary.as_json(told.ask, told.findings, told.choice, {})
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["reached"]
    assert [case["kernel"] for case in found["cases"]] == ["6.12", "6.1"]
    buffer = found["cases"][0]["buffers"]["tcp_rmem"]
    assert buffer["short_bytes"] < buffer["least_bytes"] <= buffer["short_bytes"] * 1.035
    assert {point["max_bytes"] for point in buffer["points"]} >= {
        buffer["short_bytes"],
        buffer["least_bytes"],
    }


def test_figures_show_what_they_must() -> None:
    told = advice(make_ask("cubic 6.12", "cubic 6.1"))
    for drawn, which in zip(figure.draw(told.ask, told.findings, told.choice), WHICH, strict=True):
        names = [trace.name for trace in drawn.figure.data if trace.name]
        assert any(name.startswith("target, 95 % of it") for name in names)
        assert any(name.startswith("payload that the link can carry") for name in names)
        assert "cubic on 6.1" in names
        assert "cubic on 6.12" in names
        labels = [note.text for note in drawn.figure.layout.annotations]
        assert any(label.startswith("BDP 23.84 MiB") for label in labels)
        assert any(label.startswith("set: ") for label in labels)
        low, high = drawn.figure.layout.xaxis.range
        found = told.findings[0].knees[which].found_bytes / MIB
        assert 10**low < found < 10**high


def test_the_page_needs_nothing_else_and_escapes() -> None:
    told = advice(make_ask())
    drawn = figure.draw(told.ask, told.findings, told.choice)
    files = {"sender.conf": "# <script>alert(1)</script>\n"}
    words = {"command": "wanlab advise", "verify": "wanlab advise --verify", "run": "x/run"}
    text = page.render(told.ask, told.findings, told.choice, drawn, files, words)
    assert "<script>alert" not in text
    outside = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r'(?:src|href)="', outside)
    assert "default-src 'none'" in text


def test_checks_say_why_not() -> None:
    asked = make_ask()
    applied = verify.Applied({"wmem": "4KiB:16KiB:100MiB"}, [], [])
    (checked,) = verify.check(asked, applied, World())
    assert not checked.reached
    assert checked.row["limit_measured"] == RECEIVE_WINDOW
    said = summary.check_sentence(asked, checked)
    assert "the largest net.ipv4.tcp_rmem is 6 MiB, the kernel's own, since no file sets it" in said
    applied = verify.Applied({"rmem": "4KiB:128KiB:100MiB", "wmem": "4KiB:16KiB:8MiB"}, [], [])
    (checked,) = verify.check(asked, applied, World())
    assert checked.row["limit_measured"] == SEND_BUFFER
    assert "the largest net.ipv4.tcp_wmem is 8 MiB; by the model it takes" in checked.reasons[0]
    applied = verify.Applied({"rmem": "max=100MiB", "wmem": "max=100MiB"}, [], [])
    (checked,) = verify.check(asked, applied, World())
    assert checked.reached
    assert checked.row["limit_measured"] == LINK
    (checked,) = verify.check(asked, replace(applied, scaling=False), World())
    assert not checked.reached
    assert checked.goodput_bps == pytest.approx(65535 * 8 / 0.2)
    json.dumps(summary.check_json(asked, applied, [checked]), allow_nan=False)


# ---- the run folder


def test_a_folder_belongs_to_one_path(tmp_path: Path, make_kernel: Any) -> None:
    def runner(asked: Ask) -> bench.Bench:
        return bench.Bench(
            asked,
            "wanlab advise",
            None,
            {"6.12": make_kernel()},
            RunFolder(tmp_path / "run"),
            1,
            print,
            print,
        )  # type: ignore[arg-type]

    runner(make_ask()).claim()
    runner(make_ask(target="90%")).claim()
    runner(make_ask("bbr 6.12")).claim()
    with pytest.raises(Exception, match="holds the runs of another path"):
        runner(make_ask(rtt="10ms")).claim()
    manifest = RunFolder(tmp_path / "run").manifest()
    assert manifest["points"] == []
    assert "1gbit x 200ms" in manifest["question"]


def test_the_stored_script_is_a_scenario(tmp_path: Path) -> None:
    from lab import scenario  # noqa: PLC0415

    study = bench.study(make_ask())
    (tmp_path / "advice.py").write_text(study.source)
    assert scenario.load(tmp_path / "advice.py").scenario.defaults == study.scenario.defaults


# ---- the command


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rate", "10gbps", "--rtt", "80ms"], "is ambiguous"),
        (["--rate", "10gbit", "--rtt", "80"], "has no unit"),
        (["--rate", "10gbit", "--rtt", "0"], "leaves nothing to size"),
        (["--rate", "10gbit", "--rtt", "80ms", "--loss", "100%"], "lets nothing through"),
        (["--rate", "10gbit", "--rtt", "80ms", "--loss", "101%"], "out of range"),
        (["--rate", "10gbit", "--rtt", "80ms", "--flows", "0"], "leaves nothing to predict; give at least 1"),
        (["--rate", "10gbit", "--rtt", "80ms", "--target", "100%"], "at most 99.5%"),
        (["--rate", "10gbit", "--rtt", "80ms", "--target", "0%"], "is under 1%"),
        (["--rate", "10gbit", "--rtt", "80ms", "--target", "120%"], "is more than headers leave"),
        (["--rate", "10gbit", "--rtt", "80ms", "--jobs", "0"], "--jobs"),
        (["--rate", "10gbit", "--rtt", "80ms", "--cc", "BBR"], "is not a congestion control"),
        (["--rate", "10gbit", "--rtt", "80ms", "--cc", "bbr,,cubic"], "an empty name"),
        (["--rate", "10gbit", "--rtt", "80ms", "--verify", "nowhere.conf"], "cannot be read"),
        (
            ["--rate", "10gbit", "--rtt", "10ms+20ms"],
            "rtt: '10ms+20ms' lists 2 RTTs, and the model takes one; give one, such as 10ms",
        ),
        (
            ["--rate", "10gbit", "--rtt", "80ms", "--cc", "cubic,bbr*2+cubic"],
            "cc: 'bbr*2+cubic' lists 3 congestion controls, and the model takes one; give one, such as bbr",
        ),
        (
            ["--rate", "10gbit", "--rtt", "80ms", "--loss", "ge:1%:10%"],
            "loss: 'ge:1%:10%:100%:0%' is no probability, and the model knows random loss alone;"
            " give one, such as 0.1%",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["advise", *words]) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    assert list(tmp_path.iterdir()) == []


def test_receive_window_of_the_chosen_value_covers_the_target() -> None:
    told = advice(make_ask("cubic 6.1"))
    model = setting(told.ask.point(told.ask.cases[0]), Release(6, 1))
    window = receive_window_bytes(inverse.with_buffer(model, "rmem", told.choice.sizes["rmem"]))
    assert window * 8 / 0.2 >= told.ask.target_bps
