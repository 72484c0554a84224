"""How often runs that nobody looks at closely are read and told anew: at once while that is cheap, else more seldom."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

# All that the process does, screens included; half of what a login node's other users would notice.
SHARE: Final = 0.02
LEAST_S: Final = 0.05
MOST_S: Final = 9.0
# Where much is written to many runs no interval keeps to that share, and old numbers are no use: a round waits for so
# many records at the most, or for a second, as long as a heavier share is kept.
RECORDS: Final = 600
FRESH_S: Final = 1.0
HEAVY_SHARE: Final = 0.4
_BEGIN_S: Final = 1.0
_LOOK_S: Final = 2.0
_FAR: Final = 2.0
_MOST_GROWTH: Final = 8.0
_MOST_FALL: Final = 0.5


class Pace:
    """Keeps the processor time of the process near `SHARE` of a core by making `interval_s` longer or shorter.

    Where `RECORDS` come sooner than that allows, it is `HEAVY_SHARE`. `used_s`: processor seconds so far. Tell it the
    time about once a second.

    >>> used = iter([0.0, 0.16, 0.32, 0.32])
    >>> pace = Pace(lambda: next(used))
    >>> [pace.note(now, is_busy=False) for now in (0.0, 2.0, 6.0, 14.0)]
    [1.0, 4.0, 8.0, 4.0]
    """

    def __init__(self, used_s: Callable[[], float] = time.process_time) -> None:
        self.interval_s = _BEGIN_S
        self._used_s = used_s
        self._seen: tuple[float, float] | None = None
        self._counted = (0.0, 0)
        self._rate = 0.0  # records a second, lately

    def note(self, now_s: float, *, is_busy: bool, records: int = 0) -> float:
        """The interval from `now_s` on. `is_busy`: histories are being read, which has its own measure; `records`: that
        were read so far."""
        if is_busy or self._seen is None:
            # What they took since the last look does not count either.
            self._seen = None if is_busy else (now_s, self._used_s())
            self._counted = (now_s, records)
            return self.interval_s
        self._count(now_s, records)
        passed_s = now_s - self._seen[0]
        used_s = self._used_s()
        # What is measured holds a whole round: without one all seems cheap, and the next would come sooner for it.
        least_s = max(_LOOK_S, self.interval_s)
        if passed_s >= least_s or used_s - self._seen[1] >= _FAR * SHARE * least_s:  # that is too much already
            share = (used_s - self._seen[1]) / passed_s
            over = share / SHARE
            self._seen = (now_s, used_s)
            # Far too much is mended at once, little by little: what a round costs does not grow with the interval.
            change = min(over, _MOST_GROWTH) if over >= _FAR else max(over**0.5, _MOST_FALL)
            most_s = self._most_s(share)
            self.interval_s = min(max(self.interval_s * change, LEAST_S), most_s)
        return self.interval_s

    def _count(self, now_s: float, records: int) -> None:
        since_s = now_s - self._counted[0]
        if since_s >= max(_LOOK_S, 2 * self.interval_s):  # they come by the round
            self._rate = (records - self._counted[1]) / since_s
            self._counted = (now_s, records)

    def _most_s(self, share: float) -> float:
        """How long a round may wait, of a process that uses `share` of a core now."""
        fresh_s = max(RECORDS / self._rate, FRESH_S) if self._rate > 0 else MOST_S
        return min(max(fresh_s, self.interval_s * share / HEAVY_SHARE), MOST_S)
