"""Looking for the next line that tells of an error in a log that was not read yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trainmon.monitor.file_search import FileSearch, Places, places_of
from trainmon.monitor.log_search import Read
from trainmon.tails.error_lines import ERROR_TOKENS, tells_error

_LONGEST_LINE: Final = 20_000  # of those that are looked at; what is longer is no message


class ErrorSearch(FileSearch):
    """As its base; in place of words it looks for what a reader would note as an error."""

    def __init__(self, read: Read, path: str, line_no: int, by: int, places: Places) -> None:
        super().__init__(read, path, line_no, "an error", by, places)
        self._kept = _LONGEST_LINE

    def _fits(self, text: str) -> bool:
        return tells_error(text)

    def _places_in(self, text: bytes) -> Iterator[int]:
        """One place a line. Lines that are cut by the block's edges may tell of anything: who reads them decides."""
        found: set[int] = set()
        for token in ERROR_TOKENS:
            if self._stopped.is_set():
                return
            found.update(text.rfind(b"\n", 0, place) + 1 for place in places_of(token, text))
        for start in sorted(found):
            end = text.find(b"\n", start)
            if start == 0 or end < 0 or tells_error(text[start:end].decode("utf-8", "replace")):
                yield start
