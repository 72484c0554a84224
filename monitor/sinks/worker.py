"""A thread for a sink that may have to wait (a disk, a network, a program): whoever gives it work never does."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from trainmon.tails.clock import Clock

Say = Callable[[str], None]
MOST_WAITING: Final = 200
_LAST_TRIES_S: Final = 1.0  # between tries while the program waits to end

Item = TypeVar("Item")


class Worker(Generic[Item]):
    """Gives `work` what waits, in order, `most_at_once` at a time at most; `say` hears, once, of what cannot be kept.

    `work` returns the seconds after which it wants the same again, None when it is done with it.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[list[Item]], float | None],
        say: Say,
        *,
        clock: Clock,
        most_at_once: int = MOST_WAITING,
        gather_s: float = 0.0,
    ) -> None:
        self.name = name
        self._work = work
        self._say = say
        self._clock = clock
        self._most_at_once = most_at_once
        self._gather_s = gather_s
        self._waiting: deque[Item] = deque()
        self._dropped = 0
        self._wake = threading.Condition()
        self._is_busy = self._is_closing = self._is_given_up = False
        self._thread: threading.Thread | None = None

    def put(self, event: Item) -> None:
        """Returns at once. The oldest is dropped where too many wait."""
        with self._wake:
            if len(self._waiting) >= MOST_WAITING:
                self._waiting.popleft()
                self._dropped += 1
                if self._dropped == 1:
                    self._say(f"{self.name}: over {MOST_WAITING} alerts wait; the oldest are dropped")
            self._waiting.append(event)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"trainmon-{self.name}", daemon=True)
                self._thread.start()
            self._wake.notify_all()

    def close(self, patience_s: float) -> bool:
        """Waits until all is done, `patience_s` at most; whether it is."""
        until = self._clock.monotonic() + patience_s
        with self._wake:
            self._is_closing = True
            self._wake.notify_all()
            while self._waiting or self._is_busy:
                left = until - self._clock.monotonic()
                if left <= 0:
                    self._is_given_up = True
                    self._wake.notify_all()
                    return False
                self._wake.wait(min(left, 0.1))
        return True

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._waiting and not self._is_closing:
                    self._wake.wait()
                if not self._waiting or self._is_given_up:
                    return
                if self._gather_s and not self._is_closing:
                    self._wake.wait_for(lambda: self._is_closing, self._gather_s)
                some = [self._waiting.popleft() for _ in range(min(self._most_at_once, len(self._waiting)))]
                self._is_busy = True
            try:
                again_s = self._work(some)
            except Exception as error:  # the thread's top: a sink that fails is said, and goes on with the next
                self._say(f"{self.name}: {type(error).__name__}: {error}")
                again_s = None
            with self._wake:
                self._is_busy = False
                if again_s is not None:
                    self._waiting.extendleft(reversed(some[: MOST_WAITING - len(self._waiting)]))
                    if self._is_closing:
                        self._wake.wait_for(lambda: self._is_given_up, min(again_s, _LAST_TRIES_S))
                    else:
                        self._wake.wait_for(lambda: self._is_closing, again_s)
                self._wake.notify_all()
