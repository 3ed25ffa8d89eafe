"""Network device features, as `ethtool -K` sets them, by the kernel's own names.

Source: SIOCETHTOOL, include/uapi/linux/ethtool.h (struct ethtool_gstrings,
ethtool_gfeatures, ethtool_sfeatures). The older per-feature calls know nothing
of UDP segmentation.
"""

from __future__ import annotations

import ctypes
import fcntl
import socket
import struct

_SIOCETHTOOL = 0x8946
_GSSET_INFO, _GSTRINGS, _GFEATURES, _SFEATURES = 0x37, 0x1B, 0x3A, 0x3B
_SS_FEATURES = 4
_NAME_BYTES = 32

SEGMENTATION = (
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation",
    "tx-udp-segmentation",
    "tx-generic-segmentation",
    "rx-gro",
)
"""What lets the stack carry several packets as one."""


class Features:
    """The features of one interface of the namespace the thread is in."""

    def __init__(self, channel: socket.socket, interface: str) -> None:
        self._channel = channel
        self._interface = interface.encode().ljust(16, b"\0")
        count = struct.unpack_from(
            "I", self._call(struct.pack("IIQI", _GSSET_INFO, 0, 1 << _SS_FEATURES, 0)), 16
        )[0]
        strings = self._call(struct.pack("III", _GSTRINGS, _SS_FEATURES, count) + bytes(count * _NAME_BYTES))
        self._names = [
            strings[12 + i * _NAME_BYTES : 12 + (i + 1) * _NAME_BYTES].split(b"\0")[0].decode()
            for i in range(count)
        ]
        self._blocks = (count + 31) // 32

    def _call(self, data: bytes) -> bytes:
        buffer = ctypes.create_string_buffer(data, len(data))
        fcntl.ioctl(
            self._channel, _SIOCETHTOOL, struct.pack("16sQ16x", self._interface, ctypes.addressof(buffer))
        )
        return buffer.raw

    def switch(self, names: tuple[str, ...], on: bool) -> None:
        """Switch features on or off; a name that this kernel does not have is left."""
        blocks = [[0, 0] for _ in range(self._blocks)]
        for name in names:
            if name in self._names:
                block, bit = divmod(self._names.index(name), 32)
                blocks[block][0] |= 1 << bit
                blocks[block][1] |= int(on) << bit
        self._call(
            struct.pack("II", _SFEATURES, self._blocks)
            + b"".join(struct.pack("II", *block) for block in blocks)
        )

    def active(self) -> set[str]:
        """Return the names of the features that are on."""
        data = self._call(struct.pack("II", _GFEATURES, self._blocks) + bytes(16 * self._blocks))
        words = [struct.unpack_from("4I", data, 8 + 16 * block)[2] for block in range(self._blocks)]
        return {name for i, name in enumerate(self._names) if words[i // 32] >> (i % 32) & 1}
