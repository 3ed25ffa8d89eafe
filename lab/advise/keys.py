"""What a sysctl means on an emulated path: which end it counts at, what it may be, which knob it becomes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lab import memory
from lab.advise.ask import LEAST_SYSCTL_BYTES
from lab.advise.sysctl import Line
from lab.errors import UnitError

SENDER, RECEIVER = "sender", "receiver"
ENDS = (SENDER, RECEIVER)

_WHOLE = re.compile(r"[+-]?[0-9]+")
_NO_UNIT = "the kernel reads whole numbers without units"


@dataclass(frozen=True)
class Key:
    """A sysctl that counts on a path. ends: where; knob: what it becomes; read: value to the knob's text."""

    name: str
    ends: tuple[str, ...]
    knob: str
    read: Callable[[str], str]


def _number(text: str, low: int, high: int, example: str) -> int:
    """Return a whole number in a range. Raises UnitError with value, rule and mend."""
    parts = text.split()
    if len(parts) != 1:
        raise UnitError(f"{text!r} is {len(parts)} values where one is wanted; write it such as {example}")
    if not _WHOLE.fullmatch(parts[0]) or len(parts[0]) > 20:
        raise UnitError(f"{text!r} is not a whole number ({_NO_UNIT}); write it such as {example}")
    value = int(parts[0])
    if not low <= value <= high:
        raise UnitError(
            f"{text!r} is out of range; the kernel takes {low} to {high}; write it such as {example}"
        )
    return value


def _triple(which: str) -> Callable[[str], str]:
    name = f"tcp_{which}"
    least, largest = LEAST_SYSCTL_BYTES[which], memory.SMALLEST_BYTES[which]
    example = " ".join(map(str, memory.DEFAULTS[which]))

    def read(text: str) -> str:
        parts = text.split()
        if not all(_WHOLE.fullmatch(part) and len(part) <= 20 for part in parts):
            raise UnitError(f"{text!r} is not three whole numbers ({_NO_UNIT}); write them such as {example}")
        if len(parts) != 3:
            partly = ", and the kernel would set the first and leave the rest" if len(parts) < 3 else ""
            raise UnitError(
                f"{text!r} is {len(parts)} of the three values of {name}{partly}; write least, first and"
                f" largest, such as {example}"
            )
        values = [int(part) for part in parts]
        for value in values:
            if value > memory.LARGEST_BYTES:
                raise UnitError(
                    f"{value} is over {memory.LARGEST_BYTES} bytes (2 GiB), which the kernel refuses; TCP's"
                    " window cannot exceed 1 GiB anyway, so take less and more flows"
                )
            if value < least:
                raise UnitError(f"{value} is under {least} bytes, the kernel's least for {name}; take more")
        if not values[0] <= values[1] <= values[2]:
            raise UnitError(
                f"{text!r} is out of order: least, first and largest must not fall from left to right; write"
                f" them such as {example}"
            )
        if values[2] < largest:
            raise UnitError(f"{values[2]} is under {largest} bytes, the kernel's least buffer; take more")
        return ":".join(f"{value}B" for value in values)

    return read


def _core_max(low: int) -> Callable[[str], str]:
    return lambda text: f"{_number(text, low, memory.LARGEST_BYTES, str(memory.CORE_MAX_BYTES))}B"


def _lowat(text: str) -> str:
    value = _number(text, 1, 2**32 - 1, "131072")
    return "none" if value > memory.LARGEST_BYTES else f"{value}B"


def _switch(text: str) -> str:
    return "on" if _number(text, 0, 255, "1") else "off"


def _control(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9_]{1,15}", text):
        raise UnitError(f"{text!r} is not the name of a congestion control; write it such as cubic")
    return text


def _tcp_mem(text: str) -> str:
    parts = text.split()
    example = "191538 255385 383076"
    if len(parts) != 3 or not all(_WHOLE.fullmatch(part) and len(part) <= 20 for part in parts):
        raise UnitError(f"{text!r} is not three numbers of pages ({_NO_UNIT}); write them such as {example}")
    pages = [int(part) for part in parts]
    if not 0 < pages[0] <= pages[1] <= pages[2] < 2**31:
        raise UnitError(
            f"{text!r} is out of order or range: pages must rise from 1 on; write them such as {example}"
        )
    return f"{min(max(pages[2] * 4096, 2**16), 2**42)}B"


_ALL = (
    Key("net.ipv4.tcp_rmem", (RECEIVER,), "rmem", _triple("rmem")),
    Key("net.ipv4.tcp_wmem", (SENDER,), "wmem", _triple("wmem")),
    Key("net.core.rmem_max", (RECEIVER,), "rmem_max", _core_max(2304)),
    Key("net.core.wmem_max", (SENDER,), "wmem_max", _core_max(4608)),
    Key(
        "net.ipv4.tcp_adv_win_scale",
        (RECEIVER,),
        "adv_win_scale",
        lambda text: str(_number(text, -31, 31, "1")),
    ),
    Key("net.ipv4.tcp_app_win", (RECEIVER,), "app_win", lambda text: str(_number(text, 0, 31, "31"))),
    Key("net.ipv4.tcp_moderate_rcvbuf", (RECEIVER,), "moderate_rcvbuf", _switch),
    Key("net.ipv4.tcp_notsent_lowat", (SENDER,), "notsent_lowat", _lowat),
    Key("net.ipv4.tcp_congestion_control", (SENDER,), "cc", _control),
    Key("net.ipv4.tcp_mem", ENDS, "tcp_mem", _tcp_mem),
)
KEYS: Mapping[str, Key] = {key.name: key for key in _ALL}

WINDOW_SCALING = "net.ipv4.tcp_window_scaling"

BECAUSE: Mapping[str, str] = {
    "net.core.rmem_default": "TCP has tcp_rmem instead",
    "net.core.wmem_default": "TCP has tcp_wmem instead",
    "net.core.optmem_max": "no bulk transfer uses it",
    "net.core.netdev_max_backlog": "in virtual time no CPU is ever late",
    "net.core.default_qdisc": "the hosts have the lab's own shaper, and TCP paces itself since Linux 4.13",
    "net.ipv4.tcp_timestamps": "the lab leaves timestamps on",
    "net.ipv4.tcp_sack": "the lab leaves selective acknowledgements on",
    "net.ipv4.tcp_slow_start_after_idle": "the load is never idle",
    "net.ipv4.tcp_no_metrics_save": "each run has a kernel of its own, which remembers nothing",
    "net.ipv4.tcp_mtu_probing": "the path's MTU is known",
}
"""Keys that tuning guides set, and why they change nothing here."""


def knob(line: Line) -> str:
    """Return the text of the knob that a line becomes. Raises UnitError naming file, line and key."""
    try:
        if "#" in line.value or ";" in line.value:
            raise UnitError(
                f"{line.value!r} has a comment in it, which sysctl takes for a part of the value; give it a"
                " line of its own"
            )
        return KEYS[line.key].read(line.value)
    except UnitError as fault:
        raise UnitError(f"{line.place}: {line.key}: {fault}") from fault
