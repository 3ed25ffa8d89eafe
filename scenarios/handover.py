"""A link that changes every fifteen seconds and stands still for a moment: who keeps up?

wanlab run scenarios/handover.py
"""

from lab.scenario import Expectation, Figure, Scenario

scenario = Scenario(
    name="handover",
    question="How much of a link that keeps changing does a congestion control use, and at what delay?",
    why="""
Low satellites and cells hand a terminal over: the link stands still for a moment and
comes back at another rate. traces/handover.csv does so every 15 s, traces/fading.csv
changes all the time, as a radio link does that fades. A sender that learns the rate
slowly leaves new rate unused, and fills the queue when the rate falls. A queue that is
cut short by CoDel gives up some rate for much less delay.
""",
    defaults={
        "rate": "30mbit",
        "rtt": "40ms",
        "queue": "200ms",
        "duration": "60s",
        "probe": "50ms",
    },
    sweep=(
        {
            "trace": ["traces/handover.csv", "traces/fading.csv", "traces/cellular.mahimahi"],
            "cc": ["cubic", "bbr", "vegas"],
            "qdisc": ["fifo", "fq_codel"],
        },
    ),
    expectations=(
        Expectation(
            "CUBIC and BBR use three quarters of what the link offers",
            value="utilisation",
            where={"cc": ("cubic", "bbr"), "qdisc": "fifo"},
            at_least=0.75,
        ),
    ),
    figures=(
        Figure("Goodput over time", kind="time", x="trace", by=("cc",)),
        Figure("Share of what the link offers", x="trace", y="utilisation", by=("cc", "qdisc")),
        Figure(
            "Delay against throughput", kind="ellipse", x="probe_delay_p95_s", by=("trace", "cc", "qdisc")
        ),
    ),
)
