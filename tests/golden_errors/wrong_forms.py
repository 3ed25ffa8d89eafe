"""Every container in another form than it should have."""

from lab.scenario import Expectation, Scenario

scenario = Scenario(
    name="a",
    question="q",
    why="w",
    defaults=["rate", "1gbit"],
    sweep={"rmem": ["25MiB", "50MiB"]},
    expectations=Expectation("fills", value="goodput_bps", at_least=1),
    figures=("Goodput against rmem",),
    presets={"long": {"rtt": "1s"}},
)
