"""The pauses that a run is used to make: saving a checkpoint, evaluating. Learned from the run itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from trainmon.monitor.frame import SignalKey
from trainmon.monitor.job.state import Pause
from trainmon.monitor.snapshot import SeriesView, State
from trainmon.monitor.stats.distinct import distinct
from trainmon.monitor.stats.middle import median
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray, Note, NoteKind

_ENOUGH: Final = 2  # pauses of one kind, before the next one is expected
_NEWEST: Final = 8
_APART: Final = 2.0  # records, from one pause to the next
_UNSTEADY: Final = 0.25  # distances between pauses may differ by this share and still be a rhythm


@dataclass(frozen=True, slots=True)
class Expected:
    """A pause that is due at this step: what the run does then, how long it usually takes and has taken at most."""

    state: State
    usual_s: float
    longest_s: float
    why: str


def expected_pause(
    pauses: Sequence[Pause],
    notes: Iterable[Note],
    series: Mapping[SignalKey, SeriesView],
    last_step: float | None,
    stride: float,
) -> Expected | None:
    """The pause that is due behind `last_step`; None when none is, or none was learned.

    `stride`: steps from one record to the next. Pauses are told apart by what the log says at their steps: a checkpoint
    that was saved, values of an evaluation; pauses at even distances that nothing speaks of are one kind of their own.
    """
    if last_step is None or len(pauses) < _ENOUGH:
        return None
    saved = _steps_of(note.step for note in notes if note.kind is NoteKind.CHECKPOINT_SAVED)
    evaluated = _steps_of(
        step for key, view in series.items() if key.signal.startswith("eval.") for step in view.steps[-200:].tolist()
    )
    kinds: dict[State, list[Pause]] = {}
    rest: list[Pause] = []
    for pause in pauses:
        if _is_at(pause.step, saved, stride):
            kinds.setdefault(State.CHECKPOINTING, []).append(pause)
        elif _is_at(pause.step, evaluated, stride):
            kinds.setdefault(State.EVALUATING, []).append(pause)
        else:
            rest.append(pause)
    for state, known in kinds.items():
        word = "at a checkpoint of this run" if state is State.CHECKPOINTING else "at an evaluation of this run"
        if found := _due(known, last_step, stride, state, word):
            return found
    if _is_its_pace(rest, stride):
        return None
    return _due(rest, last_step, stride, State.CHECKPOINTING, "at such steps of this run (saving or evaluating)")


def _is_its_pace(pauses: Sequence[Pause], stride: float) -> bool:
    """Whether the pauses of which nothing speaks follow each other record by record: the run has become slow."""
    steps = distinct(np.array([pause.step for pause in pauses]))
    return len(steps) >= _ENOUGH and median(np.diff(steps[-_NEWEST:])) < _APART * stride


def _steps_of(steps: Iterable[float | None]) -> FloatArray:
    return distinct(np.array([step for step in steps if step is not None], dtype=np.float64))


def _is_at(step: float, known: FloatArray, stride: float) -> bool:
    """Whether something happened at the record of `step` or before the next one."""
    place = int(np.searchsorted(known, step))
    return place < len(known) and known[place] <= step + stride


def _due(pauses: Sequence[Pause], last_step: float, stride: float, state: State, why: str) -> Expected | None:
    """The pause of one kind, when its own rhythm puts the next one behind `last_step`."""
    steps = distinct(np.array([pause.step for pause in pauses]))
    if len(steps) < _ENOUGH:
        return None
    distances = np.diff(steps)
    every = median(distances)
    # One that was missed doubles a distance: whole multiples are still the rhythm.
    multiples = np.maximum(np.round(distances / every), 1.0)
    if np.any(np.abs(distances - multiples * every) > max(_UNSTEADY * every, stride)):
        return None
    since = last_step - float(steps[-1])
    if since < 0 or min(since % every, every - since % every) > stride / 2 or since < every / 2:
        return None
    gaps = np.array([pause.gap_s for pause in pauses])
    return Expected(state, median(gaps), float(gaps.max()), why)
