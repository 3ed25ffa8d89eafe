"""Up to a satellite and down again: what does it take to fill GEO and LEO links?

wanlab run scenarios/satellite.py
"""

from lab.scenario import Expectation, Figure, Scenario

scenario = Scenario(
    name="satellite",
    question="Which buffers and which congestion control fill a satellite link, high and low?",
    why="""
A geostationary satellite is 36 000 km up: four times that way at the speed of light
is half a second of RTT, and 20 Mbit/s hold 1.4 MB in flight. A low one adds some tens
of milliseconds. Slow start takes a second for each doubling of two on the high path,
and a loss that a short path forgets costs it minutes. Hybla was made for it: it grows
as if the RTT were 25 ms.
""",
    topology="long_haul",
    defaults={
        "rate": "20mbit",
        "queue": "0.5bdp",
        "duration": "60s",
        "rmem": "max=32MiB",
        "wmem": "max=32MiB",
    },
    sweep=(
        {
            "route": ["geo-satellite", "leo-satellite"],
            "loss": ["0%", "0.01%", "0.1%", "1%"],
            "cc": ["cubic", "bbr", "hybla", "reno"],
        },
    ),
    expectations=(
        Expectation(
            "without loss everything fills the low path",
            value="steady_goodput_bps",
            where={"route": "leo-satellite", "loss": "0%"},
            at_least=0.9 * 19.128e6,
        ),
        Expectation(
            "at 0.1 % loss Reno has less than a tenth of the high one",
            value="steady_goodput_bps",
            where={"route": "geo-satellite", "loss": "0.1%", "cc": "reno"},
            at_most=0.1 * 19.128e6,
        ),
        Expectation(
            "where BBR still has over four fifths",
            value="steady_goodput_bps",
            where={"route": "geo-satellite", "loss": "0.1%", "cc": "bbr"},
            at_least=0.85 * 19.128e6,
        ),
    ),
    figures=(
        Figure("Goodput against loss", x="loss", by=("cc", "route")),
        Figure("Who wins", x="loss", rows="route", kind="heat", y="winner", by=("cc",)),
    ),
)
