"""Makes the traces of this folder: made-up links, by formulas and seeded chance; none was measured.

python traces/make.py           write them
python traces/make.py --check   say which file is not as this script makes it; exit status 1

`Random.random` gives the same numbers under every Python, so the files are the
same wherever they are made. Why each is as it is: README.md.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

FOLDER = Path(__file__).resolve().parent
NOTE = "# synthetic, made by traces/make.py; traces/README.md says how\n"


def normal(chance: Random) -> float:
    """Return a number of the standard normal distribution (Box and Muller, 1958)."""
    return math.sqrt(-2 * math.log(1 - chance.random())) * math.cos(2 * math.pi * chance.random())


def wander(chance: Random, *, spread: float, step_s: float, memory_s: float) -> Iterator[float]:
    """Yield a stationary Gaussian process with an exponential autocorrelation, step by step."""
    kept = math.exp(-step_s / memory_s)
    value = spread * normal(chance)
    while True:
        yield value
        value = kept * value + math.sqrt(1 - kept**2) * spread * normal(chance)


def csv(rows: Iterator[tuple[float, float]]) -> str:
    """Return the text of a CSV of (s, bit/s), rates to the kbit/s."""
    lines = [f"{start_s:.6g},{1e3 * round(rate_bps / 1e3):.0f}\n" for start_s, rate_bps in rows]
    return f"{NOTE}time_s,rate_bps\n{''.join(lines)}"


def fading() -> Iterator[tuple[float, float]]:
    """Yield a fading radio link: 60 s in steps of 100 ms."""
    chance, step_s, branches = Random(1), 0.1, 4
    shadow = wander(chance, spread=5, step_s=step_s, memory_s=3)
    # the two quadratures of each branch; the power of one is exponential, as a Rayleigh envelope has it
    quadratures = [
        wander(chance, spread=math.sqrt(0.5), step_s=step_s, memory_s=0.3) for _ in range(2 * branches)
    ]
    for step in range(600):
        gain = sum(next(one) ** 2 for one in quadratures) / branches
        snr = 10 ** ((15 + next(shadow)) / 10) * gain
        yield step * step_s, min(40e6, 0.5 * 10e6 * math.log2(1 + snr))


def handover() -> Iterator[tuple[float, float]]:
    """Yield a link over satellites in low orbit: 60 s, a hand-over every 15 s, the first at 5 s."""
    chance, start_s = Random(2), 0.0
    for end_s in (5.0, 20.0, 35.0, 50.0, 60.0):
        if start_s:
            yield start_s, 0.0
            start_s += round(0.1 + 0.2 * chance.random(), 3)
        level_bps = 50e6 + 150e6 * chance.random()
        while start_s < end_s:
            yield start_s, level_bps * (0.9 + 0.2 * chance.random())
            start_s = math.floor(start_s) + 1.0


def cellular() -> Iterator[int]:
    """Yield packet deliveries of a cellular link: 15 s at about 12 Mbit/s, in bursts."""
    chance, turn_share, most = Random(3), 0.25, 12
    level = wander(chance, spread=0.5, step_s=1e-3, memory_s=1)
    for ms in range(1, 15_001):
        mean = 0.8 * math.exp(next(level)) / turn_share
        if chance.random() < turn_share:
            # a geometric distribution with this mean, cut at what a millisecond holds
            burst = math.floor(math.log(1 - chance.random()) / math.log(mean / (1 + mean)))
            yield from [ms] * min(most, burst)
    yield 15_000


def contents() -> dict[str, str]:
    """Return the text of each trace by its name."""
    return {
        "fading.csv": csv(fading()),
        "handover.csv": csv(handover()),
        "cellular.mahimahi": "".join(f"{ms}\n" for ms in cellular()),
    }


def main(argv: Sequence[str]) -> int:
    """Write the traces, or with `--check` compare them; return 0, or 1 where one differs."""
    options = argparse.ArgumentParser(description="Make the traces of this folder.")
    options.add_argument("--check", action="store_true", help="write nothing, say which file differs")
    check = options.parse_args(argv).check
    stale = {
        name: text
        for name, text in contents().items()
        if not (FOLDER / name).is_file() or (FOLDER / name).read_text(encoding="utf-8") != text
    }
    for name, text in stale.items():
        if check:
            print(f"{name}: not as the script makes it; run python traces/make.py", file=sys.stderr)
        else:
            (FOLDER / name).write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
