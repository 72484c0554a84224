"""What happened to a run that belongs on the x axis of its charts: checkpoints, restarts, new LR and settings."""

from __future__ import annotations

import numpy as np

from trainmon.monitor.frame import SignalKey
from trainmon.monitor.snapshot import RunSnapshot, SeriesView
from trainmon.monitor.stats.distinct import distinct
from trainmon.monitor.stats.middle import median
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.record import FloatArray, NoteKind
from trainmon.tui.axis import Mapping
from trainmon.tui.chart import Tick
from trainmon.tui.levels import thinned

_CONFIG = lazy(r"(?:batch|config|hparams?|hyper_?param\w*|args)[./]|optim\.(?!lr$|loss_scale$|state)")
_SAME_LR = 0.01  # relative: the same schedule, printed anew
_MOST_CHANGES = 24  # a batch that changes at every step is no change of the configuration
_AT_PEAK = 0.999
_JUMP = 0.1  # of the peak LR, in one step
_ABRUPT = 10.0  # times as much as in the steps beside it
_PLATEAU = 0.1  # of all values exactly at the peak: then where it ends is a change too


def ticks_of(run: RunSnapshot, along: Mapping | None = None) -> tuple[Tick, ...]:
    """One tick a checkpoint that the log names with its step, a later attempt, a change of the LR's course or of
    a setting, a remark in the log book; what is more important later, so that it lies on top."""
    saved = {note.step for note in run.notes if note.kind == NoteKind.CHECKPOINT_SAVED and note.step is not None}
    found = [(step, "checkpoint") for step in sorted(saved)]
    lr = run.series.get(SignalKey("optim.lr"))
    found += [(step, "lr") for step in (lr_changes(lr) if lr is not None else ())]
    changed = {step for view in _config(run) for step in config_changes(view)}
    changed |= {change.step for change in run.setting_changes}
    changed |= set(lr_by_attempt(lr)) if lr is not None else set()
    found += [(step, "config") for step in sorted(changed)]
    found += [(first, "restart") for first, _ in run.attempts[1:]]
    found += [(remark.step, "remark") for remark in run.remarks if remark.step is not None]
    steps = np.array([step for step, _ in found], dtype=np.float64)
    places = steps if along is None else along.at(steps)
    return tuple(Tick(float(x), kind) for x, (_, kind) in zip(places, found, strict=True) if np.isfinite(x))


def _config(run: RunSnapshot) -> list[SeriesView]:
    """The series that log settings: batch and sequence, whatever stands under `config/`, the optimiser's own."""
    return [view for key, view in run.series.items() if _CONFIG.match(key.signal)]


def lr_by_attempt(view: SeriesView) -> tuple[float, ...]:
    """First steps of the attempts whose learning rate is another than it was before at the same steps.

    >>> steps, lr = np.r_[0.0:100, 80.0:120], np.r_[np.full(100, 1e-3), np.full(40, 5e-4)]
    >>> attempts = np.r_[np.zeros(100, int), np.ones(40, int)]
    >>> lr_by_attempt(SeriesView(SignalKey("optim.lr"), "", steps, lr, lr, lr, attempts, np.array([]), 140, 5e-4))
    (80.0,)
    """
    thin = thinned(view)
    found = []
    for number in distinct(thin.attempts)[1:]:
        new, old = thin.attempts == number, thin.attempts == number - 1
        if not new.any() or not old.any():
            continue
        steps, before = thin.steps[new], thin.steps[old]
        shared = (steps >= before.min()) & (steps <= before.max())
        if not shared.any():
            continue
        was = np.interp(steps[shared], before, thin.values[old])
        now = thin.values[new][shared]
        if median(np.abs(now - was)) > _SAME_LR * float(np.max(np.abs(was), initial=0.0)):
            found.append(float(steps[0]))
    return tuple(found)


def lr_changes(view: SeriesView) -> tuple[float, ...]:
    """Steps at which the learning rate changes its course: the end of the warm-up, of a plateau, and jumps.

    >>> steps = np.arange(1.0, 301.0)
    >>> lr = np.minimum(steps / 100, 1.0) * np.where(steps > 250, 0.1, 1.0)
    >>> view = SeriesView(SignalKey("optim.lr"), "", steps, lr, lr, lr, np.zeros(300, int), np.array([]), 300, 0.1)
    >>> lr_changes(view)
    (100.0, 250.0, 251.0)
    """
    thin = thinned(view)
    steps, lr = thin.steps, thin.values
    if lr.size < 8 or not (peak := float(lr.max())) > 0:
        return ()
    found: set[float] = set()
    at_peak = np.flatnonzero(lr >= _AT_PEAK * peak)
    first = int(at_peak[0])
    if lr[0] < 0.7 * peak and first < lr.size - 1:
        found.add(float(steps[first]))
    flat = np.flatnonzero(lr >= peak * (1 - 1e-6))
    if flat[-1] - flat[0] > _PLATEAU * lr.size and flat[-1] < lr.size - 1:
        found.add(float(steps[flat[-1]]))
    moved = np.abs(np.diff(lr)) / peak
    beside = np.maximum(_shifted(moved, 1), _shifted(moved, -1))
    jumps = np.flatnonzero((moved > _JUMP) & (moved > _ABRUPT * beside)) + 1
    return tuple(sorted(found | set(steps[jumps][:_MOST_CHANGES].tolist())))


def _shifted(values: FloatArray, by: int) -> FloatArray:
    out = np.zeros_like(values)
    if by > 0:
        out[by:] = values[:-by]
    else:
        out[:by] = values[-by:]
    return out


def config_changes(view: SeriesView) -> tuple[float, ...]:
    """Steps from which a value that otherwise stays has another one; none when it changes all the time."""
    thin = thinned(view)
    at = np.flatnonzero(np.diff(thin.values) != 0) + 1
    return tuple(thin.steps[at].tolist()) if at.size <= _MOST_CHANGES else ()
