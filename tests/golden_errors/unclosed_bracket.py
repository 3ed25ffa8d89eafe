"""The bracket on line 5 has no end."""

from lab.scenario import Scenario

scenario = Scenario(
    name="a",
