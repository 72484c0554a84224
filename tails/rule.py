"""One rule of the words by which a log tells of an event."""

from __future__ import annotations

import re

from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import NoteKind


@dataclass(frozen=True, slots=True)
class Rule:
    """`tokens`: in lower case; a line that holds none of them is not tried. A line in which `unless` is found too is
    none that `pattern` is about."""

    kind: NoteKind
    tokens: tuple[str, ...]
    pattern: re.Pattern[str]
    teardown: bool = False
    unless: re.Pattern[str] | None = None


def up_to(word: str, most: int) -> str:
    """An expression for at most `most` characters behind a `word` up to what must follow, without another `word`: a
    line that repeats it is searched once, not once for each.

    >>> re.search("Xid" + up_to("Xid", 20) + r"\\d", "Xid of Xid error 79").group()
    'Xid error 7'
    """
    return rf"(?:(?!{word}).){{0,{most}}}?"


def rule(
    kind: NoteKind, tokens: str, pattern: str, *, teardown: bool = False, unless: str = "", as_written: bool = False
) -> Rule:
    """A rule of tokens with ``|`` between. `as_written`: capital and small letters differ."""
    veto = lazy(unless, re.IGNORECASE) if unless else None
    return Rule(kind, tuple(tokens.split("|")), lazy(pattern, 0 if as_written else re.IGNORECASE), teardown, veto)
