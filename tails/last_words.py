"""What a program said of an error in its own words, for the launcher's "exit code 1" behind it that names no cause."""

from __future__ import annotations

import re
from typing import Final

from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.prefix import Prefix
from trainmon.tails.record import Note, NoteKind

TOKENS: Final = ("error: ", "error ", "error]", "fatal: ", "critical ", "critical: ")
_SAID = lazy(r"(?:[\w./-]{1,60}: )?(?:fatal )?(?:error|fatal|critical)(?:: | - )\S", re.IGNORECASE)
_LEAST = 12  # characters of a message that says something
_NEAR = 60  # lines from the error to the end
_MAX_TEXT = 500


class LastWords:
    """Keeps the first of the errors that were said since training last went on.

    >>> words = LastWords("log")
    >>> words.hear("error: no such shard", Prefix(), 7, 90, 5.0)
    >>> words.hear("error: giving up after that", Prefix(), 8, 111, 5.0)
    >>> words.before(9, 5.0).text, words.before(9, 6.0) is None, words.before(90, 5.0) is None
    ('error: no such shard', True, True)
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self._first: Note | None = None
        self._newest = 0  # the line of the newest

    def hear(self, text: str, prefix: Prefix, line_no: int, offset: int, step: float | None) -> None:
        """Takes a line that is no note otherwise."""
        words = text[:_MAX_TEXT].strip()
        if len(words) < _LEAST or not (prefix.is_error or _SAID.match(words) is not None):
            return
        if self._first is None or self._first.step != step or line_no - self._newest > _NEAR:
            self._first = Note(self.source, line_no, offset, NoteKind.ERROR, words, step, prefix.time, prefix.time_kind)
        self._newest = line_no

    def before(self, line_no: int, step: float | None) -> Note | None:
        """What was said shortly before line `line_no`, at which something else ended the program at `step`."""
        first = self._first
        is_near = first is not None and first.step == step and line_no - self._newest <= _NEAR
        return first if is_near else None

    def forget(self) -> None:
        """A cause was named otherwise."""
        self._first = None
