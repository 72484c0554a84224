"""Which lines of a run's log a pane shows: the newest, or those around a place that was asked for."""

from __future__ import annotations

from trainmon.monitor.snapshot import RunSnapshot
from trainmon.tails.status import LogLine
from trainmon.tails.text import printable
from trainmon.tui.evidence import ERRORS
from trainmon.tui.source import SnapshotSource
from trainmon.tui.widgets.panes import LogPane

Place = tuple[str, int]


class LogView:
    """Keeps where one wants to be, until the lines of that place have come."""

    def __init__(self) -> None:
        self.place: Place | None = None
        self.words = ""
        self._pending: Place | None = None
        self._is_marked = True
        self._in_tail = True
        self._source: tuple[LogLine, ...] | None = None
        self._kept: tuple[LogLine, ...] = ()
        self._kept_words = ""
        self._asked_last: tuple[str, str] | None = None

    def go(self, run: RunSnapshot, place: Place, source: SnapshotSource, *, afresh: bool = False) -> None:
        """To `place`: in the lines at hand, else by asking for them."""
        self.place = self._pending = place
        self._is_marked = True
        self._in_tail = not afresh and _holds(run.log_tail, place)
        if not self._in_tail:
            source.request_log(run.name, *place)

    def turn(self, run: RunSnapshot, pane: LogPane, source: SnapshotSource, by: int) -> bool:
        """Asks for the lines before (by = -1) or after those at hand, when the cursor stands at their edge; False when
        it does not, or the file ends there."""
        at_edge = pane.cursor == (0 if by < 0 else pane.count - 1)
        line = pane.current
        if not at_edge or line is None or self.words or (by < 0 and line.line_no <= 1):
            return False
        if by > 0 and (self.place is None or _holds(run.log_tail, (line.path, line.line_no))):
            if self.place is not None:  # the newest lines go on from here
                self.place = self._pending = (line.path, line.line_no)
                self._is_marked = False
                self._in_tail = True
            return False
        self.go(run, (line.path, line.line_no), source, afresh=True)
        self._is_marked = False
        return True

    def follow(self) -> None:
        """To the newest lines."""
        self.place = self._pending = self._asked_last = None

    def draw(self, run: RunSnapshot, pane: LogPane, source: SnapshotSource | None = None) -> None:
        """Gives `pane` its lines, and the cursor its place once that is here.

        `source` is asked for the last lines of a log whose history is still being read.
        """
        lines, waiting = self._lines(run, source)
        largest = max(run.files, key=lambda file: file.size_bytes, default=None)
        path = self.place[0] if self.place else lines[-1].path if lines else largest.path if largest else ""
        from_end = bool(lines) and lines[-1].line_no < 0
        title = f"log {short_path(path)}" + ("" if self.place else ", last lines" if from_end else ", newest lines")
        file = next((file for file in run.files if file.path == path), None)
        if file is not None and file.watched_by == "poll":  # else they come as they are written, which goes unsaid
            title += f" (looked for every few seconds{', on ' + file.filesystem if file.filesystem else ''})"
        if self.words:
            title += f", only lines with {self.words}"
        pane.show(self._matching(lines), title, waiting)
        if self._pending is not None and pane.mark(*self._pending, shown=self._is_marked):
            self._pending = None

    def _lines(self, run: RunSnapshot, source: SnapshotSource | None) -> tuple[tuple[LogLine, ...], str]:
        if self.place is None or (self._in_tail and _holds(run.log_tail, self.place)):
            return self._last_lines(run, source) if run.progress < 1 and run.files else (run.log_tail, "")
        path, line_no = self.place
        if run.log_context_for != self.place:
            return (), f"reading {short_path(path)}, line {line_no}"
        if not run.log_context:
            return (), f"line {line_no} of {short_path(path)} cannot be read any more"
        return run.log_context, ""

    def _last_lines(self, run: RunSnapshot, source: SnapshotSource | None) -> tuple[tuple[LogLine, ...], str]:
        """The end of a log before all of it was read: its lines are counted from the end."""
        path = max(run.files, key=lambda file: file.size_bytes).path
        wanted = (path, -1)
        if run.log_context_for == wanted and run.log_context:
            return run.log_context, ""
        if source is not None and self._asked_last != (run.name, path):
            self._asked_last = (run.name, path)
            source.request_log(run.name, *wanted)
        return run.log_tail, f"reading the end of {short_path(path)}"

    def _matching(self, lines: tuple[LogLine, ...]) -> tuple[LogLine, ...]:
        """The same object while neither lines nor words changed."""
        if not self.words:
            return lines
        if lines is not self._source or self.words != self._kept_words:
            wanted = self.words.lower()
            self._source, self._kept_words = lines, self.words
            self._kept = tuple(line for line in lines if wanted in line.text.lower())
        return self._kept

    def next_error(self, run: RunSnapshot, pane: LogPane, by: int) -> Place | None:
        """The next error after (by = 1) or before (-1) the line at the cursor, round and round; None when none."""
        places = sorted(_error_places(run, pane))
        if not places:
            return None
        here = pane.current
        if here is None:
            return places[0] if by > 0 else places[-1]
        at = (here.path, here.line_no)
        beyond = [place for place in places if (place > at if by > 0 else place < at)]
        if by > 0:
            return beyond[0] if beyond else places[0]
        return beyond[-1] if beyond else places[-1]


def short_path(path: str) -> str:
    """The last two parts of a path tell files of one run apart; the rest only takes room."""
    parts = path.split("/")
    return printable("/".join(parts[-2:]), 200)


def _holds(lines: tuple[LogLine, ...], place: Place) -> bool:
    return any(line.line_no == place[1] and line.path == place[0] for line in lines)


def _error_places(run: RunSnapshot, pane: LogPane) -> set[Place]:
    noted = {(note.source, note.line_no) for note in run.notes if note.kind in ERRORS}
    return noted | {(line.path, line.line_no) for line in pane.lines_ if line.kind == "error"}
