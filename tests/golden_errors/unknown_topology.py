"""A shape that nobody drew."""

from lab.scenario import Scenario

scenario = Scenario(name="a", question="q", why="w", topology="ring")
