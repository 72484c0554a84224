"""D1 without counts: the run's loss where only each rank's is logged."""

from __future__ import annotations

from typing import Final

import numpy as np

from trainmon.monitor.derive.base import DerivationRule, DraftLike
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.rows import BoolArray
from trainmon.monitor.stats.nan_gaps import NanGaps
from trainmon.tails.record import FloatArray, Mark

_LOSS: Final = SignalKey("loss.train")
_TEXT: Final = "plain mean of the ranks' losses: none of them tells its tokens, so each weighs the same (D1)"


class RankMeanRule(DerivationRule):
    """The mean over the ranks that told a loss at a step, each weighing the same; nothing once counts are logged.

    A rank whose loss is NaN or Inf makes the run's so, as a sum over ranks would. A rank that said nothing, or fills a
    gap with NaN (`NanGaps`), is left out. Ranks that write rows of their own are taken together when the last of them
    has told; one rank alone gives nothing.
    """

    def __init__(self) -> None:
        self._gaps: dict[SignalKey, NanGaps] = {}
        self._ranks: set[SignalKey] = set()  # those that have told a loss so far
        self._has_counts = False
        self.new_attempt()

    def new_attempt(self) -> None:
        """What ranks said of a step of the attempt before is void."""
        self._step = np.nan
        self._told: dict[SignalKey, float] = {}

    def apply(self, draft: DraftLike) -> None:
        """Puts `loss.train`, nats."""
        self._has_counts = self._has_counts or "loss.tokens" in draft.families
        keys = [key for key in draft.families.get("loss.rank", ()) if [name for name, _ in key.labels] == ["rank"]]
        is_put = _LOSS in draft.columns and _LOSS not in draft.frame.columns
        if not keys or is_put or self._has_counts:
            return
        table = np.array([draft.columns[key] for key in keys])
        known = ~np.isnan(table)
        for row, key in enumerate(keys):
            gaps = self._gaps.setdefault(key, NanGaps())
            known[row] |= gaps.bad(table[row], draft.frame.marks.get(key))
        values, where = self._means(draft.frame.steps, keys, table, known)
        marks = np.where(where, Mark.NUMBER, Mark.ABSENT).astype(np.uint8)
        marks[where & np.isnan(values)] = Mark.SAID_NAN
        marks[values == np.inf] = Mark.POS_INF
        marks[values == -np.inf] = Mark.NEG_INF
        draft.put(_LOSS, values, _TEXT, marks if (marks > Mark.NUMBER).any() else None)

    def _means(
        self, steps: FloatArray, keys: list[SignalKey], table: FloatArray, known: BoolArray
    ) -> tuple[FloatArray, BoolArray]:
        """(n,) the means, (n,) where there is one (that may be NaN)."""
        many = known.sum(axis=0)
        where = many > 1
        values = np.full(len(steps), np.nan)
        with np.errstate(invalid="ignore"):  # Inf - Inf is NaN
            values[where] = np.where(known, table, 0.0).sum(axis=0)[where] / many[where]
        rows = np.flatnonzero(many)
        if where[rows].all():  # each row tells of several: only the last step can still be added to
            self._ranks.update(keys[index] for index in np.flatnonzero(known.any(axis=1)).tolist())
            rows = rows[steps[rows] == steps[rows[-1:]]]
        for row in rows.tolist():
            if many[row] == 1 and steps[row] < self._step:
                continue  # a rank that is late: its step is over
            if steps[row] != self._step:
                self._step, self._told = float(steps[row]), {}
            own = {keys[index]: float(table[index, row]) for index in np.flatnonzero(known[:, row]).tolist()}
            self._told |= own
            self._ranks.update(own)
            if many[row] == 1 and 1 < len(self._told) == len(self._ranks):
                values[row], where[row] = sum(self._told.values()) / len(self._told), True
        return values, where
