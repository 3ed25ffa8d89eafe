"""Who wins over rate and RTT: CUBIC or BBR, on a path that now and then loses a packet?

wanlab run scenarios/cc_rtt.py
"""

from lab.scenario import Expectation, Figure, Scenario

scenario = Scenario(
    name="cc_rtt",
    question="Over which rates and RTTs does it matter whether a sender uses CUBIC or BBR?",
    why="""
Loss holds a window, and what window a path needs is rate times RTT. So one loss in
ten thousand packets does nothing to a short or slow path, whose BDP is a few dozen
packets, and holds CUBIC far under a long fast one, whose BDP is thousands. CUBIC
recovers by the clock, so on a short path it is back before a model that counts
round trips would say. The table is per pair of rate and RTT, one flow alone on the
path, its queue one BDP.
""",
    defaults={
        "loss": "0.01%",
        "rmem": "max=256MiB",
        "wmem": "max=256MiB",
        "duration": "30s",
    },
    sweep=(
        {
            "rate": ["1mbit", "10mbit", "100mbit", "500mbit"],
            "rtt": ["10ms", "40ms", "100ms", "300ms"],
            "cc": ["cubic", "bbr"],
        },
    ),
    expectations=(
        Expectation(
            "at 10 Mbit/s and less both fill paths of up to 100 ms",
            value="utilisation",
            where={"rate": ("1mbit", "10mbit"), "rtt": ("10ms", "40ms", "100ms")},
            at_least=0.85,
        ),
        Expectation(
            "at 500 Mbit/s x 100 ms CUBIC is left with less than half",
            value="utilisation",
            where={"rate": "500mbit", "rtt": "100ms", "cc": "cubic"},
            at_most=0.5,
        ),
        Expectation(
            "there BBR has nine tenths",
            value="steady_goodput_bps",
            where={"rate": "500mbit", "rtt": "100ms", "cc": "bbr"},
            at_least=430e6,
        ),
    ),
    figures=(
        Figure("Who wins", x="rtt", rows="rate", kind="heat", y="winner", by=("cc",)),
        Figure(
            "Utilisation of CUBIC and BBR", x="rtt", rows="rate", kind="heat", y="utilisation", by=("cc",)
        ),
        Figure("Goodput against RTT", x="rtt", by=("cc", "rate")),
    ),
)
