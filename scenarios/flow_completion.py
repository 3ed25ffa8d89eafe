"""Short transfers that come and go: how long do they take as the link fills?

wanlab run scenarios/flow_completion.py
"""

from lab.scenario import Expectation, Figure, Scenario

scenario = Scenario(
    name="flow_completion",
    question="How much longer than alone does a short transfer take, over load and queue?",
    why="""
Most transfers end before congestion control has found its rate: ten segments, twenty,
forty, one round trip each. What they wait for is round trips, and a queue that others
filled makes each longer. Flows arrive at random (Poisson), most are small and a few
carry most of the bytes (Pareto). Slowdown is the time that one took over the time
that it would take on the empty path.

A long flow beside them fills a fifo; a queue that serves flows in turn keeps it out
of their way.
""",
    topology="dumbbell",
    defaults={
        "rate": "50mbit",
        "rtt": "40ms",
        "flows": 1,
        "pairs": 4,
        "queue": "1bdp",
        "sizes": "pareto:1.3:50KB",
        "duration": "15s",
    },
    sweep=(
        {
            "arrivals": ["poisson:20%", "poisson:50%", "poisson:80%"],
            "qdisc": ["fifo", "fq_codel"],
            "cc": ["cubic", "bbr"],
        },
    ),
    expectations=(
        Expectation(
            "a queue for every flow keeps the median slowdown under 3 at half load",
            value="slowdown",
            where={"qdisc": "fq_codel", "arrivals": ("poisson:20%", "poisson:50%")},
            at_most=3,
        ),
    ),
    figures=(
        Figure("Slowdown, median", x="arrivals", y="slowdown", by=("qdisc", "cc")),
        Figure("Slowdown, 99th percentile", x="arrivals", y="slowdown_p99", by=("qdisc", "cc")),
        Figure(
            "How completion times are distributed",
            kind="cdf",
            table="flows",
            y="fct_s",
            by=("qdisc", "cc"),
        ),
    ),
)
