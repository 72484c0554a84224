"""Lines that write a value before its key: ``2.31 loss, 0.52 acc, 120 tok/s`` or ``[5/300] 2.31 (loss) 3e-4 (lr)``."""

from __future__ import annotations

import re

from trainmon.tails.formats.numbers import NUMBER
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.quick_dataclass import dataclass

_WORDS = r"(?!at\b|after\b|in\b|of\b)[A-Za-z%][\w/%]*(?:[ _](?!at\b|after\b|in\b)[A-Za-z][\w/%]*){0,3}"
_ITEM = rf"(?:{NUMBER})\s?(?:\((?:{_WORDS})\)|{_WORDS})"
# What may stand before the values: nothing, the step alone (`first`), or a heading that ends in a number or a bracket,
# ``step 5:``, ``[5/300]``.
_LINE = lazy(
    rf"(?P<head>^\s{{0,16}}(?:(?P<first>\d{{1,9}})\s+(?={NUMBER}\s?[A-Za-z]))?|\d\s?[:)|-]+\s+|\]:?\s+)(?P<values>{_ITEM}(?:(?>\s*)(?:[,;|](?>\s*))?{_ITEM}){{1,40}})"
    r"(?>\s*)(?:,?\s?(?:at|after|in|@)\s(?:global[ _])?(?:step|iter|iteration|update|epoch)\s(?P<step>\d+))?\W{0,3}$"
)
_ONE = lazy(rf"(?P<value>{NUMBER})\s?\(?(?P<key>{_WORDS})\)?")
_SEPARATED = re.compile(r"[A-Za-z%)]\s*[,;|]\s*[-+.\d]")
_UNIT_LAST = re.compile(r"(?:^|\s)(?:[mµun]?s|secs?|seconds?|%|[KMGT]i?B|\w+/(?:s|sec|it|step))\W*$")
_LONGEST = 4000


@dataclass(frozen=True, slots=True)
class ValuesFirst:
    """Where the values begin; each with its key and where it stands; and the step behind them, if it stands there."""

    start: int
    values: list[tuple[str, int, int]]
    step: tuple[int, int] | None


def values_first(text: str) -> ValuesFirst | None:
    """The values of such a line; None for a line of keys and values, or where it cannot be told.

    >>> found = values_first("step 5: 2.31 loss 0.52 acc")
    >>> [(key, "step 5: 2.31 loss 0.52 acc"[start:end]) for key, start, end in found.values]
    [('loss', '2.31'), ('acc', '0.52')]
    >>> values_first("10 loss 2.31 time 3 s") is None, values_first("step 5: loss 2.31 acc 0.52") is None
    (True, True)
    """
    match = _LINE.search(text) if len(text) <= _LONGEST else None
    if match is None:
        return None
    values = match["values"]
    is_headed = bool(match["head"].strip())
    if not is_headed and _SEPARATED.search(values) is None and match["step"] is None and _UNIT_LAST.search(values):
        return None  # "10 loss 2.31 time 3 s": the first number may be the step, and then the keys come first
    start = match.start("values")
    found = [
        (one["key"].strip(), start + one.start("value"), start + one.end("value")) for one in _ONE.finditer(values)
    ]
    step = next((match.span(name) for name in ("step", "first") if match[name] is not None), None)
    return ValuesFirst(start, found, step)
