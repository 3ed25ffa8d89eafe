"""One point, in the agent: build, tune, check the path, load, record, write.

Started as `python3 main.py SPEC OUT`, as the first process of a kernel of its
own or as root on a host. SPEC is a JSON file (see `lab.point`), OUT a folder; it
receives `records.bin` (see `frames`) and `outcome.json`, or `failure.json`.
"""

from __future__ import annotations

import importlib
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

_SECOND_NS = 10**9

PRIVATE = ("/dev/shm", "/mnt", "/media")
"""Where an agent in namespaces of its own may have its temporary files: folders of every Linux."""


def load_topology(file: str, name: str) -> Any:
    """Return the Topo class of a topology file that Mininet knows as `name`."""
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.topos[name]


WORKLOADS = {
    "bulk": ("lab.workloads.bulk", "Bulk"),
    "iperf3": ("lab.workloads.iperf3", "Iperf3"),
    "http": ("lab.workloads.http", "Http"),
    "request": ("lab.workloads.request", "Request"),
}


def make_workload(net: Any, spec: dict[str, Any]) -> Any:
    """Return the workload the spec names, made but not prepared."""
    module, name = WORKLOADS[spec["kind"]]
    return getattr(importlib.import_module(module), name)(net, spec)


def run_point(spec: dict[str, Any], out: Path) -> None:
    """Run one point to its end; files appear in `out`."""
    from lab.agent import pathcheck, tuning  # noqa: PLC0415 (after the mounts)
    from lab.agent.changer import Changer  # noqa: PLC0415
    from lab.agent.drops import DropLists  # noqa: PLC0415
    from lab.agent.network import LabNet  # noqa: PLC0415
    from lab.agent.recorder import Recorder  # noqa: PLC0415
    from lab.workloads.stream import Stream  # noqa: PLC0415

    captures: Any = None
    clock.exact_timers()
    topology = load_topology(spec["topology"]["file"], spec["topology"]["name"])
    net = LabNet(topology(**spec["topology"]["params"]), own_kernel=spec["own_kernel"])
    try:
        tuned = tuning.apply(net, spec["sysctls"])
        checked = [pathcheck.measure(net, one) for one in spec["path_check"]]
        recorder = Recorder(net, spec["probes"])  # before threads: it may fork
        drops = DropLists(net, spec["drops"])
        changer = Changer(net, spec["changes"])
        streams = [Stream(net, one) for one in spec["streams"]]
        if spec["captures"]:
            from lab.agent.capture import Captures  # noqa: PLC0415 (few points have any)

            captures = Captures(net, spec["captures"], out)
        workload = make_workload(net, spec["workload"])
        workload.prepare()
        start_ns = ((clock.now_ns() + _SECOND_NS // 10) // _SECOND_NS + 1) * _SECOND_NS
        clock.sleep_until_ns(start_ns)
        end_ns = start_ns + spec["workload"]["limit_ns"]
        drops.reset()
        recorder.start(start_ns)
        changer.begin(start_ns)
        for stream in streams:
            stream.begin(start_ns, end_ns)
        workload.begin(start_ns)
        recorder.record(workload.finished, end_ns)
        for stream in streams:
            stream.end()
        workload.end()
        changer.end()
        for kind, flow, taken in [*getattr(workload, "delays", list)(), *(one.delays() for one in streams)]:
            recorder.add_delays(kind, flow, taken)
        outcome = {
            "nodes": list(net.nameToNode),
            "interfaces": {
                node.name: {intf.name: intf.ifindex for intf in node.intfList()} for node in net.hosts
            },
            "commands": {node.name: node.commands for node in net.hosts},
            "sysctls": tuned,
            "path": checked,
            "workload": workload.outcome(),
            "dropped": drops.dropped(),
            **({"captures": captures.end()} if captures else {}),
            "start_ns": start_ns,
            "end_ns": clock.now_ns(),
        }
    finally:
        if not spec["own_kernel"]:  # else all of it ends with the kernel
            net.stop()
    (out / "records.bin").write_bytes(recorder.frames())
    (out / "outcome.json").write_text(json.dumps(outcome, sort_keys=True))


def _hides(folder: str, out: Path) -> bool:
    """Return whether something that we need would be hidden by a mount on a folder, or there is none."""
    needed = (out, Path(__file__).resolve(), Path(sys.prefix))
    return not Path(folder).is_dir() or any(folder in map(str, path.parents) for path in needed)


def main() -> int:
    """Run the point; whatever goes wrong is written down, never lost."""
    os.environ.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL="C.UTF-8")
    spec = json.loads(Path(sys.argv[1]).read_text())
    out, first = Path(sys.argv[2]).resolve(), spec["own_kernel"]
    if first:
        from lab.agent import guest  # noqa: PLC0415 (only inside a kernel of its own)

        guest.prepare(str(out))
        out = guest.OUT
        guest.power_off_at(
            spec["virtual_limit_ns"], f"no end after {spec['virtual_limit_ns'] / 1e9:g} virtual seconds"
        )
    elif os.getpid() == 1:
        from lab.agent import guest  # noqa: PLC0415

        # Of our own mount namespace: other users may read here, and it goes with us.
        private = next(folder for folder in PRIVATE if not _hides(folder, out))
        guest.mount("tmpfs", private, "tmpfs")
        os.environ["TMPDIR"] = private
    status = 0
    try:
        run_point(spec, out)
    except BaseException as error:
        report = {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
        (out / "failure.json").write_text(json.dumps(report))
        status = 1
    if first:
        guest.power_off()
    return status


if __name__ == "__main__":
    sys.exit(main())
