"""The lab's own kernels: building them from Debian's sources or a user's tree, and finding them again.

Not here: booting one, which the virtual engine does. A kernel's address is its
name, as in `6.12`, and for another timer frequency than the default also that,
as in `6.12@1000`.
"""

from __future__ import annotations

from lab.kernels.build import build_kernel
from lab.kernels.cache import KernelRecord, cache_root, find_kernel, list_kernels
from lab.kernels.host import host_config, host_kernel
from lab.kernels.recipe import DEFAULT_HZ, HOST, HZ_CHOICES
from lab.kernels.sources import STANDARD_NAMES

__all__ = [
    "DEFAULT_HZ",
    "HOST",
    "HZ_CHOICES",
    "STANDARD_NAMES",
    "KernelRecord",
    "build_kernel",
    "cache_root",
    "find_kernel",
    "host_config",
    "host_kernel",
    "list_kernels",
]
