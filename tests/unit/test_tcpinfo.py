"""inet_diag answers: every field where the kernel puts it, null where it has none, torn bytes refused."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import tcpinfo

AssertInC = Callable[[list[str], dict[str, int]], None]

# (offset, size) in struct tcp_info of Linux 6.12, written out from include/uapi/linux/tcp.h.
TCP_INFO = {
    **{
        f"tcpi_{name}": (offset, 1)
        for offset, name in enumerate(
            ("state", "ca_state", "retransmits", "probes", "backoff", "options", "wscale", "flags")
        )
    },
    **{
        f"tcpi_{name}": (8 + 4 * number, 4)
        for number, name in enumerate(
            (
                *("rto", "ato", "snd_mss", "rcv_mss", "unacked", "sacked", "lost", "retrans", "fackets"),
                *("last_data_sent", "last_ack_sent", "last_data_recv", "last_ack_recv", "pmtu"),
                *("rcv_ssthresh", "rtt", "rttvar", "snd_ssthresh", "snd_cwnd", "advmss", "reordering"),
                *("rcv_rtt", "rcv_space", "total_retrans"),
            )
        )
    },
    "tcpi_pacing_rate": (104, 8),
    "tcpi_max_pacing_rate": (112, 8),
    "tcpi_bytes_acked": (120, 8),
    "tcpi_bytes_received": (128, 8),
    "tcpi_segs_out": (136, 4),
    "tcpi_segs_in": (140, 4),
    "tcpi_notsent_bytes": (144, 4),
    "tcpi_min_rtt": (148, 4),
    "tcpi_data_segs_in": (152, 4),
    "tcpi_data_segs_out": (156, 4),
    "tcpi_delivery_rate": (160, 8),
    "tcpi_busy_time": (168, 8),
    "tcpi_rwnd_limited": (176, 8),
    "tcpi_sndbuf_limited": (184, 8),
    "tcpi_delivered": (192, 4),
    "tcpi_delivered_ce": (196, 4),
    "tcpi_bytes_sent": (200, 8),
    "tcpi_bytes_retrans": (208, 8),
    "tcpi_dsack_dups": (216, 4),
    "tcpi_reord_seen": (220, 4),
    "tcpi_rcv_ooopack": (224, 4),
    "tcpi_snd_wnd": (228, 4),
    "tcpi_rcv_wnd": (232, 4),
    "tcpi_rehash": (236, 4),
    "tcpi_total_rto": (240, 2),
    "tcpi_total_rto_recoveries": (242, 2),
    "tcpi_total_rto_time": (244, 4),
}
BITFIELDS = {"tcpi_wscale", "tcpi_flags"}  # C has no offset for them
BYTES_6_12, BYTES_6_1 = 248, 232
SINCE_6_2 = {name for name, (offset, _size) in TCP_INFO.items() if offset >= BYTES_6_1}

SKMEM = {
    f"skmem_{name}": (4 * number, 4)
    for number, name in enumerate(
        (
            *("rmem_alloc", "rcvbuf", "wmem_alloc", "sndbuf", "fwd_alloc"),
            *("wmem_queued", "optmem", "backlog", "drops"),
        )
    )
}
BBR = {
    f"bbr_{name}": (4 * number, 4)
    for number, name in enumerate(("bw_lo", "bw_hi", "min_rtt", "pacing_gain", "cwnd_gain"))
}
VEGAS = {
    f"tcpv_{name}": (4 * number, 4) for number, name in enumerate(("enabled", "rttcnt", "rtt", "minrtt"))
}
DCTCP = {
    "dctcp_enabled": (0, 2),
    "dctcp_ce_state": (2, 2),
    "dctcp_alpha": (4, 4),
    "dctcp_ab_ecn": (8, 4),
    "dctcp_ab_tot": (12, 4),
}
INFO, VEGASINFO, CONG, SKMEMINFO, DCTCPINFO, BBRINFO = 2, 3, 4, 7, 9, 16
BLOCKS = {INFO: TCP_INFO, SKMEMINFO: SKMEM, BBRINFO: BBR, VEGASINFO: VEGAS, DCTCPINFO: DCTCP}


def attribute(kind: int, payload: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(payload), kind) + payload + b"\0" * (-len(payload) % 4)


def message(
    attributes: bytes = b"", local: int = 40000, remote: int = 5001, queues: tuple[int, int] = (0, 0)
) -> bytes:
    """Return one SOCK_DIAG_BY_FAMILY message: struct nlmsghdr, struct inet_diag_msg, attributes."""
    diag = struct.pack("=BBBB", 2, 1, 0, 0) + struct.pack(">HH", local, remote) + bytes(44)
    diag += struct.pack("=IIIII", 0, *queues, 1000, 4711)
    body = diag + attributes
    return struct.pack("=IHHII", 16 + len(body), 20, 2, 1, 0) + body


def info(size: int = BYTES_6_12, **values: int) -> bytes:
    """Return a struct tcp_info of `size` bytes with these fields set."""
    data = bytearray(BYTES_6_12)
    for name, value in values.items():
        offset, width = TCP_INFO[name]
        data[offset : offset + width] = value.to_bytes(width, "little")
    return bytes(data[:size])


def decode_one(attributes: bytes, **parts: object) -> tcpinfo.SocketSample:
    (sample,) = tcpinfo.decode(message(attributes, **parts))  # type: ignore[arg-type]
    return sample


class TestSocket:
    def test_ports_and_queues(self) -> None:
        sample = decode_one(b"", local=443, remote=51000, queues=(7, 2**32 - 1))
        assert (sample.local_port, sample.remote_port, sample.cc) == (443, 51000, "")
        assert sample.values == {"idiag_rqueue": 7, "idiag_wqueue": 2**32 - 1}

    @pytest.mark.parametrize("name", ["cubic", "bbr", "a_name_of_15_by"])
    def test_congestion_control(self, name: str) -> None:
        assert decode_one(attribute(CONG, name.encode() + b"\0")).cc == name

    def test_every_socket_of_a_dump(self) -> None:
        done = struct.pack("=IHHIIi", 20, 3, 2, 1, 0, 0)
        dump = message(local=1) + message(local=2) + done
        assert [sample.local_port for sample in tcpinfo.decode(dump)] == [1, 2]

    def test_nothing_of_an_empty_dump(self) -> None:
        assert list(tcpinfo.decode(b"")) == []


class TestFields:
    @pytest.mark.parametrize(
        ("block", "name"), [(block, name) for block, fields in BLOCKS.items() for name in fields]
    )
    def test_each_is_where_the_kernel_puts_it(self, block: int, name: str) -> None:
        """Only this field's bytes are set, all different: it alone must show them."""
        fields = BLOCKS[block]
        offset, width = fields[name]
        end = max(start + size for start, size in fields.values())
        data = bytearray(end)
        data[offset : offset + width] = bytes(range(1, width + 1))
        values = decode_one(attribute(block, bytes(data))).values
        assert values.pop(name) == int.from_bytes(bytes(range(1, width + 1)), "little")
        assert {values[other] for other in fields if other != name} <= {0}

    def test_are_all_of_the_table(self) -> None:
        mine = {"idiag_rqueue", "idiag_wqueue"}.union(*BLOCKS.values())
        assert {field.name for field in tcpinfo.FIELDS} == mine
        assert len(tcpinfo.FIELDS) == len(mine)

    def test_have_a_unit_that_the_name_does_not_contradict(self) -> None:
        units = {field.name: field.unit for field in tcpinfo.FIELDS}
        assert {units[name] for name in units if "bytes" in name} == {"bytes"}
        assert {units[name] for name in units if name.endswith("_rate")} == {"bytes/s"}
        assert {units["tcpi_rtt"], units["tcpi_min_rtt"], units["tcpi_busy_time"]} == {"us"}
        assert units["tcpi_snd_cwnd"] == units["tcpi_snd_ssthresh"] == "segments"


class TestAbsent:
    def test_of_a_shorter_struct_only_what_it_has(self) -> None:
        values = decode_one(attribute(INFO, info(BYTES_6_1, tcpi_snd_wnd=65535, tcpi_rcv_wnd=9))).values
        assert values["tcpi_snd_wnd"] == 65535
        assert not SINCE_6_2 & values.keys()
        assert set(TCP_INFO) - SINCE_6_2 <= values.keys()

    def test_of_a_longer_struct_the_rest_is_left(self) -> None:
        longer = info(tcpi_total_rto_time=5) + b"\xff" * 64
        same = decode_one(attribute(INFO, longer[:BYTES_6_12]))
        assert decode_one(attribute(INFO, longer)) == same

    def test_field_cut_in_half_is_not_read(self) -> None:
        values = decode_one(attribute(INFO, info(TCP_INFO["tcpi_delivery_rate"][0] + 4))).values
        assert "tcpi_delivery_rate" not in values
        assert "tcpi_data_segs_out" in values

    def test_blocks_that_a_kernel_does_not_send(self) -> None:
        assert decode_one(attribute(CONG, b"cubic\0")).values.keys() == {"idiag_rqueue", "idiag_wqueue"}

    @pytest.mark.parametrize(
        ("name", "none"),
        [
            ("tcpi_snd_ssthresh", 0x7FFFFFFF),  # TCP_INFINITE_SSTHRESH
            ("tcpi_min_rtt", 2**32 - 1),  # ~0U: no sample yet
            ("tcpi_pacing_rate", 2**64 - 1),  # ~0ULL: not paced
            ("tcpi_max_pacing_rate", 2**64 - 1),
        ],
    )
    def test_value_that_stands_for_none(self, name: str, none: int) -> None:
        assert decode_one(attribute(INFO, info(**{name: none}))).values[name] is None
        assert decode_one(attribute(INFO, info(**{name: none - 1}))).values[name] == none - 1

    def test_other_fields_keep_their_largest_value(self) -> None:
        largest = {name: 2 ** (8 * width) - 1 for name, (_offset, width) in TCP_INFO.items()}
        values = decode_one(attribute(INFO, info(**largest))).values
        assert {name for name, value in values.items() if value is None} == {
            *("tcpi_min_rtt", "tcpi_pacing_rate", "tcpi_max_pacing_rate"),
        }


class TestTorn:
    WHOLE = b"".join(
        message(
            attribute(INFO, info(tcpi_rtt=200000, tcpi_bytes_acked=10**9))
            + attribute(CONG, b"bbr\0")
            + attribute(SKMEMINFO, bytes(range(36)))
            + attribute(BBRINFO, bytes(20)),
            local=port,
        )
        for port in (40000, 40001)
    )
    EACH = len(WHOLE) // 2

    @given(st.integers(0, len(WHOLE)))
    def test_cut_dump_is_refused_or_ends_with_a_whole_socket(self, cut: int) -> None:
        try:
            ports = [sample.local_port for sample in tcpinfo.decode(self.WHOLE[:cut])]
        except ValueError:
            assert cut % self.EACH
        else:
            assert cut % self.EACH == 0
            assert ports == [40000, 40001][: cut // self.EACH]

    @given(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=8))
    def test_damaged_dump_breaks_in_no_other_way(self, at: int, noise: bytes) -> None:
        damaged = self.WHOLE[:at] + noise + self.WHOLE[at + len(noise) :]
        try:
            list(tcpinfo.decode(damaged))
        except ValueError:
            return

    @pytest.mark.parametrize("size", [0, 4, 56, 64, 71])
    def test_socket_that_is_too_short(self, size: int) -> None:
        with pytest.raises(ValueError, match=f"a socket of {size} bytes is torn"):
            list(tcpinfo.decode(struct.pack("=IHHII", 16 + size, 20, 2, 1, 0) + bytes(size)))


class TestAgainstTheKernelsHeaders:
    """The headers of this machine may be older than 6.12; what they have must be where it is here."""

    @staticmethod
    def fields() -> list[str]:
        """Return the fields of struct tcp_info, in the order of this machine's header, without bit fields."""
        compiler = shutil.which("gcc")
        assert compiler is not None
        source = subprocess.run(
            [compiler, "-E", "-x", "c", "-"],
            input="#include <linux/tcp.h>\n",
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        found = re.search(r"struct tcp_info \{(.*?)\};", source, re.DOTALL)
        assert found is not None
        return re.findall(r"__u\d+\s+(tcpi_\w+);", found[1])

    def test_tcp_info(self, assert_in_c: AssertInC) -> None:
        in_header = [name for name in self.fields() if name in TCP_INFO]
        assert len(in_header) > 40
        facts = {f"offsetof(struct tcp_info, {name})": TCP_INFO[name][0] for name in in_header}
        facts |= {f"sizeof(((struct tcp_info *)0)->{name})": TCP_INFO[name][1] for name in in_header}
        assert_in_c(["linux/tcp.h"], facts)

    def test_tcp_info_is_whole(self, assert_in_c: AssertInC) -> None:
        """Every field of the header is in our table, in the same place of the list, or newer than it."""
        del assert_in_c  # asked for because it needs the compiler
        in_header = self.fields()
        ours = [name for name in TCP_INFO if name not in BITFIELDS]
        shorter = min(len(ours), len(in_header))
        assert in_header[:shorter] == ours[:shorter]

    def test_other_structs(self, assert_in_c: AssertInC) -> None:
        facts = {
            "sizeof(struct inet_diag_msg)": 72,
            "offsetof(struct inet_diag_msg, idiag_rqueue)": 56,
            "offsetof(struct inet_diag_msg, idiag_wqueue)": 60,
            "offsetof(struct inet_diag_msg, id.idiag_sport)": 4,
            "offsetof(struct inet_diag_msg, id.idiag_dport)": 6,
        }
        for kind, fields in (("tcp_bbr_info", BBR), ("tcpvegas_info", VEGAS), ("tcp_dctcp_info", DCTCP)):
            facts |= {f"offsetof(struct {kind}, {name})": at for name, (at, _size) in fields.items()}
        facts |= {
            f"INET_DIAG_{name}": number
            for name, number in (
                *(("INFO", INFO), ("VEGASINFO", VEGASINFO), ("CONG", CONG), ("SKMEMINFO", SKMEMINFO)),
                *(("DCTCPINFO", DCTCPINFO), ("BBRINFO", BBRINFO)),
            )
        }
        assert_in_c(["linux/inet_diag.h"], facts)
        memory = {
            "skmem_wmem_alloc": "SK_MEMINFO_WMEM_ALLOC",
            "skmem_rcvbuf": "SK_MEMINFO_RCVBUF",
            "skmem_sndbuf": "SK_MEMINFO_SNDBUF",
            "skmem_wmem_queued": "SK_MEMINFO_WMEM_QUEUED",
            "skmem_drops": "SK_MEMINFO_DROPS",
        }
        assert_in_c(["linux/sock_diag.h"], {there: SKMEM[here][0] // 4 for here, there in memory.items()})


class TestOfASocketOption:
    """TCP_INFO, see tcp(7): the struct by itself, as long as the kernel has it."""

    def test_has_the_fields_of_the_struct(self) -> None:
        raw = bytes(range(248))
        assert tcpinfo.decode_info(raw)["tcpi_rtt"] == int.from_bytes(raw[68:72], "little")
        assert set(tcpinfo.decode_info(raw)) <= {field.name for field in tcpinfo.TCP_INFO}

    def test_of_a_shorter_struct_only_what_it_has(self) -> None:
        assert "tcpi_rtt" not in tcpinfo.decode_info(bytes(70))
        assert tcpinfo.decode_info(b"") == {}
