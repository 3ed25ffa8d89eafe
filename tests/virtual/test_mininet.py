"""Every topology under Mininet's own command, inside a kernel of the lab's, as the reference tells it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from docs import topologies
from lab.kernels import KernelRecord
from lab.plans.plan import Pair, Plan
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
    ["/usr/bin/python3", "/usr/bin/mn", *{words!r}, "--test", "none", "--post", "/run/commands"],
    cwd={root!r}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
Path("/run/out/said").write_bytes(done.stdout)
Path("/run/out/status").write_text(str(done.returncode))
guest.power_off()
"""

SERVE = "import socket; s = socket.socket(); s.bind(('', 99)); s.listen(); s.accept()"
CONNECT = """
import socket, sys, time
s = socket.socket()
began = time.time()
s.connect((sys.argv[1], 99))
print('RTT', sys.argv[1], round(time.time() - began, 4))
"""


def mn(kernel: KernelRecord, folder: Path, words: list[str], commands: str) -> str:
    """Return what `mn` with these words said, after it ran the commands and ended well."""
    init = folder / "init.py"
    told = {"root": str(ROOT), "out": str(folder), "words": words, "commands": commands}
    init.write_text(INIT.format(**told, serve=SERVE, connect=CONNECT))
    subprocess.run(
        [
            *("taskset", "--cpu-list", str(min(os.sched_getaffinity(0)))),  # unpinned it takes times as long
            *(str(kernel.path), "time-travel=inf-cpu", "mem=256M", f"uml_dir={folder}/", "umid=mn"),
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
        timeout=300,
        check=True,
        capture_output=True,
    )
    said = (folder / "said").read_text()
    assert (folder / "status").read_text() == "0", said
    return said


def rtts_s(said: str) -> dict[str, float]:
    """Return the RTT that each address answered with."""
    return {address: float(rtt) for address, rtt in re.findall(r"RTT (\S+) (\S+)", said)}


def connect(plan: Plan, pair: Pair) -> str:
    """Return the lines of Mininet's that join a pair of hosts."""
    address = plan.address(pair.receiver)
    return f"{pair.receiver} python3 /run/serve.py &\n{pair.sender} python3 /run/connect.py {address}\n"


@pytest.mark.parametrize("name", topologies.EXAMPLES)
def test_mn_custom_builds_the_topology(kernel: KernelRecord, tmp_path: Path, name: str) -> None:
    plan = topologies.plan(name)
    pairs = {pair.receiver: pair for pair in (*plan.pairs, *plan.back_pairs[-1:])}.values()
    commands = "r1 tc qdisc show\n" + "".join(connect(plan, pair) for pair in pairs)
    said = mn(kernel, tmp_path, topologies.mininet_words(name), commands)
    assert "htb" in said
    assert "bfifo" in said
    found = rtts_s(said)
    print(name, found)
    assert found == {
        plan.address(pair.receiver): pytest.approx(pair.rtt_s, rel=0.01, abs=2e-4) for pair in pairs
    }


@pytest.mark.slow
def test_two_hundred_hosts_come_up(kernel: KernelRecord, tmp_path: Path) -> None:
    words = ["--custom", "topologies/dumbbell.py", "--controller", "none"]
    words += ["--topo", "dumbbell,pairs=100,rate_bps=1e9,queue=bfifo:1e6,rtt_s=0.02+0.04"]
    said = mn(
        kernel, tmp_path, words, "rcv100 python3 /run/serve.py &\nsnd100 python3 /run/connect.py 10.0.201.2\n"
    )
    assert rtts_s(said) == {"10.0.201.2": pytest.approx(0.04, abs=1e-3)}


def test_lines_of_the_reference_are_those() -> None:
    page = (ROOT / "docs" / "reference" / "topologies.md").read_text(encoding="utf-8")
    lines = re.findall(r"^    sudo mn (.+)$", page, re.MULTILINE)
    assert [shlex.split(line) for line in lines] == [
        topologies.mininet_words(name) for name in topologies.EXAMPLES
    ]
