"""What a point asks of a host's kernel."""

from __future__ import annotations

import dataclasses

import pytest

from lab import wishes
from lab.qdisc import egress_commands
from lab.sweep import Point
from tests.conftest import MakePoint


def named(point: Point) -> dict[str, str]:
    return {feature.name: why for feature, why in wishes.wishes(point)}


def test_plain_rate_needs_no_delay_line(make_point: MakePoint) -> None:
    assert set(named(make_point(rtt="0s"))) == {"namespaces", "veth", "htb"}


@pytest.mark.parametrize(
    ("name", "text"),
    [("rtt", "10ms"), ("loss", "1%"), ("duplicate", "1%"), ("loss", "ge:1%:10%")],
)
def test_delay_and_loss_need_netem(make_point: MakePoint, name: str, text: str) -> None:
    knobs = {"rtt": "0s", name: text}
    why = named(make_point(**knobs))["netem"]
    assert f"{name}={make_point(**knobs).knobs[name]}" in why


@pytest.mark.parametrize("kind", ["red", "codel", "fq_codel", "pie", "cake", "fq", "sfq", "policer"])
def test_every_queue_but_the_plain_ones_needs_its_own(make_point: MakePoint, kind: str) -> None:
    point = make_point(rtt="0s", qdisc=kind)
    assert named(point)[kind] == f"qdisc={kind}"
    feature = wishes.feature_of(kind)
    assert feature.option == f"CONFIG_NET_{feature.module.upper()}"


def test_list_of_packets_needs_bpf(make_point: MakePoint) -> None:
    assert "cls_bpf" in named(make_point(rtt="0s", loss="list:1+2"))


def test_no_wish_is_forgotten(make_point: MakePoint) -> None:
    """Every qdisc that a topology would build is wished for."""
    known = {"htb", "netem", "pfifo", "bfifo", *wishes._QDISCS, "tbf"}
    for kind in ("fifo", *wishes._QDISCS):
        from lab import layout  # noqa: PLC0415

        point = make_point(qdisc=kind, loss="1%")
        ends = [end for link in layout.plan(point).links for end in link.ends]
        words = [line.split() for end in ends for line in egress_commands(end.interface, end.egress)]
        used = {word for line in words for word in line if word in known}
        granted = {*named(point), "pfifo", "bfifo"} | ({"tbf"} if kind == "policer" else set())
        assert used <= granted


def test_features_are_plain_data() -> None:
    assert dataclasses.is_dataclass(wishes.feature_of("fq"))
