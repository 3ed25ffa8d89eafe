"""Workloads: what the hosts do. They run in the agent; one module a workload.

Each has a class made as `Workload(net, spec)` with

* `prepare()`: servers listening, connections made; nothing sent yet;
* `begin()`: start the load, called at the start instant;
* `finished()`: True when a load of a given size is through;
* `end()`: stop it;
* `outcome()`: a dictionary of what the workload itself saw, stored with the point.
"""
