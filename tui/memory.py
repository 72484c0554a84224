"""Between the app and its state file: applies what was remembered, writes what changes off the screen's thread."""

from __future__ import annotations

import threading
from collections.abc import Callable

from trainmon.monitor.snapshot import RunSnapshot
from trainmon.tui.row import RunId
from trainmon.tui.source import SnapshotSource
from trainmon.tui.state import State, StateFile

_PATIENCE_S = 1.0  # a home directory that hangs may cost the newest pins, not the way out


class Memory:
    """`file` None: nothing is read or written. `problem` is one line, or ""."""

    def __init__(self, file: StateFile | None) -> None:
        self.file = file
        self.state, self.problem = (State(), "") if file is None else file.read()
        self.acknowledged = list(self.state.acknowledged)
        self.snoozed = list(self.state.snoozed)
        self._waiting = {one[:3] for one in (*self.acknowledged, *self.snoozed)}
        self._written = self.state
        self._last: threading.Thread | None = None
        self._lock = threading.Lock()

    def acknowledge(self, run: RunId, episode: str) -> None:
        """Remembers it."""
        self.acknowledged.append((*run, episode))

    def snooze(self, run: RunId, episode: str, until: float) -> None:
        """Remembers it until the wall time `until`."""
        self.snoozed = [one for one in self.snoozed if one[:3] != (*run, episode)]
        self.snoozed.append((*run, episode, until))

    def reapply(self, runs: tuple[RunSnapshot, ...], source: SnapshotSource, now: float) -> None:
        """Tells the source of remembered episodes as they appear, each once. `now` in wall seconds."""
        if not self._waiting:
            return
        for run in runs:
            for one in run.episodes:
                key = (run.name, run.target, one.id)
                if key not in self._waiting:
                    continue
                self._waiting.discard(key)
                if key in self.acknowledged and not one.acknowledged:
                    source.acknowledge(run.name, one.id)
                until = next((entry[3] for entry in self.snoozed if entry[:3] == key), now)
                if until > now:
                    source.snooze(run.name, one.id, until - now)

    def write(self, state: State, said: Callable[[str], None] | None = None) -> threading.Thread | None:
        """Writes in the background; `said` hears, on that thread, why it could not."""
        file = self.file
        if file is None or state == self._written:
            return None
        self._written = state

        def work() -> None:
            with self._lock:
                problem = file.write(state)
            if problem and said is not None:
                said(problem)

        thread = threading.Thread(target=work, name="trainmon-state", daemon=True)
        thread.start()
        self._last = thread
        return thread

    def close(self, state: State) -> None:
        """Writes for the last time."""
        thread = self.write(state) or self._last
        if thread is not None:
            thread.join(_PATIENCE_S)
