"""`wanlab shell`, at a terminal and as a script: the lab comes up, does what is typed, and leaves nothing."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.virtual.conftest import PATH_SCENARIO, ROOT

pytestmark = pytest.mark.virtual

PROMPT = "mininet> "
LIMIT_S = 30
SETTINGS = ("--set", "rate=20mbit", "--set", "rtt=20ms", "--set", "rmem=max=8MiB")
ROWS, COLUMNS = 41, 123
CTRL_C, CTRL_D, LEAVE = "\x03", "\x04", "\x1d"


def words(files: Path, *more: str) -> list[str]:
    """Return the command line of a lab."""
    return [sys.executable, "-m", "lab", "shell", str(PATH_SCENARIO), *SETTINGS, "--files", str(files), *more]


def environment(scratch: Path) -> dict[str, str]:
    scratch.mkdir(exist_ok=True)
    return {**os.environ, "TMPDIR": str(scratch), "TERM": "xterm", "PYTHONPATH": str(ROOT)}


def running_in(folder: Path) -> list[int]:
    """Return the processes that work in a folder, as every part of a lab does in its own."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and folder in (entry / "cwd").readlink().parents:
                found.append(int(entry.name))
    return found


def kernel_of(parent: int, scratch: Path) -> int:
    """Return the kernel's own process."""
    for process in running_in(scratch):
        if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1] == str(parent):
            return process
    raise AssertionError("no kernel runs")


def await_nothing(scratch: Path) -> None:
    """Fail unless soon no process and no file of a lab is left."""
    deadline = time.monotonic() + 10
    while running_in(scratch) or list(scratch.iterdir()):
        assert time.monotonic() < deadline, (running_in(scratch), list(scratch.iterdir()))
        time.sleep(0.05)


class Lab:
    """A lab at a terminal of its own."""

    def __init__(self, files: Path, scratch: Path) -> None:
        self.files, self.scratch, self.rest = files, scratch, ""
        self.keys, self.terminal = pty.openpty()
        self.resize(ROWS, COLUMNS)
        self.before = termios.tcgetattr(self.terminal)
        self.process = subprocess.Popen(
            words(files),
            stdin=self.terminal,
            stdout=self.terminal,
            stderr=self.terminal,
            env=environment(scratch),
            start_new_session=True,
        )
        self.greeting = self.until(PROMPT)

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("=4H", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self.keys, text.encode())

    def until(self, text: str, limit_s: float = LIMIT_S) -> str:
        """Return what is shown up to a text and with it; what is shown beyond it is for the next call."""
        deadline = time.monotonic() + limit_s
        while text not in self.rest:
            ready, _, _ = select.select([self.keys], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{text!r} was not shown within {limit_s} s, but:\n{self.rest}"
            self.rest += os.read(self.keys, 4096).decode(errors="replace")
        shown, found, self.rest = self.rest.partition(text)
        return shown + found

    def do(self, line: str) -> str:
        """Return what a command says."""
        self.type(line + "\r")
        self.until(f"{line}\r\n")  # with a new size the prompt is drawn again before
        return self.until(PROMPT).removesuffix(PROMPT).replace("\r\n", "\n")

    def ended(self) -> int:
        """Return the status, once the lab is over and the terminal as it was before."""
        status = self.process.wait(LIMIT_S)
        assert termios.tcgetattr(self.terminal) == self.before
        await_nothing(self.scratch)
        return status

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.keys)
        os.close(self.terminal)


@pytest.fixture
def open_lab(tmp_path: Path) -> Iterator[Callable[[], Lab]]:
    """Return a function that opens a lab and waits for its prompt."""
    opened = []

    def make() -> Lab:
        files = tmp_path / "a folder, of mine"
        files.mkdir()
        opened.append(Lab(files, tmp_path / "scratch"))
        return opened[0]

    yield make
    for lab in opened:
        lab.close()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One lab for everything that leaves it as it was."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "files").mkdir()
    one = Lab(folder / "files", folder / "scratch")
    yield one
    one.close()


def test_it_greets_with_the_network(lab):
    assert "snd --- r1 === 20 Mbit/s, bfifo 48.83 KiB === r2 --- rcv    RTT 20 ms" in lab.greeting
    assert "h1 = snd 10.0.1.1, h2 = rcv 10.0.3.2" in lab.greeting
    assert "net.ipv4.tcp_rmem = 4096 131072 8388608  (rcv)" in lab.greeting
    assert str(lab.files) in lab.greeting


@pytest.mark.parametrize("line", ["h1 ping -c 2 h2", "snd ping -c 2 rcv", "h2 ping -c 2 h1"])
def test_hosts_answer_by_both_names(lab, line):
    said = lab.do(line)
    assert "2 received" in said
    least_ms = float(re.search(r"min/avg/max/mdev = ([0-9.]+)/", said)[1])
    assert 20 <= least_ms < 30


def test_sysctls_are_the_point_s(lab):
    assert lab.do("h2 cat /proc/sys/net/ipv4/tcp_rmem").split() == ["4096", "131072", "8388608"]


def test_ctrl_c_ends_the_command_and_not_the_lab(lab):
    lab.type("h1 ping h2\r")
    lab.until("icmp_seq=2")
    lab.type(CTRL_C)
    assert "packets transmitted" in lab.until(PROMPT)
    lab.type("h1 half a li" + CTRL_C)
    lab.until("Interrupt")
    lab.until(PROMPT)
    assert lab.do("h1 echo still here") == "still here\n"


def test_a_capture_lands_outside_and_is_the_user_s(lab):
    lab.do("h1 tcpdump -ni h1-eth0 -w x.pcap icmp &")
    lab.do("h1 sleep 1")
    lab.do("h1 ping -c 3 -i 0.2 h2")
    lab.do("h1 sleep 1.5")  # a capture hands its packets over once a second
    assert "6 packets captured" in lab.do("h1 kill %1; wait")
    capture = lab.files / "x.pcap"
    assert (capture.stat().st_uid, capture.stat().st_gid) == (os.getuid(), os.getgid())
    read = subprocess.run(
        ["tcpdump", "-n", "-r", str(capture)], capture_output=True, text=True, timeout=20, check=True
    )
    assert read.stdout.count("ICMP echo request") == read.stdout.count("ICMP echo reply") == 3
    assert "10.0.1.1 > 10.0.3.2" in read.stdout


def test_iperf3_fills_the_path(lab):
    assert lab.do("h2 iperf3 -s -D") == ""
    said = lab.do("h1 iperf3 -c h2 -t 3 -f m")
    goodput_mbps = float(re.search(r"([0-9.]+) Mbits/sec +receiver", said)[1])
    assert 12 < goodput_mbps < 20  # 19.1 is what headers leave of 20
    seen = lab.do("h1 sh -c 'iperf3 -c 10.0.3.2 -t 2 > flow.txt & sleep 1; ss -tin'")
    assert "cubic" in seen
    assert "10.0.3.2:5201" in seen
    sent_bytes = int(re.search(r"qdisc bfifo.*\n Sent ([0-9]+) bytes", lab.do("r1 tc -s qdisc"))[1])
    assert sent_bytes > 12e6 / 8 * 3


def test_a_command_gets_keys_and_the_window_s_size(lab):
    assert lab.do("h1 stty size") == f"{ROWS} {COLUMNS}\n"
    lab.type("h1 sh -c 'read line; echo got $line; stty size'\r")
    lab.until("size'\r\n")
    time.sleep(0.5)  # while a line is still edited, a new size draws it again
    lab.resize(33, 99)
    lab.process.send_signal(signal.SIGWINCH)
    time.sleep(0.5)
    lab.type("ten words\r")
    said = lab.until(PROMPT)
    assert "got ten words" in said
    assert "33 99" in said
    assert lab.do("r2 stty size") == "33 99\n"  # whose shell starts only now


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("xterm h1", "no display"),
        ("iperf", "iperf3 -s -D"),
        ("dpctl dump-flows", "no switch"),
        ("switch r1 stop", "no switch"),
        ("link snd r1 down", "routes"),
        ("h1", "missing"),
        ("h17 ls", "Unknown command"),
        ("source /nowhere", "error reading file"),
        ("py nothing.at.all", "not defined"),
    ],
)
def test_what_cannot_work_says_so(lab, line, words):
    said = lab.do(line)
    assert words in said
    assert "Traceback" not in said


def test_mininet_s_own_commands_work(lab):
    assert "0% dropped (12/12 received)" in lab.do("pingall")
    assert "snd (h1): snd-eth0 10.0.1.1" in lab.do("nodes")
    assert "snd snd-eth0:r1-eth0" in lab.do("net")
    assert lab.do("links").count("(OK OK)") == 3
    assert lab.do("py h2.IP()") == "10.0.3.2\n"
    assert "Ping between all hosts" in lab.do("help pingall")
    assert "no display" in lab.do("help xterm")


def test_the_host_is_read_only(lab):
    assert "Read-only file system" in lab.do(f"h1 touch {ROOT}/written-by-a-guest")
    assert not (ROOT / "written-by-a-guest").exists()
    lab.do("h1 echo text > mine.txt")
    assert (lab.files / "mine.txt").read_text() == "text\n"
    (lab.files / "mine.txt").write_text("changed outside\n")
    assert lab.do("h2 cat mine.txt") == "changed outside\n"


def test_the_environment_is_plain(lab):
    said = lab.do("h1 env")
    assert "TERM=xterm\n" in said
    assert "uml_dir" not in said
    assert "PS1" not in said


def test_a_shell_that_ends_is_started_again(lab):
    assert "has ended" in lab.do("r1 exit")
    assert lab.do("r1 echo again") == "again\n"


@pytest.mark.parametrize("keys", ["exit\r", CTRL_D])
def test_leaving_ends_everything(open_lab, keys):
    lab = open_lab()
    lab.do("h2 iperf3 -s &")
    lab.type(keys)
    assert lab.ended() == 0


def test_a_lab_that_hangs_can_be_left(open_lab):
    lab = open_lab()
    lab.type("h1 sleep 1000\r")
    for _ in range(3):
        time.sleep(0.3)
        lab.type(LEAVE)
    assert lab.ended() == 0


def test_a_killed_kernel_gives_the_terminal_back(open_lab):
    lab = open_lab()
    os.kill(kernel_of(lab.process.pid, lab.scratch), signal.SIGKILL)
    assert lab.ended() == 1
    assert "the kernel ended before the lab did" in lab.until("stayed empty")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_lab_that_is_told_to_end_gives_the_terminal_back(open_lab, number):
    lab = open_lab()
    lab.process.send_signal(number)
    assert lab.ended() == 128 + number


def test_nothing_outlives_a_killed_lab(open_lab):
    lab = open_lab()
    assert running_in(lab.scratch)
    lab.process.kill()
    lab.process.wait()
    await_nothing(lab.scratch)


def script(folder: Path, *more: str, lines: str | bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run a lab without a terminal to its end."""
    given = lines.encode() if isinstance(lines, str) else lines
    done = subprocess.run(
        words(folder, *more),
        input=given,
        capture_output=True,
        timeout=LIMIT_S,
        env=environment(folder / "scratch"),
        check=False,
    )
    await_nothing(folder / "scratch")
    assert b"Traceback" not in done.stderr
    return done


def test_a_script_from_a_pipe(tmp_path):
    lines = "# a comment\nh1 ping -c 1 h2\n\nh1 seq 1 20000\nh1 false\nnothing\nh2 echo last | tr a-z A-Z\n"
    done = script(tmp_path, lines=lines)
    assert b"1 received" in done.stdout
    assert "".join(f"{number}\n" for number in range(1, 20001)).encode() in done.stdout
    assert done.stdout.endswith(b"*** Unknown command: nothing\nLAST\n")
    assert done.stderr.decode().splitlines() == [
        "wanlab: 'h1 false' ended with status 1",
        "wanlab: 'nothing' could not be run",
    ]
    assert done.returncode == 1


def test_commands_in_arguments(tmp_path):
    done = script(tmp_path, "--command", "h1 ping -c 2 h2", "--command", "h2 uname -r", "--kernel", "6.1")
    *pinged, release = done.stdout.decode().splitlines()
    assert int(re.search(r"time ([0-9]+)ms", "\n".join(pinged))[1]) >= 1000  # a second between two
    assert release.startswith("6.1.")
    assert done.returncode == 0


def test_exit_ends_a_script(tmp_path):
    done = script(tmp_path, lines="h1 echo one\nexit\nh1 echo two\n")
    assert (done.stdout, done.returncode) == (b"one\n", 0)


def test_of_several_points_the_first_is_taken(tmp_path):
    more = ("--set", "cc=cubic,bbr", "--command", "h1 cat /proc/sys/net/ipv4/tcp_congestion_control")
    done = script(tmp_path, *more)
    assert done.stdout == b"cubic\n"
    assert b"first of 2 points: cc=cubic" in done.stderr
    assert b"--set cc=bbr" in done.stderr


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        (("--set", "rat=1gbit"), "rate"),
        (("--set", "rate"), "NAME=VALUE"),
        (("--set", "cc=nonesuch"), "nonesuch"),
        (("--kernel", "host"), "6.12"),
        (("--files", "/nowhere/at/all"), "no such folder"),
        (("--files", "/proc"), "system's"),
    ],
)
def test_bad_input_is_refused_in_words(tmp_path, more, fault):
    done = script(tmp_path, *more, "--command", "h1 true")
    assert done.returncode == 2
    assert fault in done.stderr.decode()
    assert done.stdout == b""


def test_lines_that_are_no_text_are_refused(tmp_path):
    done = script(tmp_path, lines=b"h1 echo \xff\n")
    assert done.returncode == 2
    assert b"UTF-8" in done.stderr


def test_a_kernel_that_is_not_built_says_how_to_build_it(tmp_path):
    done = script(tmp_path, "--kernel", "9.99", "--command", "h1 true")
    assert done.returncode == 3
    assert b"wanlab kernel build" in done.stderr
