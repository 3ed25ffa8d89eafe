"""Dropping by number: instructions as the kernel's headers have them, and the program, run here by hand."""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.agent import bpf, droplist

COUNTER, NUMBERS = 7, 9
GONE, NEXT = 4, -1


def insn(code: int, registers: int = 0, offset: int = 0, immediate: int = 0) -> bytes:
    return struct.pack("=BBhi", code, registers, offset, immediate)


class TestInstructions:
    @pytest.mark.parametrize(
        ("instruction", "told"),
        [
            (bpf.set_constant(bpf.R1, -1), insn(0xB7, 0x01, 0, -1)),
            (bpf.copy(bpf.R6, bpf.R1), insn(0xBF, 0x16)),
            (bpf.add_constant(bpf.R2, -8), insn(0x07, 0x02, 0, -8)),
            (bpf.subtract(bpf.R0, bpf.R7), insn(0x1F, 0x70)),
            (bpf.keep_bits(bpf.R0, 0x0F), insn(0x57, 0x00, 0, 15)),
            (bpf.shift_left(bpf.R0, 2), insn(0x67, 0x00, 0, 2)),
            (bpf.shift_right(bpf.R3, 4), insn(0x77, 0x03, 0, 4)),
            (bpf.load_packet(bpf.HALF, 16), insn(0x28, 0x00, 0, 16)),
            (bpf.load_packet(bpf.BYTE, 23), insn(0x30, 0x00, 0, 23)),
            (bpf.load_packet_from(bpf.BYTE, bpf.R7, 26), insn(0x50, 0x70, 0, 26)),
            (bpf.store(bpf.R10, -8, bpf.R1), insn(0x7B, 0x1A, -8)),
            (bpf.store_constant(bpf.R0, 8, 1), insn(0x7A, 0x00, 8, 1)),
            (bpf.fetch_add(bpf.R2, 0, bpf.R1), insn(0xDB, 0x12, 0, 1)),
            (bpf.call(bpf.MAP_LOOKUP_ELEM), insn(0x85, 0, 0, 1)),
            (bpf.leave(), insn(0x95)),
        ],
    )
    def test_have_their_bytes(self, instruction: bpf.Instruction, told: bytes) -> None:
        assert bpf.assemble([instruction]) == told

    def test_a_map_takes_two(self) -> None:
        assert bpf.assemble(bpf.load_map(bpf.R1, 5)) == insn(0x18, 0x11, 0, 5) + insn(0)
        assert bpf.assemble(bpf.load_map_value(bpf.R2, 5)) == insn(0x18, 0x22, 0, 5) + insn(0)

    @pytest.mark.parametrize(
        ("jump", "code"),
        [
            (bpf.jump_if_equal, 0x15),
            (bpf.jump_unless_equal, 0x55),
            (bpf.jump_if_bits, 0x45),
            (bpf.jump_unless_above, 0xD5),
        ],
    )
    def test_jumps_count_from_the_next_one(
        self, jump: Callable[[int, int, str], bpf.Instruction], code: int
    ) -> None:
        told = bpf.assemble(["back", jump(bpf.R3, 6, "on"), *bpf.load_map(bpf.R1, 5), "on", bpf.leave()])
        assert told[:8] == insn(code, 0x03, 2, 6)
        told = bpf.assemble(["back", bpf.leave(), jump(bpf.R3, 6, "back")])
        assert told[8:] == insn(code, 0x03, -2, 6)

    def test_labels_are_there_once(self) -> None:
        with pytest.raises(ValueError, match="no label 'nowhere' to jump to"):
            bpf.assemble([bpf.jump_if_equal(bpf.R0, 0, "nowhere")])
        with pytest.raises(ValueError, match="the label 'twice' is there twice"):
            bpf.assemble(["twice", bpf.leave(), "twice"])

    def test_a_jump_has_16_bits(self) -> None:
        far = [bpf.jump_if_equal(bpf.R0, 0, "end"), *[bpf.leave()] * 2**15, "end", bpf.leave()]
        with pytest.raises(ValueError, match="the jump to 'end' is too long: 32768 instructions"):
            bpf.assemble(far)
        assert len(bpf.assemble([far[0], *far[2:]])) == 8 * (2**15 + 1)


def test_numbers_are_those_of_the_kernel_s_headers(assert_in_c) -> None:
    names = {
        "BPF_MAP_CREATE": bpf._MAP_CREATE,
        "BPF_PROG_LOAD": bpf._PROG_LOAD,
        "BPF_MAP_LOOKUP_BATCH": bpf._MAP_LOOKUP_BATCH,
        "BPF_MAP_UPDATE_BATCH": bpf._MAP_UPDATE_BATCH,
        "BPF_MAP_TYPE_HASH": bpf._MAP_HASH,
        "BPF_MAP_TYPE_ARRAY": bpf._MAP_ARRAY,
        "BPF_F_ZERO_SEED": bpf._ZERO_SEED,
        "BPF_PROG_TYPE_SCHED_CLS": bpf.SCHED_CLS,
        "BPF_FUNC_map_lookup_elem": bpf.MAP_LOOKUP_ELEM,
        "BPF_PSEUDO_MAP_FD": bpf._PSEUDO_MAP_FD,
        "BPF_PSEUDO_MAP_VALUE": bpf._PSEUDO_MAP_VALUE,
        "BPF_STX | BPF_ATOMIC | BPF_DW": bpf.fetch_add(0, 0, 0).code,
        "BPF_ADD | BPF_FETCH": bpf.fetch_add(0, 0, 0).immediate,
        "BPF_JMP | BPF_JSLE | BPF_K": bpf.jump_unless_above(0, 0, "on").code,
        "BPF_LD | BPF_B | BPF_IND": bpf.load_packet_from(bpf.BYTE, 0, 0).code,
        "offsetof(union bpf_attr, value_size)": 8,
        "offsetof(union bpf_attr, map_flags)": 16,
        "offsetof(union bpf_attr, batch.keys)": 16,
        "offsetof(union bpf_attr, batch.count)": 32,
        "offsetof(union bpf_attr, batch.map_fd)": 36,
        "offsetof(union bpf_attr, log_buf)": 32,
        "offsetof(union bpf_attr, prog_name)": 48,
        "TC_ACT_STOLEN": droplist._STOLEN,
        "TC_ACT_UNSPEC": droplist._NEXT_FILTER,
        "RTM_NEWQDISC": droplist._RTM_NEWQDISC,
        "RTM_NEWTFILTER": droplist._RTM_NEWTFILTER,
        "RTM_GETTFILTER": droplist._RTM_GETTFILTER,
        "NLM_F_ACK": droplist._ACK,
        "NLM_F_CREATE": droplist._CREATE,
        "NLM_F_EXCL": droplist._EXCLUSIVE,
        "TC_H_CLSACT": droplist._CLSACT,
        "TC_H_MAKE(TC_H_CLSACT, 0)": droplist._CLSACT_HANDLE,
        "TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS)": droplist._CLSACT_EGRESS,
        "TCA_KIND": droplist._TCA_KIND,
        "TCA_OPTIONS": droplist._TCA_OPTIONS,
        "TCA_BPF_FD": droplist._TCA_BPF_FD,
        "TCA_BPF_NAME": droplist._TCA_BPF_NAME,
        "TCA_BPF_FLAGS": droplist._TCA_BPF_FLAGS,
        "TCA_BPF_FLAG_ACT_DIRECT": struct.unpack("=I", droplist._DIRECT_ACTION)[0],
    }
    headers = ["linux/bpf.h", "linux/pkt_cls.h", "linux/pkt_sched.h", "linux/rtnetlink.h"]
    assert_in_c(headers, names)


class Machine:
    """Runs the program's bytes on packets, as the kernel would, with its two maps."""

    def __init__(self, numbers: list[int]) -> None:
        self.counted = 0
        self.numbers = dict.fromkeys(numbers, 0)
        told = bpf.assemble(droplist.program(COUNTER, NUMBERS))
        self._code = list(struct.iter_unpack("=BBhi", told))

    def run(self, frame: bytes) -> int:  # noqa: PLR0912, PLR0915 (one branch an instruction)
        register: list = [0] * 11
        stack: dict[int, int] = {}
        at = 0
        while True:
            code, registers, offset, immediate = self._code[at]
            dst, src = registers & 15, registers >> 4
            at += 1
            if code == 0x95:
                return register[0]
            if code in (0x28, 0x30, 0x50):
                size = 2 if code == 0x28 else 1
                start = immediate + (register[src] if code == 0x50 else 0)
                if start + size > len(frame):
                    return 0
                register[:6] = [int.from_bytes(frame[start : start + size]), *[None] * 5]
            elif code == 0xB7:
                register[dst] = immediate
            elif code == 0xBF:
                register[dst] = ("stack", 0) if src == 10 else register[src]
            elif code == 0x07 and isinstance(register[dst], tuple):
                register[dst] = ("stack", register[dst][1] + immediate)
            elif code == 0x07:
                register[dst] += immediate
            elif code == 0x1F:
                register[dst] -= register[src]
            elif code == 0x57:
                register[dst] &= immediate
            elif code == 0x67:
                register[dst] <<= immediate
            elif code == 0x77:
                register[dst] >>= immediate
            elif code == 0x15:
                at += offset if register[dst] == immediate else 0
            elif code == 0x55:
                at += offset if register[dst] != immediate else 0
            elif code == 0x45:
                at += offset if register[dst] & immediate else 0
            elif code == 0xD5:
                at += offset if register[dst] <= immediate else 0
            elif code == 0x18:
                register[dst] = immediate
                at += 1
            elif code == 0xDB:
                assert (register[dst], offset, immediate) == (COUNTER, 0, 1)
                self.counted, register[src] = self.counted + register[src], self.counted
            elif code == 0x7B:
                assert dst == 10
                stack[offset] = register[src]
            elif code == 0x85:
                assert (register[1], immediate) == (NUMBERS, 1)
                key = stack[register[2][1]]
                register[:6] = [key if key in self.numbers else 0, *[None] * 5]
            elif code == 0x7A:
                self.numbers[register[dst]] = immediate
            else:
                raise AssertionError(f"no such instruction: {code:#x}")


def frame(
    payload: int,
    *,
    protocol: int = 6,
    ip_words: int = 5,
    tcp_words: int = 5,
    fragment: int = 0,
    padding: int = 0,
) -> bytes:
    """Return an Ethernet frame of IPv4; fragment: the field with its flags."""
    inner = bytes([*bytes(12), tcp_words << 4, 0x10, *bytes(4 * tcp_words - 14)]) + bytes(payload)
    total = 4 * ip_words + len(inner)
    header = struct.pack("!BBHHHBBHII", 0x40 | ip_words, 0, total, 1, fragment, 64, protocol, 0, 1, 2)
    return bytes(12) + b"\x08\0" + header + bytes(4 * ip_words - 20) + inner + b"\xff" * padding


class TestProgram:
    def test_drops_just_those_on_the_list(self) -> None:
        machine = Machine([2, 5, 6, 100])
        fates = [machine.run(frame(1448)) for _ in range(8)]
        assert fates == [NEXT, GONE, NEXT, NEXT, GONE, GONE, NEXT, NEXT]
        assert machine.counted == 8
        assert machine.numbers == {2: 1, 5: 1, 6: 1, 100: 0}

    @pytest.mark.parametrize(
        "other",
        [
            frame(0),
            frame(0, tcp_words=13, padding=2),
            frame(0, padding=6),
            frame(900, protocol=17),
            frame(56, protocol=1),
            frame(900, fragment=185),
        ],
        ids=["acknowledgement", "with options", "padded", "UDP", "ICMP", "rest of a fragmented one"],
    )
    def test_leaves_all_other_packets_alone(self, other: bytes) -> None:
        machine = Machine([1])
        assert [machine.run(other) for _ in range(3)] == [NEXT] * 3
        assert machine.counted == 0
        assert machine.run(frame(1)) == GONE

    @pytest.mark.parametrize("flags", [0x4000, 0x2000], ids=["do not fragment", "first fragment"])
    def test_reads_the_header_where_there_is_one(self, flags: int) -> None:
        assert Machine([1]).run(frame(10, fragment=flags)) == GONE

    @given(st.integers(0, 9000), st.integers(5, 15), st.integers(5, 15), st.integers(0, 60))
    def test_headers_have_any_length(self, payload: int, ip_words: int, tcp_words: int, padding: int) -> None:
        machine = Machine([1])
        fate = machine.run(frame(payload, ip_words=ip_words, tcp_words=tcp_words, padding=padding))
        assert (fate == GONE) == (payload > 0) == (machine.counted == 1)

    @given(st.binary(max_size=60))
    def test_any_bytes_pass_or_count(self, torn: bytes) -> None:
        machine = Machine([])
        assert machine.run(bytes(14) + torn) in (0, NEXT)
        assert machine.counted <= 1


class TestList:
    @pytest.mark.parametrize("numbers", [[0], [-5, 3], [1, 2**63]])
    def test_numbers_are_counted_from_1(self, numbers: list[int]) -> None:
        with pytest.raises(ValueError, match="packets are counted from 1"):
            droplist.DropList(numbers)

    def test_has_a_most(self) -> None:
        with pytest.raises(ValueError, match="at most 100000 packets can be dropped by number, not 100001"):
            droplist.DropList(range(1, 100_002))

    @pytest.mark.parametrize(
        ("number", "what"),
        [
            (errno.ENOSYS, "this kernel has no bpf(2); it needs CONFIG_BPF_SYSCALL=y"),
            (errno.EPERM, "bpf(2) is not permitted; it takes root"),
        ],
    )
    def test_a_kernel_without_it_says_what_it_lacks(
        self, monkeypatch: pytest.MonkeyPatch, number: int, what: str
    ) -> None:
        monkeypatch.setattr(bpf._libc, "syscall", lambda *_: -1, raising=False)
        monkeypatch.setattr(bpf.ctypes, "get_errno", lambda: number)
        with pytest.raises(
            droplist.NotAttachedError, match=r"^lo: packets cannot be dropped by number"
        ) as told:
            droplist.attach("lo", [1])
        assert what in str(told.value)

    def test_an_interface_has_to_be_there(self) -> None:
        with pytest.raises(droplist.NotAttachedError, match=r"^nowhere0: there is no such interface here"):
            droplist.attach("nowhere0", [1])

    @pytest.mark.parametrize(
        ("number", "what"),
        [
            (errno.ENOENT, "this kernel has no cls_bpf; it needs CONFIG_NET_CLS_BPF and CONFIG_NET_CLS_ACT"),
            (errno.EOPNOTSUPP, "this kernel has no cls_bpf; it needs CONFIG_NET_CLS_BPF"),
            (errno.EEXIST, "one list is at work there already"),
            (errno.EPERM, "Operation not permitted"),
        ],
    )
    def test_a_refusal_says_what_is_missing(self, number: int, what: str) -> None:
        refused = OSError(number, "the kernel refused a netlink request")
        told = droplist._not_attached("eth0", "cls_bpf", "CONFIG_NET_CLS_BPF", refused)
        assert str(told).startswith("eth0: packets cannot be dropped by number: ")
        assert what in str(told)
