"""D2 and D10: what the worst of several ranks says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trainmon.monitor.derive_base import DerivationRule, DraftLike
from trainmon.monitor.frame import SignalKey
from trainmon.tails.record import FloatArray

_EPS = 1e-12


class RankRule(DerivationRule):
    """The maximum over the ranks that reported on a row (never a rank that did not), and the straggler ratio.

    D2: max over ranks. D10: S = tau / (median over ranks of tau_r + eps). Rows on which fewer than two ranks
    reported give nothing.
    """

    def apply(self, draft: DraftLike) -> None:
        """Puts `loss.worst_rank`, `sys.step_time`, `sys.peak_memory` and `sys.straggler`."""
        self._max(draft, "loss.rank", SignalKey("loss.worst_rank"))
        self._max(draft, "sys.rank_memory", SignalKey("sys.peak_memory"))
        times = self._max(draft, "sys.rank_step_time", SignalKey("sys.step_time"))
        if times is not None:
            with np.errstate(invalid="ignore"):
                ratio = _over_rows(np.nanmax, times) / (_over_rows(np.nanmedian, times) + _EPS)
            draft.put(SignalKey("sys.straggler"), ratio, "slowest rank's step time over the median rank's (D10)")

    @staticmethod
    def _max(draft: DraftLike, family: str, key: SignalKey) -> FloatArray | None:
        keys = [key for key in draft.families.get(family, ()) if key.labels]
        if len(keys) < 2:
            return None
        table = np.array([draft.columns[key] for key in keys])
        table[:, (~np.isnan(table)).sum(axis=0) < 2] = np.nan
        draft.put(key, _over_rows(np.nanmax, table), f"maximum over {len(keys)} ranks of {family} (D2)")
        return table


def _over_rows(reduce: Callable[..., FloatArray], table: FloatArray) -> FloatArray:
    """`reduce` over the ranks where any reported, NaN elsewhere."""
    known = ~np.isnan(table).all(axis=0)
    result = np.full(table.shape[1], np.nan)
    if known.any():
        result[known] = reduce(table[:, known], axis=0)
    return result
