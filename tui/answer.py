"""What a key did is seen at once, also where everything else is drawn once a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainmon.tui.later import call_after
from trainmon.tui.thin import draw_now

if TYPE_CHECKING:
    from trainmon.tui.app import TrainmonApp

_FIRST_S = 0.03  # the widgets have told the screen by then what is to be drawn
_APART_S = 0.1  # never more than ten frames a second
_FRAMES = 4  # a screen that opens is laid out, then drawn


class Answer:
    """Draws a few frames after each key, ten a second at most; without anything new a frame costs no byte."""

    def __init__(self, app: TrainmonApp) -> None:
        self._app = app
        self._left = 0
        self._drawn_s = float("-inf")

    def key(self) -> None:
        """A key has acted."""
        is_drawing, self._left = self._left > 0, _FRAMES
        if not is_drawing:
            wait_s = self._drawn_s + _APART_S - self._app.clock.monotonic()
            call_after(self._app, max(_FIRST_S, wait_s), self._draw)

    def _draw(self) -> None:
        self._left -= 1
        self._drawn_s = self._app.clock.monotonic()
        if self._app.screen_stack:
            draw_now(self._app.screen)
        if self._left > 0:
            call_after(self._app, _APART_S, self._draw)
