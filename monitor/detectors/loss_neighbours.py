"""Keys that come with the loss, told by where they have stood so far."""

from __future__ import annotations

import numpy as np

from trainmon.monitor.frame import Frame, SignalKey
from trainmon.tails.record import Mark

LOSS = SignalKey("loss.train")
# Numbers that a trainer writes beside the loss of a step: when they are there, so was the step.
COMPANIONS = ("grad.", "optim.lr", "optim.loss_scale", "sys.", "device.", "count.", "moe.", "loss.", "param.")
MOST_NEIGHBOURS = 8
TOGETHER = 3


class Neighbours:
    """Keys of any name that stand on the loss's own rows: where they are, a step was logged.

    A table that fills its gaps with NaN has the held-out loss on rows of its own; a progress bar repeats it on each.
    """

    def __init__(self) -> None:
        self._seen: dict[SignalKey, list[int]] = {}  # rows with a finite loss, rows at all

    def meet(self, frame: Frame) -> None:
        """Makes keys known: the first few that the log gives a number."""
        if len(self._seen) >= MOST_NEIGHBOURS:
            return
        new = [
            (int(rows[0]), key)
            for key, values in frame.columns.items()
            if key != LOSS and key not in self._seen and not key.signal.startswith(("progress.", *COMPANIONS))
            if len(rows := np.flatnonzero(np.isfinite(values)))
        ]
        for _, key in sorted(new, key=lambda pair: pair[0])[: MOST_NEIGHBOURS - len(self._seen)]:
            self._seen[key] = [0, 0]

    def finite(self, frame: Frame) -> list[tuple[SignalKey, list[bool]]]:
        """For each key whether it has a number on each row."""
        return [(key, np.isfinite(frame.columns[key]).tolist()) for key in self._seen if key in frame.columns]

    def all_good(self, frame: Frame) -> None:
        """The loss is finite on every row."""
        for key, counts in self._seen.items():
            if key in frame.columns:
                many = int(np.isfinite(frame.columns[key]).sum())
                counts[0] += many
                counts[1] += many

    def learn(self, near: list[tuple[SignalKey, list[bool]]], row: int, mark: int, *, is_near: bool) -> None:
        """One more row; one whose loss is not finite beside its neighbours does not count against them."""
        if is_near:
            return
        for key, finite in near:
            if finite[row]:
                counts = self._seen[key]
                counts[0] += mark == Mark.NUMBER
                counts[1] += 1

    def tell(self, near: list[tuple[SignalKey, list[bool]]], row: int) -> bool:
        """Whether a key that comes with the loss is there on `row`."""
        return any(
            finite[row] and self._seen[key][0] >= TOGETHER and 10 * self._seen[key][0] >= 9 * self._seen[key][1]
            for key, finite in near
        )
