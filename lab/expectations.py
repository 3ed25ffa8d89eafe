"""Expectations against rows: which checks hold, with the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.scenario import Expectation, Scenario

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Verdict:
    """What became of one expectation. points: those it was tried on; failures: a sentence for each."""

    text: str
    tried: int
    failures: tuple[str, ...]

    @property
    def status(self) -> str:
        """met, failed, or not tried where no point matched."""
        if self.failures:
            return "failed"
        return "met" if self.tried else "not tried"


def matches(row: Row, where: Mapping[str, str | tuple[str, ...]], scenario: Scenario) -> bool:
    """Return whether a row has the knob values of `where`, in any of their spellings."""
    for name, wanted in where.items():
        allowed = wanted if isinstance(wanted, list | tuple) else (wanted,)
        held = str(row[name])
        if name == "trace":
            held = held.rpartition("@")[0] or held  # whatever the file holds
        if held not in [scenario.knobs[name].canonical(str(text)) for text in allowed]:
            return False
    return True


def number(row: Row, column: str) -> float | None:
    """Return a number of a row; `cc_shares:bbr` is one share of a column of shares."""
    name, _, share = column.partition(":")
    value = row.get(name)
    if share:
        value = (value or {}).get(share)
    return None if value is None else float(value)


def check(scenario: Scenario, rows: Sequence[Row]) -> list[Verdict]:
    """Return the verdict on every expectation of a scenario over the points that are done."""
    done = [row for row in rows if row["status"] == "done"]
    return [_check_one(expectation, scenario, done) for expectation in scenario.expectations]


def _check_one(expectation: Expectation, scenario: Scenario, rows: Sequence[Row]) -> Verdict:
    failures = []
    tried = [row for row in rows if matches(row, expectation.where, scenario)]
    for row in tried:
        value = number(row, expectation.value)
        if value is None:
            failures.append(f"{row['point']}: {expectation.value} was not measured")
            continue
        if expectation.within is not None:
            of = number(row, expectation.of) if isinstance(expectation.of, str) else expectation.of
            if not of:
                failures.append(
                    f"{row['point']}: {expectation.value} has no {expectation.of} to stand beside"
                )
            elif abs(value / of - 1) > expectation.within:
                failures.append(
                    f"{row['point']}: {expectation.value} is {value:.6g}, more than"
                    f" {expectation.within:.3g} of {expectation.of} = {of:.6g} away"
                )
        if expectation.at_least is not None and value < expectation.at_least:
            failures.append(
                f"{row['point']}: {expectation.value} is {value:.6g}, under {expectation.at_least:.6g}"
            )
        if expectation.at_most is not None and value > expectation.at_most:
            failures.append(
                f"{row['point']}: {expectation.value} is {value:.6g}, over {expectation.at_most:.6g}"
            )
    return Verdict(expectation.text, len(tried), tuple(failures))
