"""sysctl.d files: how they are read, what they mean on a path, and what is said of wrong ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.advise import keys, sysctl, verify
from lab.errors import SpecError, UnitError, UserError
from lab.knobs import PATH_KNOBS

blanks = st.sampled_from(["", " ", "\t", "  \t"])
words = st.from_regex(r"[a-z][a-z0-9_-]{0,10}", fullmatch=True)
names = st.lists(words, min_size=2, max_size=5).map(".".join)
values = st.lists(st.integers(0, 2**31 - 1).map(str), min_size=1, max_size=3)
noise = st.sampled_from(["", "# net.ipv4.tcp_rmem = 1 2 3", "; no", "   ", "\t# tab", "-net.ipv4.conf.eth0"])


@st.composite
def spelled(draw: st.DrawFn) -> tuple[str, list[tuple[str, str, bool]]]:
    """A file in some spelling, and what is in it: key, value, whether it may fail."""
    lines, wanted = [], []
    for name, value, optional in draw(st.lists(st.tuples(names, values, st.booleans()), max_size=8)):
        lines += draw(st.lists(noise, max_size=2))
        key = name.replace(".", "/") if draw(st.booleans()) else name
        gap = draw(st.sampled_from([" ", "\t", "   "]))
        before, around, after = draw(blanks), draw(blanks), draw(blanks)
        text = gap.join(value)
        lines.append(f"{before}{'-' if optional else ''}{key}{around}={around}{text}{after}")
        wanted.append((name, text, optional))
    return draw(st.sampled_from(["\n", "\r\n"])).join(lines), wanted


@given(spelled())
def test_every_spelling_reads_alike(case: tuple[str, list[tuple[str, str, bool]]]) -> None:
    text, wanted = case
    file = sysctl.parse(text, "a.conf")
    assert file.faults == ()
    assert [(line.key, line.value, line.optional) for line in file.lines] == wanted
    rows = text.split("\n")
    assert all(line.value in rows[line.number - 1] for line in file.lines)


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused_by_line(text: str) -> None:
    file = sysctl.parse(text, "a.conf")
    assert all(re.match(r"a\.conf:[0-9]+: ", fault) for fault in file.faults)
    assert all(line.key and line.value for line in file.lines)


@pytest.mark.parametrize(
    ("key", "normal"),
    [
        ("net.ipv4.tcp_rmem", "net.ipv4.tcp_rmem"),
        ("net/ipv4/tcp_rmem", "net.ipv4.tcp_rmem"),
        ("net/ipv4/conf/eth0.1/rp_filter", "net.ipv4.conf.eth0/1.rp_filter"),
        ("net.ipv4.conf.eth0/1.rp_filter", "net.ipv4.conf.eth0/1.rp_filter"),
    ],
)
def test_the_first_separator_decides(key: str, normal: str) -> None:
    assert sysctl.normal(key) == normal


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("net.ipv4.tcp_rmem 4096 131072 6291456", "has no '='"),
        ("= 5", "has no key before '='"),
        ("net.ipv4.tcp_rmem =", "net.ipv4.tcp_rmem has no value after '='"),
        ("- net.ipv4.tcp_rmem = 1", "has a space after '-'"),
        ("net.ipv4 tcp_rmem = 1", "has a space in it and is no key"),
        ("\ufeffnet.ipv4.tcp_rmem = 1", "begins with a byte-order mark"),
    ],
)
def test_a_line_that_does_not_read(line: str, said: str) -> None:
    (fault,) = sysctl.parse(f"# first\n{line}\n", "x.conf").faults
    assert fault.startswith("x.conf:2: ")
    assert said in fault


def test_the_last_of_several_holds_and_is_named() -> None:
    file = sysctl.parse("a.b = 1\nc.d = 2\na/b = 3\n", "x.conf")
    held, notes = sysctl.last_ones(file.lines)
    assert {key: line.value for key, line in held.items()} == {"c.d": "2", "a.b": "3"}
    assert notes == ["x.conf:3: sets a.b again, after x.conf:1; the last one holds: 3"]


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.conf: cannot be read: No such file"):
        sysctl.read(tmp_path / "none.conf")
    with pytest.raises(UserError, match="cannot be read: Is a directory"):
        sysctl.read(tmp_path)
    (tmp_path / "bytes.conf").write_bytes(b"a.b = \xff\n")
    with pytest.raises(UserError, match="is not UTF-8 text"):
        sysctl.read(tmp_path / "bytes.conf")


READ = [
    ("net.ipv4.tcp_rmem", "4096\t131072   52428800", "max=50MiB"),
    ("net.ipv4.tcp_rmem", "4096 131072 6291456", "default"),
    ("net.ipv4.tcp_wmem", "8192 16384 52428800", "8KiB:16KiB:50MiB"),
    ("net.core.rmem_max", "33554432", "32MiB"),
    ("net.core.wmem_max", "4608", "4608B"),
    ("net.ipv4.tcp_adv_win_scale", "-2", "-2"),
    ("net.ipv4.tcp_app_win", "31", "31"),
    ("net.ipv4.tcp_moderate_rcvbuf", "0", "off"),
    ("net.ipv4.tcp_notsent_lowat", "131072", "128KiB"),
    ("net.ipv4.tcp_notsent_lowat", "4294967295", "none"),
    ("net.ipv4.tcp_congestion_control", "bbr", "bbr"),
    ("net.ipv4.tcp_mem", "100 200 1000", "4096KB"),
]


@pytest.mark.parametrize(("key", "value", "canonical"), READ)
def test_values_become_knobs(key: str, value: str, canonical: str) -> None:
    text = keys.knob(sysctl.Line("x", 1, key, value))
    assert PATH_KNOBS[keys.KEYS[key].knob].canonical(text) == canonical


def test_every_key_is_tried() -> None:
    assert {key for key, _, _ in READ} == set(keys.KEYS)


REFUSED = [
    ("net.ipv4.tcp_rmem", "4096 131072 6291456 # big", "has a comment in it"),
    (
        "net.ipv4.tcp_rmem",
        "16777216",
        "is 1 of the three values of tcp_rmem, and the kernel would set the first",
    ),
    ("net.ipv4.tcp_rmem", "4096 131072 16M", "whole numbers without units"),
    ("net.ipv4.tcp_rmem", "4096 6291456 131072", "is out of order"),
    ("net.ipv4.tcp_rmem", "131072 4096 6291456", "is out of order"),
    ("net.ipv4.tcp_rmem", "1024 131072 6291456", "1024 is under 4096 bytes, the kernel's least"),
    ("net.ipv4.tcp_rmem", "4096 131072 2147483648", "2147483648 is over 2147483647 bytes (2 GiB)"),
    ("net.ipv4.tcp_rmem", "4096 131072 99999999999999999999999", "not three whole numbers"),
    ("net.ipv4.tcp_wmem", "-1 16384 4194304", "-1 is under 1 bytes"),
    ("net.ipv4.tcp_wmem", "1 2 3", "3 is under 4608 bytes, the kernel's least buffer"),
    ("net.core.rmem_max", "2303", "the kernel takes 2304 to 2147483647"),
    ("net.core.wmem_max", "4 5", "is 2 values where one is wanted"),
    ("net.ipv4.tcp_adv_win_scale", "32", "the kernel takes -31 to 31"),
    ("net.ipv4.tcp_app_win", "one", "is not a whole number"),
    ("net.ipv4.tcp_moderate_rcvbuf", "on", "is not a whole number"),
    ("net.ipv4.tcp_notsent_lowat", "0", "the kernel takes 1 to"),
    ("net.ipv4.tcp_congestion_control", "BBR!", "is not the name of a congestion control"),
    ("net.ipv4.tcp_mem", "3 2 1", "is out of order or range"),
    ("net.ipv4.tcp_mem", "1 2", "is not three numbers of pages"),
]


@pytest.mark.parametrize(("key", "value", "said"), REFUSED)
def test_wrong_values_name_line_value_rule_and_mend(key: str, value: str, said: str) -> None:
    with pytest.raises(UnitError) as raised:
        keys.knob(sysctl.Line("/etc/x.conf", 7, key, value))
    text = str(raised.value)
    assert text.startswith(f"/etc/x.conf:7: {key}: ")
    assert said in text
    assert "\n" not in text


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_which_end_a_file_is_for() -> None:
    assert verify.source("a/sender.conf").ends == ("sender",)
    assert verify.source("/etc/sysctl.d/90-wan-receiver.conf").ends == ("receiver",)
    assert verify.source("99-tuning.conf").ends == ("sender", "receiver")
    assert verify.source("sender-and-receiver.conf").ends == ("sender", "receiver")
    assert verify.source("receiver=sender.conf") == verify.Source(Path("sender.conf"), ("receiver",))


def test_one_file_at_both_ends(tmp_path: Path) -> None:
    text = "net.ipv4.tcp_rmem = 4096 131072 52428800\r\nnet/ipv4/tcp_wmem=4096 16384 33554432\r\n"
    text += "net.foo.bar = 1\r\n"
    applied = verify.apply([verify.source(write(tmp_path, "all.conf", text))])
    assert {name: PATH_KNOBS[name].canonical(text) for name, text in applied.knobs.items()} == {
        "rmem": "max=50MiB",
        "wmem": "max=32MiB",
    }
    assert [(end, line.number) for end, line in applied.lines] == [("sender", 2), ("receiver", 1)]
    (note,) = applied.notes
    assert note.endswith("all.conf:3: net.foo.bar is not used on this path")


def test_two_files_each_at_its_end(tmp_path: Path) -> None:
    both = (
        "net.ipv4.tcp_rmem = 4096 131072 {}\nnet.ipv4.tcp_wmem = 4096 16384 {}\nnet.ipv4.tcp_mem = 1 2 {}\n"
    )
    sources = [
        verify.source(write(tmp_path, "sender.conf", both.format(10**7, 2 * 10**7, 1000))),
        verify.source(write(tmp_path, "receiver.conf", both.format(3 * 10**7, 4 * 10**7, 2000))),
    ]
    applied = verify.apply(sources)
    assert applied.knobs["rmem"].endswith(":30000000B")
    assert applied.knobs["wmem"].endswith(":20000000B")
    assert applied.knobs["tcp_mem"] == f"{3000 * 4096}B"
    assert any(
        "sender.conf:1: net.ipv4.tcp_rmem does not count at the sender" in note for note in applied.notes
    )
    assert any(
        "receiver.conf:2: net.ipv4.tcp_wmem does not count at the receiver" in note for note in applied.notes
    )


def test_later_files_override_and_it_is_said(tmp_path: Path) -> None:
    one = write(tmp_path, "a.conf", "net.core.rmem_max = 300000\n")
    two = write(tmp_path, "b.conf", "net.core.rmem_max = 400000\n")
    applied = verify.apply([verify.source(one), verify.source(two)])
    assert applied.knobs == {"rmem_max": "400000B"}
    assert applied.notes == [
        f"{two}:1: sets net.core.rmem_max again, after {one}:1; the last one holds: 400000"
    ]


def test_a_refused_value_that_may_be_refused_sets_nothing(tmp_path: Path) -> None:
    file = write(tmp_path, "a.conf", "net.ipv4.tcp_rmem = 4096 131072 10000000\n-net.ipv4.tcp_rmem = 5 4 3\n")
    applied = verify.apply([verify.source(file)])
    assert applied.knobs["rmem"].endswith(":10000000B")
    assert any("lets it fail" in note for note in applied.notes)


def test_all_faults_of_all_files_at_once(tmp_path: Path) -> None:
    one = write(tmp_path, "a.conf", "oops\nnet.ipv4.tcp_rmem = 1\n")
    two = write(tmp_path, "b.conf", "net.core.rmem_max = x\n")
    with pytest.raises(SpecError) as raised:
        verify.apply([verify.source(one), verify.source(two)])
    assert [fault.split(": ")[0] for fault in raised.value.faults] == [f"{one}:1", f"{one}:2", f"{two}:1"]


def test_window_scaling_is_kept_apart(tmp_path: Path) -> None:
    file = write(tmp_path, "a.conf", "net.ipv4.tcp_window_scaling = 0\nnet.ipv4.tcp_sack = 0\n")
    applied = verify.apply([verify.source(file)])
    assert not applied.scaling
    assert [note.partition(": ")[2] for note in applied.notes] == [
        "net.ipv4.tcp_sack is not used on this path: the lab leaves selective acknowledgements on"
    ]
