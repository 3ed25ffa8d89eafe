"""100 and 400 Gbit/s over 100 ms: where TCP's own window ends.

wanlab run scenarios/hundred_gig.py
"""

from lab.scenario import Expectation, Figure, Scenario

scenario = Scenario(
    name="hundred_gig",
    question="What does one TCP flow reach on 100 and 400 Gbit/s x 100 ms, and how many fill them?",
    why="""
A window is 16 bits, shifted by at most 14 (RFC 7323): it ends at 1 GiB. Over 100 ms
that is 86 Gbit/s, whatever the buffers are, so one flow cannot fill 100 Gbit/s, and
400 Gbit/s need five. Offloads are on, as on every host at such rates: a packet here
has up to 64 KB. The server is a web server with sendfile: it does not copy what it
sends, and gigabytes in flight take no memory of their own.
""",
    defaults={
        "rtt": "100ms",
        "queue": "0.5bdp",
        "offloads": "on",
        "workload": "http",
        "rmem": "max=2147483647B",
        "wmem": "max=2147483647B",
        "notsent_lowat": "16MiB",
        "duration": "5s",
    },
    sweep=(
        {"rate": ["100gbit"], "flows": [1, 2]},
        {"rate": ["400gbit"], "flows": [1, 2, 5]},
    ),
    expectations=(
        Expectation(
            "one flow ends at 1 GiB in 100 ms",
            value="steady_goodput_bps",
            where={"flows": "1"},
            within=0.03,
            of=2**30 * 8 / 0.1,
        ),
    ),
    figures=(
        Figure("Goodput against flows", x="flows", by=("rate",)),
        Figure("Share of the link", x="flows", y="utilisation", by=("rate",)),
    ),
)
