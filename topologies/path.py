"""One long path: sender, bottleneck router, WAN router, receiver.

    snd ---------- r1 ================= r2 ---------- rcv
    10.0.1.1   .2      10.0.2.1     .2     10.0.3.1   .2
                 <- delay_back          delay_out ->
                   rate, queue -> / <- rate, queue

Rate and queue sit on the link r1 - r2, in both directions. The delay sits one
hop further: on r2 towards the receiver and on r1 towards the sender. So the
queue has a limit of its own and the delay line none, and no delay line shares
an interface with a TCP sender, whose small-queue accounting it would disturb.

In the lab:   wanlab run scenarios/path.py --set rate=1gbit --set rtt=200ms
In Mininet:   sudo mn --custom topologies/path.py --controller none \
                  --topo path,rate_bps=1e9,delay_out_s=0.1,delay_back_s=0.1
"""

import sys
from pathlib import Path

try:
    import lab  # noqa: F401
except ImportError:  # `mn --custom` runs this file by its name, without the package around it
    sys.path.insert(0, str(Path(sys._getframe().f_code.co_filename).resolve().parent.parent))

from lab.agent.network import PlannedTopo


class PathTopo(PlannedTopo):
    """sender - bottleneck router - WAN router - receiver.

    rate_bps: bit/s of the bottleneck, both ways; None leaves the link unshaped.
    back_bps: of the way back, where it is another.
    access_bps: bit/s of both hosts' own interfaces. A host without one hands
    packets over in no time: TCP small queues never hold it back, and Linux then
    writes past its send buffer (see docs/fidelity.md).
    queue: {"kind", "limit", ...} in front of it, see `lab.queues`;
    `bfifo:250000` on Mininet's command line. back_queue: of the way back.
    delay_out_s, delay_back_s: one-way delays towards receiver and sender.
    loss, duplicate, reorder: probabilities on the way out; loss_back on the way back.
    loss may be a model as well, see `lab.qdisc.loss_words`.
    jitter_s, jitter_distribution: spread of the delay out.
    recipe: "separate" as drawn above; "leaf" puts one netem with `leaf_limit_packets`
    under the sender's own htb, as many recipes on the web do: there the delay line
    is the bottleneck's queue as well.
    mtu_bytes, offloads: of every link.
    """

    shape = "path"


topos = {"path": PathTopo}
