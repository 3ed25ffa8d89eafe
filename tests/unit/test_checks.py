"""Combinations that cannot be: one sentence each, which names the knob, its value, the rule and the mend."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lab import checks, traffic
from lab.combination import Point
from lab.knobs import PATH_KNOBS, TOPOLOGIES
from lab.queues import AQM, LIMIT_UNIT, STEPPED

MakePoint = Callable[..., Point]
SHORT = {"duration": "10s"}
LEAF = "needs recipe=separate; the leaf recipe is one netem under one htb"
OWN = "needs workload=bulk, whose flows the lab opens itself"

SENTENCES = [
    # the network
    *(
        ({"recipe": "leaf", name: text, **more}, [f"{name}: {text!r} {LEAF}"])
        for name, text, more in (
            ("topology", "dumbbell", {}),
            ("qdisc", "codel", {}),
            ("access", "1gbit", {}),
            ("rate_back", "10mbit", {}),
            ("reverse", "1", {}),
            ("rate_change", "1s:1mbit", {}),
            ("trace", "file.csv", {}),
            ("rtt_change", "1s:1ms", {}),
            ("loss_change", "1s:1%", {}),
        )
    ),
    (
        {"topology": "long_haul"},
        ["topology: 'long_haul' needs a route, such as geo-satellite; see docs/reference/routes.md"],
    ),
    (
        {"rtt": "10ms+20ms"},
        ["rtt: '10ms+20ms' lists 2 RTTs and a path has one pair of hosts; take topology=dumbbell or star"],
    ),
    (
        {"access": "10mbit+1gbit"},
        [
            "access: '10mbit+1gbit' lists several rates and a path has one pair of hosts;"
            " take topology=dumbbell or star"
        ],
    ),
    (
        {"topology": "dumbbell", "flows": "2", "place": "1+7"},
        [
            "place: '1+7' puts a flow on pair 7, and the pairs of this dumbbell are 1 to 2;"
            " take one of them, or more pairs"
        ],
    ),
    (
        {"rate_change": "5s:10kbit+5.1s:20mbit"},
        [
            "rate_change: '5s:10kbit+5.1s:20mbit' has 10kbit for 0.1 s, and a packet takes 1.21 s at that;"
            " hold it longer, or write an outage as a trace with a rate of 0"
        ],
    ),
    ({"pairs": "2"}, ["pairs: '2': a path has one pair of hosts; take topology=dumbbell or star"]),
    (
        {"topology": "star", "workload": "http"},
        ["workload: 'http' runs on topology=path; take bulk or request on star"],
    ),
    (
        {"topology": "two_way"},
        ["reverse: topology=two_way has hosts that send the other way; give them flows, such as 1"],
    ),
    (
        {"topology": "parking_lot", "flows": "3"},
        [
            "flows: '3' leaves out cross traffic of a parking lot of 3 bottlenecks; give at least 4,"
            " or say their place",
        ],
    ),
    (
        {"topology": "parking_lot", "flows": "4", "pairs": "4"},
        ["pairs: '4': a parking lot has one pair more than bottlenecks; set bottlenecks"],
    ),
    (
        {"topology": "star", "rtt": "1ms+2ms+3ms", "pairs": "2", "flows": "2"},
        ["pairs: '2' is fewer than the 3 RTTs that are listed; give more"],
    ),
    (
        {"place": "1+2"},
        [
            "place: '1+2' puts a flow on pair 2, and the pairs of this path are 1 to 1;"
            " take one of them, or more pairs"
        ],
    ),
    (
        {"topology": "star", "pairs": "2", "place": "0+3"},
        [
            "place: '0+3' puts a flow on pair 0, and the pairs of this star are 1 to 2;"
            " take one of them, or more pairs"
        ],
    ),
    # the queue
    (
        {"qdisc": "sfq", "queue": "20000p"},
        ["queue: '20000p' is 20000 packets, over the 16256 that sfq can hold; take a smaller queue"],
    ),
    (
        {"target": "20ms"},
        ["target: '20ms': bfifo aims at no delay; cake, codel, fq_codel, pie do"],
    ),
    (
        {"qdisc": "pie", "ce_threshold": "1ms", "ecn": "on"},
        ["ce_threshold: '1ms': pie has none; codel, fq, fq_codel do"],
    ),
    (
        {"qdisc": "codel", "ce_threshold": "1ms"},
        ["ce_threshold: '1ms' marks, and marks need ecn=on"],
    ),
    (
        {"qdisc": "policer", "rate_change": "1s:1mbit"},
        ["qdisc: 'policer' has a fixed rate here; leave rate_change and trace out, or take another qdisc"],
    ),
    # what changes
    (
        {"trace": "file.csv", "rate_change": "1s:1mbit"},
        ["trace: a trace sets the rate over time, and so does rate_change; give one of them"],
    ),
    *(
        (
            {name: f"5s~10s:{value}", **SHORT},
            [
                f"{name}: '5s~10s:{value}' reaches 10 s and the run ends at 10 s; end it before, or give a"
                " longer duration"
            ],
        )
        for name, value in (("rate_change", "1mbit"), ("rtt_change", "1ms"), ("loss_change", "1%"))
    ),
    *(
        (
            {name: f"5s:{value}", "rtt": "0s", "queue": "1MB"},
            [f"{name}: '5s:{value}' needs a delay line; give an rtt over 0s"],
        )
        for name, value in (("rtt_change", "1ms"), ("loss_change", "1%"))
    ),
    (
        {"rtt_change": "1s:1ms", "topology": "star", "rtt": "1ms+2ms"},
        ["rtt_change: '1s:1ms' changes one RTT, and rtt=1ms+2ms lists several"],
    ),
    (
        {"loss_change": "1s:1%", "loss": "list:5"},
        ["loss_change: '1s:1%' changes a probability, and loss=list:5 is none"],
    ),
    (
        {"loss": "list:5+17", "recipe": "leaf"},
        ["loss: 'list:5+17' counts packets on a router, and recipe=leaf has none on the way"],
    ),
    (
        {"loss": "list:5+17", "offloads": "on"},
        [
            "loss: 'list:5+17' counts packets, and with offloads several travel as one; set offloads=off",
        ],
    ),
    (
        {"jitter_dist": "normal"},
        ["jitter_dist: 'normal' needs a jitter to distribute, such as jitter=5ms"],
    ),
    # when flows begin and end
    (
        {"start": "1s+8s", "spread": "2s", **SHORT},
        [
            "start: a flow that begins at 10 s comes after the end of the run at 10 s;"
            " begin earlier, or give a longer duration"
        ],
    ),
    (
        {"stop": "end+11s", **SHORT},
        ["stop: 11 s is past the end of the run at 10 s; write end, or a longer duration"],
    ),
    (
        {"start": "1s+5s", "stop": "end+4s", "flows": "2"},
        ["stop: 'end+4s' ends a flow before start=1s+5s begins it; stop later"],
    ),
    # what a workload cannot be told
    *(
        ({"workload": "iperf3", name: text}, [f"{name}: {text!r} {OWN}"])
        for name, text in (
            *(("start", "1s"), ("stop", "5s"), ("spread", "1s"), ("on_off", "1s:2s")),
            *(("arrivals", "every:1s"), ("reverse", "1")),
        )
    ),
    ({"workload": "request", "stop": "5s"}, [f"stop: '5s' {OWN}"]),
    (
        {"workload": "http", "cc": "bbr+cubic"},
        ["cc: 'bbr+cubic' gives flows different ones, which needs workload=bulk or request"],
    ),
    (
        {"workload": "http", "bytes": "1MB+2MB"},
        ["bytes: '1MB+2MB' gives flows different sizes, which needs workload=bulk"],
    ),
    (
        {"workload": "request", "bytes": "1MB"},
        ["bytes: '1MB': workload=request sends requests and responses; set response"],
    ),
    (
        {"workload": "http", "flows": "0", "udp": "1mbit"},
        ["flows: '0' needs workload=bulk: http is nothing without flows"],
    ),
    # too much, or nothing
    ({"flows": "0"}, ["flows: '0' leaves nothing to measure; give flows, arrivals or udp"]),
    (
        {"on_off": "1ms:1ms", "duration": "1h"},
        [
            "on_off: '1ms:1ms' are 1.8e+06 times of sending in 3600 s; at most 1000000 can be:"
            " take longer ones or a shorter duration"
        ],
    ),
    (
        {"arrivals": "every:100us", **SHORT},
        [
            "arrivals: 'every:100us' of sizes=exp:100KB are about 100000 flows in 10 s; at most 20000 can"
            " run: take larger ones or a shorter duration"
        ],
    ),
    (
        {"udp": "10gbit", "rate": "10gbit", **SHORT},
        [
            "udp: '10gbit' are 8256275 packets in 10 s; at most 2000000 can be sent: take a lower rate or a"
            " shorter duration"
        ],
    ),
    (
        {"interval": "1ms", "flows": "1000", "duration": "50s"},
        ["interval: '1ms' records 1e+08 samples of sockets, over 20000000; take a longer one"],
    ),
]


@pytest.mark.parametrize(
    ("knobs", "sentences"), SENTENCES, ids=[" ".join(said)[:60] for _, said in SENTENCES]
)
def test_each_fault_is_one_sentence(
    make_point: MakePoint, knobs: dict[str, str], sentences: list[str]
) -> None:
    assert checks.check_point(make_point(**knobs)) == sentences


def test_every_sentence_begins_with_its_knob() -> None:
    assert {said.partition(":")[0] for _, every in SENTENCES for said in every} <= set(PATH_KNOBS)


FAULTLESS: list[dict[str, str]] = [
    {},
    {"flows": "0", "udp": "1mbit"},
    {"flows": "0", "arrivals": "poisson:50%"},
    {"workload": "request", "start": "1s", "spread": "1s", "cc": "bbr+cubic", "flows": "2"},
    {"workload": "iperf3", "flows": "4", "bytes": "1MB", "udp": "1mbit", "probe": "10ms"},
    {"topology": "dumbbell", "flows": "2", "rtt": "10ms+20ms", "access": "10mbit+1gbit"},
    {"topology": "parking_lot", "flows": "4"},
    {"topology": "parking_lot", "flows": "2", "place": "0+3"},
    {"topology": "two_way", "reverse": "1", "rate_back": "10mbit"},
    {"topology": "star", "workload": "request", "flows": "3"},
    {"start": "0s+11s", "stop": "11s+12s", "flows": "2", "duration": "12s"},
    {"rtt_change": "11s:0s", "loss_change": "1s~2s:100%", "rate_change": "11999ms:1mbit"},
    {"jitter": "1ms", "jitter_dist": "pareto"},
    *({"qdisc": kind, "queue": queue} for kind in LIMIT_UNIT for queue in ("auto", "1bdp", "1000p")),
    *({"qdisc": kind, "ecn": "on"} for kind in sorted(AQM | STEPPED)),
]


@pytest.mark.parametrize("knobs", FAULTLESS, ids=str)
def test_what_can_be_has_no_fault(make_point: MakePoint, knobs: dict[str, str]) -> None:
    if knobs.get("qdisc") == "sfq" and knobs.get("queue") == "1bdp":
        knobs = {**knobs, "rate": "100mbit"}
    assert checks.check_point(make_point(**knobs)) == []


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_every_shape_can_be(make_point: MakePoint, topology: str) -> None:
    point = make_point(topology=topology, flows="4", reverse="1", route="geo-satellite")
    assert checks.check_point(point) == []


def test_all_faults_are_told_at_once(make_point: MakePoint) -> None:
    point = make_point(rtt="1ms+2ms", pairs="3", target="1ms", jitter_dist="normal", flows="0", start="20s")
    assert [fault.partition(":")[0] for fault in checks.check_point(point)] == [
        *("rtt", "pairs", "target", "jitter_dist", "start", "flows"),
    ]


def test_what_is_far_too_much_is_refused_before_it_is_made(make_point: MakePoint) -> None:
    """A point of seven thousand million flows would otherwise never come to its refusal."""
    point = make_point(arrivals="poisson:500%", rate="100gbit", sizes="100B", stop="5s")
    (fault,) = checks.check_point(point)
    assert fault.endswith(f"at most {traffic.MOST_ARRIVALS} can run: take larger ones or a shorter duration")
