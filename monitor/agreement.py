"""Whether the files of one run that log the same quantity agree about it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field
from pathlib import PurePath
from typing import Final

import numpy as np

from trainmon.monitor.rows import BoolArray
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray

# Averages over some steps, one rank's loss and the mean of all differ from each other, but not so much for long.
_DIFFERS: Final = 0.05  # relative
_FEWEST: Final = 10  # common steps
_SOME: Final = 3


@dataclass(slots=True)
class _Pair:
    compared: int = 0
    differing: int = 0
    first: tuple[float, float, float] | None = None  # step, and both values, where they first differ
    is_certain: bool = False  # that they contradict each other
    broken: tuple[int, int] = (0, 0)  # common steps at which only the first's, only the second's value is not finite
    first_broken: tuple[float, float] = (np.nan, np.nan)  # where each of them begins
    steps: FloatArray = field(default_factory=lambda: np.empty(0))  # compared last
    doubts: BoolArray = field(default_factory=lambda: np.zeros(1, np.bool_))  # before those steps, and after each


class Agreement:
    """Holds the values of two files at common steps against each other.

    >>> agreement, steps = Agreement(), np.arange(20.0)
    >>> agreement.hold("a", steps, 3 - steps / 20, "b", steps, 4 - steps / 20)
    >>> bool(agreement.doubts("b", "a", steps).all()), agreement.problems({"a"})[0][:54]
    (True, 'a and b contradict each other: at 20 of 20 common step')
    """

    def __init__(self) -> None:
        self._pairs: dict[tuple[str, str], _Pair] = {}

    def hold(
        self,
        path: str,
        steps: FloatArray,
        values: FloatArray,
        other: str,
        its_steps: FloatArray,
        its_values: FloatArray,
    ) -> None:
        """Compares `values` (n,) of `path` with those of `other`, a pair always in the same order."""
        common, mine, its = np.intersect1d(steps, its_steps, return_indices=True)
        a, b = values[mine], its_values[its]
        known = np.isfinite(a) & np.isfinite(b)
        self._hold_broken(path, other, common, np.isfinite(a), np.isfinite(b))
        if not known.any():
            return
        common, a, b = common[known], a[known], b[known]
        differs = np.abs(a - b) > _DIFFERS * np.maximum(np.abs(a), np.abs(b))
        pair = self._pairs.setdefault((path, other), _Pair())
        compared = pair.compared + np.arange(1, len(common) + 1)
        differing = pair.differing + np.cumsum(differs)
        doubts = 2 * differing > compared
        pair.is_certain |= bool((doubts & (compared >= _FEWEST)).any())
        pair.steps, pair.doubts = common, np.concatenate((pair.doubts[-1:], doubts))
        pair.compared, pair.differing = int(compared[-1]), int(differing[-1])
        if pair.first is None and differs.any():
            at = int(np.argmax(differs))
            pair.first = (float(common[at]), float(a[at]), float(b[at]))

    def _hold_broken(self, path: str, other: str, steps: FloatArray, mine: BoolArray, its: BoolArray) -> None:
        """Counts the steps at which one value is finite and the other is not."""
        lone = its & ~mine, mine & ~its
        if not any(where.any() for where in lone):
            return
        pair = self._pairs.setdefault((path, other), _Pair())
        for at, where in enumerate(lone):
            if where.any() and not pair.broken[at]:
                first = float(steps[where][0])
                pair.first_broken = (first, pair.first_broken[1]) if at == 0 else (pair.first_broken[0], first)
        pair.broken = (pair.broken[0] + int(lone[0].sum()), pair.broken[1] + int(lone[1].sum()))

    def is_the_same(self, path: str, other: str) -> bool:
        """Whether the two files told the same at most of their common steps, of which there are some."""
        pair = self._pairs.get((path, other)) or self._pairs.get((other, path))
        return pair is not None and pair.compared >= _SOME and 2 * pair.differing <= pair.compared

    def doubts(self, path: str, other: str, steps: FloatArray) -> BoolArray:
        """(n,) whether, as far as each of `steps` (none below those compared before the last call of `hold`), the two
        files differ at most of their common steps."""
        pair = self._pairs.get((path, other)) or self._pairs.get((other, path))
        if pair is None:
            return np.zeros(len(steps), np.bool_)
        return pair.doubts[np.searchsorted(pair.steps, steps, "right")]

    def problems(self, judged: Collection[str]) -> tuple[str, ...]:
        """What is to be said, a line for each pair of files. `judged`: those whose values count."""
        told = [
            _words(*_short(*files), pair, pair.first, [path in judged for path in files])
            for files, pair in self._pairs.items()
            if pair.first is not None and pair.is_certain
        ]
        for files, pair in self._pairs.items():
            names = _short(*files)
            for at in (0, 1):
                if pair.broken[at] and files[1 - at] in judged and files[at] not in judged:
                    told.append(_words_of_broken(names[at], names[1 - at], pair.broken[at], pair.first_broken[at]))
        return tuple(told)


def _words(a: str, b: str, pair: _Pair, first: tuple[float, float, float], are_judged: list[bool]) -> str:
    step, mine, its = first
    judged, other = (b, a) if are_judged == [False, True] else (a, b)
    counted = f"{judged} is judged, the loss of {other} is not" if any(are_judged) else "neither is judged"
    return (
        f"{a} and {b} contradict each other: at {pair.differing:,} of {pair.compared:,} common steps their losses"
        f" differ by more than 5% (at step {step:.15g} {mine:.6g} and {its:.6g}): two runs in one directory?"
        f" {counted}; name each to have it judged"
    )


def _words_of_broken(broken: str, judged: str, count: int, first: float) -> str:
    return (
        f"the loss of {broken} is not finite at {count:,} steps, from step {first:.15g} on, where that of {judged} is:"
        f" {judged} is judged, the loss of {broken} is not; name it to have it judged"
    )


def _short(path: str, other: str) -> tuple[str, str]:
    """The files' names, with their directories only where the names are the same."""
    names = PurePath(path).name, PurePath(other).name
    return names if names[0] != names[1] else (path, other)
