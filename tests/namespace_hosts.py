"""Hosts made of namespaces of this machine: network, mounts, processes and an sshd each.

They stand for machines of a network, so that the remote engine is tested over
the real OpenSSH. Each has a management link to here (`eth0` there, addresses of
10.213.0.0/16), and a test network between them (`eth1`, on the emulator also
`eth2`). `/run` is private to each, and so are accounts and sudo's rules. All of
it goes when `Lab.close` is called or this process dies.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

NAMES = {2: ("sender", "receiver"), 3: ("sender", "emulator", "receiver")}
GUEST = "guest"
"""An account of every host that is not root's, and that sudo knows nothing of unless told."""

_INIT = """
import os, select, sys
print("ready", flush=True)
while True:
    known, _, _ = select.select([0], [], [], 0.1)
    if known and not os.read(0, 4096):
        sys.exit(0)
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
"""
"""The first process of a host: reaps what is left to it, and ends with the one that made the host."""

_SETUP = """
set -e
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs -o mode=755,size={run_size} tmpfs /run
mkdir /run/sshd /run/root /run/guest
chown 1234:1234 /run/guest
cp {folder}/authorized_keys /run/authorized_keys
chmod 644 /run/authorized_keys
for file in passwd shadow sudoers; do mount --bind {folder}/$file /etc/$file; done
for which in all default; do echo 1 > /proc/sys/net/ipv6/conf/$which/disable_ipv6; done
ip link set dev lo up
exec /usr/bin/python3 -I -S -c "$INIT"
"""

_SSHD = """
Port 22
HostKey {folder}/host_key
AuthorizedKeysFile /run/authorized_keys
PidFile /run/sshd.pid
UsePAM no
StrictModes no
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
UseDNS no
"""

_VOLATILE = ("nf_conntrack_count", "random/", "/tcp_fastopen_key", "_mtu_info", "dev_weight")


class Host:
    """One host. process: the number of its first process, here."""

    def __init__(self, lab: Lab, name: str, number: int, run_size: str) -> None:
        self.name = name
        self.management = f"10.213.{lab.number}.{4 * number + 2}"
        self.address = f"root@{self.management}"
        self.test_address = ""
        self.interfaces: list[str] = []
        self._here = f"wl{lab.number}m{number}"
        self._nowhere = f"wl{lab.number}x"
        self._folder = lab.folder / name
        self._folder.mkdir()
        self._files(lab)
        setup = _SETUP.format(folder=self._folder, run_size=run_size)
        self._unshare = subprocess.Popen(
            [
                *(
                    "unshare",
                    "--net",
                    "--mount",
                    "--pid",
                    "--fork",
                    "--kill-child",
                    "--propagation",
                    "private",
                ),
                *("sh", "-c", setup),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "INIT": _INIT},
        )
        assert self._unshare.stdout is not None
        assert self._unshare.stdout.readline() == b"ready\n", f"host {name} does not come up"
        children = Path(f"/proc/{self._unshare.pid}/task/{self._unshare.pid}/children").read_text().split()
        (self.process,) = (int(child) for child in children)
        lab.ip(f"link set dev {self._here}p name eth0 netns {self.process}")
        self.ip(f"address add {self.management}/30 dev eth0", "link set dev eth0 up")

    def _files(self, lab: Lab) -> None:
        """Write what is private to this host: keys, accounts, the configuration of sshd."""
        make_key(self._folder / "host_key")
        files = {
            "authorized_keys": (lab.folder / "key.pub").read_text(),
            "passwd": "root:x:0:0::/run/root:/bin/sh\nguest:x:1234:1234::/run/guest:/bin/sh\n"
            "sshd:x:104:65534::/run/sshd:/usr/sbin/nologin\n",
            "shadow": "root:*:20000:0:99999:7:::\nguest:*:20000:0:99999:7:::\n",
            "sudoers": "root ALL=(ALL) ALL\n",
        }
        for name, text in files.items():
            (self._folder / name).write_text(text)
        (self._folder / "shadow").chmod(0o600)
        (self._folder / "sudoers").chmod(0o440)

    def run(self, argv: Sequence[str], *, check: bool = True, stdin: str = "") -> str:
        """Run a command inside; return its standard output."""
        done = subprocess.run(
            ["nsenter", "-t", str(self.process), "-n", "-m", "-p", "--", *argv],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"},
        )
        assert not check or done.returncode == 0, f"{self.name}: {shlex.join(argv)}: {done.stderr}"
        return done.stdout

    def ip(self, *commands: str) -> None:
        """Run `ip` commands inside, given without their first word."""
        for command in commands:
            self.run(["ip", *command.split()])

    def start_sshd(self, more: str = "") -> None:
        """Start sshd; it answers when this returns. more: lines of its configuration."""
        configuration = self._folder / "sshd_config_now"
        configuration.write_text(_SSHD.format(folder=self._folder) + more)
        self.run(["/usr/sbin/sshd", "-f", str(configuration)])
        deadline = time.monotonic() + 10
        while "SSH" not in self.run(["sh", "-c", "ss -Hltn 'sport = :22' | sed s/.*LISTEN.*/SSH/"]):
            assert time.monotonic() < deadline, f"{self.name}: sshd does not listen"

    def stop_sshd(self) -> None:
        """End sshd; connections that there are stay."""
        self.run(["sh", "-c", "kill $(cat /run/sshd.pid)"])
        deadline = time.monotonic() + 10
        while self.run(["sh", "-c", "ss -Hltn 'sport = :22'"]):
            assert time.monotonic() < deadline, f"{self.name}: sshd does not end"

    def allow_sudo(self, rule: str) -> None:
        """Write a rule of sudo's own file on this host, such as `guest ALL=(ALL) NOPASSWD: ALL`."""
        path = self._folder / "sudoers"
        path.chmod(0o640)
        path.write_text(f"root ALL=(ALL) ALL\n{rule}\n")
        path.chmod(0o440)

    def cut(self) -> None:
        """Cut the management link: nothing gets through in either direction, and nobody is told."""
        nowhere = f"match u32 0 0 action mirred egress redirect dev {self._nowhere}"
        for command in (
            f"qdisc add dev {self._here} root handle 1: pfifo limit 0",
            f"qdisc add dev {self._here} handle ffff: ingress",
            f"filter add dev {self._here} parent ffff: protocol all u32 {nowhere}",
        ):
            subprocess.run(["tc", *command.split()], check=True)

    def mend(self) -> None:
        """Join the management link again; nothing where it was not cut."""
        for place in ("root", "ingress"):
            argv = ["tc", "qdisc", "del", "dev", self._here, place]
            subprocess.run(argv, check=False, capture_output=True)

    def processes(self, part: str, first: str = "") -> list[int]:
        """Return the processes inside whose command line has `part` and begins with `first`."""
        found = []
        for line in self.run(["ps", "-eo", "pid=,args="]).splitlines():
            number, _, words = line.strip().partition(" ")
            if part in words and words.startswith(first) and not words.startswith("ps "):
                found.append(int(number))
        return found

    def kill(self, signal: str, *processes: int) -> None:
        """Send a signal to processes inside, by their numbers inside."""
        if processes:
            self.run(["kill", f"-{signal}", *map(str, processes)])

    def settings(self) -> dict[str, str]:
        """Return every sysctl of the network, qdisc, class, filter, link, address and route there is.

        What this machine shares with its namespaces can only be read there, and is not the host's.
        """
        own = "find /proc/sys/net -type f -perm -u=w -exec grep -Hs '' {} +"
        lines = self.run(["sh", "-c", own], check=False).splitlines()
        found = {
            name: value
            for name, _, value in (line.partition(":") for line in lines)
            if not any(part in name for part in _VOLATILE)
        }
        for what in ("ip link", "ip address", "ip route show table all", "ip rule", "tc qdisc"):
            found[what] = self.run(what.split())
        for interface in self.interfaces:
            for what in ("class", "filter"):
                found[f"tc {what} {interface}"] = self.run(["tc", what, "show", "dev", interface])
        return found

    def leftovers(self) -> str:
        """Return what there is of ours below /run and among the processes, "" for nothing."""
        files = self.run(["find", "/run/wanlab"], check=False)
        return files + "".join(f"process {one}\n" for one in self.processes("-I -S -c") if one != 1)

    def close(self) -> None:
        """End the host and all in it."""
        assert self._unshare.stdin is not None
        assert self._unshare.stdout is not None
        self._unshare.stdin.close()
        try:
            self._unshare.wait(10)
        except subprocess.TimeoutExpired:
            self._unshare.kill()
            self._unshare.wait()
        self._unshare.stdout.close()
        subprocess.run(["ip", "link", "delete", self._here], check=False, capture_output=True)


class Lab:
    """Two hosts beside each other, or three in a row with an emulator between.

    folder: for keys and configurations. forwarding: of three, whether ends and
    emulator have the routes that join both sides. run_size: of each /run.
    """

    def __init__(self, folder: Path, count: int, *, forwarding: bool = True, run_size: str = "64m") -> None:
        self.folder = folder
        self.number = self._take_number(count)
        self.hosts: list[Host] = []
        try:
            make_key(folder / "key")
            for number, name in enumerate(NAMES[count]):
                self.hosts.append(Host(self, name, number, run_size))
            self._test_network(forwarding)
            for host in self.hosts:
                host.start_sshd()
            self._configuration()
            for host in self.hosts:  # the kernel tells of a carrier when it comes to it
                while "NO-CARRIER" in host.run(["ip", "link"]):
                    time.sleep(0.02)
        except BaseException:
            self.close()
            raise

    def _take_number(self, count: int) -> int:
        """Make the management links; their names tell labs that are up at the same time apart."""
        for number in range(250):
            made = []
            for host in range(count):
                here = f"wl{number}m{host}"
                argv = ["ip", "link", "add", "name", here, "type", "veth", "peer", "name", f"{here}p"]
                if subprocess.run(argv, check=False, capture_output=True).returncode != 0:
                    break
                made.append(here)
            if len(made) == count:
                self.ip(f"link add name wl{number}x type ifb")  # down for ever: what is sent to it is gone
                for host, here in enumerate(made):
                    self.ip(f"address add 10.213.{number}.{4 * host + 1}/30 dev {here}")
                    self.ip(f"link set dev {here} up")
                return number
            for here in made:
                self.ip(f"link delete {here}")
        raise AssertionError("no management links can be made; is this root?")

    def ip(self, command: str) -> None:
        """Run an `ip` command on this machine, given without its first word."""
        subprocess.run(["ip", *command.split()], check=True, capture_output=True)

    def _test_network(self, forwarding: bool) -> None:
        if len(self.hosts) == 2:
            self._join(self.hosts[0], "198.51.100.1", self.hosts[1], "198.51.100.2")
        else:
            sender, emulator, receiver = self.hosts
            self._join(sender, "198.51.100.1", emulator, "198.51.100.254")
            self._join(emulator, "203.0.113.254", receiver, "203.0.113.1")
            emulator.test_address = ""
            if forwarding:
                sender.ip("route add 203.0.113.0/24 via 198.51.100.254")
                receiver.ip("route add 198.51.100.0/24 via 203.0.113.254")
                emulator.run(["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"])

    def _join(self, left: Host, left_address: str, right: Host, right_address: str) -> None:
        names = []
        for host, address in ((left, left_address), (right, right_address)):
            names.append(f"eth{len(host.interfaces) + 1}")
            host.interfaces.append(names[-1])
            host.test_address = address
        self.ip(
            f"link add name {names[0]} netns {left.process} type veth"
            f" peer name {names[1]} netns {right.process}"
        )
        for host, name, address in ((left, names[0], left_address), (right, names[1], right_address)):
            host.ip(f"address add {address}/24 dev {name}", f"link set dev {name} up")

    def _configuration(self) -> None:
        """Write the ssh configuration of the one who drives the hosts, and what it knows of their keys."""
        with (self.folder / "known_hosts").open("w") as known:
            for host in self.hosts:
                kind, key, _comment = (self.folder / host.name / "host_key.pub").read_text().split()
                known.write(f"{host.management} {kind} {key}\n")
        self.ssh_config = self.folder / "ssh_config"
        self.ssh_config.write_text(
            f"IdentityFile {self.folder / 'key'}\nIdentitiesOnly yes\n"
            f"UserKnownHostsFile {self.folder / 'known_hosts'}\nGlobalKnownHostsFile /dev/null\n"
        )

    def __getitem__(self, name: str) -> Host:
        return next(host for host in self.hosts if host.name == name)

    def inventory(
        self,
        *,
        mode: str = "as-is",
        lease: str = "2s",
        become: str = "none",
        name: str = "inventory.toml",
        **addresses: str,
    ) -> Path:
        """Write an inventory of the lab, return its path. addresses: of single hosts, others than theirs."""
        parts = []
        for host in self.hosts:
            lines = [
                f"[hosts.{host.name}]",
                f'address = "{addresses.get(host.name, host.address)}"',
                f'role = "{host.name}"',
                f'become = "{become}"',
            ]
            if host.name == "emulator":
                lines.append(f"interfaces = {host.interfaces!r}")
            else:
                lines += [f'interface = "{host.interfaces[0]}"', f'test_address = "{host.test_address}"']
            parts.append("\n".join(lines))
        parts.append(f'[links]\nmode = "{mode}"\n\n[ssh]\nconfig = "{self.ssh_config}"\nlease = "{lease}"')
        path = self.folder / name
        path.write_text("\n\n".join(parts) + "\n")
        return path

    def close(self) -> None:
        """End every host and remove the links to them."""
        for host in self.hosts:
            host.close()
        rest = [
            f"wl{self.number}m{number}" for number in range(len(self.hosts), 3)
        ]  # where it did not come up
        for name in (*rest, f"wl{self.number}x"):
            subprocess.run(["ip", "link", "delete", name], check=False, capture_output=True)

    def __enter__(self) -> Lab:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def make_key(path: Path) -> None:
    """Make a key pair without a passphrase at a path."""
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", str(path)]
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C"})
