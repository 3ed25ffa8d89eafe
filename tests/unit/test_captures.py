"""Captures: what can be asked for, and how files are kept."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import captures
from lab.errors import PreconditionError, UserError
from tests.conftest import MakePoint


class TestAsking:
    def test_names_are_taken_once_each(self) -> None:
        assert captures.interfaces(" snd-eth0, rcv-eth0,snd-eth0") == ("snd-eth0", "rcv-eth0")
        assert captures.interfaces("") == ()

    @pytest.mark.parametrize("text", ["-w", "a,", "../x", "snd-eth0;reboot", "a b", "x" * 16, "a\nb"])
    def test_what_is_no_name_is_refused(self, text: str) -> None:
        with pytest.raises(UserError, match="is not the name of an interface"):
            captures.interfaces(text)

    @given(st.text(max_size=20))
    def test_any_text_is_names_or_a_sentence(self, text: str) -> None:
        try:
            names = captures.interfaces(text)
        except UserError:
            return
        assert all(name and "/" not in name and not name.startswith("-") for name in names)

    def test_interface_that_is_not_there_names_those_that_are(self, make_point: MakePoint) -> None:
        with pytest.raises(
            UserError, match=r"'eth0': topology=path has no such interface; it has snd-eth0, "
        ):
            captures.check([make_point()], ["eth0"])
        captures.check([make_point()], ["snd-eth0", "r1-eth1"])
        captures.check([], [])

    def test_agent_is_told_the_node(self, make_point: MakePoint) -> None:
        told = captures.told(make_point(), ("r1-eth1",), 96)
        assert told == [{"node": "r1", "interface": "r1-eth1", "snap_bytes": 96}]
        assert captures.told(make_point(), (), 96) == []


def test_missing_tool_is_said_before_anything_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    captures.require_tool()
    monkeypatch.setattr(captures, "AGENT_PATH", str(tmp_path))
    with pytest.raises(PreconditionError, match="apt-get install tcpdump"):
        captures.require_tool()


def test_files_are_packed_and_the_raw_ones_gone(tmp_path: Path) -> None:
    (tmp_path / "b.pcap").write_bytes(b"b" * 10**6)
    (tmp_path / "a.pcap").write_bytes(b"a")
    (tmp_path / "records.bin").write_bytes(b"not ours")
    made = captures.compressed(tmp_path)
    assert [file.name for file in made] == ["a.pcap.gz", "b.pcap.gz"]
    assert gzip.decompress(made[1].read_bytes()) == b"b" * 10**6
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.pcap.gz", "b.pcap.gz", "records.bin"]


def test_no_folder_no_files(tmp_path: Path) -> None:
    assert captures.compressed(tmp_path / "out") == []
