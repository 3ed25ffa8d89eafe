"""An error that the library raises belongs to the line of the script that asked for it."""

from lab import units
from lab.scenario import Scenario

RATE = units.parse_rate("100mbps")
scenario = Scenario(name="a", question="q", why="w", defaults={"rate": RATE})
