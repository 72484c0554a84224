"""Recommended actions with this run's numbers: roll back to, skip, lower, clip at, drain. It is advice, no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from trainmon.monitor.finding import CheckResult, Episode, Severity, Verdict
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.snapshot import SeriesView
from trainmon.monitor.stats.middle import quantile
from trainmon.tails.record import FloatArray, Note, NoteKind

_LOST: Final = "loss.nonfinite"
_LOSS_CHECKS: Final = ("loss.spike", "loss.shift", "loss.drift", "loss.nonfinite", "spike.co", "grad.norm")
_SIZED: Final = ("spike", "co_spike", "level_shift")  # their worst value ends what is odd about the data
_SUDDEN: Final = ("spike", "co_spike", "nonfinite", "null_loss", "zero_loss", "level_shift")
_LR: Final = SignalKey("optim.lr")
_NORM: Final = SignalKey("grad.norm")
# What these tell of is in the weights, and undone by going back to older ones.
_IN_THE_WEIGHTS: Final = frozenset(
    (
        *("loss.spike", "loss.shift", "loss.drift", "grad.norm", "grad.dead", "moe.balance", "numerics.abs_max"),
        *("tensor.dead", "update.ratio", "residual.stream", "modality.balance", "rl.health", "output.samples"),
    )
)
_HALF: Final = 0.5  # of the learning rate, after a fault that did not recover: what published runs restarted with
_LESS: Final = 0.7  # after spikes that recover but keep coming
_OFTEN: Final = 3
_LONG_SKIP_STEPS: Final = 500.0  # PaLM skipped 200-500 batches about a spike; beyond that it is no matter of batches
_NORM_VALUES: Final = 200
_FEWEST_NORMS: Final = 30
_CLIP_QUANTILE: Final = 0.9
_FEW_RANKS: Final = 2  # whose loss leaves the others: where more do, it is the loss that moved
_IN_TIME: Final = 0.9


def actions(
    checks: Sequence[CheckResult],
    episodes: Sequence[Episode],
    notes: Sequence[Note],
    facts: Mapping[str, float | str],
    series: Mapping[SignalKey, SeriesView],
) -> tuple[str, ...]:
    """What to do, worst first, each once: first what this run's own numbers give, then the advice of each check."""
    loud = sorted(
        (check for check in checks if check.verdict in (Verdict.FAIL, Verdict.WARN)),
        key=lambda check: (check.verdict is not Verdict.FAIL, check.advisory),
    )
    failed = any(check.verdict is Verdict.FAIL and check.next for check in loud)
    told = [
        _roll_back(episodes, notes) if failed else _would_go_back(episodes, notes),
        *_of_the_fault(episodes, notes, facts, series),
        *_another_threshold(episodes, facts, series),
        *_drain(episodes),
        *_before_memory_ends(episodes, notes),
    ]
    lost = any(check.id == _LOST and check.verdict is Verdict.FAIL for check in loud)
    told += [
        check.next[0].upper() + check.next[1:]
        for check in loud
        if check.next and not (lost and _is_of_lost_weights(check, episodes))
    ]
    return tuple(dict.fromkeys(line for line in told if line))


def _is_of_lost_weights(check: CheckResult, episodes: Sequence[Episode]) -> bool:
    """Whether the loss that is lost says what to do: all that a check is loud about is NaN or Inf, or it warns of a
    loss that moved before, as if there were a run to go on with."""
    is_lost_still = any(one.check == _LOST and one.severity is Severity.FAIL and not one.recovered for one in episodes)
    if is_lost_still and check.id in _LOSS_CHECKS and check.verdict is Verdict.WARN and not check.advisory:
        return True
    kinds = {one.kind for one in episodes if one.check == check.id and one.severity >= Severity.WARN}
    return check.id != _LOST and kinds == {"nonfinite"}


def _saved(notes: Sequence[Note]) -> list[float]:
    return [note.step for note in notes if note.kind is NoteKind.CHECKPOINT_SAVED and note.step is not None]


def _roll_back(episodes: Sequence[Episode], notes: Sequence[Note]) -> str:
    """The last checkpoint before the first fault that is a FAIL."""
    failed = [episode.first_step for episode in episodes if episode.severity is Severity.FAIL]
    saved = _saved(notes)
    if not failed or not saved:
        return ""
    fault_at = min(failed)
    good = [step for step in saved if step < fault_at]
    if not good:
        return f"No checkpoint in the log is older than the fault at step {fault_at:.15g}"
    return (
        f"Roll back to the checkpoint saved at step {max(good):.15g}, the last before the fault at step {fault_at:.15g}"
    )


def _would_go_back(episodes: Sequence[Episode], notes: Sequence[Note]) -> str:
    """The last checkpoint before the first warning that is open and that older weights would not have."""
    open_ones = [
        one.first_step
        for one in episodes
        if one.check in _IN_THE_WEIGHTS and one.severity is Severity.WARN and not one.recovered and one.origin == "log"
    ]
    begun = min(open_ones, default=None)
    good = [step for step in _saved(notes) if begun is not None and step < begun]
    if begun is None or not good:
        return ""
    return f"Should it stay so: the checkpoint saved at step {max(good):.15g} is the last before step {begun:.15g}"


def _of_the_fault(
    episodes: Sequence[Episode],
    notes: Sequence[Note],
    facts: Mapping[str, float | str],
    series: Mapping[SignalKey, SeriesView],
) -> list[str]:
    """Data to skip, learning rate and clip threshold to try, for faults of the loss and the gradients."""
    mine = [one for one in episodes if one.check in _LOSS_CHECKS and one.origin == "log" and "ended" not in one.detail]
    # A loss that is no longer logged says nothing of learning rates.
    failed = [one for one in mine if one.severity is Severity.FAIL and one.kind != "vanished"]
    bad = [one for one in failed if not one.recovered or one.kind == "nonfinite"]
    spikes = [one for one in mine if one.severity >= Severity.WARN and one.kind in ("spike", "co_spike")]
    if not bad and len(spikes) < _OFTEN:
        return []
    fault = min(bad or spikes, key=lambda one: (one.attempt, one.first_step))
    told = [_skip(fault, _saved(notes))] if bad else []
    told.append(_learning_rate(fault, series, _HALF if bad else _LESS, "" if bad else f"{len(spikes)} spikes: "))
    told.append(_clip(_norms_leave(mine, fault), facts, series))
    return told


def _skip(fault: Episode, saved: Sequence[float]) -> str:
    if fault.kind not in _SUDDEN or not any(step < fault.first_step for step in saved):
        return ""
    last = fault.worst_step if fault.kind in _SIZED else fault.first_step
    if last - fault.first_step > _LONG_SKIP_STEPS:
        return ""
    span = f"step {fault.first_step:.15g}"
    if last > fault.first_step:
        span = f"steps {fault.first_step:.15g} to {last:.15g}"
    return f"When trained again from there, skip the data of {span}: what was read when the fault began"


def _learning_rate(fault: Episode, series: Mapping[SignalKey, SeriesView], share: float, why: str) -> str:
    before = _before(series.get(_LR), fault)
    rate = float(before[-1]) if len(before) else 0.0
    if not rate > 0:
        return ""
    begun = why[:1].upper() + why[1:] + "try" if why else "Try"
    at = f"{rate:.3g} at step {fault.first_step:.15g}"
    return f"{begun} a learning rate of {rate * share:.2g} ({share:g} times the {at})"


def _norms_leave(episodes: Sequence[Episode], fault: Episode) -> Episode:
    """Where the gradient norm left its level on the way into `fault`: the fault itself, or what led up to it.

    Norms that already ran away say nothing of where to clip.
    """
    leading = [
        one
        for one in episodes
        if one.signal == _NORM and one.attempt == fault.attempt and not one.recovered
        if one.first_step < fault.first_step
    ]
    return min(leading, key=lambda one: one.first_step, default=fault)


def _clip(left: Episode, facts: Mapping[str, float | str], series: Mapping[SignalKey, SeriesView]) -> str:
    """A threshold that clips one step in ten of those before the norm `left` its level; "" where one as low is set."""
    norms = _before(series.get(_NORM), left)[-_NORM_VALUES:]
    norms = norms[norms > 0]
    if len(norms) < _FEWEST_NORMS:
        return ""
    clip = float(f"{quantile(norms, _CLIP_QUANTILE):.2g}")
    known = facts.get("clip_threshold")
    now = known if isinstance(known, (int, float)) and known > 0 else None
    if now is not None and now <= clip:
        return ""
    instead = f" in place of {now:.3g}" if now is not None else ""
    where = f"before step {left.first_step:.15g}"
    return f"Clip the gradient norm at {clip:.2g}{instead}: {where} nine norms in ten lay below"


def _another_threshold(
    episodes: Sequence[Episode], facts: Mapping[str, float | str], series: Mapping[SignalKey, SeriesView]
) -> list[str]:
    """Where clipping has become the rule: the threshold that one norm in ten would pass as they are now."""
    view, known = series.get(_NORM), facts.get("clip_threshold")
    open_ones = [one for one in episodes if one.check == "grad.clip_rate" and not one.recovered]
    if view is None or not open_ones:
        return []
    since = min(open_ones, key=lambda one: one.first_step)
    where = (view.steps >= since.first_step) & (view.attempts == since.attempt) & np.isfinite(view.values)
    norms = view.values[where][-_NORM_VALUES:]
    if len(norms) < _FEWEST_NORMS:
        return []
    now = f" (now {known:.3g})" if isinstance(known, (int, float)) and known > 0 else ""
    clip = f"a clip threshold of {quantile(norms, _CLIP_QUANTILE):.2g}{now}"
    return [f"If the norms since step {since.first_step:.15g} are sound: {clip} would again clip one step in ten"]


def _drain(episodes: Sequence[Episode]) -> list[str]:
    """Ranks that are slow, or whose loss left the pack, and have not come back."""
    told = []
    apart = {one.signal for one in episodes if one.check == "loss.groups" and "rank" in one.signal.label_dict}
    for one in episodes:
        labels = one.signal.label_dict
        if one.check == "sys.devices" and "device" in labels and not one.recovered and one.severity >= Severity.WARN:
            told.append(f"Drain the node of card {labels['device']} when it goes on: {one.what}")
            continue
        rank = labels.get("rank")
        if rank is None or one.recovered or one.severity < Severity.WARN:
            continue
        if one.check == "sys.straggler":
            told.append(f"Drain the node of rank {rank}: it has set the pace since step {one.first_step:.15g}")
        elif one.check == "loss.groups" and len(apart) <= _FEW_RANKS:
            told.append(
                f"Look at rank {rank}: its loss left the others at step {one.first_step:.15g}; drain its node if its"
                " shard of the data is sound"
            )
    return told


def _before_memory_ends(episodes: Sequence[Episode], notes: Sequence[Note]) -> list[str]:
    """Where memory grows: the step by which a checkpoint should be there, at nine tenths of the way that is left."""
    told = []
    for one in episodes:
        full = one.detail.get("full_at_step")
        if one.recovered or one.kind != "memory_creep" or not isinstance(full, (int, float)) or full <= one.last_step:
            continue
        by = one.last_step + _IN_TIME * (full - one.last_step)
        saved = _saved(notes)
        known = f"; the last one is of step {max(saved):.15g}" if saved else ""
        told.append(
            f"Save a checkpoint by step {by:,.0f} and restart from it: memory ends near step {full:,.0f}{known}"
        )
    return told


def _before(view: SeriesView | None, fault: Episode) -> FloatArray:
    """The finite values of a series before the fault, in its attempt."""
    if view is None or not len(view.steps):
        return np.empty(0)
    where = (view.steps < fault.first_step) & (view.attempts == fault.attempt) & np.isfinite(view.values)
    return np.asarray(view.values[where], np.float64)
