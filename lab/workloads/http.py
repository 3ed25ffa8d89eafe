"""HTTP download: a file from a real nginx, on as many connections as there are flows.

nginx runs on the sender, from a folder in memory, and serves a sparse file with
sendfile. The client discards in the kernel as it comes.
"""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from lab import clock
from lab.workloads import first_port
from lab.workloads.bulk import RECEIVE_BYTES, SINK

_PORT = 80
_ENDLESS_BYTES = 1 << 42
_CONFIG = """\
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    sendfile on;
    default_type application/octet-stream;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{ listen {address}:{port}; root {folder}; }}
}}
"""


class Http:
    """spec: `flows`, all alike: from `src` (server) to `dst` (client), `bytes` of the file."""

    def __init__(self, net: Any, spec: dict[str, Any]) -> None:
        self._net = net
        self._flow, self._count = spec["flows"][0], len(spec["flows"])
        self._server: subprocess.Popen[bytes] | None = None
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._flows: list[dict[str, Any]] = []
        self._ended = False
        self._refusals: list[str] = []
        self._folder = tempfile.TemporaryDirectory(prefix="wanlab-nginx-")

    def prepare(self) -> None:
        """Start nginx and connect every flow."""
        sender, receiver = self._net[self._flow["src"]], self._net[self._flow["dst"]]
        folder = Path(self._folder.name)
        folder.chmod(0o755)  # nginx's worker is another user
        with (folder / "file").open("wb") as file:
            os.truncate(file.fileno(), self._flow["bytes"] or _ENDLESS_BYTES)
        config = folder / "nginx.conf"
        config.write_text(_CONFIG.format(folder=folder, address=sender.IP(), port=_PORT))
        with sender.inside():
            self._server = subprocess.Popen(
                ["nginx", "-p", str(folder), "-c", str(config), "-e", str(folder / "error.log")],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        for number in range(self._count):
            port = first_port(self._count) + number
            self._connections.append(self._connect(receiver, sender.IP(), port))
            self._flows.append({"flow": number, "port": port, "finished_ns": None})

    def _connect(self, receiver: Any, address: str, port: int) -> socket.socket:
        while True:
            assert self._server is not None
            if self._server.poll() is not None:
                output = self._server.communicate()[0].decode(errors="replace")
                raise RuntimeError(f"nginx ended before it served: {output[-500:]}")
            with receiver.inside():
                connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            connection.bind((receiver.IP(), port))
            try:
                connection.connect((address, _PORT))
            except ConnectionRefusedError:
                connection.close()
                time.sleep(0.05)
                continue
            return connection

    def begin(self, start_ns: int) -> None:
        """Ask for the file on every connection."""
        del start_ns
        for number, connection in enumerate(self._connections):
            thread = threading.Thread(target=self._download, args=(number, connection), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _download(self, number: int, connection: socket.socket) -> None:
        request = f"GET /file HTTP/1.1\r\nHost: {self._flow['src']}\r\nConnection: close\r\n\r\n"
        try:
            connection.sendall(request.encode())
            while connection.recv_into(SINK, RECEIVE_BYTES, socket.MSG_WAITALL | socket.MSG_TRUNC):
                pass
        except OSError:
            return  # the end of the load closed the socket under us
        with self._lock:
            if not self._ended:  # cut off at the end of the load is not finished
                self._flows[number]["finished_ns"] = clock.now_ns()

    def finished(self) -> bool:
        """True when every file has arrived."""
        with self._lock:
            return all(flow["finished_ns"] is not None for flow in self._flows)

    def end(self) -> None:
        """Close the connections and end nginx."""
        with self._lock:
            self._ended = True
        for connection in self._connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # already gone
        for thread in self._threads:
            thread.join()
        assert self._server is not None
        self._server.terminate()
        self._server.communicate()
        log = Path(self._folder.name, "error.log")
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        self._refusals = [line for line in lines if "open()" in line and "failed" in line]
        self._folder.cleanup()

    def outcome(self) -> dict[str, Any]:
        """Flows with their ports and the instant their file was through, ns.

        Raises RuntimeError where nginx could not read the file: what came then was not it.
        """
        if self._refusals:
            raise RuntimeError(f"nginx: {self._refusals[0]}")
        return {"client": "receiver", "flows": self._flows}
