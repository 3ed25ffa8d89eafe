"""The tables of a run: every column with its type, unit and meaning.

One list serves writing, reading and the reference page. Raw columns keep the
kernel's names and units (see `lab.tcpinfo`); derived ones say their unit.
"""

from __future__ import annotations

from typing import NamedTuple

from lab import tcpinfo
from lab.knobs import INTEGER_KNOBS, PATH_KNOBS
from lab.model.limits import MEANINGS

VERSION = 2


class Column(NamedTuple):
    """One column; `kind` is "text", "int" (64 bit), "float", "bool" or "shares" (names to fractions)."""

    name: str
    kind: str
    unit: str
    meaning: str


POINT_COLUMNS = (
    Column("point", "text", "", "identity of the point: digest of its knobs, engine and seed"),
    Column("status", "text", "", "done or failed"),
    Column("reason", "text", "", "why it failed; null for a point that is done"),
    Column("note", "text", "", "what to know before trusting it, such as a knob that this kernel ignores"),
    *(
        Column(name, "int" if name in INTEGER_KNOBS - {"adv_win_scale"} else "text", "", knob.meaning)
        for name, knob in PATH_KNOBS.items()
    ),
    Column("engine", "text", "", "where it ran"),
    Column("seed", "int", "", "seed of everything that chance decides"),
    Column("kernel_release", "text", "", "uname -r of the kernel that ran it"),
    Column("kernel_hz", "int", "Hz", "timer frequency it was built with"),
    Column("kernel_recipe_hash", "text", "", "hash of the recipe that built it"),
    Column("kernel_config_hash", "text", "", "SHA-256 of its configuration"),
    Column("rate_bps", "float", "bit/s", "rate of the bottleneck as configured"),
    Column(
        "measured_rate_bps",
        "float",
        "bit/s",
        "rate of a packet train before the load; null if not measurable",
    ),
    Column("configured_rtt_s", "float", "s", "base RTT as configured"),
    Column("rtt_s", "float", "s", "base RTT as measured on the idle path"),
    Column("bdp_bytes", "float", "bytes", "configured rate times configured base RTT"),
    Column("queue_limit", "int", "", "limit of the bottleneck's queue, in queue_limit_unit"),
    Column("queue_limit_unit", "text", "", "bytes or packets"),
    Column("goodput_bps", "float", "bit/s", "bytes that applications read, over the whole load"),
    Column("steady_goodput_bps", "float", "bit/s", "the same, over the steady part"),
    Column("steady_from_s", "float", "s", "where the steady part begins, from the first data"),
    Column("load_s", "float", "s", "length of the load: from the first data to the end or to the last byte"),
    Column("delivered_bytes", "int", "bytes", "bytes that applications read"),
    Column("retransmits", "int", "segments", "segments sent again, all flows"),
    Column("queue_drops", "int", "packets", "dropped by the bottleneck's queue"),
    Column("queue_max_bytes", "int", "bytes", "longest queue in any sample"),
    Column("loaded_rtt_s", "float", "s", "RTT in the steady part: median of what the senders measured"),
    Column("transfer_time_ratio", "float", "", "times the ideal that the load took, RFC 6349 section 4.1"),
    Column("tcp_efficiency_percent", "float", "%", "bytes not sent again, of all sent, RFC 6349 section 4.2"),
    Column("buffer_delay_percent", "float", "%", "rise of the RTT in the steady part, RFC 6349 section 4.3"),
    Column("predicted_goodput_bps", "float", "bit/s", "what the model gives for the steady part"),
    Column("predicted_mean_goodput_bps", "float", "bit/s", "what it gives over the whole load"),
    Column("predicted_rtt_s", "float", "s", "RTT in the steady part, by the model"),
    Column("limit_predicted", "text", "", "which limit the model says binds for the most part of the load"),
    Column("limit_measured", "text", "", "which limit did, by the records"),
    Column("limit_shares", "shares", "", "share of the transfer that each limit bound, by the records"),
    Column("predicted_shares", "shares", "", "the same by the model"),
    Column("next_limit", "text", "", "which limit would bind if the steady part's were lifted, by the model"),
    Column("margin", "float", "", "how many times the steady goodput would then be"),
    Column("window_bytes", "int", "bytes", "most that the receiver advertises to a flow, by the model"),
    Column("send_window_bytes", "int", "bytes", "what a flow's send buffer keeps in flight, by the model"),
    Column("prediction", "text", "", "the prediction in a sentence"),
    Column("verdict", "text", "", "the verdict in a sentence, and what would give more"),
    Column("virtual_s", "float", "s", "time that passed inside, set-up included"),
    Column("wall_s", "float", "s", "time that passed outside, set-up included"),
    Column("digest", "text", "", "SHA-256 of the flows, samples and queues tables of this point"),
)

FLOW_COLUMNS = (
    Column("point", "text", "", "the point it belongs to"),
    Column("flow", "int", "", "number of the flow, from 0"),
    Column("cc", "text", "", "congestion control that the sender's kernel reports"),
    Column("delivered_bytes", "int", "bytes", "bytes that the application read"),
    Column("goodput_bps", "float", "bit/s", "of it, over the whole load"),
    Column("steady_goodput_bps", "float", "bit/s", "over the steady part of the point"),
    Column("retransmits", "int", "segments", "segments sent again"),
    Column("min_rtt_s", "float", "s", "least RTT that the sender saw"),
    Column(
        "finished_s", "float", "s", "when its last byte was read, from the first data; null if it never ended"
    ),
)

_RAW = {"Q": "int", "I": "int", "H": "int", "B": "int"}
SAMPLE_COLUMNS = (
    Column("point", "text", "", "the point it belongs to"),
    Column("t_s", "float", "s", "instant, from the start of the load"),
    Column("flow", "int", "", "number of the flow"),
    Column("end", "text", "", "sender or receiver"),
    Column("cc", "text", "", "congestion control of this end"),
    *(Column(field.name, _RAW[field.code], field.unit, field.meaning) for field in tcpinfo.FIELDS),
)

QUEUE_COLUMNS = (
    Column("point", "text", "", "the point it belongs to"),
    Column("t_s", "float", "s", "instant, from the start of the load"),
    Column("node", "text", "", "node that holds the queue"),
    Column("interface", "text", "", "its interface"),
    Column("kind", "text", "", "queueing discipline"),
    Column("bottleneck", "bool", "", "whether it is the queue under study"),
    Column("bytes", "int", "bytes", "sent since it was made"),
    Column("packets", "int", "packets", "sent since it was made"),
    Column("qlen_packets", "int", "packets", "waiting"),
    Column("backlog_bytes", "int", "bytes", "waiting"),
    Column("drops", "int", "packets", "dropped since it was made"),
    Column("requeues", "int", "packets", "put back"),
    Column("overlimits", "int", "events", "held back by the shaper"),
)

LIMIT_COLUMNS = (
    Column("point", "text", "", "the point it belongs to"),
    Column("flow", "int", "", "number of the flow"),
    Column("t_s", "float", "s", "end of the interval, from the start of the load"),
    Column("span_s", "float", "s", "its length; the limits add up to it"),
    *(Column(f"{limit}_s", "float", "s", f"of it: {meaning}") for limit, meaning in MEANINGS.items()),
)

TABLES = {
    "points": POINT_COLUMNS,
    "flows": FLOW_COLUMNS,
    "samples": SAMPLE_COLUMNS,
    "queues": QUEUE_COLUMNS,
    "limits": LIMIT_COLUMNS,
}
