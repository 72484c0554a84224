"""What happened to a run that belongs on the x axis of its charts: checkpoints saved, and restarts."""

from __future__ import annotations

import numpy as np

from trainmon.monitor.snapshot import RunSnapshot
from trainmon.tails.record import NoteKind
from trainmon.tui.axis import Mapping
from trainmon.tui.chart import Tick


def ticks_of(run: RunSnapshot, along: Mapping | None = None) -> tuple[Tick, ...]:
    """One tick a checkpoint that the log names with its step, one where each later attempt began."""
    saved = {note.step for note in run.notes if note.kind == NoteKind.CHECKPOINT_SAVED and note.step is not None}
    found = [(step, "checkpoint") for step in sorted(saved)]
    found += [(first, "restart") for first, _ in run.attempts[1:]]
    steps = np.array([step for step, _ in found], dtype=np.float64)
    places = steps if along is None else along.at(steps)
    return tuple(Tick(float(x), kind) for x, (_, kind) in zip(places, found, strict=True) if np.isfinite(x))
