r"""Traffic both ways over one bottleneck: data one way meet acknowledgements of the other.

    snd1 --\                      /-- rcv1        data ->
    snd2 ---- r1 ============= r2 ---- rcv2       <- data
                rate, queue ->
             <- back rate, queue

The last `back_pairs` pairs send from right to left. The way back may have a
rate and a queue of its own, as on an asymmetric access link.

In the lab:   wanlab run scenarios/path.py --set topology=two_way --set reverse=1 --set rate_back=10mbit
In Mininet:   sudo mn --custom topologies/two_way.py --controller none \
                  --topo two_way,rate_bps=1e8,back_bps=1e7,rtt_s=0.04
"""

import sys
from pathlib import Path

try:
    import lab  # noqa: F401
except ImportError:  # `mn --custom` runs this file by its name, without the package around it
    sys.path.insert(0, str(Path(sys._getframe().f_code.co_filename).resolve().parent.parent))

from lab.agent.network import PlannedTopo


class TwoWayTopo(PlannedTopo):
    """`pairs` pairs that send to the right, `back_pairs` that send to the left.

    Its other parameters are those of `lab.plans.shared.Network`; what is one for
    each pair is written with + on Mininet's command line.
    """

    shape = "two_way"


topos = {"two_way": TwoWayTopo}
