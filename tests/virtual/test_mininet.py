"""The topology under Mininet's own command, inside a kernel of the lab's."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.virtual.conftest import ROOT

pytestmark = pytest.mark.virtual

INIT = """
import subprocess, sys
sys.path[:0] = [{root!r}]
from pathlib import Path
from lab.agent import guest
guest.prepare({out!r})
import os
os.environ.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", HOME="/run")
Path("/run/commands").write_text({commands!r})
Path("/run/serve.py").write_text({serve!r})
Path("/run/connect.py").write_text({connect!r})
done = subprocess.run(
    ["/usr/bin/python3", "/usr/bin/mn", "--custom", {topology!r}, "--controller", "none",
     "--topo", "path,rate_bps=1e8,delay_out_s=0.01,delay_back_s=0.01",
     "--test", "none", "--post", "/run/commands"],
    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
Path("/run/out/said").write_bytes(done.stdout)
Path("/run/out/status").write_text(str(done.returncode))
guest.power_off()
"""

SERVE = "import socket; s = socket.socket(); s.bind(('10.0.3.2', 99)); s.listen(); s.accept()"
CONNECT = """
import socket, time
s = socket.socket()
began = time.time()
s.connect(('10.0.3.2', 99))
print('RTT', round(time.time() - began, 4))
"""
COMMANDS = """
r1 tc qdisc show
rcv python3 /run/serve.py &
snd python3 /run/connect.py
"""


def test_mn_custom_builds_the_path(kernel, tmp_path):
    init = tmp_path / "init.py"
    init.write_text(
        INIT.format(
            root=str(ROOT),
            out=str(tmp_path),
            commands=COMMANDS,
            serve=SERVE,
            connect=CONNECT,
            topology=str(ROOT / "topologies" / "path.py"),
        )
    )
    subprocess.run(
        [
            *(str(kernel.path), "time-travel=inf-cpu", "mem=256M", f"uml_dir={tmp_path}/", "umid=mn"),
            *(
                "root=none",
                "rootfstype=hostfs",
                "rootflags=/",
                "ro",
                "quiet",
                "panic=-1",
                "con=null",
                "con0=null,fd:1",
            ),
            *("init=/usr/bin/python3", "--", "-I", "-S", str(init)),
        ],
        timeout=60,
        check=True,
        capture_output=True,
    )
    said = Path(tmp_path / "said").read_text()
    assert (tmp_path / "status").read_text() == "0", said
    assert "htb" in said
    assert "netem" in said
    assert "RTT 0.02" in said
