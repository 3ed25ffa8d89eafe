"""What `wanlab shell` says before a kernel runs: which point, the drawing, the names, the greeting."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from lab import layout, spec, sweep
from lab.cli import shell
from lab.errors import UserError
from lab.kernels import KernelRecord
from lab.scenario import Scenario

KERNEL = KernelRecord(
    name="6.12", release="6.12.1", recipe_hash="r", source="s", source_hash="h", hz=250, config_hash="c",
    compiler="gcc", built_at="", options_left_out=(), path=Path("/kernels/linux"),
)  # fmt: skip
CALM = {"rate": "100mbit", "rtt": "20ms"}


def points(**knobs: str) -> list[sweep.Point]:
    scenario = Scenario(name="any", question="Why?", why="Because.")
    chosen = {name: text.split(",") for name, text in {**CALM, **knobs}.items()}
    return sweep.points(scenario, chosen, engine="realtime", seeds=[1])


def greeting(**knobs: str) -> str:
    every = points(**knobs)
    plan = layout.plan(every[0])
    told = {
        "aliases": shell.aliases(plan),
        "files": "/home/alice/lab",
        "sysctls": spec.sysctls(every[0], spec.World(real_clock=True)),
    }
    return shell.greeting(every[0], told, KERNEL, "scenarios/any.py", shell.choices(every))


def test_a_greeting_word_for_word():
    assert greeting(rmem="max=8MiB") == (
        "scenarios/any.py in Linux 6.12.1, on the real clock\n"
        "\n"
        "    snd --- r1 === 100 Mbit/s, bfifo 244.1 KiB === r2 --- rcv    RTT 20 ms\n"
        "\n"
        "h1 = snd 10.0.1.1, h2 = rcv 10.0.3.2; interfaces too: h1-eth0 is snd-eth0\n"
        "Set:\n"
        "    net.core.rmem_max = 212992  (whole kernel)\n"
        "    net.core.wmem_max = 212992  (whole kernel)\n"
        "    net.ipv4.tcp_congestion_control = cubic  (every host)\n"
        f"    net.ipv4.tcp_mem = {spec.whole_kernel_sysctls(points(rmem='max=8MiB')[0])['net.ipv4.tcp_mem']}"
        "  (whole kernel)\n"
        "    net.ipv4.tcp_rmem = 4096 131072 6291456  (snd)\n"
        "    net.ipv4.tcp_rmem = 4096 131072 8388608  (rcv)\n"
        "    net.ipv4.tcp_wmem = 4096 16384 4194304  (every host)\n"
        "Commands start in /home/alice/lab, the one folder that they can write. Leave with exit or Ctrl-D.\n"
        "Try:  h1 ping -c 3 h2\n"
        "      h2 iperf3 -s -D   and then   h1 iperf3 -c h2\n"
        "      r1 tc -s qdisc show dev r1-eth1\n"
    )


@pytest.mark.parametrize(
    ("knobs", "drawn"),
    [
        ({"recipe": "leaf"}, "snd === 100 Mbit/s === r1 --- r2 --- rcv"),
        ({"qdisc": "codel"}, "snd --- r1 === 100 Mbit/s, codel 1000 packets === r2 --- rcv"),
        ({"topology": "dumbbell"}, "snd1 --- r1 === 100 Mbit/s, bfifo 244.1 KiB === r2 --- rcv1"),
        (
            {"topology": "parking_lot", "bottlenecks": "2", "flows": "3", "queue": "8KiB"},
            "snd --- r1 === 100 Mbit/s, bfifo 8 KiB === r2 === 100 Mbit/s, bfifo 8 KiB === r3 --- rcv",
        ),
    ],
)
def test_a_drawing_goes_from_the_first_sender_to_its_receiver(knobs, drawn):
    assert shell.drawing(layout.plan(points(**knobs)[0])) == drawn


def test_what_to_try_crosses_the_bottleneck():
    said = greeting(topology="dumbbell", flows="2")
    assert "h1 = snd1 10.0.2.1, h2 = snd2 10.0.4.1, h3 = rcv1 10.0.3.2, h4 = rcv2 10.0.5.2" in said
    assert "h1 ping -c 3 h3\n" in said


def test_many_hosts_are_not_all_named():
    named = next(line for line in greeting(topology="star", pairs="40").splitlines() if "h1 = " in line)
    assert "h5 = rcv4 10.0.6.2, ..., h41 = rcv40" in named
    assert "h6 = " not in named


def test_the_drawing_says_what_else_the_path_does():
    said = greeting(loss="0.1%", offloads="on", topology="dumbbell", rtt="20ms+80ms", flows="2")
    assert "RTT 20 ms to 80 ms, loss 0.1%, offloads on\n" in said


@pytest.mark.parametrize(
    ("knobs", "word"),
    [({"rate_change": "2s:50mbit"}, "rate_change"), ({"loss": "list:5+17"}, "loss")],
)
def test_what_is_not_played_is_said(knobs, word):
    assert f"Not played here, as the network stays as it is now: {word}\n" in greeting(**knobs)
    assert "Not played" not in greeting()


def test_one_point_leaves_no_choice():
    assert shell.choices(points()) == ""


def test_of_several_points_the_first_is_named_and_the_way_to_others():
    assert shell.choices(points(cc="reno,cubic,bbr", rmem="default,max=8MiB")) == (
        "This is the first of 6 points: rmem=default cc=reno."
        " Take another by its values: --set rmem=max=8MiB --set cc=bbr"
    )


def test_a_route_is_chosen_by_its_name_and_not_by_the_rtt_that_it_sets():
    said = shell.choices(
        sweep.points(
            Scenario(name="any", question="Why?", why="."),
            {"topology": ["long_haul"], "route": ["geo-satellite", "leo-satellite"]},
            engine="realtime",
            seeds=[1],
        )
    )
    assert said.endswith("Take another by its values: --set route=leo-satellite")


def test_second_names_are_of_hosts_in_order_and_leave_names_that_are_there():
    plan = layout.plan(points(topology="dumbbell", flows="2")[0])
    assert shell.aliases(plan) == {"h1": "snd1", "h2": "snd2", "h3": "rcv1", "h4": "rcv2"}

    class Taken:
        hosts = ("a", "h1", "b")
        nodes = ("r1", "a", "h1", "b")

    assert shell.aliases(Taken) == {"h2": "h1", "h3": "b"}


def test_lines_come_from_arguments_or_from_a_pipe(monkeypatch):
    assert shell._lines(["h1 ls", "h2 ls\nh1 pwd"]) == ["h1 ls", "h2 ls", "h1 pwd"]
    pipe = io.TextIOWrapper(io.BytesIO(b"h1 ls\nh2 ls"))
    monkeypatch.setattr("sys.stdin", pipe)
    assert shell._lines(None) == ["h1 ls", "h2 ls"]


def test_a_file_is_no_folder_to_work_in(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="no such folder"):
        shell._files(tmp_path / "file")
    assert shell._files(tmp_path / "." / "") == tmp_path.resolve()


@pytest.mark.parametrize("folder", ["/", "/proc", "/run", "/dev", "/sys"])
def test_the_system_s_own_folders_cannot_be_the_user_s(folder):
    with pytest.raises(UserError, match="the system's"):
        shell._files(Path(folder))
