"""Two flows share a bottleneck and have different RTTs: how unequal do they get?

wanlab run scenarios/rtt_unfairness.py
"""

from lab.scenario import Expectation, Figure, Scenario

scenario = Scenario(
    name="rtt_unfairness",
    question="How much more does a flow of short RTT get than one of long RTT?",
    why="""
Reno adds a segment each round trip, so a flow of short RTT comes back faster after
a loss: where losses hit both, its rate is as the inverse of the RTT, and up to the
square of that where they are hit together (Lakshman and Madhow, 1997). CUBIC grows
by the clock, which was meant to end that, and does so as far as it is in its own
region. BBR turns it round: its flow of long RTT has more in flight when it probes,
and in a queue of a BDP or more takes over from the short one (Hock et al., 2017).

A queue adds its own delay to both RTTs, which makes them more alike.
""",
    topology="dumbbell",
    defaults={
        "rate": "50mbit",
        "flows": 2,
        "queue": "50ms",
        "spread": "1s",
        "duration": "60s",
        "rmem": "max=32MiB",
        "wmem": "max=32MiB",
    },
    sweep=(
        {
            "rtt": ["20ms+20ms", "20ms+40ms", "20ms+80ms", "20ms+160ms"],
            "cc": ["reno", "cubic", "bbr"],
        },
    ),
    expectations=(
        Expectation(
            "Reno's flow of 20 ms gets at least half as much again as that of 160 ms",
            value="rtt_unfairness",
            where={"cc": "reno", "rtt": "20ms+160ms"},
            at_least=1.5,
        ),
        Expectation(
            "BBR's gets less than that of 160 ms",
            value="rtt_unfairness",
            where={"cc": "bbr", "rtt": "20ms+160ms"},
            at_most=1.0,
        ),
        Expectation("two flows fill the link", value="utilisation", at_least=0.85),
    ),
    figures=(
        Figure(
            "Goodput of the short RTT over that of the long",
            x="rtt",
            y="rtt_unfairness",
            by=("cc",),
            theory="rtt_ratio",
        ),
        Figure("Jain's index", x="rtt", y="jain", by=("cc",)),
        Figure("Goodput over time", kind="time", x="cc"),
    ),
)
