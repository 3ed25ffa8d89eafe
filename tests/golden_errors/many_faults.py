"""One of every fault that a value can have: all of them are listed, none hides another."""

from lab.scenario import Expectation, Figure, Preset, Published, Scenario

scenario = Scenario(
    name="many",
    question="q",
    why="w",
    defaults={"rate": "1gbps", "rtts": "50MiB", "mtu": 9000.5},
    sweep=(
        {"rmen": ["25MiB"], "rmem": ["25MiB", "50mb"]},
        {"rtt": [], "loss": [0.1, "0.1%"], "flows": range(3)},
    ),
    expectations=(
        Expectation("it fills", value="goodput", at_least=1),
        Expectation("it is quick", value="kernel", within=0.1),
        Expectation("it is fair", value="goodput_bps", where={"flows": ("1", "two"), "queues": "1bdp"}),
        Expectation("it is as predicted", value="goodput_bps", within=0.1, of="predicted"),
    ),
    figures=(Figure("Goodput against jitter", x="jiter", by=("cc", "kernels"), y="goodput_mbps"),),
    presets={
        "long": Preset(
            "",
            defaults={"rtt": "1m"},
            sweep=({"queue": ["1bpd"]},),
            published=(Published({"rate": "1"}, 1e6, "somebody", of="goodput"),),
        )
    },
)
