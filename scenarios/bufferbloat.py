"""What does a full uplink do to the RTT of everything else, and which queue mends it?

wanlab run scenarios/bufferbloat.py
"""

from lab.scenario import Expectation, Figure, Scenario

scenario = Scenario(
    name="bufferbloat",
    question="How long does a small packet wait behind bulk flows, queue by queue?",
    why="""
A queue of 1000 packets before 20 Mbit/s holds 600 ms. CUBIC fills it, and whatever
else crosses the link waits behind it: bufferbloat (Gettys and Nichols, 2011). CoDel
drops when packets waited longer than 5 ms for 100 ms on end (RFC 8289), PIE aims at
15 ms (RFC 8033); fq_codel and cake also give every flow a queue of its own (RFC 8290),
so that a small packet does not wait behind the bulk at all. BBR keeps what it has in
flight near the BDP by itself, or so it means to when it is alone.

The probe sends a small packet every 20 ms beside four bulk flows.
""",
    defaults={
        "rate": "20mbit",
        "rtt": "40ms",
        "queue": "1000p",
        "flows": 4,
        "probe": "20ms",
        "duration": "30s",
    },
    sweep=(
        {
            "qdisc": ["pfifo", "codel", "pie", "fq_codel", "cake", "fq"],
            "cc": ["cubic", "bbr"],
        },
    ),
    expectations=(
        Expectation(
            "behind CUBIC a fifo of 1000 packets makes a small packet wait over 300 ms",
            value="probe_delay_s",
            where={"qdisc": "pfifo", "cc": "cubic"},
            at_least=0.3,
        ),
        Expectation(
            "CoDel and PIE keep the wait under 30 ms",
            value="probe_delay_s",
            where={"qdisc": ("codel", "pie"), "cc": "cubic"},
            at_most=0.03,
        ),
        Expectation(
            "a queue for every flow keeps it under 3 ms",
            value="probe_delay_s",
            where={"qdisc": ("fq_codel", "cake", "fq")},
            at_most=0.003,
        ),
        Expectation("and the link stays nine tenths full", value="utilisation", at_least=0.9),
    ),
    figures=(
        Figure("What a small packet waits, 95th percentile", x="qdisc", y="probe_delay_p95_s", by=("cc",)),
        Figure("Delay against throughput", kind="ellipse", x="probe_delay_p95_s", by=("qdisc", "cc")),
        Figure(
            "How the probe's delay is distributed",
            kind="cdf",
            table="delays",
            y="delay_s",
            by=("qdisc",),
        ),
    ),
)
