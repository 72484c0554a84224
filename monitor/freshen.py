"""A snapshot with the numbers that came since, its verdicts as they stood: a fifth of the work of a whole one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainmon.monitor.engine import RunEngine
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.tails.status import FileStatus, LogLine


def freshened(
    last: RunSnapshot,
    engine: RunEngine,
    files: Sequence[FileStatus],
    log_tail: Sequence[LogLine],
    *,
    age_s: float | None,
    progress: float,
    revision: int,
    log_context: tuple[LogLine, ...],
    log_context_for: tuple[str, int] | None,
    with_scores: bool,
) -> RunSnapshot:
    """`last` with the series, steps, files and lines of now.

    Checks, episodes and the walk stay: only for a run in which nothing was found since, and only for a moment, since
    they count what was judged.
    """
    steps = engine.steps
    return replace(
        last,
        first_step=steps.first if steps is not None else None,
        last_step=steps.last if steps is not None else None,
        step_count=steps.count if steps is not None else 0,
        age_s=age_s,
        attempts=engine.attempts,
        series=engine.series_views(with_scores=with_scores),
        files=tuple(files),
        log_tail=tuple(log_tail),
        progress=progress,
        revision=revision,
        log_context=log_context,
        log_context_for=log_context_for,
    )
