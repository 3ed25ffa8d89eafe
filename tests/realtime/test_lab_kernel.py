"""The realtime engine on the real clock in a kernel of the lab's own, where there is netem.

Once as it is for those who are not root (`--kernel 6.12`), and once as it is on
a host, the whole of it inside: so no line of it waits for a kernel with netem.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from lab.kernels import find_kernel
from tests.realtime.inside import inside

ROOT = Path(__file__).resolve().parents[2]
SCENARIO = str(ROOT / "scenarios" / "path.py")
POINT = {"rate": "20mbit", "rtt": "20ms", "duration": "3s"}

pytestmark = [pytest.mark.realtime, pytest.mark.virtual]


def words(out: Path | str, *more: str, engine: str = "realtime", **knobs: str) -> list[str]:
    told = [f"--set={name}={text}" for name, text in {**POINT, **knobs}.items()]
    run = [sys.executable, "-m", "lab", "run", SCENARIO, "--engine", engine]
    return [*run, *told, "--out", str(out), *more]


def rows(out: Path, table: str = "point") -> list[dict[str, Any]]:
    files = sorted(out.glob(f"points/*/{table}.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist(maps_as_pydicts="strict")]


def check(row: dict[str, Any]) -> None:
    """Hold a row of `POINT` against physics, as widely as a shared machine needs."""
    assert row["status"] == "done", row["reason"]
    assert 0.020 <= row["rtt_s"] < 0.0215
    assert row["measured_rate_bps"] == pytest.approx(20e6, rel=0.1)
    assert row["goodput_bps"] == pytest.approx(18.7e6, rel=0.1)
    assert row["cpu_busy"] is not None


@pytest.mark.parametrize("kernel", ["6.12", "6.1"])
def test_needs_no_root_and_gives_what_virtual_time_gives(tmp_path: Path, kernel: str) -> None:
    both = {}
    for engine in ("realtime", "virtual"):
        done = subprocess.run(
            words(tmp_path / engine, engine=engine, kernel=kernel, cc="reno"),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        (both[engine],) = rows(tmp_path / engine)
    check(both["realtime"])
    assert both["realtime"]["goodput_bps"] == pytest.approx(both["virtual"]["goodput_bps"], rel=0.08)
    assert both["realtime"]["kernel_release"] == both["virtual"]["kernel_release"]
    assert both["virtual"]["cpu_busy"] is None


def test_engine_of_a_host_with_all_that_it_can_be_asked(tmp_path: Path) -> None:
    """Delay, loss, an AQM, a restricted congestion control, values of the whole host, a capture."""
    asked = words(
        "/run/out/run",
        "--allow-host-sysctls",
        *("--capture", "r1-eth1"),
        **{"cc": "bbr", "qdisc": "fifo,fq_codel", "loss": "0.01%", "rcvbuf": "2MB", "rmem_max": "4MiB"},
    )
    after = "cd /proc/sys/net/core; cat rmem_max netdev_max_backlog; find /run/wanlab -name journal.jsonl"
    script = 'run=$1; shift; "$@" && sh -c "$run"'
    done = inside(
        find_kernel("6.12").path, ["sh", "-c", script, "sh", after, *asked], tmp_path, timeout_s=120
    )
    assert "2 of 2 points done" in done.text, done.text
    assert "212992\n1000\n" in done.text, "values of the host are as before"
    assert "journal" not in done.text
    found = rows(tmp_path / "run")
    assert [row["kernel"] for row in found] == ["host"] * 2
    for row in found:
        check(row)
    assert {row["cc"] for row in rows(tmp_path / "run", "flows")} == {"bbr"}
    assert len(list((tmp_path / "run").glob("points/*/captures/r1-eth1.pcap.gz"))) == 2


def test_both_ends_take_a_control_that_needs_marks(tmp_path: Path) -> None:
    """DCTCP is for root alone by default, and without its own receiver no mark would come back."""
    asked = words("/run/out/run", cc="dctcp", qdisc="fq_codel", ecn="on", ce_threshold="5ms")
    done = inside(find_kernel("6.12").path, asked, tmp_path, timeout_s=120)
    (row,) = rows(tmp_path / "run")
    assert row["status"] == "done", done.text
    assert row["ecn_marks"] > 20
    assert row["retransmits"] == 0
    controls = {(one["end"], one["cc"]) for one in rows(tmp_path / "run", "samples")}
    assert controls == {("sender", "dctcp"), ("receiver", "dctcp")}


def test_every_network_stands_on_a_host_too(tmp_path: Path) -> None:
    asked = words(
        "/run/out/run", duration="1s", rate="4mbit", topology="dumbbell,star,parking_lot", flows="4"
    )
    done = inside(find_kernel("6.12").path, asked, tmp_path, timeout_s=120)
    assert done.status == 0, done.text
    assert {row["topology"] for row in rows(tmp_path / "run")} == {"dumbbell", "star", "parking_lot"}


def test_without_root_the_host_s_kernel_is_refused_with_the_way_out(tmp_path: Path) -> None:
    powerless = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--"]
    done = inside(find_kernel("6.12").path, [*powerless, *words("/dev/shm/run")], tmp_path, timeout_s=60)
    assert done.status == 3, done.text
    assert "--kernel 6.12" in done.text
