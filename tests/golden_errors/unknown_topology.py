"""There is one topology so far."""

from lab.scenario import Scenario

scenario = Scenario(name="a", question="q", why="w", topology="dumbbell")
