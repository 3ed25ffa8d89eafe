"""Forms that are wrong one step further in."""

from lab.scenario import Expectation, Figure, Preset, Scenario

scenario = Scenario(
    name="a",
    question="q",
    why="w",
    expectations=[Expectation("fills", value="goodput_bps", at_least=1, where="rmem=25MiB")],
    figures=[Figure("Goodput", x="rmem", by="cc")],
    presets={"long": Preset("", sweep={"rtt": ["1s"]}), "short": {"rtt": "1ms"}},
)
