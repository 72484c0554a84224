"""The loss of each rank that stops being a number: one is enough to lose the run."""

from __future__ import annotations

from typing import Final

import numpy as np

from trainmon.monitor.amount import named
from trainmon.monitor.detectors.bad_run import BadRun
from trainmon.monitor.detectors.common import Found, finding, place
from trainmon.monitor.detectors.families import families
from trainmon.monitor.finding import Finding, Severity
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.stats.nan_gaps import NanGaps

MOST_TOLD: Final = 8  # ranks: where more have lost theirs, all have


class RankLosses:
    """`loss.rank` by rank: 1-2 losses that are NaN or Inf and recover are a WARN, `fail_run` or the last one a FAIL.

    What other ranks log between them does not end a rank's run of bad losses.
    """

    def __init__(self, fail_run: int) -> None:
        self._fail_run = fail_run
        self._gaps: dict[SignalKey, NanGaps] = {}
        self._runs: dict[SignalKey, BadRun] = {}

    def feed(self, frame: Frame, found: Found) -> None:
        """Reads the ranks' losses of `frame`."""
        for key in families(frame).get("loss.rank", ()):
            values = frame.columns[key]
            bad = self._gaps.setdefault(key, NanGaps()).bad(values, frame.marks.get(key))
            run = self._runs.get(key)
            if run is None and bad.any() and len(self._runs) < MOST_TOLD:
                run = self._runs[key] = BadRun("nonfinite", 1, self._fail_run, key, _noun(key))
            if run is None or not (run.count or bad.any()):
                continue
            for row in np.flatnonzero(bad | np.isfinite(values)).tolist():
                at = place(frame, row, float(values[row]))
                if bad[row]:
                    run.hit(at, row, found)
                elif run.count:
                    run.end(at, row, found)

    def forget(self) -> None:
        """A restart ends a run of bad values, but does not make them good."""
        for run in self._runs.values():
            run.forget()

    def finish(self) -> list[Finding]:
        """A rank whose last loss is no number: a FAIL, however few there are."""
        return [
            finding("grow", run.kind, key, Severity.FAIL, run.last, run.so_far(), first=run.first)
            for key, run in self._runs.items()
            if run.count and run.last is not None
        ]


def _noun(key: SignalKey) -> str:
    rank = key.label_dict.get("rank")
    return named(key) if rank is None else f"the loss of rank {rank}"
