"""The raw lines of one run."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widget import Widget

from trainmon.monitor.log_search import LogSearch
from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot
from trainmon.tails.status import LogLine
from trainmon.tui import keys
from trainmon.tui.later import call_after
from trainmon.tui.log_view import LogView
from trainmon.tui.row import RunId
from trainmon.tui.screens.of_run import RunBound
from trainmon.tui.span import Span
from trainmon.tui.widgets.filter_bar import FilterBar
from trainmon.tui.widgets.key_bar import KeyBar
from trainmon.tui.widgets.panes import LogPane

_TURNS = {"up": -1, "page_up": -1, "down": 1, "page_down": 1}
_SEARCH_LOOK_S = 0.1


class LogScreen(RunBound):
    """Follows the newest line until one scrolls up; `G` follows again."""

    KIND = keys.LOG
    BINDINGS = keys.bindings_of(keys.LOG)

    def __init__(self, run_id: RunId, place: tuple[str, int] | None = None) -> None:
        super().__init__(run_id)
        self.view = LogView()
        self.wanted = place
        self.search: LogSearch | None = None
        self.sought = ""
        self._before: LogLine | None = None

    def content(self) -> ComposeResult:
        """The lines."""
        yield LogPane(id="log")
        yield FilterBar("show only lines with these words", id="filter")

    @property
    def pane(self) -> LogPane:
        """The lines."""
        return self.query_one("#log", LogPane)

    def panes(self) -> list[Widget]:
        """The lines."""
        return [self.pane]

    def draw_run(self, run: RunSnapshot, fleet: FleetSnapshot) -> None:
        """See `RunBound`."""
        del fleet
        if self.wanted is not None:
            wanted, self.wanted = self.wanted, None
            self.view.go(run, wanted, self.monitor.source)
        self.view.draw(run, self.pane, self.monitor.source)

    def action_move(self, how: str) -> None:
        """`G` goes to the newest line of all, and follows."""
        run, source = self.run_now(), self.monitor.source
        if how == "bottom" and self.view.place is not None:
            self.view.follow()
            self.show(self.monitor.fleet)
        elif how == "top" and run is not None and not self.view.words and (path := self._path(run)):
            if not self.pane.lines_ or self.pane.lines_[0].line_no > 1:
                self.view.go(run, (path, 1), source, afresh=True)
                self.monitor.poll()
                self.show(self.monitor.fleet)
                return
        elif how in _TURNS and run is not None and self.view.turn(run, self.pane, source, _TURNS[how]):
            self.monitor.poll()
            self.show(self.monitor.fleet)
            return
        self.pane.move(how)

    def _path(self, run: RunSnapshot) -> str:
        """The file of the line at the cursor; while none is here, the run's first."""
        if (line := self.pane.current) is not None:
            return line.path
        return run.files[0].path if run.files else ""

    def action_sideways(self, by: int) -> None:
        """Long lines."""
        self.pane.scroll_sideways(20 * by)

    def action_next_step(self, by: int) -> None:
        """The next line with the words searched for, wherever it is in the file."""
        words, line = self.view.words or self.sought, self.pane.current or self._before
        if not words:
            asks, after, before = (self.shown_key(name) for name in ("filter", "step.next", "step.previous"))
            self.notify(f"{asks} asks for words to search; {after} and {before} then go from one line to the next")
            return
        if line is None:
            self.notify("the lines of this log are being read; then it can be searched")
        if line is None or (self.search is not None and not self.search.is_done):
            return
        self.sought = words
        self._seek(line, words, by)

    def _seek(self, line: LogLine, words: str | None, by: int) -> None:
        """Begins to look for the next line with `words`, or with an error."""
        self.search = self.monitor.source.search_log(line.path, line.line_no, words, by)
        call_after(self, _SEARCH_LOOK_S / 10, self._look)

    def _look(self) -> None:
        """Whether the search has come to an end; until then, how far it is."""
        search, run = self.search, self.run_now()
        if search is None or run is None:
            return
        if not search.is_done:
            text = (
                f" searching, at line {search.at if search.at > 0 else search.counted}; {self.shown_key('back')} stops"
            )
            self.query_one("#keys", KeyBar).show_message([Span(text, "value")])
            call_after(self, _SEARCH_LOOK_S, self._look)
            return
        self.search = None
        self.query_one("#keys", KeyBar).show_message([])
        if search.found is None:
            self.notify(search.problem or f"no further line with {search.words}", markup=False)
            return
        self.view.words = ""
        self.view.go(run, (search.path, search.found), self.monitor.source)
        self.monitor.poll()
        self.show(self.monitor.fleet)

    def action_next_error(self, by: int) -> None:
        """To the next error that the log has, wherever it is; what was not read yet is searched."""
        run, line = self.run_now(), self.pane.current
        if run is not None and run.progress < 1:
            if line is None:
                self.notify("the lines of this log are being read; then it can be searched")
            elif self.search is None or self.search.is_done:
                self._seek(line, None, by)
            return
        place = None if run is None else self.view.next_error(run, self.pane, by)
        if run is None or place is None:
            self.notify("no errors in this log")
            return
        self.view.words = ""
        self.view.go(run, place, self.monitor.source)
        self.monitor.poll()
        self.show(self.monitor.fleet)

    def copied(self) -> str:
        """The line at the cursor."""
        line = self.pane.current
        return line.text if line is not None else ""

    def action_filter(self) -> None:
        """Asks for words."""
        self.query_one(FilterBar).open(self.view.words)

    def filter_typed(self, text: str) -> None:
        """The lines follow the typing."""
        if not self.view.words:  # from here one searches, also when no line at hand has the words
            self._before = self.pane.current
        self.view.words = self.sought = text.strip()
        self.show(self.monitor.fleet)

    def filter_done(self) -> None:
        """Back to the lines."""
        self.set_focus(self.pane, scroll_visible=False)

    def go_back(self) -> None:
        """Takes the filter off, then goes back."""
        bar = self.query_one(FilterBar)
        if self.search is not None:
            self.search.cancel()
        elif bar.is_open or self.view.words:
            self.view.words = ""
            bar.close()
            self.show(self.monitor.fleet)
        else:
            super().go_back()
