"""Several ranks that write the same metrics into one file: the loss of the one that speaks is its own, as the others'.

Readers leave the keys of the first rank plain (`tails.formats.ranks`), so that a run of which every rank logs the
reduced loss has it at once. Where records name their rank and the ranks tell different losses, the run's is D1's, as
over files of ranks. Lines of text name it too, but those that say the same as the one before are one
(`tails.formats.said_again`): there the ranks that told a step are not all known, and the first goes on speaking.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from trainmon.monitor.derive.base import DerivationRule, DraftLike
from trainmon.monitor.frame import SignalKey
from trainmon.tails.record import IntArray

_LOSS: Final = SignalKey("loss.train")
_RANK: Final = SignalKey("rank")
_MOVED: Final = {"loss.train": "loss.rank", "loss.tokens": "loss.tokens", "loss.sum": "loss.sum"}
_STEPS: Final = 2  # at so many in a row all other ranks told a loss behind the speaker's, and not the same one


class SpeakerRule(DerivationRule):
    """Puts the speaker's loss, and its sum and tokens, under its rank's label.

    Only while every rank tells its loss at each step of the speaker's: once one does not, the speaker speaks for the
    run again.
    """

    def __init__(self) -> None:
        self._ranks: set[str] = set()
        self._is_off = self._is_on = False
        self.new_attempt()

    def new_attempt(self) -> None:
        """What was told of a step of the attempt before is void."""
        self._step, self._loss = np.nan, np.nan
        self._has_spoken = self._differs = False
        self._told: set[str] = set()
        self._streak = 0

    def apply(self, draft: DraftLike) -> None:
        """Moves `loss.train` where that holds; there it may be derived though it was logged."""
        if self._is_off or not (self._has_spoken or _RANK in draft.frame.columns):
            return
        keys = [key for key in draft.families.get("loss.rank", ()) if [name for name, _ in key.labels] == ["rank"]]
        spoken = set(draft.frame.logged(_LOSS).tolist())
        heard: dict[int, list[SignalKey]] = {}
        for key in keys:
            for row in draft.frame.logged(key).tolist():
                heard.setdefault(row, []).append(key)
        moved: list[int] = []
        begin, end = 0 if self._is_on else len(draft), len(draft)
        for row in sorted(spoken | heard.keys()):
            if row in spoken:
                self._speak(draft, row, is_rank=row not in heard)
            else:
                self._hear(draft, row, heard[row])
            if self._is_off:
                end = row
                break
            if self._is_on and row in spoken:
                moved.append(row)
                begin = min(begin, row)
        if begin < end:
            self._move(draft, moved, (begin, end))

    def _speak(self, draft: DraftLike, row: int, *, is_rank: bool) -> None:
        step = float(draft.frame.steps[row])
        is_whole = bool(self._ranks) and self._told == self._ranks and step != self._step
        ranks = draft.frame.columns.get(_RANK)
        is_rank = is_rank and ranks is not None and bool(np.isfinite(ranks[row]))
        if not is_rank or (self._has_spoken and self._is_on and not is_whole):
            self._is_off = True
            return
        self._streak = self._streak + 1 if self._has_spoken and is_whole and self._differs else 0
        self._is_on = self._is_on or self._streak >= _STEPS
        self._step, self._loss, self._told = step, float(draft.frame.columns[_LOSS][row]), set()
        self._has_spoken, self._differs = True, False

    def _hear(self, draft: DraftLike, row: int, keys: list[SignalKey]) -> None:
        if float(draft.frame.steps[row]) != self._step:
            return
        for key in keys:
            rank = key.labels[0][1]
            self._ranks.add(rank)
            self._told.add(rank)
            self._differs = self._differs or float(draft.columns[key][row]) != self._loss

    @staticmethod
    def _move(draft: DraftLike, moved: list[int], span: tuple[int, int]) -> None:
        draft.open_between(_LOSS, *span)
        ranks = draft.frame.columns.get(_RANK, np.empty(0))
        for name in dict.fromkeys(f"{ranks[row]:.0f}" for row in moved):
            rows: IntArray = np.array([row for row in moved if f"{ranks[row]:.0f}" == name], np.int64)
            for signal, family in _MOVED.items():
                if SignalKey(signal) in draft.frame.columns:
                    draft.speak(SignalKey(signal), SignalKey(family, (("rank", name),)), rows)
