"""The names become folders."""

from lab.scenario import Preset, Scenario

scenario = Scenario(name="../../etc", question="q", why="w", presets={"my preset": Preset("")})
