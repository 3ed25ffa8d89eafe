"""Packets that overtake one another: how much of it does TCP stand?

wanlab run scenarios/reorder.py
"""

from lab.scenario import Expectation, Figure, Scenario

scenario = Scenario(
    name="reorder",
    question="How much reordering does each congestion control stand before it takes it for loss?",
    why="""
A packet that comes late looks lost until it comes. Linux waits: RACK allows a quarter
of the least RTT at first and more with every proof that a retransmission was not
needed (RFC 8985). Jitter here delays each packet by itself, so those close behind one
another change places; the sender learns it from duplicate SACKs and gives back the
window that it cut. BBR does not cut.
""",
    defaults={
        "rate": "50mbit",
        "rtt": "60ms",
        "duration": "20s",
        "rmem": "max=32MiB",
        "wmem": "max=32MiB",
    },
    sweep=(
        {"jitter": ["0s", "1ms", "2ms", "5ms", "10ms", "20ms"], "cc": ["cubic", "bbr", "reno"]},
        {"reorder": ["0.1%", "1%", "10%"], "cc": ["cubic", "bbr", "reno"]},
    ),
    expectations=(
        Expectation(
            "with 1 ms of jitter all fill the link",
            value="steady_goodput_bps",
            where={"jitter": ("0s", "1ms"), "reorder": "0%"},
            at_least=0.9 * 47.82e6,
        ),
    ),
    figures=(
        Figure("Goodput against jitter", x="jitter", by=("cc",)),
        Figure("Retransmitted share against jitter", x="jitter", y="retransmit_share", by=("cc",)),
        Figure("Goodput against reordered packets", x="reorder", by=("cc",)),
    ),
)
