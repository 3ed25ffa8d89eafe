"""iperf3: the tool that everybody has, its JSON kept whole.

In virtual time it costs far more than `bulk`: a select, a read and a clock
reading for nearly every arrival.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

from lab.workloads import first_port

_PORT = 5201


class Iperf3:
    """spec: `flows`, all alike; `duration_s`. iperf3 takes the bytes of all flows together."""

    def __init__(self, net: Any, spec: dict[str, Any]) -> None:
        self._net = net
        self._duration_s, self._count = spec["duration_s"], len(spec["flows"])
        self._flow = spec["flows"][0]
        self._server: subprocess.Popen[bytes] | None = None
        self._client: subprocess.Popen[bytes] | None = None
        self._output = b""

    def prepare(self) -> None:
        """Start the server."""
        receiver = self._net[self._flow["dst"]]
        with receiver.inside():
            self._server = subprocess.Popen(
                ["iperf3", "--version4", "--server", "--one-off", "--port", str(_PORT), "--forceflush"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        assert self._server.stdout is not None
        for line in self._server.stdout:
            if b"listening" in line:
                return
        raise RuntimeError("the iperf3 server did not start to listen")

    def begin(self, start_ns: int) -> None:
        """Start the client; its data flows leave from the ports that number them."""
        del start_ns
        flow, count = self._flow, self._count
        amount = ["--bytes", str(flow["bytes"])] if flow["bytes"] else ["--time", f"{self._duration_s:g}"]
        with self._net[flow["src"]].inside():
            self._client = subprocess.Popen(
                [
                    *("iperf3", "--client", self._net[flow["dst"]].IP(), "--port", str(_PORT)),
                    *("--cport", str(first_port(count)), "--parallel", str(count)),
                    *("--congestion", flow["cc"], "--json", *amount),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )

    def finished(self) -> bool:
        """True when the client has ended; its output is read as it comes."""
        assert self._client is not None
        return self._client.poll() is not None

    def end(self) -> None:
        """Read what the client said; end both."""
        assert self._client is not None and self._server is not None
        if self._client.poll() is None:
            self._client.kill()
        self._output = self._client.communicate()[0]
        self._server.kill()
        self._server.communicate()

    def outcome(self) -> dict[str, Any]:
        """The client's JSON, and the flows with their ports. Raises RuntimeError where iperf3 failed."""
        try:
            report = json.loads(self._output)
        except ValueError as broken:
            raise RuntimeError(f"iperf3 gave no JSON: {self._output[-300:]!r}") from broken
        if "error" in report:
            raise RuntimeError(f"iperf3: {report['error']}")
        first = first_port(self._count)
        flows = [
            {"flow": number, "port": first + number, "finished_ns": None} for number in range(self._count)
        ]
        return {"client": "sender", "flows": flows, "iperf3": report}
