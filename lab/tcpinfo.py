"""inet_diag answers as columns: every field that the kernel gives, under the kernel's own name.

Not here: sockets (see `lab.probes.sockets`) and derived numbers (see
`lab.metrics`). One table of fields serves decoding, the sample columns and the
reference page.

Source: struct inet_diag_msg, struct tcp_info, SK_MEMINFO_*, struct
tcp_bbr_info, tcpvegas_info and tcp_dctcp_info of Linux 6.12. A kernel with a
shorter struct tcp_info gives null in the fields that it lacks; of a longer one
the fields beyond this table are left.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from lab import netlink


class Field(NamedTuple):
    """One field: kernel name, struct code, unit, meaning, and the value that stands for "none"."""

    name: str
    code: str
    unit: str
    meaning: str
    none: int | None = None


_UNSET_SSTHRESH = 0x7FFFFFFF  # TCP_INFINITE_SSTHRESH, include/net/tcp.h
_NO_MIN_RTT = 0xFFFFFFFF

TCP_INFO = (
    Field("tcpi_state", "B", "", "state of the connection, 1 is established"),
    Field("tcpi_ca_state", "B", "", "0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss"),
    Field("tcpi_retransmits", "B", "", "retransmission timeouts in a row, unanswered"),
    Field("tcpi_probes", "B", "", "window probes unanswered"),
    Field("tcpi_backoff", "B", "", "doublings of the retransmission timer"),
    Field("tcpi_options", "B", "bits", "1 timestamps, 2 SACK, 4 window scaling, 8 ECN, 16 ECN seen"),
    Field("tcpi_wscale", "B", "", "window scale: low four bits sent by the peer, high four ours"),
    Field("tcpi_flags", "B", "bits", "1 delivery rate is application limited"),
    Field("tcpi_rto", "I", "us", "retransmission timeout"),
    Field("tcpi_ato", "I", "us", "delayed acknowledgement timeout"),
    Field("tcpi_snd_mss", "I", "bytes", "payload of a full segment sent"),
    Field("tcpi_rcv_mss", "I", "bytes", "payload of a full segment received, estimated"),
    Field("tcpi_unacked", "I", "segments", "sent and not acknowledged cumulatively"),
    Field("tcpi_sacked", "I", "segments", "acknowledged selectively"),
    Field("tcpi_lost", "I", "segments", "held for lost"),
    Field("tcpi_retrans", "I", "segments", "retransmitted and not yet acknowledged"),
    Field("tcpi_fackets", "I", "segments", "unused since Linux 4.15"),
    Field("tcpi_last_data_sent", "I", "ms", "since data was sent"),
    Field("tcpi_last_ack_sent", "I", "ms", "not kept by Linux"),
    Field("tcpi_last_data_recv", "I", "ms", "since data came"),
    Field("tcpi_last_ack_recv", "I", "ms", "since an acknowledgement came"),
    Field("tcpi_pmtu", "I", "bytes", "path MTU"),
    Field("tcpi_rcv_ssthresh", "I", "bytes", "window clamp that the receiver has opened so far"),
    Field("tcpi_rtt", "I", "us", "smoothed RTT"),
    Field("tcpi_rttvar", "I", "us", "RTT variation"),
    Field(
        "tcpi_snd_ssthresh", "I", "segments", "slow start threshold; null before the first", _UNSET_SSTHRESH
    ),
    Field("tcpi_snd_cwnd", "I", "segments", "congestion window"),
    Field("tcpi_advmss", "I", "bytes", "MSS that we advertise"),
    Field("tcpi_reordering", "I", "segments", "reordering degree assumed"),
    Field("tcpi_rcv_rtt", "I", "us", "RTT as the receiver estimates it"),
    Field("tcpi_rcv_space", "I", "bytes", "bytes a RTT that the receiving application read (autotuning)"),
    Field("tcpi_total_retrans", "I", "segments", "retransmitted since the start"),
    Field("tcpi_pacing_rate", "Q", "bytes/s", "pacing rate", 2**64 - 1),
    Field("tcpi_max_pacing_rate", "Q", "bytes/s", "bound of the pacing rate; null for none", 2**64 - 1),
    Field("tcpi_bytes_acked", "Q", "bytes", "acknowledged since the start"),
    Field("tcpi_bytes_received", "Q", "bytes", "received in order since the start"),
    Field("tcpi_segs_out", "I", "segments", "sent since the start, acknowledgements too"),
    Field("tcpi_segs_in", "I", "segments", "received since the start, acknowledgements too"),
    Field("tcpi_notsent_bytes", "I", "bytes", "written by the application, not yet sent"),
    Field("tcpi_min_rtt", "I", "us", "least RTT of the last minutes; null before the first", _NO_MIN_RTT),
    Field("tcpi_data_segs_in", "I", "segments", "received with payload"),
    Field("tcpi_data_segs_out", "I", "segments", "sent with payload"),
    Field("tcpi_delivery_rate", "Q", "bytes/s", "delivery rate, latest"),
    Field("tcpi_busy_time", "Q", "us", "time with data to send or unacknowledged"),
    Field("tcpi_rwnd_limited", "Q", "us", "of it, limited by the receive window"),
    Field("tcpi_sndbuf_limited", "Q", "us", "of it, limited by the send buffer"),
    Field("tcpi_delivered", "I", "segments", "delivered, as acknowledgements tell"),
    Field("tcpi_delivered_ce", "I", "segments", "of them, marked by ECN"),
    Field("tcpi_bytes_sent", "Q", "bytes", "sent since the start, retransmissions too"),
    Field("tcpi_bytes_retrans", "Q", "bytes", "retransmitted since the start"),
    Field("tcpi_dsack_dups", "I", "segments", "duplicates that the peer reported"),
    Field("tcpi_reord_seen", "I", "events", "reordering seen"),
    Field("tcpi_rcv_ooopack", "I", "segments", "received out of order"),
    Field("tcpi_snd_wnd", "I", "bytes", "receive window that the peer advertises"),
    Field("tcpi_rcv_wnd", "I", "bytes", "receive window that we advertise (Linux 6.2 and later)"),
    Field("tcpi_rehash", "I", "events", "path changes tried"),
    Field("tcpi_total_rto", "H", "events", "retransmission timeouts"),
    Field("tcpi_total_rto_recoveries", "H", "events", "recoveries from them"),
    Field("tcpi_total_rto_time", "I", "ms", "time spent in them"),
)

SKMEM = tuple(
    Field(f"skmem_{name}", "I", unit, meaning)
    for name, unit, meaning in (
        ("rmem_alloc", "bytes", "receive buffer in use, overhead included"),
        ("rcvbuf", "bytes", "receive buffer size"),
        ("wmem_alloc", "bytes", "handed down and not yet freed, overhead included"),
        ("sndbuf", "bytes", "send buffer size"),
        ("fwd_alloc", "bytes", "reserved ahead"),
        ("wmem_queued", "bytes", "send buffer in use, overhead included"),
        ("optmem", "bytes", "options"),
        ("backlog", "bytes", "held while the socket is locked"),
        ("drops", "segments", "dropped for want of memory"),
    )
)

SOCKET = (
    Field("idiag_rqueue", "I", "bytes", "received in order, not yet read by the application"),
    Field("idiag_wqueue", "I", "bytes", "written by the application, not yet acknowledged"),
)

_BBR = tuple(
    Field(name, "I", unit, meaning)
    for name, unit, meaning in (
        ("bbr_bw_lo", "bytes/s", "bandwidth estimate, low 32 bits"),
        ("bbr_bw_hi", "bytes/s", "bandwidth estimate, high 32 bits"),
        ("bbr_min_rtt", "us", "least RTT of BBR's window"),
        ("bbr_pacing_gain", "1/256", "pacing gain"),
        ("bbr_cwnd_gain", "1/256", "cwnd gain"),
    )
)
_VEGAS = tuple(
    Field(name, "I", unit, meaning)
    for name, unit, meaning in (
        ("tcpv_enabled", "", "1 while the model is in use"),
        ("tcpv_rttcnt", "segments", "RTT samples"),
        ("tcpv_rtt", "us", "RTT"),
        ("tcpv_minrtt", "us", "least RTT"),
    )
)
_DCTCP = (
    Field("dctcp_enabled", "H", "", "1 while the model is in use"),
    Field("dctcp_ce_state", "H", "", "last mark"),
    Field("dctcp_alpha", "I", "1/1024", "share marked, smoothed"),
    Field("dctcp_ab_ecn", "I", "bytes", "marked in this window"),
    Field("dctcp_ab_tot", "I", "bytes", "acknowledged in this window"),
)

_INET_DIAG_INFO, _VEGASINFO, _CONG, _SKMEMINFO, _DCTCPINFO, _BBRINFO = 2, 3, 4, 7, 9, 16
_BLOCKS = {
    _INET_DIAG_INFO: TCP_INFO,
    _SKMEMINFO: SKMEM,
    _BBRINFO: _BBR,
    _VEGASINFO: _VEGAS,
    _DCTCPINFO: _DCTCP,
}
_MESSAGE_BYTES = 72

FIELDS = SOCKET + TCP_INFO + SKMEM + _BBR + _VEGAS + _DCTCP
"""All numeric fields, in the order of the sample columns; `cc` (text) goes with them."""


def _layout(fields: tuple[Field, ...]) -> list[tuple[Field, int]]:
    """Return each field with its offset, as the compiler lays the struct out."""
    offset, placed = 0, []
    for field in fields:
        size = struct.calcsize(field.code)
        offset = (offset + size - 1) // size * size
        placed.append((field, offset))
        offset += size
    return placed


def _decoder(fields: tuple[Field, ...]) -> list[tuple[str, int, struct.Struct, int | None]]:
    return [
        (field.name, offset, struct.Struct("=" + field.code), field.none) for field, offset in _layout(fields)
    ]


_DECODERS = {kind: _decoder(fields) for kind, fields in _BLOCKS.items()}


def decode_info(raw: bytes) -> dict[str, int | None]:
    """Return the fields of a struct tcp_info, as getsockopt(TCP_INFO) gives it; a shorter one has fewer."""
    return _block(_INET_DIAG_INFO, raw)


def _block(kind: int, raw: bytes) -> dict[str, int | None]:
    values: dict[str, int | None] = {}
    for name, offset, unpack, none in _DECODERS[kind]:
        if offset + unpack.size <= len(raw):
            (value,) = unpack.unpack_from(raw, offset)
            values[name] = None if value == none else value
    return values


class SocketSample(NamedTuple):
    """One socket at one instant: its ports, its congestion control and the fields it has."""

    local_port: int
    remote_port: int
    cc: str
    values: dict[str, int | None]


def decode(data: bytes) -> Iterator[SocketSample]:
    """Yield every socket of a raw inet_diag dump. ValueError where the bytes are torn."""
    for kind, body in netlink.messages(data):
        if kind != netlink.SOCK_DIAG_BY_FAMILY:
            continue
        if len(body) < _MESSAGE_BYTES:
            raise ValueError(f"a socket of {len(body)} bytes is torn")
        local_port, remote_port = struct.unpack_from(">HH", body, 4)
        rqueue, wqueue = struct.unpack_from("=II", body, 56)
        values: dict[str, int | None] = {"idiag_rqueue": rqueue, "idiag_wqueue": wqueue}
        attrs = netlink.attributes(body, _MESSAGE_BYTES)
        for block in _DECODERS:
            if block in attrs:
                values |= _block(block, attrs[block])
        cc = attrs.get(_CONG, b"").rstrip(b"\0").decode()
        yield SocketSample(local_port, remote_port, cc, values)
