"""The one clock. Everything that needs time is given a `Clock`, so that tests own time."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Wall seconds since the epoch, monotonic seconds, and sleep."""

    def wall(self) -> float:
        """Seconds since the epoch, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Waits."""
        ...


class SystemClock:
    """The machine's clock; the only place that may call `time`."""

    def wall(self) -> float:
        """Seconds since the epoch, UTC."""
        return time.time()  # noqa: TID251 - the one place

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Waits."""
        time.sleep(seconds)
