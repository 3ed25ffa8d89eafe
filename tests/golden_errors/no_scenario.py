"""The name is a plural."""

from lab.scenario import Scenario

scenarios = Scenario(name="a", question="q", why="w")
