"""The only place that reads a clock or waits for one.

All instants are integers of nanoseconds on CLOCK_MONOTONIC; inside a virtual
kernel that clock is the virtual one.
"""

from __future__ import annotations

import ctypes
import time

_TIMER_ABSTIME = 1
_PR_SET_TIMERSLACK = 29
_libc = ctypes.CDLL(None, use_errno=True)


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def now_ns() -> int:
    """Return the monotonic clock, ns."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def wall_s() -> float:
    """Return seconds since the epoch, for labels only."""
    return time.time()


def sleep_until_ns(deadline_ns: int) -> None:
    """Sleep to an absolute instant, so that a series of deadlines does not drift."""
    when = _Timespec(deadline_ns // 10**9, deadline_ns % 10**9)
    while _libc.clock_nanosleep(time.CLOCK_MONOTONIC, _TIMER_ABSTIME, ctypes.byref(when), None):
        pass


def exact_timers() -> None:
    """Ask the kernel not to round this process's sleeps (default slack: 50 us)."""
    _libc.prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(1), 0, 0, 0)
