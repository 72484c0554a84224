"""D2 and D10: what the worst of several ranks says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trainmon.monitor.derive.base import DerivationRule, DraftLike
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.rows import BoolArray
from trainmon.monitor.signals import BY_ID
from trainmon.tails.record import FloatArray

_EPS = 1e-12
_OWN_RULE = ("loss.sum", "loss.tokens")
_WHOLE = {"grad.rank_norm": "grad.norm"}
_FAMILIES = ("loss.rank", "sys.rank_memory", "sys.rank_step_time", "sys.comm_wait", "sys.data_wait")


class RankRule(DerivationRule):
    """The maximum over the ranks that reported at a step (never a rank that did not), and the straggler ratio.

    D2: max over ranks. D10: S = tau / (median over ranks of tau_r + eps). A step at which fewer than two ranks
    reported gives nothing. Ranks that write rows of their own are taken together at the last rank's row.
    """

    def __init__(self) -> None:
        self._steps = {family: RankStep() for family in _FAMILIES}

    def new_attempt(self) -> None:
        """What ranks said of a step of the attempt before is void."""
        for step in self._steps.values():
            step.clear()

    def apply(self, draft: DraftLike) -> None:
        """Puts `loss.worst_rank`, `sys.step_time`, `sys.peak_memory`, `sys.straggler` and the longest waits."""
        self._others(draft)
        self._max(draft, "loss.rank", SignalKey("loss.worst_rank"))
        self._max(draft, "sys.rank_memory", SignalKey("sys.peak_memory"))
        self._max(draft, "sys.comm_wait", SignalKey("sys.comm_wait"))
        self._max(draft, "sys.data_wait", SignalKey("sys.data_wait"))
        times = self._max(draft, "sys.rank_step_time", SignalKey("sys.step_time"))
        if times is not None:
            ratio = _over_rows(np.nanmax, times) / (_over_rows(np.nanmedian, times) + _EPS)
            draft.put(SignalKey("sys.straggler"), ratio, "slowest rank's step time over the median rank's (D10)")

    def _others(self, draft: DraftLike) -> None:
        """Any other signal that ranks report: its sum or maximum as the table says; else the value they agree on."""
        for family, keys in list(draft.families.items()):
            if family in _FAMILIES or family in _OWN_RULE or family not in BY_ID or len(keys) < 2:
                continue
            wholes: dict[SignalKey, list[SignalKey]] = {}
            for key in keys:
                if any(name == "rank" for name, _ in key.labels):
                    rest = tuple(label for label in key.labels if label[0] != "rank")
                    whole = SignalKey(_WHOLE.get(family, family), rest)
                    wholes.setdefault(whole, []).append(key)
            for whole, ranked in wholes.items():
                if draft.wants(whole):
                    self._reduce(draft, whole, ranked)

    def _reduce(self, draft: DraftLike, whole: SignalKey, ranked: list[SignalKey]) -> None:
        step = self._steps.setdefault(str(whole), RankStep())
        table = np.array(list(step.gather(draft, ranked).values()))
        if len(table) < 2:
            return
        how = BY_ID[whole.signal].reduction
        if how == "sum":
            values, words = _over_rows(np.nansum, table), "sum"
        elif how == "max":
            values, words = _over_rows(np.nanmax, table), "maximum"
        else:
            values = _over_rows(np.nanmax, table)
            values[values != _over_rows(np.nanmin, table)] = np.nan
            words = "what they agree on"
        draft.put(whole, values, f"{words} over the ranks of {whole.signal} (D2)")

    def _max(self, draft: DraftLike, family: str, key: SignalKey) -> FloatArray | None:
        keys = [key for key in draft.families.get(family, ()) if key.labels]
        if not keys:
            return None
        may_be_alone = family == "sys.rank_memory"  # the fullest rank that tells, though no other does
        table = np.array(list(self._steps[family].gather(draft, keys, may_be_alone=may_be_alone).values()))
        if family == key.signal or key not in draft.columns:  # whole step times tell more than compute times
            draft.put(key, _over_rows(np.nanmax, table), f"maximum over the ranks of {family} (D2)")
        return table


class RankStep:
    """What each rank has reported at the newest step. `ranks`: all that ever reported."""

    def __init__(self) -> None:
        self.ranks: dict[SignalKey, int] = {}
        self.clear()

    def clear(self) -> None:
        """Forgets the step."""
        self._step = np.nan
        self._told: dict[SignalKey, float] = {}

    def gather(
        self, draft: DraftLike, keys: list[SignalKey], *, may_be_alone: bool = False
    ) -> dict[SignalKey, FloatArray]:
        """Each rank's (n,) values on rows at which a step is complete, else NaN. `may_be_alone`: also while but one
        rank has ever told anything."""
        table = np.array([draft.columns[key] for key in keys])
        known = ~np.isnan(table)
        many = known.sum(axis=0)
        if (many[many > 0] > 1).all():  # every row that tells of ranks tells of several
            for index in np.flatnonzero(known.any(axis=1)).tolist():  # a column may be there for rows to come
                self.ranks.setdefault(keys[index], len(self.ranks))
            rows = np.flatnonzero(many)
            other = np.flatnonzero(draft.frame.steps[rows] != draft.frame.steps[rows[-1:]])
            for row in rows[int(other[-1]) if len(other) else 0 :].tolist():
                self._hear(float(draft.frame.steps[row]), keys, table[:, row], known[:, row])
            return dict(zip(keys, table, strict=True))
        return self._over_rows_of_ranks(draft, keys, table, known, 1 if may_be_alone else 2)

    def _hear(self, step: float, keys: list[SignalKey], values: FloatArray, known: BoolArray) -> dict[SignalKey, float]:
        """Takes in what one row says; its own values by rank."""
        if step != self._step:
            self._step, self._told = step, {}
        own = {keys[index]: float(values[index]) for index in np.flatnonzero(known).tolist()}
        self._told |= own
        return own

    def _over_rows_of_ranks(
        self, draft: DraftLike, keys: list[SignalKey], table: FloatArray, known: BoolArray, fewest: int
    ) -> dict[SignalKey, FloatArray]:
        found: list[tuple[int, dict[SignalKey, float]]] = []
        for row in np.flatnonzero(known.any(axis=0)).tolist():
            step = float(draft.frame.steps[row])
            if step < self._step and known[:, row].sum() == 1:
                continue  # a rank that is late: its step is over
            own = self._hear(step, keys, table[:, row], known[:, row])
            for key in own:
                self.ranks.setdefault(key, len(self.ranks))
            if len(own) > 1:
                found.append((row, own))
            elif len(self._told) == len(self.ranks) >= fewest:
                found.append((row, dict(self._told)))
        result = {key: np.full(len(draft), np.nan) for key in (*self.ranks, *keys)}
        for row, told in found:
            for key, value in told.items():
                result[key][row] = value
        return result


def _over_rows(reduce: Callable[..., FloatArray], table: FloatArray) -> FloatArray:
    """`reduce` over the ranks where any reported, NaN elsewhere."""
    known = ~np.isnan(table).all(axis=0)
    result = np.full(table.shape[1], np.nan)
    if known.any():
        result[known] = reduce(table[:, known], axis=0)
    return result
