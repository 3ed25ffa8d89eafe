"""From a scenario to its points: every combination of the swept values, each once.

A point's identity is the digest of what decides its result, so a point keeps
its name in any run.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from lab import varying
from lab.checks import check_point
from lab.combination import Point
from lab.errors import SpecError, UnitError
from lab.knobs import PATH_KNOBS
from lab.routes import find as find_route
from lab.scenario import Block, Scenario, unknown_knob

__all__ = ["Point", "points"]

MOST_POINTS = 100_000


def points(
    scenario: Scenario,
    overrides: Mapping[str, Sequence[str]],
    *,
    engine: str,
    seeds: Sequence[int],
) -> list[Point]:
    """Return the points of a scenario in order, each combination once.

    overrides: knob to one or more texts; they replace the scenario's own values
    of that knob in every block. Raises SpecError with all faults.
    """
    chosen = _chosen(scenario, overrides)
    found: dict[Point, None] = {}
    for block in scenario.sweep:
        settings = _settings(scenario, block, chosen)
        count = len(seeds) * math.prod(len(values) for values in settings.values())
        if len(found) + count > MOST_POINTS:
            raise SpecError([f"sweep: over {MOST_POINTS} points in one run; sweep fewer values"])
        for combination in itertools.product(*settings.values()):
            knobs = _derived(dict(zip(settings, combination, strict=True)))
            for seed in seeds:
                found[Point(knobs, engine, seed)] = None
    every = list(found)
    faults = list(dict.fromkeys(fault for point in every for fault in check_point(point)))
    if faults:
        raise SpecError(faults)
    for point in {(p.knobs["trace"], p.knobs["trace_step"], p.duration_s): p for p in every}.values():
        varying.rate_steps(point)  # a trace that cannot be followed is said before anything runs
    return every


def _chosen(scenario: Scenario, overrides: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the overrides in canonical spelling, each value once. Raises SpecError with all faults."""
    faults: list[str] = []
    chosen: dict[str, list[str]] = {}
    for name, texts in overrides.items():
        knob = scenario.knobs.get(name)
        if knob is None:
            faults.append(unknown_knob(name, scenario))
            continue
        for text in texts:
            try:
                canonical = knob.canonical(text)
            except UnitError as fault:
                faults.append(str(fault))
                continue
            if canonical not in chosen.setdefault(name, []):
                chosen[name].append(canonical)
    routes = [text for text in chosen.get("route", ()) if text != PATH_KNOBS["route"].default]
    if routes and "rtt" in chosen:
        rtts = ", ".join(chosen["rtt"])
        faults.append(f"rtt: {rtts!r} and route={', '.join(routes)} both set the RTT; give one of them")
    if faults:
        raise SpecError(faults)
    return chosen


def _settings(scenario: Scenario, block: Block, chosen: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return every knob's values in a block: its default, the scenario's, the block's, or the chosen."""
    settings: dict[str, list[str]] = {name: [knob.default] for name, knob in scenario.knobs.items()}
    for name, given in {"topology": scenario.topology, **scenario.defaults, **block}.items():
        wanted: list[str | int] = list(given) if isinstance(given, list | tuple) else [str(given)]
        spelled = [scenario.knobs[name].canonical(str(text)) for text in wanted]
        settings[name] = list(dict.fromkeys(spelled))
    settings.update(chosen)
    return settings


def _derived(knobs: dict[str, str]) -> dict[str, str]:
    """Return the knobs with what follows from them: a route sets the RTT, a trace is what its file holds."""
    if knobs["route"] != PATH_KNOBS["route"].default:
        knobs["rtt"] = PATH_KNOBS["rtt"].show((find_route(knobs["route"]).rtt_s,))
    if knobs["trace"] != PATH_KNOBS["trace"].default:
        knobs["trace"] = varying.with_digest(knobs["trace"])
    return knobs
