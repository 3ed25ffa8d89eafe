"""Why two runs of one setting came out apart: rules over what was recorded of both, each with its numbers.

A rule looks at one quantity in which the two differ, says in a sentence what
the two numbers are, and estimates how much of the difference they explain. What
no rule explains has no cause here: nothing is guessed. Pure functions of rows
of table `points` and of what `observe` takes from the samples.
"""

from __future__ import annotations

from lab.causes.likely import NOTHING, Cause, also, likely, said
from lab.causes.sides import SAMPLES, Side, observe, typical

__all__ = ["NOTHING", "SAMPLES", "Cause", "Side", "also", "likely", "observe", "said", "typical"]
