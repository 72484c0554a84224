"""The notes of a run, kept in bounded room: of each kind the first and the last ones, and how many there were."""

from __future__ import annotations

from collections import deque
from typing import Final

from trainmon.tails.record import Note, NoteKind

_KEPT_FIRST: Final = 50
_KEPT_LAST: Final = 450


class NoteBook:
    """First 50 and last 450 notes of each kind.

    >>> book = NoteBook()
    >>> for line in range(1, 1001):
    ...     book.add(Note("log", line, 0, NoteKind.XID, "Xid 79"))
    >>> len(book.notes()), book.counts[NoteKind.XID], book.notes()[50].line_no
    (500, 1000, 551)
    """

    def __init__(self) -> None:
        self.counts: dict[NoteKind, int] = {}
        self._first: dict[NoteKind, list[tuple[int, Note]]] = {}
        self._last: dict[NoteKind, deque[tuple[int, Note]]] = {}
        self._added = 0

    def add(self, note: Note) -> None:
        """Takes one note in."""
        self._added += 1
        self.counts[note.kind] = self.counts.get(note.kind, 0) + 1
        first = self._first.setdefault(note.kind, [])
        if len(first) < _KEPT_FIRST:
            first.append((self._added, note))
        else:
            self._last.setdefault(note.kind, deque(maxlen=_KEPT_LAST)).append((self._added, note))

    def notes(self) -> tuple[Note, ...]:
        """The notes that were kept, in the order in which they came."""
        kept = [numbered for part in self._first.values() for numbered in part]
        kept += [numbered for part in self._last.values() for numbered in part]
        return tuple(note for _, note in sorted(kept, key=lambda numbered: numbered[0]))
