"""Socket memory settings: what `rmem` and `wmem` say, and the sysctl triple that it means.

`default`            what the kernel sets by itself
`50MiB`              minimum, default and maximum alike: no autotuning
`max=50MiB`          the third value alone: autotuning up to there
`4KiB:128KiB:50MiB`  all three

Source: ip-sysctl.rst (tcp_rmem, tcp_wmem); tcp_init() in net/ipv4/tcp.c, which
gives 6 MiB and 4 MiB on any machine with more than 1 GiB.
"""

from __future__ import annotations

from typing import NamedTuple

from lab import units
from lab.errors import UnitError

LARGEST_BYTES = 2**31 - 1
SMALLEST_BYTES = {"rmem": 4096, "wmem": 4608}
"""tcp_min_rcvbuf, net/ipv4/sysctl_net_ipv4.c, which no part of tcp_rmem may be under; and
SOCK_MIN_SNDBUF, include/net/sock.h, 64 bit, which the kernel takes for a smaller one."""


class Triple(NamedTuple):
    """tcp_rmem or tcp_wmem: bytes."""

    minimum: int
    default: int
    maximum: int

    def sysctl(self) -> str:
        """Return it as the sysctl reads it."""
        return f"{self.minimum} {self.default} {self.maximum}"


DEFAULTS = {"rmem": Triple(4096, 131072, 6291456), "wmem": Triple(4096, 16384, 4194304)}

CORE_MAX_BYTES = 212992
"""Default of net.core.rmem_max and wmem_max: SK_RMEM_MAX, SK_WMEM_MAX in include/net/sock.h, 64 bit."""


def parse(text: str, which: str) -> Triple:
    """Return the triple that `text` means for `which`, "rmem" or "wmem". Raises UnitError."""
    usual = DEFAULTS[which]
    text = text.strip()
    if text == "default":
        return usual
    if text.startswith("max="):
        largest = units.parse_size(text[4:])
        triple = Triple(min(usual.minimum, largest), min(usual.default, largest), largest)
    elif ":" in text:
        parts = text.split(":")
        if len(parts) != 3:
            raise UnitError(
                f"{text!r} has {len(parts)} parts; write MIN:DEFAULT:MAX, such as 4KiB:128KiB:50MiB"
            )
        triple = Triple(*(units.parse_size(part) for part in parts))
        if not triple.minimum <= triple.default <= triple.maximum:
            raise UnitError(f"{text!r} is out of order; MIN:DEFAULT:MAX must not fall from left to right")
    else:
        size = units.parse_size(text)
        triple = Triple(size, size, size)
    if triple.maximum > LARGEST_BYTES:
        raise UnitError(
            f"{text!r} is over {LARGEST_BYTES} bytes, the most that a socket buffer can be; take less"
        )
    least = triple.minimum if which == "rmem" else triple.maximum
    if least < SMALLEST_BYTES[which] or triple.minimum <= 0:
        raise UnitError(f"{text!r} is under {SMALLEST_BYTES[which]} bytes, the kernel's least; take more")
    return triple


def canonical(text: str, which: str) -> str:
    """Return the one spelling of a setting, so that equal settings are equal text."""
    triple = parse(text, which)
    if triple == DEFAULTS[which]:
        return "default"
    if triple.minimum == triple.default == triple.maximum:
        return units.format_size(triple.maximum)
    if triple == parse(f"max={triple.maximum}B", which):
        return f"max={units.format_size(triple.maximum)}"
    return ":".join(units.format_size(size) for size in triple)
