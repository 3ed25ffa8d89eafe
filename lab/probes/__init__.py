"""Probes: what is recorded while the load runs. They run in the agent; one module a probe."""
