"""What Textual does not bear or takes too much time for: keys in an empty palette, any encoding, calm keyboards."""

from __future__ import annotations

import codecs
import contextlib
import os
import select
import selectors
import signal
import threading
from functools import partial
from types import SimpleNamespace
from typing import Any

from textual.command import CommandList, CommandPalette
from textual.css.query import NoMatches
from textual.drivers import linux_driver
from textual.drivers._writer_thread import WriterThread
from textual.geometry import Size
from textual.screen import Screen

_LOOKS_AFTER_A_KEY = 5
_CALM_S = 2.0
_CLOSED_S = 0.1


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


class CalmSelector(selectors.SelectSelector):
    """Waits for keys without a look ten times a second, as Textual's thread does: that alone was a tenth of an idle
    screen's time. After a key it looks as often as before, since an Esc is told from the beginning of another key by
    what follows. `wake` ends the wait that is going on, from any thread. A terminal that was closed is always ready and
    gives nothing: where no signal told of that, this does."""

    _last: CalmSelector | None = None

    def __init__(self) -> None:
        super().__init__()
        self._empty = 0
        self._has_hung_up = False
        self._woken_fd, self._wake_fd = os.pipe()
        self.register(self._woken_fd, selectors.EVENT_READ)
        CalmSelector._last = self

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """See its base; longer than `timeout` where no key came lately."""
        is_calm = timeout is not None and self._empty >= _LOOKS_AFTER_A_KEY
        found = [one for one in super().select(_CALM_S if is_calm else timeout) if one[0].fd != self._woken_fd]
        self._empty = 0 if found else self._empty + 1
        if found and any(_is_closed(one[0].fd) for one in found):
            if not self._has_hung_up:
                self._has_hung_up = True
                os.kill(os.getpid(), signal.SIGHUP)
            select.select([self._woken_fd], [], [], _CLOSED_S)
            return []
        return found

    def close(self) -> None:
        """Gives all descriptors back."""
        super().close()
        if CalmSelector._last is self:
            CalmSelector._last = None
        for fd in (self._woken_fd, self._wake_fd):
            os.close(fd)

    @classmethod
    def wake(cls) -> None:
        """Who waits for keys looks whether it is to end."""
        if (last := cls._last) is not None:
            with contextlib.suppress(OSError):  # it has ended by itself
                os.write(last._wake_fd, b"!")


def _is_closed(fd: int) -> bool:
    """Whether a descriptor's other end is gone for good."""
    look = select.poll()
    look.register(fd, select.POLLIN)
    return any(told & select.POLLHUP for _, told in look.poll(0))


class WakingEvent(threading.Event):
    """The end of the thread that waits for keys, which hears of it at once."""

    def set(self) -> None:
        """See its base."""
        super().set()
        CalmSelector.wake()


def wait_calmly() -> None:
    """Keys are waited for by `CalmSelector`. Textual's thread asks its own module for the one it takes."""
    calm = SimpleNamespace(SelectSelector=CalmSelector, EVENT_READ=selectors.EVENT_READ)
    linux_driver.selectors = calm  # type: ignore[assignment,attr-defined]
    # One that is not heard to end holds up the end of no process.
    linux_driver.Thread = partial(threading.Thread, daemon=True)  # type: ignore[assignment,attr-defined]


def outlive_the_terminal() -> None:
    """A terminal that goes away (a dropped connection) holds nothing up."""
    linux_driver.WriterThread = _Outliving  # type: ignore[attr-defined]
