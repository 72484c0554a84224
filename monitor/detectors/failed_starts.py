"""Starts of a run that died before their first step: launched, an error, and launched again."""

from __future__ import annotations

import re
from typing import Final

from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.record import Note, NoteKind
from trainmon.tails.text import printable

_K = NoteKind
_DEATHS: Final = frozenset(
    {_K.TRACEBACK, _K.ERROR, _K.CUDA_OOM, _K.HOST_OOM, _K.NCCL_TIMEOUT, _K.INIT_TIMEOUT, _K.XID, _K.SEGFAULT}
    | {_K.KEYBOARD_INTERRUPT, _K.SIGTERM, _K.SIGHUP, _K.SIGKILL, _K.PREEMPTED, _K.CANCELLED, _K.NODE_FAIL}
)
_CAUSE_CHARS: Final = 80
_BANNER: Final = lazy(r"(?:running|starting) training", re.IGNORECASE)


class FailedStarts:
    """Counts them from notes and rows in their order.

    An error that training goes on behind was no death; one that nothing follows is how the run ended, and no start.
    """

    def __init__(self) -> None:
        self.count = 0
        self._has_rows = False
        self._cause = self._last_cause = ""
        self._has_banner = False

    def row(self) -> None:
        """Rows of training came."""
        self._has_rows = True
        self._cause = ""

    def note(self, note: Note) -> None:
        """An event of the log."""
        if note.kind is NoteKind.LAUNCH:
            # What begins training comes behind what sets it up, and an error there may have been survived.
            is_banner = _BANNER.search(note.text) is not None
            if is_banner and not self._has_banner:
                self._has_banner, self._cause = True, ""
                return
            if self._cause:
                self.count += 1
                self._last_cause = self._cause
            self._has_rows, self._cause = False, ""
            self._has_banner = is_banner
        elif note.kind in _DEATHS and not self._has_rows and not note.teardown and not self._cause:
            self._cause = printable(note.text, _CAUSE_CHARS) or note.kind.value

    def told(self) -> str:
        """What is put behind the number of attempts; "" where there was none."""
        if not self.count:
            return ""
        starts, its = ("a start", "it") if self.count == 1 else (f"{self.count} starts", "the last")
        return f"; {starts} died before a first step ({its}: {self._last_cause})"
