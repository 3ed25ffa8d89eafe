"""The agent with a stopwatch: a short point, and the host's time at which each stage was through.

Started by `speed.py` in the agent's place. Inside, only virtual time passes; but
a file written through to the host carries the host's own time, to a few ms.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]
sys.path.append("/usr/lib/python3/dist-packages")

from lab.agent import guest  # noqa: E402

stages: list[tuple[str, Path]] = []


def through(stage: str) -> None:
    """Note that a stage is through."""
    file = guest.OUT / f"stage{len(stages)}"
    with file.open("w") as stamp:
        stamp.write(stage)
        stamp.flush()
        os.fsync(stamp.fileno())
    stages.append((stage, file))


def main() -> None:
    """Run the stages of a point and write when each was through."""
    spec = json.loads(Path(sys.argv[1]).read_text())
    guest.prepare(str(Path(sys.argv[2]).resolve()))
    os.environ.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL="C.UTF-8")
    through("boot and Python")
    import lab.agent.main as agent  # noqa: PLC0415 (each import is part of a stage)
    from lab import clock  # noqa: PLC0415
    from lab.agent import pathcheck, tuning  # noqa: PLC0415
    from lab.agent.network import LabNet  # noqa: PLC0415
    from lab.agent.recorder import Recorder  # noqa: PLC0415

    topology = agent.load_topology(spec["topology"]["file"], spec["topology"]["name"])
    through("imports, Mininet's most of all")
    net = LabNet(topology(**spec["topology"]["params"]), own_kernel=True)
    through("network, set and read back")
    tuning.apply(net, spec["sysctls"])
    for check in spec["path_check"]:
        pathcheck.measure(net, check)
    through("sysctls and path check")
    recorder = Recorder(net, spec["probes"])
    workload = agent.make_workload(net, spec["workload"])
    workload.prepare()
    through("connections")
    start_ns = clock.now_ns()
    recorder.start(start_ns)
    workload.begin(start_ns)
    recorder.record(workload.finished, start_ns + spec["workload"]["limit_ns"])
    through("load and 200 samples")
    workload.end()
    recorder.frames()
    through("end")
    instants = [(stage, file.stat().st_mtime) for stage, file in stages]
    (guest.OUT / "stages.json").write_text(json.dumps(instants))
    guest.power_off()


main()
