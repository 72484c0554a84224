"""Cells of one style each, and the styled text that they make: what lies side by side and looks alike is one span."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trainmon.tails.record import IntArray
from trainmon.tui.raster import text_of
from trainmon.tui.span import Line, Span


class Canvas:
    """(rows, cells) `codes` are code points, `numbers` which of `styles` each cell has. Both may be written to.

    >>> canvas = Canvas.blank(1, 6, "-", "faint")
    >>> canvas.write(0, 1, "ab", "key")
    >>> [(span.text, span.fg) for span in canvas.lines([])[0]]
    [('-', 'faint'), ('ab', 'key'), ('---', 'faint')]
    """

    def __init__(self, codes: NDArray[np.uint32], numbers: IntArray, styles: list[str]) -> None:
        self.codes = codes
        self._numbers = numbers
        self._styles = styles
        if len(set(styles)) < len(styles):
            self._numbers = np.array([styles.index(one) for one in styles])[numbers]

    @classmethod
    def blank(cls, rows: int, across: int, glyph: str, style: str) -> Canvas:
        """Every cell the same."""
        return cls(np.full((rows, across), ord(glyph), dtype=np.uint32), np.zeros((rows, across), np.int64), [style])

    def _number(self, style: str) -> int:
        if style not in self._styles:
            self._styles.append(style)
        return self._styles.index(style)

    def put(self, row: int, cells: int | IntArray, glyph: str, style: str) -> None:
        """One character into one or several cells of a row."""
        self.codes[row, cells], self._numbers[row, cells] = ord(glyph), self._number(style)

    def write(self, row: int, start: int, text: str, style: str) -> None:
        """A text of characters that take one cell each, from the cell `start` on."""
        here = slice(start, start + len(text))
        self.codes[row, here], self._numbers[row, here] = [ord(one) for one in text], self._number(style)

    def style_at(self, row: int, cell: int) -> str:
        """That of one cell."""
        return self._styles[int(self._numbers[row, cell])]

    def lines(self, grounds: Sequence[str]) -> list[Line]:
        """All rows. `grounds`: the style behind each cell of a row; empty for none."""
        rows, across = self.codes.shape
        begins = np.ones((rows, across), dtype=np.bool_)
        np.not_equal(self._numbers[:, 1:], self._numbers[:, :-1], out=begins[:, 1:])
        for cell in range(1, len(grounds)):
            if grounds[cell] != grounds[cell - 1]:
                begins[:, cell] = True
        text = text_of(self.codes)
        firsts = begins.ravel().nonzero()[0]
        styles = self._numbers.ravel()[firsts].tolist()
        places = firsts.tolist()
        lines: list[Line] = [[] for _ in range(rows)]
        for first, end, style in zip(places, [*places[1:], len(text)], styles, strict=True):
            row, cell = divmod(first, across)
            lines[row].append(Span(text[first:end], self._styles[style], grounds[cell] if grounds else ""))
        return lines
