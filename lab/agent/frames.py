"""The agent's record file: frames of raw kernel answers, each with its instant.

A frame is a header (kind, node, length, instant) and the bytes as the kernel
gave them. Nothing is decoded where the clock runs; `lab.records` does that
afterwards, so a new field costs no new run.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

SOCKETS = 1
QUEUES = 2

_HEADER = struct.Struct("<BBxxIq")


def pack(kind: int, node: int, instant_ns: int, payload: bytes) -> bytes:
    """Return one frame."""
    return _HEADER.pack(kind, node, len(payload), instant_ns) + payload


def unpack(data: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """Yield (kind, node, instant_ns, payload); ValueError where the file is torn."""
    offset = 0
    while offset < len(data):
        if offset + _HEADER.size > len(data):
            raise ValueError(f"frame header torn at byte {offset}")
        kind, node, length, instant_ns = _HEADER.unpack_from(data, offset)
        offset += _HEADER.size
        if offset + length > len(data):
            raise ValueError(f"frame of {length} bytes torn at byte {offset}")
        yield kind, node, instant_ns, data[offset : offset + length]
        offset += length
