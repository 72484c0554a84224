"""Memory that is free again goes back to the system: what a history took to read is not held for weeks."""

from __future__ import annotations

from typing import Final

from trainmon.tails.clock import Clock

_FIRST_S: Final = 20.0  # most histories are read by then
_EVERY_S: Final = 300.0


def give_back() -> bool:
    """Has the C library give back what it keeps of freed memory, some milliseconds; False where it cannot be asked."""
    import ctypes  # costs some 10 ms, and is there where inotify is

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc alone has it
    return trim is not None and bool(trim(0))


class GivingBack:
    """Gives memory back now and then, when it is asked whether that is due."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at_s = clock.monotonic() + _FIRST_S

    def when_due(self) -> bool:
        """To be called often; True where something was given back."""
        now = self._clock.monotonic()
        if now < self._at_s:
            return False
        self._at_s = now + _EVERY_S
        return give_back()
