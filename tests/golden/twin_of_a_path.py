"""The path of run results/real, in virtual time.

Written by `wanlab twin` from what that run recorded; change it as any scenario. To run
it and to hold it against its original:

    wanlab run path_twin.py --repeat 2
    wanlab compare results/real results/path_twin --html path_twin.html
"""

from lab.scenario import Expectation, Figure, Original, Published, Scenario

TOLERANCE = 0.1
SOURCE = (
    "run results/real, engine remote, Linux 5.15.0-91-generic, began 2026-01-01T00:00:00+00:00, means of 2 "
    "repetitions"
)

scenario = Scenario(
    name="path_twin",
    question="How big must the buffers be? The same path in virtual time.",
    why="""
This is the path that run results/real measured: scenario path, engine remote, began
2026-01-01T00:00:00+00:00, 4 points done.

Measured. Rate 50 Mbit/s: the median of 4 trains of packets (50 Mbit/s). Flows carried 50.01 Mbit/s
at most, headers counted. Base RTT 20 ms: the least of 80 idle pings, which lie within 9 us. No
jitter: half of the idle RTTs lie within 20 us, which is what hosts and clocks add. No random loss:
of 44800 segments sent while the queue was empty none was sent again; up to 0.0067 % would do the
same. Queue 58.08 KiB: RTTs rose by 10 ms, and 60 segments were lost there.

Assumed. Linux 6.1 stands for 5.15.0-91-generic: of the lab's kernels the one that sizes receive
windows as that does. One bottleneck, as fast back as out, between hosts ten times as fast.
""",
    twin_of=Original(
        run="results/real",
        engine="remote",
        began="2026-01-01T00:00:00+00:00",
        points={"e602177d91": {"rmem": "default"}, "a57bd534b8": {"rmem": "256KiB"}},
    ),
    defaults={
        "rate": "50mbit",
        "rtt": "20ms",
        "queue": "58KiB",
        "loss": "0%",
        "cc": "cubic",
        "flows": "1",
        "duration": "8s",
        "kernel": "6.1",
    },
    sweep=(
        # e602177d91, 2 seeds: 46.5 Mbit/s
        {"rmem": ["default"]},
        # a57bd534b8, 2 seeds: 40.25 Mbit/s
        {"rmem": ["256KiB"]},
    ),
    expectations=(
        Expectation(
            "rmem=default gives what the path gave",
            value="goodput_bps",
            where={"rmem": "default"},
            within=TOLERANCE,
            of=46.5e6,
        ),
        Expectation(
            "rmem=256KiB gives what the path gave",
            value="goodput_bps",
            where={"rmem": "256KiB"},
            within=TOLERANCE,
            of=40.25e6,
        ),
    ),
    published=(
        Published({"rmem": "default"}, 46.5e6, SOURCE),
        Published({"rmem": "256KiB"}, 40.25e6, SOURCE),
    ),
    figures=(
        Figure("Goodput against rmem", x="rmem"),
        Figure("Goodput over time", y="goodput_bps", kind="time"),
        Figure("RTT over time", y="rtt_s", kind="time"),
    ),
)
