"""The tops of threads: what never should be raised is said in one line, and the work goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable

from trainmon.tails.text import printable

RETRY_S = 1.0


def in_words(what: str, error: Exception) -> str:
    """One line on an error of the program's own.

    >>> in_words("looking for runs", KeyError("x"))
    "looking for runs failed inside trainmon (KeyError: 'x'); it is tried again; please report it"
    """
    words = f"{type(error).__name__}: {printable(str(error), 200)}"
    return f"{what} failed inside trainmon ({words}); it is tried again; please report it"


def keep_going(what: str, turn: Callable[[], None], stopping: threading.Event, say: Callable[[str], None]) -> None:
    """Calls `turn` until `stopping` is set. An error is told to `say`, and after `RETRY_S` the next turn begins."""
    while not stopping.is_set():
        try:
            turn()
        except Exception as error:  # the top of a thread: a thread that is gone would be noticed by no one
            say(in_words(what, error))
            stopping.wait(RETRY_S)
