"""A rate as a formula of time `t`, in seconds: `20mbit + 10mbit*sin(2*pi*t/10)`, sampled.

A formula is arithmetic and nothing else: it is walked, never run as Python.
"""

from __future__ import annotations

import ast
import functools
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from lab import units
from lab.errors import UnitError
from lab.knobs import RATE_RANGE_BPS
from lab.traces import files
from lab.traces.trace import NS, RATE_RULE, Instants, Rates, whole_ns

LONGEST_FORMULA = 1000
_MOST_PARTS = 300
"""Enough for any curve, and few enough to walk without a limit on depth."""
_EXAMPLE = "20mbit + 10mbit*sin(2*pi*t/10)"
_SIGNS = re.compile(r"[A-Za-z0-9_µμ\s.,()+*/%<>=!-]*")
_QUANTITY = re.compile(
    r"(?<![\w.])((?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+) ?([A-Za-zµμ]+(?:/s\b)?)(\()?"
)
"""A number and the word behind it; `++` gives nothing back, or `1e3` would be 1 and the word e."""

_CONSTANTS = {"pi": np.pi}
_OF_ONE: dict[str, Callable[..., Any]] = {"sin": np.sin, "cos": np.cos, "exp": np.exp, "abs": np.abs}
_OF_MORE: dict[str, Callable[..., Any]] = {"min": np.minimum, "max": np.maximum}
_FUNCTIONS = (*_OF_ONE, *_OF_MORE)
_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,  # of floats, which overflow to infinity and cannot grow
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def sampled(formula: str, duration_s: float, step_s: float) -> tuple[Instants, Rates]:
    """Return starts (ns) and rates of equal steps: the formula in the middle of each, to the bit/s.

    Raises UnitError for what is no formula, and where a rate is none that a link can have.
    """
    end_ns, step_ns = whole_ns(duration_s), whole_ns(step_s)
    files.check_lines(formula, end_ns // step_ns)
    starts_ns = np.arange(0, end_ns, step_ns)
    times_s = (starts_ns + np.minimum(starts_ns + step_ns, end_ns)) / 2 / NS
    rates_bps = np.rint(evaluated(formula, times_s))
    low, high = RATE_RANGE_BPS
    wrong = np.flatnonzero(~((rates_bps == 0) | ((rates_bps >= low) & (rates_bps <= high))))
    if len(wrong):
        instant, rate = units.format_time(float(times_s[wrong[0]])), float(rates_bps[wrong[0]])
        came = f"{rate:.6g} bit/s" if np.isfinite(rate) else "no finite number"
        raise UnitError(
            f"{files.short(formula)} is {came} at {instant}; {RATE_RULE}: keep it there, such as by"
            " max(1kbit, min(..., 400gbit))"
        )
    return starts_ns, rates_bps + 0.0  # -0 is 0


def evaluated(formula: str, times_s: Rates) -> Rates:
    """Return a formula's value at each time; NaN or infinite where it has none. Raises UnitError."""
    if len(formula) > LONGEST_FORMULA:
        raise UnitError(
            f"{files.short(formula)} has {len(formula)} characters; a formula has up to {LONGEST_FORMULA},"
            f" such as {_EXAMPLE}"
        )
    stray = _SIGNS.sub("", formula, count=1)
    if stray:
        raise _foreign(formula, repr(stray[0]))
    try:
        tree = ast.parse(_QUANTITY.sub(_number, formula.strip()), mode="eval")
    except (SyntaxError, MemoryError, RecursionError) as fault:  # the last two: brackets within brackets
        raise UnitError(
            f"{files.short(formula)} is no formula; write arithmetic in t, such as {_EXAMPLE}"
        ) from fault
    if sum(1 for _ in ast.walk(tree)) > _MOST_PARTS:
        raise UnitError(f"{files.short(formula)} has too many parts; write a shorter one, such as {_EXAMPLE}")
    with np.errstate(all="ignore"):
        try:
            value = _value(tree.body, times_s)
        except _ForeignError as foreign:
            raise _foreign(formula, str(foreign)) from foreign
    return np.broadcast_to(np.asarray(value, dtype=np.float64), times_s.shape)


class _ForeignError(Exception):
    """A part that formulas do not have."""


def _foreign(formula: str, what: str) -> UnitError:
    return UnitError(
        f"{files.short(formula)}: {what} is no part of a formula; write it of t, pi, numbers with or"
        f" without a unit, + - * / % **, comparisons and {', '.join(_FUNCTIONS)}, such as {_EXAMPLE}"
    )


def _number(match: re.Match[str]) -> str:
    """Return a quantity with a unit in bit/s or seconds. Raises UnitError."""
    number, unit, bracket = match.groups()
    if bracket or unit in ("t", *_CONSTANTS):
        raise UnitError(f"{number + unit!r} lacks a sign between the two; write {number}*{unit}")
    parse = units.parse_rate if unit.lower().endswith(("bit", "bps", "/s")) else units.parse_time
    return f"({parse(number + unit)!r})"


def _value(node: ast.AST, times_s: Rates) -> Any:
    """Return the value of one part: an array, or a number where time has no say."""
    value: Any
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            value = _float(number)
        case ast.Name(id="t"):
            value = times_s
        case ast.Name(id=name) if name in _CONSTANTS:
            value = np.float64(_CONSTANTS[name])
        case ast.BinOp(left=left, op=sign, right=right):
            value = _operated(sign, _value(left, times_s), _value(right, times_s))
        case ast.UnaryOp(op=sign, operand=operand):
            value = _operated(sign, _value(operand, times_s))
        case ast.Compare(left=left, ops=signs, comparators=others):
            parts = [_value(part, times_s) for part in (left, *others)]
            value = np.float64(1)
            for comparison, one, other in zip(signs, parts, parts[1:], strict=False):
                value = value * _operated(comparison, one, other)
        case ast.Call(func=ast.Name(id=name), args=[only], keywords=[]) if name in _OF_ONE:
            value = _OF_ONE[name](_value(only, times_s))
        case ast.Call(func=ast.Name(id=name), args=[_, _, *_] as several, keywords=[]) if name in _OF_MORE:
            value = functools.reduce(_OF_MORE[name], [_value(part, times_s) for part in several])
        case _:
            raise _ForeignError(repr(ast.unparse(node)))
    return value


def _operated(sign: ast.AST, *parts: Any) -> Any:
    if type(sign) not in _OPERATORS:
        raise _ForeignError(type(sign).__name__)
    return _OPERATORS[type(sign)](*parts)


def _float(number: float) -> Any:
    try:
        return np.float64(number)
    except OverflowError:  # a whole number of hundreds of digits
        return np.float64(np.inf)
