"""Points on real hosts over SSH: what is measured is the path, and afterwards every host is as it was.

The hosts are namespaces of this machine, whose kernel has no netem: paths here
have a rate and no delay. Delay is tested in a kernel of the lab's own, see
tests/virtual/test_remote_links.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lab import machine, scenario, sweep
from lab import point as point_module
from lab.cli import main
from lab.engines import remote
from lab.engines.base import Options
from lab.errors import EngineError, PreconditionError
from lab.store import RunFolder
from tests.namespace_hosts import Host, Lab
from tests.remote import kill_points

pytestmark = pytest.mark.remote

ROOT = Path(__file__).resolve().parents[2]
PATH_SCENARIO = ROOT / "scenarios" / "path.py"
RATE_BPS = 100e6

Tables = dict[str, list[dict[str, Any]]]


@pytest.fixture(autouse=True)
def machine_is_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several hosts and the tests share this machine: that it is busy tells nothing of the engine."""
    monkeypatch.setattr(machine, "limited", lambda *_args: None)


def shape(host: Host, interface: str, rate: str = "100mbit", queue: str = "200kb") -> None:
    """Give a host's interface a rate, as a link between the hosts would have one."""
    host.run([*f"tc qdisc add dev {interface} root handle 9: htb default 1".split()])
    host.run([*f"tc class add dev {interface} parent 9: classid 9:1 htb rate {rate} burst 4kb".split()])
    host.run([*f"tc qdisc add dev {interface} parent 9:1 handle 8: bfifo limit {queue}".split()])


@contextlib.contextmanager
def left_as_they_were(lab: Lab) -> Iterator[None]:
    """Check that every sysctl, qdisc, link and file of all hosts is as before."""
    before = [host.settings() for host in lab.hosts]
    yield
    for host, known in zip(lab.hosts, before, strict=True):
        host.mend()
        kill_points.await_gone(host)
        assert host.settings() == known


class Bench:
    """An engine on a lab, and what its points are made from."""

    def __init__(self, lab: Lab, folder: Path, **how: str) -> None:
        self.lab = lab
        self.engine = remote.make(Options(inventory=lab.inventory(**how)))
        self.fixed = self.engine.settings(None)
        self._folder, self._count = folder, 0

    def point(self, **knobs: str) -> sweep.Point:
        chosen = {**self.fixed, "kernel": ["host"], **{name: [text] for name, text in knobs.items()}}
        (point,) = sweep.points(scenario.load(PATH_SCENARIO).scenario, chosen, engine="remote", seeds=[1])
        return point

    def run(self, terms: point_module.Terms | None = None, **knobs: str) -> tuple[Tables, dict[str, Any]]:
        """Run a point; return its tables and its outcome."""
        self._count += 1
        folder = self._folder / f"point{self._count}"
        folder.mkdir()
        tables, outcome = point_module.run(
            self.point(**{"duration": "1.5s", **knobs}),
            self.engine,
            self.engine.kernel("host"),
            cpu=0,
            folder=folder,
            terms=terms or point_module.Terms(wall_s=120),
        )
        return tables, dict(outcome)


@pytest.fixture(scope="module")
def two(lab_hosts: Callable[..., Lab], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Return a sender and a receiver on a link of 100 Mbit/s that is taken as it is."""
    lab = lab_hosts(2)
    shape(lab["sender"], "eth1")
    with left_as_they_were(lab):
        bench = Bench(lab, tmp_path_factory.mktemp("two"))
        yield bench
        bench.engine.close()


@pytest.fixture(scope="module")
def three(lab_hosts: Callable[..., Lab], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Return a sender and a receiver with an emulator between them."""
    lab = lab_hosts(3)
    with left_as_they_were(lab):
        bench = Bench(lab, tmp_path_factory.mktemp("three"), mode="shaped")
        yield bench
        bench.engine.close()


class TestLinksAsTheyAre:
    def test_are_measured_before_anything(self, two: Bench) -> None:
        assert set(two.fixed) == {"rate", "rtt", "mtu", "offloads", "queue"}
        assert two.fixed["mtu"] == ["1500"]
        point = two.point()
        assert point.rate_bps == pytest.approx(RATE_BPS, rel=0.02)
        assert point.rtt_s < 0.002
        path = two.engine.record()["path"]
        assert len(path["rtts_s"]) == 100
        assert len(path["rates_bps"]) == 9
        assert path["rtt_by"] == "icmp"

    def test_give_the_goodput_that_their_rate_leaves(self, two: Bench) -> None:
        tables, outcome = two.run()
        (row,) = tables["points"]
        assert row["goodput_bps"] == pytest.approx(RATE_BPS * 1448 / 1514, rel=0.03)
        assert row["goodput_bps"] == pytest.approx(row["predicted_goodput_bps"], rel=0.03)
        assert row["transfer_time_ratio"] == pytest.approx(1, abs=0.05)
        assert row["limit_measured"] == "link", "though nobody here can read its queue"
        assert row["measured_rate_bps"] == pytest.approx(RATE_BPS, rel=0.02)
        assert {sample["end"] for sample in tables["samples"]} == {"sender", "receiver"}
        assert outcome["measured"]["rate_bps"] == pytest.approx(RATE_BPS, rel=0.02)
        assert len(outcome["measured"]["rates_bps"]) == 5
        assert outcome["links"] == "as-is"
        assert set(outcome["kernels"]) == {"sender", "receiver"}

    def test_buffers_are_those_of_the_point_while_it_runs(self, two: Bench) -> None:
        tables, _ = two.run(rmem="64KiB", wmem="32KiB", cc="reno")
        receiving = [row for row in tables["samples"] if row["end"] == "receiver"]
        sending = [row for row in tables["samples"] if row["end"] == "sender"]
        assert {row["skmem_rcvbuf"] for row in receiving} == {64 * 1024}
        assert {row["skmem_sndbuf"] for row in sending} == {32 * 1024}
        assert {row["cc"] for row in sending} == {"reno"}

    @pytest.mark.parametrize("cc", ["cubic", "bbr", "cubic+bbr"])
    def test_each_flow_has_its_congestion_control(self, two: Bench, cc: str) -> None:
        tables, _ = two.run(cc=cc, flows="2")
        assert [flow["cc"] for flow in tables["flows"]] == (cc.split("+") * 2)[:2]

    def test_flows_of_a_size_end_the_point(self, two: Bench) -> None:
        tables, _ = two.run(bytes="1MB", flows="3")
        assert tables["points"][0]["load_s"] < 1
        for flow in tables["flows"]:
            assert flow["delivered_bytes"] == pytest.approx(1e6, rel=0.001)
            assert flow["finished_s"] > 0

    def test_flows_come_and_go_and_go_back(self, two: Bench) -> None:
        tables, _ = two.run(flows="2", start="0s+0.5s", stop="1s+end", reverse="1", arrivals="every:300ms")
        kinds = [flow["kind"] for flow in tables["flows"]]
        assert kinds == ["lasting", "lasting", "reverse", *["arrival"] * (len(kinds) - 3)]
        arrived = [flow for flow in tables["flows"] if flow["kind"] == "arrival"]
        assert len(arrived) == 4
        assert sum(flow["fct_s"] is not None for flow in arrived) >= len(arrived) - 1
        assert all(flow["goodput_bps"] > 0 for flow in tables["flows"])

    def test_iperf3_and_bulk_agree(self, two: Bench) -> None:
        tables, outcome = two.run(workload="iperf3", flows="2", duration="2s")
        assert tables["points"][0]["goodput_bps"] == pytest.approx(RATE_BPS * 1448 / 1514, rel=0.04)
        assert outcome["workload"]["iperf3"]["end"]["sum_received"]["bytes"] > 0

    def test_requests_are_answered(self, two: Bench) -> None:
        tables, _ = two.run(workload="request", flows="2")
        assert {row["flow"] for row in tables["delays"]} == {0, 1}
        least_s = 0.8 * 64e3 * 8 / RATE_BPS  # a shaper lets a burst through at once
        assert min(row["delay_s"] for row in tables["delays"]) > least_s

    def test_a_probe_s_delays_begin_at_half_of_the_base_rtt(self, two: Bench) -> None:
        tables, outcome = two.run(probe="10ms", udp="5mbit")
        delays = {kind: [] for kind in ("probe", "udp")}
        for row in tables["delays"]:
            delays[row["kind"]].append(row["delay_s"])
        assert len(delays["probe"]) == pytest.approx(150, abs=3)
        for taken in delays.values():
            least = min(one for one in taken if one is not None)
            assert least == pytest.approx(outcome["measured"]["base_rtt_s"] / 2, abs=1e-9)

    def test_captures_come_back_with_the_point(self, two: Bench, tmp_path: Path) -> None:
        terms = point_module.Terms(wall_s=120, captured=("snd-eth0", "rcv-eth0"), snap_bytes=96)
        _tables, outcome = two.run(terms)
        del tmp_path
        told = {one["interface"]: one for one in outcome["captures"]}
        assert set(told) == {"snd-eth0", "rcv-eth0"}
        folder = two._folder / f"point{two._count}" / "out"
        for name, one in told.items():
            assert one["packets"] > 100  # several packets may be told as one
            data = (folder / f"{name}.pcap").read_bytes()
            assert int.from_bytes(data[:4], sys.byteorder) == 0xA1B23C4D  # nanoseconds
            assert (
                len(data) > (16 + 66) * one["packets"]
            )  # each with its header; an acknowledgement is the least

    def test_a_capture_where_no_host_is_is_refused(self, two: Bench) -> None:
        with pytest.raises(EngineError, match=r"--capture r1-eth1: .* there are snd-eth0, rcv-eth0"):
            two.run(point_module.Terms(captured=("r1-eth1",)))

    def test_a_congestion_control_that_a_kernel_lacks_is_named(self, two: Bench) -> None:
        said = two.engine.lacking(two.point(cc="cubic+vegas"))
        assert said is not None
        assert said.startswith("host sender (Linux ")
        assert (
            "has no congestion control 'vegas', which cc=cubic+vegas asks for; it has bbr, cubic, reno"
            in said
        )
        assert two.engine.lacking(two.point(cc="bbr")) is None

    def test_a_port_that_is_taken_fails_the_point_and_nothing_stays(self, two: Bench) -> None:
        receiver = two.lab["receiver"]
        listen = (
            "import socket, time; s = socket.create_server(('', 5001)); print(flush=True); time.sleep(60)"
        )
        argv = ["nsenter", "-t", str(receiver.process), "-n", "-m", "-p", "--", "python3", "-c", listen]
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            other.stdout.readline()
            with pytest.raises(
                EngineError, match=r"host receiver .*port 5001 cannot be had: Address already in use"
            ):
                two.run()
            assert receiver.run(["sysctl", "-n", "net.ipv4.tcp_no_metrics_save"]).strip() == "0"
            receiver.kill("KILL", *receiver.processes("create_server"))
        two.run()

    def test_values_that_somebody_else_changes_meanwhile_are_left_and_told(self, two: Bench) -> None:
        sender, name = two.lab["sender"], "net.ipv4.tcp_notsent_lowat"
        apply = two.engine._connected()["sender"]
        original = apply.call

        def call(op: str, timeout_s: float, /, **args: Any) -> Any:
            if op == "load_start":
                sender.run(["sysctl", "-w", f"{name}=12345"])
            return original(op, timeout_s, **args)

        was = sender.run(["sysctl", "-n", name]).strip()
        apply.call = call  # type: ignore[method-assign]
        try:
            with pytest.raises(EngineError, match=rf"host sender: not put back: {name} .* is 12345 now"):
                two.run(notsent_lowat="100KB")
        finally:
            del apply.call  # type: ignore[method-assign]
            sender.run(["sysctl", "-w", f"{name}={was}"])


class TestShapedLinks:
    def test_have_the_rate_and_the_queue_that_were_asked_for(self, three: Bench) -> None:
        assert three.fixed == {}
        tables, outcome = three.run(rate="50mbit", rtt="0s", queue="800KB", duration="3s", offloads="on")
        (row,) = tables["points"]
        assert row["measured_rate_bps"] == pytest.approx(50e6, rel=0.02)
        assert row["goodput_bps"] == pytest.approx(row["predicted_goodput_bps"], rel=0.03)
        assert row["utilisation"] == pytest.approx(1, abs=0.03)
        assert 0.5 * 800e3 < row["queue_max_bytes"] <= 800e3
        assert row["queue_drops"] > 0
        assert row["limit_measured"] == "link"
        bottleneck = {entry["interface"] for entry in tables["queues"] if entry["bottleneck"]}
        assert bottleneck == {"r1-eth1"}
        assert outcome["links"] == "shaped"
        assert "class add dev eth2 parent 1:" in " ".join(outcome["commands"]["r1"]["tc"])

    def test_are_gone_after_the_point(self, three: Bench) -> None:
        three.run(rate="20mbit", rtt="0s")
        assert "htb" not in three.lab["emulator"].run(["tc", "qdisc"])

    def test_queues_of_other_kinds_and_of_the_way_back(self, three: Bench) -> None:
        tables, _ = three.run(
            rate="30mbit", rate_back="10mbit", rtt="0s", qdisc="policer", queue="256KiB", reverse="1"
        )
        assert tables["points"][0]["status"] == "done"
        back = next(flow for flow in tables["flows"] if flow["kind"] == "reverse")
        assert back["goodput_bps"] == pytest.approx(10e6, rel=0.1)

    def test_another_mtu_than_the_path_s_is_named(self, three: Bench) -> None:
        said = three.engine.lacking(three.point(rate="50mbit", rtt="0s", mtu="9000"))
        assert said == (
            "mtu=9000 is not the path's, which is 1500 bytes; take mtu=1500, or set the interfaces on the way"
        )

    def test_what_the_hosts_join_is_remarked(self, three: Bench) -> None:
        assert any("--set offloads=on" in remark for remark in three.engine.record()["remarks"])

    def test_a_qdisc_that_the_kernel_lacks_is_named(self, three: Bench) -> None:
        said = three.engine.lacking(three.point(rate="50mbit", rtt="10ms"))
        assert said is not None
        assert said.startswith("host emulator (Linux ")
        assert "cannot build netem (" in said
        assert three.engine.lacking(three.point(rate="50mbit", rtt="0s")) is None

    def test_another_path_than_was_asked_for_fails_the_point(self, three: Bench) -> None:
        """Somebody shapes it as well."""
        shape(three.lab["receiver"], "eth1", rate="10mbit")
        shape(three.lab["sender"], "eth1", rate="10mbit")
        try:
            with pytest.raises(Exception, match=r"the path (carries|lost)"):
                three.run(rate="50mbit", rtt="0s", queue="500KB")
        finally:
            for name in ("sender", "receiver"):
                three.lab[name].run(["tc", "qdisc", "del", "dev", "eth1", "root"])


def wanlab(*words: str) -> int:
    """Run the command in this process."""
    return main([str(word) for word in words])


def spoken(lab: Lab, *words: str, **how: str) -> list[str]:
    """Return the words of a run over a lab."""
    return [
        *("run", str(PATH_SCENARIO), "--engine", "remote", "--inventory", str(lab.inventory(**how))),
        *("--set", "duration=1s", *words),
    ]


@pytest.fixture(scope="module")
def pair(lab_hosts: Callable[..., Lab]) -> Lab:
    """Return two hosts on a link of 100 Mbit/s."""
    lab = lab_hosts(2)
    shape(lab["sender"], "eth1")
    return lab


class TestCommand:
    @pytest.fixture(autouse=True)
    def as_before(self, pair: Lab) -> Iterator[None]:
        with left_as_they_were(pair):
            yield

    def test_runs_and_goes_on(self, pair: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """What the path was is measured once a run folder: points of another day belong to the same path."""
        out = tmp_path / "run"
        words = spoken(pair, "--set", "rmem=128KiB,max=4MiB", "--out", str(out))
        assert wanlab(*words) == 0
        assert "2 of 2 points done (2 ran now)" in capsys.readouterr().out
        rows = RunFolder(out).rows("points", list(RunFolder(out).statuses()))
        assert [row["engine"] for row in rows] == ["remote", "remote"]
        first = RunFolder(out).manifest()
        assert wanlab(*words) == 0
        assert "2 of 2 points done (0 ran now)" in capsys.readouterr().out
        assert RunFolder(out).manifest()["engine_record"]["path"] == first["engine_record"]["path"]
        assert first["kernels"]["host"]["release"] == os.uname().release

    def test_a_study_of_buffers_runs_on_the_path_that_is_there(self, pair: Lab, tmp_path: Path) -> None:
        """The scenario's own rate, RTT and queue give way to the path's; its buffers stay."""
        words = spoken(pair, "--set", "cc=cubic", "--out", str(tmp_path / "run"))
        words[1] = str(ROOT / "scenarios" / "socket_buffers.py")
        wanlab(*words)
        rows = RunFolder(tmp_path / "run").rows("points", list(RunFolder(tmp_path / "run").statuses()))
        assert {row["status"] for row in rows} == {"done"}
        assert {row["queue"] for row in rows} == {"auto"}
        assert {row["rmem"] for row in rows} >= {"default", "25MiB", "100MiB"}
        assert all(row["rate_bps"] == pytest.approx(RATE_BPS, rel=0.02) for row in rows)

    def test_dry_run_connects_to_nobody(
        self, pair: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for host in pair.hosts:
            host.cut()
        began_s = time.monotonic()
        assert wanlab(*spoken(pair, "--dry-run", "--out", str(tmp_path / "run"))) == 0
        assert time.monotonic() - began_s < 10
        assert "sysctl -w net.ipv4.tcp_no_metrics_save=1" in capsys.readouterr().out
        assert not (tmp_path / "run").exists()

    def test_the_path_s_own_knobs_cannot_be_set(
        self, pair: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert wanlab(*spoken(pair, "--set", "rate=1gbit", "--out", str(tmp_path / "run"))) == 2
        assert "on the path as it is" in capsys.readouterr().err

    def test_missing_iperf3_is_named(
        self, pair: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        receiver = pair["receiver"]
        receiver.run(["mount", "--bind", "/dev/null", "/usr/bin/iperf3"])
        try:
            assert wanlab(*spoken(pair, "--set", "workload=iperf3", "--out", str(tmp_path / "run"))) == 3
            assert "workload=iperf3 needs iperf3 on host receiver" in capsys.readouterr().err
        finally:
            receiver.run(["umount", "/usr/bin/iperf3"])

    def test_points_that_a_kernel_cannot_run_fail_and_the_others_run(
        self, pair: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        out = tmp_path / "run"
        assert wanlab(*spoken(pair, "--set", "cc=cubic,vegas", "--out", str(out))) == 1
        said = capsys.readouterr()
        assert "Note: 1 of 2 points cannot run: host sender" in said.err
        rows = RunFolder(out).rows("points", list(RunFolder(out).statuses()))
        assert {row["cc"]: row["status"] for row in rows} == {"cubic": "done", "vegas": "failed"}

    @pytest.mark.parametrize("at_s", [0.3, 1.5])
    def test_interrupted_in_the_middle_of_a_load_puts_everything_back(
        self, pair: Lab, tmp_path: Path, at_s: float
    ) -> None:
        argv = [
            sys.executable,
            "-m",
            "lab",
            *spoken(pair, "--out", str(tmp_path / "run")),
            "--set",
            "duration=30s",
        ]
        with left_as_they_were(pair), subprocess.Popen(argv, cwd=ROOT) as run:
            sender = pair["sender"]
            wait_for(lambda: "ESTAB" in sender.run(["ss", "-Htn", "dport = :5001"]))
            time.sleep(at_s)
            assert sender.run(["sysctl", "-n", "net.ipv4.tcp_no_metrics_save"]).strip() == "1"
            began_s = time.monotonic()
            run.send_signal(signal.SIGINT)
            assert run.wait(30) == 130
            assert time.monotonic() - began_s < 10
        assert not list((tmp_path / "run" / "points").glob("*/point.parquet"))

    def test_a_host_that_is_lost_ends_the_run_and_its_watchdog_puts_everything_back(
        self, pair: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        argv = [
            sys.executable,
            "-m",
            "lab",
            *spoken(pair, "--out", str(tmp_path / "run")),
            "--set",
            "duration=60s",
        ]
        with (
            left_as_they_were(pair),
            subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.PIPE, text=True) as run,
        ):
            wait_for(lambda: "ESTAB" in pair["sender"].run(["ss", "-Htn", "dport = :5001"]))
            pair["receiver"].cut()
            said = run.communicate(timeout=60)[1]
            assert run.returncode == 3
            assert "host receiver" in said
            assert "run it again when all hosts answer" in said
        del capsys
        assert not list((tmp_path / "run" / "points").glob("*/point.parquet"))


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until something is so; not longer than a minute."""
    deadline_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


def test_path_mtu_is_found_where_no_router_tells(lab_hosts: Callable[..., Lab], tmp_path: Path) -> None:
    lab = lab_hosts(3)
    for name, interface in (("emulator", "eth2"), ("receiver", "eth1")):
        lab[name].ip(f"link set dev {interface} mtu 1400")
    lab["emulator"].run(["sh", "-c", "echo 1 > /proc/sys/net/ipv4/icmp_ratemask"])
    shape(lab["emulator"], "eth2", rate="20mbit")
    bench = Bench(lab, tmp_path)
    try:
        assert bench.fixed["mtu"] == ["1400"]
        tables, _ = bench.run()
        assert tables["points"][0]["goodput_bps"] == pytest.approx(20e6 * 1348 / 1414, rel=0.04)
    finally:
        bench.engine.close()


def test_hosts_that_are_not_fit_are_refused_before_anything(lab_hosts: Callable[..., Lab]) -> None:
    lab = lab_hosts(2)
    lab["receiver"].ip("address delete 198.51.100.2/24 dev eth1")
    engine = remote.make(Options(inventory=lab.inventory()))
    with (
        left_as_they_were(lab),
        pytest.raises(PreconditionError, match="host receiver: eth1 has not the address"),
    ):
        engine.settings(None)


def test_a_manifest_s_record_is_json(two: Bench) -> None:
    told = two.engine.record()
    assert json.loads(json.dumps(told)) == told
    assert told["inventory"]["links"] == "as-is"
