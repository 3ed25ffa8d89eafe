"""The machine under the network: what its CPUs did, what its kernel dropped, how late its timers were.

Only where the clock is real: in virtual time computing takes none. A child
process sleeps to absolute deadlines and counts how late it woke; whatever holds
it up holds up senders, receivers and delay lines too.

Not here: the meaning of the numbers, see `lab.machine`. Sources: proc_stat(5)
and Documentation/networking/scaling.rst; net/core/net-procfs.c (softnet_stat).
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import struct
from pathlib import Path

from lab import clock

PULSE_NS = 5_000_000
"""Between two pulses: often enough for a distribution, too seldom to be a load."""

BUCKETS = 32
_COUNTS = struct.Struct(f"={BUCKETS}Q")
_PR_SET_PDEATHSIG = 1


def bucket(late_ns: int) -> int:
    """Return the bucket of a lateness: bucket n holds up to 2^n microseconds."""
    return min(BUCKETS - 1, max(0, (late_ns + 999) // 1000 - 1).bit_length())


class Pulse:
    """A child process that wakes every `PULSE_NS` and counts its lateness by buckets."""

    def __init__(self) -> None:
        self._counts = mmap.mmap(-1, _COUNTS.size)
        self._child = os.fork()
        if self._child == 0:
            self._beat()

    def _beat(self) -> None:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        counts = [0] * BUCKETS
        deadline_ns = clock.now_ns()
        while True:
            deadline_ns += PULSE_NS
            clock.sleep_until_ns(deadline_ns)
            late_ns = clock.now_ns() - deadline_ns
            counts[bucket(late_ns)] += 1
            self._counts[:] = _COUNTS.pack(*counts)
            if late_ns > PULSE_NS:
                deadline_ns += late_ns // PULSE_NS * PULSE_NS  # those that were missed are not late ones too

    def read(self) -> bytes:
        """Return how often each bucket was met so far."""
        return self._counts[:]

    def end(self) -> None:
        """End the child."""
        os.kill(self._child, signal.SIGKILL)
        os.waitpid(self._child, 0)


class MachineProbe:
    """Reads the counters of all CPUs, and the pulse."""

    def __init__(self) -> None:
        self._pulse = Pulse()

    def read(self) -> bytes:
        """Return the pulse's counts, then /proc/stat's lines of CPUs and softnet_stat as they are."""
        stat = [line for line in Path("/proc/stat").read_bytes().splitlines() if line.startswith(b"cpu")]
        softnet = Path("/proc/net/softnet_stat").read_bytes()
        return self._pulse.read() + b"\n".join(stat) + b"\n\n" + softnet

    def end(self) -> None:
        """End what the probe started."""
        self._pulse.end()


def unpack(payload: bytes) -> tuple[list[int], list[tuple[int, list[int]]], list[tuple[int, list[int]]]]:
    """Return (pulses by bucket, [(cpu, ticks of its line)], [(cpu, numbers of its softnet line)]).

    Raises ValueError where the payload is torn.
    """
    try:
        counts = list(_COUNTS.unpack_from(payload))
        stat, _, softnet = payload[_COUNTS.size :].decode().partition("\n\n")
        cpus = []
        for line in stat.splitlines():
            name, *ticks = line.split()
            if name != "cpu":
                cpus.append((int(name[3:]), [int(one) for one in ticks]))
        rows = [[int(word, 16) for word in line.split()] for line in softnet.splitlines()]
    except (struct.error, UnicodeDecodeError) as torn:
        raise ValueError(f"a reading of the machine of {len(payload)} bytes is torn: {torn}") from torn
    # the CPU stands in the 13th number (Linux 5.10 on); before, lines are in the order of CPUs
    return counts, cpus, [(row[12] if len(row) > 12 else at, row) for at, row in enumerate(rows)]
