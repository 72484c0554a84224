"""trainmon from Python: read runs, take their series, judge them. The commands are built from the same parts."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING

from trainmon.monitor.finding import CheckResult, Episode, Verdict
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.inventory import key_of
from trainmon.monitor.judge import judge
from trainmon.monitor.snapshot import RunSnapshot, SeriesView, State
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.here import here
from trainmon.tails.quick_dataclass import dataclass

if TYPE_CHECKING:
    import pandas as pd

Target = str | PathLike[str]


class NothingToReadError(LookupError):
    """A target holds no run, or its files cannot be read; the message names them and says what to do."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run as it was when it was read."""

    snapshot: RunSnapshot

    @property
    def name(self) -> str:
        """The run's name, unique among those read together."""
        return self.snapshot.name

    @property
    def verdict(self) -> Verdict:
        """The worst of its checks."""
        return self.snapshot.verdict

    @property
    def state(self) -> State:
        """What the job does, as far as the log tells."""
        return self.snapshot.state

    @property
    def checks(self) -> tuple[CheckResult, ...]:
        """Every check's verdict with what, why and what next."""
        return self.snapshot.checks

    @property
    def episodes(self) -> tuple[Episode, ...]:
        """Every fault, from its first to its last step."""
        return self.snapshot.episodes

    @property
    def signals(self) -> tuple[str, ...]:
        """The names that `series` takes."""
        return tuple(map(str, self.snapshot.series))

    def series(self, signal: str) -> SeriesView:
        """Steps, values and attempts of `signal` (``loss.train``, ``loss.source{source=code}``, a raw key).

        Raises KeyError when the run does not have it, with what it has.
        """
        series = self.snapshot.series
        own = SignalKey(signal)  # a log's own key may hold braces itself
        view = series.get(own if own in series else key_of(signal))
        if view is None:
            raise KeyError(f"{signal}: not in {self.name}, which has {', '.join(self.signals)}")
        return view

    def to_pandas(self, *signals: str) -> pd.DataFrame:
        """A table of attempt, step and one column a signal, a row a step; NaN where a signal was not logged.

        Raises KeyError for a signal the run does not have, ImportError without pandas.
        """
        import pandas as pd

        tables = []
        for signal in signals:
            view = self.series(signal)
            table = pd.DataFrame({"attempt": view.attempts, "step": view.steps, signal: view.values})
            tables.append(table.groupby(["attempt", "step"]).last())
        return pd.concat(tables, axis=1).reset_index()


def read(target: Target, *more: Target, limits: Thresholds | None = None) -> Run:
    """The one run of the targets, read to its end. Raises NothingToReadError, and ValueError for several runs."""
    runs = read_all(target, *more, limits=limits)
    if len(runs) > 1:
        names = ", ".join(run.name for run in runs[:8])
        raise ValueError(f"{len(runs)} runs ({names}): name one, or use trainmon.read_all")
    return runs[0]


def read_all(*targets: Target, limits: Thresholds | None = None) -> tuple[Run, ...]:
    """Every run of the targets (of the current directory without any). Raises NothingToReadError."""
    return tuple(map(Run, _judged(targets, limits)))


def check(*targets: Target, limits: Thresholds | None = None) -> dict[str, Verdict]:
    """The verdict of every run of the targets, by name. Raises NothingToReadError."""
    return {run.name: run.verdict for run in _judged(targets, limits)}


def _judged(targets: Sequence[Target], limits: Thresholds | None) -> tuple[RunSnapshot, ...]:
    found = judge([fspath(target) for target in targets], cwd=here(), limits=limits)
    if not found.runs:
        raise NothingToReadError("; ".join(found.problems) or found.searched)
    return found.runs
