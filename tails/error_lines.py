"""Whether a line by itself tells of an error, for those who look at a log that was not read yet."""

from __future__ import annotations

from typing import Final

from trainmon.tails.logpane import MILD
from trainmon.tails.note_rules import RULES
from trainmon.tails.notes import NoteScanner
from trainmon.tails.prefix import read_prefix
from trainmon.tails.token_groups import TokenGroups

_TRACEBACK: Final = "traceback (most recent call last)"


def _shortest(tokens: set[str]) -> tuple[bytes, ...]:
    """Those of `tokens` that hold no other of them: where one of all is, one of these is."""
    return tuple(
        sorted(token.encode() for token in tokens if not any(other != token and other in token for other in tokens))
    )


# In lower case: a line that tells of an error holds one of them. "error" is there for the many tokens that it is in.
ERROR_TOKENS: Final = _shortest(
    {_TRACEBACK, "error", *(token for rule in RULES if rule.kind not in MILD for token in rule.tokens)}
)
_HOLDS: Final = TokenGroups([ERROR_TOKENS])


def tells_error(text: str) -> bool:
    """Whether a reader of the whole log would note an error at this line; the first one of a traceback counts.

    >>> tells_error("[rank3]: RuntimeError: CUDA error: an illegal memory access"), tells_error("loss error 0.5")
    (True, False)
    """
    low = text.lower()
    if _TRACEBACK in low:
        return True
    if not _HOLDS.of(low.encode("utf-8", "replace")):
        return False
    prefix = read_prefix(text)
    notes = NoteScanner("").scan(text[prefix.at :], prefix, 1, 0, None)
    return any(note.kind not in MILD for note in notes)
