"""The lists of packets to drop, on all interfaces that have one."""

from __future__ import annotations

from typing import Any


class DropLists:
    """lists: `node`, `interface`, `numbers` of each; see `lab.agent.droplist`."""

    def __init__(self, net: Any, lists: list[dict[str, Any]]) -> None:
        self._lists: list[Any] = []
        if lists:
            from lab.agent import droplist  # noqa: PLC0415 (few points need it, and each pays for what it imports)

            for one in lists:
                with net[one["node"]].inside():
                    self._lists.append(droplist.attach(one["interface"], one["numbers"]))

    def reset(self) -> None:
        """Count from 1 again: the load begins."""
        for one in self._lists:
            one.reset()

    def dropped(self) -> list[list[int]]:
        """Return the numbers that each list did drop."""
        return [list(one.dropped()) for one in self._lists]
