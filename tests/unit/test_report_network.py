"""Drawings of networks: all that a plan has is in them, and nothing else; they hold for 1 to 500 pairs."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

import pytest

from docs import topologies
from lab import plans
from lab.plans.plan import Plan
from lab.report import canvas, network, sketch, wide

QUEUE = {"kind": "bfifo", "limit": 250 * 1024}
LINK = {"rate_bps": 1e8, "access_bps": 1e9, "queue": QUEUE}
SHAPES: Mapping[str, tuple[str, dict[str, Any]]] = {
    "path": ("path", {**LINK, "delay_out_s": 0.01, "delay_back_s": 0.01}),
    "leaf": ("path", {"rate_bps": 1e8, "delay_out_s": 0.01, "delay_back_s": 0.01, "recipe": "leaf"}),
    "bare": ("dumbbell", {}),
    "dumbbell": ("dumbbell", {**LINK, "pairs": 3, "rtt_s": [0.02, 0.08]}),
    "many": ("dumbbell", {**LINK, "pairs": 100, "rtt_s": [0.02, 0.08], "way": {"loss": 0.001}}),
    "one bottleneck": ("parking_lot", {**LINK, "bottlenecks": 1, "rtt_s": 0.04}),
    "parking lot": ("parking_lot", {**LINK, "bottlenecks": 3, "rtt_s": 0.04}),
    "long parking lot": ("parking_lot", {**LINK, "bottlenecks": 20, "rtt_s": 0.04}),
    "star": ("star", {**LINK, "pairs": 4, "rtt_s": [0.01, 0.2]}),
    "two way": ("two_way", {**LINK, "back_bps": 1e7, "rtt_s": 0.04}),
}
SVG = "{http://www.w3.org/2000/svg}"


def plan(name: str, **more: Any) -> Plan:
    shape, params = SHAPES[name]
    return plans.make(shape, {**params, **more})


def texts(drawn: str) -> list[str]:
    """Return every line that a drawing has. Fails where it is no XML."""
    return [element.text or "" for element in ElementTree.fromstring(drawn).iter(f"{SVG}text")]


def kinds(drawn: str, tag: str) -> list[set[str]]:
    return [set(one.get("class", "").split()) for one in ElementTree.fromstring(drawn).iter(f"{SVG}{tag}")]


both = pytest.mark.parametrize("narrow", [False, True], ids=["wide", "narrow"])
every = pytest.mark.parametrize("name", SHAPES)


@every
@both
class TestEvery:
    def test_all_nodes_are_named_or_counted(self, name: str, narrow: bool) -> None:
        of = plan(name)
        lines = texts(network.svg(of, narrow=narrow))
        more = [int(found[1]) for line in lines if (found := re.match(r"… (\d+)", line))]
        beside = [int(found[1]) for line in lines if (found := re.search(r"(\d+) hosts$", line))]
        in_a_row = of.shape == "parking_lot"
        shown = {
            kind: sum(node in lines for node in nodes) for kind, nodes in (("h", of.hosts), ("r", of.routers))
        }
        assert shown["h"] + sum(beside if in_a_row else more) == len(of.hosts)
        assert shown["r"] + (sum(more) - 1 if in_a_row and more else 0) == len(of.routers)
        assert all(lines.count(node) <= 1 for node in of.nodes)

    def test_refers_to_nothing_and_runs_nothing(self, name: str, narrow: bool) -> None:
        drawn = network.svg(plan(name), narrow=narrow)
        root = ElementTree.fromstring(drawn)
        assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
            *("svg", "title", "desc", "text", "rect", "path")
        }
        named = {key for element in root.iter() for key in element.attrib}
        assert not {key for key in named if "href" in key or key.startswith("on")} | (named & {"id", "style"})
        assert "url(" not in drawn
        assert drawn.count("http") == 1  # the name of SVG itself

    def test_same_plan_same_drawing(self, name: str, narrow: bool) -> None:
        assert network.svg(plan(name), narrow=narrow) == network.svg(plan(name), narrow=narrow)

    def test_says_what_it_is_to_those_who_do_not_see_it(self, name: str, narrow: bool) -> None:
        of = plan(name)
        root = ElementTree.fromstring(network.svg(of, narrow=narrow))
        assert root.get("role") == "img"
        assert [one.tag for one in root][:2] == [f"{SVG}title", f"{SVG}desc"]
        title, described = (str(one.text) for one in root[:2])
        assert f"{len(of.hosts)} hosts" in title
        assert of.pairs[0].sender in described
        assert of.pairs[-1].bottlenecks[0] in described

    def test_all_of_it_is_inside(self, name: str, narrow: bool) -> None:
        root = ElementTree.fromstring(network.svg(plan(name), narrow=narrow))
        left, top, across, down = (float(word) for word in str(root.get("viewBox")).split())
        assert (float(str(root.get("width"))), float(str(root.get("height")))) == (across, down)
        for one in (*root.iter(f"{SVG}text"), *root.iter(f"{SVG}rect")):
            x, y = float(str(one.get("x"))), float(str(one.get("y")))
            assert left <= x <= left + across
            assert top <= y <= top + down

    def test_no_words_lie_on_others(self, name: str, narrow: bool) -> None:
        root = ElementTree.fromstring(network.svg(plan(name), narrow=narrow))
        places = []
        for one in root.iter(f"{SVG}text"):
            x, y, words = float(str(one.get("x"))), float(str(one.get("y"))), str(one.text)
            across = 0.8 * canvas.width(words)  # as most fonts have it
            x -= {"start": 0, "middle": 0.5, "end": 1}[str(one.get("text-anchor"))] * across
            places.append((x, y - 10, x + across, y + 2, words))
        for number, (left, top, right, bottom, words) in enumerate(places):
            for other in places[:number]:
                apart = right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
                assert apart, f"{words!r} and {other[4]!r}"

    def test_fits_its_page(self, name: str, narrow: bool) -> None:
        root = ElementTree.fromstring(network.svg(plan(name), narrow=narrow))
        assert float(str(root.get("width"))) < (470 if narrow else 1060)


class TestWords:
    def test_each_way_of_the_bottleneck_has_its_own(self) -> None:
        lines = texts(network.svg(plan("two way")))
        assert lines.count("100 Mbit/s") == lines.count("10 Mbit/s") == 1
        assert lines.count("FIFO queue, 250 KiB") == 2

    def test_hosts_have_rate_delay_and_rtt(self) -> None:
        lines = texts(network.svg(plan("dumbbell")))
        assert lines.count("1 Gbit/s →") == lines.count("← 1 Gbit/s") == 3
        assert lines.count("← delay 10 ms") == lines.count("delay 10 ms →") == 2
        assert lines.count("RTT 20 ms") == 2
        assert lines.count("RTT 80 ms") == 1

    def test_rtt_stands_where_data_arrive(self) -> None:
        lines = texts(network.svg(plan("two way")))
        assert lines[lines.index("snd2") + 1] == lines[lines.index("rcv1") + 1] == "RTT 40 ms"

    @pytest.mark.parametrize(
        ("queue", "words"),
        [
            ({"kind": "pfifo", "limit": 1000}, ["FIFO queue, 1000 packets"]),
            ({"kind": "bfifo", "limit": 2**20}, ["FIFO queue, 1 MiB"]),
            ({"kind": "policer", "limit": 2**16}, ["policer, bucket of 64 KiB"]),
            (
                {"kind": "fq_codel", "limit": 10240, "target_s": 0.005, "ecn": True},
                ["fq_codel queue, 10240 packets", "target 5 ms, ECN"],
            ),
            (
                {"kind": "codel", "limit": 1000, "ecn": True, "ce_threshold_s": 0.001},
                ["codel queue, 1000 packets", "ECN, marks over 1 ms"],
            ),
            ({"kind": "red", "limit": 2**20, "ecn": False}, ["red queue, 1 MiB"]),
        ],
    )
    def test_queues(self, queue: dict[str, Any], words: list[str]) -> None:
        assert sketch.queue_words(queue) == words

    def test_shaper_without_a_queue_has_its_own(self) -> None:
        assert sketch.words({"rate_bps": 1e8}) == ("100 Mbit/s", "htb's own queue")
        assert sketch.words({}) == ()

    @pytest.mark.parametrize(
        ("egress", "words"),
        [
            ({"loss": 0.001}, ("loss 0.1%",)),
            ({"loss": {"kind": "ge", "numbers": [0.01, 0.1, 1, 0]}}, ("loss in bursts",)),
            ({"loss": {"kind": "state", "numbers": [0.01, 1, 0, 1, 0]}}, ("loss by four states",)),
            ({"loss": {"kind": "list", "numbers": [5, 17]}}, ("loss of 2 packets",)),
            ({"jitter_s": 0.001, "jitter_distribution": "pareto"}, ("jitter 1 ms, pareto",)),
            (
                {"jitter_s": 0.001, "duplicate": 0.01, "reorder": 1e-5},
                ("jitter 1 ms", "duplicate 1%", "reorder 0.001%"),
            ),
        ],
    )
    def test_impairments(self, egress: dict[str, Any], words: tuple[str, ...]) -> None:
        assert sketch.impairments(egress) == words

    def test_what_happens_on_every_way_is_said_once(self) -> None:
        lines = texts(network.svg(plan("dumbbell", way={"loss": 0.01, "jitter_s": 0.001})))
        assert lines.count("to each: jitter 1 ms, loss 1%") == 1
        assert not [line for line in lines if "loss" in line and "each" not in line]
        assert "loss 1% →" in texts(network.svg(plan("path", loss=0.01)))

    def test_leaf_recipe_has_its_queue_at_the_sender(self) -> None:
        drawn = network.svg(plan("leaf"))
        assert "netem queue, 1000 packets →" in texts(drawn)
        assert texts(drawn).count("not shaped") == 2

    @both
    def test_notes_stand_at_their_hosts(self, narrow: bool) -> None:
        lines = texts(
            network.svg(plan("dumbbell"), narrow=narrow, notes=(("wmem 4MiB", "bbr"), ("rmem 1MiB",)))
        )
        assert {"wmem 4MiB", "bbr", "rmem 1MiB"} <= set(lines)

    @both
    def test_text_is_escaped(self, narrow: bool) -> None:
        evil = "</text><script>alert('1')</script>&amp;\0"
        drawn = network.svg(plan("path"), narrow=narrow, notes=((evil,), (evil,)))
        assert "<script" not in drawn
        assert texts(drawn).count(evil.replace("\0", "\N{REPLACEMENT CHARACTER}")) == 2


class TestBottlenecks:
    def test_one_way_is_under_study(self) -> None:
        for name in ("path", "dumbbell", "star"):
            assert (
                sum("studied" in kind and "head" in kind for kind in kinds(network.svg(plan(name)), "path"))
                == 1
            )

    def test_both_are_where_both_have_hosts_of_their_own(self) -> None:
        heads = kinds(network.svg(plan("two way")), "path")
        assert sum("studied" in kind and "head" in kind for kind in heads) == 2

    def test_every_one_of_a_parking_lot_is(self) -> None:
        heads = kinds(network.svg(plan("parking lot")), "path")
        assert sum("studied" in kind and "head" in kind for kind in heads) == 3

    @both
    def test_very_many_are_counted(self, narrow: bool) -> None:
        lines = texts(network.svg(plan("long parking lot"), narrow=narrow))
        assert {"r1", "r2", "r3", "r20", "r21", "snd20"} <= set(lines)
        assert "r4" not in lines
        assert any(line.startswith("… 17 more") for line in lines)


class TestMany:
    @pytest.mark.parametrize("shape", ["dumbbell", "star", "two_way"])
    @pytest.mark.parametrize("pairs", [1, 2, 7, 8, 9, 50, 499, 500])
    def test_hosts_that_are_not_drawn_are_counted(self, shape: str, pairs: int) -> None:
        of = plans.make(shape, {**LINK, "pairs": pairs, "rtt_s": 0.02})
        lines = texts(network.svg(of))
        for column in (of.columns[0], of.columns[-1]):
            shown = [host for host in column if host in lines]
            hidden = len(column) - len(shown)
            assert len(shown) == len(column) if len(column) <= wide.MOST_HOSTS else len(shown) == 4
            assert (f"… {hidden} more" in lines) == (hidden > 0)

    def test_five_hundred_pairs_are_drawn_quickly(self) -> None:
        of = plans.make("dumbbell", {**LINK, "pairs": 500, "rtt_s": 0.02})
        began = time.perf_counter()
        drawn = network.svg(of)
        assert time.perf_counter() - began < 1
        assert len(drawn) < 20_000


class TestDocument:
    def test_file_has_its_colours_for_both_screens(self) -> None:
        drawn = network.document(plan("dumbbell"))
        ElementTree.fromstring(drawn)
        assert "prefers-color-scheme: dark" in drawn
        for name in ("--text", "--soft", "--paper", "--tint", "--accent"):
            assert drawn.count(f"{name}:") == 2
            assert f"var({name})" in drawn
        assert "url(" not in drawn
        assert "@import" not in drawn

    @pytest.mark.parametrize("name", topologies.EXAMPLES)
    def test_files_of_the_reference_are_as_the_code_draws_them(self, name: str) -> None:
        path, made = topologies.picture(name)
        assert path.read_text(encoding="utf-8") == made
