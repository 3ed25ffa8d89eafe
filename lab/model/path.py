"""The path: bandwidth-delay product, wire against payload bytes, queueing delay, round trips.

Not here: windows (see `windows`, `sendbuf`) and loss (see `loss`).
"""

from __future__ import annotations

from typing import NamedTuple

from lab.qdisc import ETHERNET_HEADER_BYTES

IP_TCP_HEADER_BYTES = 40
TIMESTAMP_OPTION_BYTES = 12
ETHERNET_EXTRA_BYTES = 24
"""What a real Ethernet adds and no qdisc sees: FCS 4, preamble 8, gap 12. IEEE 802.3."""

BUSY_SHARE = 0.985
"""Of the bottleneck's rate: from here the link counts as busy, predicted or measured."""

ACCESS_FACTOR = 10
FASTEST_ACCESS_BPS = 800e9
"""The lab's hosts send at ten times the bottleneck's rate, as far as there are such interfaces."""


def access_bps(rate_bps: float) -> float:
    """Return the rate of the hosts' own interfaces before a bottleneck of this rate."""
    return min(ACCESS_FACTOR * rate_bps, FASTEST_ACCESS_BPS)


def bdp_bytes(rate_bps: float, rtt_s: float) -> float:
    """Return rate x RTT in wire bytes: what the path holds when full. RFC 6349, section 3.3.1."""
    return rate_bps * rtt_s / 8


def mss_bytes(mtu_bytes: int) -> int:
    """Return the payload of a full segment with timestamps, as Linux sends by default. RFC 7323."""
    return mtu_bytes - IP_TCP_HEADER_BYTES - TIMESTAMP_OPTION_BYTES


def packet_bytes(mtu_bytes: int) -> int:
    """Return a full packet as the shaper counts it: htb on a veth sees 14 bytes of Ethernet header."""
    return mtu_bytes + ETHERNET_HEADER_BYTES


def payload_share(mtu_bytes: int, extra_bytes: int = 0) -> float:
    """Return payload bytes per byte that the shaper counts.

    extra_bytes: what the line adds to each packet besides, such as `ETHERNET_EXTRA_BYTES`.
    """
    return mss_bytes(mtu_bytes) / (packet_bytes(mtu_bytes) + extra_bytes)


def queue_delay_s(queue_bytes: float, rate_bps: float) -> float:
    """Return the delay that a full queue adds, s."""
    return queue_bytes * 8 / rate_bps


class RttRange(NamedTuple):
    """Round trips of a path, s: with an empty queue and with a full one."""

    least_s: float
    most_s: float


def rtt_range(rate_bps: float, rtt_s: float, queue_bytes: float) -> RttRange:
    """Return what round trips the path can show."""
    return RttRange(rtt_s, rtt_s + queue_delay_s(queue_bytes, rate_bps))
