"""The file that names the hosts of a remote run: `inventory.toml`.

Reading it looks at nothing but the file. Whatever in it ends up in a command's
arguments is of a narrow form: no blanks, no control characters, nothing that
begins with a dash or that a shell would take for more than a word.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lab import units
from lab.errors import SpecError, UnitError, UserError

ROLES = ("sender", "receiver", "emulator")
BECOMES = ("none", "sudo", "doas")
MODES = ("as-is", "shaped")

DEFAULT_LEASE_S = 30.0
LEAST_LEASE_S, MOST_LEASE_S = 1.0, 600.0
_MOST_BYTES = 2**20

_HOST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,30}")
_INTERFACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}")
_PART = r"[A-Za-z0-9_][A-Za-z0-9._+-]*"
_ADDRESS = re.compile(
    rf"(?:(?:{_PART}@)?(?:{_PART}|[0-9A-Fa-f]*:[0-9A-Fa-f:.]+(?:%{_PART})?)"
    rf"|ssh://(?:{_PART}@)?(?:{_PART}|\[[0-9A-Fa-f:.]+(?:%{_PART})?\])(?::[0-9]{{1,5}})?/?)"
)
_MOST_ADDRESS = 255

_KEYS: Mapping[str, tuple[str, ...]] = {
    "": ("hosts", "links", "ssh"),
    "links": ("mode",),
    "ssh": ("config", "lease"),
    "end": ("address", "role", "interface", "test_address", "become"),
    "emulator": ("address", "role", "interfaces", "become"),
}


@dataclass(frozen=True)
class Entry:
    """One host.

    address: what ssh takes as a destination. interfaces: those that carry the
    test's packets; of the emulator two, toward the sender and toward the
    receiver. test_address: its IPv4 address there, "" of the emulator. become:
    how the agent gets to be root.
    """

    name: str
    address: str
    role: Literal["sender", "receiver", "emulator"]
    interfaces: tuple[str, ...]
    test_address: str
    become: Literal["none", "sudo", "doas"]


@dataclass(frozen=True)
class Inventory:
    """All of the file. mode: links are measured as they are, or shaped on the emulator."""

    path: Path
    hosts: tuple[Entry, ...]
    mode: Literal["as-is", "shaped"]
    ssh_config: Path | None
    lease_s: float

    def by_role(self, role: str) -> Entry | None:
        """Return the host of a role, None where there is none."""
        return next((one for one in self.hosts if one.role == role), None)

    @property
    def sender(self) -> Entry:
        """The host that sends the load."""
        found = self.by_role("sender")
        assert found is not None
        return found

    @property
    def receiver(self) -> Entry:
        """The host that receives it."""
        found = self.by_role("receiver")
        assert found is not None
        return found

    @property
    def emulator(self) -> Entry | None:
        """The host between them, None where there is none."""
        return self.by_role("emulator")

    @property
    def used(self) -> tuple[Entry, ...]:
        """The hosts that a run needs: an emulator only where it shapes."""
        return tuple(one for one in self.hosts if one.role != "emulator" or self.mode == "shaped")


def load(path: Path) -> Inventory:
    """Return the inventory in a file. Raises UserError; SpecError has every fault of it."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UserError(f"{path}: has over {_MOST_BYTES} bytes; name an inventory in TOML")
        text = path.read_bytes().decode()
    except OSError as missing:
        raise UserError(
            f"{path}: cannot be read ({missing.strerror}); name an inventory in TOML"
        ) from missing
    except UnicodeDecodeError as binary:
        raise UserError(f"{path}: is not UTF-8 text; name an inventory in TOML") from binary
    return parse(text, path)


def parse(text: str, path: Path = Path("inventory.toml")) -> Inventory:
    """Return the inventory that a text is; `path` names it in messages, and its folder counts for `config`.

    Raises SpecError with every fault.
    """
    try:
        known = tomllib.loads(text)
    except (ValueError, RecursionError) as torn:  # a number of 5000 digits, a list 50000 deep
        raise SpecError([f"{path}: is not TOML: {torn}"]) from torn
    reader = _Reader(path)
    inventory = reader.read(known)
    if reader.faults:
        raise SpecError(reader.faults)
    return inventory


class _Reader:
    """Reads all there is, and gathers faults on the way."""

    def __init__(self, path: Path) -> None:
        self.faults: list[str] = []
        self._path = path

    def fault(self, where: str, what: str) -> None:
        self.faults.append(f"{self._path}: {where}: {what}")

    def read(self, known: dict[str, Any]) -> Inventory:
        self.unknown("the file", known, _KEYS[""])
        hosts = self.table("hosts", known.get("hosts", {}))
        if not hosts:
            self.fault("hosts", "there is none; write [hosts.sender] and [hosts.receiver]")
        entries = tuple(self.entry(name, fields) for name, fields in hosts.items())
        links, ssh = self.table("links", known.get("links", {})), self.table("ssh", known.get("ssh", {}))
        self.unknown("links", links, _KEYS["links"])
        self.unknown("ssh", ssh, _KEYS["ssh"])
        mode = self.choice("links.mode", links.get("mode", "as-is"), MODES)
        if hosts:
            self.roles(entries, mode)
        return Inventory(
            self._path, entries, mode, self.config(ssh.get("config")), self.lease(ssh.get("lease"))
        )

    def table(self, where: str, value: object) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        self.fault(where, f"{value!r} is not a table; write [{where}] above its keys")
        return {}

    def unknown(self, where: str, fields: Iterable[str], allowed: tuple[str, ...]) -> None:
        for name in fields:
            if name not in allowed:
                near = difflib.get_close_matches(name, allowed, n=1)
                mend = f"did you mean {near[0]}?" if near else f"there are {', '.join(allowed)}"
                self.fault(where, f"no key {name!r}; {mend}")

    def choice(self, where: str, value: object, allowed: tuple[str, ...]) -> Any:
        if value not in allowed:
            self.fault(where, f"{value!r} is none of {', '.join(allowed)}")
        return value

    def entry(self, name: str, value: object) -> Entry:
        where = f"hosts.{name}" if _HOST_NAME.fullmatch(name) else f"hosts.{name!r}"
        if not _HOST_NAME.fullmatch(name):
            self.fault(where, "a host's name is up to 31 letters, digits, - and _, and begins with no sign")
        fields = self.table(where, value)
        role = self.choice(f"{where}.role", fields.get("role"), ROLES)
        emulator = role == "emulator"
        self.unknown(where, fields, _KEYS["emulator" if emulator else "end"])
        return Entry(
            name,
            self.address(f"{where}.address", fields.get("address")),
            role,
            self.pair(f"{where}.interfaces", fields.get("interfaces"))
            if emulator
            else (self.interface(f"{where}.interface", fields.get("interface")),),
            "" if emulator else self.test_address(f"{where}.test_address", fields.get("test_address")),
            self.choice(f"{where}.become", fields.get("become", "none"), BECOMES),
        )

    def address(self, where: str, value: object) -> str:
        if value is None:
            self.fault(where, 'is missing; write such as "alice@lab1.example.org"')
        elif not isinstance(value, str) or len(value) > _MOST_ADDRESS or not _ADDRESS.fullmatch(value):
            self.fault(
                where,
                f"{value!r} is not a destination of ssh: write user@host, host or ssh://user@host:port, of"
                " letters, digits and . _ + -; for anything else give the host a name in your ssh config",
            )
        return str(value)

    def interface(self, where: str, value: object) -> str:
        if value is None:
            self.fault(where, 'is missing; write the interface that carries the test, such as "eth1"')
        elif not isinstance(value, str) or not _INTERFACE.fullmatch(value):
            self.fault(
                where,
                f"{value!r} is not an interface's name: up to 15 letters, digits and . _ -,"
                " the first no sign",
            )
        return str(value)

    def pair(self, where: str, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or len(value) != 2:
            said = "is missing" if value is None else f"{value!r} is not a list of two"
            self.fault(where, f'{said}; write ["eth1", "eth2"], toward the sender and toward the receiver')
            return ()
        found = tuple(self.interface(where, one) for one in value)
        if found[0] == found[1]:
            self.fault(where, f"both are {found[0]}; the emulator stands between two")
        return found

    def test_address(self, where: str, value: object) -> str:
        mend = 'write the host\'s IPv4 address on the test network, such as "192.0.2.1"'
        if value is None:
            self.fault(where, f"is missing; {mend}")
            return ""
        try:
            if not isinstance(value, str):
                raise ValueError
            known = ipaddress.IPv4Address(value)
        except ValueError:
            self.fault(where, f"{value!r} is not an IPv4 address; {mend}")
            return ""
        if known.is_loopback or known.is_multicast or known.is_unspecified or int(known) == 2**32 - 1:
            self.fault(where, f"{value} is not the address of one host on a network; {mend}")
        return value

    def config(self, value: object) -> Path | None:
        if value is None:
            return None
        if not isinstance(value, str) or not value or "\0" in value:
            self.fault("ssh.config", f"{value!r} is not a path; write that of a configuration of ssh")
            return None
        path = self._path.parent
        try:
            path = (path / Path(value).expanduser()).absolute()
            there = path.is_file()
        except (OSError, RuntimeError):  # a name too long, a user who is not there
            there = False
        if not there:
            self.fault("ssh.config", f"{value!r} is not a file; write the path of a configuration of ssh")
        return path

    def lease(self, value: object) -> float:
        if value is None:
            return DEFAULT_LEASE_S
        try:
            lease_s = units.parse_time(str(value))
        except UnitError as fault:
            self.fault("ssh.lease", str(fault))
            return DEFAULT_LEASE_S
        if not LEAST_LEASE_S <= lease_s <= MOST_LEASE_S:
            least, most = units.format_time(LEAST_LEASE_S), units.format_time(MOST_LEASE_S)
            self.fault("ssh.lease", f"{value!r} is not between {least} and {most}")
        return lease_s

    def roles(self, entries: tuple[Entry, ...], mode: str) -> None:
        for role in ("sender", "receiver"):
            count = sum(one.role == role for one in entries)
            if count != 1:
                self.fault("hosts", f"{count or 'none'} of them has role {role!r}; exactly one has to")
        count = sum(one.role == "emulator" for one in entries)
        if count > 1:
            self.fault("hosts", f"{count} of them have role 'emulator'; at most one can stand between")
        if mode == "shaped" and not count:
            self.fault(
                "links.mode",
                "'shaped' needs a host with role \"emulator\" between the two; add it, or write 'as-is'",
            )
        for what, values in (
            ("address", [one.address for one in entries]),
            ("test_address", [one.test_address for one in entries if one.test_address]),
        ):
            for value in sorted({one for one in values if values.count(one) > 1}):
                self.fault("hosts", f"{values.count(value)} of them have {what} {value!r}; each has its own")
