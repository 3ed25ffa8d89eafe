"""One point, in the agent: build, tune, check the path, load, record, write.

Started as `python3 main.py SPEC OUT`, as the first process of a virtual kernel
or as root on a host. SPEC is a JSON file (see `lab.point`), OUT a folder; it
receives `records.bin` (see `frames`) and `outcome.json`, or `failure.json`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[2])]
for _distribution in ("/usr/lib/python3/dist-packages",):  # started without `site`, for speed
    if _distribution not in sys.path:
        sys.path.append(_distribution)

from lab import clock  # noqa: E402
from lab.agent import frames  # noqa: E402


def load_topology(file: str, name: str) -> Any:
    """Return the Topo class `name` from a topology file."""
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def start_workload(net: Any, spec: dict[str, Any]) -> Any:
    """Return the workload the spec names, made but not prepared."""
    if spec["kind"] == "bulk":
        from lab.workloads.bulk import Bulk

        return Bulk(net, spec)
    raise ValueError(f"no workload {spec['kind']!r}")


def run_point(spec: dict[str, Any], out: Path) -> None:
    """Run one point to its end; files appear in `out`."""
    from lab.agent import tuning
    from lab.agent.network import LabNet
    from lab.probes.queues import QueueProbe
    from lab.probes.sockets import SocketProbe

    clock.exact_timers()
    topology = load_topology(**{k: spec["topology"][k] for k in ("file", "name")})
    net = LabNet(topology(**spec["topology"]["params"]))
    tuned = tuning.apply(net, spec["sysctls"])
    probes = []
    for kind, probe, names in (
        (frames.SOCKETS, SocketProbe, spec["probes"]["sockets"]),
        (frames.QUEUES, QueueProbe, spec["probes"]["queues"]),
    ):
        for name in names:
            with net[name].inside():
                probes.append((kind, list(net.nameToNode).index(name), probe()))

    workload = start_workload(net, spec["workload"])
    workload.prepare()

    second = 10**9
    start_ns = (clock.now_ns() // second + 2) * second
    interval_ns = spec["probes"]["interval_ns"]
    end_ns = start_ns + spec["workload"]["duration_ns"]
    records = []

    def sample() -> None:
        for kind, node, probe in probes:
            instant = clock.now_ns()
            records.append(frames.pack(kind, node, instant - start_ns, probe.read()))

    clock.sleep_until_ns(start_ns)
    sample()
    workload.begin()
    deadline = start_ns
    while deadline < end_ns and not workload.finished():
        deadline = min(deadline + interval_ns, end_ns)
        clock.sleep_until_ns(deadline)
        sample()
    workload.end()
    (out / "records.bin").write_bytes(b"".join(records))
    outcome = {
        "nodes": list(net.nameToNode),
        "interfaces": {
            node.name: {intf.name: intf.ifindex for intf in node.intfList()} for node in net.hosts
        },
        "commands": {node.name: node.commands for node in net.hosts},
        "sysctls": tuned,
        "workload": workload.outcome(),
        "start_ns": start_ns,
    }
    (out / "outcome.json").write_text(json.dumps(outcome, sort_keys=True))


def main() -> int:
    """Run the point; whatever goes wrong is written down, never lost."""
    os.environ.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL="C.UTF-8")
    spec_path, out = Path(sys.argv[1]), Path(sys.argv[2])
    try:
        run_point(json.loads(spec_path.read_text()), out)
    except BaseException as error:
        report = {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
        (out / "failure.json").write_text(json.dumps(report))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
