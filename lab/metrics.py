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
    """One flow as measured. Times from the first data of the load, s."""

    number: int
    cc: str
    delivery: Delivery
    first_data_s: float
    retransmits: int
    min_rtt_s: float | None
    finished_s: float | None


def flows(samples: Sequence[Row], outcome: Mapping[str, Any], bytes_each: int | None) -> list[Flow]:
    """Return every flow, times still from the start of the recording.

    bytes_each: size of a flow that ends by itself. Raises MeasurementError for
    a flow without samples or without data.
    """
    found = []
    for entry in outcome["workload"]["flows"]:
        # a socket whose handshake is not through has no tcp_info yet
        own = [row for row in samples if row["flow"] == entry["flow"] and "tcpi_bytes_received" in row]
        sending = [row for row in own if row["end"] == "sender"]
        receiving = [row for row in own if row["end"] == "receiver"]
        if not sending or not receiving:
            raise MeasurementError(f"flow {entry['flow']} left no samples at one of its ends")
        first_data_s = _first_data_s(sending)
        if first_data_s is None:
            raise MeasurementError(f"flow {entry['flow']} sent no data")
        before = [row for row in receiving if row["t_s"] <= first_data_s]
        base = before[-1]["tcpi_bytes_received"] - before[-1]["idiag_rqueue"] if before else 0
        later = [row for row in receiving if row["t_s"] > first_data_s]
        times = [first_data_s, *(row["t_s"] for row in later)]
        counts = [0, *(max(0, row["tcpi_bytes_received"] - row["idiag_rqueue"] - base) for row in later)]
        finished_s = None
        if entry["finished_ns"] is not None:
            finished_s = (entry["finished_ns"] - outcome["start_ns"]) / 1e9
            if bytes_each is not None:
                kept = [(t, min(n, bytes_each)) for t, n in zip(times, counts, strict=True) if t < finished_s]
                times, counts = [t for t, _ in kept], [n for _, n in kept]
                times.append(finished_s)
                counts.append(bytes_each)
        last = sending[-1]
        rtts = [row["tcpi_min_rtt"] for row in sending if row.get("tcpi_min_rtt")]
        found.append(
            Flow(
                number=entry["flow"],
                cc=last["cc"],
                delivery=Delivery(np.array(times), np.array(counts, dtype=np.float64)),
                first_data_s=first_data_s,
                retransmits=last["tcpi_total_retrans"],
                min_rtt_s=min(rtts) / 1e6 if rtts else None,
                finished_s=finished_s,
            )
        )
    return found


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
    """Return the delivery of all flows together, on the union of their instants."""
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
