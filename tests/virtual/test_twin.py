"""Round trips: a path is run, its twin is made of what was recorded, and the twin gives what the path gave.

Both run in virtual time, so what differs is what the estimates got wrong. They
see what a run over real links leaves: pings, trains, and what the sockets said.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab.cli.main import main
from lab.knobs import PATH_KNOBS

pytestmark = pytest.mark.virtual

SCENARIO = Path(__file__).resolve().parents[2] / "scenarios" / "path.py"

PATHS = {
    "a queue of half a BDP": (
        {"rate": "50mbit", "rtt": "40ms", "queue": "0.5bdp", "duration": "6s"},
        1,
        {"rate": 0.01, "rtt": 0.01, "queue": 0.06},
        0.01,
    ),
    "a short queue and four flows": (
        {"rate": "50mbit", "rtt": "40ms", "queue": "0.3bdp", "flows": "4", "duration": "6s"},
        1,
        {"rate": 0.01, "rtt": 0.01, "queue": 0.1},
        0.01,
    ),
    "random loss": (
        {"rate": "50mbit", "rtt": "20ms", "loss": "0.1%", "duration": "30s"},
        4,
        {"rate": 0.01, "rtt": 0.01, "loss": 0.15},
        0.06,
    ),
    "random loss before a queue that overflows": (
        {"rate": "20mbit", "rtt": "30ms", "loss": "0.02%", "queue": "0.5bdp", "duration": "20s"},
        4,
        {"rate": 0.01, "rtt": 0.01},
        0.03,
    ),
    "BBR through loss": (
        {"rate": "50mbit", "rtt": "40ms", "loss": "1%", "queue": "2bdp", "cc": "bbr", "duration": "6s"},
        3,
        {"rate": 0.01, "rtt": 0.01, "loss": 0.1, "queue": 0.06},
        0.01,
    ),
    "jitter that reorders": (
        {"rate": "50mbit", "rtt": "40ms", "jitter": "2ms", "duration": "8s"},
        5,
        {"rate": 0.01, "rtt": 0.01, "jitter": 0.2, "queue": 0.05},
        0.03,
    ),
}


def number(name: str, text: str, knobs: dict[str, str]) -> float:
    """Return a knob as a number, a queue in bytes."""
    value: Any = PATH_KNOBS[name].value(text)
    if name == "queue":
        (rtt_s,) = PATH_KNOBS["rtt"].value(knobs["rtt"])
        return float(value.bfifo_bytes(PATH_KNOBS["rate"].value(knobs["rate"]), rtt_s))
    if name == "loss":
        return float(value.share)
    return float(value[0]) if isinstance(value, tuple) else float(value)


@pytest.mark.parametrize("name", PATHS)
def test_a_twin_gives_what_its_path_gave(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    knobs, seeds, near, within = PATHS[name]
    settings = [word for knob, text in knobs.items() for word in ("--set", f"{knob}={text}")]
    real, twin, script = tmp_path / "real", tmp_path / "twin", tmp_path / "twin.py"
    repeat = ["--repeat", str(seeds)]
    assert main(["run", str(SCENARIO), *settings, *repeat, "--out", str(real)]) == 0
    capsys.readouterr()
    assert main(["twin", str(real), "--out", str(script), "--format", "json"]) == 0
    (path,) = json.loads(capsys.readouterr().out)["paths"]
    for knob, tolerance in near.items():
        wanted = number(knob, PATH_KNOBS[knob].canonical(knobs.get(knob, PATH_KNOBS[knob].default)), knobs)
        if knob == "queue" and "queue" not in knobs:  # auto is one BDP
            wanted = number(knob, "1bdp", knobs)
        assert number(knob, path["knobs"][knob], path["knobs"]) == pytest.approx(wanted, rel=tolerance), knob
    main(["run", str(script), *repeat, "--out", str(twin)])  # a single seed may lie outside its expectation
    capsys.readouterr()
    assert main(["compare", str(real), str(twin), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (pair,) = found["comparisons"]
    assert abs(pair["columns"]["goodput_bps"]["percent"]) < 100 * within
    assert found["alone"] == []
    assert len(found["engines"]) == 1
