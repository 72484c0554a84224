"""What every detector shares: values of a column as plain floats, places in the log, findings, verdicts."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from trainmon.monitor.detectors.base import CheckView, Detector
from trainmon.monitor.finding import Action, CheckResult, Episode, Finding, Severity, Verdict
from trainmon.monitor.fold import stands_for
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.stats.robust_score import EPS
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import FloatArray, IntArray, Mark

SAME_VALUE = 2e-3  # a second value of a step this close to the first is the same one, written twice (perhaps rounded)
RESUME_SHARE = 0.8  # an attempt that starts at 80% of the last step or later carries on; earlier, it begins anew

Found = list[tuple[int, Finding]]


class Place(NamedTuple):
    """Where one value stands in the log."""

    step: float
    value: float
    line: int
    path: str

    def __deepcopy__(self, _memo: dict[int, object]) -> Place:
        return self

    attempt: int
    time: float


class Numbers(NamedTuple):
    """The finite values of one column of a frame: parallel lists, in the order of the log."""

    rows: list[int]
    steps: list[float]
    values: list[float]


class Finite:
    """The finite values of one column of a frame: (n,) `rows`, `steps` and `values`, in the order of the log.

    `lists` are the same as plain lists, `logs` the logarithms, both worked out once a frame, whichever detector asks
    first. All detectors take logarithms from here: those of `math` may differ in the last bit.
    """

    __slots__ = ("_lists", "_logs", "rows", "steps", "values")

    def __init__(self, frame: Frame, key: SignalKey) -> None:
        column = frame.columns.get(key)
        self._lists: Numbers | None = None
        self._logs: FloatArray | None = None
        if column is None:
            self.rows, self.steps, self.values = _NO_ROWS, _NO_VALUES, _NO_VALUES
            return
        finite = np.isfinite(column)
        if finite.all():
            self.rows, self.steps, self.values = np.arange(len(column)), frame.steps, column
        else:
            self.rows = np.flatnonzero(finite)
            self.steps, self.values = frame.steps[self.rows], column[self.rows]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def lists(self) -> Numbers:
        """Rows, steps and values for work one by one."""
        if self._lists is None:
            self._lists = Numbers(self.rows.tolist(), self.steps.tolist(), self.values.tolist())
        return self._lists

    @property
    def logs(self) -> FloatArray:
        """(n,) log(x + EPS); NaN for values that are not above 0."""
        if self._logs is None:
            self._logs = log_of(self.values)
        return self._logs


_NO_ROWS: IntArray = np.empty(0, np.int64)
_NO_VALUES: FloatArray = np.empty(0)
_memo: tuple[Frame | None, dict[SignalKey, Finite]] = (None, {})


def log_of(values: FloatArray, eps: float = EPS) -> FloatArray:
    """(n,) log(x + eps); NaN for values that are not above 0."""
    logs = np.full(len(values), math.nan)
    return np.asarray(np.log(values + eps, out=logs, where=values > 0))


def finite(frame: Frame, key: SignalKey) -> Finite:
    """The finite logged values of `key`, as arrays."""
    global _memo
    owner, known = _memo
    if owner is not frame:
        known = {}
        _memo = (frame, known)
    found = known.get(key)
    if found is None:
        found = known[key] = Finite(frame, key)
    return found


def numbers(frame: Frame, key: SignalKey) -> Numbers:
    """The finite logged values of `key`, as lists."""
    return finite(frame, key).lists


def place(frame: Frame, row: int, value: float) -> Place:
    """The place of row `row` of `frame`."""
    return Place(
        float(frame.steps[row]), value, int(frame.lines[row]), frame.path, frame.attempt, float(frame.times[row])
    )


def finding(
    action: Action,
    kind: str,
    key: SignalKey,
    severity: Severity,
    at: Place,
    what: str,
    first: Place | None = None,
    detail: dict[str, float | str] | None = None,
) -> Finding:
    """A finding at `at`; `first` when the fault began earlier."""
    return Finding(
        action=action,
        kind=kind,
        signal=key,
        severity=severity,
        step=at.step,
        value=at.value,
        line=at.line,
        path=at.path,
        attempt=at.attempt,
        time=at.time,
        first_step=first.step if first is not None else None,
        first_line=first.line if first is not None else None,
        what=what,
        detail=detail or {},
    )


def resumed(last_step: float, first_step: float) -> bool:
    """Whether an attempt that begins at `first_step` carries on the one that reached `last_step`."""
    return first_step > 0 and first_step >= RESUME_SHARE * last_step


def same_value(x: float, before: float) -> bool:
    """Whether two values of one step are one value written twice."""
    return x == before or abs(x - before) <= SAME_VALUE * abs(before)


def number_fact(facts: Mapping[str, float | str], name: str) -> float | None:
    """The fact `name` as a finite number, None where it is not one."""
    value = facts.get(name)
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


class Track(Protocol):
    """The state of one series of one detector."""

    def feed(self, frame: Frame, found: Found) -> None:
        """Reads the rows of `frame`, adding (row, finding) to `found`."""
        ...

    def finish(self) -> Iterable[Finding]:
        """What only the end tells; changes nothing."""
        ...


class SeriesDetector(Detector):
    """A detector that keeps one `Track` for each series (signal and labels) of its `watched` signals."""

    watched: ClassVar[tuple[str, ...]]

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)
        self.tracks: dict[SignalKey, Track] = {}

    @abstractmethod
    def make_track(self, key: SignalKey) -> Track:
        """A new track for `key`."""

    def update(self, frame: Frame) -> Iterable[Finding]:
        """Feeds every watched series; findings come in the order of the rows."""
        found: Found = []
        keys = sorted(key for key in frame.columns if key.signal in self.watched)
        for key in keys:
            if key not in self.tracks:
                self.tracks[key] = self.make_track(key)
        self.before(frame, found)
        for key in keys:
            self.tracks[key].feed(frame, found)
        return in_order(found)

    def before(self, frame: Frame, found: Found) -> None:
        """A hook for what must be read before the tracks."""

    def new_attempt(self, attempt: int) -> Iterable[Finding]:  # noqa: ARG002 - the hook
        """Open faults reach to the last value of the attempt that ends."""
        return self.finish()

    def finish(self) -> Iterable[Finding]:
        """What the end of the log tells of each series."""
        return [said for _, track in sorted(self.tracks.items()) for said in track.finish()]


def in_order(found: Found) -> list[Finding]:
    """Findings in the order of their rows, then of their series: the same for any cut into frames."""
    if len(found) > 1:
        found.sort(key=lambda pair: (pair[0], pair[1].signal))
    return [said for _, said in found]


def _told(frame: Frame, key: SignalKey) -> IntArray:
    """The rows at which `key` has a value: some trainers write null rewards in every record of any run."""
    rows, marks = frame.logged(key), frame.marks.get(key)
    return rows if marks is None else rows[marks[rows] != Mark.NULL]


class Rl:
    """Whether rewards or policy statistics were logged up to a row: then the loss is a policy's."""

    __slots__ = ("seen",)

    def __init__(self) -> None:
        self.seen = False

    def first_row(self, frame: Frame) -> int:
        """The row from which on the run is known to be one; `len(frame)` when it is not."""
        if self.seen:
            return 0
        first = _first_of_policy(frame)
        self.seen = first < len(frame)
        return first


def _first_of_policy(frame: Frame) -> int:
    """The first row of `frame` that tells of a policy, worked out once a frame; `len(frame)` where none does."""
    global _policy_memo
    if _policy_memo[0] is not frame:
        told = (_told(frame, key) for key in frame.columns if key.signal.startswith(("reward.", "policy.")))
        _policy_memo = (frame, min((int(rows[0]) for rows in told if len(rows)), default=len(frame)))
    return _policy_memo[1]


_policy_memo: tuple[Frame | None, int] = (None, 0)


_VERDICT = {Severity.INFO: Verdict.PASS, Severity.WARN: Verdict.WARN, Severity.FAIL: Verdict.FAIL}


def worst_episode(episodes: Sequence[Episode]) -> Episode | None:
    """The episode to speak of: the most severe, then the first that is open, else the latest."""
    return max(
        episodes,
        key=lambda e: (e.severity, not e.recovered, e.first_step if e.recovered else -e.first_step),
        default=None,
    )


def verdict_of(episodes: Sequence[Episode], recovery_softens: bool = True) -> Verdict:
    """The verdict of a check from its episodes. What was a FAIL and has recovered since is a WARN, if it may be."""
    verdict = Verdict.PASS
    for episode in episodes:
        own = _VERDICT[episode.severity]
        if own is Verdict.FAIL and episode.recovered and recovery_softens:
            own = Verdict.WARN
        if own is Verdict.FAIL or (own is Verdict.WARN and verdict is Verdict.PASS):
            verdict = own
    return verdict


def result(
    detector: Detector,
    verdict: Verdict,
    what: str,
    why: str = "",
    advice: str = "",
    used: tuple[str, ...] = (),
    advisory: bool = False,
) -> CheckResult:
    """A `CheckResult` of `detector`, with the thresholds named in `used`."""
    return CheckResult(
        id=detector.id,
        name=detector.name,
        verdict=verdict,
        what=what,
        why=why,
        next=advice,
        thresholds=detector.limits.used(*used) if used else {},
        advisory=advisory,
    )


def seen(view: CheckView, *signals: str) -> int:
    """How many values the signals have had, all labels together."""
    return sum(count for key, count in view.seen.items() if key.signal in signals)


_MOMENTS = ("lr_jump",)


def tell(episodes: Sequence[Episode], at_least: Severity = Severity.WARN) -> str:
    """One line about several episodes: the worst in words, the others as a number."""
    loud = [episode for episode in episodes if episode.severity >= at_least]
    first = worst_episode(loud)
    if first is None:
        return ""
    more = sum(stands_for(episode) for episode in loud) - stands_for(first)
    rest = f"; {more:,} more like it" if more else ""
    if first.kind in _MOMENTS:  # nothing to recover from: it was done at that step
        return f"{first.what} ({rest.removeprefix('; ')})" if rest else first.what
    if "ended" in first.detail:
        return first.what if not rest else f"{first.what.removesuffix(')')}{rest})"
    state = "not recovered"
    if first.recovered:
        state = f"recovered after step {first.last_step:.15g}" if first.last_step != first.first_step else "recovered"
    return f"{first.what or first.kind.replace('_', ' ')} ({state}{rest})"
