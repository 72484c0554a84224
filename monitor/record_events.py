"""Records as events, for who follows a run without a screen."""

from __future__ import annotations

from collections.abc import Callable

from trainmon.monitor.frame import Frame


def record_events(run: str, emit: Callable[[dict[str, object]], None]) -> Callable[[Frame], None]:
    """A listener that gives one ``record`` event for each row of the frames it hears."""

    def hear(frame: Frame) -> None:
        logged = {key: set(frame.logged(key).tolist()) for key in frame.columns}
        for index, step in enumerate(frame.steps.tolist()):
            values = {str(key): float(column[index]) for key, column in frame.columns.items() if index in logged[key]}
            emit({"event": "record", "run": run, "attempt": frame.attempt, "step": step, "values": values})

    return hear
