"""Workloads: what the hosts do. They run in the agent; one module a workload.

Each has a class made as `Workload(net, spec)` with

* `prepare()`: servers listening, connections made; nothing sent yet;
* `begin(start_ns)`: start the load, called at the start instant;
* `finished()`: True when a load of a given size is through;
* `end()`: stop it;
* `outcome()`: a dictionary of what the workload itself saw, stored with the
  point: `flows` with their ports, and `client`, which end of a flow has that port.
"""


def first_port(flows: int) -> int:
    """Return the port of flow 0 at the end that connects; the others follow it."""
    return 40000 if flows <= 20000 else 10000
