"""A word too many."""

from lab.scenario import Scenario

scenario = Scenario(name="a", question="q", why="w") else
