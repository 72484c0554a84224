"""To whom the words of a text line are of interest: a dialect, the facts, the notes, the table of other languages."""

from __future__ import annotations

import re

from trainmon.tails import facts, notes
from trainmon.tails.formats import foreign
from trainmon.tails.formats.dialects import DIALECTS
from trainmon.tails.formats.folded import may_dangle
from trainmon.tails.token_groups import TokenGroups

_GROUPS = TokenGroups([*(dialect.tokens for dialect in DIALECTS), facts.TOKENS, notes.TOKENS, foreign.TOKENS])
DIALECT_BITS = tuple(1 << place for place in range(len(DIALECTS)))
METRICS = (1 << len(DIALECTS)) - 1  # any dialect
FACTS, NOTES, FOREIGN = (1 << len(DIALECTS) + place for place in range(3))

_TELLING = (b"F", b"{")  # F0123 10:00:00: fatal; and most of what begins like a dictionary tells something
_FAILED = re.compile(rb"(?<![A-Za-z0-9_.])[EF](?:[\s:|\[\]-]|\d{3,8} \d\d:)")  # the same behind a rank or a time
_LONGEST_PREFIX = 512

interest_of = _GROUPS.of  # bits of those to whom a line, in lower case, is of interest


def is_silent(raw: bytes) -> bool:
    """Whether a whole line, while nothing is open, says nothing to anyone; it may be so where this is False.

    >>> is_silent(b"2026-01-01 10:00:00 [INFO] reading shard 5"), is_silent(b"step 5 loss 2.5"), is_silent(b"at lr")
    (True, False, False)
    """
    if not raw.isascii() or b"\x1b" in raw or b"\0" in raw or raw[:1] in _TELLING:
        return False
    if (b"F" in raw or b"E" in raw) and _FAILED.search(raw, 0, _LONGEST_PREFIX) is not None:
        return False
    low = raw.lower()
    return not may_dangle(low) and not _GROUPS.of(low)
