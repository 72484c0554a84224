"""What stops, continues and ends the screens from outside; each must find the terminal as it was."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from textual.drivers.linux_driver import LinuxDriver

from trainmon.tui.guards import WakingEvent

# What a terminal, a shell or a batch system ends programs with.
_ENDING = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT")
_PATIENCE_S = 8.0
_GIVING_BACK_S = 2.0


class Terminal(LinuxDriver):
    """The terminal; continued after a stop that nobody heard of, it is given back and taken anew.

    SIGSTOP (of a batch system, a debugger) cannot be heard. On SIGCONT Textual's own takes the terminal a second time:
    what it restores at the end are then its own settings, and two threads read the keys. While the screens end it is
    taken no more: whoever closes a terminal sends SIGHUP and SIGCONT, one right behind the other.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.exit_event = WakingEvent()
        self._is_left = False

    def start_application_mode(self) -> None:
        """See its base."""
        self._is_left = False
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def stop_application_mode(self) -> None:
        """See its base."""
        self._is_left = True
        super().stop_application_mode()

    def _sigcont_application(self, *_: Any) -> None:
        if self._is_left and not self._must_signal_resume:
            return
        if self._auto_restart and not self._must_signal_resume:
            self.suspend_application_mode()
        super()._sigcont_application(*_)

    def give_back(self) -> None:
        """Leaves the terminal as it was found, from any thread."""
        self._disable_mouse_support()  # Textual's own is for the main thread alone
        self.suspend_application_mode()
        self.close()


class Ending:
    """Ends the screens when a signal comes: `leave` is called in the running loop with the exit status.

    A loop that something keeps busy for ever calls nothing: when `leave` was not called after `patience_s`, `give_back`
    is, from another thread, and the process ends with that status all the same.
    """

    def __init__(
        self, leave: Callable[[int], None], give_back: Callable[[], None], patience_s: float = _PATIENCE_S
    ) -> None:
        self._leave = leave
        self._give_back = give_back
        self._patience_s = patience_s
        self._before: dict[int, Any] = {}
        # A handler may come between any two steps of another: a queue that takes that, and no lock.
        self._told: SimpleQueue[int] = SimpleQueue()
        self._left: SimpleQueue[None] = SimpleQueue()

    def start(self) -> None:
        """From now on signals are heard. To be called in the loop's thread."""
        self._loop = asyncio.get_running_loop()
        for number in (getattr(signal, name) for name in _ENDING if hasattr(signal, name)):
            with contextlib.suppress(ValueError, OSError):  # not the main thread
                self._before[number] = signal.signal(number, self._hear)
        threading.Thread(target=self._insist, name="ending", daemon=True).start()

    def stop(self) -> None:
        """Signals do again what they did before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()
        self._left.put(None)
        self._told.put(0)

    def _hear(self, number: int, _: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the end has come
            self._loop.call_soon_threadsafe(self._end, 128 + number)
            self._told.put(128 + number)

    def _end(self, status: int) -> None:
        self._left.put(None)
        self._leave(status)

    def _insist(self) -> None:
        status = self._told.get()
        if not status:
            return
        try:
            self._left.get(timeout=self._patience_s)
        except Empty:
            giving = threading.Thread(target=self._give_back, daemon=True)
            giving.start()
            giving.join(_GIVING_BACK_S)  # a terminal that takes nothing holds up nothing
            os._exit(status)
