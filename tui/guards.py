"""Where Textual would end the screens over a key: a guarded palette, and a keyboard of any encoding."""

from __future__ import annotations

import codecs
from functools import partial
from typing import Any

from textual.command import CommandList, CommandPalette
from textual.css.query import NoMatches
from textual.drivers import linux_driver


class Palette(CommandPalette):
    """The command palette; keys that move in a list that is still empty, or gone already, do nothing."""

    def _action_command_list(self, action: str) -> None:
        lists = self.query(CommandList)
        if lists and lists.first().option_count:
            super()._action_command_list(action)


def is_late_palette(error: BaseException) -> bool:
    """Whether a search of the palette went on after the palette was closed, and found it gone."""
    return isinstance(error, NoMatches) and "CommandPalette" in str(error)


def accept_any_keyboard() -> None:
    """Bytes that are not UTF-8 (a Latin-1 terminal, a pasted binary) become U+FFFD instead of an exception.

    Textual's input thread makes its decoder by this name in its own module and offers no other way in.
    """

    def tolerant(name: str) -> Any:
        return partial(codecs.getincrementaldecoder(name), errors="replace")

    linux_driver.getincrementaldecoder = tolerant  # type: ignore[assignment,attr-defined]
