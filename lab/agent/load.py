"""One point's load, as far as it is on this host: the same workloads, streams and records as anywhere.

The hosts of a real network are machines of their own. Each runs this for the
nodes that it is (`snd`, `rcv`, or the routers that an emulator stands for); who
drives them takes them step by step, so that no end waits for one that is not
there, and puts together what they hand back (see `lab.remote.points`).

Standard library of Python 3.8: this is pushed to other hosts. Each operation
takes the host (see `lab.agent.hostops`) and its arguments, and returns JSON.
"""

from __future__ import annotations

import array
import contextlib
import resource
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lab import clock
from lab.agent import between
from lab.agent.capture import Captures
from lab.agent.hostops import Blob
from lab.agent.recorder import Own, Recorder
from lab.workloads import LoadFailed
from lab.workloads.bulk import Bulk
from lab.workloads.iperf3 import Iperf3
from lab.workloads.request import Request
from lab.workloads.stream import Stream

WORKLOADS: dict[str, Any] = {"bulk": Bulk, "iperf3": Iperf3, "request": Request}
"""Workloads whose ends may be on machines of their own."""

_LOOK_S = 0.02
_LATE_S = 30.0
"""That a sample which is due may take before the load counts as hanging."""


class _Node:
    """A node that is this host, or another one: all that is known of it is its address in the test."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self._address = address

    def IP(self) -> str:  # noqa: N802 (Mininet's name)
        return self._address

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Run the block where the node is: here."""
        yield


class _Net:
    """The nodes of a test, as workloads and probes ask for them."""

    def __init__(self, addresses: dict[str, str]) -> None:
        self.nameToNode = {name: _Node(name, address) for name, address in addresses.items()}

    def __getitem__(self, name: str) -> _Node:
        return self.nameToNode[name]


class Load:
    """The load of a point on this host.

    told: `nodes` ({name: address}, in the order of their numbers), `here` (names),
    `interfaces` ({node: {name in the lab: name here}}), `between` (own address, the
    other end's; None on an emulator), and of the point `workload`, `streams`,
    `probes`, `captures`.
    """

    def __init__(self, told: dict[str, Any], work: Callable[[], Path]) -> None:
        _raise_file_limit()
        self._told = told
        here = list(told["here"])
        self._net = net = _Net(told["nodes"])
        pair = told["between"]
        self._interfaces = {
            node: {name: socket.if_nametoindex(there) for name, there in told["interfaces"][node].items()}
            for node in here
        }
        own = Own(
            between=(pair[0], pair[1]) if pair else None,
            interfaces={node: set(named.values()) for node, named in self._interfaces.items()},
        )
        self._recorder = Recorder(net, told["probes"], here, own)
        self._workload = WORKLOADS[told["workload"]["kind"]](net, told["workload"], here)
        self._streams = [Stream(net, one, here) for one in told["streams"]]
        self._captures = _captures(net, [one for one in told["captures"] if one["node"] in here], work)
        self._start_ns = self._end_ns = 0
        self._stopping = threading.Event()
        self._recorded = threading.Event()
        self._failure = ""

    def connect(self) -> None:
        """Connect what is there from the start, from here and to here."""
        self._workload.connect()
        self._workload.accept()

    def listen(self) -> None:
        """Be there for connections."""
        self._workload.listen()

    def start(self, start_ns: int) -> None:
        """Have the load begin at an instant of this host's clock; return at once."""
        self._start_ns, self._end_ns = start_ns, start_ns + self._told["workload"]["limit_ns"]
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            clock.exact_timers()
            clock.sleep_until_ns(self._start_ns)
            self._recorder.start(self._start_ns)
            for stream in self._streams:
                stream.begin(self._start_ns, self._end_ns)
            self._workload.begin(self._start_ns)
            self._recorder.record(self._stopping.is_set, self._end_ns)
        except BaseException as error:  # a thread's error is lost unless somebody asks for it
            self._failure = f"{type(error).__name__}: {error}"
        finally:
            self._recorded.set()

    def wait(self, timeout_s: float) -> dict[str, Any]:
        """Wait until the load is over or what ends here is through; return `over`, `finished`, `failure`."""
        until_ns = clock.now_ns() + int(timeout_s * 1e9)
        while not self._recorded.is_set() and not self._workload.finished() and clock.now_ns() < until_ns:
            self._recorded.wait(_LOOK_S)
        over = self._recorded.is_set()
        return {"over": over, "finished": bool(self._workload.finished()), "failure": self._failure}

    def stop(self) -> None:
        """Take the last sample, send no more; the connections stay. Raises LoadFailed where it hangs."""
        self._stopping.set()
        if not self._recorded.wait(self._told["probes"]["interval_ns"] / 1e9 + _LATE_S):
            raise LoadFailed("the samples did not end; this host is too busy to measure anything")
        self._workload.stop()
        for stream in self._streams:
            stream.stop()

    def end(self) -> tuple[dict[str, Any], bytes]:
        """End everything; return what this host saw, and as bytes what it recorded.

        The bytes are frames (see `lab.agent.frames`), `frames_bytes` of them, and then for each
        stream that was sent or received here 64-bit integers of this machine: `sent` instants, or
        `arrived` pairs of number and instant. Instants count from the start, but for arrivals.
        Raises LoadFailed or RuntimeError where the load failed.
        """
        for stream in self._streams:
            stream.end()
        self._workload.end()
        if self._failure:
            raise LoadFailed(self._failure)
        for kind, flow, taken in getattr(self._workload, "delays", list)():
            self._recorder.add_delays(kind, flow, taken)
        captured = self._captures.end() if self._captures else []
        self._recorder.close()
        outcome = self._workload.outcome()
        for flow in outcome["flows"]:
            if flow["finished_ns"] is not None:
                flow["finished_ns"] -= self._start_ns
        recorded = self._recorder.frames()
        blob, streams = [recorded], []
        for stream in self._streams:
            sent, arrived = stream.sent(), stream.arrived()
            streams.append({"kind": stream.kind, "sent": len(sent), "arrived": len(arrived)})
            pairs = (number for pair in sorted(arrived.items()) for number in pair)
            blob += [array.array("q", sent).tobytes(), array.array("q", pairs).tobytes()]
        told = {
            "workload": outcome,
            "streams": streams,
            "captures": captured,
            "frames_bytes": len(recorded),
            "interfaces": self._interfaces,
            "ended_ns": clock.now_ns() - self._start_ns,
        }
        return told, b"".join(blob)

    def drop(self) -> None:
        """End everything, whatever state it is in, and forget what it saw."""
        self._stopping.set()
        ends = [self._workload.stop, *(stream.end for stream in self._streams), self._workload.end]
        if self._captures:
            ends.append(self._captures.end)
        for end in (*ends, self._recorder.close):
            with contextlib.suppress(Exception):
                end()


def _captures(net: Any, wanted: list[dict[str, Any]], work: Callable[[], Path]) -> Captures | None:
    """Return what captures packets while the load runs, None where nobody asked for it."""
    if not wanted:
        return None
    if shutil.which("tcpdump") is None:
        raise LoadFailed("tcpdump is not installed on this host, and captures need it; install it there")
    return Captures(net, wanted, work())


def _raise_file_limit() -> None:
    """Let this process have as many connections as the host allows at all; a login's limit is often 1024."""
    with contextlib.suppress(OSError, ValueError):
        _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class _Lasting:
    """Makes something in a thread that lives as long as the thing is needed.

    A child process that is to end with its parent ends with the thread that
    started it (PR_SET_PDEATHSIG), and an operation's thread ends at once.
    """

    def __init__(self, make: Callable[[], Load]) -> None:
        self._made: list[Load] = []
        self._refused: list[BaseException] = []
        self._ready, self._over = threading.Event(), threading.Event()
        threading.Thread(target=self._live, args=(make,), daemon=True).start()
        self._ready.wait()
        if self._refused:
            raise self._refused[0]

    def _live(self, make: Callable[[], Load]) -> None:
        try:
            self._made.append(make())
        except BaseException as refused:  # it is raised where the thing was asked for
            self._refused.append(refused)
            return
        finally:
            self._ready.set()
        self._over.wait()

    @property
    def load(self) -> Load:
        """What was made."""
        return self._made[0]

    def let_go(self) -> None:
        """Let the thread end."""
        self._over.set()


def load_listen(host: Any, told: dict[str, Any]) -> None:
    """Make the load of a point on this host and be there for connections. told: see `Load`."""
    load_drop(host, {})
    lasting = _Lasting(lambda: Load(told, lambda: host.work))
    host.__dict__["kept_load"] = lasting
    lasting.load.listen()


def _load(host: Any) -> Load:
    lasting: _Lasting | None = host.__dict__.get("kept_load")
    if lasting is None:
        raise LoadFailed("there is no load on this host")
    return lasting.load


def load_connect(host: Any, told: dict[str, Any]) -> None:
    """Connect what is there from the start; all hosts do so at a time."""
    del told
    _load(host).connect()


def load_start(host: Any, told: dict[str, Any]) -> None:
    """Have the load begin at `start_ns` of this host's clock; return at once."""
    _load(host).start(told["start_ns"])


def load_wait(host: Any, told: dict[str, Any]) -> dict[str, Any]:
    """Wait for up to `timeout_s`; return what `Load.wait` does."""
    return _load(host).wait(told["timeout_s"])


def load_stop(host: Any, told: dict[str, Any]) -> None:
    """Take the last sample and send no more; all hosts do so before one ends."""
    del told
    _load(host).stop()


def load_end(host: Any, told: dict[str, Any]) -> Blob:
    """End the load; return what `Load.end` does."""
    del told
    load = _load(host)
    try:
        return Blob(*load.end())
    finally:
        host.__dict__.pop("kept_load").let_go()


def load_drop(host: Any, told: dict[str, Any]) -> None:
    """End the load if there is one, whatever state it is in."""
    del told
    lasting: _Lasting | None = host.__dict__.pop("kept_load", None)
    if lasting is not None:
        lasting.load.drop()
        lasting.let_go()


OPS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    **between.OPS,
    "load_listen": load_listen,
    "load_connect": load_connect,
    "load_start": load_start,
    "load_wait": load_wait,
    "load_stop": load_stop,
    "load_end": load_end,
    "load_drop": load_drop,
}
"""Every operation of a load, and of the path's measurement, by its name."""
