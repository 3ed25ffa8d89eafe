"""What makes a kernel the lab's: names and addresses, the options, the patches, HZ.

Pure but for reading the recipe folder. Not here: where sources come from
(`sources`) and running anything (`build`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.errors import PreconditionError, UserError

HOST = "host"
"""The address of the kernel that a machine runs, which nobody builds here."""

RECIPE_FOLDER = Path(__file__).resolve().parents[2] / "kernels"

FORMAT = 2
"""Raise it when the steps of a build change what comes out of them."""

HZ_CHOICES = (100, 250, 1000)
DEFAULT_HZ = 250
"""As Debian's own kernels. UML would take 100."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}\Z")
_SECTION = re.compile(r"# --- (.*?) -+\Z")
_OPTION = re.compile(r"(CONFIG_\w+)=(\S+)\Z")
_HZ_DEFAULT = re.compile(r"^(config HZ\n(?:\t.*\n)*?\tdefault )\d+$", re.MULTILINE)


def check_name(name: str) -> None:
    """Raise UserError unless `name` can be the name of a kernel."""
    if not _NAME.match(name):
        raise UserError(
            f"{name!r} cannot name a kernel: up to 40 letters, digits, dots, dashes and underscores, "
            "a letter or digit first"
        )
    if name == HOST:
        raise UserError(
            f"`{HOST}` is this machine's own kernel; choose another name for one that the lab builds"
        )


def check_hz(hz: int) -> None:
    """Raise UserError unless the timer frequency is one that a kernel can be built with."""
    if hz not in HZ_CHOICES:
        choices = ", ".join(map(str, HZ_CHOICES))
        raise UserError(f"a kernel's HZ is one of {choices}, not {hz}")


def address(name: str, hz: int) -> str:
    """Return what a scenario calls the kernel: `6.12`, or `6.12@1000` where HZ is not the default."""
    return name if hz == DEFAULT_HZ or name == HOST else f"{name}@{hz}"


def parse_address(text: str) -> tuple[str, int]:
    """Return (name, hz) of a kernel's address. Raises UserError."""
    name, at, number = text.partition("@")
    check_name(name)
    if not at:
        return name, DEFAULT_HZ
    if not (number.isascii() and number.isdigit()):
        raise UserError(f"{text!r} is not a kernel: after the @ comes its HZ, as in {name}@1000")
    check_hz(int(number))
    return name, int(number)


OWN_KCONFIGS = ("net/ipv4/Kconfig", "net/sched/Kconfig")
_OWN = re.compile(r"^config ((?:TCP_CONG|NET_SCH)_\w+)$", re.MULTILINE)
_SWITCHES = ("TCP_CONG_ADVANCED", "NET_SCH_DEFAULT")
"""Options of that family that choose rather than add."""


@dataclass(frozen=True)
class Recipe:
    """Everything of ours that decides what a build gives.

    required, optional: lines of the form `CONFIG_X=value`, in order.
    patches: (file name, text), in the order in which they are applied.
    """

    required: tuple[str, ...]
    optional: tuple[str, ...]
    patches: tuple[tuple[str, str], ...]
    hz: int

    @property
    def hash(self) -> str:
        """SHA-256, hex, of all that decides what comes out; comments do not."""
        told = [FORMAT, self.required, self.optional, self.patches, self.hz]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()

    @property
    def options_text(self) -> str:
        """The file for KCONFIG_ALLCONFIG."""
        return "".join(f"{line}\n" for line in self.required + self.optional)


def load_recipe(hz: int = DEFAULT_HZ) -> Recipe:
    """Read the recipe folder. Raises PreconditionError where it is not there."""
    try:
        required, optional = parse_options((RECIPE_FOLDER / "wanlab.config").read_text())
        patches = sorted((RECIPE_FOLDER / "patches").glob("*.patch"))
        texts = tuple((patch.name, patch.read_text()) for patch in patches)
    except OSError as missing:
        raise PreconditionError(
            f"the kernel recipes cannot be read ({missing}); run the lab from its own checkout"
        ) from missing
    return Recipe(required, optional, texts, hz)


def parse_options(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (required, optional) lines of an options file.

    A section line, `# --- required: ... ---` or `# --- where the tree has it ---`,
    says which the lines under it are. Raises UserError for any other text and
    for an option that is there twice.
    """
    required: list[str] = []
    optional: list[str] = []
    lines: list[str] | None = None
    seen: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        section, option = _SECTION.match(line), _OPTION.match(line)
        if section:
            lines = {"required": required, "where the tree has it": optional}.get(section[1].split(":")[0])
        elif option:
            if lines is None or option[1] in seen:
                fault = "is there twice" if option[1] in seen else "stands under no known section"
                raise UserError(f"kernel options, line {number}: {option[1]} {fault}")
            seen.add(option[1])
            lines.append(line)
        elif line and not line.startswith("#"):
            raise UserError(f"kernel options, line {number}: {line!r} is not CONFIG_NAME=value")
    return tuple(required), tuple(optional)


def check_config(recipe: Recipe, config: str) -> tuple[str, ...]:
    """Hold a `.config` against the recipe; return the optional options that the tree left out.

    Raises UserError, listing every required option that the tree refused, or
    where HZ did not come out as asked.
    """
    set_lines = set(config.splitlines())
    refused = [line for line in recipe.required if line not in set_lines]
    if refused:
        raise UserError(f"this kernel tree refuses options that the lab needs: {', '.join(refused)}")
    if f"CONFIG_HZ={recipe.hz}" not in set_lines:
        raise UserError(
            f"this kernel tree cannot be given HZ={recipe.hz}; its arch/um/Kconfig decides otherwise"
        )
    return tuple(line.partition("=")[0] for line in recipe.optional if line not in set_lines)


def own_options(kconfigs: Mapping[str, str], known: str) -> str:
    """Return options for the congestion controls and queues that a tree has beyond the recipe's.

    A researcher's tree is built for its own congestion control: it must not
    wait for our list to name it. kconfigs: {path: text}; known: our own options.
    """
    found = [name for text in kconfigs.values() for name in _OWN.findall(text)]
    new = [name for name in dict.fromkeys(found) if f"CONFIG_{name}=" not in known and name not in _SWITCHES]
    return "".join(f"CONFIG_{name}=y\n" for name in new)


def with_hz(kconfig: str, hz: int) -> str:
    """Return arch/um/Kconfig with another HZ; unchanged where it has none to set.

    UML fixes HZ with `config HZ / int / default 100` (Linux 6.1 to 6.12).
    """
    return _HZ_DEFAULT.sub(rf"\g<1>{hz}", kconfig)
