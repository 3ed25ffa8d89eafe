r"""A parking lot: bottlenecks in a row, one pair that crosses all, and cross traffic over each.

    snd -- r1 ====== r2 ====== r3 ====== r4 -- rcv
          /   \    /  \    /  \    /
       snd1   rcv1, snd2   rcv2, snd3   rcv3

snd sends to rcv over every bottleneck; snd<i> to rcv<i> over the i-th alone.
Each pair's delay sits on the routers' interfaces to its hosts.

In the lab:   wanlab run scenarios/path.py --set topology=parking_lot --set bottlenecks=3 --set flows=4
In Mininet:   sudo mn --custom topologies/parking_lot.py --controller none \
                  --topo parking_lot,bottlenecks=3,rate_bps=1e8,rtt_s=0.04
"""

import sys
from pathlib import Path

try:
    import lab  # noqa: F401
except ImportError:  # `mn --custom` runs this file by its name, without the package around it
    sys.path.insert(0, str(Path(sys._getframe().f_code.co_filename).resolve().parent.parent))

from lab.agent.network import PlannedTopo


class ParkingLotTopo(PlannedTopo):
    """`bottlenecks` links in a row; pair 0 crosses all of them, pair i the i-th.

    Its other parameters are those of `lab.plans.shared.Network`; what is one for
    each pair is written with + on Mininet's command line.
    """

    shape = "parking_lot"


topos = {"parking_lot": ParkingLotTopo}
