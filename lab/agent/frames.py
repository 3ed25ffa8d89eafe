"""The agent's record file: frames of raw kernel answers, each with its instant.

A frame is a header (kind, node, length, instant) and the bytes as the kernel
gave them. Nothing is decoded where the clock runs; `lab.records` does that
afterwards, so a new field costs no new run.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

SOCKETS = 1
QUEUES = 2
DELAYS = 3
MACHINE = 4
DELAY_KINDS = ("probe", "udp", "request")

_HEADER = struct.Struct("<BxHIq")


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


_DELAYS_HEAD = struct.Struct("<Bxxxi")
_DELAY = struct.Struct("<qq")


def pack_delays(kind: str, flow: int, taken: Sequence[tuple[int, int]]) -> bytes:
    """Return the payload of a frame of delays: (instant sent, time taken) each, ns."""
    head = _DELAYS_HEAD.pack(DELAY_KINDS.index(kind), flow)
    return head + b"".join(_DELAY.pack(*one) for one in taken)


def unpack_delays(payload: bytes) -> tuple[str, int, list[tuple[int, int]]]:
    """Return (kind, flow, [(sent, taken)]), ns; ValueError where the payload is torn."""
    if len(payload) < _DELAYS_HEAD.size or (len(payload) - _DELAYS_HEAD.size) % _DELAY.size:
        raise ValueError(f"delays of {len(payload)} bytes are torn")
    kind, flow = _DELAYS_HEAD.unpack_from(payload)
    return DELAY_KINDS[kind], flow, list(_DELAY.iter_unpack(payload[_DELAYS_HEAD.size :]))
