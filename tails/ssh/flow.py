"""How much of each file may be on its way: enough to keep the link busy, too little to hold up what is new.

What is on its way is what a new line waits behind. So all files that are behind share a window of a quarter of a second
of the link as it was measured; a set rate bounds it further. A file that is not behind has a window of its own, so that
its next lines come without being asked for.
"""

from __future__ import annotations

from collections.abc import Iterable

from trainmon.tails.ssh.remote_file import WINDOW_BYTES, RemoteFile

LEAST_BYTES = 64 << 10
MOST_BYTES = 16 << 20
DELAY_S = 0.25
_MEASURE_S = 0.25
_GROWS_MEASURE_S = 0.05  # while what comes still grows with the window
_GROWS = 1.2
_FIRST_RATE = 2e6  # bytes a second: until a link is measured, it is taken for a thin one


class Flow:
    """Shares the window out. `rate`: bytes a second that history may take, None for what the link gives."""

    def __init__(self, rate: int | None = None) -> None:
        self.most_bytes = MOST_BYTES
        self._limit = rate
        self._rate = _FIRST_RATE
        self._measured_at = 0.0
        self._measured = 0
        self._was_behind = False
        self._grows = True

    def share(self, files: Iterable[RemoteFile], read_bytes: int, now: float) -> None:
        """Measures and sets the windows: often only while the link shows that it gives more."""
        if now - self._measured_at < (_GROWS_MEASURE_S if self._grows else _MEASURE_S):
            return
        passed_s, self._measured_at = min(now - self._measured_at, 1.0), now
        came, self._measured = read_bytes - self._measured, read_bytes
        known = list(files)
        behind = [file for file in known if file.is_behind]
        if behind and self._was_behind and came > 0 and passed_s < 1.0:
            before, self._rate = self._rate, 0.5 * self._rate + 0.5 * came / passed_s
            self._grows = self._rate > _GROWS * before
        elif not behind:
            self._grows = True  # what comes next may be another history, on a link that is faster by now
        self._was_behind = bool(behind)
        if not behind:
            return
        # Twice what came: else a link that could give more would never show it.
        window = min(max(2 * self._rate * DELAY_S, LEAST_BYTES), self.most_bytes)
        each = max(int(window) // len(behind), 4096)
        allowance = None if self._limit is None else max(int(self._limit * passed_s) // len(behind), 1)
        for file in known:
            if file.is_behind:
                file.set_window(each, allowance)
            else:
                file.set_window(min(WINDOW_BYTES, max(each, LEAST_BYTES)))
