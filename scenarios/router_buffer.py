"""How big must a router's buffer be, for one flow and for hundreds?

wanlab run scenarios/router_buffer.py
"""

from lab.scenario import Expectation, Figure, Scenario

QUEUES = ["0.02bdp", "0.05bdp", "0.1bdp", "0.2bdp", "0.5bdp", "1bdp"]

scenario = Scenario(
    name="router_buffer",
    question="How much queue keeps a bottleneck busy, for 1, 10, 100 and 400 flows?",
    why="""
One Reno flow halves its window when the queue overflows; the link stays busy if the
queue alone lasts until the window has grown back: one BDP. Many flows do not halve
at once. Their windows add up to something that varies as 1 over the square root of
their number, and a queue of BDP / sqrt(n) is enough (Appenzeller, Keslassy, McKeown,
2004). Flows here have RTTs from 80 to 120 ms and start within two seconds, so that
they do not move in step.

A window of 1667 packets takes a lone flow a minute and a half to win back at a packet
a round trip, so it runs for two, and ten flows for one.

With 400 flows each has four packets of the BDP: at such windows a loss ends in a
timeout more often than in a fast retransmit, and the rule meets its limit.
""",
    topology="dumbbell",
    defaults={
        "rate": "200mbit",
        "rtt": "80ms+84ms+88ms+92ms+96ms+104ms+108ms+112ms+116ms+120ms",
        "pairs": 10,
        "cc": "reno",
        "spread": "2s",
        "duration": "20s",
        "rmem": "max=32MiB",
        "wmem": "max=32MiB",
    },
    sweep=(
        {"queue": ["0.1bdp", "0.5bdp", "1bdp"], "flows": [1], "duration": ["120s"]},
        {"queue": QUEUES, "flows": [10], "duration": ["60s"]},
        {"queue": QUEUES, "flows": [100, 400]},
    ),
    expectations=(
        Expectation(
            "with one BDP the link is 95 % busy in the steady part, however many flows",
            value="steady_goodput_bps",
            where={"queue": "1bdp", "flows": ("10", "100", "400")},
            at_least=0.95 * 191.28e6,
        ),
        Expectation(
            "with 100 flows a tenth of a BDP is enough for 95 %",
            value="steady_goodput_bps",
            where={"queue": "0.1bdp", "flows": "100"},
            at_least=0.95 * 191.28e6,
        ),
        Expectation(
            "with one flow it is not",
            value="steady_goodput_bps",
            where={"queue": "0.1bdp", "flows": "1"},
            at_most=0.93 * 191.28e6,
        ),
    ),
    figures=(
        Figure(
            "Steady goodput against the queue",
            x="queue",
            by=("flows", "duration"),
            theory="router_buffer",
        ),
        Figure("Utilisation against the queue", x="queue", y="utilisation", by=("flows", "duration")),
        Figure(
            "Queueing delay against the queue", x="queue", y="queue_delay_p95_s", by=("flows", "duration")
        ),
    ),
)
