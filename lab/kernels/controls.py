"""Which congestion controls a kernel has, read from its program without starting it.

Every one registers itself with a struct tcp_congestion_ops that is in the
program as it stands, and that holds its name in 16 bytes, filled up with zeros
(TCP_CA_NAME_MAX, include/net/tcp.h).
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path

from lab.errors import UserError
from lab.kernels.cache import KernelRecord, list_kernels

_NAME_BYTES = 16
_OPTION = re.compile(r"^CONFIG_TCP_CONG_(\w+)=y$", re.MULTILINE)
_OTHER_NAMES = {"HSTCP": "highspeed"}
_SWITCHES = {"ADVANCED"}


@lru_cache(maxsize=256)
def has_control(kernel: Path, name: str) -> bool:
    """Return whether a kernel's program has a congestion control of that name."""
    with kernel.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as program:
        return program.find(b"\0" + name.encode().ljust(_NAME_BYTES, b"\0")) >= 0


def controls(record: KernelRecord) -> list[str]:
    """Return the names of a kernel's congestion controls as its configuration lists them, reno among them.

    One of a user's own may register under another name than its option's.
    """
    config = (record.path.parent / "config").read_text()
    named = {
        _OTHER_NAMES.get(option, option.lower())
        for option in _OPTION.findall(config)
        if option not in _SWITCHES
    }
    return sorted({"reno", *(name for name in named if has_control(record.path, name))})


def require_controls(wanted: Mapping[str, Collection[str]], kernels: Mapping[str, KernelRecord]) -> None:
    """Raise UserError where a kernel lacks a congestion control, naming the kernels that have it.

    wanted: the names by the address of the kernel that is to run them.
    """
    for address, names in wanted.items():
        for name in sorted(set(names)):
            if has_control(kernels[address].path, name):
                continue
            having = sorted(
                {one.address for one in list_kernels() if not one.stale and has_control(one.path, name)}
            )
            elsewhere = f"kernel {', '.join(having)} has it" if having else "no kernel here has it"
            raise UserError(
                f"cc: kernel {address} has no {name!r}, and {elsewhere}; {address} has"
                f" {', '.join(controls(kernels[address]))}; build a tree with it:"
                " wanlab kernel build NAME --source TREE"
            )
