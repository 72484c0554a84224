"""Where Textual would end the screens over a key: a guarded palette, and a keyboard of any encoding."""

from __future__ import annotations

import codecs
from functools import partial
from typing import Any

from textual.command import CommandList, CommandPalette
from textual.css.query import NoMatches
from textual.drivers import linux_driver
from textual.drivers._writer_thread import WriterThread
from textual.geometry import Size
from textual.screen import Screen


def size_by_now(screen: Screen[Any]) -> Size:
    """The size that `screen` is laid out at, whatever older one it is told of.

    Textual's screens are told by each layout of the size that it gave them. Two changes that wait in one queue (a
    window dragged on a busy machine) then called each other for ever: no key was answered, no signal heard.
    """
    return screen.app.size


class Palette(CommandPalette):
    """The command palette; keys that move in a list that is still empty, or gone already, do nothing."""

    def _action_command_list(self, action: str) -> None:
        lists = self.query(CommandList)
        if lists and lists.first().option_count:
            super()._action_command_list(action)

    def _screen_resized(self, size: Size) -> None:  # noqa: ARG002 - Textual's signature
        super()._screen_resized(size_by_now(self))


def is_late(error: BaseException, leaving: bool) -> bool:
    """Whether `error` is that a part was not found any more: of a palette that was closed while it searched, or, when
    `leaving`, of screens that a signal ended before they stood."""
    return isinstance(error, NoMatches) and (leaving or "CommandPalette" in str(error))


def accept_any_keyboard() -> None:
    """Bytes that are not UTF-8 (a Latin-1 terminal, a pasted binary) become U+FFFD instead of an exception.

    Textual's input thread makes its decoder by this name in its own module and offers no other way in.
    """

    def tolerant(name: str) -> Any:
        return partial(codecs.getincrementaldecoder(name), errors="replace")

    linux_driver.getincrementaldecoder = tolerant  # type: ignore[assignment,attr-defined]


class _Outliving(WriterThread):
    """Writes to the terminal, and to nowhere once that is gone.

    Textual's own ends there; thirty frames later who draws waits for ever, and no signal is heard any more.
    """

    def run(self) -> None:
        """Works until stopped."""
        try:
            super().run()
        except OSError:
            while self._queue.get() is not None:
                pass


def outlive_the_terminal() -> None:
    """A terminal that goes away (a dropped connection) holds nothing up."""
    linux_driver.WriterThread = _Outliving  # type: ignore[attr-defined]
