"""iperf3: the tool that everybody has, its JSON kept whole.

In virtual time it costs far more than `bulk`: a select, a read and a clock
reading for nearly every arrival.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Collection
from typing import Any

from lab.workloads import Here, port_of_first

_PORT = 5201


def server_words(own: str = "") -> list[str]:
    """Return the server's command. own: the address that it keeps to, "" for all."""
    return [
        *("iperf3", "--version4", "--server", "--one-off", "--port", str(_PORT), "--forceflush"),
        *(("--bind", own) if own else ()),
    ]


def client_words(spec: dict[str, Any], address: str, *, own: str = "", first: int) -> list[str]:
    """Return the client's command. address: the server's; own: its own, "" for any; first: port of flow 0."""
    flow, count = spec["flows"][0], len(spec["flows"])
    amount = ["--bytes", str(flow["bytes"])] if flow["bytes"] else ["--time", f"{spec['duration_s']:g}"]
    return [
        *("iperf3", "--client", address, "--port", str(_PORT)),
        *("--cport", str(first), "--parallel", str(count)),
        *("--congestion", flow["cc"], "--json", *amount),
        *(("--bind", own) if own else ()),
    ]


class Iperf3:
    """spec: `flows`, all alike; `duration_s`; iperf3 takes the bytes of all flows together.

    here: see `lab.workloads`.
    """

    def __init__(self, net: Any, spec: dict[str, Any], here: Collection[str] | None = None) -> None:
        self._net = net
        self._here = Here(here)
        self._spec, self._count = spec, len(spec["flows"])
        self._first = port_of_first(spec)
        self._flow = spec["flows"][0]
        self._server: subprocess.Popen[bytes] | None = None
        self._client: subprocess.Popen[bytes] | None = None
        self._output = b""

    def prepare(self) -> None:
        """Start the server."""
        self.listen()

    def listen(self) -> None:
        """Start the server, where the receiver is."""
        if not self._here.has(self._flow["dst"]):
            return
        receiver = self._net[self._flow["dst"]]
        with receiver.inside():
            self._server = subprocess.Popen(
                server_words(self._own(receiver)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        assert self._server.stdout is not None
        said = []
        for line in self._server.stdout:
            if b"listening" in line:
                return
            said.append(line.decode(errors="replace").strip())
        raise RuntimeError(f"the iperf3 server did not start to listen: {' '.join(said)}")

    def _own(self, node: Any) -> str:
        """Return the address that iperf3 keeps to, "" for any: a machine has others than the test's."""
        return str(node.IP()) if self._here.apart else ""

    def connect(self) -> None:
        """Nothing: the client connects when it starts."""

    def accept(self) -> None:
        """Nothing: the server takes the client by itself."""

    def begin(self, start_ns: int) -> None:
        """Start the client, where the sender is; its data flows leave from the ports that number them."""
        del start_ns
        flow = self._flow
        if not self._here.has(flow["src"]):
            return
        sender = self._net[flow["src"]]
        with sender.inside():
            self._client = subprocess.Popen(
                client_words(
                    self._spec, self._net[flow["dst"]].IP(), own=self._own(sender), first=self._first
                ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )

    def finished(self) -> bool:
        """True when the client has ended; its output is read as it comes."""
        return self._client is not None and self._client.poll() is not None

    def stop(self) -> None:
        """End the client, before its server is gone; read what it said."""
        if self._client is not None:
            if self._client.poll() is None:
                self._client.kill()
            self._output = self._client.communicate()[0]
            self._client = None

    def end(self) -> None:
        """End both."""
        self.stop()
        if self._server is not None:
            self._server.kill()
            self._server.communicate()
            self._server = None

    def outcome(self) -> dict[str, Any]:
        """The client's JSON, and the flows with their ports. Raises RuntimeError where iperf3 failed."""
        flows = [
            {"flow": number, "port": self._first + number, "finished_ns": None}
            for number in range(self._count)
        ]
        told = {"client": "sender", "flows": flows}
        if not self._here.has(self._flow["src"]):
            return told
        try:
            report = json.loads(self._output)
        except ValueError as broken:
            raise RuntimeError(f"iperf3 gave no JSON: {self._output[-300:]!r}") from broken
        if "error" in report:
            raise RuntimeError(f"iperf3: {report['error']}")
        return {**told, "iperf3": report}
