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

from mininet.topo import Topo

from lab.agent.network import LabLink, LabNode
from lab.qdisc import UNLIMITED_PACKETS, burst_bytes


class PathTopo(Topo):
    """sender - bottleneck router - WAN router - receiver.

    rate_bps: bit/s of the bottleneck, both ways; None leaves the link unshaped.
    access_bps: bit/s of both hosts' own interfaces. A host without one hands
    packets over in no time: TCP small queues never hold it back, and Linux then
    writes past its send buffer (see docs/fidelity.md).
    queue: {"kind": "bfifo" | "pfifo", "limit": bytes | packets} in front of it.
    delay_out_s, delay_back_s: one-way delays towards receiver and sender.
    loss, duplicate, reorder: probabilities on the way out; loss_back on the way back.
    jitter_s: spread of the delay out.
    recipe: "separate" as drawn above; "leaf" puts one netem with `leaf_limit_packets`
    under the sender's own htb, as many recipes on the web do: there the delay line
    is the bottleneck's queue as well.
    """

    def build(  # noqa: PLR0913 (Mininet's form: the parameters of a topology)
        self,
        rate_bps=None,
        access_bps=None,
        queue=None,
        delay_out_s=0.0,
        delay_back_s=0.0,
        jitter_s=0.0,
        loss=0.0,
        loss_back=0.0,
        duplicate=0.0,
        reorder=0.0,
        mtu_bytes=1500,
        offloads=False,
        recipe="separate",
        leaf_limit_packets=1000,
    ):
        mtu_bytes = int(mtu_bytes)
        shaper = {}
        if rate_bps:
            shaper = {
                "rate_bps": int(rate_bps),
                "mtu_bytes": mtu_bytes,
                "burst_bytes": burst_bytes(rate_bps, mtu_bytes, offloads),
            }
        out = {
            "delay_s": delay_out_s,
            "jitter_s": jitter_s,
            "loss": loss,
            "duplicate": duplicate,
            "reorder": reorder,
        }
        back = {"delay_s": delay_back_s, "loss": loss_back}
        queued = {**shaper, "queue": queue} if queue else shaper
        access = {}
        if access_bps:
            access = {
                "rate_bps": int(access_bps),
                "mtu_bytes": mtu_bytes,
                "burst_bytes": burst_bytes(access_bps, mtu_bytes, offloads),
                "queue": {"kind": "pfifo", "limit": UNLIMITED_PACKETS},
            }
        egress = {
            "snd": access,
            "r1-snd": back,
            "r1-r2": queued,
            "r2-r1": queued,
            "r2-rcv": out,
            "rcv": access,
        }
        if recipe == "leaf":
            leaf = {**shaper, **out, "delay_s": delay_out_s + delay_back_s}
            leaf["limit_packets"] = leaf_limit_packets
            egress = {**{name: {} for name in egress}, "snd": leaf}

        def end(name, address):
            return {
                "ip": f"{address}/24",
                "mtu_bytes": mtu_bytes,
                "offloads": bool(offloads),
                "egress": egress[name],
            }

        self.addHost("snd", cls=LabNode, routes=[("10.0.0.0/8", "10.0.1.2")])
        self.addHost("r1", cls=LabNode, router=True, routes=[("10.0.3.0/24", "10.0.2.2")])
        self.addHost("r2", cls=LabNode, router=True, routes=[("10.0.1.0/24", "10.0.2.1")])
        self.addHost("rcv", cls=LabNode, routes=[("10.0.0.0/8", "10.0.3.1")])
        hops = [
            ("snd", "r1", "10.0.1.1", "10.0.1.2", "snd", "r1-snd"),
            ("r1", "r2", "10.0.2.1", "10.0.2.2", "r1-r2", "r2-r1"),
            ("r2", "rcv", "10.0.3.1", "10.0.3.2", "r2-rcv", "rcv"),
        ]
        for number, (left, right, left_ip, right_ip, left_name, right_name) in enumerate(hops, 1):
            self.addLink(
                left,
                right,
                cls=LabLink,
                addr1=f"02:00:00:00:{number:02x}:01",
                addr2=f"02:00:00:00:{number:02x}:02",
                params1=end(left_name, left_ip),
                params2=end(right_name, right_ip),
            )


topos = {"path": PathTopo}
