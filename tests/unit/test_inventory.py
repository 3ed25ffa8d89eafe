"""Inventories: what is read, every fault at once, and nothing hostile on a command line."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import SpecError, UserError
from lab.remote import inventory, ssh

TWO = """
[hosts.sender]
address = "alice@lab1.example.org"
role = "sender"
interface = "eth1"
test_address = "192.0.2.1"
become = "sudo"

[hosts.receiver]
address = "lab2"
role = "receiver"
interface = "enp1s0f0.100"
test_address = "192.0.2.2"
"""

THREE = (
    TWO
    + """
[hosts.between]
address = "ssh://root@[2001:db8::1]:2222"
role = "emulator"
interfaces = ["eth1", "eth2"]

[links]
mode = "shaped"

[ssh]
lease = "10s"
"""
)


def faults(text: str) -> list[str]:
    with pytest.raises(SpecError) as refused:
        inventory.parse(text, Path("lab.toml"))
    return refused.value.faults


def test_two_hosts() -> None:
    known = inventory.parse(TWO)
    assert known.sender == inventory.Entry(
        "sender", "alice@lab1.example.org", "sender", ("eth1",), "192.0.2.1", "sudo"
    )
    assert known.receiver.become == "none"
    assert known.emulator is None
    assert (known.mode, known.lease_s, known.ssh_config) == ("as-is", 30.0, None)
    assert known.used == known.hosts


def test_an_emulator_is_used_only_to_shape() -> None:
    known = inventory.parse(THREE)
    assert known.emulator is not None
    assert known.emulator.interfaces == ("eth1", "eth2")
    assert known.lease_s == 10.0
    assert [one.name for one in known.used] == ["sender", "receiver", "between"]
    as_is = inventory.parse(THREE.replace("shaped", "as-is"))
    assert [one.name for one in as_is.used] == ["sender", "receiver"]


def test_the_example_of_the_reference_reads() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/reference/inventory.md").read_text()
    examples = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(examples) >= 2
    for example in examples:
        inventory.parse(example)


def test_a_configuration_of_ssh_lies_beside_the_inventory(tmp_path: Path) -> None:
    (tmp_path / "ssh config").write_text("")
    path = tmp_path / "lab.toml"
    path.write_text(TWO + '[ssh]\nconfig = "ssh config"\n')
    assert inventory.load(path).ssh_config == tmp_path / "ssh config"
    path.write_text(TWO + '[ssh]\nconfig = "elsewhere"\n')
    with pytest.raises(SpecError, match=r"ssh\.config: 'elsewhere' is not a file"):
        inventory.load(path)


def test_every_fault_is_said_at_once() -> None:
    assert faults(
        """
        link = 1
        [hosts.sender]
        adress = "lab1"
        role = "sendr"
        interface = "eth1"
        [hosts.receiver]
        address = "lab2"
        role = "receiver"
        interface = "an interface"
        test_address = "192.0.2.256"
        become = "su"
        [hosts."-x"]
        address = "lab2"
        role = "emulator"
        interfaces = ["eth1", "eth1"]
        test_address = "192.0.2.3"
        [links]
        mode = "shapd"
        [ssh]
        lease = "1h"
        """
    ) == [
        "lab.toml: the file: no key 'link'; did you mean links?",
        "lab.toml: hosts.sender.role: 'sendr' is none of sender, receiver, emulator",
        "lab.toml: hosts.sender: no key 'adress'; did you mean address?",
        'lab.toml: hosts.sender.address: is missing; write such as "alice@lab1.example.org"',
        "lab.toml: hosts.sender.test_address: is missing;"
        ' write the host\'s IPv4 address on the test network, such as "192.0.2.1"',
        "lab.toml: hosts.receiver.interface: 'an interface' is not an interface's name:"
        " up to 15 letters, digits and . _ -, the first no sign",
        "lab.toml: hosts.receiver.test_address: '192.0.2.256' is not an IPv4 address;"
        ' write the host\'s IPv4 address on the test network, such as "192.0.2.1"',
        "lab.toml: hosts.receiver.become: 'su' is none of none, sudo, doas",
        "lab.toml: hosts.'-x': a host's name is up to 31 letters, digits, - and _, and begins with no sign",
        "lab.toml: hosts.'-x': no key 'test_address'; did you mean address?",
        "lab.toml: hosts.'-x'.interfaces: both are eth1; the emulator stands between two",
        "lab.toml: links.mode: 'shapd' is none of as-is, shaped",
        "lab.toml: hosts: none of them has role 'sender'; exactly one has to",
        "lab.toml: hosts: 2 of them have address 'lab2'; each has its own",
        "lab.toml: ssh.lease: '1h' is not between 1s and 600s",
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("", ""), None),
        (('role = "receiver"', 'role = "sender"'), "2 of them has role 'sender'"),
        (('"192.0.2.2"', '"192.0.2.1"'), "2 of them have test_address '192.0.2.1'; each has its own"),
        (('"192.0.2.2"', '"127.0.0.1"'), "is not the address of one host on a network"),
        (('"192.0.2.2"', '"224.0.0.1"'), "is not the address of one host on a network"),
        (('"192.0.2.2"', '"2001:db8::1"'), "is not an IPv4 address"),
        (('"192.0.2.2"', "3"), "3 is not an IPv4 address"),
        (
            ("[hosts.receiver]", "[links]\nmode = 'shaped'\n[hosts.receiver]"),
            "'shaped' needs a host with role",
        ),
        (("[hosts.receiver]", "[ssh]\nlease = 30\n[hosts.receiver]"), "'30' has no unit"),
        (("[hosts.receiver]", "[ssh]\nlease = '10ms'\n[hosts.receiver]"), "'10ms' is not between 1s and"),
        (("[hosts.receiver]", "[ssh]\nconfig = 3\n[hosts.receiver]"), "3 is not a path"),
        (
            ("[hosts.receiver]", "[ssh]\nproxy = 'x'\n[hosts.receiver]"),
            "ssh: no key 'proxy'; there are config",
        ),
    ],
)
def test_faults(change: tuple[str, str], said: str | None) -> None:
    text = TWO.replace(*change)
    if said is None:
        inventory.parse(text)
    else:
        assert any(said in fault for fault in faults(text)), faults(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[hosts]",
        "hosts = 3",
        "[hosts]\nsender = 1",
        "links = []\n" + TWO,
        "[hosts.sender",
        "\x00",
        "a = 1e999",
    ],
)
def test_what_is_no_inventory(text: str) -> None:
    assert faults(text)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot be read \(No such file"):
        inventory.load(tmp_path / "none.toml")
    with pytest.raises(UserError, match=r"cannot be read \(Is a directory"):
        inventory.load(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="is not UTF-8 text"):
        inventory.load(tmp_path / "binary")
    (tmp_path / "large").write_bytes(b"#" * (2**20 + 1))
    with pytest.raises(UserError, match="has over 1048576 bytes"):
        inventory.load(tmp_path / "large")


HOSTILE = [
    *(
        "; reboot",
        "lab1; reboot",
        "lab1 reboot",
        "$(reboot)",
        "`reboot`",
        "lab1|x",
        "a&b",
        "a>b",
        "a'b",
        'a"b',
    ),
    *("-oProxyCommand=reboot", "root@-oProxyCommand=reboot", "-l", "--", "-", "ssh://-oProxyCommand=x"),
    *(
        "lab1\nreboot",
        "lab1\r",
        "lab1\t",
        "lab1\x00",
        "lab1\x1b[2J",
        "läb",
        "lab1\u2028",
        " lab1",
        "lab1 ",
        "",
    ),
    *(
        "a\\b",
        "a%h",
        "%h",
        "a@b@c",
        "@lab1",
        "user@",
        "ssh://",
        "ssh://lab1:22:22",
        "ssh://lab1:port",
        "x" * 300,
    ),
    *("*", "a?b", "{a,b}", "~root", "a#b", "a=b", "a!b", "[::1", "..", ".lab1"),
]


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("key", ["address", "interface", "test_address", "role", "become"])
def test_hostile_values_are_refused(key: str, value: str) -> None:
    text = re.sub(
        rf'^{key} = ".*"$',
        lambda _: f"{key} = {json.dumps(value)}",
        TWO + 'become = "none"',
        flags=re.MULTILINE,
    )
    assert len(re.findall(rf"^{key} = ", text, re.MULTILINE)) == 2
    with pytest.raises(SpecError) as refused:
        inventory.parse(text)
    for fault in refused.value.faults:
        assert fault.isprintable(), fault  # quoted, so that a terminal acts upon none of it


@pytest.mark.parametrize(
    "value",
    [
        *("lab1", "lab1.example.org", "alice@lab1", "alice.b-c+d_e@lab-1", "192.0.2.1", "root@192.0.2.1"),
        *("2001:db8::1", "root@fe80::1%eth0", "::1", "ssh://lab1", "ssh://root@lab1:2222", "ssh://[::1]:22/"),
    ],
)
def test_destinations_that_ssh_takes(value: str) -> None:
    assert inventory.parse(TWO.replace("lab2", value)).receiver.address == value


@given(value=st.text(max_size=60) | st.from_regex(r"[-a-z@:/.%\[\]$;' ]{1,20}"))
def test_no_address_is_more_than_one_plain_word(value: str) -> None:
    entry = None
    with contextlib.suppress(SpecError):
        entry = inventory._Reader(Path("x")).address("x", value)
        reader = inventory._Reader(Path("x"))
        reader.address("x", value)
        if reader.faults:
            return
        assert re.fullmatch(r"[A-Za-z0-9_.+@:/%\[\]-]+", value)
        assert not value.startswith("-")
        assert "@-" not in value
        assert "//-" not in value
        words = ssh.argv(
            inventory.Entry("x", entry, "sender", ("eth1",), "192.0.2.1", "none"), None, Path("/tmp/x")
        )
        assert words[-3:-1] == ["--", value]


@given(value=st.text(max_size=20))
def test_no_interface_is_more_than_one_plain_word(value: str) -> None:
    reader = inventory._Reader(Path("x"))
    reader.interface("x", value)
    if not reader.faults:
        assert re.fullmatch(r"[A-Za-z0-9_.-]{1,15}", value)
        assert value[0].isalnum()


@given(text=st.text(max_size=200))
def test_any_text_is_an_inventory_or_a_list_of_faults(text: str) -> None:
    with contextlib.suppress(SpecError):
        inventory.parse(text)
