"""A terminal that goes away while the screens are drawn."""

from __future__ import annotations

import threading
from io import StringIO

from trainmon.tui.guards import _Outliving


class _Gone(StringIO):
    def write(self, text: str) -> int:
        raise OSError(5, "Input/output error")


def test_who_draws_is_not_held_up_by_a_terminal_that_is_gone() -> None:
    writer = _Outliving(_Gone())
    writer.start()

    def draw() -> None:
        for _ in range(200):  # more than the queue holds
            writer.write("frame")

    drawing = threading.Thread(target=draw, daemon=True)
    drawing.start()
    drawing.join(30)
    assert not drawing.is_alive()
    writer.stop()
    assert not writer.is_alive()
