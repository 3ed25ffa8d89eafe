"""How much goodput does each congestion control keep as packets get lost at random?

wanlab run scenarios/cc_loss.py
"""

from lab.scenario import Expectation, Figure, Scenario

scenario = Scenario(
    name="cc_loss",
    question="Which congestion control fills a lossy path, and up to how much loss?",
    why="""
A congestion control that takes every loss for a full queue gives way to loss that
has nothing to do with congestion. Reno's mean window is then sqrt(3/2)/sqrt(p)
segments, so its rate falls with the square root of the loss and with the RTT
(Mathis et al., 1997). CUBIC grows by time and not by round trips, which on long
paths gives it more: 1.054 (RTT / p)^(3/4) segments, RTT in s (RFC 9438). BBR sends at the
rate that it measured and hardly looks at loss, until more is lost than it probes
for.

At a thousandth of a percent, 100 Mbit/s x 100 ms see one loss in 12 s: the link
binds. At 1 % Reno is left with 12 segments in flight of the 826 that fill it.
""",
    defaults={
        "rate": "100mbit",
        "rtt": "100ms",
        "queue": "1bdp",
        "rmem": "max=64MiB",
        "wmem": "max=64MiB",
        "duration": "60s",
    },
    sweep=(
        {
            "loss": ["0.0001%", "0.001%", "0.01%", "0.1%", "0.3%", "1%", "3%", "10%", "20%", "30%"],
            "cc": ["cubic", "bbr", "reno", "westwood", "illinois", "htcp"],
        },
    ),
    expectations=(
        Expectation(
            "between 0.1 and 1 % loss Reno follows the square root of it",
            value="steady_goodput_bps",
            where={"cc": "reno", "loss": ("0.1%", "0.3%", "1%")},
            within=0.30,
            of="predicted_goodput_bps",
        ),
        Expectation(
            "BBR keeps the link nine tenths full up to 3 % loss",
            value="utilisation",
            where={"cc": "bbr", "loss": ("0.0001%", "0.001%", "0.01%", "0.1%", "0.3%", "1%", "3%")},
            at_least=0.88,
        ),
        Expectation(
            "at 1 % loss CUBIC is left with less than a twentieth of the link",
            value="steady_goodput_bps",
            where={"cc": "cubic", "loss": "1%"},
            at_most=5e6,
        ),
    ),
    figures=(
        Figure("Goodput against loss, with Mathis", x="loss", by=("cc",), theory="mathis"),
        Figure("Goodput against loss, with CUBIC's response", x="loss", by=("cc",), theory="cubic"),
        Figure("Retransmitted share against loss", x="loss", by=("cc",), y="retransmit_share"),
    ),
)
