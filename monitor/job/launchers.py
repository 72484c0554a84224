"""What launchers and schedulers report of a worker that died: no cause, but where nothing else tells, the end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field
from typing import Final

from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import Note, NoteKind

_FAILED: Final = lazy(
    r"ChildFailedError|^Error executing job with overrides|\(exitcode: -?[1-9]|exits with return code = -?[1-9]"
    r"|exited with (?:exit )?code -?[1-9]|failed with exit status -?[1-9]|Exited with exit code [1-9]|^MPI_ABORT was"
    r"|exited with non-zero|BAD TERMINATION|but 1 process returned"
    r"|(?:finished|terminated|completed) with exit code [1-9]|^exit status [1-9]|^make(?:\[\d+\])?: \*\*\* "
    r"|Check failure stack trace",
    re.IGNORECASE,
)
_CODE: Final = lazy(
    r"(?:\(exitcode: |return code = |\bcode |exit status )(?:-(?P<signal>[1-9]\d?)|1(?P<shell>2[89]|[3-5]\d))\b",
    re.IGNORECASE,
)
# A report that names the signal: the worker's own last words tell more, if there are any.
_REPORT: Final = lazy(
    r"\bSignal \d{1,2} \(SIG|exited on signal \d|^srun: error: |died with <Signals|\bkilled by signal\b|EXIT STRING: "
    r"|[Ee]xit code \d"
)
_ERROR_FILE: Final = lazy(r"\berror_file: (/\S{1,400})")
_SIGNALS: Final = {
    1: "SIGHUP", 2: "SIGINT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV",
    15: "SIGTERM",
}  # fmt: skip
_SENT: Final = frozenset((1, 2, 15))  # by somebody who wants it to end


@dataclass(frozen=True, slots=True)
class Report:
    """A launcher's word. `signal`: by which the worker died, as ``SIGSEGV``, "" where it does not tell; `error_file`:
    where the worker's own report lies, "" without one."""

    note: Note
    signal: str = ""
    error_file: str = field(default="")

    @property
    def words(self) -> str:
        """What of it can be taken for the error; "" when it only says that there was one."""
        return f"{self.note.text} ({self.signal})" if self.signal else ""


def is_report(text: str) -> bool:
    """Whether `text` is somebody's word about another process that died of a signal.

    >>> is_report("traceback : Signal 11 (SIGSEGV) received by PID 7"), is_report("Fatal Python error: Bus error")
    (True, False)
    """
    return _REPORT.search(text) is not None


def signal_in(text: str) -> int:
    """The number of the signal that an exit code stands for; 0 without one.

    >>> signal_in("failed (exitcode: -11) local_rank: 3"), signal_in("exited with code 137"), signal_in("exit code 1")
    (11, 9, 0)
    """
    match = _CODE.search(text)
    if match is None:
        return 0
    number = int(match["signal"]) if match["signal"] else int(match["shell"]) + 100 - 128
    return number if number in _SIGNALS else 0


def report_of(notes: Sequence[Note]) -> Report | None:
    """The first report since the last launch that a worker failed; one that was told to end did not."""
    found: Note | None = None
    error_file = ""
    for note in notes:
        if note.kind is NoteKind.LAUNCH:
            found, error_file = None, ""
        elif not note.teardown:
            continue
        elif match := _ERROR_FILE.search(note.text):
            error_file = error_file or match[1]
        elif found is None and _FAILED.search(note.text) and signal_in(note.text) not in _SENT:
            found = note
    if found is None:
        return None
    return Report(found, _SIGNALS.get(signal_in(found.text), ""), error_file)
