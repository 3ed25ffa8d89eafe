"""BBR and CUBIC on one bottleneck: who gets what, over the size of the queue?

wanlab run scenarios/bbr_cubic_share.py
"""

from lab.scenario import Expectation, Figure, Scenario

scenario = Scenario(
    name="bbr_cubic_share",
    question="What share of a bottleneck does a BBR flow take from CUBIC, over the queue in BDP?",
    why="""
BBR limits what it has in flight to two BDPs as it sees them. CUBIC fills the queue
until it drops. In a queue of a BDP or less BBR's two fill it all the time, CUBIC
meets loss after loss, and BBR has nearly all. In a deeper queue BBR is left with its
cap, and CUBIC with what else fits: BBR's share falls with the queue, and does not
depend on how many CUBIC flows there are (Ware, Mukerjee, Seshan, Sherry, 2019).

It takes long to get there: BBR sees the queue in its RTT only every ten seconds, and
CUBIC needs half a minute to fill a deep one. So a run lasts five minutes, and shares
are those of its second half.

The curve of Ware and others lies 5 to 17 points of share above what is measured here
from 2 to 32 BDP; its shape is the same.

Harm compares: what CUBIC's flow gets here, over what it gets beside another CUBIC.
""",
    topology="dumbbell",
    defaults={
        "rate": "50mbit",
        "rtt": "40ms",
        "flows": 2,
        "spread": "1s",
        "duration": "300s",
        "rmem": "max=64MiB",
        "wmem": "max=64MiB",
    },
    sweep=(
        {
            "queue": ["0.5bdp", "1bdp", "2bdp", "4bdp", "8bdp", "16bdp", "32bdp"],
            "cc": ["bbr+cubic"],
        },
        {"queue": ["1bdp", "4bdp", "16bdp"], "cc": ["cubic"]},
        {"queue": ["1bdp", "4bdp", "16bdp"], "cc": ["bbr+cubic*4"], "flows": [5]},
    ),
    expectations=(
        Expectation(
            "in half a BDP BBR has most of the link",
            value="cc_shares:bbr",
            where={"queue": "0.5bdp", "cc": "bbr+cubic"},
            at_least=0.6,
        ),
        Expectation(
            "in 8 BDP and more CUBIC has the larger part",
            value="cc_shares:cubic",
            where={"queue": ("8bdp", "16bdp", "32bdp"), "cc": "bbr+cubic"},
            at_least=0.5,
        ),
    ),
    figures=(
        Figure(
            "BBR's share against the queue", x="queue", y="cc_shares:bbr", by=("cc", "flows"), theory="ware"
        ),
        Figure("Goodput over time", kind="time", x="queue", by=("cc",)),
    ),
)
