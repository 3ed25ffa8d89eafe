"""Captures: packets of named interfaces, kept with a point as files that Wireshark opens.

Here is what is asked for and how it is stored; taking them is `lab.agent.capture`.
"""

from __future__ import annotations

import gzip
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab import layout
from lab.combination import Point
from lab.doctor import AGENT_PATH
from lab.errors import PreconditionError, UserError

DEFAULT_SNAP_BYTES = 128
"""Ethernet, IPv4 and TCP with all their options: 14 + 60 + 60 bytes at most, in practice under 100."""

LEAST_SNAP_BYTES, MOST_SNAP_BYTES = 14, 262144
"""An Ethernet header; tcpdump's own largest."""

_LEVEL = 4
"""Of gzip: headers compress well at any, and a capture is as large as the traffic was long."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}\Z")
"""Of an interface: IFNAMSIZ, and what can also name a file."""


def interfaces(text: str) -> tuple[str, ...]:
    """Return the interfaces of `--capture`, each once. Raises UserError for what cannot be one's name."""
    names = [part.strip() for part in text.split(",")] if text else []
    for name in names:
        if not _NAME.match(name):
            raise UserError(
                f"--capture {text!r}: {name!r} is not the name of an interface; write it as snd-eth0,rcv-eth0"
            )
    return tuple(dict.fromkeys(names))


def check(points: Sequence[Point], names: Sequence[str]) -> None:
    """Raise UserError where a point's network lacks one of the interfaces."""
    for point in points if names else ():
        there = _nodes(point)
        for name in names:
            if name not in there:
                raise UserError(
                    f"--capture {name!r}: topology={point.knobs['topology']} has no such interface; it has"
                    f" {', '.join(there)}"
                )


def require_tool() -> None:
    """Raise PreconditionError where what takes captures on this machine is not there."""
    if shutil.which("tcpdump", path=AGENT_PATH) is None:
        raise PreconditionError(
            f"--capture: tcpdump is not in {AGENT_PATH}; `apt-get install tcpdump` brings it"
        )


def told(point: Point, names: Sequence[str], snap_bytes: int) -> list[dict[str, Any]]:
    """Return the captures of a point as the agent is told them."""
    if not names:
        return []
    there = _nodes(point)
    return [{"node": there[name], "interface": name, "snap_bytes": snap_bytes} for name in names]


def _nodes(point: Point) -> dict[str, str]:
    """Return {interface: node} of a point's network."""
    return {end.interface: end.node for link in layout.plan(point).links for end in link.ends}


def compressed(folder: Path) -> list[Path]:
    """Compress the captures that an agent left in a folder, each beside itself; return the new files."""
    made = []
    for file in sorted(folder.glob("*.pcap")):
        packed = file.with_name(f"{file.name}.gz")
        with file.open("rb") as raw, gzip.open(packed, "wb", compresslevel=_LEVEL) as target:
            shutil.copyfileobj(raw, target, 2**20)
        file.unlink()
        made.append(packed)
    return made
