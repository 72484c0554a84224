"""Whether held-out loss fell or rose since a step: consulted before a shift of the training loss is called a fault."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from trainmon.monitor.frame import Frame, SignalKey

HELD_OUT = ("eval.nll", "eval.bits_per_byte", "eval.perplexity")
KEPT = 200  # evaluations a set
SAME = 0.005  # a change of less is none


class Evaluation(NamedTuple):
    """One evaluation; `row` of the frame being read, -1 for those of frames before."""

    row: int
    step: float
    value: float


class HeldOutTrend:
    """Keeps the newest evaluations of each held-out set.

    `feed` is to be called with a frame before the training loss of that frame is judged; `since` then looks no
    further than the row it is asked about, so that the answer does not depend on how rows were cut into frames.
    """

    def __init__(self) -> None:
        self.sets: dict[SignalKey, list[Evaluation]] = {}
        self._attempt: int | None = None

    def feed(self, frame: Frame) -> None:
        """Takes in the evaluations of `frame`."""
        if len(frame) and frame.attempt != self._attempt:
            self._attempt = frame.attempt
            first = float(frame.steps[0])
            for kept in self.sets.values():
                kept[:] = [e for e in kept if e.step < first]
        for key, kept in self.sets.items():
            if kept and kept[-1].row >= 0:
                self.sets[key] = [e._replace(row=-1) for e in kept[-KEPT:]]
        for key in frame.columns:
            if key.signal in HELD_OUT:
                column = frame.columns[key]
                rows = np.flatnonzero(np.isfinite(column) & (column > 0)).tolist()
                self.sets.setdefault(key, []).extend(
                    Evaluation(row, float(frame.steps[row]), float(column[row])) for row in rows
                )

    def since(self, step: float, row: int | None = None) -> tuple[float, float] | None:
        """(last value before `step`, newest value after it) of the set that got worst; None where none has both.

        `row`: rows of the present frame behind it are not looked at.
        """
        pairs = []
        for kept in self.sets.values():
            known = [e for e in kept if row is None or e.row <= row][-KEPT:]
            before = [e for e in known if e.step < step]
            after = [e for e in known if e.step > step]
            if before and after:
                pairs.append((before[-1].value, after[-1].value))
        return max(pairs, key=lambda pair: math.log(pair[1] / pair[0]), default=None)

    def no_worse(self, first: float, now: float, row: int) -> str:
        """Words that soften a FAIL: held-out loss fell since `first`, seen in the newer half of the steps up to `now`.

        Empty where it did not fall, or was not evaluated there.
        """
        pair = self.since(first, row)
        newest = max((e.step for kept in self.sets.values() for e in kept if e.row <= row), default=first)
        if pair is None or not fell(pair) or newest < (first + now) / 2:
            return ""
        return f"; held-out loss fell meanwhile ({pair[0]:.4g} to {pair[1]:.4g}), so the model is no worse"


def fell(pair: tuple[float, float] | None) -> bool:
    """Whether the held-out loss went on falling (every set that was evaluated before and after)."""
    return pair is not None and pair[1] < pair[0] * (1 - SAME)
