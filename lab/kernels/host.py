"""The kernel of this machine, as a record like those of the lab's own kernels."""

from __future__ import annotations

import gzip
import hashlib
import platform
import re
from pathlib import Path

from lab.kernels.cache import KernelRecord
from lab.kernels.recipe import HOST

_HZ = re.compile(r"^CONFIG_HZ=([0-9]+)$", re.MULTILINE)


def host_kernel(root: Path = Path("/")) -> KernelRecord:
    """Return the kernel that this machine runs.

    hz is 0 and config_hash empty where the kernel does not show its configuration.
    """
    release = platform.release()
    config = host_config(root, release)
    hz = _HZ.search(config)
    return KernelRecord(
        name=HOST,
        release=release,
        recipe_hash="",
        source="this machine",
        source_hash="",
        hz=int(hz[1]) if hz else 0,
        config_hash=hashlib.sha256(config.encode()).hexdigest() if config else "",
        compiler=platform.version(),
        built_at="",
        options_left_out=(),
        path=root,
    )


def host_config(root: Path, release: str) -> str:
    """Return the configuration that a kernel was built with, "" where it is not to be had."""
    try:
        return gzip.decompress((root / "proc/config.gz").read_bytes()).decode()
    except (OSError, EOFError):
        pass
    try:
        return (root / f"boot/config-{release}").read_text()
    except OSError:
        return ""
