r"""Pairs of hosts over one shared bottleneck, each pair with its own RTT and access rate.

    snd1 --\                         /-- rcv1
    snd2 ---- r1 ================ r2 ---- rcv2
    snd3 --/    rate, queue both     \-- rcv3
              ways on this link

A pair's delay sits on the routers' interfaces to its hosts, half of it each
way: behind the queue, so that the queue's limit is its own.

In the lab:   wanlab run scenarios/path.py --set topology=dumbbell --set flows=2 --set rtt=20ms+80ms
In Mininet:   sudo mn --custom topologies/dumbbell.py --controller none \
                  --topo dumbbell,pairs=2,rate_bps=1e8,rtt_s=0.02+0.08,access_bps=1e9
"""

import sys
from pathlib import Path

try:
    import lab  # noqa: F401
except ImportError:  # `mn --custom` runs this file by its name, without the package around it
    sys.path.insert(0, str(Path(sys._getframe().f_code.co_filename).resolve().parent.parent))

from lab.agent.network import PlannedTopo


class DumbbellTopo(PlannedTopo):
    """`pairs` senders and as many receivers around one bottleneck.

    Its other parameters are those of `lab.plans.shared.Network`; what is one for
    each pair is written with + on Mininet's command line.
    """

    shape = "dumbbell"


topos = {"dumbbell": DumbbellTopo}
