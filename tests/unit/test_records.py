"""From raw frames to rows: whose sample it is, what is left out, and a digest of all of it."""

from __future__ import annotations

import copy
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import records, tcpinfo
from lab.agent import frames
from lab.errors import MeasurementError

OUTCOME: dict[str, Any] = {
    "nodes": ["snd", "r1", "rcv"],
    "interfaces": {"snd": {"snd-eth0": 2}, "r1": {"r1-eth0": 2, "r1-eth1": 3}, "rcv": {"rcv-eth0": 2}},
    "workload": {"client": "sender", "flows": [{"flow": 0, "port": 40000}, {"flow": 1, "port": 40001}]},
}
SND, R1, RCV = 0, 1, 2


def attribute(kind: int, payload: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(payload), kind) + payload + b"\0" * (-len(payload) % 4)


def socket(local: int, remote: int, cc: bytes = b"cubic") -> bytes:
    body = struct.pack(">4xHH48xII8x", local, remote, 0, 0) + attribute(4, cc + b"\0")
    return struct.pack("=IHHII", 16 + len(body), 20, 2, 1, 0) + body


def queue(ifindex: int, kind: bytes, drops: int = 0, backlog: int = 0, handle: int = 0x100000) -> bytes:
    stats = attribute(1, struct.pack("=QIxxxx", 1000, 10))
    stats += attribute(3, struct.pack("=IIIII", 2, backlog, drops, 0, 5))
    body = (
        struct.pack("=BxxxiIII", 0, ifindex, handle, 0, 0) + attribute(1, kind + b"\0") + attribute(7, stats)
    )
    return struct.pack("=IHHII", 16 + len(body), 36, 2, 1, 0) + body


def decode(data: bytes, client: str = "sender") -> records.Records:
    outcome = {**OUTCOME, "workload": {**OUTCOME["workload"], "client": client}}
    return records.decode(data, outcome, bottlenecks=("r1-eth1",))


class TestFrames:
    @given(
        st.lists(
            st.tuples(
                st.integers(0, 255),
                st.integers(0, 65535),
                st.integers(-(2**63), 2**63 - 1),
                st.binary(max_size=50),
            )
        )
    )
    def test_read_back_as_packed(self, parts: list[tuple[int, int, int, bytes]]) -> None:
        assert list(frames.unpack(b"".join(frames.pack(*part) for part in parts))) == parts

    @given(st.integers(1, 39))
    def test_torn_file_is_refused(self, missing: int) -> None:
        data = frames.pack(1, 0, 0, b"whole") + frames.pack(1, 0, 10**9, b"x" * 24)
        with pytest.raises(ValueError, match="torn at byte"):
            list(frames.unpack(data[:-missing]))

    @given(
        st.sampled_from(frames.DELAY_KINDS),
        st.integers(-1, 2**31 - 1),
        st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-1, 2**63 - 1)), max_size=20),
    )
    def test_delays_read_back_as_packed(self, kind: str, flow: int, taken: list[tuple[int, int]]) -> None:
        assert frames.unpack_delays(frames.pack_delays(kind, flow, taken)) == (kind, flow, taken)

    @given(st.integers(1, 39).filter(lambda missing: missing % 16))
    def test_torn_delays_are_refused(self, missing: int) -> None:
        with pytest.raises(ValueError, match=r"delays of [0-9]+ bytes are torn"):
            frames.unpack_delays(frames.pack_delays("udp", -1, [(0, 1), (2, 3)])[:-missing])


class TestSamples:
    def test_belong_to_flow_and_end_by_their_ports(self) -> None:
        data = frames.pack(
            frames.SOCKETS, SND, 1_500_000_000, socket(40001, 5001, b"bbr") + socket(40000, 5001)
        )
        data += frames.pack(frames.SOCKETS, RCV, 1_500_001_000, socket(5001, 40000))
        samples, queues, delays, machine = decode(data)
        assert (queues, delays, machine) == ([], [], [])
        assert [(row["t_s"], row["flow"], row["end"], row["cc"]) for row in samples] == [
            (1.5, 0, "sender", "cubic"),
            (1.5, 1, "sender", "bbr"),
            (1.500001, 0, "receiver", "cubic"),
        ]

    def test_of_a_client_that_receives_have_the_ports_at_its_end(self) -> None:
        data = frames.pack(frames.SOCKETS, SND, 0, socket(80, 40000)) + frames.pack(
            frames.SOCKETS, RCV, 0, socket(40001, 80)
        )
        found = decode(data, client="receiver").samples
        assert [(row["flow"], row["end"]) for row in found] == [(0, "sender"), (1, "receiver")]

    def test_of_all_nodes_come_in_the_order_of_time(self) -> None:
        data = b"".join(
            frames.pack(frames.SOCKETS, node, t_ns, socket(*ports))
            for node, ports in ((SND, (40000, 5001)), (RCV, (5001, 40000)))
            for t_ns in (0, 10**9)
        )
        assert [row["t_s"] for row in decode(data).samples] == [0, 0, 1, 1]

    def test_come_in_the_order_of_flows_and_not_in_the_kernel_s(self) -> None:
        """The kernel's order follows a secret hash; a digest must not."""
        dumps = (socket(40000, 5001) + socket(40001, 5001), socket(40001, 5001) + socket(40000, 5001))
        one, other = (decode(frames.pack(frames.SOCKETS, SND, 0, dump)) for dump in dumps)
        assert one == other

    def test_of_other_connections_are_left_out(self) -> None:
        data = frames.pack(frames.SOCKETS, SND, 0, socket(50000, 5201) + socket(40000, 5201))
        assert [row["flow"] for row in decode(data).samples] == [0]

    def test_carry_every_field_of_the_answer(self) -> None:
        info = attribute(2, bytes(range(200)) + bytes(48))
        body = socket(40000, 5001)[16:] + info
        whole = struct.pack("=IHHII", 16 + len(body), 20, 2, 1, 0) + body
        ((row,), *_) = decode(frames.pack(frames.SOCKETS, SND, 0, whole))
        (direct,) = tcpinfo.decode(whole)
        assert {name: row[name] for name in direct.values} == direct.values
        assert row["tcpi_rtt"] == int.from_bytes(bytes(range(68, 72)), "little")


class TestQueues:
    def test_have_names_and_counters(self) -> None:
        data = frames.pack(
            frames.QUEUES, R1, 2 * 10**9, queue(3, b"bfifo", drops=7, backlog=3028) + queue(2, b"netem")
        )
        samples, queues, delays, machine = decode(data)
        assert (samples, delays, machine) == ([], [], [])
        assert queues[0] == {
            **{"t_s": 2.0, "node": "r1", "interface": "r1-eth1", "kind": "bfifo", "bottleneck": True},
            **{"bytes": 1000, "packets": 10, "qlen_packets": 2, "backlog_bytes": 3028, "drops": 7},
            **{"requeues": 0, "overlimits": 5, "rate_bps": None},
        }
        assert (queues[1]["interface"], queues[1]["kind"], queues[1]["bottleneck"]) == (
            "r1-eth0",
            "netem",
            False,
        )

    @pytest.mark.parametrize("kind", [b"htb", b"noqueue", b"clsact"])
    def test_leave_out_what_holds_no_packets_of_its_own(self, kind: bytes) -> None:
        assert decode(frames.pack(frames.QUEUES, R1, 0, queue(3, kind))).queues == []

    def test_leave_out_a_shaper_and_not_the_queue_below_it(self) -> None:
        dump = queue(3, b"tbf", handle=0x10000) + queue(3, b"codel")
        assert [row["kind"] for row in decode(frames.pack(frames.QUEUES, R1, 0, dump)).queues] == ["codel"]

    def test_keep_a_policer(self) -> None:
        found = decode(frames.pack(frames.QUEUES, R1, 0, queue(3, b"tbf"))).queues
        assert [row["kind"] for row in found] == ["tbf"]

    def test_leave_out_interfaces_that_the_lab_did_not_make(self) -> None:
        assert decode(frames.pack(frames.QUEUES, R1, 0, queue(1, b"fq_codel"))).queues == []

    def test_same_number_on_another_node_is_another_interface(self) -> None:
        data = frames.pack(frames.QUEUES, SND, 0, queue(2, b"pfifo")) + frames.pack(
            frames.QUEUES, R1, 0, queue(2, b"netem")
        )
        assert [row["interface"] for row in decode(data).queues] == ["snd-eth0", "r1-eth0"]


class TestDelays:
    def test_have_seconds_and_null_for_what_was_lost(self) -> None:
        payload = frames.pack_delays("probe", -1, [(0, 5_000_000), (10**9, -1)])
        assert decode(frames.pack(frames.DELAYS, 0, 0, payload)).delays == [
            {"kind": "probe", "flow": None, "t_s": 0.0, "delay_s": 0.005},
            {"kind": "probe", "flow": None, "t_s": 1.0, "delay_s": None},
        ]

    def test_of_a_request_name_its_flow(self) -> None:
        payload = frames.pack_delays("request", 3, [(0, 1)])
        ((row,),) = [decode(frames.pack(frames.DELAYS, 0, 0, payload)).delays]
        assert (row["kind"], row["flow"]) == ("request", 3)


class TestDamage:
    PARTS = (
        frames.pack(frames.SOCKETS, SND, 0, socket(40000, 5001)),
        frames.pack(frames.QUEUES, R1, 0, queue(3, b"bfifo")),
        frames.pack(frames.DELAYS, 0, 0, frames.pack_delays("udp", -1, [(0, 1)])),
    )
    WHOLE = b"".join(PARTS)
    BETWEEN = (len(PARTS[0]), len(PARTS[0] + PARTS[1]))

    @given(st.integers(1, len(WHOLE) - 1))
    def test_cut_file_is_refused(self, cut: int) -> None:
        if cut in self.BETWEEN:
            assert len(decode(self.WHOLE[:cut]).samples) == 1
            return
        with pytest.raises(MeasurementError, match="the records of this point are damaged: "):
            decode(self.WHOLE[:cut])

    @given(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=6))
    def test_damaged_file_breaks_in_no_other_way(self, at: int, noise: bytes) -> None:
        try:
            decode(self.WHOLE[:at] + noise + self.WHOLE[at + len(noise) :])
        except MeasurementError:
            return

    def test_node_that_was_not_reported(self) -> None:
        with pytest.raises(MeasurementError, match="damaged"):
            decode(frames.pack(frames.SOCKETS, 9, 0, b""))


FLOWS = [{"flow": 0, "goodput_bps": 1e9, "finished_s": None}]
SAMPLES = [{"t_s": 0.05, "flow": 0, "end": "sender", "tcpi_rtt": 200_000, "tcpi_snd_ssthresh": None}]
QUEUES = [{"t_s": 0.05, "node": "r1", "bottleneck": True, "drops": 0}]
DELAYS = [{"kind": "probe", "t_s": 0.05, "delay_s": None}]
TABLES = (FLOWS, SAMPLES, QUEUES, DELAYS)


def digest(*tables: list[records.Row]) -> str:
    return records.digest(tables[0], records.Records(*tables[1:]))


class TestDigest:
    def test_stays(self) -> None:
        """Equal records, equal digest, on any machine and in any version: stored digests are compared."""
        assert digest(*TABLES) == "ebbac9a5ce387436c8b7684ea7ef284132b381a0738874e8fd657ad28900aaec"

    def test_does_not_depend_on_the_order_of_columns(self) -> None:
        turned = [[dict(reversed(row.items())) for row in rows] for rows in TABLES]
        assert digest(*turned) == digest(*TABLES)

    @pytest.mark.parametrize(
        ("table", "column"), [(number, column) for number, rows in enumerate(TABLES) for column in rows[0]]
    )
    def test_changes_with_any_value(self, table: int, column: str) -> None:
        changed = copy.deepcopy(TABLES)
        changed[table][0][column] = 12345
        assert digest(*changed) != digest(*TABLES)

    def test_changes_with_the_last_bit_of_a_float(self) -> None:
        changed = [{**FLOWS[0], "goodput_bps": 1e9 + 2**-23}]
        assert digest(changed, *TABLES[1:]) != digest(*TABLES)

    def test_tells_tables_and_rows_apart(self) -> None:
        one: list[records.Row] = [{"flow": 0}]
        arrangements = [[one if at == which else [] for at in range(4)] for which in range(5)]
        arrangements.append([one * 2, [], [], []])
        assert len({digest(*tables) for tables in arrangements}) == len(arrangements)

    def test_null_is_not_zero(self) -> None:
        assert digest([], [{"a": None}], [], []) != digest([], [{"a": 0}], [], [])
