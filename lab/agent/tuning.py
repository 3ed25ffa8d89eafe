"""Sysctls of the emulated hosts: set, read back, reported."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

from lab.agent.network import NotAppliedError, write_sysctl


def apply(net: Any, sysctls: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """Set {node or "": {name: value}}; "" is the kernel itself, outside every node.

    Raises NotAppliedError where a value reads back otherwise. Returns what was set.
    """
    for node, settings in sysctls.items():
        with net[node].inside() if node else nullcontext():
            for name, value in settings.items():
                _set(name, value)
    return sysctls


def _set(name: str, value: str) -> None:
    try:
        write_sysctl(name, value)
    except OSError as refused:
        hint = ""
        if name == "net.ipv4.tcp_congestion_control":
            known = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
            hint = f"; this kernel has {', '.join(sorted(known))}"
        raise NotAppliedError(f"{name} cannot be {value} ({refused.strerror}){hint}") from refused
