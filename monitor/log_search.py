"""Looking for words in a whole log file, from a line on or back, with a few thousand lines of it at hand at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from trainmon.tails.status import LogLine

PIECE_LINES: Final = 10_000  # on either side of the line that is asked for
_FIRST_LINES: Final = 100  # what one looks for is often near

Read = Callable[[int, int], list[LogLine]]


class LogSearch:
    """A search that goes on in a thread of its own. `read` gives the lines around a line number, and may block.

    `at`: the line that was reached, `counted`: how many lines were passed to get to it; `found`: the line with all the
    words in it, None while there is none.

    >>> lines = [LogLine("a", number, f"step {number}") for number in range(1, 1001)]
    >>> search = LogSearch(lambda line, n: lines[max(0, line - 1 - n) : line + n], "a", 10, "STEP 777", 1)
    >>> search.run(), search.found, search.is_done
    (None, 777, True)
    """

    def __init__(self, read: Read, path: str, line_no: int, words: str, by: int) -> None:
        self.path = path
        self.words = words
        self.at = line_no
        self.counted = 0
        self.found: int | None = None
        self.problem = ""
        self._read = read
        self._by = 1 if by > 0 else -1
        self._wanted = words.lower()
        self._stopped = threading.Event()
        self._done = threading.Event()

    @property
    def is_done(self) -> bool:
        """Whether it has come to an end: found, or no line is left."""
        return self._done.is_set()

    def start(self) -> LogSearch:
        """Begins."""
        threading.Thread(target=self.run, name="trainmon-search", daemon=True).start()
        return self

    def cancel(self) -> None:
        """Ends it after the piece that is being read."""
        self._stopped.set()

    def run(self) -> None:
        """Looks, piece by piece, until a line is found, the file ends, or it is cancelled."""
        try:
            self._search()
        except Exception as error:  # the top of this worker: who waits is told
            self.problem = f"{type(error).__name__}: {error}"
        finally:
            self._done.set()

    def _search(self) -> None:
        size = _FIRST_LINES
        while not self._stopped.is_set() and self._piece(size):
            size = min(2 * size, PIECE_LINES)

    def _piece(self, size: int) -> bool:
        """One piece; False when there is nothing more to look at."""
        by = self._by
        centre = max(1, self.at + by * (size + 1))
        lines = [line for line in self._read(centre, size) if (line.line_no - self.at) * by > 0]
        lines.sort(key=lambda line: line.line_no * by)
        for line in lines:
            if self._fits(line.text):
                self.found = line.line_no
                return False
        if not lines:
            return False
        self.at = lines[-1].line_no
        return self.at > 1 if by < 0 else True

    def _fits(self, text: str) -> bool:
        """Whether a line as it is shown is one of those looked for."""
        return self._wanted in text.lower()
