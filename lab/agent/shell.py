"""Mininet's own command line on a network of the lab, inside a kernel of its own.

Started as the first process of that kernel, as `python3 shell.py SPEC OUT`. It
mounts, builds and tunes as a point's agent does, then lets Mininet's CLI talk to
the terminal that the kernel was given: in a session of its own, so that Ctrl-C
ends the command that runs and not the lab. It loads nothing and records nothing.

SPEC has `topology` and `sysctls` (see `lab.spec`), `aliases` {h1: node}, `files`
(the user's folder: the one that can be written), `user` [number, group's number],
`greeting`, `terminal` {`rows`, `columns`, `kind`} or null, and `lines` to run as a
script or null. OUT receives `outcome.json` with the lines that failed, or `failure.json`.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
import traceback
import tty
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]  # now: once /proc is mounted, this file has another name
sys.path[:0] = [str(_ROOT)]

from lab import clock  # noqa: E402
from lab.agent import guest  # noqa: E402
from lab.agent.main import load_topology  # noqa: E402

CONSOLE, CONTROL = "/dev/tty0", "/dev/tty1"
_TOOLS = Path("/run/bin")
_LEAVE_NS, _LOOK_NS = 2 * 10**9, 10**7
"""What still runs at the end has this long to write its files out, and is looked after this often."""
_NO_ZERO_NS = 10**9
"""When a lab is handed over, on its own clock: in its first second ping (iputils) waits for nothing."""
_WRITEBACK = "100"
"""Hundredths of a second after which a file shows its growth outside."""


def prepare(spec: dict[str, Any], out: str) -> None:
    """Mount what user space needs, and over its own path the folder that is the user's."""
    guest.prepare(out)
    shared = ["/dev/shm"]
    if not _ROOT.is_relative_to("/tmp"):
        shared.append("/tmp")
    for folder in shared:
        Path(folder).mkdir(exist_ok=True)
        guest.mount("tmpfs", folder, "tmpfs")
    files = spec["files"]
    Path(files).mkdir(parents=True, exist_ok=True)
    guest.mount("none", files, "hostfs", files)
    os.chdir(files)
    for name in ("dirty_expire_centisecs", "dirty_writeback_centisecs"):
        Path("/proc/sys/vm", name).write_text(_WRITEBACK)
    _TOOLS.mkdir()
    os.environ.clear()  # Linux makes variables of the words that it was booted with
    os.environ.update(
        PATH=f"{_TOOLS}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        LC_ALL="C.UTF-8",
        HOME="/run",
        TMPDIR="/run",
        SHELL="/bin/bash",
        TERM=(spec["terminal"] or {}).get("kind", "dumb"),
    )
    _wrap_tcpdump(*spec["user"])
    subprocess.run(["ip", "link", "set", "dev", "lo", "up"], check=True)


def _wrap_tcpdump(user: int, group: int) -> None:
    """Have tcpdump write its file as the user that the file is to belong to.

    Started by root, it turns to a user of its own and gives the file to it. The
    host allows that to root alone; so it starts as the user, with what it needs
    of root's capabilities (capabilities(7), ambient set).
    """
    found = shutil.which("tcpdump")
    if found is None:
        return
    caps = "+net_raw,+net_admin,+dac_override"
    turned = f"setpriv --reuid {user} --regid {group} --clear-groups --inh-caps {caps} --ambient-caps {caps}"
    words = f"{turned} {found}" if user else f"{found} -Z root"
    (_TOOLS / "tcpdump").write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    (_TOOLS / "tcpdump").chmod(0o755)


def set_size(terminal: int, rows: int, columns: int) -> None:
    """Set the size of a terminal; the kernel then tells those who run on it (SIGWINCH)."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("=4H", rows, columns, 0, 0))


def follow_size() -> None:
    """Read "rows columns" lines from the control terminal for ever; set the console to them."""
    console = os.open(CONSOLE, os.O_RDWR | os.O_NOCTTY)
    control = os.open(CONTROL, os.O_RDWR | os.O_NOCTTY)
    tty.setraw(control)
    with os.fdopen(control, "r") as lines:
        for line in lines:
            rows, columns = map(int, line.split())
            set_size(console, rows, columns)


def session(spec: dict[str, Any]) -> None:
    """Take the console as one's own terminal, build the network, run the command line to its end."""
    os.setsid()
    console = os.open(CONSOLE, os.O_RDWR)  # the first terminal that a session's leader opens is its own
    for number in range(3):
        os.dup2(console, number)
    # at the start there were no standard descriptors to make these from
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w", 1), os.fdopen(2, "w", 1)
    terminal = spec["terminal"]
    if terminal:
        set_size(0, terminal["rows"], terminal["columns"])
    else:
        tty.setraw(0)  # lines end outside as they do here

    from lab.agent import tuning  # noqa: PLC0415 (Mininet keeps the standard error that it finds)
    from lab.agent.commandline import LabCLI  # noqa: PLC0415
    from lab.agent.network import LabNet  # noqa: PLC0415

    topology = load_topology(spec["topology"]["file"], spec["topology"]["name"])
    net = LabNet(topology(**spec["topology"]["params"]), own_kernel=True)
    tuning.apply(net, spec["sysctls"])
    name_interfaces(net, spec["aliases"])
    clock.sleep_until_ns(_NO_ZERO_NS)
    print(spec["greeting"], end="", flush=True)
    line = LabCLI(net, spec["aliases"], spec["lines"])
    termios.tcdrain(1)
    (guest.OUT / "outcome.json").write_text(json.dumps({"failed": line.failed}))


def name_interfaces(net: Any, aliases: dict[str, str]) -> None:
    """Give the interfaces of hosts second names as the hosts have them: h1-eth0 for snd-eth0."""
    from lab.agent.network import run_checked  # noqa: PLC0415 (see `session`)

    for alias, name in aliases.items():
        words = [
            f"link property add dev {intf.name} altname {alias}{intf.name.removeprefix(name)}"
            for intf in net[name].intfList()
        ]
        with net[name].inside():
            run_checked(["ip", "-batch", "-"], "\n".join(words) + "\n")


def run(spec: dict[str, Any]) -> None:
    """Run the session in a process of its own, and see everything to its end."""
    child = os.fork()
    if child == 0:
        try:
            session(spec)
        except BaseException as error:
            _report(error)
        os._exit(0)
    if spec["terminal"]:
        threading.Thread(target=follow_size, daemon=True).start()
    while os.wait()[0] != child:
        pass  # the first process inherits and reaps all that others leave
    _end_all()


def _end_all() -> None:
    """Let all that still runs write its files out and end."""
    try:
        os.kill(-1, signal.SIGTERM)
        os.kill(-1, signal.SIGHUP)  # which is what an interactive shell ends for
    except ProcessLookupError:
        return
    deadline_ns = clock.now_ns() + _LEAVE_NS
    try:
        while clock.now_ns() < deadline_ns:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                clock.sleep_until_ns(clock.now_ns() + _LOOK_NS)
    except ChildProcessError:
        return


def _report(error: BaseException) -> None:
    report = {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
    (guest.OUT / "failure.json").write_text(json.dumps(report))


def main(argv: Sequence[str]) -> None:
    """Prepare, run, end the kernel; what goes wrong is written down."""
    spec = json.loads(Path(argv[0]).read_text())
    try:
        prepare(spec, str(Path(argv[1]).resolve()))
        run(spec)
    except BaseException as error:
        _report(error)
    guest.power_off()


if __name__ == "__main__":
    main(sys.argv[1:])
