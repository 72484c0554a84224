"""Lines of a log that a screen asks for, read by the readers of the session; searches remember where lines begin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from trainmon.monitor.error_search import ErrorSearch
from trainmon.monitor.file_search import FileSearch, Places
from trainmon.monitor.log_search import LogSearch
from trainmon.monitor.watched import WatchedRun
from trainmon.tails.intake import Intake
from trainmon.tails.reader import Lines
from trainmon.tails.status import LogLine

# A reader that takes longer for one piece of a search hangs on its mount.
_PATIENCE_S: Final = 60.0


class LogLines:
    """What is read of logs on demand, by `intake`; from any thread."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._places: dict[str, Places] = {}  # of lines that searches came by

    def around(self, path: str, line_no: int, count: int) -> Lines:
        """Up to `count` lines on either side of the line; they come later."""
        places = self._places.get(path)
        known = (1, 0) if places is None else places.before(max(line_no - count, 1))
        return self._intake.request_lines(path, line_no, count, known)

    def search(self, path: str, line_no: int, words: str | None, by: int) -> LogSearch:
        """Looks for `words` (None: an error) in the whole file, after (by = 1) or before (-1) the line, in a thread."""

        def read(line: int, count: int) -> list[LogLine]:
            return self.around(path, line, count).result(timeout=_PATIENCE_S)

        places = self._places.setdefault(path, Places())
        if words is None:
            return ErrorSearch(read, path, line_no, by, places).start()
        return FileSearch(read, path, line_no, words, by, places).start()


def context_of(lines: Lines, path: str, line_no: int) -> Callable[[WatchedRun], None]:
    """What puts the lines, once they have come, beside the run whose log they are of."""
    found = tuple(lines.result()) if not lines.cancelled() and lines.exception() is None else ()

    def apply(watched: WatchedRun) -> None:
        watched.log_context, watched.log_context_for = found, (path, line_no)

    return apply
