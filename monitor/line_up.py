"""Records without a step beside a file that logs the same losses by step: which record is of which step."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import numpy as np

from trainmon.monitor.frame import SignalKey
from trainmon.monitor.rows import Rows, stack
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray

_LOSS: Final = SignalKey("loss.train")
# Both files print the same number, one of them perhaps with fewer digits.
_EQUAL: Final = 5e-4
_LOOK_AHEAD: Final = 64  # records by step, of which one may be that of the next record without
_FEWEST: Final = 10
_SHARE: Final = 0.9
_MOST: Final = 100_000
_KEPT: Final = 4096  # losses of each file, for records that come later


@dataclass(slots=True)
class Lined:
    """Rows of one attempt with the steps they are of."""

    attempt: int
    rows: Rows


class LineUp:
    """Gives the records of one file the steps at which another logged the same losses, in the same order.

    Nothing is given before 10 records are found and as long as one in ten is not: then the files do not log the same.
    Of more than 100,000 records that wait the oldest are let go.

    >>> losses, rows = np.arange(20.0) + 1, lambda steps, values: Rows(
    ...     steps, steps, steps.astype(int), {_LOSS: values}, primary=np.ones(len(steps), bool))
    >>> line_up, steps = LineUp(), np.arange(0.0, 200.0, 10.0)
    >>> line_up.hear(0, steps, losses)
    >>> [lined] = line_up.take(rows(np.arange(1.0, 21.0), losses))
    >>> lined.rows.steps.tolist() == steps.tolist(), line_up.left
    (True, 0)
    """

    def __init__(self) -> None:
        self.left = 0
        self._told: list[tuple[int, float, float]] = []  # attempt, step, loss
        self._at = 0  # the first of them that a record may still be of
        self._rows: list[Rows] = []
        self._found = 0
        self._is_over = False

    @property
    def waiting(self) -> int:
        """How many records may yet be found."""
        return sum(map(len, self._rows))

    def hear(self, attempt: int, steps: FloatArray, losses: FloatArray) -> None:
        """Takes in what the other file logged, in the order of its steps."""
        if self._is_over:
            return
        known = np.isfinite(losses)
        told = zip(steps[known].tolist(), losses[known].tolist(), strict=True)
        self._told += [(attempt, step, loss) for step, loss in told]
        if len(self._told) > _MOST:
            gone = len(self._told) - _MOST
            del self._told[:gone]
            self._at = max(self._at - gone, 0)

    def take(self, rows: Rows | None) -> list[Lined]:
        """The rows so far, and `rows`, whose steps are known; the others wait or are counted in `left`."""
        if rows is not None and self._is_over:
            self.left += len(rows)
            return []
        if rows is not None:
            self._rows.append(rows)
        waiting = self.waiting
        if not waiting or len(self._told) - self._at < (1 if self._found else _FEWEST):
            return []
        whole = stack(self._rows)
        places, count = self._places(whole)
        found = places >= 0
        known = int(found.sum())
        if known + self._found < _FEWEST and count < 2 * _FEWEST:
            return []
        if known + self._found < _SHARE * (count + self._found + self.left):
            self._is_over = True
            self._rows, self._told = [], []
            self.left += waiting
            return []
        self._found += known
        self.left += count - known
        self._rows = [whole.take(np.arange(count, len(whole)))] if count < len(whole) else []
        if known:
            self._at = int(places[found].max()) + 1
        return self._lined(whole.take(np.flatnonzero(found)), places[found])

    def go_on(self) -> Lined | None:
        """The rows behind all that the other file told, their losses too, when no more comes: a job died before that
        file was written again. They go on by the steps from record to record, where these were even to the end."""
        if (stride := self._stride) is None:
            return None
        attempt, step, _ = self._told[self._at - 1]
        rows, self._rows = stack(self._rows), []
        count = np.cumsum(rows.logged(_LOSS)) if _LOSS in rows.columns else np.zeros(len(rows), np.int64)
        return Lined(attempt, replace(rows, steps=step + stride * count.astype(np.float64)))

    @property
    def can_go_on(self) -> bool:
        """Whether `go_on` would give rows."""
        return self._stride is not None

    @property
    def _stride(self) -> float | None:
        """The step from record to record before the rows that wait; None where they wait for something else."""
        if not self._rows or self._found < _FEWEST or not _FEWEST <= self._at == len(self._told):
            return None
        before = self._told[-_FEWEST:]
        strides = np.diff([step for _, step, _ in before])
        is_even = strides[0] > 0 and bool((strides == strides[0]).all()) and before[0][0] == before[-1][0]
        return float(strides[0]) if is_even else None

    def _places(self, rows: Rows) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], int]:
        """Where in what was told the first rows are, -1 for nowhere; and how many rows were looked for."""
        losses = rows.columns.get(_LOSS)
        places = []
        at = self._at
        for loss in losses.tolist() if losses is not None else [np.nan] * len(rows):
            if at >= len(self._told):
                break
            found = -1
            for place in range(at, min(at + _LOOK_AHEAD, len(self._told))):
                other = self._told[place][2]
                if abs(other - loss) <= _EQUAL * abs(other):
                    found, at = place, place + 1
                    break
            places.append(found)
        return np.array(places, np.int64), len(places)

    def _lined(self, rows: Rows, places: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[Lined]:
        columns = {key: column for key, column in rows.columns.items() if key != _LOSS}
        marks = {key: column for key, column in rows.marks.items() if key != _LOSS}
        told = [self._told[place] for place in places.tolist()]
        whole = replace(rows, steps=np.array([step for _, step, _ in told]), columns=columns, marks=marks)
        attempts = np.array([attempt for attempt, _, _ in told])
        return [Lined(int(attempt), whole.take(np.flatnonzero(attempts == attempt))) for attempt in np.unique(attempts)]


class LineUps:
    """The `LineUp` of each file whose records have no step."""

    def __init__(self) -> None:
        self._heard: dict[str, deque[tuple[int, FloatArray, FloatArray]]] = {}
        self._sizes: dict[str, int] = {}
        self._of: dict[str, LineUp] = {}
        self._beside: dict[str, str] = {}

    @property
    def left(self) -> dict[str, int]:
        """How many records of each file have no step yet, or get none."""
        return {path: line_up.left + line_up.waiting for path, line_up in self._of.items()}

    def hear(self, path: str, attempt: int, steps: FloatArray, losses: FloatArray) -> None:
        """Takes in what the file `path` logged by step, in the order of its steps."""
        for other, line_up in self._of.items():
            if self._beside[other] == path:
                line_up.hear(attempt, steps, losses)
        heard = self._heard.setdefault(path, deque())
        heard.append((attempt, steps, losses))
        self._sizes[path] = self._sizes.get(path, 0) + len(steps)
        while len(heard) > 1 and self._sizes[path] > _KEPT:
            self._sizes[path] -= len(heard.popleft()[1])

    @property
    def can_go_on(self) -> bool:
        """Whether `go_on` would give rows of any file."""
        return any(line_up.can_go_on for line_up in self._of.values())

    def go_on(self, path: str) -> Lined | None:
        """See `LineUp.go_on`."""
        line_up = self._of.get(path)
        return None if line_up is None else line_up.go_on()

    def take(self, path: str, beside: str, rows: Rows | None) -> Iterable[Lined]:
        """See `LineUp.take`: of the file `path`, by the losses of `beside`, whichever that was at first."""
        line_up = self._of.get(path)
        if line_up is None:
            line_up = self._of[path] = LineUp()
            self._beside[path] = beside
            for told in self._heard.get(beside, ()):
                line_up.hear(*told)
        return line_up.take(rows)
