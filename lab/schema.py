"""The tables of a run: every column with its type, unit and meaning.

One list serves writing, reading and the reference page. Raw columns keep the
kernel's names and units (see `lab.tcpinfo`); derived ones say their unit.
"""

from __future__ import annotations

from typing import NamedTuple

from lab import tcpinfo
from lab.knobs import INTEGER_KNOBS, PATH_KNOBS
from lab.model.limits import MEANINGS

VERSION = 3


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
    Column("utilisation", "float", "", "share of what the bottleneck could carry that it did, over the load"),
    Column("queue_delay_s", "float", "s", "wait in the bottleneck's queue: median over the load"),
    Column("queue_delay_p95_s", "float", "s", "its 95th percentile"),
    Column("queue_delay_p99_s", "float", "s", "its 99th percentile"),
    Column("probe_delay_s", "float", "s", "what the latency probe waited beside the base delay: median"),
    Column("probe_delay_p95_s", "float", "s", "its 95th percentile"),
    Column("probe_delay_p99_s", "float", "s", "its 99th percentile"),
    Column("probe_loss", "float", "", "share of the probe's packets that were lost"),
    Column("retransmit_share", "float", "", "bytes sent again, of all bytes sent"),
    Column("ecn_marks", "int", "packets", "that arrived marked, as receivers told the senders"),
    Column("jain", "float", "", "Jain's fairness index of the flows' goodputs, each over its own time"),
    Column("convergence_s", "float", "s", "from the last flow's start until its rate is fair and stays so"),
    Column("rtt_unfairness", "float", "", "goodput of the shortest RTT's flow over that of the longest"),
    Column("cc_shares", "shares", "", "share of each congestion control in the goodput of the second half"),
    Column("flows_finished", "int", "flows", "that had a size and were read to their end"),
    Column("fct_s", "float", "s", "flow completion time: median of the flows with a size"),
    Column("fct_p99_s", "float", "s", "its 99th percentile"),
    Column("slowdown", "float", "", "completion time over that on an empty path: median"),
    Column("slowdown_p99", "float", "", "its 99th percentile"),
    Column("udp_goodput_bps", "float", "bit/s", "payload of the UDP flow that arrived"),
    Column("udp_loss", "float", "", "share of the UDP flow's packets that were lost"),
    Column("request_s", "float", "s", "from a request to the last byte of its response: median"),
    Column("request_p99_s", "float", "s", "its 99th percentile"),
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
    Column(
        "cpu_busy",
        "float",
        "",
        "share of its time that the busiest CPU of the machine worked; null in virtual time",
    ),
    Column(
        "cpu_softirq",
        "float",
        "",
        "share of its time that a CPU spent on packets (softirq), at most; likewise",
    ),
    Column(
        "timer_late_s",
        "float",
        "s",
        "how late one wake-up in a hundred was on the machine, at least; likewise",
    ),
    Column("virtual_s", "float", "s", "time that passed inside, set-up included"),
    Column("wall_s", "float", "s", "time that passed outside, set-up included"),
    Column("digest", "text", "", "SHA-256 of the flows, samples and queues tables of this point"),
)

FLOW_COLUMNS = (
    Column("point", "text", "", "the point it belongs to"),
    Column("flow", "int", "", "number of the flow, from 0"),
    Column("kind", "text", "", "lasting, reverse, arrival or request"),
    Column("cc", "text", "", "congestion control that the sender's kernel reports"),
    Column("src", "text", "", "host that sends the data"),
    Column("dst", "text", "", "host that reads them"),
    Column("rtt_base_s", "float", "s", "base RTT between the two as configured"),
    Column("start_s", "float", "s", "when it was to begin, from the start of the load"),
    Column("stop_s", "float", "s", "when it was to end; null for the end of the load"),
    Column("size_bytes", "int", "bytes", "its size; null if it lasts"),
    Column("delivered_bytes", "int", "bytes", "bytes that the application read"),
    Column("goodput_bps", "float", "bit/s", "of it, over the flow's own time"),
    Column("steady_goodput_bps", "float", "bit/s", "over the steady part of the point"),
    Column("rtt_s", "float", "s", "smoothed RTT: median of the sender's samples"),
    Column("retransmit_share", "float", "", "bytes sent again, of all that it sent"),
    Column("fct_s", "float", "s", "from its start to its last byte read; null if it never ended"),
    Column("slowdown", "float", "", "that, over what it would take on an empty path"),
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
    Column("bottleneck", "bool", "", "whether it is a queue under study"),
    Column("rate_bps", "float", "bit/s", "rate of the link before it at that instant; null if it is none"),
    Column("bytes", "int", "bytes", "sent since it was made"),
    Column("packets", "int", "packets", "sent since it was made"),
    Column("qlen_packets", "int", "packets", "waiting"),
    Column("backlog_bytes", "int", "bytes", "waiting"),
    Column("drops", "int", "packets", "dropped since it was made"),
    Column("requeues", "int", "packets", "put back"),
    Column("overlimits", "int", "events", "held back by the shaper"),
)

DELAY_COLUMNS = (
    Column("point", "text", "", "the point it belongs to"),
    Column("kind", "text", "", "probe and udp: a packet one way; request: from asking to the last byte"),
    Column("flow", "int", "", "number of the flow, of a request; null for a stream of UDP"),
    Column("t_s", "float", "s", "when it was sent, from the start of the load"),
    Column("delay_s", "float", "s", "how long it took; null if it was lost"),
)

MACHINE_COLUMNS = (
    Column("point", "text", "", "the point it belongs to"),
    Column("t_s", "float", "s", "instant, from the start of the load"),
    Column("host", "text", "", "the machine; empty where all nodes are on one"),
    Column("cpu", "int", "", "its CPU; null in the row of the timers"),
    Column("user_s", "float", "s", "spent in programs since it started"),
    Column("system_s", "float", "s", "spent in the kernel, hard interrupts included"),
    Column("softirq_s", "float", "s", "spent in soft interrupts: packets and timers"),
    Column("steal_s", "float", "s", "given to others by a hypervisor"),
    Column("idle_s", "float", "s", "idle, or waiting for disks"),
    Column("processed", "int", "packets", "taken from devices, since it started (softnet_stat)"),
    Column("dropped", "int", "packets", "thrown away because the backlog was full (softnet_stat)"),
    Column("squeezed", "int", "events", "had more packets than it may take at once (softnet_stat)"),
    Column("late", "shares", "", "pulses by how late they were: the upper edge in s, and how many so far"),
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
    "delays": DELAY_COLUMNS,
    "machine": MACHINE_COLUMNS,
}
