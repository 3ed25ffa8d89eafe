"""A path over a named real route: its RTT comes from a table with sources, docs/reference/routes.md.

    snd ---------- r1 ================= r2 ---------- rcv
                      rate, queue        <- RTT of the route ->

In the lab:   wanlab run scenarios/path.py --set topology=long_haul --set route=frankfurt-singapore
In Mininet:   sudo mn --custom topologies/long_haul.py --controller none \\
                  --topo long_haul,route=geo-satellite,rate_bps=2e7
"""

import sys
from pathlib import Path

try:
    import lab  # noqa: F401
except ImportError:  # `mn --custom` runs this file by its name, without the package around it
    sys.path.insert(0, str(Path(sys._getframe().f_code.co_filename).resolve().parent.parent))

from lab import routes
from lab.agent.network import PlannedTopo
from lab.plans.egress import halves


class LongHaulTopo(PlannedTopo):
    """The path of topologies/path.py with the RTT of a route. Its other parameters are the path's."""

    shape = "path"

    def build(self, route="london-newyork", **params):
        """Take the delays from the route. Raises UnitError for one that is not known."""
        out_s, back_s = halves(routes.find(route).rtt_s)
        super().build(delay_out_s=out_s, delay_back_s=back_s, **params)


topos = {"long_haul": LongHaulTopo}
