"""A script that fails by itself: the line that failed is named, in the script and not in the library."""

from lab.scenario import Scenario


def rtt(ms):
    return f"{1000 / ms}ms"


scenario = Scenario(name="a", question="q", why="w", defaults={"rtt": rtt(0)})
