"""The agent: builds, tunes, loads and records the emulated world, wherever an engine put it.

Standard library and Mininet only, few imports, no data frames: inside an
emulated kernel every import and every fork is paid for by every point.
"""
