"""A policer has no queue: what does TCP get through one?

wanlab run scenarios/policer.py
"""

from lab.scenario import Expectation, Figure, Scenario

scenario = Scenario(
    name="policer",
    question="How deep must a policer's bucket be, and what does it cost in packets sent twice?",
    why="""
A policer lets through what its token bucket covers and drops the rest at once. A
window that is larger than rate x RTT overruns it for as long as it is, and the loss
that a sender sees is not that of a queue: there is no delay before it, and it comes
in long runs (Flach et al., 2016). A bucket of a BDP does for a policer what the queue
does for a shaper. BBR paces at the rate that it measured, which at first is that of
the bucket's burst and not of the tokens.
""",
    defaults={
        "rate": "20mbit",
        "rtt": "40ms",
        "qdisc": "policer",
        "duration": "30s",
    },
    sweep=(
        {
            "queue": ["0.1bdp", "0.25bdp", "0.5bdp", "1bdp", "2bdp"],
            "cc": ["cubic", "bbr", "reno"],
        },
        {"qdisc": ["fifo"], "queue": ["1bdp"], "cc": ["cubic", "bbr", "reno"]},
    ),
    expectations=(
        Expectation(
            "a bucket of a tenth of a BDP costs CUBIC a part of the rate",
            value="steady_goodput_bps",
            where={"qdisc": "policer", "queue": "0.1bdp", "cc": "cubic"},
            at_most=0.9 * 19.128e6,
        ),
        Expectation(
            "no policer lets a queue grow: RTTs stay within 2 ms of the base",
            value="loaded_rtt_s",
            where={"qdisc": "policer"},
            at_most=0.042,
        ),
    ),
    figures=(
        Figure("Goodput against the bucket", x="queue", by=("cc", "qdisc")),
        Figure("Retransmitted share against the bucket", x="queue", y="retransmit_share", by=("cc", "qdisc")),
    ),
)
