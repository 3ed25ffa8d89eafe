"""Notes, lock and watchdog on made-up sysctls: whatever dies at whatever instant, all is put back."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.agent import journal, lock, notes
from lab.agent.journal import Held, Hold, Journal, Leftover, NotAppliedError, NotPutBack, Place

REPOSITORY = Path(__file__).resolve().parents[2]
OLD = {"net.ipv4.tcp_rmem": "4096 131072 6291456", "net.core.rmem_max": "212992"}


class Machine:
    """A folder that stands for a machine: sysctls, and a file that a command makes and another removes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "boot").write_text("one\n")
        for name, value in OLD.items():
            path = folder / "sys" / name.replace(".", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(value.replace(" ", "\t") + "\n")
        self.place = Place(
            root=str(folder / "run"), sysctls=str(folder / "sys"), boot_id=str(folder / "boot")
        )
        self.made = folder / "made"
        self.make = ["mkdir", str(self.made)]
        self.unmake = ["rmdir", str(self.made)]  # as `tc qdisc del`, it fails where there is nothing

    def value(self, name: str) -> str:
        return " ".join((self.folder / "sys" / name.replace(".", "/")).read_text().split())

    def write(self, name: str, value: str) -> None:
        (self.folder / "sys" / name.replace(".", "/")).write_text(value)

    def notes(self) -> Journal:
        folder = self.place.folder()
        for private in (folder.parent, folder):
            private.mkdir(mode=0o700, exist_ok=True)
        return Journal(folder, self.place)

    def as_before(self) -> bool:
        return {name: self.value(name) for name in OLD} == OLD and not self.made.exists()

    def empty(self) -> bool:
        return not (self.folder / "run").exists()

    def await_empty(self) -> None:
        deadline = time.monotonic() + 10
        while not self.empty():
            assert time.monotonic() < deadline, sorted((self.folder / "run").rglob("*"))
            time.sleep(0.01)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def change(on: Journal, machine: Machine) -> None:
    """Make every kind of change, one sysctl twice."""
    on.sysctl("net.ipv4.tcp_rmem", "1 2 3")
    on.run(machine.make, machine.unmake)
    on.sysctl("net/core/rmem_max", "7")
    on.sysctl("net.ipv4.tcp_rmem", "4  5\t6")


def test_changes_are_made_and_put_back(machine: Machine) -> None:
    with journal.held(place=machine.place) as held:
        change(held, machine)
        assert machine.value("net.ipv4.tcp_rmem") == "4 5 6"
        assert machine.value("net.core.rmem_max") == "7"
        assert machine.made.is_dir()
        assert held.pending() == [
            "sysctl -w 'net.ipv4.tcp_rmem=1 2 3'",
            "sysctl -w 'net/core/rmem_max=212992'",
            f"rmdir {machine.made}",
            "sysctl -w 'net.ipv4.tcp_rmem=4096 131072 6291456'",
        ]
    assert machine.as_before()
    assert machine.empty()


def test_they_are_put_back_after_an_error_that_is_not_hidden(machine: Machine) -> None:
    def fail() -> None:
        with journal.held(place=machine.place) as held:
            change(held, machine)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert machine.as_before()
    assert machine.empty()


def test_a_value_that_is_there_already_is_not_noted(machine: Machine) -> None:
    kept = machine.notes()
    assert kept.sysctl("net.core.rmem_max", "212992") == "212992"
    assert kept.pending() == []


def test_the_note_is_on_the_disk_before_the_change(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = machine.notes()
    order: list[str] = []
    sync, write, start = os.fsync, Path.write_text, subprocess.Popen

    def written(path: Path, text: str, *rest: Any) -> int:
        order.append("write")
        return write(path, text, *rest)

    def started(*args: Any, **options: Any) -> Any:
        order.append("run")
        return start(*args, **options)

    monkeypatch.setattr(os, "fsync", lambda file: (order.append("sync"), sync(file))[1])
    monkeypatch.setattr(Path, "write_text", written)
    monkeypatch.setattr(notes.subprocess, "Popen", started)
    kept.sysctl("net.core.rmem_max", "7")
    assert order == ["sync", "sync", "write"]  # the header, the entry
    order.clear()
    kept.run(machine.make, machine.unmake)
    assert order == ["sync", "run", "sync"]  # and that it was done


class Killed(BaseException):
    """A sudden end: nothing of the code that it passes through may count on it."""


def deadly(monkeypatch: pytest.MonkeyPatch, after: int, late: bool) -> Iterator[None]:
    """Die at the `after`th step of writing, changing or noting: before it, or right after it (`late`)."""
    left, process = itertools.count(after, -1), subprocess.Popen

    def wrap(real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **options: Any) -> Any:
            end = next(left) == 0
            if end and not late:
                raise Killed
            done = real(*args, **options)
            if end:
                if isinstance(done, process):
                    done.communicate()  # the command goes on without us
                raise Killed
            return done

        return step

    with monkeypatch.context() as patch:
        for owner, name in ((os, "pwrite"), (os, "ftruncate"), (os, "fsync"), (Path, "write_text")):
            patch.setattr(owner, name, wrap(getattr(owner, name)))
        patch.setattr(notes.subprocess, "Popen", wrap(process))
        patch.setattr(Path, "unlink", wrap(Path.unlink))
        yield


@pytest.mark.parametrize("late", [False, True])
def test_a_sudden_end_at_every_step_of_changing(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    for after in itertools.count():
        ended = False
        with contextlib.contextmanager(deadly)(monkeypatch, after, late):
            try:
                change(machine.notes(), machine)
            except Killed:
                ended = True
        if not ended:
            break
        assert machine.notes().restore() == [], f"step {after}"
        assert machine.as_before(), f"step {after}"
        assert machine.notes().pending() == []
    assert after == 22  # six lines of three steps each, three sysctls, one command
    machine.notes().restore()


@pytest.mark.parametrize("late", [False, True])
def test_a_sudden_end_at_every_step_of_putting_back(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    for after in itertools.count():
        change(machine.notes(), machine)
        ended = False
        with contextlib.contextmanager(deadly)(monkeypatch, after, late):
            try:
                machine.notes().restore()
            except Killed:
                ended = True
        if not ended:
            break
        assert machine.notes().restore() == [], f"step {after}"
        assert machine.as_before(), f"step {after}"
    assert after > 15, "too few steps: were they found?"
    assert machine.as_before()


def test_half_a_line_is_no_note_and_is_written_over(machine: Machine) -> None:
    kept = machine.notes()
    kept.sysctl("net.core.rmem_max", "7")
    file = machine.place.folder() / notes.NOTES
    whole = file.read_bytes()
    file.write_bytes(whole + b'{"sysctl": "net.ipv4.tcp_rm')
    assert len(machine.notes().pending()) == 1
    machine.notes().sysctl("net.ipv4.tcp_rmem", "1 2 3")
    assert [json.loads(line) for line in file.read_bytes().splitlines()][2]["new"] == "1 2 3"
    assert machine.notes().restore() == []
    assert machine.as_before()


def test_a_line_that_does_not_read_is_said_and_the_others_are_put_back(machine: Machine) -> None:
    change(machine.notes(), machine)
    file = machine.place.folder() / notes.NOTES
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines[:2], b"\xff\xfe not JSON\n", *lines[2:]]))
    (said,) = machine.notes().restore()
    assert "does not read" in said
    assert machine.as_before()


def test_a_value_of_somebody_else_is_left_and_said_once(machine: Machine) -> None:
    kept = machine.notes()
    change(kept, machine)
    machine.write("net.ipv4.tcp_rmem", "9 9 9")
    (said,) = kept.restore()
    assert said == (
        "net.ipv4.tcp_rmem was set to 4 5 6 and is 9 9 9 now: somebody else changed it, so it is left;"
        " before, it was 1 2 3"
    )
    assert machine.value("net.ipv4.tcp_rmem") == "9 9 9"
    assert machine.value("net.core.rmem_max") == OLD["net.core.rmem_max"]
    assert kept.pending() == []


def test_what_the_kernel_reads_back_otherwise_is_an_error_and_put_back(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(["212992", "8"])
    monkeypatch.setattr(notes, "_read", lambda _path: next(answers))
    kept = machine.notes()
    with pytest.raises(NotAppliedError, match="wanted 7, reads back as 8; it is 212992 again"):
        kept.sysctl("net.core.rmem_max", "7")
    monkeypatch.undo()
    assert machine.as_before()
    assert kept.restore() == []


def test_what_the_kernel_refuses_changes_nothing(machine: Machine) -> None:
    kept = machine.notes()
    with pytest.raises(NotAppliedError, match=r"net.ipv4.no_such cannot be read \(No such file"):
        kept.sysctl("net.ipv4.no_such", "1")
    assert kept.pending() == []


def test_no_room_for_the_note_means_no_change(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = machine.notes()
    kept.sysctl("net.core.rmem_max", "7")
    write = os.pwrite
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", lambda file, data, at: write(file, data[: len(data) // 2], at))
        with pytest.raises(
            NotAppliedError, match=r"tcp_rmem was not set: it cannot be noted down .*No space"
        ):
            kept.sysctl("net.ipv4.tcp_rmem", "1 2 3")
        with pytest.raises(NotAppliedError, match=r"mkdir .* was not run: .*No space"):
            kept.run(machine.make, machine.unmake)
        assert machine.value("net.ipv4.tcp_rmem") == OLD["net.ipv4.tcp_rmem"]
        assert not machine.made.exists()
        assert len(kept.pending()) == 1
        assert kept.restore() == []  # which needs no room
    assert machine.as_before()


@pytest.mark.parametrize(
    "name",
    [
        *("kernel.core_pattern", "vm.swappiness", "net", "net.", "net..core", "/net/core/rmem_max", ""),
        *("net/../kernel/panic", "net/ipv4/../../kernel/panic", "net/./core", "-w", "net.core.rmem_max\n"),
        *("net.core.rmem_max=1", "net.core.rmem max", "net.core.rmem_max; reboot", "net.core.\x00"),
    ],
)
def test_names_that_are_none_or_not_of_the_network(machine: Machine, name: str) -> None:
    with pytest.raises(NotAppliedError, match="is not the name of a sysctl of the network"):
        machine.notes().sysctl(name, "1")


@given(name=st.text(max_size=40) | st.from_regex(r"net[./][a-z0-9./]{0,30}"))
def test_no_name_leads_out_of_the_network(name: str) -> None:
    with contextlib.suppress(NotAppliedError):
        path = Place(sysctls="/proc/sys").sysctl(name)
        assert path.parts[:4] == ("/", "proc", "sys", "net")
        assert not {"..", "."} & set(path.parts)
        assert len(path.parts) > 4


@pytest.mark.parametrize("name", ["net.ipv4.ip_forward", "net/ipv4/conf/all/forwarding"])
def test_sysctls_that_change_others_are_refused(machine: Machine, name: str) -> None:
    with pytest.raises(NotAppliedError, match=r"set net\.ipv4\.conf\.INTERFACE\.forwarding"):
        machine.notes().sysctl(name, "1")


def test_an_interface_with_a_dot_is_written_with_slashes() -> None:
    path = Place(sysctls="/proc/sys").sysctl("net/ipv4/conf/eth1.100/forwarding")
    assert path == Path("/proc/sys/net/ipv4/conf/eth1.100/forwarding")


@pytest.mark.parametrize("value", ["", "  ", "1\n\x002", "\x1b[31m"])
def test_values_that_are_none(machine: Machine, value: str) -> None:
    with pytest.raises(NotAppliedError, match="is not a value"):
        machine.notes().sysctl("net.core.rmem_max", value)


def test_a_command_that_fails_is_not_undone(machine: Machine) -> None:
    machine.made.mkdir()  # somebody else's
    kept = machine.notes()
    with pytest.raises(NotAppliedError, match=r"mkdir .* ended with status 1: .*File exists"):
        kept.run(machine.make, machine.unmake)
    assert kept.restore() == []
    assert machine.made.is_dir()


def test_a_command_that_is_not_there(machine: Machine) -> None:
    with pytest.raises(NotAppliedError, match="no-such-tool cannot be started: No such file"):
        machine.notes().run(["no-such-tool"], None)


def test_an_undo_that_fails_is_said_and_the_rest_is_put_back(machine: Machine) -> None:
    kept = machine.notes()
    kept.sysctl("net.core.rmem_max", "7")
    kept.run(machine.make, ["rmdir", str(machine.folder / "elsewhere")])
    kept.sysctl("net.ipv4.tcp_rmem", "1 2 3")
    (said,) = kept.restore()
    assert "rmdir" in said
    assert f"it was to undo mkdir {machine.made}" in said
    machine.made.rmdir()
    assert machine.as_before()


def test_an_undo_that_was_cut_short_is_done_again(machine: Machine) -> None:
    kept = machine.notes()
    flag = machine.folder / "cut"
    undo = ["sh", "-c", f"test -e {flag} && rmdir {machine.made} || {{ touch {flag}; kill -9 $$; }}"]
    kept.run(machine.make, undo)
    assert kept.restore() == []
    assert machine.as_before()


def test_an_undo_that_fails_is_said_even_where_it_may_not_have_been_needed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = machine.notes()
    with monkeypatch.context() as patch:
        patch.setattr(kept, "_mark", lambda _number, _state: None)  # it died before it could note more
        kept.run(machine.make, machine.unmake)
        (machine.made / "file").write_text("")
        (said,) = kept.restore(keep=True)
    assert "Directory not empty" in said
    (machine.made / "file").unlink()
    assert kept.restore() == []
    assert machine.as_before()


def test_without_anybody_to_tell_what_failed_stays_noted(machine: Machine) -> None:
    kept = machine.notes()
    kept.run(machine.make, ["rmdir", str(machine.folder / "elsewhere")])
    kept.sysctl("net.ipv4.tcp_rmem", "1 2 3")
    assert len(kept.restore(keep=True)) == 1
    assert kept.pending() == [f"rmdir {machine.folder / 'elsewhere'}"]
    assert machine.value("net.ipv4.tcp_rmem") == OLD["net.ipv4.tcp_rmem"]
    with pytest.raises(Leftover):
        Hold(place=machine.place)
    said = journal.clean(machine.place)
    assert said[0] == f"ran: rmdir {machine.folder / 'elsewhere'}"
    assert journal.clean(machine.place) == []


def test_the_end_cuts_a_command_short_and_lets_nothing_be_changed(machine: Machine) -> None:
    import threading  # noqa: PLC0415

    hold = Hold(place=machine.place)
    told: list[str] = []

    def hang() -> None:
        try:
            hold.journal.run(["sleep", "30"], machine.unmake)
        except NotAppliedError as error:
            told.append(str(error))

    thread = threading.Thread(target=hang)
    thread.start()
    while not hold.journal.pending():
        time.sleep(0.01)
    time.sleep(0.1)
    start = time.monotonic()
    assert hold.close() == []
    thread.join()
    assert time.monotonic() - start < 5
    assert told == ["sleep 30 was ended by signal 9"]
    with pytest.raises(NotAppliedError, match="all is being put back"):
        hold.journal.sysctl("net.core.rmem_max", "7")
    assert machine.empty()


# the lock


def test_only_one_may_change_things(machine: Machine) -> None:
    with journal.held(place=machine.place):
        assert journal.state(machine.place) == {"held": True, "leftover": False}
        with pytest.raises(Held, match=f"process {os.getpid()}"):
            Hold(place=machine.place)
        assert "left alone" in journal.clean(machine.place)[0]
    assert journal.state(machine.place) == {"held": False, "leftover": False}
    with journal.held(place=machine.place):
        pass


def test_asking_makes_nothing(machine: Machine) -> None:
    assert journal.state(machine.place) == {"held": False, "leftover": False}
    assert journal.clean(machine.place) == []
    assert machine.empty()


def test_folders_are_private(machine: Machine) -> None:
    hold = Hold(place=machine.place)
    try:
        names = {hold.work.name}
        for folder in (hold.work, hold.work.parent, hold.work.parent.parent):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        hold.journal.sysctl("net.core.rmem_max", "7")
        assert stat.S_IMODE((hold.work.parent / notes.NOTES).stat().st_mode) == 0o600
        (hold.work / "file").write_text("")
    finally:
        hold.close()
    assert machine.empty()
    again = Hold(place=machine.place)
    names.add(again.work.name)
    again.close()
    assert len(names) == 2


@pytest.mark.parametrize("wrong", ["mode", "link", "file"])
def test_a_place_that_is_not_ours_alone_is_not_used(machine: Machine, wrong: str) -> None:
    root = machine.folder / "run"
    if wrong == "mode":
        root.mkdir(mode=0o755)
    elif wrong == "link":
        (machine.folder / "elsewhere").mkdir(mode=0o700)
        root.symlink_to(machine.folder / "elsewhere")
    else:
        root.write_text("")
    with pytest.raises(NotAppliedError, match="is not a private folder of this user; remove it"):
        Hold(place=machine.place)


def test_a_lock_file_that_was_replaced_is_not_the_lock(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = machine.place.folder()
    folder.mkdir(parents=True)
    real = lock.fcntl.flock
    turns = iter([True, False, False])

    def replaced(file: int, how: int) -> None:
        real(file, how)
        if next(turns):  # between opening and locking, the one before us removed it, and another made it
            (folder / lock.LOCK).unlink()
            (folder / lock.LOCK).write_text("")

    monkeypatch.setattr(lock.fcntl, "flock", replaced)
    taken = lock.take(folder)
    monkeypatch.undo()
    assert os.path.samestat(os.fstat(taken), (folder / lock.LOCK).stat())
    os.close(taken)


# sudden ends of real processes

_HOLDER = """
import sys, time
sys.path.insert(0, {repository!r})
from lab.agent.journal import Hold, Place
import os
hold = Hold({lease}, Place(**{place!r}), os.getpid() if {group} else None)
hold.journal.sysctl("net.ipv4.tcp_rmem", "1 2 3")
hold.journal.run({make!r}, {unmake!r})
(hold.work / "file").write_text("")
print(hold._watchdog._process.pid, flush=True)
time.sleep(60)
"""


def holder(machine: Machine, lease_s: float | None = None, group: bool = False) -> tuple[Any, int]:
    """Start a process that holds and changes things; return it and its watchdog's number."""
    text = _HOLDER.format(
        repository=str(REPOSITORY),
        lease=lease_s,
        place=vars(machine.place),
        group=group,
        make=machine.make,
        unmake=machine.unmake,
    )
    process = subprocess.Popen(
        [sys.executable, "-c", text], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    with process.stdout:
        watchdog = int(process.stdout.readline())
    assert machine.value("net.ipv4.tcp_rmem") == "1 2 3"
    assert machine.made.is_dir()
    return process, watchdog


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_watchdog_puts_back_when_the_holder_dies(machine: Machine, number: signal.Signals) -> None:
    process, _watchdog = holder(machine)
    os.killpg(process.pid, number)  # the terminal's way: the watchdog is in no group of ours
    process.wait()
    machine.await_empty()
    assert machine.as_before()


def test_the_watchdog_ends_one_that_hangs_and_puts_back(machine: Machine) -> None:
    process, _watchdog = holder(machine, lease_s=0.3, group=True)
    process.send_signal(signal.SIGSTOP)
    machine.await_empty()
    assert machine.as_before()
    assert process.wait(5) == -signal.SIGKILL


def test_a_renewed_lease_does_not_end(machine: Machine) -> None:
    hold = Hold(0.4, machine.place)
    hold.journal.sysctl("net.core.rmem_max", "7")
    for _ in range(10):
        time.sleep(0.1)
        hold.renew()
    assert machine.value("net.core.rmem_max") == "7"
    assert hold.watched
    hold.close()
    assert machine.as_before()


def test_what_both_have_left_is_cleaned(machine: Machine) -> None:
    process, watchdog = holder(machine)
    os.kill(watchdog, signal.SIGKILL)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 5
    while not journal.state(machine.place)["leftover"]:
        assert time.monotonic() < deadline
    would = journal.clean(machine.place, dry_run=True)
    assert would[:2] == [
        f"would run: rmdir {machine.made}",
        "would run: sysctl -w 'net.ipv4.tcp_rmem=4096 131072 6291456'",
    ]
    assert would[2].startswith("would remove: ")
    assert not machine.as_before()
    with pytest.raises(Leftover, match="put them back with `wanlab clean`"):
        Hold(place=machine.place)
    assert journal.clean(machine.place) == [one.replace("would run", "ran") for one in would[:2]]
    assert machine.as_before()
    assert machine.empty()
    assert journal.clean(machine.place) == []


def test_a_watchdog_that_was_stopped_holds_up_nothing(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lab.agent.watchdog._GROUP_LIMIT_S", 0.2)
    with journal.held(place=machine.place) as held:
        held.sysctl("net.core.rmem_max", "7")
        watchdog = int(subprocess.check_output(["pgrep", "-P", str(os.getpid()), "-n"]).split()[0])
        assert Path(f"/proc/{watchdog}/comm").read_text() == "wanlab-watchdog\n"
        os.kill(watchdog, signal.SIGSTOP)
    assert machine.as_before()
    assert machine.empty()


@pytest.mark.parametrize(
    ("python", "said"),
    [
        ("/nonexistent/python", "does not start: No such file"),
        ("/bin/true", "does not come up; nothing was changed"),
    ],
)
def test_without_a_watchdog_nothing_is_changed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, python: str, said: str
) -> None:
    monkeypatch.setattr(sys, "executable", python)
    with pytest.raises(NotAppliedError, match=f"the watchdog {said}"):
        Hold(place=machine.place)
    assert machine.empty()
    monkeypatch.undo()
    with journal.held(place=machine.place):
        pass


def test_what_could_not_be_put_back_is_an_error_at_the_end(machine: Machine) -> None:
    def change_with_another() -> None:
        with journal.held(place=machine.place) as held:
            held.sysctl("net.core.rmem_max", "7")
            machine.write("net.core.rmem_max", "8")

    with pytest.raises(NotPutBack, match="somebody else changed it"):
        change_with_another()
    assert machine.empty()


# notes that say nothing any more


def test_notes_of_before_a_reboot_are_dropped(machine: Machine) -> None:
    change(machine.notes(), machine)
    (machine.folder / "boot").write_text("two\n")
    assert not journal.state(machine.place)["leftover"]
    (said,) = journal.clean(machine.place)
    assert said.startswith("dropped: notes of 4 changes")
    assert machine.value("net.ipv4.tcp_rmem") == "4 5 6"  # whatever it is, this boot made it so
    assert machine.empty()


def test_notes_of_a_namespace_that_is_gone_are_dropped(machine: Machine) -> None:
    kept = machine.notes()
    change(kept, machine)
    machine.place.folder().rename(machine.folder / "run" / "net-12345")
    assert journal.clean(machine.place, dry_run=True)[0].startswith("would drop: notes of 4 changes")
    assert journal.clean(machine.place)[0].startswith("dropped: notes of 4 changes")
    assert machine.empty()


def test_one_who_is_not_root_is_told(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.notes()
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    with pytest.raises(PermissionError):
        journal.clean(machine.place)


def test_lines_that_are_no_notes_keep_nothing_else_from_being_put_back(machine: Machine) -> None:
    with journal.held(place=machine.place) as held:
        change(held, machine)
        notes = next(Path(machine.place.root).rglob("journal.jsonl"))
        with notes.open("a") as file:
            file.write('[1]\n{}\n{"run": ["x"]}\n"words"\n')
        left = held.restore()
    assert len(left) == 4
    assert all("does not read" in sentence for sentence in left)
    assert machine.as_before()
