"""Flows come and go: how fair do they share, and how soon?

wanlab run scenarios/fairness.py
"""

from lab.scenario import Expectation, Figure, Scenario

scenario = Scenario(
    name="fairness",
    question="How fairly do flows of one kind share a bottleneck as they come and go, and how soon?",
    why="""
Four flows come ten seconds apart and go in the opposite order. Each that comes has to
be given room by those that are there. Additive increase and multiplicative decrease
lead to fair shares in the end (Chiu and Jain, 1989); how long the end is away depends
on how much is given up at a loss and how fast it is taken back. A queue that serves
flows in turn does it for them at once, whatever they do.
""",
    topology="dumbbell",
    defaults={
        "rate": "50mbit",
        "rtt": "40ms",
        "flows": 4,
        "queue": "1bdp",
        "start": "0s+10s+20s+30s",
        "stop": "80s+70s+60s+50s",
        "duration": "80s",
    },
    sweep=({"cc": ["reno", "cubic", "bbr", "vegas"], "qdisc": ["fifo", "fq_codel"]},),
    expectations=(
        Expectation(
            "a queue for every flow makes them fair at once",
            value="convergence_s",
            where={"qdisc": "fq_codel", "cc": ("reno", "cubic", "bbr")},
            at_most=3,
        ),
        Expectation("the link stays nine tenths full", value="utilisation", at_least=0.9),
    ),
    figures=(
        Figure("Goodput over time, one queue for all", kind="time", x="cc"),
        Figure("Convergence of the last flow", x="cc", y="convergence_s", by=("qdisc",)),
        Figure("Jain's index", x="cc", y="jain", by=("qdisc",)),
    ),
)
