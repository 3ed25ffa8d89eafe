"""Every check of `lab.doctor` on machines made of a few files, and the whole of it on this one."""

from __future__ import annotations

import errno
import gzip
import mmap
import os
import shutil
from pathlib import Path

import pytest

from lab import command, doctor, kernels
from lab.errors import CommandError

NETEM, HTB, VETH, NAMESPACES = doctor.FEATURES
RELEASE = "6.12.0-test"


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def no_trial(feature: doctor.Feature) -> tuple[bool, str]:
    raise AssertionError(f"{feature.name} was tried although the kernel's files tell")


def program(folder: Path, name: str) -> Path:
    path = write(folder, {name: "#!/bin/sh\n"}) / name
    path.chmod(0o755)
    return path


class TestDiagnose:
    def test_covers_every_engine_quickly(self) -> None:
        began = os.times()
        findings = doctor.diagnose()
        ended = os.times()
        assert sum(ended[:4]) - sum(began[:4]) < 2  # CPU seconds, children's too: other load does not count
        assert {finding.engine for finding in findings} == {"all", "virtual", "realtime", "remote", "report"}

    def test_says_how_to_mend_exactly_what_is_not_ok(self) -> None:
        for finding in doctor.diagnose():
            assert finding.found, finding
            assert bool(finding.mend) != finding.ok, finding

    def test_names_are_distinct(self) -> None:
        names = [(finding.engine, finding.name) for finding in doctor.diagnose()]
        assert len(names) == len(set(names))

    def test_runs_without_privilege_or_tools(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setenv("TMPDIR", str(tmp_path / "absent"))
        monkeypatch.setenv("WANLAB_CACHE", str(tmp_path / "cache"))
        found = {finding.name: finding for finding in doctor.diagnose()}
        assert not found["ssh"].ok
        assert not found["chromium"].ok
        assert not found["kernels"].ok
        assert list(tmp_path.iterdir()) == []


def test_tools_are_looked_for_where_the_agent_looks(tmp_path: Path) -> None:
    program(tmp_path, "tc")
    found = {finding.name: finding for finding in doctor.tools(str(tmp_path))}
    assert found["tc"].ok
    assert found["tc"].found == str(tmp_path / "tc")
    assert not found["mnexec"].ok
    assert found["mnexec"].mend == "run `make setup`, which installs Debian's mininet"
    assert "workload iperf3 only" in found["iperf3"].found


class TestAgentPython:
    def test_a_python_that_is_not_there(self, tmp_path: Path) -> None:
        finding = doctor.agent_python(str(tmp_path / "python3"))
        assert not finding.ok
        assert "python3 and mininet" in finding.mend

    def test_a_python_without_mininet_says_so(self, tmp_path: Path) -> None:
        python = program(tmp_path, "python3")
        python.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'mininet'\" >&2\nexit 1\n")
        finding = doctor.agent_python(str(python))
        assert not finding.ok
        assert "No module named 'mininet'" in finding.found


def test_only_x86_64_has_the_virtual_engine() -> None:
    assert doctor.architecture("x86_64").ok
    arm = doctor.architecture("aarch64")
    assert not arm.ok
    assert "--engine realtime" in arm.mend


class TestTracing:
    def refuse(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def run(argv: list[str], **_settings: object) -> str:
            raise CommandError(argv, 1, "")

        monkeypatch.setattr(command, "run", run)

    @pytest.mark.parametrize(
        ("scope", "mend"),
        [("2", "sysctl kernel.yama.ptrace_scope=1"), ("3", "reboot"), ("1", "container"), ("", "container")],
    )
    def test_the_mend_depends_on_who_refuses(
        self, scope: str, mend: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        self.refuse(monkeypatch)
        if scope:
            write(tmp_path, {"proc/sys/kernel/yama/ptrace_scope": f"{scope}\n"})
        finding = doctor.tracing(tmp_path)
        assert not finding.ok
        assert mend in finding.mend

    def test_a_scope_of_one_lets_a_child_be_traced(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(command, "run", lambda *_argv, **_settings: "")
        finding = doctor.tracing(write(tmp_path, {"proc/sys/kernel/yama/ptrace_scope": "1\n"}))
        assert finding.ok
        assert finding.found == "allowed (kernel.yama.ptrace_scope is 1)"


class TestGuestMemory:
    def machine(self, tmp_path: Path, *tmpfs: str) -> Path:
        for name in ("dev/shm", "tmp", "var/tmp", "proc/self"):
            (tmp_path / name).mkdir(parents=True)
        lines = ["/dev/vda / ext4 rw 0 0", *(f"tmpfs {tmp_path / name} tmpfs rw 0 0" for name in tmpfs)]
        return write(tmp_path, {"proc/self/mounts": "\n".join(lines) + "\n"})

    def give_room(self, monkeypatch: pytest.MonkeyPatch, free_bytes: dict[str, int]) -> None:
        class Usage:
            def __init__(self, folder: Path) -> None:
                self.free = free_bytes.get(folder.name, 2**33)

        monkeypatch.setattr(shutil, "disk_usage", Usage)

    def test_shared_memory_comes_first(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.give_room(monkeypatch, {})
        root = self.machine(tmp_path, "dev/shm")
        finding = doctor.guest_memory({}, root)
        assert finding.ok
        assert finding.found == f"8 GiB free in {root / 'dev/shm'}"

    def test_then_the_users_choice(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.give_room(monkeypatch, {"shm": 64 * 2**20})
        root = self.machine(tmp_path, "dev/shm")
        (tmp_path / "chosen").mkdir()
        finding = doctor.guest_memory({"TMPDIR": str(tmp_path / "chosen")}, root)
        assert finding.ok
        assert finding.found == f"8 GiB free in {tmp_path / 'chosen'}, on disk: a tmpfs would be faster"

    def test_then_what_every_machine_has(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.give_room(monkeypatch, {"shm": 0})
        root = self.machine(tmp_path)
        assert str(root / "var/tmp") in doctor.guest_memory({"TMPDIR": "/absent"}, root).found
        assert str(root / "tmp") in doctor.guest_memory({}, root).found

    def test_none_that_is_there(self, tmp_path: Path) -> None:
        finding = doctor.guest_memory({}, tmp_path)
        assert not finding.ok
        assert finding.found.count("No such file or directory") == 3

    def test_noexec(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_arguments: object, **_settings: object) -> None:
            raise PermissionError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr(mmap, "mmap", refuse)
        finding = doctor.guest_memory({}, self.machine(tmp_path, "dev/shm"))
        assert not finding.ok
        assert finding.found.count("is mounted noexec") == 3
        assert "TMPDIR" in finding.mend

    def test_too_little_room(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.give_room(monkeypatch, {"shm": 64 * 2**20, "tmp": 2**20})  # 64 MiB: a container's, unless asked
        finding = doctor.guest_memory({}, self.machine(tmp_path, "dev/shm"))
        assert not finding.ok
        assert finding.found.startswith("64 MiB free in ")
        assert "--shm-size" in finding.mend

    def test_leaves_nothing_behind(self, tmp_path: Path) -> None:
        root = self.machine(tmp_path, "dev/shm")
        doctor.guest_memory({}, root)
        assert list((root / "dev/shm").iterdir()) == []


class TestMemory:
    def test_what_is_available(self, tmp_path: Path) -> None:
        root = write(tmp_path, {"proc/meminfo": "MemTotal: 9000000 kB\nMemAvailable: 4194304 kB\n"})
        finding = doctor.memory(root)
        assert finding.ok
        assert finding.found == "4 GiB available"

    def test_a_control_group_may_allow_less(self, tmp_path: Path) -> None:
        files = {
            "proc/meminfo": "MemAvailable: 4194304 kB\n",
            "sys/fs/cgroup/memory.max": f"{2**30}\n",
            "sys/fs/cgroup/memory.current": f"{2**29}\n",
        }
        finding = doctor.memory(write(tmp_path, files))
        assert not finding.ok
        assert finding.found == "512 MiB available, under 1 GiB"

    def test_a_control_group_without_limit(self, tmp_path: Path) -> None:
        files = {"proc/meminfo": "MemAvailable: 4194304 kB\n", "sys/fs/cgroup/memory.max": "max\n"}
        assert doctor.memory(write(tmp_path, files)).ok


class TestBuiltKernels:
    def record(self, name: str, *, stale: bool = False) -> kernels.KernelRecord:
        return kernels.KernelRecord(
            name=name,
            release=f"{name}.9",
            recipe_hash="",
            source="",
            source_hash="",
            hz=kernels.DEFAULT_HZ,
            config_hash="",
            compiler="",
            built_at="",
            options_left_out=(),
            path=Path("/linux"),
            stale=stale,
        )

    def test_the_default_kernel_suffices(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(kernels, "list_kernels", lambda: [self.record("6.12")])
        finding = doctor.built_kernels()
        assert finding.ok
        assert finding.found == "6.12 (6.12.9)"

    def test_another_kernel_does_not(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(kernels, "list_kernels", lambda: [self.record("6.1")])
        finding = doctor.built_kernels()
        assert not finding.ok
        assert finding.mend == "run `wanlab kernel build 6.12`"

    def test_nor_does_a_stale_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(kernels, "list_kernels", lambda: [self.record("6.12", stale=True)])
        finding = doctor.built_kernels()
        assert not finding.ok
        assert "older recipe" in finding.found


class TestPrivileges:
    def test_root_has_them(self, tmp_path: Path) -> None:
        root = write(tmp_path, {"proc/self/status": "Name:\tx\nCapEff:\t000001ffffffffff\n"})
        assert doctor.privileges(root).ok

    def test_a_container_may_lack_one(self, tmp_path: Path) -> None:
        root = write(tmp_path, {"proc/self/status": f"Name:\ta:b\nCapEff:\t{1 << 12:016x}\n"})
        finding = doctor.privileges(root)
        assert not finding.ok
        assert finding.found == "lacks CAP_SYS_ADMIN"


class TestKernelFeature:
    def look(self, root: Path, feature: doctor.Feature = NETEM) -> doctor.Finding:
        return doctor.kernel_feature(feature, RELEASE, root, no_trial)

    def test_built_in_by_the_running_configuration(self, tmp_path: Path) -> None:
        (tmp_path / "proc").mkdir()
        (tmp_path / "proc/config.gz").write_bytes(gzip.compress(b"CONFIG_NET_SCH_NETEM=y\n"))
        assert self.look(tmp_path).found == "built into the kernel"

    def test_left_out_of_the_kernel(self, tmp_path: Path) -> None:
        write(tmp_path, {f"boot/config-{RELEASE}": "# CONFIG_NET_SCH_NETEM is not set\nCONFIG_VETH=y\n"})
        finding = self.look(tmp_path)
        assert not finding.ok
        assert "built without CONFIG_NET_SCH_NETEM" in finding.found
        assert "--engine virtual" in finding.mend
        assert self.look(tmp_path, VETH).ok

    def test_a_module_that_is_installed(self, tmp_path: Path) -> None:
        files = {
            f"boot/config-{RELEASE}": "CONFIG_NET_SCH_NETEM=m\n",
            f"lib/modules/{RELEASE}/modules.dep": "kernel/net/sched/sch_netem.ko.xz:\n",
        }
        assert self.look(write(tmp_path, files)).found == "a module of the kernel"

    def test_a_module_that_is_not(self, tmp_path: Path) -> None:
        finding = self.look(write(tmp_path, {f"boot/config-{RELEASE}": "CONFIG_NET_SCH_NETEM=m\n"}))
        assert not finding.ok
        assert finding.found == f"no module sch_netem for Linux {RELEASE} here"

    def test_modules_without_a_configuration(self, tmp_path: Path) -> None:
        write(tmp_path, {f"lib/modules/{RELEASE}/modules.dep": "kernel/net/sched/sch_htb.ko:\n"})
        assert self.look(tmp_path, HTB).ok
        assert not self.look(tmp_path, NETEM).ok

    def test_a_module_that_is_loaded(self, tmp_path: Path) -> None:
        (tmp_path / "sys/module/sch_netem").mkdir(parents=True)
        assert self.look(tmp_path).found == "loaded"

    def test_a_kernel_that_tells_nothing_is_tried(self, tmp_path: Path) -> None:
        tried = []

        def trial(feature: doctor.Feature) -> tuple[bool, str]:
            tried.append(feature.name)
            return False, "unknown qdisc"

        (tmp_path / "sys/module").mkdir(parents=True)
        for feature in (NETEM, NAMESPACES):
            finding = doctor.kernel_feature(feature, RELEASE, tmp_path, trial)
            assert not finding.ok
            assert finding.found == "unknown qdisc"
        assert tried == ["netem", "namespaces"]

    def test_a_trial_that_fails_says_why(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def run(argv: list[str], **_settings: object) -> str:
            raise CommandError(argv, 2, "Error: Specified qdisc kind is unknown.\n")

        monkeypatch.setattr(command, "run", run)
        works, why = doctor.try_feature(NETEM)
        assert not works
        assert "qdisc kind is unknown" in why


class TestBrowser:
    def test_any_of_the_known_names(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        assert not doctor.browser({}).ok
        path = program(tmp_path, "google-chrome")
        assert doctor.browser({}).found == str(path)

    def test_the_named_one_must_exist(self, tmp_path: Path) -> None:
        finding = doctor.browser({"BROWSER_PATH": str(tmp_path / "chrome")})
        assert not finding.ok
        assert "BROWSER_PATH" in finding.mend
