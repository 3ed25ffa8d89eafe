"""A field that a scenario does not have."""

from lab.scenario import Scenario

scenario = Scenario(name="a", question="q", why="w", sweeps=({"rtt": ["1ms"]},))
