"""Marks instead of drops: what does ECN save, queue by queue?

wanlab run scenarios/ecn.py
"""

from lab.scenario import Expectation, Figure, Scenario

scenario = Scenario(
    name="ecn",
    question="What does marking save over dropping, and what does DCTCP make of marks?",
    why="""
A queue that marks tells the sender to slow down without losing the packet (RFC 3168):
no retransmission and no wait for one. CUBIC takes a mark for a loss. DCTCP answers to
the share of packets that are marked and wants them marked from a shallow threshold on
(RFC 8257): here every packet that waited over a millisecond, which keeps the queue
there.
""",
    defaults={
        "rate": "50mbit",
        "rtt": "20ms",
        "flows": 4,
        "duration": "20s",
        "probe": "20ms",
    },
    sweep=(
        {"qdisc": ["codel", "fq_codel", "pie", "red"], "ecn": ["off", "on"], "cc": ["cubic"]},
        {"qdisc": ["codel"], "ecn": ["on"], "ce_threshold": ["1ms"], "cc": ["dctcp", "cubic"]},
    ),
    expectations=(
        Expectation(
            "with ECN the queue's control loses hardly a packet",
            value="retransmit_share",
            where={"ecn": "on", "qdisc": ("codel", "fq_codel"), "cc": "cubic"},
            at_most=0.001,
        ),
        Expectation(
            "DCTCP keeps the queue at its threshold",
            value="queue_delay_s",
            where={"cc": "dctcp"},
            at_most=0.003,
        ),
        Expectation("and fills the link", value="utilisation", where={"cc": "dctcp"}, at_least=0.95),
    ),
    figures=(
        Figure("Retransmitted share", x="qdisc", y="retransmit_share", by=("ecn", "cc", "ce_threshold")),
        Figure(
            "What a small packet waits, 95th percentile",
            x="qdisc",
            y="probe_delay_p95_s",
            by=("ecn", "cc", "ce_threshold"),
        ),
        Figure("Delay against throughput", kind="ellipse", x="queue_delay_p95_s", by=("qdisc", "ecn", "cc")),
    ),
)
