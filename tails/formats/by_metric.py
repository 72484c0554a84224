"""Logs in long form whose metrics stand one after the other: all values of one, then all of the next."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final


class Stretches:
    """Whether each metric of a log in long form stands in one stretch, one after the other, as exports write them.

    There what was measured on held-out data stands behind the whole training, at steps of its own. In a log that is
    written step by step it may have a counter of its own, and the training goes on soon behind it. `end`: the offset of
    the first record that does not stand so, infinite while all do.

    >>> stretches, names = Stretches(), ["loss", "loss", "val", "val", "loss"]
    >>> [stretches.take(name, at, lambda: names[at + 1 :], final=True) for at, name in enumerate(names)]
    [True, True, False, False, False]
    >>> stretches = Stretches()
    >>> stretches.take("loss", 1, lambda: (), final=False), stretches.take("val", 2, lambda: (), final=False)
    (True, None)
    """

    LOOK_AHEAD: Final = 16

    def __init__(self) -> None:
        self.end = math.inf
        self._known: set[str] = set()
        self._newest = ""
        self._seen = -1

    def take(self, name: str, offset: int, behind: Callable[[], Sequence[str]], *, final: bool) -> bool | None:
        """Whether the record of `name` stands so; None when what is behind it must be seen first.

        `offset`: where it stands. `behind` gives the names of the `LOOK_AHEAD` records that follow, fewer when there
        are no more, or, unless `final`, no more yet. Records may be shown again, in order.
        """
        if offset <= self._seen or offset >= self.end or name == self._newest:
            self._seen = max(self._seen, offset)
            return offset < self.end
        if self._known:
            names = behind()[: self.LOOK_AHEAD]
            if name in self._known or not self._known.isdisjoint(names):
                self.end = offset
                return False
            if not final and len(names) < self.LOOK_AHEAD:
                return None
        self._known.add(name)
        self._newest, self._seen = name, offset
        return True


def stand_by_metric(names: Sequence[str]) -> bool:
    """Whether records of these names, which are all there are, stand metric by metric.

    >>> stand_by_metric(["loss", "loss", "val"]), stand_by_metric(["loss", "val", "loss"])
    (True, False)
    """
    stretches = sum(before != name for before, name in pairwise(names)) + 1
    return stretches == len(set(names))
