"""Mininet's virtual hosts and links, as the lab builds them.

`LabNode`, `LabLink` and `LabIntf` go where Mininet's `Host`, `Link` and `Intf`
go, under `mn --custom` as well. They differ in what a measurement needs:

* Rate, queue and delay are set by `lab.qdisc`: any rate (Mininet's TCIntf
  ignores one above 1 Gbit/s), burst and quantum that follow the rate, a delay
  line that cannot drop.
* Every command's status is checked; Mininet prints the error and goes on.
* Neighbours and routes are set, so no ARP crosses the delay line.
* A node is a namespace, without a shell until somebody asks for one: a shell
  costs two execs, and inside an emulated kernel that is most of a set-up.
* On a host `LabNet` skips Mininet's `fixLimits`, which sets tcp_rmem, tcp_wmem,
  rmem_max and more on the machine it runs on: a buffer study must not start there.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from mininet.link import Intf, Link
from mininet.net import Mininet
from mininet.node import Node
from mininet.topo import Topo
from mininet.util import ensureRoot

from lab import netlink, plans, qdisc
from lab.agent import netns
from lab.agent.ethtool import SEGMENTATION, Features
from lab.plans.plan import End, Plan

_OPEN_FILES = 16384


class NotAppliedError(RuntimeError):
    """A setting was made and reads back otherwise."""


def run_checked(argv: list[str], text: str = "") -> None:
    """Run one tool to its end; raise RuntimeError with its words if it fails."""
    done = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0 or done.stderr.strip():
        raise RuntimeError(
            f"{' '.join(argv)} ended with status {done.returncode}: {done.stderr.strip()}\n{text}"
        )


def rtnetlink_dump(kind: int, ifindex: int = 0) -> bytes:
    """Return a whole rtnetlink dump of the namespace the thread is in."""
    body = struct.pack("=BxxxiIII", 0, ifindex, 0, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as channel:
        return netlink.dump(channel, netlink.request(kind, body))


class LabIntf(Intf):
    """One end of a link. `params` carry its egress (see `lab.qdisc`), `ip`, `mtu_bytes`, `offloads`."""

    def config(self, **_params: Any) -> dict[str, Any]:
        """Nothing yet: the node sets all its interfaces in one go."""
        return {}

    def delete(self) -> None:
        """Nothing: a pair goes with its namespaces. Mininet would start a shell in every node to say so."""

    @property
    def peer(self) -> LabIntf:
        """The interface at the other end."""
        ends: tuple[LabIntf, LabIntf] = (self.link.intf1, self.link.intf2)
        return ends[1] if ends[0] is self else ends[0]

    def ip_commands(self) -> list[str]:
        """Return the `ip` commands (without `ip`) that bring this interface up."""
        address = self.params["ip"]
        self.ip, self.prefixLen = address.split("/")
        peer_ip = self.peer.params["ip"].split("/")[0]
        return [
            f"link set dev {self.name} mtu {self.params['mtu_bytes']} up",
            f"address add {address} dev {self.name}",
            f"neighbour replace {peer_ip} lladdr {self.peer.mac} dev {self.name} nud permanent",
        ]

    def set_offloads(self, channel: socket.socket) -> None:
        """Switch segmentation and receive offloads as asked, and read them back.

        channel: any socket of the node's namespace.
        """
        wanted = bool(self.params["offloads"])
        features = Features(channel, self.name)
        features.switch(SEGMENTATION, wanted)
        active = features.active() & set(SEGMENTATION)
        if wanted != bool(active):
            raise NotAppliedError(
                f"{self.name}: offloads {'on' if wanted else 'off'}, but active: {sorted(active)}"
            )


class LabLink(Link):
    """A veth pair between two `LabNode`s; all pairs are made in one `ip -batch`."""

    _pending: ClassVar[list[str]] = []

    def __init__(self, node1: Node, node2: Node, **params: Any) -> None:
        params.update(intf=LabIntf, cls1=LabIntf, cls2=LabIntf)
        super().__init__(node1, node2, **params)

    @classmethod
    def makeIntfPair(  # noqa: N802 (Mininet's name)
        cls,
        intfname1: str,
        intfname2: str,
        addr1: str | None = None,
        addr2: str | None = None,
        node1: LabNode | None = None,
        node2: LabNode | None = None,
        deleteIntfs: bool = True,  # noqa: N803
    ) -> None:
        """Note the pair down; `make_pending` makes it, inside both namespaces at once."""
        del deleteIntfs
        assert node1 is not None and node2 is not None
        cls._pending.append(
            f"link add name {intfname1} address {addr1} netns {node1.namespace_path} type veth"
            f" peer name {intfname2} address {addr2} netns {node2.namespace_path}"
        )

    @classmethod
    def make_pending(cls) -> None:
        """Make every pair that was noted down."""
        if cls._pending:
            commands, cls._pending = cls._pending, []
            run_checked(["ip", "-batch", "-"], "\n".join(commands) + "\n")


class LabNode(Node):
    """A virtual host or router: a namespace; with `router=True` it forwards.

    params: `router`, `routes` (list of (prefix, gateway)).
    """

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802 (Mininet's name)
        """Make the namespace. The shell itself waits until `cmd` or `popen` wants it."""
        del mnopts
        self.namespace = netns.new()
        self.namespace_path = f"/proc/{os.getpid()}/fd/{self.namespace}"

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Run the block with this thread in the node's namespace."""
        with netns.entered(self.namespace):
            yield

    def _need_shell(self) -> None:
        if self.shell is None:
            self.inNamespace = False  # not one more: the shell starts in the one that is there
            try:
                with self.inside():
                    super().startShell()
            finally:
                self.inNamespace = True

    def sendCmd(self, *args: Any, **kwargs: Any) -> Any:  # noqa: N802 (Mininet's name)
        """As Mininet's, in a shell that is started at the first call."""
        self._need_shell()
        return super().sendCmd(*args, **kwargs)

    def cmd(self, *args: Any, **kwargs: Any) -> Any:
        """As Mininet's, in a shell that is started at the first call."""
        self._need_shell()
        return super().cmd(*args, **kwargs)

    def popen(self, *args: Any, **kwargs: Any) -> Any:
        """As Mininet's; the process joins the shell's namespace."""
        self._need_shell()
        return super().popen(*args, **kwargs)

    def config(self, **params: Any) -> dict[str, Any]:
        """Bring up, address, route, shape; then read all of it back."""
        LabLink.make_pending()
        words = ["link set dev lo up"]
        for intf in self.intfList():
            words += intf.ip_commands()
        words += [f"route add {prefix} via {gateway}" for prefix, gateway in params.get("routes", ())]
        with self.inside():
            run_checked(["ip", "-batch", "-"], "\n".join(words) + "\n")
            write_sysctl("net.ipv6.conf.all.disable_ipv6", "1")  # no address detection across the path
            if params.get("router"):
                write_sysctl("net.ipv4.ip_forward", "1")
            shaping = []
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
                for intf in self.intfList():
                    intf.set_offloads(channel)
            for intf in self.intfList():
                shaping += qdisc.egress_commands(intf.name, intf.params["egress"])
            if shaping:
                run_checked(["tc", "-batch", "-"], "\n".join(shaping) + "\n")
            self._read_back()
        self.commands = {"ip": words, "tc": shaping}
        return {}

    def _read_back(self) -> None:
        links = interfaces()
        qdiscs = qdisc.parse_dump(rtnetlink_dump(netlink.RTM_GETQDISC))
        for intf in self.intfList():
            intf.ifindex, mtu = links[intf.name]
            if mtu != intf.params["mtu_bytes"]:
                raise NotAppliedError(f"{intf}: MTU {intf.params['mtu_bytes']} reads back as {mtu}")
            egress = intf.params["egress"]
            if not egress:
                continue
            classes = qdisc.parse_dump(rtnetlink_dump(netlink.RTM_GETTCLASS, intf.ifindex))
            here = [entry for entry in qdiscs if entry["ifindex"] == intf.ifindex]
            wrong = qdisc.differences(egress, here, classes)
            if wrong:
                raise NotAppliedError(f"{intf}: {'; '.join(wrong)}")

    def terminate(self) -> None:
        """End the shell, if there is one, and let the namespace go."""
        if self.shell is not None:
            super().terminate()
        os.close(self.namespace)


def interfaces() -> dict[str, tuple[int, int]]:
    """Return {name: (ifindex, MTU in bytes)} of the namespace the thread is in.

    struct ifinfomsg; IFLA_IFNAME 3, IFLA_MTU 4.
    """
    found = {}
    for _kind, body in netlink.messages(rtnetlink_dump(netlink.RTM_GETLINK)):
        if len(body) < 16:
            continue
        (index,) = struct.unpack_from("=i", body, 4)
        attrs = netlink.attributes(body, 16)
        (mtu,) = struct.unpack("=I", attrs[4])
        found[attrs[3].rstrip(b"\0").decode()] = (index, mtu)
    return found


def write_sysctl(name: str, value: str) -> None:
    """Set a sysctl in the namespace the thread is in, and read it back."""
    path = Path("/proc/sys", *name.split("."))
    with path.open("r+") as file:
        file.write(value)
        file.flush()
        file.seek(0)
        got = file.read().split()
    if got != value.split():
        raise NotAppliedError(f"{name}: wanted {value}, reads back as {' '.join(got)}")


class PlannedTopo(Topo):
    """A Mininet topology that is built from a plan: `lab.plans` has its shape, this makes nodes and links."""

    shape = "path"

    def build(self, **params: Any) -> None:
        """Add every node and link of the plan; `params` are those of the shape."""
        plan = plans.make(self.shape, params)
        routes = plan.routes()
        for name in plan.hosts:
            self.addHost(name, cls=LabNode, routes=routes[name])
        for name in plan.routers:
            self.addHost(name, cls=LabNode, router=True, routes=routes[name])
        for link in plan.links:
            group = f"{link.number >> 8:02x}:{link.number & 255:02x}"
            self.addLink(
                link.left.node,
                link.right.node,
                cls=LabLink,
                addr1=f"02:00:00:{group}:01",
                addr2=f"02:00:00:{group}:02",
                params1=_params(plan, link.left),
                params2=_params(plan, link.right),
            )


def _params(plan: Plan, end: End) -> dict[str, Any]:
    return {
        "ip": f"{end.address}/24",
        "mtu_bytes": plan.mtu_bytes,
        "offloads": plan.offloads,
        "egress": end.egress,
    }


class LabNet(Mininet):
    """A Mininet that changes nothing outside its own namespaces, unless the kernel is its own.

    Mininet raises socket buffers, backlog and limits of the whole machine before
    it builds anything (`mininet.util.fixLimits`, by `Mininet.init`). In a kernel
    that is the point's alone that does no harm: what is studied is set afterwards,
    and a backlog of 5000 packets does not bind. On a host a lab that studies these
    values must not touch them.
    """

    def __init__(self, topo: Any, *, own_kernel: bool) -> None:
        if not own_kernel:
            ensureRoot()
            _raise_open_files()
            Mininet.inited = True  # its constructor calls `init` by the name of its own class
        super().__init__(topo=topo, host=LabNode, link=LabLink, intf=LabIntf, switch=None, controller=None)


def _raise_open_files() -> None:
    """Let this process, and no other, open as many files as it may: a node takes some, a flow two."""
    import resource  # noqa: PLC0415 (on a host alone)

    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
