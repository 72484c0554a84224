"""How far the history of the runs is read, in bytes, and how long the rest will take."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from trainmon.monitor.snapshot import RunSnapshot
from trainmon.tui import numbers

_OVER_S: Final = 10.0  # the pace is that of the last seconds: files differ
_LEAST_S: Final = 1.0  # before that nobody can tell


def read_bytes(runs: Iterable[RunSnapshot]) -> tuple[float, float]:
    """(bytes read, bytes there) of the runs whose history is still being read."""
    files = [file for run in runs if run.progress < 1 for file in run.files]
    done = sum(min(file.read_bytes, max(file.size_bytes, file.read_bytes)) for file in files)
    return float(done), float(sum(max(file.size_bytes, file.read_bytes) for file in files))


def read_runs(runs: Sequence[RunSnapshot]) -> tuple[float, str] | None:
    """(share, in words) of the runs that are read, while some of many were not even looked at; else None."""
    waiting = any(run.progress < 1 and not any(file.size_bytes for file in run.files) for run in runs)
    if len(runs) < 2 or not waiting:
        return None
    read = sum(run.progress >= 1 for run in runs)
    return read / len(runs), f"{read} of {len(runs)} runs"


class Pace:
    """Bytes a second of late, from what was read by when.

    >>> pace = Pace()
    >>> pace.note(0.0, 0.0, 100e6), pace.note(2.0, 10e6, 100e6)
    (None, 18.0)
    """

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque()

    def note(self, now_s: float, done: float, size: float) -> float | None:
        """Seconds that the rest will take at this pace; None while that is not known."""
        if self._seen and done < self._seen[-1][1]:  # other runs are being read now
            self._seen.clear()
        self._seen.append((now_s, done))
        while len(self._seen) > 2 and self._seen[0][0] < now_s - _OVER_S:
            self._seen.popleft()
        passed, more = now_s - self._seen[0][0], done - self._seen[0][1]
        return (size - done) * passed / more if passed >= _LEAST_S and more > 0 else None


def words(done: float, size: float, left_s: float | None) -> str:
    """Bytes read of all, and time left.

    >>> words(12e6, 366e6, 41.0)
    '11.4 MiB of 349 MiB, 41s left'
    """
    left = "" if left_s is None else f", {numbers.duration(left_s)} left"
    return f"{numbers.size(done)} of {numbers.size(size)}{left}"
