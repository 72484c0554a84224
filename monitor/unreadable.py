"""Where a log could not be read: stretch by stretch, each told once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainmon.tails.record import NoteKind

if TYPE_CHECKING:
    from trainmon.monitor.snapshot import RunSnapshot

_SHOWN = 6


def places(run: RunSnapshot, path: str) -> list[int]:
    """The first line of each unreadable stretch of the file `path`; byte offsets of a binary file."""
    notes = [note for note in run.notes if note.kind is NoteKind.UNREADABLE and note.source == path]
    return [note.line_no or note.offset for note in notes]


def told(run: RunSnapshot, path: str, *, has_lines: bool) -> str:
    """In words: ``unreadable: 3 stretches, from lines 40, 100 and 200``; '' when all could be read."""
    where = places(run, path)
    if not where:
        return ""
    shown = [f"{place:,}" for place in where[:_SHOWN]]
    last = f"{len(where) - _SHOWN} more" if len(where) > _SHOWN else shown.pop()
    listed = f"{', '.join(shown)} and {last}" if shown else last
    unit = ("line" if has_lines else "byte") + ("s" if len(where) > 1 else "")
    return f"unreadable: {len(where)} stretch{'es' if len(where) > 1 else ''}, from {unit} {listed}"
