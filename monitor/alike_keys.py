"""Keys that differ in nothing but their numbers (``task_41/acc``, ``task_42/acc``): what no pattern finds in one, none
finds in the others.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from trainmon.monitor.alias_table import aliases
from trainmon.tails.lazy_pattern import lazy

_NUMBER = lazy(r"\d+")
_MOST: Final = 1 << 16


class UnknownKeys:
    """The shapes of keys that no pattern of the table matches.

    >>> unknown = UnknownKeys()
    >>> unknown.add("task 41/acc")
    >>> "task 52/acc" in unknown, "task 5/acc" in unknown, "job 41/acc" in unknown
    (True, False, False)
    """

    def __init__(self) -> None:
        self._shapes: set[str] = set()

    def add(self, text: str) -> None:
        """Says that no pattern matches `text`."""
        if len(self._shapes) < _MOST:
            self._shapes.add(shape_of(text))

    def __contains__(self, text: str) -> bool:
        return shape_of(text) in self._shapes


def shape_of(text: str) -> str:
    """`text` with other numbers in the place of those that no pattern asks for; as many digits, since patterns count.

    >>> shape_of("layer 12 of 48") == shape_of("layer 37 of 59"), shape_of("x 12") == shape_of("x 123")
    (True, False)
    """
    return _NUMBER.sub(_any_number, text)


def _any_number(match: re.Match[str]) -> str:
    return match[0] if match[0] in _asked_for() else "\0" * len(match[0])


@cache
def _asked_for() -> frozenset[str]:
    """The numbers that stand in a pattern, and all of one digit."""
    named = {number for _, _, pattern in aliases().patterns for number in re.findall(r"\d+", pattern)}
    return frozenset(named | set("0123456789"))
