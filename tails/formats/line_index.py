"""Where the lines of a stretch of bytes begin and end, in bulk."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trainmon.tails.newlines import newline_places
from trainmon.tails.record import IntArray

_NEWLINE, _RETURN, _OPEN, _CLOSE = 10, 13, 0x7B, 0x7D
_BOM = b"\xef\xbb\xbf"


class Lines:
    r"""The lines of `data` that are not empty. A ``\r`` that no ``\n`` follows ends one too: a progress bar's frame.

    `starts`, `ends`: places in `data`, the line end left out; `offsets`: the same as `starts`, in the file;
    `numbers`: 1-based line numbers, in which frames do not count; `simple`: whether the line runs from ``{`` to ``}``;
    `newlines`: how many there are.

    >>> lines = Lines(b'{"a":1}\r\n\nx\n', 100, 7)
    >>> lines.offsets.tolist(), lines.numbers.tolist(), lines.simple.tolist(), lines.text(1)
    ([100, 110], [7, 9], [True, False], b'x')
    """

    def __init__(self, data: bytes, offset: int, line_no: int) -> None:
        self.data = data
        self._view = memoryview(data)
        raw = np.frombuffer(data, np.uint8)
        ends = newline_places(data)
        self.newlines = len(ends)
        frames = _frame_ends(raw) if b"\r" in data else ends[:0]
        if len(frames):
            ends = np.union1d(ends, frames)
        if data and not data.endswith((b"\n", b"\r")):
            ends = np.append(ends, len(data))
        starts = np.concatenate(([0], ends[:-1] + 1)).astype(np.int64) if len(ends) else np.zeros(0, np.int64)
        numbers = np.arange(line_no, line_no + len(ends), dtype=np.int64) - np.searchsorted(frames, starts)
        if offset == 0 and data.startswith(_BOM):
            starts[0] = len(_BOM)
        ends = ends - ((ends > starts) & (raw[ends - 1] == _RETURN)) if len(ends) else ends
        filled = ends > starts
        if not filled.all():
            starts, ends, numbers = starts[filled], ends[filled], numbers[filled]
        self.starts, self.ends, self.numbers = starts, ends, numbers
        self.offsets: IntArray = starts + offset
        self.simple = (raw[starts] == _OPEN) & (raw[ends - 1] == _CLOSE) if len(starts) else np.zeros(0, np.bool_)
        self._hard = np.flatnonzero(~self.simple)

    def __len__(self) -> int:
        return len(self.starts)

    def text(self, index: int) -> bytes:
        """One line without its end."""
        return self.data[self.starts[index] : self.ends[index]]

    def span(self, start: int, stop: int) -> memoryview:
        """The lines from `start` up to but without `stop`, with what lies between them."""
        return self._view[self.starts[start] : self.ends[stop - 1]]

    def piece_end(self, start: int, size: int) -> int:
        """The end of a piece of simple lines of at most `size` bytes, at least one line."""
        stop = int(self.ends.searchsorted(self.starts[start] + size, side="right"))
        place = int(self._hard.searchsorted(start))
        if place < len(self._hard):
            stop = min(stop, int(self._hard[place]))
        return max(stop, start + 1)


def _frame_ends(raw: NDArray[np.uint8]) -> IntArray:
    r"""Where a ``\r`` ends a line by itself."""
    returns = np.flatnonzero(raw == _RETURN)
    inside = returns[: np.searchsorted(returns, len(raw) - 1)]
    return np.concatenate([inside[raw[inside + 1] != _NEWLINE], returns[len(inside) :]])
