"""Small programs for the kernel: their instructions, their maps, and loading them with bpf(2).

Programs are lists of the helpers below, with labels to jump to; no compiler and
no library is needed. Not here: what a program does, and attaching it to anything.

Sources: Documentation/bpf/standardization/instruction-set.rst, bpf(2),
include/uapi/linux/bpf.h and bpf_common.h (Linux 6.12).
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10 = range(11)
"""R0: result. R1 to R5: arguments; a call or a packet load loses them. R6 to R9: kept. R10: stack's end."""

BYTE, HALF, DOUBLE = 0x10, 0x08, 0x18
"""Sizes of 1, 2 and 8 bytes."""

MAP_LOOKUP_ELEM = 1
"""Helper: R1 map, R2 pointer to the key; R0 becomes a pointer to the value, or 0."""

SCHED_CLS = 3
"""BPF_PROG_TYPE_SCHED_CLS: a classifier of `tc`."""

_LD, _ST, _STX, _JMP, _ALU64 = 0x00, 0x02, 0x03, 0x05, 0x07
_IMM, _ABS, _IND, _MEM, _ATOMIC = 0x00, 0x20, 0x40, 0x60, 0xC0
_CONSTANT, _REGISTER = 0x00, 0x08
_ADD, _SUB, _AND, _LSH, _RSH, _MOV = 0x00, 0x10, 0x50, 0x60, 0x70, 0xB0
_JEQ, _JSET, _JNE, _JSLE, _CALL, _EXIT = 0x10, 0x40, 0x50, 0xD0, 0x80, 0x90
_FETCH = 0x01
_PSEUDO_MAP_FD, _PSEUDO_MAP_VALUE = 1, 2

_SYSTEM_CALL = {"x86_64": 321, "aarch64": 280}
_MAP_CREATE, _PROG_LOAD, _MAP_LOOKUP_BATCH, _MAP_UPDATE_BATCH = 0, 5, 24, 26
_MAP_HASH, _MAP_ARRAY = 1, 2
_ZERO_SEED = 1 << 6
_HINTS = {
    errno.ENOSYS: "this kernel has no bpf(2); it needs CONFIG_BPF_SYSCALL=y",
    errno.EPERM: "bpf(2) is not permitted; it takes root, or CAP_BPF and CAP_NET_ADMIN",
}
_libc = ctypes.CDLL(None, use_errno=True)


class Instruction(NamedTuple):
    """struct bpf_insn; `target` is the label that a jump goes to."""

    code: int
    dst: int = 0
    src: int = 0
    offset: int = 0
    immediate: int = 0
    target: str = ""


def assemble(program: Sequence[Instruction | str]) -> bytes:
    """Return the bytes of a program, 8 for each instruction; a text is a label for what follows it.

    A jump counts instructions from the one after it. Raises ValueError for a
    label that is missing or there twice, and for a jump too long for 16 bits.
    """
    places: dict[str, int] = {}
    instructions: list[Instruction] = []
    for item in program:
        if isinstance(item, Instruction):
            instructions.append(item)
        elif item in places:
            raise ValueError(f"the label {item!r} is there twice")
        else:
            places[item] = len(instructions)
    told = []
    for place, (code, dst, src, offset, immediate, target) in enumerate(instructions):
        if target:
            if target not in places:
                raise ValueError(f"no label {target!r} to jump to")
            offset = places[target] - (place + 1)  # noqa: PLW2901 (a jump has no other offset)
            if not -(2**15) <= offset < 2**15:
                raise ValueError(f"the jump to {target!r} is too long: {offset} instructions")
        told.append(struct.pack("=BBhi", code, dst | src << 4, offset, immediate))
    return b"".join(told)


def set_constant(dst: int, number: int) -> Instruction:
    """`dst` = number."""
    return Instruction(_ALU64 | _MOV | _CONSTANT, dst, immediate=number)


def copy(dst: int, src: int) -> Instruction:
    """`dst` = src."""
    return Instruction(_ALU64 | _MOV | _REGISTER, dst, src)


def add_constant(dst: int, number: int) -> Instruction:
    """`dst` += number."""
    return Instruction(_ALU64 | _ADD | _CONSTANT, dst, immediate=number)


def subtract(dst: int, src: int) -> Instruction:
    """`dst` -= src."""
    return Instruction(_ALU64 | _SUB | _REGISTER, dst, src)


def keep_bits(dst: int, mask: int) -> Instruction:
    """`dst` &= mask."""
    return Instruction(_ALU64 | _AND | _CONSTANT, dst, immediate=mask)


def shift_left(dst: int, bits: int) -> Instruction:
    """`dst` <<= bits."""
    return Instruction(_ALU64 | _LSH | _CONSTANT, dst, immediate=bits)


def shift_right(dst: int, bits: int) -> Instruction:
    """`dst` >>= bits, filled up with zeros."""
    return Instruction(_ALU64 | _RSH | _CONSTANT, dst, immediate=bits)


def load_packet(size: int, offset: int) -> Instruction:
    """`R0` = what the packet in R6 has `offset` bytes from its start, in the machine's order.

    Past the packet's end the program ends with 0. R1 to R5 are lost.
    """
    return Instruction(_LD | size | _ABS, immediate=offset)


def load_packet_from(size: int, register: int, offset: int) -> Instruction:
    """As `load_packet`, at `register` + `offset`."""
    return Instruction(_LD | size | _IND, src=register, immediate=offset)


def load_map(dst: int, fd: int) -> tuple[Instruction, Instruction]:
    """`dst` = the map, for a helper. Two instructions."""
    return Instruction(_LD | DOUBLE | _IMM, dst, _PSEUDO_MAP_FD, immediate=fd), Instruction(0)


def load_map_value(dst: int, fd: int) -> tuple[Instruction, Instruction]:
    """`dst` = pointer to the value of an array map with one entry. Two instructions."""
    return Instruction(_LD | DOUBLE | _IMM, dst, _PSEUDO_MAP_VALUE, immediate=fd), Instruction(0)


def store(dst: int, offset: int, src: int) -> Instruction:
    """The 8 bytes at [dst + offset] = src."""
    return Instruction(_STX | DOUBLE | _MEM, dst, src, offset)


def store_constant(dst: int, offset: int, number: int) -> Instruction:
    """The 8 bytes at [dst + offset] = number."""
    return Instruction(_ST | DOUBLE | _MEM, dst, offset=offset, immediate=number)


def fetch_add(dst: int, offset: int, src: int) -> Instruction:
    """The 8 bytes at [dst + offset] += src, and src = what they were; two CPUs get two numbers.

    Linux 5.12.
    """
    return Instruction(_STX | DOUBLE | _ATOMIC, dst, src, offset, _ADD | _FETCH)


def jump_if_equal(register: int, number: int, target: str) -> Instruction:
    """Jump where register == number."""
    return Instruction(_JMP | _JEQ | _CONSTANT, register, immediate=number, target=target)


def jump_unless_equal(register: int, number: int, target: str) -> Instruction:
    """Jump where register != number."""
    return Instruction(_JMP | _JNE | _CONSTANT, register, immediate=number, target=target)


def jump_if_bits(register: int, mask: int, target: str) -> Instruction:
    """Jump where register & mask is not 0."""
    return Instruction(_JMP | _JSET | _CONSTANT, register, immediate=mask, target=target)


def jump_unless_above(register: int, number: int, target: str) -> Instruction:
    """Jump where register <= number, both with their signs."""
    return Instruction(_JMP | _JSLE | _CONSTANT, register, immediate=number, target=target)


def call(helper: int) -> Instruction:
    """`R0` = helper(R1, R2, R3, R4, R5)."""
    return Instruction(_JMP | _CALL, immediate=helper)


def leave() -> Instruction:
    """End with R0."""
    return Instruction(_JMP | _EXIT)


class Map:
    """Numbers by number, shared between a program and this process; values are unsigned 64-bit.

    Raises OSError where the kernel refuses, with the option or right that it lacks.
    """

    def __init__(self, kind: int, key: str, entries: int, flags: int) -> None:
        """See `array` and `hash_table`. key: its `struct` letter."""
        self._key = key
        self._entries = entries
        attributes = struct.pack("=5I", kind, struct.calcsize(f"={key}"), 8, entries, flags)
        self.fd = _bpf(_MAP_CREATE, bytearray(attributes))

    @classmethod
    def array(cls, entries: int) -> Map:
        """Return a map of the keys 0 to entries - 1 (32 bits), each with the value 0."""
        return cls(_MAP_ARRAY, "I", entries, 0)

    @classmethod
    def hash_table(cls, entries: int) -> Map:
        """Return an empty map for any keys of 64 bits. Its order takes nothing from the kernel's chance."""
        return cls(_MAP_HASH, "Q", entries, _ZERO_SEED)

    def write(self, values: Mapping[int, int]) -> None:
        """Set values, in one system call (Linux 5.6)."""
        if not values:
            return
        keys = ctypes.create_string_buffer(struct.pack(f"={len(values)}{self._key}", *values))
        numbers = ctypes.create_string_buffer(struct.pack(f"={len(values)}Q", *values.values()))
        self._batch(_MAP_UPDATE_BATCH, keys, numbers, len(values))

    def read(self) -> dict[int, int]:
        """Return all that is in the map, by ascending key."""
        keys = ctypes.create_string_buffer(self._entries * struct.calcsize(f"={self._key}"))
        numbers = ctypes.create_string_buffer(self._entries * 8)
        count = self._batch(_MAP_LOOKUP_BATCH, keys, numbers, self._entries)
        found = zip(
            struct.unpack_from(f"={count}{self._key}", keys),
            struct.unpack_from(f"={count}Q", numbers),
            strict=True,
        )
        return dict(sorted(found))

    def _batch(
        self,
        command: int,
        keys: ctypes.Array[ctypes.c_char],
        numbers: ctypes.Array[ctypes.c_char],
        count: int,
    ) -> int:
        """Read or write many entries; return how many it were."""
        next_batch = ctypes.create_string_buffer(8)
        places = (0, *(ctypes.addressof(buffer) for buffer in (next_batch, keys, numbers)))
        attributes = bytearray(struct.pack("=4QIIQQ", *places, count, self.fd, 0, 0))
        try:
            _bpf(command, attributes)
        except OSError as ended:
            if (command, ended.errno) != (_MAP_LOOKUP_BATCH, errno.ENOENT):  # it came to the map's end
                raise
        (done,) = struct.unpack_from("=I", attributes, 32)
        return int(done)

    def close(self) -> None:
        """Let the map go; it lasts as long as a program uses it."""
        os.close(self.fd)


def load(kind: int, name: str, program: bytes) -> int:
    """Have the kernel check and take a program; return its descriptor.

    name: up to 15 letters, digits and _, for `bpftool`. Raises OSError, with the
    verifier's words where it refused. The license is left empty: no helper here
    asks for one.
    """
    log, text = ctypes.create_string_buffer(1 << 16), ctypes.create_string_buffer(program, len(program))
    license_name = ctypes.create_string_buffer(b"")

    def attributes(level: int) -> bytearray:
        places = [ctypes.addressof(buffer) for buffer in (text, license_name)]
        logging = (level, len(log) if level else 0, ctypes.addressof(log) if level else 0)
        return bytearray(
            struct.pack("=IIQQIIQII16s", kind, len(program) // 8, *places, *logging, 0, 0, name.encode())
        )

    try:
        return _bpf(_PROG_LOAD, attributes(0))
    except OSError as refused:
        if refused.errno in (errno.ENOSYS, errno.EPERM):
            raise
    try:
        return _bpf(_PROG_LOAD, attributes(1))  # again, for the reason
    except OSError as refused:
        told = log.value.decode(errors="replace").strip().splitlines()[-4:] or [str(refused.strerror)]
        raise OSError(refused.errno, f"the kernel refused a BPF program: {' | '.join(told)}") from refused


def _bpf(command: int, attributes: bytearray) -> int:
    """Call bpf(2); `attributes` (union bpf_attr) may be written to. Raises OSError."""
    machine = os.uname().machine
    if machine not in _SYSTEM_CALL:
        raise OSError(errno.ENOSYS, f"no number of bpf(2) is known for {machine}")
    union = (ctypes.c_char * len(attributes)).from_buffer(attributes)
    result = _libc.syscall(
        ctypes.c_long(_SYSTEM_CALL[machine]), ctypes.c_int(command), union, ctypes.c_uint(len(attributes))
    )
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, _HINTS.get(number, f"bpf(2), command {command}: {os.strerror(number)}"))
    return int(result)
