r"""One server, many clients: a download from one place to many at different RTTs.

                                     /-- rcv1
    snd ------ r1 ============== r2 ---- rcv2
                  rate, queue        \-- rcv3

The whole RTT of a client sits on the router's interface towards it, behind the
shared queue: acknowledgements of all clients come in at one interface of the
server's, where a delay could not tell them apart.

In the lab:   wanlab run scenarios/path.py --set topology=star --set flows=4 --set rtt=10ms+50ms+100ms+200ms
In Mininet:   sudo mn --custom topologies/star.py --controller none \
                  --topo star,pairs=4,rate_bps=1e8,rtt_s=0.01+0.05+0.1+0.2
"""

import sys
from pathlib import Path

try:
    import lab  # noqa: F401
except ImportError:  # `mn --custom` runs this file by its name, without the package around it
    sys.path.insert(0, str(Path(sys._getframe().f_code.co_filename).resolve().parent.parent))

from lab.agent.network import PlannedTopo


class StarTopo(PlannedTopo):
    """One server `snd`, `pairs` clients behind one bottleneck.

    Its other parameters are those of `lab.plans.shared.Network`; what is one for
    each pair is written with + on Mininet's command line.
    """

    shape = "star"


topos = {"star": StarTopo}
