"""A screen of one list that a filter bar narrows as one types."""

from __future__ import annotations

from textual.widget import Widget

from trainmon.tui.screens.base import MonitorScreen
from trainmon.tui.widgets.filter_bar import FilterBar


class FilteredScreen(MonitorScreen):
    """Subclasses put a `FilterBar` below the list that is their one pane, and draw only what holds `words`."""

    words = ""

    def action_filter(self) -> None:
        """Asks for words."""
        self.query_one(FilterBar).open(self.words)

    def go_back(self) -> None:
        """Takes the filter off, then goes back."""
        bar = self.query_one(FilterBar)
        if bar.is_open or self.words:
            self._filter("")
            bar.close()
        else:
            super().go_back()

    def filter_typed(self, text: str) -> None:
        """The list follows the typing."""
        self._filter(text.strip())

    def filter_done(self) -> None:
        """Back to the list."""
        pane: Widget = self.panes()[0]
        self.set_focus(pane, scroll_visible=False)

    def _filter(self, words: str) -> None:
        self.words = words
        self.show(self.monitor.fleet)
