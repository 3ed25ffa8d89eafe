"""What a point changes on real hosts: which values, which commands, how each is undone, and how it is told.

A dry run is held word by word by tests/golden_dry_run/NAME.txt.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import qdisc
from lab.engines import remote as engine_module
from lab.engines.base import Options
from lab.errors import UserError
from lab.remote import fit, inventory, steps
from lab.remote.inventory import Entry, Inventory
from lab.sweep import Point

MakePoint = Callable[..., Point]
GOLDEN = Path(__file__).resolve().parents[1] / "golden_dry_run"

TWO = """
[hosts.sender]
address = "alice@lab1.example.org"
role = "sender"
interface = "eth1"
test_address = "192.0.2.1"
become = "sudo"

[hosts.receiver]
address = "lab2.example.org"
role = "receiver"
interface = "enp3s0f0"
test_address = "192.0.2.2"
"""
THREE = (
    TWO
    + """
[hosts.emulator]
address = "ssh://root@emu.example.org:2222"
role = "emulator"
interfaces = ["eth1", "eth2.7"]

[links]
mode = "shaped"

[ssh]
lease = "10s"
"""
)


def engine(tmp_path: Path, text: str) -> engine_module.RemoteEngine:
    file = tmp_path / "inventory.toml"
    file.write_text(text)
    return engine_module.make(Options(inventory=file))


def changed(point: Point, text: str = TWO) -> dict[str, list[steps.Step]]:
    """Return the steps of a point, by host."""
    spec = engine_module.RemoteEngine(inventory.parse(text)).agent_spec(point)
    return steps.all_steps(spec, inventory.parse(text))


def values(made: list[steps.Step]) -> dict[str, str]:
    return {step["name"]: step["value"] for step in made if step["do"] == "sysctl"}


def commands(made: list[steps.Step]) -> list[str]:
    return [" ".join(step["argv"]) for step in made if step["do"] == "run"]


class TestValues:
    def test_are_where_they_belong(self, make_point: MakePoint) -> None:
        made = changed(make_point(wmem="1MiB", rmem="2MiB", notsent_lowat="64KiB", app_win="5"))
        sender, receiver = values(made["sender"]), values(made["receiver"])
        assert sender["net.ipv4.tcp_wmem"].split()[2] == str(2**20)
        assert receiver["net.ipv4.tcp_rmem"].split()[2] == str(2**21)
        assert sender["net.ipv4.tcp_rmem"] != receiver["net.ipv4.tcp_rmem"]
        assert (sender["net.ipv4.tcp_notsent_lowat"], receiver["net.ipv4.tcp_app_win"]) == ("65536", "5")

    def test_of_knobs_at_their_defaults_are_the_kernel_s(self, make_point: MakePoint) -> None:
        """A host that somebody has tuned would else be another experiment."""
        told = values(changed(make_point())["receiver"])
        assert told["net.ipv4.tcp_adv_win_scale"] == "1"
        assert told["net.ipv4.tcp_moderate_rcvbuf"] == "1"
        assert told["net.ipv4.tcp_ecn"] == "2"
        assert told["net.ipv4.tcp_rmem"] == "4096 131072 6291456"

    @pytest.mark.parametrize("cc", ["bbr", "cubic+bbr"])
    def test_leave_the_host_its_congestion_control(self, make_point: MakePoint, cc: str) -> None:
        point = make_point(cc=cc, flows="2")
        told = [values(made) for made in changed(point).values()]
        assert not any("net.ipv4.tcp_congestion_control" in one for one in told)
        spec = engine_module.RemoteEngine(inventory.parse(TWO)).agent_spec(point)
        assert all(flow["own_cc"] for flow in spec["workload"]["flows"])

    def test_of_the_whole_host_are_set_only_where_the_point_asks(self, make_point: MakePoint) -> None:
        whole = {"net.core.rmem_max", "net.core.wmem_max", "net.ipv4.tcp_mem"}
        assert not whole & {name for made in changed(make_point()).values() for name in values(made)}
        asked = changed(make_point(rcvbuf="1MiB"))
        assert "net.core.rmem_max" in values(asked["receiver"])
        assert not whole & set(values(asked["sender"]))
        asked = changed(make_point(wmem_max="3MiB", tcp_mem="64MiB"))
        assert values(asked["sender"])["net.core.wmem_max"] == str(3 * 2**20)
        assert not whole & set(values(asked["receiver"])) - {"net.ipv4.tcp_mem"}
        assert "net.ipv4.tcp_mem" in values(asked["sender"])

    def test_one_point_teaches_the_next_nothing(self, make_point: MakePoint) -> None:
        for made in changed(make_point()).values():
            assert values(made)["net.ipv4.tcp_no_metrics_save"] == "1"

    @pytest.mark.parametrize("name", ["kernel.panic", "net.core.rmem_default", "net.ipv4.conf.all.x", "vm.a"])
    def test_of_anything_else_are_never_set(self, name: str) -> None:
        with pytest.raises(ValueError, match="is not set on hosts"):
            steps.sysctl(name, "1")

    @given(st.text())
    def test_hostile_names_are_refused(self, name: str) -> None:
        try:
            made = steps.sysctl(name, "1")
        except ValueError:
            return
        assert re.fullmatch(r"net\.(ipv4\.[a-z0-9_]+|core\.[rw]mem_max)", made["name"])


class TestEmulator:
    def test_builds_the_path_s_plan(self, make_point: MakePoint) -> None:
        made = commands(changed(make_point(rate="100mbit", rtt="40ms", loss="0.1%"), THREE)["emulator"])
        assert "tc qdisc add dev wanlab-out root handle 20: netem limit 2147483647 delay 20000us" in made[2]
        assert made[2].endswith("loss random 0.100000000%")
        assert "loss" not in made[7]
        assert "tc filter add dev eth1 parent ffff: protocol ip" in made[4]
        assert made[4].endswith("redirect dev wanlab-out")
        assert made[9].endswith("redirect dev wanlab-back")
        assert [words for words in made if "htb rate 100000000bit" in words] == [made[11], made[14]]
        assert "dev eth2.7" in made[11]
        assert "dev eth1" in made[14]

    def test_builds_no_delay_line_where_nothing_is_delayed(self, make_point: MakePoint) -> None:
        """So a kernel without netem can shape."""
        point = make_point(rate="100mbit", rtt="0s")
        assert not any(
            "ifb" in words or "ingress" in words for words in commands(changed(point, THREE)["emulator"])
        )
        spec = engine_module.RemoteEngine(inventory.parse(THREE)).agent_spec(point)
        assert steps.needs(spec) == ["htb", "bfifo"]
        assert steps.interfaces(spec, inventory.parse(THREE))["r1"] == {"r1-eth1": "eth2.7"}

    @pytest.mark.parametrize("knobs", [{"rtt": "10ms"}, {"jitter": "2ms"}, {"loss": "1%", "rtt": "0s"}])
    def test_needs_what_it_builds(self, make_point: MakePoint, knobs: dict[str, str]) -> None:
        spec = engine_module.RemoteEngine(inventory.parse(THREE)).agent_spec(make_point(**knobs))
        assert steps.needs(spec) == ["htb", "bfifo", "netem", "ifb", "ingress"]

    @pytest.mark.parametrize("kind", ["codel", "red", "policer", "fq"])
    def test_undoes_what_it_builds(self, make_point: MakePoint, kind: str) -> None:
        """Whatever is added at the root of an interface of the host is taken away by its own handle."""
        point = make_point(rate="50mbit", qdisc=kind, queue="64KiB")
        made = changed(point, THREE)["emulator"]
        assert not any("replace" in step.get("argv", ()) or "change" in step.get("argv", ()) for step in made)
        for step in made:
            argv = step.get("argv", [])
            if argv[:3] == ["tc", "qdisc", "add"] and argv[4] in ("eth1", "eth2.7"):
                whole = argv[5] == "root"
                handle = argv[argv.index("handle") + 1]
                where = ["root", "handle", handle] if whole else ["handle", handle, "ingress"]
                parts = argv[5] == "parent"
                assert step["undo"] == (None if parts else ["tc", "qdisc", "del", "dev", argv[4], *where])
            if argv[:3] == ["ip", "link", "add"]:
                assert step["undo"] == ["ip", "link", "delete", "dev", argv[4]]

    def test_reads_back_what_it_built(self, make_point: MakePoint) -> None:
        spec = engine_module.RemoteEngine(inventory.parse(THREE)).agent_spec(make_point(rtt="10ms"))
        built = steps.built(spec, inventory.parse(THREE))
        assert list(built) == ["wanlab-back", "eth2.7", "eth1", "wanlab-out"]
        nothing = {name: {"index": 7, "classes": ""} for name in built}
        found = steps.wrong(built, {"qdiscs": "", "interfaces": nothing})
        assert found == [
            "wanlab-back: netem: not there",
            *(f"{name}: {what}: not there" for name in ("eth2.7", "eth1") for what in ("htb", "bfifo")),
            "wanlab-out: netem: not there",
        ]


WORDS = st.text(min_size=1).filter(lambda text: "\0" not in text)


class TestText:
    @given(WORDS, WORDS)
    def test_of_a_step_means_that_step_to_a_shell(self, one: str, other: str) -> None:
        assert shlex.split(steps.text(steps.run([one, other], None))) == [one, other]
        told = steps.text({"do": "sysctl", "name": one, "value": other})
        assert shlex.split(told) == ["sysctl", "-w", f"{one}={other}"]

    @given(WORDS, WORDS)
    def test_names_of_interfaces_stay_words(self, to_sender: str, to_receiver: str) -> None:
        """The inventory lets no such name through; here it would do no harm either."""
        hosts = [entry for entry in inventory.parse(THREE).hosts if entry.role != "emulator"]
        emulator = Entry("emulator", "emu", "emulator", (to_sender, to_receiver), "", "none")
        hostile = Inventory(Path("x"), (*hosts, emulator), "shaped", None, 10.0)
        spec = engine_module.RemoteEngine(hostile).agent_spec(POINT)
        named = {to_sender, to_receiver}
        for step in steps.all_steps(spec, hostile)["emulator"]:
            if step["do"] == "run":
                for argv in filter(None, (step["argv"], step["undo"])):
                    assert argv[0] in ("tc", "ip")
                    device = argv[argv.index("dev") + 1] if "dev" in argv else argv[argv.index("name") + 1]
                    assert device in named | {steps.OUT, steps.BACK}
                    assert shlex.split(shlex.join(argv)) == argv
            else:
                assert step["name"] in {f"net/ipv4/conf/{name}/forwarding" for name in named}


@pytest.fixture(autouse=True, scope="module")
def _point(make_point: MakePoint) -> None:
    global POINT  # noqa: PLW0603 (hypothesis takes no fixture of a function)
    POINT = make_point(rate="100mbit", rtt="10ms", loss="1%")


POINT: Point


def masked(lines: list[str]) -> str:
    """Return a dry run without what changes with every line of the agent, and without ssh's own words."""
    text = "\n".join(lines) + "\n"
    text = re.sub(r"connect: ssh .*? -T -- (\S+) .*", r"connect: ssh OPTIONS -- \1 AGENT", text)
    return re.sub(r"\d+ modules of the agent (.*?), \d+ bytes, SHA-256 [0-9a-f]+", r"N modules \1", text)


class TestDryRun:
    @pytest.mark.parametrize(
        ("name", "text", "points"),
        [
            ("two_hosts", TWO, [{"rmem": "max=1MiB"}, {"rmem": "max=2MiB"}]),
            ("two_hosts_iperf3", TWO, [{"workload": "iperf3", "flows": "4", "cc": "bbr", "bytes": "1GB"}]),
            ("three_hosts", THREE, [{"rate": "100mbit", "rtt": "40ms", "loss": "0.1%"}]),
        ],
    )
    def test_says_every_command(
        self, make_point: MakePoint, tmp_path: Path, name: str, text: str, points: list[dict[str, str]]
    ) -> None:
        told = masked(list(engine(tmp_path, text).dry_run([make_point(**knobs) for knobs in points])))
        assert told == (GOLDEN / f"{name}.txt").read_text()

    def test_says_what_cannot_run(self, make_point: MakePoint, tmp_path: Path) -> None:
        points = [make_point(loss="1%"), make_point(), make_point(topology="dumbbell")]
        told = list(engine(tmp_path, TWO).dry_run(points))
        assert told[0].startswith("Cannot run: loss=1% asks something of the links")
        assert told[1].startswith("Cannot run: topology=dumbbell")
        assert sum(point.id in line for point in points for line in told) == 2

    def test_has_every_step_of_every_point(self, make_point: MakePoint, tmp_path: Path) -> None:
        points = [make_point(rtt=rtt) for rtt in ("10ms", "20ms", "10ms")]
        told = "\n".join(engine(tmp_path, THREE).dry_run(points))
        for point in points:
            for made in changed(point, THREE).values():
                for step in made:
                    assert f"    {steps.text(step)}\n" in told


class TestFit:
    @pytest.mark.parametrize("mode", ["as-is", "shaped"])
    def test_plain_points_are(self, make_point: MakePoint, mode: str) -> None:
        for knobs in ({}, {"workload": "iperf3"}, {"workload": "request"}, {"udp": "1mbit"}, {"ecn": "on"}):
            assert fit.unfit(make_point(**knobs), mode) is None

    @pytest.mark.parametrize(
        "knobs",
        [
            *(
                {"loss": "1%"},
                {"queue": "10p"},
                {"qdisc": "codel"},
                {"jitter": "1ms"},
                {"rate_back": "1mbit"},
            ),
            *({"recipe": "leaf"}, {"rate_change": "1s:1mbit"}, {"access": "1gbit"}, {"route": "moon"}),
        ],
    )
    def test_links_as_they_are_cannot_be_asked_for_anything(
        self, make_point: MakePoint, knobs: dict[str, str]
    ) -> None:
        (name,) = knobs
        said = fit.unfit(make_point(**knobs), "as-is")
        assert said is not None
        assert said.startswith(f"{name}=")
        assert "taken as they are" in said

    def test_an_emulator_builds_all_that_stays(self, make_point: MakePoint) -> None:
        knobs = {
            "loss": "ge:1%:10%",
            "jitter": "1ms",
            "reorder": "1%",
            "duplicate": "1%",
            "rate_back": "1mbit",
        }
        assert fit.unfit(make_point(qdisc="codel", queue="100p", **knobs), "shaped") is None

    @pytest.mark.parametrize(
        "knobs",
        [
            *({"topology": "star"}, {"workload": "http"}, {"recipe": "leaf"}, {"loss": "list:1+5"}),
            *({"rate_change": "1s:1mbit"}, {"rtt_change": "1s:1ms"}, {"loss_change": "1s:1%"}),
        ],
    )
    def test_an_emulator_does_not_build_the_rest(self, make_point: MakePoint, knobs: dict[str, str]) -> None:
        assert fit.unfit(make_point(**knobs), "shaped") is not None


class TestEngine:
    @pytest.mark.parametrize("options", [None, Options()])
    def test_without_an_inventory_says_how_to_name_one(self, options: Options | None) -> None:
        with pytest.raises(UserError, match="--inventory FILE"):
            engine_module.make(options)

    def test_takes_no_kernel_of_the_lab(self) -> None:
        with pytest.raises(UserError, match="real hosts run their own"):
            engine_module.RemoteEngine(inventory.parse(TWO)).kernel("6.12")

    def test_what_a_manifest_keeps_has_no_key_and_no_path_of_a_key(self, tmp_path: Path) -> None:
        (tmp_path / "config").write_text("IdentityFile /home/alice/.ssh/id_secret\n")
        told = engine(tmp_path, TWO + '\n[ssh]\nconfig = "config"\n').record()
        assert "secret" not in str(told)
        assert str(tmp_path) not in str(told)


def test_delay_lines_can_never_drop(make_point: MakePoint) -> None:
    made = commands(changed(make_point(rtt="1s", jitter="5ms"), THREE)["emulator"])
    lines = [words for words in made if "netem" in words]
    assert len(lines) == 2
    assert all(f"limit {qdisc.UNLIMITED_PACKETS}" in words for words in lines)
