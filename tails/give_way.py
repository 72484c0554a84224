"""Who reads and judges gives way to who answers a key: all threads share one interpreter, and a key comes first."""

from __future__ import annotations

import sys
import threading
from typing import Final

from trainmon.tails.clock import Clock, SystemClock

MOST_S: Final = 0.4  # nobody waits longer for an answer to be drawn; on a busy machine one takes that long
# A thread that wants the interpreter has it at the latest after so long: who draws an answer wants it after each of the
# hundred times that it lets it go, and a thread at work keeps it for 5 ms each time unless told otherwise.
TURN_S: Final = 0.0003
WORK_S: Final = 0.05  # that is done between two such waits, however fast somebody types


class GiveWay:
    """A key is pressed (`ask`) and answered (`done`); the threads that work call `give` wherever they can stop.

    >>> way = GiveWay()
    >>> way.give()
    False
    >>> way.ask()
    >>> way.is_asked, way.done(), way.is_asked
    (True, None, False)
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._free = threading.Event()
        self._free.set()
        self._until_s = 0.0
        self._own = threading.local()
        self._usual_s = sys.getswitchinterval()

    @property
    def is_asked(self) -> bool:
        """Whether an answer is being worked out."""
        return not self._free.is_set() and self._clock.monotonic() < self._until_s

    def ask(self) -> None:
        """From now until `done`, for `MOST_S` at the most, the interpreter is wanted."""
        self._until_s = self._clock.monotonic() + MOST_S
        if self._free.is_set():
            self._usual_s = sys.getswitchinterval()
            sys.setswitchinterval(TURN_S)
        self._free.clear()

    def done(self) -> None:
        """It is not wanted any more."""
        if not self._free.is_set():
            sys.setswitchinterval(self._usual_s)
        self._free.set()

    def give(self) -> bool:
        """Waits while an answer is being worked out, unless this thread did so a moment ago; whether it waited."""
        if self._free.is_set():
            return False
        now_s = self._clock.monotonic()
        left_s = self._until_s - now_s
        if left_s <= 0 or now_s - getattr(self._own, "waited_s", -WORK_S) < WORK_S:
            return False
        self._free.wait(left_s)
        self._own.waited_s = self._clock.monotonic()
        return True


KEYS: Final = GiveWay()
