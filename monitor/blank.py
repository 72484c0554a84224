"""A run of which nothing is known but its name: hundreds of runs are listed at once in this way, before any is read."""

from __future__ import annotations

from trainmon.monitor.judge import engine_of
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.monitor.thresholds import Thresholds
from trainmon.monitor.watched import WatchedRun
from trainmon.tails.clock import Clock
from trainmon.tails.discover import RunFiles


def blank_run(clock: Clock, limits: Thresholds) -> RunSnapshot:
    """One for all of them: an engine for each, only to say that nothing is known, takes seconds."""
    nobody = WatchedRun(lambda settings, run: engine_of(RunFiles("", "", ()), clock, limits, settings, run), clock)
    nobody.expect([""])
    return nobody.snapshot(live=True)
