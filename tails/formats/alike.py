"""The stretches of a chunk of bytes whose lines are all of one known shape, read many at once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trainmon.tails.formats.any_width import AnyWidth
from trainmon.tails.formats.builder import Rows
from trainmon.tails.formats.skeleton import Chunk, Skeleton
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray, IntArray

_WORTH = 1 << 13  # bytes; of fewer, lines are read one by one
_LEARN = 1 << 15  # bytes at the beginning of a log from which its shapes are learned
_MOST = 1 << 19  # bytes that are looked at together: 16 bytes are needed for each
_FEWEST = 24  # lines of a stretch
_SHAPES = 16  # that are tried, the newest first
_MOST_SKELETONS = 1 << 12
_TRIES = 4  # lines from which a shape's skeleton is tried to be learned
_FAIR_SHARE = 0.25  # of the lines in stretches, or the next chunks are not looked at
_LONGEST_PAUSE = 16  # chunks


@dataclass(frozen=True, slots=True)
class Alike:
    """(n,) lines that `known` reads: their `numbers` (n, values), and where in the piece each `begins` and `ends`."""

    known: AnyWidth
    numbers: FloatArray
    begins: IntArray
    ends: IntArray

    def __len__(self) -> int:
        return len(self.begins)

    def part(self, first: int, last: int) -> Alike:
        """Some of the lines; they stay where they are."""
        where = slice(first, last)
        return Alike(self.known, self.numbers[where], self.begins[where], self.ends[where])

    def upto(self, first: int, size: int) -> int:
        """Behind the lines from `first` on that are shorter than `size`, or behind those that are not."""
        is_long = self.ends[first:] - self.begins[first:] >= size
        others = np.flatnonzero(is_long != is_long[0])
        return first + int(others[0]) if len(others) else len(self)

    def of(self, data: bytes) -> bytes:
        """The lines in the piece `data`, the last one's end among them."""
        return data[int(self.begins[0]) : int(self.ends[-1]) + 1]

    def heads(self) -> Heads:
        """Steps and what else the lines say of where they are."""
        told: list[FloatArray | None] = [None] * 4
        for at, slot in zip(self.known.heads, self.known.bulk.slots, strict=True):
            told[slot] = self.numbers[:, at]
        steps, totals, epochs, all_epochs = told
        assert steps is not None
        return Heads(steps, totals, epochs, all_epochs)

    def rows(self, steps: FloatArray, times: FloatArray, offset: int, line_no: int) -> Rows:
        """The records of (n,) `steps`; the piece begins at `offset`, and the first line is number `line_no`."""
        lines = np.arange(line_no, line_no + len(self))
        values = self.numbers[:, self.known.fields]
        return Rows(steps, times, offset + self.begins, lines, self.known.template.keys, values)


class Heads(NamedTuple):
    """(n,) steps, totals, epochs and how many of these in all; None for what the lines do not tell."""

    steps: FloatArray
    totals: FloatArray | None
    epochs: FloatArray | None
    all_epochs: FloatArray | None

    def where(self, keep: NDArray[np.bool_]) -> Heads:
        """Those of the lines that `keep` (n,) selects."""
        return Heads(self.steps[keep], *(None if part is None else part[keep] for part in self[1:]))

    def places(self) -> Iterator[tuple[float, float, float]]:
        """Epoch, total and place in the epoch of each line."""
        return zip(*(self._told(part) for part in (self.epochs, self.totals, self.steps)), strict=True)

    def new_totals(self) -> Iterator[tuple[int, tuple[float, float, float]]]:
        """Each line that tells another total than the line before, and its total, epoch and number of epochs."""
        if self.totals is None:
            return
        is_new = np.arange(len(self.steps)) == 0
        for part in (self.totals, self.all_epochs):
            if part is not None:
                is_new[1:] |= part[1:] != part[:-1]
        for at in np.flatnonzero(is_new).tolist():
            total, epoch, epochs = (math.nan if part is None else float(part[at]) for part in self[1:])
            yield at, (total, epoch, epochs)

    def _told(self, part: FloatArray | None) -> list[float]:
        return [math.nan] * len(self.steps) if part is None else part.tolist()


class Piece(NamedTuple):
    """Bytes `begin` to `end` of a chunk; None: its lines are to be read one by one."""

    begin: int
    end: int
    alike: Alike | None


class AlikeLines:
    """Finds stretches of lines that the shapes of `known` (the newest first) read."""

    def __init__(self, known: list[AnyWidth]) -> None:
        self._known = known
        self._tried: dict[int, tuple[AnyWidth, Skeleton | None, int]] = {}  # by identity; and how often
        self._shapes: list[Skeleton] = []
        self._by_skeleton: dict[bytes, tuple[int, ...]] = {}  # which of the shapes a line may have
        self._pause = self._paused = 0

    def pieces(self, data: bytes) -> Iterator[Piece]:
        """All of `data` in order; what stands before a piece must have been read when the next one is asked for."""
        at = 0
        while at < len(data):
            least = _WORTH if self._known else _WORTH + _LEARN
            end = data.rfind(b"\n", at, at + (_MOST if self._known else _LEARN)) + 1
            if len(data) - at < least or not end or self._is_paused():
                yield Piece(at, len(data), None)
                return
            yield from self._within(data, at, end) if self._known else [Piece(at, end, None)]
            at = end

    def _is_paused(self) -> bool:
        if self._paused < self._pause:
            self._paused += 1
            return True
        return False

    def _within(self, data: bytes, begin: int, end: int) -> Iterator[Piece]:
        at, count = begin, 0
        self._see_shapes()
        chunk = Chunk(data[begin:end])
        for lines, alike in self._stretches(chunk):
            first, last = begin + int(chunk.begins[lines[0]]), begin + int(chunk.ends[lines[-1]]) + 1
            if at < first:
                yield Piece(at, first, None)
            yield Piece(first, last, alike)
            at, count = last, count + len(lines)
        if at < end:
            yield Piece(at, end, None)
        is_worth = count >= _FAIR_SHARE * len(chunk)
        self._pause, self._paused = 0 if is_worth else min(2 * self._pause + 1, _LONGEST_PAUSE), 0

    def _stretches(self, chunk: Chunk) -> list[tuple[IntArray, Alike]]:
        """(lines, what they say) in order, each of at least `_FEWEST` lines."""
        found: list[tuple[IntArray, Alike]] = []
        for shapes, left in self._by_shapes(chunk):
            for shape in shapes:
                own, numbers = self._shapes[shape].read(chunk, left)
                found += _unbroken(chunk, own, self._shapes[shape].known, numbers)
                left = np.setdiff1d(left, own, assume_unique=True)
                if len(left) < _FEWEST:
                    break
        return sorted(found, key=lambda one: int(one[0][0]))

    def _by_shapes(self, chunk: Chunk) -> Iterator[tuple[tuple[int, ...], IntArray]]:
        """The shapes that lines may have, and which lines (n,) may have them."""
        told = list(map(self._by_skeleton.get, chunk.skeletons))
        if None in told:
            known = dict(zip(chunk.skeletons, told, strict=True))
            known = {one: self._shapes_of(one) if shapes is None else shapes for one, shapes in known.items()}
            told = list(map(known.get, chunk.skeletons))
        if told.count(told[0]) == len(told):  # the rule, in which there is nothing to sort
            groups = {told[0]: np.arange(len(told))}
        else:
            lines: dict[tuple[int, ...] | None, list[int]] = {}
            for index, shapes in enumerate(told):
                lines.setdefault(shapes, []).append(index)
            groups = {shapes: np.array(places) for shapes, places in lines.items()}
        for shapes, own in groups.items():
            if shapes:
                yield shapes, own

    def _shapes_of(self, skeleton: bytes) -> tuple[int, ...]:
        if len(self._by_skeleton) >= _MOST_SKELETONS:
            self._by_skeleton.clear()
        shapes = tuple(index for index, shape in enumerate(self._shapes) if shape.fits(skeleton))
        self._by_skeleton[skeleton] = shapes
        return shapes

    def _see_shapes(self) -> None:
        """Learns the skeletons of shapes that are new."""
        before = [shape.known for shape in self._shapes]
        shapes = [self._skeleton(known) for known in self._known[:_SHAPES]]
        self._shapes = [shape for shape in shapes if shape is not None]
        if [shape.known for shape in self._shapes] != before:
            self._by_skeleton.clear()

    def _skeleton(self, known: AnyWidth) -> Skeleton | None:
        owner, skeleton, tries = self._tried.get(id(known), (known, None, 0))
        if owner is not known:
            skeleton, tries = None, 0
        if skeleton is None and tries < _TRIES and known.newest:
            if len(self._tried) > 2 * len(self._known):
                self._tried.clear()
            skeleton = Skeleton.learn(known, known.newest)
            self._tried[id(known)] = (known, skeleton, tries + 1)
        return skeleton


def _unbroken(chunk: Chunk, lines: IntArray, known: AnyWidth, numbers: FloatArray) -> Iterator[tuple[IntArray, Alike]]:
    """Stretches of lines that follow each other."""
    is_known = np.isfinite(numbers[:, known.heads]).all(axis=1)  # lines without a step are read by themselves
    if not is_known.all():
        lines, numbers = lines[is_known], numbers[is_known]
    cuts = [0, *(np.flatnonzero(np.diff(lines) != 1) + 1).tolist(), len(lines)]
    for first, last in pairwise(cuts):
        if last - first >= _FEWEST:
            own = lines[first:last]
            begin = chunk.begins[own[0]]
            yield own, Alike(known, numbers[first:last], chunk.begins[own] - begin, chunk.ends[own] - begin)
