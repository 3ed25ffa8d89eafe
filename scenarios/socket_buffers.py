"""How big must the socket buffers be to fill 1 Gbit/s over 200 ms?

Two windows have to cover what the path holds, the bandwidth-delay product of
25 MB: the one that the receiver advertises out of tcp_rmem, and the one that the
sender can keep unacknowledged out of tcp_wmem. Whichever is smaller sets the rate.

    wanlab run scenarios/socket_buffers.py
    wanlab run scenarios/socket_buffers.py --set preset=published
"""

from lab.scenario import Expectation, Figure, Preset, Published, Scenario

SIZES = ["default", "25MiB", "50MiB", "100MiB"]
WINDOW_SIZES = ("default", "25MiB")

SOURCE = (
    "Two virtual machines: CentOS 8 (Linux 4.18) serves, Fedora 31 (Linux 5.5) downloads 1 GiB with wget;"
    " htb at 1000 Mbit/s over netem delay 200ms on the server's egress; figures as wget shows them, in MiB/s"
)
MIB_PER_S = 8 * 2**20

scenario = Scenario(
    name="socket_buffers",
    question="How big must tcp_rmem and tcp_wmem be to fill 1 Gbit/s over 200 ms?",
    why="""
The path holds rate times RTT: 125 MB/s x 0.2 s = 25 MB. A sender may have no more
than the receiver's window unacknowledged, and no more than its own send buffer
holds, so goodput is the smaller window divided by the RTT until the link is full.

A buffer is not a window. Linux 6.1 advertises the part of the receive buffer that
tcp_adv_win_scale leaves: half at 1, three quarters at 2, a quarter at -2. Linux
6.12 ignores that sysctl and advertises the share of a buffer that arriving
segments turn into payload, 63 % for 1448-byte segments here. The send buffer is
refilled when a third of it is free, so between bursts two thirds of it are in
flight.
""",
    defaults={
        "rate": "1gbit",
        "rtt": "200ms",
        "queue": "2bdp",
        "duration": "5s",
        "wmem": "100MiB",
        "rmem": "100MiB",
    },
    sweep=(
        {"rmem": SIZES, "cc": ["cubic", "bbr"]},
        {"wmem": SIZES},
        {"rmem": SIZES, "kernel": ["6.1"]},
        {"rmem": ["25MiB", "50MiB"], "adv_win_scale": [2, -2], "kernel": ["6.1"]},
        {"rmem": ["default"], "wmem": ["default"], "kernel": ["6.1", "6.12"]},
    ),
    expectations=(
        Expectation(
            "a receive window under the BDP sets the rate that the model says",
            value="steady_goodput_bps",
            where={"rmem": WINDOW_SIZES, "wmem": "100MiB", "cc": "cubic"},
            within=0.05,
            of="predicted_goodput_bps",
        ),
        Expectation(
            "a send buffer under the BDP sets the rate that the model says",
            value="steady_goodput_bps",
            where={"wmem": WINDOW_SIZES, "rmem": "100MiB"},
            within=0.05,
            of="predicted_goodput_bps",
        ),
        Expectation(
            "with 100 MiB at both ends CUBIC fills the link",
            value="steady_goodput_bps",
            where={"wmem": "100MiB", "rmem": "100MiB", "cc": "cubic"},
            within=0.005,
            of="predicted_goodput_bps",
        ),
    ),
    figures=(
        Figure(
            "Goodput against the receive buffer",
            x="rmem",
            by=("cc", "kernel", "adv_win_scale"),
        ),
        Figure("Goodput against the send buffer", x="wmem", by=("cc", "kernel")),
    ),
    presets={
        "published": Preset(
            meaning="the five rows of the published experiment, by its own recipe",
            note="""
The published text sizes the buffers by 125 MB/s x 0.4 s = 50 MB. It took 0.4 s from an
HTTP request, which needs two round trips; the delay of 200 ms sat on one direction
only, so the RTT was 0.2 s and the BDP 25 MB. With tcp_adv_win_scale = 1 half of a
50 MB receive buffer is window: 25 MB, exactly the BDP. Two errors that cancel. The
fifth row shows it: at -2 a quarter is window, and the same 50 MiB no longer fill
the path.
""",
            defaults={
                "recipe": "leaf",
                "leaf_limit": 100000,
                "workload": "http",
                "bytes": "1GiB",
                "duration": "120s",
                "kernel": "6.1",
            },
            sweep=(
                {"wmem": ["default"], "rmem": ["default"]},
                {"wmem": ["50MiB"], "rmem": ["default", "50MiB", "100MiB"]},
                {"wmem": ["50MiB"], "rmem": ["50MiB"], "adv_win_scale": [-2]},
            ),
            expectations=(
                Expectation(
                    "50 MiB at the sender and 50 MiB at the receiver give the published rate",
                    value="goodput_bps",
                    where={"wmem": "50MiB", "rmem": "50MiB", "adv_win_scale": "default"},
                    within=0.10,
                    of=92.7 * MIB_PER_S,
                ),
                Expectation(
                    "50 MiB at the sender and 100 MiB at the receiver give the published rate",
                    value="goodput_bps",
                    where={"wmem": "50MiB", "rmem": "100MiB"},
                    within=0.10,
                    of=89.2 * MIB_PER_S,
                ),
            ),
            published=(
                Published({"wmem": "default", "rmem": "default"}, 13.4 * MIB_PER_S, SOURCE),
                Published({"wmem": "50MiB", "rmem": "default"}, 14.9 * MIB_PER_S, SOURCE),
                Published(
                    {"wmem": "50MiB", "rmem": "50MiB", "adv_win_scale": "default"}, 92.7 * MIB_PER_S, SOURCE
                ),
                Published({"wmem": "50MiB", "rmem": "100MiB"}, 89.2 * MIB_PER_S, SOURCE),
            ),
        )
    },
)
