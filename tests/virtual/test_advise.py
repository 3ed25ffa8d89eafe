"""Advice by real runs on a small path: found, written, proved, verified; going on costs nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab.cli.main import main

pytestmark = pytest.mark.virtual

PATH = ("--rate", "20mbit", "--rtt", "40ms")


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    """Run `wanlab advise` with JSON; return its exit code and what it printed."""
    status = main(["advise", *PATH, "--format", "json", *words])
    return status, json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_advice_is_found_written_and_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "advice")
    status, found = run(capsys, "--out", out)
    assert status == 0
    assert found["reached"]
    window = 0.95 * found["bdp_bytes"] * 1448 / 1514
    (case,) = found["cases"]
    rmem, wmem = case["buffers"]["tcp_rmem"], case["buffers"]["tcp_wmem"]
    # 100 kB hold few segments, and a buffer opens in steps: near the rule, not on it
    assert rmem["least_bytes"] == pytest.approx(window * 256 / 162, rel=0.25)
    assert wmem["least_bytes"] == pytest.approx(window * 3 / 2, rel=0.35)
    assert rmem["short_bytes"] < rmem["least_bytes"] <= 1.035 * rmem["short_bytes"]
    assert case["default_goodput_bps"] == pytest.approx(found["capacity_bps"], rel=0.02)
    assert case["proof"]["reached"]
    assert found["set"]["tcp_rmem"]["kernel_default"], "the kernel's own 6 MiB are more than this path needs"

    page = Path(found["files"]["advice.html"]).read_text(encoding="utf-8")
    assert "20mbit x 40ms" in page
    stored = len(list((tmp_path / "advice" / "run" / "points").iterdir()))
    status, again = run(capsys, "--out", out)
    assert (status, again) == (0, found)
    assert len(list((tmp_path / "advice" / "run" / "points").iterdir())) == stored

    files = [found["files"][name] for name in ("sender.conf", "receiver.conf")]
    status, checked = run(capsys, "--out", out, "--verify", *files)
    assert status == 0
    assert checked["reached"]

    half = tmp_path / "half.conf"
    size = rmem["least_bytes"] // 2
    half.write_text(f"net.ipv4.tcp_rmem = 4096 {size} {size}\n")
    status, checked = run(capsys, "--out", out, "--verify", str(half))
    assert status == 1
    (case,) = checked["cases"]
    assert case["goodput_bps"] < 0.7 * checked["capacity_bps"]
    assert "tcp_rmem" in case["reasons"][0]


def test_loss_is_named_as_what_stands_in_the_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, found = run(capsys, "--loss", "2%", "--out", str(tmp_path / "advice"))
    assert status == 1
    (case,) = found["cases"]
    assert not case["attainable"]
    assert case["goal_bps"] == pytest.approx(0.95 * case["ample_goodput_bps"])
    assert "Loss stands in the way" in case["obstacles"][0]


def test_a_kernel_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["advise", *PATH, "--kernel", "9.99", "--out", str(tmp_path / "advice")])
    printed = capsys.readouterr()
    assert status in (2, 3)
    assert "9.99" in printed.err
    assert printed.err.count("\n") == 1
