"""The prefixes of lines that look alike, without reading each: what changes from line to line is the clock.

A prefix is read once for all lines that differ in the digits of their clocks alone; hours, minutes, seconds and their
fraction are added to it. That the prefix says nothing else is tried out on the first line: with other digits in a
clock `read_prefix` must give what the sum gives, or no sum is ever made.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.prefix import Prefix, read_prefix
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray

_CLOCK = lazy(r"(?<!\d)\d\d:\d\d:\d\d(?:[.,]\d+)?(?!\d)")
_TRIALS = ("00:00:00", "23:59:59", "07:41:16", "12:00:30")
_LONGEST_FRACTION = 15  # digits that are an exact integer in a double
_KNOWN_LIMIT = 4096
_ZERO = ord("0")
_UNITS = np.array([36000.0, 3600.0, 0.0, 600.0, 60.0, 0.0, 10.0, 1.0])
_PLACES = (0, 1, 3, 4, 6, 7)


@dataclass(frozen=True, slots=True)
class _Clock:
    """Where ``12:34:56`` begins, and the digits of its fraction."""

    start: int
    fraction: tuple[int, int]

    @property
    def end(self) -> int:
        """Behind the last digit."""
        return max(self.start + 8, self.fraction[1])


class PrefixTimes:
    """Prefixes of lines of one outline, whose words begin at `at`. `read` gives None where they must be read alone.

    >>> first = "2025-03-02 11:00:58,250 - root - INFO - step: 5"
    >>> times = PrefixTimes.learn(first, read_prefix(first).at)
    >>> lines = [b"2025-03-02 11:00:58,250 - root - INFO - step: 5", b"2025-03-02 11:01:03,500 - root - INFO - step: 6"]
    >>> prefixes, seconds = times.read(lines)
    >>> float(seconds[1]) == read_prefix(lines[1].decode()).time, prefixes[1].at
    (True, 40)
    """

    def __init__(self, at: int, clocks: list[_Clock], chosen: _Clock | None) -> None:
        self.at = at
        self._chosen = chosen
        self._clocks = clocks
        cuts = [0, *(place for clock in clocks for place in (clock.start, clock.end)), at]
        self._kept = [slice(cuts[i], cuts[i + 1]) for i in range(0, len(cuts), 2) if cuts[i] < cuts[i + 1]]
        self._fixed = np.concatenate([np.arange(0), *(np.arange(one.start, one.stop) for one in self._kept)])
        self._known: dict[bytes, Prefix | None] = {}

    @classmethod
    def learn(cls, text: str, at: int) -> PrefixTimes | None:
        """What the prefix of `text` shows, None when its time is not that of one clock in it."""
        if not text.isascii():
            return None
        clocks = [_Clock(match.start(), _fraction(match)) for match in _CLOCK.finditer(text, 0, at)]
        own = read_prefix(text)
        if own.at != at and not _is_name(text[own.at : at]):
            return None
        if own.time is None:
            return None if clocks else cls(at, [], None)
        chosen = next((clock for clock in clocks if _tells(text, clock, own)), None)
        if chosen is None or chosen.fraction[1] - chosen.fraction[0] > _LONGEST_FRACTION:
            return None
        others = [clock for clock in clocks if clock is not chosen]
        if any(read_prefix(_with(text, other, moment)) != own for other in others for moment in _TRIALS):
            return None
        return cls(at, clocks, chosen)

    def read(self, lines: Sequence[bytes]) -> tuple[list[Prefix], FloatArray | None] | None:
        """The prefix of each line, its time that of midnight, and the times."""
        matrix = np.frombuffer(b"".join([line[: self.at] for line in lines]), np.uint8).reshape(len(lines), -1)
        fixed = matrix[:, self._fixed]
        begins = np.concatenate([[True], (fixed[1:] != fixed[:-1]).any(axis=1)])
        starts = np.flatnonzero(begins)
        counts = np.diff(np.append(starts, len(lines))).tolist()
        prefixes: list[Prefix] = []
        for start, count in zip(starts.tolist(), counts, strict=True):
            prefix = self._midnight(lines[start])
            if prefix is None:
                return None
            prefixes += [prefix] * count
        if self._chosen is None:
            return prefixes, None
        seconds = self._seconds(matrix)
        if seconds is None:
            return None
        whole, fraction = seconds
        base = np.repeat([prefixes[start].time for start in starts.tolist()], counts)
        return prefixes, (base + whole) + fraction

    def _seconds(self, matrix: NDArray[np.uint8]) -> tuple[FloatArray, FloatArray | float] | None:
        """Whole seconds of each line's day, and the fraction of a second."""
        assert self._chosen is not None
        start, (first, last) = self._chosen.start, self._chosen.fraction
        digits = matrix[:, start : start + 8].astype(np.float64) - _ZERO
        if (digits[:, 3] > 5).any() or (digits[:, 6] > 5).any() or (10 * digits[:, 0] + digits[:, 1] > 23).any():
            return None
        whole = digits[:, _PLACES] @ _UNITS[list(_PLACES)]
        if first == last:
            return whole, 0.0
        weights = 10.0 ** np.arange(last - first - 1, -1, -1)
        return whole, (matrix[:, first:last].astype(np.float64) - _ZERO) @ weights / 10.0 ** (last - first)

    def _midnight(self, line: bytes) -> Prefix | None:
        """The prefix of `line` with its clocks at midnight."""
        key = b"\n".join([line[one] for one in self._kept])
        if key not in self._known:
            if len(self._known) >= _KNOWN_LIMIT:
                self._known.clear()
            self._known[key] = self._work_out(line.decode("ascii"))
        return self._known[key]

    def _work_out(self, text: str) -> Prefix | None:
        own = read_prefix(text)
        if own.at != self.at and not _is_name(text[own.at : self.at]):
            return None
        if self._chosen is None:
            return replace(own, at=self.at) if own.time is None else None
        if not _tells(text, self._chosen, own):
            return None
        midnight = read_prefix(_with(text, self._chosen, _TRIALS[0]))
        return replace(midnight, at=self.at)


def _is_name(text: str) -> bool:
    """Whether what stands behind a prefix can be no more than a logger's bare name, which tells no rank."""
    return bool(text) and not any(map(str.isdigit, text))


def _fraction(match: re.Match[str]) -> tuple[int, int]:
    end = match.start() + 8
    return (end + 1, match.end()) if match.end() > end else (end, end)


def _with(text: str, clock: _Clock, moment: str) -> str:
    """`text` with another time of the day in the place of `clock`, and no fraction of a second."""
    first, last = clock.fraction
    return text[: clock.start] + moment + text[clock.start + 8 : first] + "0" * (last - first) + text[last:]


def _tells(text: str, clock: _Clock, own: Prefix) -> bool:
    """Whether the prefix's time is that of `clock`, and nothing else of it is."""
    tried = [read_prefix(_with(text, clock, moment)) for moment in _TRIALS]
    if own.time is None or tried[0].time is None:
        return False
    first, last = clock.fraction
    moments = [*_TRIALS, text[clock.start : clock.start + 8]]
    fractions = [0.0] * len(_TRIALS) + [float(f"0.{text[first:last]}") if first < last else 0.0]
    expected = [(tried[0].time + _of_day(moment)) + part for moment, part in zip(moments, fractions, strict=True)]
    plain = [replace(prefix, time=None) for prefix in (*tried, own)]
    return [prefix.time for prefix in (*tried, own)] == expected and all(one == plain[0] for one in plain)


def _of_day(moment: str) -> float:
    hours, minutes, seconds = moment.split(":")
    return int(hours) * 3600.0 + int(minutes) * 60.0 + int(seconds)
