"""The metrics of RFC 6349, the framework for TCP throughput testing.

Rates bit/s, sizes bytes, times s.
"""

from __future__ import annotations

from lab.model.path import payload_share


def ideal_throughput_bps(rate_bps: float, mtu_bytes: int) -> float:
    """Return the most payload that the bottleneck carries, framed as the shaper counts: section 4.1."""
    return rate_bps * payload_share(mtu_bytes)


def transfer_time_ratio(actual_s: float, delivered_bytes: float, ideal_bps: float) -> float:
    """Return how many times the ideal time a transfer took: section 4.1."""
    return actual_s / (delivered_bytes * 8 / ideal_bps)


def efficiency_percent(sent_bytes: float, retransmitted_bytes: float) -> float:
    """Return the share of the bytes sent that were not sent again, per cent: section 4.2."""
    return 100 * (sent_bytes - retransmitted_bytes) / sent_bytes


def buffer_delay_percent(loaded_rtt_s: float, base_rtt_s: float) -> float:
    """Return by how much the RTT rose during the transfer, per cent of the base RTT: section 4.3."""
    return 100 * (loaded_rtt_s - base_rtt_s) / base_rtt_s
