"""Nothing to run."""

from lab.scenario import Scenario

scenario = Scenario(name="a", question="q", why="w", sweep=(), defaults={"rtt": []})
