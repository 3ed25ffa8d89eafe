"""`wanlab clean`: what it says, and its exit codes. What it does, the journal's and the hosts' tests hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.agent import journal
from lab.cli.main import main
from lab.errors import PreconditionError
from lab.remote import host

LAB = """
[hosts.sender]
address = "lab1"
role = "sender"
interface = "eth1"
test_address = "192.0.2.1"
[hosts.receiver]
address = "lab2"
role = "receiver"
interface = "eth1"
test_address = "192.0.2.2"
"""


def here(monkeypatch: pytest.MonkeyPatch, *sentences: str) -> list[bool]:
    """Let this machine's notes say so; return the list that each call's `dry_run` goes to."""
    asked: list[bool] = []

    def cleaned(*, dry_run: bool) -> list[str]:
        asked.append(dry_run)
        return list(sentences)

    monkeypatch.setattr(journal, "clean", cleaned)
    return asked


def test_nothing_to_put_back(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked = here(monkeypatch)
    assert main(["clean"]) == 0
    assert capsys.readouterr().out == "this machine: nothing to put back\n"
    assert asked == [False]


def test_what_was_put_back_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = here(monkeypatch, "ran: sysctl -w 'net.core.rmem_max=212992'")
    assert main(["clean", "--dry-run"]) == 0
    assert capsys.readouterr().out == "this machine: ran: sysctl -w 'net.core.rmem_max=212992'\n"
    assert asked == [True]


def test_what_could_not_be_put_back_is_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here(monkeypatch, "ran: x", "not put back: x is y now")
    assert main(["clean"]) == 1
    assert "this machine: not put back: x is y now\n" in capsys.readouterr().out


def test_one_who_is_not_root_is_told_how(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*, dry_run: bool) -> list[str]:
        del dry_run
        raise PermissionError(13, "is root's", "/run/wanlab")

    monkeypatch.setattr(journal, "clean", refused)
    assert main(["clean"]) == 3
    said = capsys.readouterr().err
    assert said == (
        "wanlab: there may be something to put back, and only root may look (/run/wanlab); run it with sudo\n"
    )


def test_an_inventory_with_faults(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clean", "--inventory", str(tmp_path / "none.toml")]) == 2
    assert "cannot be read (No such file or directory)" in capsys.readouterr().err


def test_a_host_that_cannot_be_reached_does_not_keep_others_from_being_cleaned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Found:
        name = "receiver"

        def call(self, op: str, _timeout_s: float, **args: Any) -> list[str]:
            assert (op, args) == ("clean", {"dry_run": False})
            return ["ran: x"]

        def close(self) -> list[str]:
            return []

    def opened(entry: Any, *_: Any) -> Any:
        if entry.name == "sender":
            raise PreconditionError("host sender (lab1): there is no way to it")
        return Found()

    monkeypatch.setattr(host.Host, "open", opened)
    (tmp_path / "lab.toml").write_text(LAB)
    assert main(["clean", "--inventory", str(tmp_path / "lab.toml")]) == 3
    told = capsys.readouterr()
    assert told.out == "host receiver: ran: x\n"
    assert told.err == "wanlab: host sender (lab1): there is no way to it\n"
