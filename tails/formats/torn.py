"""Unreadable lines told once a stretch, however long it is: where it begins, at most so many times a file."""

from __future__ import annotations

MOST_STRETCHES = 100


class Torn:
    """Which unreadable lines begin a stretch that is to be noted.

    >>> torn = Torn()
    >>> [line for line in (4, 5, 6, 9, 10, 40) if torn.begins(line)]
    [4, 9, 40]
    """

    __slots__ = ("_last", "_told")

    def __init__(self) -> None:
        self._last = -1
        self._told = 0

    def begins(self, line_no: int) -> bool:
        """Takes in the number of an unreadable line; they come in order."""
        is_new = line_no > self._last + 1
        self._last = line_no
        if is_new:
            self._told += 1
        return is_new and self._told <= MOST_STRETCHES
