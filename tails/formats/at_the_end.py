"""Records that say how far the run is: at 100% of its steps it is finished, although no word says so."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import numpy as np

from trainmon.tails.formats.cells import as_float
from trainmon.tails.formats.config_facts import fact_of_constant
from trainmon.tails.record import Block, Note, NoteKind

_DONE = {
    "percentage": 100.0,
    "percent": 100.0,
    "progress_percent": 100.0,
    "progress_pct": 100.0,
    "percent_complete": 100.0,
}

_SUMMARY = ("train_runtime", "train_samples_per_second", "train_steps_per_second")
_OF_ONE_STEP = ("loss", "grad_norm", "learning_rate")  # a summary has the run's means under other names


def is_summary(keys: Collection[str]) -> bool:
    """Whether a record of these keys is a trainer's closing words, no step's values.

    >>> is_summary({"train_runtime", "train_loss", "epoch"}), is_summary({"train/loss", "train_runtime", "epoch"})
    (True, False)
    """
    return any(key in keys for key in _SUMMARY) and not any(key.rpartition("/")[2] in _OF_ONE_STEP for key in keys)


def done_by_count(document: Mapping[str, object]) -> float | None:
    """The step at which a trainer's state says that all steps are done; None where it says so of none.

    >>> done_by_count({"global_step": 375, "max_steps": 375}), done_by_count({"global_step": 200, "max_steps": 375})
    (375.0, None)
    """
    step, total = document.get("global_step"), document.get("max_steps")
    if isinstance(step, bool) or isinstance(total, bool):
        return None
    if not isinstance(step, int | float) or not isinstance(total, int | float):
        return None
    return as_float(step) if 0 < total <= step and math.isfinite(as_float(step)) else None


def told_end(block: Block) -> Note | None:
    """The end of the run, where a record of `block` gives 100% beside as many steps as its total.

    A share alone is not enough: one that is rounded reaches 100 before the end, and evaluations have their own.
    """
    for key, done in _DONE.items():
        share = block.columns.get(key)
        if share is None:
            continue
        for name, total in block.columns.items():
            if fact_of_constant(name) == "total_steps":
                rows = np.flatnonzero((share == done) & (block.steps == total))
                if len(rows):
                    row = int(rows[0])
                    step = float(block.steps[row])
                    text = f"{key} is 100 at step {step:.15g} of as many"
                    place = (int(block.lines[row]), int(block.offsets[row]))
                    return Note(block.source, *place, NoteKind.FINISHED, text, step)
    return None
