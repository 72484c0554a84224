"""In what order the engine's thread works: first what somebody looks at, all else a little at a time between."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from time import thread_time
from typing import Final

from trainmon.tails.reader import IntakeItem

# Work that nobody waits for goes on for so long before the next look at what came, where somebody looks at a run.
SLICE_S: Final = 0.01
_MOST_WAITING = 64


class Waiting:
    """What was read and not taken yet. `get`: as `Intake.get`.

    Items of one run keep their order; those of runs that are looked at overtake the others.
    """

    def __init__(self, get: Callable[[float], list[IntakeItem]]) -> None:
        self._get = get
        self._items: list[IntakeItem] = []

    def next(self, timeout_s: float, is_close: Callable[[str], bool]) -> IntakeItem | None:
        """The next one; None when nothing came in `timeout_s`. `is_close`: whether a run, by its name, is looked at."""
        if len(self._items) < _MOST_WAITING:
            self._items += self._get(0.0 if self._items else timeout_s)
        if not self._items:
            return None
        return self._items.pop(next((at for at, item in enumerate(self._items) if is_close(item.run_name)), 0))


class Round:
    """One visit to each of many runs, some at each `go`. `used_s`: processor time so far.

    Rounds take at most `share` of a core: `due_s` is when the next one may begin, on the clock of `begin`.

    >>> slow, visited = iter([0.0, 0.006, 0.006, 0.012, 0.012, 0.018]), []
    >>> one = Round(0.5, lambda: next(slow))
    >>> one.begin("abc", now_s=10.0)
    >>> one.go(visited.append, 0.01), "".join(visited), one.go(visited.append, 0.01), round(one.due_s, 3)
    (False, 'ab', True, 10.036)
    """

    def __init__(self, share: float, used_s: Callable[[], float] = thread_time) -> None:
        self.due_s = 0.0
        self._share = share
        self._used_s = used_s
        self._left: deque[str] = deque()

    def __bool__(self) -> bool:
        """Whether a round is under way."""
        return bool(self._left)

    def begin(self, names: Iterable[str], now_s: float) -> None:
        """Another round."""
        self._left, self.due_s = deque(names), now_s

    def go(self, visit: Callable[[str], None], most_s: float) -> bool:
        """Visits runs for `most_s` of processor time, one at the least; whether the round has come to its end."""
        slice_s = 0.0
        while self._left:
            began_s = self._used_s()
            visit(self._left.popleft())
            slice_s += self._used_s() - began_s
            if slice_s >= most_s:
                break
        self.due_s += slice_s / self._share
        return not self._left
