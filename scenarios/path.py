"""One flow, or many, on one path: the scenario for any question about a single bottleneck.

wanlab run scenarios/path.py --set rate=10gbit --set rtt=80ms --set rmem=max=64MiB,max=128MiB
"""

from lab.scenario import Figure, Scenario

scenario = Scenario(
    name="path",
    question="What does this path give, and what keeps it from giving more?",
    why="""
Nothing is swept unless you ask. Every knob takes one value or several, and the
points are all their combinations. Defaults: 1 Gbit/s, 200 ms RTT, a queue of one
BDP, no loss, the kernel's own socket buffers, CUBIC.
""",
    figures=(
        Figure("Goodput against tcp_rmem", x="rmem", by=("wmem", "cc", "kernel")),
        Figure("Goodput against tcp_wmem", x="wmem", by=("rmem", "cc", "kernel")),
        Figure("Goodput against loss", x="loss"),
        Figure("Goodput against RTT", x="rtt"),
        Figure("Goodput against rate", x="rate"),
        Figure("Goodput against queue", x="queue"),
    ),
)
