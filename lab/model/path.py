"""The path: bandwidth-delay product, wire against payload bytes, queueing delay.

Not here: windows (see `windows`) and loss (see `loss`).
"""

from __future__ import annotations

from lab.qdisc import ETHERNET_HEADER_BYTES

IP_TCP_HEADER_BYTES = 40
TIMESTAMP_OPTION_BYTES = 12


def bdp_bytes(rate_bps: float, rtt_s: float) -> float:
    """Return rate x RTT in wire bytes: what the path holds when full. RFC 6349, section 3.3.1."""
    return rate_bps * rtt_s / 8


def mss_bytes(mtu_bytes: int) -> int:
    """Return the payload of a full segment with timestamps, as Linux sends by default. RFC 7323."""
    return mtu_bytes - IP_TCP_HEADER_BYTES - TIMESTAMP_OPTION_BYTES


def payload_share(mtu_bytes: int) -> float:
    """Return payload bytes per byte that the shaper counts.

    htb on a veth counts the IP packet and 14 bytes of Ethernet header; a real
    Ethernet adds 24 more (FCS, preamble, gap) that no qdisc sees.
    """
    return mss_bytes(mtu_bytes) / (mtu_bytes + ETHERNET_HEADER_BYTES)


def queue_delay_s(queue_bytes: float, rate_bps: float) -> float:
    """Return the delay that a full queue adds, s."""
    return queue_bytes * 8 / rate_bps
