"""Numbers from records: goodput over the whole load and over its steady part.

Goodput counts what the receiving application has read: tcpi_bytes_received
less idiag_rqueue, what is received and still waits. The load begins with the
first data sent, which tcpi_busy_time dates to a tick of the kernel's clock.
The steady part is what `lab.steady` leaves of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab import tcpinfo, traffic
from lab.errors import MeasurementError

GREETING_BYTES = 100
"""More than iperf3's cookie of 37 bytes, less than any load."""

Floats = NDArray[np.float64]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Delivery:
    """What applications had read at which instant: t_s rising, shape (n,); bytes, shape (n,)."""

    t_s: Floats
    delivered: Floats

    def at(self, t_s: float) -> float:
        """Return the bytes delivered by an instant, linear between samples."""
        return float(np.interp(t_s, self.t_s, self.delivered))

    def rate_bps(self, from_s: float, to_s: float) -> float:
        """Return the mean goodput between two instants, bit/s."""
        return (self.at(to_s) - self.at(from_s)) * 8 / (to_s - from_s)


@dataclass(frozen=True)
class Flow:
    """One flow as measured. Times from the start of the recording, s.

    ended_s: when its own time was over: its last byte read, its stop, or None for the load's end.
    finished_s: when the last byte of a flow with a size was read.
    """

    planned: traffic.Flow
    cc: str
    delivery: Delivery
    first_data_s: float
    retransmits: int
    bytes_sent: int
    bytes_retrans: int
    ecn_marks: int
    min_rtt_s: float | None
    rtt_s: float | None
    finished_s: float | None

    @property
    def number(self) -> int:
        """Its number."""
        return self.planned.number

    @property
    def ended_s(self) -> float | None:
        """When its own time was over; None for the end of the load."""
        return self.finished_s if self.finished_s is not None else self.planned.stop_s


def flows(samples: Sequence[Row], outcome: Mapping[str, Any], planned: Sequence[traffic.Flow]) -> list[Flow]:
    """Return every flow of a point.

    Raises MeasurementError for a flow that was there from the start, lasted, and
    left no samples or sent no data; of one that came later, or that was done and
    gone between two samples, the workload's own account is enough.
    """
    by_flow: dict[int, dict[str, list[Row]]] = {}
    for row in samples:
        # a socket whose handshake is not through has no tcp_info yet
        if "tcpi_bytes_received" in row:
            by_flow.setdefault(row["flow"], {"sender": [], "receiver": []})[row["end"]].append(row)
    nothing: dict[str, list[Row]] = {"sender": [], "receiver": []}
    told = {entry["flow"]: entry for entry in outcome["workload"]["flows"]}
    return [
        _flow(one, by_flow.get(one.number, nothing), told[one.number], outcome["start_ns"]) for one in planned
    ]


def _flow(
    planned: traffic.Flow, rows: Mapping[str, list[Row]], told: Mapping[str, Any], start_ns: int
) -> Flow:
    sending, receiving = rows["sender"], rows["receiver"]
    fleeting = planned.start_s > 0 or told["finished_ns"] is not None
    if not fleeting and (not sending or not receiving):
        raise MeasurementError(f"flow {planned.number} left no samples at one of its ends")
    first_data_s = _first_data_s(sending)
    if first_data_s is None:
        if not fleeting:
            raise MeasurementError(f"flow {planned.number} sent no data")
        first_data_s = planned.start_s
    finished_s = None if told["finished_ns"] is None else (told["finished_ns"] - start_ns) / 1e9
    info = tcpinfo.decode_info(bytes.fromhex(told["tcp_info"])) if told.get("tcp_info") else {}
    last: Row = {**(sending[-1] if sending else {}), **info}
    rtts = [row["tcpi_min_rtt"] for row in (*sending, info) if row.get("tcpi_min_rtt")]
    smoothed = [row["tcpi_rtt"] for row in (sending or [info]) if row.get("tcpi_rtt")]
    return Flow(
        planned=planned,
        cc=str(last.get("cc") or planned.cc),
        delivery=_delivery(receiving, first_data_s, finished_s, planned.size_bytes),
        first_data_s=first_data_s,
        retransmits=last.get("tcpi_total_retrans") or 0,
        bytes_sent=last.get("tcpi_bytes_sent") or 0,
        bytes_retrans=last.get("tcpi_bytes_retrans") or 0,
        ecn_marks=last.get("tcpi_delivered_ce") or 0,
        min_rtt_s=min(rtts) / 1e6 if rtts else None,
        rtt_s=float(np.median(smoothed)) / 1e6 if smoothed else None,
        finished_s=finished_s,
    )


def _delivery(
    receiving: Sequence[Row], first_data_s: float, finished_s: float | None, size_bytes: int | None
) -> Delivery:
    """Return what the receiver had read over time, from the first data on."""
    before = [row for row in receiving if row["t_s"] <= first_data_s]
    base = before[-1]["tcpi_bytes_received"] - before[-1]["idiag_rqueue"] if before else 0
    after = [row for row in receiving if row["t_s"] > first_data_s]
    times = [first_data_s, *(row["t_s"] for row in after)]
    counts = [0, *(max(0, row["tcpi_bytes_received"] - row["idiag_rqueue"] - base) for row in after)]
    if finished_s is not None and size_bytes is not None:
        kept = [(t, min(n, size_bytes)) for t, n in zip(times, counts, strict=True) if t < finished_s]
        times, counts = [t for t, _ in kept], [n for _, n in kept]
        times.append(finished_s)
        counts.append(size_bytes)
    return Delivery(np.array(times), np.array(counts, dtype=np.float64))


def _first_data_s(sending: Sequence[Row]) -> float | None:
    """Return when a sender's load began, None if it never did.

    The time that it was busy since the sample before dates it. A few bytes of
    an application's greeting are not the load.
    """
    busy_us = 0
    for row in sending:
        if row["tcpi_bytes_sent"] > GREETING_BYTES:
            return float(row["t_s"] - (row["tcpi_busy_time"] - busy_us) / 1e6)
        busy_us = row["tcpi_busy_time"]
    return None


def total(parts: Sequence[Flow]) -> Delivery:
    """Return the delivery of all flows together, on the union of their instants. Of none it is nothing."""
    if not parts:
        return Delivery(np.zeros(1), np.zeros(1))
    t_s = np.unique(np.concatenate([flow.delivery.t_s for flow in parts]))
    delivered = sum(
        (np.interp(t_s, flow.delivery.t_s, flow.delivery.delivered) for flow in parts), np.zeros_like(t_s)
    )
    return Delivery(t_s, delivered)


def loaded_rtt_s(samples: Sequence[Row], from_s: float, to_s: float) -> float | None:
    """Return the median of the smoothed RTTs of all senders between two instants, s; None without any."""
    seen = [
        row["tcpi_rtt"]
        for row in samples
        if row["end"] == "sender" and from_s <= row["t_s"] <= to_s and row.get("tcpi_rtt")
    ]
    return float(np.median(seen)) / 1e6 if seen else None
