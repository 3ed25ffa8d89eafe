"""Network namespaces held by file descriptors: making one, entering one.

Not here: processes. A namespace that lives as long as a descriptor costs no
process and leaves nothing behind when its holder dies, whatever killed it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, attempt: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{attempt}: {os.strerror(number)}")


def _here() -> int:
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def new() -> int:
    """Make a network namespace; return the descriptor that holds it. Needs CAP_SYS_ADMIN."""
    home = _here()
    try:
        _check(_libc.unshare(_CLONE_NEWNET), "making a network namespace")
        made = _here()
        _check(_libc.setns(home, _CLONE_NEWNET), "going back to the first network namespace")
    finally:
        os.close(home)
    return made


@contextlib.contextmanager
def entered(namespace: int) -> Iterator[None]:
    """Run the block with this thread inside `namespace`.

    Sockets made and processes started in the block stay there.
    """
    home = _here()
    try:
        _check(_libc.setns(namespace, _CLONE_NEWNET), "entering a network namespace")
        try:
            yield
        finally:
            _check(_libc.setns(home, _CLONE_NEWNET), "going back to the first network namespace")
    finally:
        os.close(home)
