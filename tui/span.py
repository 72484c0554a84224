"""A piece of a drawn line, styled by name. Drawing code knows names; only the look knows colours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from trainmon.tails.text import printable


class Span(NamedTuple):
    """`fg` and `bg` are names of `tui.look`; text is safe to show."""

    text: str
    fg: str = "text"
    bg: str = ""


Line = list[Span]


def cells(text: str) -> int:
    """Terminal cells of `text`: what `rich` says, at once where each character takes one."""
    return len(text) if text.isascii() else cell_len(text)


def width_of(line: Iterable[Span]) -> int:
    """Terminal cells."""
    return sum([cells(span.text) for span in line])


def fit(text: str, width: int, ellipsis: str = "…", right: bool = False) -> str:
    """`text`, made safe, in exactly `width` cells.

    >>> fit("abcdef", 4), fit("ab", 4), fit("ab", 4, right=True), fit("日本語", 4)
    ('abc…', 'ab  ', '  ab', '日… ')
    """
    if width <= 0:
        return ""
    text = printable(text)
    size = cells(text)
    if size > width:
        cut = set_cell_size(text, width - 1).rstrip() + ellipsis
        return set_cell_size(cut, width)
    return " " * (width - size) + text if right else text + " " * (width - size)


def fit_middle(text: str, width: int, ellipsis: str = "…") -> str:
    """`text`, made safe, in exactly `width` cells; what is too much goes from the middle: names differ at their ends.

    >>> fit_middle("llama-7b-lr3e4-seed1", 12), fit_middle("abc", 5)
    ('llama-7…eed1', 'abc  ')
    """
    text = printable(text)
    if cell_len(text) <= width or width < 8 or not text.isascii():
        return fit(text, width, ellipsis)
    tail = (width - 1) * 2 // 5
    return text[: width - 1 - tail] + ellipsis + text[-tail:]


def clip(text: str, width: int, ellipsis: str = "…") -> str:
    """`text`, made safe, in at most `width` cells."""
    text = printable(text)
    return text if cells(text) <= width else fit(text, width, ellipsis)


def cut(line: Line, width: int) -> Line:
    """The first `width` cells of `line`.

    >>> cut([Span("abc"), Span("def", "fail")], 4)
    [Span(text='abc', fg='text', bg=''), Span(text='d', fg='fail', bg='')]
    """
    out: Line = []
    for span in line:
        size = cells(span.text)
        if size > width:
            if width > 0:
                out.append(span._replace(text=set_cell_size(span.text, width)))
            break
        out.append(span)
        width -= size
    return out


def pad(line: Line, width: int, bg: str = "") -> Line:
    """`line` in exactly `width` cells."""
    missing = width - width_of(line)
    if missing < 0:
        line = cut(line, width)
        missing = width - width_of(line)
    return [*line, Span(" " * missing, "text", bg)] if missing > 0 else line


def wrap(text: str, width: int) -> list[str]:
    """Words of `text`, made safe, on lines of at most `width` cells; a word that is too long is broken.

    >>> wrap("lower the learning rate", 10)
    ['lower the', 'learning', 'rate']
    """
    width = max(1, width)
    lines, line = [], ""
    for word in printable(text).split():
        joined = f"{line} {word}" if line else word
        if cell_len(joined) <= width:
            line = joined
            continue
        if line:
            lines.append(line)
        while cell_len(word) > width:
            head = set_cell_size(word, width)
            taken = max(1, len(head.rstrip(" ")))
            lines.append(word[:taken])
            word = word[taken:]
        line = word
    return [*lines, line] if line else lines
