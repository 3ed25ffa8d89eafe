"""Takes captures: one tcpdump an interface, to a file, until the load is over.

The file is written as it is; compressing it is for later, when no packet waits.
"""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path
from typing import Any

RING_KIB = 16384
"""Of each tcpdump: what comes while it waits for a CPU or a disk. libpcap has 2 MiB."""

_END_S = 30.0
_COUNT = re.compile(rb"^(\d+) packets? (captured|dropped by kernel)", re.MULTILINE)


class Captures:
    """captures: `node`, `interface`, `snap_bytes` of each; files INTERFACE.pcap appear in `out`.

    filter: words of pcap-filter(7) that say which packets; none for all.
    """

    def __init__(self, net: Any, captures: list[dict[str, Any]], out: Path) -> None:
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        for one in captures:
            with net[one["node"]].inside():
                self._running[one["interface"]] = _start(one, out / f"{one['interface']}.pcap")

    def end(self) -> list[dict[str, Any]]:
        """Stop; return `interface`, `packets` and `dropped` (that tcpdump was too slow for) of each."""
        found = []
        for tool in self._running.values():
            tool.send_signal(signal.SIGINT)
        for interface, tool in self._running.items():
            said = tool.communicate(timeout=_END_S)[1]
            counts = {what.decode(): int(number) for number, what in _COUNT.findall(said)}
            if "captured" not in counts:
                raise RuntimeError(
                    f"tcpdump on {interface} ended badly: {said.decode(errors='replace').strip()}"
                )
            found.append(
                {
                    "interface": interface,
                    "packets": counts["captured"],
                    "dropped": counts.get("dropped by kernel", 0),
                }
            )
        return found


def _start(one: dict[str, Any], file: Path) -> subprocess.Popen[bytes]:
    """Start tcpdump in the namespace the thread is in, and wait until it listens."""
    argv = ["tcpdump", "--interface", one["interface"], "--snapshot-length", str(one["snap_bytes"])]
    argv += ["--buffer-size", str(RING_KIB), "-n", "--time-stamp-precision", "nano", "-w", str(file)]
    argv += ["--relinquish-privileges", "root"]  # else it becomes one who may not write here
    tool = subprocess.Popen(
        [*argv, *one.get("filter", ())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert tool.stderr is not None
    said = b""
    for line in tool.stderr:
        said += line
        if b"listening on" in line:
            return tool
    tool.wait()
    words = said.decode(errors="replace").strip()
    raise RuntimeError(f"tcpdump on {one['interface']} did not start: {words}")
