"""Expressions that are compiled when they are first used: a short command needs few of those that there are."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

_METHODS = ("search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn")


class LazyPattern:
    """Stands for a compiled expression until it is one; from then on it hands out that one's methods.

    >>> word = lazy(r"\\w+")
    >>> word.findall("one two"), word.pattern
    (['one', 'two'], '\\\\w+')
    """

    def __init__(self, pattern: Any, flags: int) -> None:
        self._given = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        compiled = re.compile(*self._given)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def lazy(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """As ``re.compile``; a fault in the expression shows at its first use."""
    return cast("re.Pattern[AnyStr]", LazyPattern(pattern, flags))
