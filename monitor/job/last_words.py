"""What a log's own last words say of how the job ended: the first thing that broke, or who stopped it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from trainmon.monitor.job.launchers import is_report
from trainmon.monitor.snapshot import State
from trainmon.tails.death_rules import EXCEPTION
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
# The end of one process told by another that needed it: wherever they stand, the other's own failure came first.
_FOLLOWS = lazy(
    r"remote process exited|[Cc]onnection (?:closed|reset) by (?:remote )?peer|communicator was aborted"
    r"|[Bb]roken ?[Pp]ipe|another task died|error from (?:the )?coordination service|detected missing heartbeats"
    r"|JAX distributed service detected|DataLoader worker .{0,80}(?:exited unexpectedly|killed by signal)"
    r"|WorkerCrashedError|RayActorError|ActorDiedError|\bBarrier timed out"
)
# Errors of a program that has only just started: they cannot come from the job that was stopped before them.
_START_UP: Final = ("SyntaxError", "IndentationError", "ModuleNotFoundError", "ImportError")
_GOT_SIGNAL = lazy(r"SignalException: .*got signal: (\d+)")
_HABIT: Final = 2
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


def _chapters(notes: Sequence[Note]) -> list[list[Note]]:
    """The notes that may end a job, cut where a new launch follows a failure; in each file by itself, since what one
    rank's file begins with came no later than what another's ends with."""
    chapters: list[list[Note]] = [[]]
    source, at, is_begun = "", 0, False
    for note in notes:
        if note.source != source:
            source, at, is_begun = note.source, 0, False
        if note.kind is not NoteKind.LAUNCH and (note.teardown or not (note.kind in BROKEN or note.kind in STOPPED)):
            continue
        if is_begun and (note.kind is NoteKind.LAUNCH or note.text.startswith(_START_UP)):
            at, is_begun = at + 1, False
        if note.kind is not NoteKind.LAUNCH:
            is_begun = True
            chapters += [[] for _ in range(at + 1 - len(chapters))]
            chapters[at].append(note)
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
    """The failures without those of ranks that waited for one that had failed before, or needed it.

    A program's own error is no consequence of a time-out elsewhere: that of another file is taken to be the earlier,
    unless clocks say otherwise.
    """
    left = [note for note in broken if note.kind is NoteKind.NCCL_TIMEOUT or _LEFT_ALONE.search(note.text)]
    own = [note for note in broken if note not in left and not _FOLLOWS.search(note.text) and not _is_late(note)]
    if not own:
        return [note for note in broken if not _FOLLOWS.search(note.text)] or broken
    return [
        note
        for note in broken
        if not _FOLLOWS.search(note.text) and not (note in left and any(_may_be_earlier(one, note) for one in own))
    ]


def is_left_alone(note: Note) -> bool:
    """Whether a process tells that others stopped answering to it, not that it failed by itself."""
    is_waiting = note.kind is NoteKind.NCCL_TIMEOUT or _LEFT_ALONE.search(note.text) is not None
    return is_waiting or _FOLLOWS.search(note.text) is not None


def _may_be_earlier(first: Note, second: Note) -> bool:
    if first.source == second.source:
        return first.line_no < second.line_no
    if first.time is None or second.time is None or first.time_kind is not second.time_kind:
        return True
    return first.time <= second.time


def _weight(note: Note) -> int:
    """How little a failure tells of the cause. A program that aborts was made to by what it had said before, and what
    it said tells more than its launcher's report."""
    return _TELLING.index(NoteKind.SIGKILL if _is_late(note) else note.kind)


def _is_late(note: Note) -> bool:
    """Whether a failure is told as the end of what was told before."""
    if note.kind is NoteKind.SEGFAULT:
        return _ABORT.search(note.text) is not None or is_report(note.text)
    return note.kind is NoteKind.ERROR and is_report(note.text)


def _is_specific(note: Note) -> bool:
    return "*** JOB" in note.text or "SignalException" in note.text


def _before(first: Note, second: Note) -> bool:
    return first.source == second.source and first.line_no < second.line_no


def outlived(notes: Sequence[Note], last_record_line: Mapping[str, int]) -> str | None:
    """The last error the run went on after; none that was only named, which the program had caught."""
    errors = [
        note
        for note in notes
        if note.kind in BROKEN
        and not note.teardown
        and (named(note) is None or note.line_no >= last_record_line.get(note.source, 0))
    ]
    return errors[-1].text if errors else None


def named(note: Note) -> str | None:
    """The class of an exception that a line named without a traceback before it; None for any other note.

    >>> named(Note("log", 1, 0, NoteKind.ERROR, "lib.BadRowError: row 7"))
    'lib.BadRowError'
    """
    match = EXCEPTION.match(note.text) if note.kind is NoteKind.ERROR else None
    return match["name"] if match is not None else None


def habits(notes: Sequence[Note], last_record_line: Mapping[str, int]) -> frozenset[str]:
    """Exceptions that the run has named so often while it trained on that one more is no end."""
    lived = Counter(
        name
        for note in notes
        if note.line_no < last_record_line.get(note.source, 0) and (name := named(note)) is not None
    )
    return frozenset(name for name, times in lived.items() if times >= _HABIT)
