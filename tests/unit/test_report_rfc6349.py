"""The report's section on path, hosts and the metrics of RFC 6349."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.report import page, rfc6349, stored
from lab.store import RunFolder
from tests import made_up_run as made_up

PATH = {
    "mtu_bytes": 1500,
    "rtts_s": [0.0202, 0.02, 0.0209],
    "ping_loss": 0.25,
    "rates_bps": [99e6, 100e6, 104e6],
    "at_least": True,
    "bdp_bytes": 250000.0,
}
FACTS = {
    "kernel": "6.1.0-18-amd64",
    "cpus": 8,
    "interfaces": {"eth1": {"driver": "ixgbe", "speed_bps": 1e10, "mtu_bytes": 1500, "offloads": ["x"]}},
}


def run(path: Path, engine: str, record: dict[str, Any]) -> RunFolder:
    """Return a run of one point on an engine."""
    point = made_up.point()
    metrics = {
        **{"transfer_time_ratio": 1.25, "tcp_efficiency_percent": 99.5, "buffer_delay_percent": 12.5},
        **{"cpu_busy": 0.42, "timer_late_s": 0.001},
    }
    manifest = made_up.manifest([point], engine=engine, engine_record=record)
    folder = RunFolder(path)
    folder.write_manifest(manifest)
    folder.put_point(point.id, made_up.done(point, **metrics), {})
    return folder


def section(folder: RunFolder) -> rfc6349.Section | None:
    return rfc6349.section(stored.read(folder))


def test_run_in_virtual_time_has_none(tmp_path: Path) -> None:
    assert section(run(tmp_path / "run", "virtual", {})) is None


def test_remote_run_tells_path_hosts_and_metrics(tmp_path: Path) -> None:
    record = {
        "path": PATH,
        "hosts": {"sender": FACTS, "receiver": FACTS},
        "remarks": ["clocks are 3 ms apart"],
    }
    found = section(run(tmp_path / "run", "remote", record))
    assert found is not None
    told = dict(found.path)
    assert told["path MTU"] == "1500 bytes"
    assert told["base RTT"].startswith("20ms: the least of 3 pings")
    assert "25.0% of them lost" in told["base RTT"]
    assert told["bottleneck rate"] == "at least 100 Mbit/s: the median of 3 packet trains (99 to 104)"
    assert [name for name, _ in found.hosts] == ["receiver", "sender"]
    assert "eth1 (ixgbe, 10 Gbit/s, MTU 1500, offloads on)" in found.hosts[0][1]
    assert found.remarks == ["clocks are 3 ms apart"]
    ((_entry, cells),) = found.metrics.rows
    assert [cell.text for cell in cells][-5:] == ["1.25", "99.5", "12.5", "42", "1"]


@pytest.mark.parametrize("record", [{}, {"path": None, "hosts": {}}, {"cpus": 2, "kernel": "6.12"}])
def test_whatever_was_not_recorded_is_left_out(tmp_path: Path, record: dict[str, Any]) -> None:
    found = section(run(tmp_path / "run", "realtime", record))
    assert found is not None
    assert found.path == []
    assert len(found.hosts) == (1 if record.get("cpus") else 0)


def test_page_shows_it_and_nothing_from_a_host_is_markup(tmp_path: Path) -> None:
    record = {"path": PATH, "hosts": {"<b>x": FACTS}, "remarks": ["<script>alert(1)</script>"]}
    text = page.render(stored.read(run(tmp_path / "run", "remote", record)))
    assert "metrics of RFC 6349" in text
    assert "<script>alert(1)" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "<b>x" not in text
