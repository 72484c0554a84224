"""What is taken of a second file of a run while the file that a signal is judged by has not come so far.

An event file is flushed every two minutes and a state is saved every so many steps: until then, and for ever when a job
dies, the last steps stand in its text alone, and the loss that ran away among them. Of files whose losses agreed as far
as both went, the second's values are taken at once, and what the first tells later of these steps is left out. A file
that tells the loss far more seldom waits for the first one, which may still tell of the steps between: until it has
come, until `PATIENCE` records wait (then no longer, unless the first one goes on), or until no more is expected.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from trainmon.monitor.frame import SignalKey

PATIENCE: Final = 200
SELDOM: Final = 2  # times fewer values
Position = tuple[int, float]  # attempt, step


class StandIns:
    """How far each signal was told by another file than its own.

    >>> told = StandIns()
    >>> told.give(0, SignalKey("loss.train"), (1, 300.0))
    >>> told.given(0, SignalKey("loss.train"), 1), told.given(0, SignalKey("loss.train"), 2)
    (300.0, -inf)
    """

    def __init__(self) -> None:
        self._given: dict[tuple[int, SignalKey], Position] = {}

    def give(self, group: int, key: SignalKey, last: Position) -> None:
        """Values of another file than the owner's were taken up to `last`."""
        self._given[group, key] = max(self._given.get((group, key), last), last)

    def given(self, group: int, key: SignalKey, attempt: int) -> float:
        """The step of `attempt` up to which that is so: what the owner tells of those steps comes too late."""
        at = self._given.get((group, key))
        if at is None or at[0] < attempt:
            return -np.inf
        return at[1] if at[0] == attempt else np.inf
