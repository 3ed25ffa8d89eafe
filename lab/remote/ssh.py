"""The user's own OpenSSH: the arguments it is given, and what its failures mean.

Its configuration, keys, agent and jump hosts work as they do by hand; what is
set here is what a program needs that must never be asked, and must never trust
a host that the user does not know. The command on the other host is one
constant a way of becoming root; nothing of any input is in it.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from pathlib import Path

from lab import command
from lab.remote.inventory import Entry

CONNECT_LIMIT_S = 15
"""That ssh may take for one connection; a jump host takes as long again."""

_OPTIONS = (
    "BatchMode=yes",  # asks nothing: no password, no passphrase, no unknown key
    "StrictHostKeyChecking=yes",
    f"ConnectTimeout={CONNECT_LIMIT_S}",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
    "ControlMaster=auto",
    "ControlPersist=no",
    "ForwardAgent=no",
    "ForwardX11=no",
    "ClearAllForwardings=yes",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    "RequestTTY=no",
    "LogLevel=ERROR",
)

_BECOME = {"none": "", "sudo": "sudo -n -- ", "doas": "doas -n -- "}

BOOTSTRAP = (
    "import hashlib,os,signal,sys;"
    'sys.version_info<(3,8) and sys.exit("wanlab: python3 is %d.%d"%sys.version_info[:2]);'
    "signal.alarm(60);"  # until it is told more, it must not stay if nobody speaks to it
    "r=sys.stdin.buffer.read;"
    'b=r(int.from_bytes(r(4),"big"));'
    'f=os.memfd_create("wanlab");os.write(f,b);'
    'sys.path.insert(0,"/proc/self/fd/%d"%f);'
    "from lab.agent import serve;"
    "serve.main(hashlib.sha256(b).hexdigest())"
)
"""What starts the agent from the zip on its standard input. It has to be fit for single quotes in
any login shell: no single quote, no backslash, no exclamation mark, one line."""


def remote_command(become: str) -> str:
    """Return the command line on the other host."""
    return f"{_BECOME[become]}python3 -I -S -c '{BOOTSTRAP}'"


def argv(entry: Entry, ssh_config: Path | None, control: Path) -> list[str]:
    """Return the arguments of ssh, its name first. control: a private folder for the connection's socket."""
    options = [word for option in _OPTIONS for word in ("-o", option)]
    return [
        "ssh",
        *(("-F", str(ssh_config)) if ssh_config else ()),
        *options,
        *("-o", f"ControlPath={control}/%C"),
        "-T",
        "--",
        entry.address,
        remote_command(entry.become),
    ]


def shown(entry: Entry, ssh_config: Path | None) -> str:
    """Return the command line for reading; the private folder has no name yet."""
    return shlex.join(argv(entry, ssh_config, Path("/tmp/wanlab-XXXXXXXX")))


def start(words: list[str]) -> subprocess.Popen[bytes]:
    """Start ssh with all three streams in pipes, in a session of its own: Ctrl-C is for us, and we close it.

    Raises PreconditionError where there is no ssh.
    """
    environment = {**os.environ, "LC_ALL": "C", "LANG": "C"}  # sent along, so that sudo's words are known
    environment.pop("LANGUAGE", None)
    return command.converse(words, env=environment)


_FAILURES: tuple[tuple[str, str], ...] = (  # words of OpenSSH 7 to 10, sudo, doas, shells: and what they mean
    (
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|host key for .* has changed",
        "its host key is not the one that your known_hosts has: the host was set up anew, or something else"
        " answers in its place; find out which, then `ssh-keygen -R` removes the old key",
    ),
    (
        r"REVOKED HOST KEY|marked as revoked",
        "its host key is revoked in your known_hosts; ask its administrator for the new one",
    ),
    (
        r"No .* host key is known for|Host key verification failed|authenticity of host",
        "its host key is not known; connect once by hand with ssh and compare the fingerprint,"
        " or add the key to known_hosts",
    ),
    (
        r"Permission denied \(|Too many authentication failures|No supported authentication methods",
        "it refuses the login; nothing can be typed here, so set up a key or an agent until"
        " `ssh -o BatchMode=yes` gets in",
    ),
    (
        r"Could not resolve hostname|Name or service not known",
        "its name cannot be resolved; correct the address",
    ),
    (
        r"Connection refused",
        "nothing answers on its SSH port; start sshd there, or correct address and port",
    ),
    (
        r"No route to host|Network is unreachable",
        "there is no way to it; look at the network between",
    ),
    (
        r"[Cc]onnection timed out|Operation timed out|timed out while|Timeout, server .* not responding",
        "it does not answer, or has stopped to; see that it is up and that no firewall drops its SSH port",
    ),
    (
        r"Bad configuration option|bad configuration options|Can't open user config file",
        "ssh does not read its configuration; correct it until `ssh -G` takes it",
    ),
    (
        r"too long for Unix domain socket",
        "the folder for temporary files here has too long a name for a socket; set TMPDIR to /tmp",
    ),
    (
        r"Bad owner or permissions|UNPROTECTED PRIVATE KEY",
        "others may read a key or write the configuration of ssh; `chmod 600` it",
    ),
    (
        r"sudo: (?:command )?not found|command not found: sudo",
        'there is no sudo; log in as root with become = "none", or install it',
    ),
    (
        r"doas: (?:command )?not found|command not found: doas",
        'there is no doas; log in as root with become = "none", or install it',
    ),
    (
        r"python3: (?:command )?not found|(?:command not found|Unknown command): python3",
        "there is no python3; install Python 3.8 or later there",
    ),
    (
        r"sudo: a password is required|a terminal is required to read the password"
        r"|no tty present and no askpass|you must have a tty|sudo: a terminal is required",
        "sudo there asks for a password, and nobody can type one; allow python3 with NOPASSWD in sudoers,"
        ' log in as root with become = "none", or use another user',
    ),
    (
        r"is not in the sudoers file|may not run sudo|is not allowed to (?:execute|run)",
        "sudo there does not let this user become root; allow it in sudoers, or use another user",
    ),
    (
        r"doas: (?:Auth|a tty|Operation not permitted|not permitted|Permission denied)",
        "doas there does not let this user become root; permit it with nopass in doas.conf",
    ),
    (
        r"wanlab: python3 is (\d+\.\d+)",
        "python3 there is {0}, and the agent needs 3.8 or later; install a later one",
    ),
    (
        r"No module named '(?!lab\b)(\w+)|No module named (?!lab\b)(\w+)",
        "python3 there is not complete, it lacks a module of the standard library; install the whole of it",
    ),
    (
        r"This account is currently not available|account (?:is locked|has expired)",
        "the account cannot log in there; use another user",
    ),
)


def explain(status: int | None, stderr: str) -> str:
    """Return why a connection failed, in one clause, from the words of ssh and of the far side.

    status: exit code of ssh, None while it runs. What is not known is quoted.
    """
    for pattern, sentence in _FAILURES:
        found = re.search(pattern, stderr)
        if found:
            return sentence.format(*found.groups())
    words = [line.strip() for line in stderr.splitlines() if line.strip()]
    if words:
        return f"ssh says: {printable(words[-1])}"
    if status is None:
        return "it does not answer"
    if status == 255:
        return "the connection ended"
    if status == 128 + signal.SIGKILL:
        return "the agent there was killed: by its watchdog, when no word came from here, or by somebody"
    return f"the agent there ended with status {status} and no word"


def printable(text: str) -> str:
    """Return a line of another host with nothing in it that a terminal would act upon."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)[:300]
