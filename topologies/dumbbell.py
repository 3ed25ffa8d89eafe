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

    shape = "dumbbell"


topos = {"dumbbell": DumbbellTopo}
