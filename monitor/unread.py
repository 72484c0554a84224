"""What may be said of a run while its history is still being read: what is wrong already, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from trainmon.monitor.finding import Verdict
from trainmon.monitor.snapshot import RunSnapshot

_STANDS: Final = frozenset({Verdict.WARN, Verdict.FAIL})


def while_read(made: RunSnapshot) -> RunSnapshot:
    """`made` of a run whose logs are not read to their ends: nothing passes, is missing or does not apply yet.

    What is found to be wrong stands, as it does in the part that was read.
    """
    words = "its history is still being read" if made.progress > 0 else "not read yet"
    steps = tuple(
        step if step.verdict in _STANDS else replace(step, verdict=Verdict.NO_DATA, what=words, why="", next="")
        for step in made.triage
    )
    if made.verdict in _STANDS:
        return replace(made, triage=steps)
    return replace(made, verdict=Verdict.NO_DATA, verdict_reason=words, triage=steps)
