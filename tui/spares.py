"""Screens that stand ready behind the one in front: a key then has one shown, and need not wait until it is built.

To build one takes Textual longer than to draw it several times: each part is a task of its own, has its styles looked
up, and is laid out by messages to and fro. It is done after the key is answered, and before the first one comes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from textual.geometry import Size

from trainmon.tails.give_way import KEYS
from trainmon.tui.later import call_after
from trainmon.tui.screens.base import MonitorScreen

if TYPE_CHECKING:
    from textual.app import App

S = TypeVar("S", bound=MonitorScreen)
Make = Callable[[], MonitorScreen]

_SOON_S = 0.05  # after a key, and between two


class Spares:
    """At most one spare screen of each kind. Only for the thread of the screens."""

    def __init__(self, app: App[None]) -> None:
        self._app = app
        self._wanted: dict[str, tuple[Make, MonitorScreen | None]] = {}
        self._ready: dict[str, tuple[MonitorScreen, Size, Make]] = {}
        self._is_due = False

    def take(self, kind: type[S]) -> S | None:
        """A screen that is built and laid out, with nothing on it yet; None where none is ready."""
        screen, size, _ = self._ready.get(kind.KIND, (None, None, None))
        if not isinstance(screen, kind) or not screen.is_built:
            return None
        del self._ready[kind.KIND]
        if size != self._app.size:
            screen.lay_out()
        return screen

    def has(self, kind: str) -> bool:
        """Whether one stands ready."""
        return kind in self._ready and self._ready[kind][0].is_built

    def want(self, kind: str, make: Make, like: MonitorScreen | None = None) -> None:
        """Has `make` make one when no key waits for its answer; its parts will be as large as those of `like`."""
        if kind not in self._ready:
            self._wanted[kind] = (make, like)
            self._later()

    def drop(self) -> None:
        """The looks are others now: what stands ready does not fit any more, and is made anew."""
        ready, self._ready = self._ready, {}
        for kind, (screen, _, make) in ready.items():
            screen.remove()
            self.want(kind, make)

    def _later(self) -> None:
        if not self._is_due:
            self._is_due = True
            call_after(self._app, _SOON_S, self._make_one)

    def _make_one(self) -> None:
        self._is_due = False
        if self._wanted and not KEYS.is_asked:
            kind = next(iter(self._wanted))
            make, like = self._wanted.pop(kind)
            screen = make()
            screen.is_spare, screen.like = True, like
            self._ready[kind] = (screen, self._app.size, make)
            self._app._get_screen(screen)
        if self._wanted:
            self._later()
