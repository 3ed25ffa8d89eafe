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

    rate_bps: bit/s of the bottleneck; None leaves it unshaped. back_bps: the same of the way
    back, as on the way out unless given.
    access_bps: bit/s of the hosts' own interfaces, one for all or one for each pair
    (`1e8+1e9` on Mininet's command line).
    queue: {"kind", "limit", ...} before the bottleneck, see `lab.qdisc.queue_words`;
    `bfifo:250000` on Mininet's command line. back_queue: of the way back.
    rtt_s: base RTT, one for all pairs or one for each (`0.01+0.1`).
    way: what else the way to the receivers does: `jitter_s`, `loss`, `duplicate`, `reorder`.
    mtu_bytes, offloads: of every link.
    """

    shape = "star"


topos = {"star": StarTopo}
