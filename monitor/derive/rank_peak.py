"""D2 where one rank speaks for the run: its memory is raised to what the fullest of the others tells."""

from __future__ import annotations

from typing import Final

import numpy as np

from trainmon.monitor.derive.base import DerivationRule, DraftLike
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.rows import BoolArray

_PEAKS: Final = (
    ("sys.peak_memory", "sys.rank_memory"),
    ("sys.memory_share", "sys.memory_share"),
    ("sys.reserved_memory", "sys.reserved_memory"),
)
_RECORD: Final = ("loss.rank", "grad.rank_norm")  # beside one of these a rank's memory is its record of a step


class RankPeakRule(DerivationRule):
    """The maximum over the ranks that print their records of a step one after another into one file.

    The first of them logs the run's own columns, so that its values are known before the others'. A rank that tells
    more raises the run's value on its own row, and that of the first rank's next record until the others have told
    theirs. Ranks that tell the same change nothing. A rank that was silent for a step is left out.
    """

    def __init__(self) -> None:
        self._holds = {whole: _Hold() for whole, _ in _PEAKS}

    def new_attempt(self) -> None:
        """Memory begins anew with the process."""
        self._holds = {whole: _Hold() for whole, _ in _PEAKS}

    def apply(self, draft: DraftLike) -> None:
        """Raises `sys.peak_memory`, `sys.reserved_memory` (bytes) and `sys.memory_share`."""
        for whole, part in _PEAKS:
            ranked = [key for key in draft.families.get(part, ()) if [name for name, _ in key.labels] == ["rank"]]
            hold, key = self._holds[whole], SignalKey(whole)
            if (ranked or hold.told) and (key in draft.frame.columns or not draft.wants(key)):
                self._raise(draft, hold, key, ranked)

    @staticmethod
    def _raise(draft: DraftLike, hold: _Hold, key: SignalKey, ranked: list[SignalKey]) -> None:
        steps = draft.frame.steps
        own = draft.columns.get(key)
        first = 0
        if draft.wants(key):  # rows before the first logged one are RankRule's
            logged = draft.frame.logged(key)
            first = int(logged[0]) if len(logged) else len(draft)
        values = np.full(len(draft), np.nan) if own is None else own.copy()
        said = {rank: np.where(_records(draft, rank), draft.columns[rank], np.nan) for rank in ranked}
        known = ~np.isnan(values)
        for column in said.values():
            known |= ~np.isnan(column)
        for row in (np.flatnonzero(known[first:]) + first).tolist():
            step = float(steps[row])
            if not np.isnan(values[row]):
                values[row] = hold.own(step, float(values[row]))
                continue
            for rank, column in said.items():
                if not np.isnan(column[row]) and hold.raises(rank, step, float(column[row])):
                    values[row] = column[row]
        draft.raise_to(key, values)


def _records(draft: DraftLike, rank: SignalKey) -> BoolArray:
    """(n,) the rows that are this rank's record of a step."""
    rows = np.zeros(len(draft), np.bool_)
    for signal in _RECORD:
        rows[draft.frame.logged(SignalKey(signal, rank.labels))] = True
    return rows


class _Hold:
    """What the ranks told last. `told`: rank -> step, value."""

    def __init__(self) -> None:
        self.told: dict[SignalKey, tuple[float, float]] = {}
        self._step = self._before = -np.inf
        self._top = np.nan

    def own(self, step: float, value: float) -> float:
        """The first rank's value of `step`, raised to what others told at its last step or since."""
        if step != self._step:
            self._before, self._step = self._step, step
        self.told = {rank: told for rank, told in self.told.items() if self._before <= told[0] <= step}
        self._top = max([value, *(told[1] for told in self.told.values())])
        return self._top

    def raises(self, rank: SignalKey, step: float, value: float) -> bool:
        """Whether `rank` tells more than all before it at the step."""
        self.told[rank] = (step, value)
        is_more = step == self._step and value > self._top
        if is_more:
            self._top = value
        return is_more
