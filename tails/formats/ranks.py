"""Several ranks that print the same metrics into one file: one of them speaks for the run.

The first rank that reports is the speaker. Another rank's record at the step that the speaker is at gets its keys
marked, ``loss{rank=3}``. A rank that reports other steps than the speaker's (another run, or the one pipeline stage
that knows the loss) is no echo, and its keys stay plain.
"""

from __future__ import annotations

_SILENT_RECORDS = 256  # after so many records of others the speaker is held to be gone


class RankVoices:
    """Decides for each record whether its rank must be written into its keys.

    >>> voices = RankVoices()
    >>> [voices.is_echo(rank, step) for rank, step in [("0", 1.0), ("1", 1.0), ("1", 2.0), ("0", 2.0), ("1", 90.0)]]
    [False, True, True, False, False]
    """

    def __init__(self) -> None:
        self._speaker = ""
        self._step = 0.0
        self._stride = 1.0
        self._silent = 0
        self._echoes: set[str] = set()

    def is_echo(self, rank: str, step: float) -> bool:
        """Whether `rank` repeats at `step` what the speaker reports. Call once a record, in file order."""
        if not self._speaker or rank == self._speaker or self._silent > _SILENT_RECORDS:
            if rank == self._speaker and step > self._step:
                self._stride = step - self._step
            if rank != self._speaker:
                self._echoes.discard(rank)
            self._speaker, self._step, self._silent = rank, step, 0
            return False
        self._silent += 1
        is_near = abs(step - self._step) <= self._stride
        if step == self._step or (is_near and rank in self._echoes):
            self._echoes.add(rank)
            return True
        self._echoes.discard(rank)
        return False
