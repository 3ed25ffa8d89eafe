"""Sysctls of the emulated hosts: set, read back, reported."""

from __future__ import annotations

from typing import Any

from lab.agent.network import write_sysctl


def apply(net: Any, sysctls: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """Set {node or "": {name: value}}; "" is the kernel itself, outside every node.

    Raises NotAppliedError where a value reads back otherwise. Returns what was set.
    """
    for name, value in sysctls.get("", {}).items():
        write_sysctl(name, value)
    for node, settings in sysctls.items():
        if node:
            with net[node].inside():
                for name, value in settings.items():
                    write_sysctl(name, value)
    return sysctls
