"""The command palette: every key of the screen by what it does, and every run by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from trainmon.tails.text import printable
from trainmon.tui.screens.base import MonitorScreen

if TYPE_CHECKING:
    from trainmon.tui.app import TrainmonApp


class KeyCommands(Provider):
    """What the keys do."""

    def _commands(self) -> list[tuple[str, str, Callable[[], object]]]:
        screen = self.screen
        if not isinstance(screen, MonitorScreen):
            return []
        skip = ("palette", "down", "up", "page.down", "page.up", "top", "bottom", "left", "right")
        return [
            (key.help, f"key {key.shown}" if key.keys else "", partial(screen.run_action, key.action))
            for key in screen.monitor.key_map.of(screen.KIND)
            if key.id not in skip
        ]

    async def discover(self) -> Hits:
        """All of them."""
        for text, shown, action in self._commands():
            yield DiscoveryHit(text, action, text=text, help=shown)

    async def search(self, query: str) -> Hits:
        """Those that match."""
        matcher = self.matcher(query)
        for text, shown, action in self._commands():
            if (score := matcher.match(text)) > 0:
                yield Hit(score, matcher.highlight(text), action, text=text, help=shown)


class RunCommands(Provider):
    """Opens a run by name."""

    async def search(self, query: str) -> Hits:
        """Those that match."""
        app = cast("TrainmonApp", self.app)
        matcher = self.matcher(query)
        for row in app.rows:
            text = f"open {printable(row.run.name, 100)}"
            if (score := matcher.match(text)) > 0:
                # highlight() returns markup-free content; the name itself is never read as markup
                yield Hit(score, matcher.highlight(text), partial(app.open_run, row.id), text=text)
