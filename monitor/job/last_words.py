"""What a log's own last words say of how the job ended: the first thing that broke, or who stopped it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from trainmon.monitor.snapshot import State
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.record import Note, NoteKind

# What broke the job, and what somebody or something else did to it.
BROKEN: Final[dict[NoteKind, State]] = {
    NoteKind.CUDA_OOM: State.OOM,
    NoteKind.HOST_OOM: State.OOM,
    NoteKind.NCCL_TIMEOUT: State.CRASHED,
    NoteKind.INIT_TIMEOUT: State.CRASHED,
    NoteKind.XID: State.CRASHED,
    NoteKind.SEGFAULT: State.CRASHED,
    NoteKind.TRACEBACK: State.CRASHED,
    NoteKind.ERROR: State.CRASHED,
    NoteKind.NODE_FAIL: State.NODE_FAIL,
    NoteKind.SIGKILL: State.CRASHED,
}
STOPPED: Final[dict[NoteKind, State]] = {
    NoteKind.TIME_LIMIT: State.TIME_LIMIT,
    NoteKind.PREEMPTED: State.PREEMPTED,
    NoteKind.CANCELLED: State.CANCELLED,
    NoteKind.KEYBOARD_INTERRUPT: State.CANCELLED,
    NoteKind.SIGTERM: State.CANCELLED,
    NoteKind.SIGHUP: State.CANCELLED,
}
# Where several lines tell of it, the more telling one names the cause (a time limit is also a cancel and a SIGTERM).
_TELLING: Final = (
    NoteKind.NODE_FAIL,
    NoteKind.CUDA_OOM,
    NoteKind.HOST_OOM,
    NoteKind.XID,
    NoteKind.NCCL_TIMEOUT,
    NoteKind.INIT_TIMEOUT,
    NoteKind.SEGFAULT,
    NoteKind.TRACEBACK,
    NoteKind.ERROR,
    NoteKind.SIGKILL,
    NoteKind.TIME_LIMIT,
    NoteKind.PREEMPTED,
    NoteKind.CANCELLED,
    NoteKind.KEYBOARD_INTERRUPT,
    NoteKind.SIGTERM,
    NoteKind.SIGHUP,
)
# What a process says that others stopped answering to: no cause, where another one's own failure stands before.
_LEFT_ALONE = lazy(
    r"^(?!.*\bCUDA error: )(?:.*(?:\bDist(?:Backend|Network|Store)?Error\b|[NRH]CCL|[Cc]ollective|[Ww]atchdog"
    r"|\b[Gg]loo\b|\bConnection(?:Reset|Refused|Aborted)Error\b|\bBrokenPipeError\b|\bBroken pipe\b"
    r"|\bConnection (?:reset|closed) by|TCPStore|ProcessGroup|[Hh]eartbeat|SignalException))"
)
# Errors of a program that has only just started: they cannot come from the job that was stopped before them.
_START_UP: Final = ("SyntaxError", "IndentationError", "ModuleNotFoundError", "ImportError")
_GOT_SIGNAL = lazy(r"SignalException: .*got signal: (\d+)")
_WORKER_FAILED = lazy(
    r"ChildFailedError|^Error executing job with overrides|\(exitcode: -?[1-9]|exits with return code = -?[1-9]"
    r"|exited with (?:exit )?code -?[1-9]|failed with exit status -?[1-9]"
)
_ABORT = lazy(r"\bAborted\b|\bSIGABRT\b")
_SIGNALS = {1: NoteKind.SIGHUP, 2: NoteKind.KEYBOARD_INTERRUPT, 9: NoteKind.SIGKILL, 15: NoteKind.SIGTERM}


def in_order(notes: Iterable[Note]) -> list[Note]:
    """The notes of each source by line, signals told as such."""
    return sorted((_understood(note) for note in notes), key=lambda note: (note.source, note.line_no))


def _understood(note: Note) -> Note:
    """A traceback whose exception is a signal tells of that signal, not of a fault in the program."""
    if note.kind not in (NoteKind.TRACEBACK, NoteKind.ERROR):
        return note
    if note.text.startswith("KeyboardInterrupt"):
        return replace(note, kind=NoteKind.KEYBOARD_INTERRUPT)
    found = _GOT_SIGNAL.search(note.text)
    kind = _SIGNALS.get(int(found.group(1))) if found else None
    return replace(note, kind=kind) if kind is not None else note


def cause_of(notes: Sequence[Note]) -> Note | None:
    """The note that ended the job: what broke first wins, unless somebody had stopped the job before it.

    Launches after a failure open new chapters; the first chapter that something broke in tells the cause, since
    what a relaunch dies of at once is often a consequence.
    """
    stopped: Note | None = None
    for chapter in _chapters(notes):
        ended = _chapter_cause(chapter)
        if ended is not None and ended.kind in BROKEN:
            return ended
        stopped = ended or stopped
    return stopped


def launchers_word(notes: Sequence[Note]) -> Note | None:
    """A launcher's report that a worker failed: no cause, but where nothing else tells, the job is over."""
    found: Note | None = None
    for note in notes:
        if note.kind is NoteKind.LAUNCH:
            found = None
        elif found is None and note.teardown and _WORKER_FAILED.search(note.text):
            found = note
    return found


def _chapters(notes: Sequence[Note]) -> list[list[Note]]:
    """The notes that may end a job, cut where a new launch follows a failure."""
    chapters: list[list[Note]] = [[]]
    for note in notes:
        if note.kind is NoteKind.LAUNCH:
            if chapters[-1]:
                chapters.append([])
        elif not note.teardown and (note.kind in BROKEN or note.kind in STOPPED):
            if chapters[-1] and note.text.startswith(_START_UP):
                chapters.append([])
            chapters[-1].append(note)
    return chapters


def _chapter_cause(fatal: Sequence[Note]) -> Note | None:
    if not fatal:
        return None
    broken = [note for note in fatal if note.kind in BROKEN]
    stopped = [note for note in fatal if note.kind in STOPPED]
    if broken and not (stopped and _before(stopped[0], broken[0])):
        return min(_not_left_waiting(broken[:20]), key=_weight)
    return min(stopped or broken, key=lambda note: (_TELLING.index(note.kind), not _is_specific(note)))


def _not_left_waiting(broken: list[Note]) -> list[Note]:
    """The failures without the time-outs of ranks that waited for one that had failed before.

    A program's own error is no consequence of a time-out elsewhere: that of another file is taken to be the earlier,
    unless clocks say otherwise.
    """
    own = [note for note in broken if note.kind is not NoteKind.NCCL_TIMEOUT and not _LEFT_ALONE.search(note.text)]
    return [
        note
        for note in broken
        if note.kind is not NoteKind.NCCL_TIMEOUT or not any(_may_be_earlier(one, note) for one in own)
    ]


def _may_be_earlier(first: Note, second: Note) -> bool:
    if first.source == second.source:
        return first.line_no < second.line_no
    if first.time is None or second.time is None or first.time_kind is not second.time_kind:
        return True
    return first.time <= second.time


def _weight(note: Note) -> int:
    """How little a failure tells of the cause. A program that aborts was made to by what it had said before."""
    is_abort = note.kind is NoteKind.SEGFAULT and _ABORT.search(note.text) is not None
    return _TELLING.index(NoteKind.SIGKILL if is_abort else note.kind)


def _is_specific(note: Note) -> bool:
    return "*** JOB" in note.text or "SignalException" in note.text


def _before(first: Note, second: Note) -> bool:
    return first.source == second.source and first.line_no < second.line_no


def outlived(notes: Sequence[Note]) -> str | None:
    """The last error the run went on after."""
    errors = [note for note in notes if note.kind in BROKEN and not note.teardown]
    return errors[-1].text if errors else None
