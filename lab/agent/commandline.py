"""Mininet's command line as the lab's network needs it.

The same commands as Mininet's `CLI`; differences: hosts have a second name, one
can hear in a script which commands failed, what cannot work here says so, and
no tool of another package stands between a name and its address.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import signal
import struct
import sys
import termios
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mininet.cli import CLI
from mininet.log import error, output

_LOOK_MS = 500
"""How often a command that says nothing is looked after."""
_JOB = re.compile(r"^\[\d+\] \d+\r?\n")
"""What a shell says of a command that it leaves running."""
_PROMPT = chr(127)
"""What Mininet has its shells say where they wait for the next command."""
_NO_WINDOW = struct.pack("=4H", 24, 80, 0, 0)
"""Rows and columns of a terminal that has no window; of none at all some tools make lines without end."""
_NO_SWITCHES = "this network has hosts and routers and no switch, so there is nothing that it could do"
_NO_DISPLAY = (
    "no display reaches into the lab; put & after a command to go on while it runs, or open a second lab"
)
_IPERF = (
    "Mininet's test waits for lines that today's iperf does not print; h2 iperf3 -s -D, then h1 iperf3 -c h2"
)
_NOT_HERE = {
    **dict.fromkeys(("iperf", "iperfudp"), _IPERF),
    **dict.fromkeys(("xterm", "gterm", "x"), _NO_DISPLAY),
    **dict.fromkeys(("dpctl", "switch", "ports", "wait"), _NO_SWITCHES),
    "link": (
        "a link that goes down takes its routes and neighbours with it, and Mininet does not bring them back;"
        " lose every packet instead: r1 tc qdisc replace dev r1-eth0 root netem loss 100%"
    ),
}


class LabCLI(CLI):  # type: ignore[misc]
    """Mininet's CLI on a `LabNet`; runs to its end when it is made.

    aliases: {second name: node}. lines: commands to run one after the other; None
    reads the terminal. failed: [line, status] of each that ended badly; status
    is None where there was no command to end.
    """

    helpStr = (  # noqa: N815 (Mininet's name)
        "A command for a host starts with its name:\n"
        "  mininet> h1 ping -c 3 h2\n"
        "Names of hosts among the words turn into addresses. With & at the end it runs\n"
        "on while you go on; `noecho h1 vi x` runs what wants the whole terminal.\n\n"
    )

    def __init__(self, net: Any, aliases: Mapping[str, str], lines: Sequence[str] | None = None) -> None:
        self.failed: list[tuple[str, int | None]] = []
        self._lines = lines
        net.nameToNode.update({alias: net.nameToNode[name] for alias, name in aliases.items()})
        self._aliases = dict(aliases)
        order = [*aliases.values(), *net.nameToNode]
        net.hosts.sort(key=lambda node: order.index(node.name))  # `pingpair` is of the first two
        signal.signal(signal.SIGQUIT, lambda *_: None)  # Ctrl-\ is for the command too, not for the lab
        signal.signal(signal.SIGWINCH, lambda *_: self._resize())
        self.mn = net
        quiet = None
        if lines is not None:
            quiet, _never = os.pipe()  # Mininet waits for keys; here none come
        super().__init__(net, stdin=sys.stdin if quiet is None else os.fdopen(quiet))

    @classmethod
    def initReadline(cls) -> None:  # noqa: N802 (Mininet's name)
        """Line editing and history, for as long as the lab is up."""
        with contextlib.suppress(ImportError):
            import readline  # noqa: PLC0415 (only where there is a terminal)

            readline.parse_and_bind("set enable-bracketed-paste off")

    def run(self) -> None:
        """Read commands from the terminal until the user leaves, or run the lines."""
        self.locals.update({name: self.mn[name] for name in self._aliases})
        if self._lines is None:
            super().run()
            return
        for line in self._lines:
            if self.onecmd(self.precmd(line)):
                return

    def onecmd(self, line: str) -> Any:
        """As Mininet's; what cannot work here is refused, and no fault ends the lab."""
        word, arguments, _ = self.parseline(line)
        asked = arguments if word == "help" else word
        if asked in _NOT_HERE and asked not in self.mn:
            self._fail(line, None, f"*** {asked}: {_NOT_HERE[asked]}")
            return None
        try:
            return super().onecmd(line)
        except Exception as fault:
            self._fail(line, None, f"*** {word}: {fault}")
            return None

    def _fail(self, line: str, status: int | None, words: str = "") -> None:
        if words:
            error(f"{words}\n")
        self.failed.append((line.strip(), status))

    def default(self, line: str) -> None:
        """Run a command on a node; names of nodes among its words turn into their addresses."""
        name, arguments, line = self.parseline(line)
        if name not in self.mn:
            self._fail(line, None, f"*** Unknown command: {line}")
            return
        if not arguments:
            self._fail(line, None, f"*** A command for {name} is missing, as in {name} ip route")
            return
        node = self.mn[name]
        words = [self.mn[word].IP() or word if word in self.mn else word for word in arguments.split(" ")]
        self._ready(node)
        node.sendCmd(" ".join(words))
        self.waitForNode(node)
        if self._lines is not None and node.shell is not None:
            status = node.cmd("echo $?").strip()
            if status != "0":
                self._fail(line, int(status) if status.isdigit() else None)

    def _ready(self, node: Any) -> None:
        """Start the shell of a node if there is none, and show what an old one said meanwhile.

        Keys that come as a command ends go to the shell; its answer to them has a
        prompt, which would be taken for the end of the next command.
        """
        if node.shell is None:
            node.cmd("export -n PS1")  # else `env` would print the prompt, which means the end
            self._fit(node)
        poller = select.poll()
        poller.register(node.stdout, select.POLLIN)
        while poller.poll(0):
            output(node.read().replace(_PROMPT, "").replace("\r\n", "\n"))

    def _fit(self, node: Any) -> None:
        size = _NO_WINDOW
        if self.isatty():
            size = fcntl.ioctl(self.stdin.fileno(), termios.TIOCGWINSZ, size)
        fcntl.ioctl(node.slave, termios.TIOCSWINSZ, size)

    def _resize(self) -> None:
        for node in self.mn.values():
            if node.shell is not None:
                self._fit(node)

    def waitForNode(self, node: Any) -> None:  # noqa: N802 (Mininet's name)
        """Show what a node's command says and hand it the keys that are typed, until it ends."""
        poller = select.poll()
        poller.register(node.stdout, select.POLLIN)
        poller.register(self.stdin, select.POLLIN)
        held, job = "", _JOB if node.lastCmd.endswith("&") else None
        with self._by_character():
            while node.waiting:
                try:
                    ready = {number for number, _event in poller.poll(_LOOK_MS)}
                    if node.stdout.fileno() in ready:
                        text = held + node.monitor()
                        if job:
                            text = job.sub("", text)
                        held = "\r" if text.endswith("\r") else ""  # perhaps half of an end of line
                        output(text[: len(text) - len(held)].replace("\r\n", "\n"))
                    elif node.shell.poll() is not None:
                        self._lost(node)
                    if node.waiting and self.stdin.fileno() in ready:  # else they are the next command's
                        os.write(node.stdin.fileno(), os.read(self.stdin.fileno(), 1024))
                except KeyboardInterrupt:
                    node.sendInt()
        output(held)

    def _lost(self, node: Any) -> None:
        """Let a node's shell go that has ended; the next command starts another."""
        node.waiting = False
        node.cleanup()
        output(f"*** the shell of {node.name} has ended; the next command starts another\n")

    @contextlib.contextmanager
    def _by_character(self) -> Iterator[None]:
        """Have keys handed over one by one while the block runs, not by lines."""
        if not self.isatty():
            yield
            return
        number = self.stdin.fileno()
        before = termios.tcgetattr(number)
        changed = [*before]
        changed[3] &= ~termios.ICANON
        termios.tcsetattr(number, termios.TCSADRAIN, changed)
        try:
            yield
        finally:
            termios.tcsetattr(number, termios.TCSADRAIN, before)

    def completenames(self, text: str, *ignored: Any) -> list[str]:
        """Complete the first word: commands and the names of nodes."""
        names = [name for name in self.mn.nameToNode if name.startswith(text)]
        return [*super().completenames(text, *ignored), *names]

    def completedefault(self, text: str, *_ignored: Any) -> list[str]:
        """Complete other words: the names of nodes."""
        return [name for name in self.mn.nameToNode if name.startswith(text)]

    def do_nodes(self, _line: str) -> None:
        """List all nodes, with their second names."""
        second = {name: alias for alias, name in self._aliases.items()}
        for name in self.mn:
            also = f" ({second[name]})" if name in second else ""
            output(f"{name}{also}: {', '.join(f'{i.name} {i.IP()}' for i in self.mn[name].intfList())}\n")
