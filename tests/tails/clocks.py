"""A clock that stands still until told to go."""

from __future__ import annotations

import time


class FakeClock:
    """Begins at the machine's own wall time, since files carry real time stamps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._wall = time.time()  # noqa: TID251 - the one place in the tests

    def wall(self) -> float:
        return self._wall + self.now - 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
