"""Counts told in thousands, millions or billions: ``tokens_per_sec_k``, ``ktok/s``, ``tokens (B)``."""

from __future__ import annotations

from typing import Final

from trainmon.tails.lazy_pattern import lazy

_FACTORS: Final = {
    **dict.fromkeys(("k", "kilo", "thousand", "thousands"), 1e3),
    **dict.fromkeys(("m", "mega", "million", "millions", "mn"), 1e6),
    **dict.fromkeys(("b", "g", "giga", "billion", "billions", "bn"), 1e9),
    **dict.fromkeys(("trillion", "trillions"), 1e12),
}
_COUNTED: Final = "tokens?|toks?|tps|tgs|wps|samples?|seqs?|sequences?|examples?"
_LAST = lazy(rf"(?P<rest>.*\S) (?:in )?(?P<word>{'|'.join(_FACTORS)})")
_BEFORE = lazy(
    rf"(?P<head>(?:.*[ /])?)(?P<word>k|kilo|m|mega|g|giga|million|thousand|billion) ?(?P<rest>(?:{_COUNTED})\b.*)"
)
_RATE: Final = "(?:/(?:s|sec|second))?(?:/(?:gpu|device))?"
_UNIT = lazy(rf"(?P<word>{'|'.join(_FACTORS)})[ _]?(?:(?:{_COUNTED}){_RATE}|{_RATE})")
COUNTS: Final = frozenset(("tokens", "tokens/s", "samples", "samples/s"))  # the units of which there are so many


def told_in(text: str) -> tuple[str, float] | None:
    """A normalised key without the word of magnitude that it ends in or has before what it counts, and the factor.

    >>> told_in("tokens per sec k"), told_in("perf/ktok/s"), told_in("tokens seen")
    (('tokens per sec', 1000.0), ('perf/tok/s', 1000.0), None)
    """
    if match := _LAST.fullmatch(text):
        return match["rest"], _FACTORS[match["word"]]
    if match := _BEFORE.fullmatch(text):
        return match["head"] + match["rest"], _FACTORS[match["word"]]
    return None


def of_unit(unit: str) -> float:
    """What a unit in brackets multiplies a count by.

    >>> of_unit("m"), of_unit("ktok/s"), of_unit("tok/s"), of_unit("ms")
    (1000000.0, 1000.0, 1.0, 1.0)
    """
    match = _UNIT.fullmatch(unit)
    return _FACTORS[match["word"]] if match else 1.0
