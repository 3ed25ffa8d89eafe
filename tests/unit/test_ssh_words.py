"""What ssh is given, and what its words and those of the far side mean."""

from __future__ import annotations

import io
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from lab.remote import ssh
from lab.remote.inventory import BECOMES, Entry

ENTRY = Entry("sender", "alice@lab1", "sender", ("eth1",), "192.0.2.1", "sudo")


def test_arguments() -> None:
    words = ssh.argv(ENTRY, Path("/home/a b/config"), Path("/tmp/wanlab-x"))
    assert words[:3] == ["ssh", "-F", "/home/a b/config"]
    options = {words[at + 1] for at, word in enumerate(words) if word == "-o"}
    assert options >= {
        *("BatchMode=yes", "StrictHostKeyChecking=yes", "ServerAliveInterval=5", "ServerAliveCountMax=3"),
        *("ControlMaster=auto", "ControlPath=/tmp/wanlab-x/%C", "ControlPersist=no", "ForwardAgent=no"),
        *("RemoteCommand=none", "RequestTTY=no", "PermitLocalCommand=no", "ClearAllForwardings=yes"),
    }
    assert words[-4:-1] == ["-T", "--", "alice@lab1"]
    assert "-F" not in ssh.argv(ENTRY, None, Path("/tmp/wanlab-x"))


def test_the_remote_command_is_one_constant_a_way_of_becoming_root() -> None:
    commands = {become: ssh.remote_command(become) for become in BECOMES}
    assert len(set(commands.values())) == len(BECOMES)
    assert commands["sudo"] == "sudo -n -- " + commands["none"]
    assert commands["doas"] == "doas -n -- " + commands["none"]
    other = Entry("x", "root@elsewhere", "receiver", ("eth9",), "192.0.2.9", "sudo")
    assert (
        ssh.argv(other, None, Path("/y"))[-1]
        == ssh.argv(ENTRY, Path("/c"), Path("/x"))[-1]
        == commands["sudo"]
    )


def test_the_bootstrap_passes_any_shell_as_it_is() -> None:
    assert ssh.BOOTSTRAP.isprintable()
    assert ssh.BOOTSTRAP.isascii()
    assert not set("'\\!") & set(ssh.BOOTSTRAP)
    assert shlex.split(ssh.remote_command("none"))[-1] == ssh.BOOTSTRAP
    compile(ssh.BOOTSTRAP, "bootstrap", "exec")


def test_an_old_python_says_which_it_is() -> None:
    old = f"import sys; sys.version_info = (3, 7, 3); exec({ssh.BOOTSTRAP!r})"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", old], input=b"", capture_output=True, check=False
    )
    assert done.returncode == 1
    said = ssh.explain(done.returncode, done.stderr.decode())
    assert said == "python3 there is 3.7, and the agent needs 3.8 or later; install a later one"


def test_a_line_for_reading_is_one_that_a_shell_takes() -> None:
    line = ssh.shown(ENTRY, None)
    assert shlex.split(line)[-3:] == ["--", "alice@lab1", ssh.remote_command("sudo")]


CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!
The fingerprint for the ED25519 key sent by the remote host is
SHA256:GqQGZbUfFnLJbtLJYJhOcrLUVVi8aYGfLmZCS5gxmNk.
Please contact your system administrator.
Host key for lab1 has changed and you have requested strict checking.
Host key verification failed.
"""
LECTURE = """\
sudo: a terminal is required to read the password; either use the -S option to read from standard input \
or configure an askpass helper
sudo: a password is required
"""
WORDS = [
    (CHANGED, "its host key is not the one that your known_hosts has"),
    (
        "No ED25519 host key is known for lab1 and you have requested strict checking.\r\n"
        "Host key verification failed.\r\n",
        "its host key is not known; connect once by hand",
    ),
    (
        "@       WARNING: REVOKED HOST KEY DETECTED!               @\nHost key verification failed.",
        "is revoked",
    ),
    ("alice@lab1: Permission denied (publickey,password).", "it refuses the login"),
    (
        "Received disconnect from 192.0.2.1 port 22:2: Too many authentication failures",
        "it refuses the login",
    ),
    ("ssh: Could not resolve hostname lab1: Name or service not known", "cannot be resolved"),
    ("ssh: Could not resolve hostname lab1: Temporary failure in name resolution", "cannot be resolved"),
    ("ssh: connect to host lab1 port 22: Connection refused", "nothing answers on its SSH port"),
    ("ssh: connect to host lab1 port 22: No route to host", "there is no way to it"),
    ("ssh: connect to host lab1 port 22: Network is unreachable", "there is no way to it"),
    ("ssh: connect to host lab1 port 22: Connection timed out", "it does not answer"),
    ("Timeout, server lab1 not responding.", "it does not answer, or has stopped to"),
    ("Connection timed out during banner exchange", "it does not answer"),
    ("/home/a/config: line 3: Bad configuration option: hostnam", "ssh does not read its configuration"),
    ("Can't open user config file /x: No such file or directory", "ssh does not read its configuration"),
    ("Bad owner or permissions on /home/a/.ssh/config", "`chmod 600` it"),
    ('unix_listener: path "/tmp/x" too long for Unix domain socket', "set TMPDIR to /tmp"),
    (LECTURE, "sudo there asks for a password"),
    ("sudo: a password is required", "sudo there asks for a password"),
    ("sudo: sorry, you must have a tty to run sudo", "sudo there asks for a password"),
    ("sudo: no tty present and no askpass program specified", "sudo there asks for a password"),
    (
        "alice is not in the sudoers file.  This incident will be reported.",
        "does not let this user become root",
    ),
    ("Sorry, user alice may not run sudo on lab1.", "does not let this user become root"),
    (
        "Sorry, user alice is not allowed to execute '/usr/bin/python3 -I -S -c import' as root on lab1.",
        "does not let this user become root",
    ),
    ("doas: Authentication required", "permit it with nopass"),
    ("doas: Operation not permitted", "permit it with nopass"),
    ("sh: 1: sudo: not found", "there is no sudo"),
    ("bash: line 1: doas: command not found", "there is no doas"),
    ("sh: 1: python3: not found", "there is no python3"),
    ("bash: line 1: python3: command not found", "there is no python3"),
    ("zsh:1: command not found: python3", "there is no python3"),
    ("sudo: python3: command not found", "there is no python3"),
    ("fish: Unknown command: python3", "there is no python3"),
    ("ModuleNotFoundError: No module named 'ctypes'", "it lacks a module of the standard library"),
    ("This account is currently not available.", "the account cannot log in"),
]


@pytest.mark.parametrize(("stderr", "sentence"), WORDS)
def test_known_words_become_a_sentence_with_a_mend(stderr: str, sentence: str) -> None:
    said = ssh.explain(255, stderr)
    assert sentence in said
    assert "\n" not in said
    assert not said.startswith("ssh says")


@pytest.mark.parametrize(
    ("status", "stderr", "said"),
    [
        (255, "", "the connection ended"),
        (137, "", "the agent there was killed: by its watchdog, when no word came from here, or by somebody"),
        (None, "", "it does not answer"),
        (1, " \n", "the agent there ended with status 1 and no word"),
        (255, "first\nsomething new\n", "ssh says: something new"),
        (255, "evil \x1b[2Jword\x07", "ssh says: evil ?[2Jword?"),
    ],
)
def test_unknown_words_are_quoted(status: int | None, stderr: str, said: str) -> None:
    assert ssh.explain(status, stderr) == said


def test_a_missing_ssh_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from lab.errors import PreconditionError  # noqa: PLC0415

    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PreconditionError, match="ssh is not installed"):
        ssh.start(["ssh"])


def test_the_far_side_is_asked_to_speak_english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LANGUAGE", "de")
    process = ssh.start(["env"])
    told = io.BytesIO(process.communicate()[0]).read().decode().splitlines()
    assert "LC_ALL=C" in told
    assert not [line for line in told if line.startswith("LANGUAGE=")]
