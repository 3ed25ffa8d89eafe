"""A dictionary is no scenario."""

scenario = {"name": "a", "sweep": [{"rtt": ["1ms"]}]}
