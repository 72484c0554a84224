"""A session that is loaded only when the first screen stands: what judges is as much code again as what draws."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from trainmon.monitor.snapshot import FleetSnapshot

if TYPE_CHECKING:
    from trainmon.monitor.log_search import LogSearch
    from trainmon.monitor.session import Monitor


class LateMonitor:
    """The `Monitor` that `make` gives, made and started in a thread of its own once `start` is called.

    Until then it is one that has found no run yet; what is asked of it is done when it is there.
    """

    def __init__(self, make: Callable[[], Monitor]) -> None:
        self._make = make
        self._session: Monitor | None = None
        self._asked: list[Callable[[Monitor], None]] = []
        self._on_new: Callable[[], None] = lambda: None
        self._is_begun = self._is_stopped = False
        self._lock = threading.Lock()
        self._latest = FleetSnapshot((), reading=True, status="looking for runs")

    def start(self) -> None:
        """Begins to load, once."""
        if not self._is_begun:
            self._is_begun = True
            threading.Thread(target=self._begin, name="trainmon-start", daemon=True).start()

    def _begin(self) -> None:
        try:
            session = self._make()
            with self._lock:
                for ask in self._asked:
                    ask(session)
                if not self._is_stopped:
                    session.start()
                self._session = session
        except Exception as error:  # the thread's top: the screen says so
            why = f"cannot begin: {type(error).__name__}: {error}"
            if isinstance(error, MemoryError) or "new thread" in str(error):
                why += "; give it more memory or processes (ulimit -v, ulimit -u, the limit of the job)"
            self._latest = FleetSnapshot((), problems=(why,))
            self._on_new()
            return
        if self._is_stopped:
            session.stop()

    def _ask(self, ask: Callable[[Monitor], None]) -> None:
        with self._lock:
            if self._session is None:
                self._asked.append(ask)
                return
        ask(self._session)

    def latest(self) -> FleetSnapshot:
        """The newest snapshot; the same object while nothing changed."""
        return self._latest if self._session is None else self._session.latest()

    def call_when_new(self, call: Callable[[], None]) -> None:
        """See `Monitor`, as for all that follows."""
        self._on_new = call
        self._ask(lambda session: session.call_when_new(call))

    def attend(self, runs: frozenset[str]) -> None:
        """These runs are looked at closely."""
        self._ask(lambda session: session.attend(runs))

    def written_s(self, path: str) -> float | None:
        """When a file was last seen to be written to."""
        return None if self._session is None else self._session.written_s(path)

    def acknowledge(self, run: str, episode_id: str) -> None:
        """Marks an episode as seen."""
        self._ask(lambda session: session.acknowledge(run, episode_id))

    def snooze(self, run: str, episode_id: str, seconds: float) -> None:
        """Silences an episode for `seconds`."""
        self._ask(lambda session: session.snooze(run, episode_id, seconds))

    def request_log(self, run: str, path: str, line_no: int) -> None:
        """Asks for the lines around `line_no`."""
        self._ask(lambda session: session.request_log(run, path, line_no))

    def look_closely(self, run: str, first: float, last: float) -> None:
        """Has what was thinned of these steps read again."""
        self._ask(lambda session: session.look_closely(run, first, last))

    def search_log(self, path: str, line_no: int, words: str | None, by: int) -> LogSearch:
        """Looks through a whole file. Raises LookupError before there is a run with one."""
        if self._session is None:
            raise LookupError(path)
        return self._session.search_log(path, line_no, words, by)

    def is_alive(self) -> bool:
        """Whether the logs are looked at, or will be in a moment."""
        return self._latest.reading if self._session is None else self._session.is_alive()

    def stop(self) -> None:
        """Ends it, also when it is not there yet."""
        with self._lock:
            self._is_stopped, session = True, self._session
        if session is not None:
            session.stop()
