"""NaN in a series: a number that was lost, or the gap of a table."""

from __future__ import annotations

import numpy as np

from trainmon.monitor.rows import BoolArray
from trainmon.tails.record import FloatArray, Mark, MarkArray


class NanGaps:
    """Tells, row by row, where a series was logged as something that is no number.

    Inf and a NaN in the words of a line (`Mark.SAID_NAN`) always are. A NaN in a table or record (`Mark.NAN`) may fill
    a gap: it counts once the series has had a number, until one such NaN was followed by a number again.
    """

    def __init__(self) -> None:
        self._has_spoken = self._has_gap = self._is_gappy = False

    def bad(self, values: FloatArray, marks: MarkArray | None) -> BoolArray:
        """(n,) whether each of the (n,) values is NaN or Inf and meant so; None as marks: NaN is "not logged"."""
        number = np.isfinite(values)
        said = np.isinf(values)
        if marks is not None:
            said |= marks == Mark.SAID_NAN
        unsure = np.zeros(len(values), np.bool_) if marks is None else marks == Mark.NAN
        if unsure.any() or self._has_gap:
            unsure &= _before(number, first=self._has_spoken)
            healed = number & _before(unsure, first=self._has_gap)
            self._has_gap = self._has_gap or bool(unsure.any())
            unsure &= ~_before(healed, first=self._is_gappy)
            self._is_gappy = self._is_gappy or bool(healed.any())
        self._has_spoken = self._has_spoken or bool(number.any())
        bad: BoolArray = said | unsure
        return bad


def _before(flags: BoolArray, *, first: bool) -> BoolArray:
    """(n,) whether any row before has the flag; `first`: whether one before all of them had it."""
    return np.logical_or.accumulate(np.concatenate(([first], flags)))[:-1]
